//! Alertmanager: the alerts that fire, and what keeps some of them quiet.
//!
//! In: matchers. Out: the alerts as the server gives them, for the parser of alerts, and the silences.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::SourceError;
use super::rest::{Remote, RestError};
use crate::domain::FailureKind;
use crate::domain::text::clean_line;
use crate::http::{HttpError, RemoteSettings};

const MAX_TEXT_CHARS: usize = 300;

/// A server.
pub struct Alertmanager {
    name: String,
    remote: Remote,
}

/// Why somebody made alerts quiet, and for how long.
#[derive(Debug, Clone, PartialEq)]
pub struct Silence {
    pub id: String,
    pub comment: String,
    pub by: String,
    pub until: Option<Timestamp>,
}

/// What keeps one alert quiet.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Quiet {
    /// Ids of silences.
    pub silenced_by: Vec<String>,
    /// Fingerprints of alerts.
    pub inhibited_by: Vec<String>,
}

/// What a server gave.
#[derive(Debug, Clone, PartialEq)]
pub struct Fired {
    /// The array of `/api/v2/alerts`.
    pub payload: Value,
    /// By the fingerprint of the alert.
    pub quiet: BTreeMap<String, Quiet>,
    /// By their ids.
    pub silences: BTreeMap<String, Silence>,
    pub notes: Vec<String>,
}

impl Alertmanager {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(name: &str, settings: RemoteSettings) -> Result<Self, HttpError> {
        Ok(Self { name: name.to_owned(), remote: Remote::new(settings)? })
    }

    /// The configured name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The alerts that match every one of `filters` (`severity="critical"`), silenced and inhibited ones included.
    ///
    /// # Errors
    /// When the server does not answer, or refuses a filter.
    pub async fn alerts(&self, filters: &[String]) -> Result<Fired, SourceError> {
        let mut query: Vec<(&str, String)> = filters.iter().map(|filter| ("filter", filter.clone())).collect();
        query.extend(["active", "silenced", "inhibited"].map(|what| (what, "true".to_owned())));
        let payload: Value = self.remote.get("/api/v2/alerts", &query).await.map_err(explained)?;
        let Some(alerts) = payload.as_array() else {
            let message = "expected a list of alerts (API v2): is this an Alertmanager of 0.16 or later?";
            return Err(SourceError::new(FailureKind::SourceError, message));
        };
        let quiet: BTreeMap<String, Quiet> = alerts.iter().filter_map(quiet).collect();
        let mut notes: Vec<String> = self.remote.clock_note().into_iter().collect();
        let silences = match quiet.values().any(|quiet| !quiet.silenced_by.is_empty()) {
            true => self.silences().await.unwrap_or_else(|error| {
                notes.push(format!("silences cannot be read: {error}"));
                BTreeMap::new()
            }),
            false => BTreeMap::new(),
        };
        Ok(Fired { payload, quiet, silences, notes })
    }

    async fn silences(&self) -> Result<BTreeMap<String, Silence>, SourceError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            id: String,
            #[serde(default)]
            comment: String,
            #[serde(default)]
            created_by: String,
            ends_at: Option<Timestamp>,
        }
        let all: Vec<Raw> = self.remote.get("/api/v2/silences", &[]).await.map_err(explained)?;
        let silence = |raw: Raw| {
            let (comment, by) = (clean_line(&raw.comment, MAX_TEXT_CHARS), clean_line(&raw.created_by, 100));
            (raw.id.clone(), Silence { id: raw.id, comment, by, until: raw.ends_at })
        };
        Ok(all.into_iter().map(silence).collect())
    }

    /// The version, and how many peers the cluster has.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn state(&self) -> Result<(String, usize), SourceError> {
        let status: Value = self.remote.get("/api/v2/status", &[]).await.map_err(explained)?;
        let version = clean_line(status["versionInfo"]["version"].as_str().unwrap_or_default(), 60);
        Ok((version, status["cluster"]["peers"].as_array().map_or(0, Vec::len)))
    }

    /// What is to be said of the server's clock.
    pub fn clock_note(&self) -> Option<String> {
        self.remote.clock_note()
    }
}

fn quiet(alert: &Value) -> Option<(String, Quiet)> {
    let texts = |key: &str| -> Vec<String> {
        let values = alert["status"][key].as_array().into_iter().flatten();
        values.filter_map(Value::as_str).map(|text| clean_line(text, 100)).collect()
    };
    let quiet = Quiet { silenced_by: texts("silencedBy"), inhibited_by: texts("inhibitedBy") };
    (quiet != Quiet::default()).then_some((alert["fingerprint"].as_str()?.to_owned(), quiet))
}

/// The server says what is wrong with a filter as a JSON text.
fn explained(error: RestError) -> SourceError {
    match (error.status(), error.body()) {
        (Some(400), Some(body)) => {
            let said = clean_line(body.trim_matches('"'), MAX_TEXT_CHARS);
            SourceError::new(FailureKind::BadArguments, said)
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn what_keeps_an_alert_quiet_is_kept_by_its_fingerprint() {
        let alert =
            json!({"fingerprint": "f1", "status": {"silencedBy": ["s1"], "inhibitedBy": [], "state": "suppressed"}});
        let (fingerprint, quiet) = super::quiet(&alert).unwrap();
        assert_eq!((fingerprint.as_str(), quiet.silenced_by.as_slice()), ("f1", &["s1".to_owned()][..]));
        assert!(super::quiet(&json!({"fingerprint": "f2", "status": {"silencedBy": []}})).is_none());
    }
}
