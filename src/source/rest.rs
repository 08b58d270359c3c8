//! A server's HTTP API as sources ask it: JSON in, JSON out, and only requests that read.
//!
//! In: a path and what is asked. Out: the answer, or an error that says whose fault it is. An answer is bounded in size,
//! and a server whose clock differs from this machine's is told of.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use reqwest::header::DATE;
use reqwest::{Client, RequestBuilder, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::SourceError;
use crate::domain::FailureKind;
use crate::domain::text::clean_line;
use crate::http::{self, HttpError, RemoteSettings, Retries, transport_error};

/// An answer over this size is not read to its end.
const MAX_ANSWER_BYTES: usize = 32 << 20;
/// Clocks that differ by less are not worth a word: the header has whole seconds, and answers take some.
const WORTH_TELLING: SignedDuration = SignedDuration::from_secs(60);
/// Who asks waits; the caller of the tool tries again as well.
const RETRIES: Retries =
    Retries { attempts: 2, first_pause: Duration::from_millis(200), longest_pause: Duration::from_secs(2) };

/// Why there is no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RestError {
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error("{url} answered over {} MiB: ask for a shorter time or fewer series", MAX_ANSWER_BYTES >> 20)]
    TooLarge { url: String },
    #[error("the answer of {url} broke off: {reason}")]
    CutOff { url: String, reason: String },
    #[error("{url} answered no JSON{what}: is this the address of the API?")]
    NotJson { url: String, what: String },
}

impl RestError {
    /// The status of the answer, where there was one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Http(HttpError::Status { status, .. }) => Some(*status),
            _ => None,
        }
    }

    /// The text of the answer, where it was an error.
    pub fn body(&self) -> Option<&str> {
        match self {
            Self::Http(HttpError::Status { body, .. }) => Some(body),
            _ => None,
        }
    }
}

impl From<RestError> for SourceError {
    fn from(error: RestError) -> Self {
        let kind = match &error {
            RestError::Http(HttpError::Settings(text)) if text.starts_with("the variable") => FailureKind::Unauthorized,
            RestError::Http(HttpError::Timeout { .. }) => FailureKind::Timeout,
            RestError::Http(HttpError::Unreachable { .. }) | RestError::CutOff { .. } => FailureKind::Unavailable,
            RestError::Http(HttpError::Status { status, .. }) => kind_of_status(*status),
            _ => FailureKind::SourceError,
        };
        let remedy = match kind {
            FailureKind::Unauthorized if !matches!(error, RestError::Http(HttpError::Settings(_))) => {
                ": check `auth` of this source and the rights of its user"
            }
            _ => "",
        };
        Self::new(kind, format!("{error}{remedy}"))
    }
}

/// Whose fault an answer is that is an error.
pub fn kind_of_status(status: u16) -> FailureKind {
    match status {
        401 | 403 | 407 => FailureKind::Unauthorized,
        408 | 429 | 502..=504 => FailureKind::Unavailable,
        _ => FailureKind::SourceError,
    }
}

/// A server behind a URL.
pub struct Remote {
    client: Client,
    settings: RemoteSettings,
    /// How far the server's clock is ahead, by its last answer.
    ahead: Mutex<Option<SignedDuration>>,
}

impl Remote {
    /// # Errors
    /// Settings that cannot be used: a file that cannot be read, a header that is none.
    pub fn new(settings: RemoteSettings) -> Result<Self, HttpError> {
        Ok(Self { client: http::client(&settings.url, &settings.http)?, settings, ahead: Mutex::default() })
    }

    pub fn url(&self) -> &str {
        &self.settings.url
    }

    /// `GET path?query`.
    pub async fn get<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, RestError> {
        self.json(|| self.client.get(self.address(path, query))).await
    }

    /// `GET path?query`, whose answer is text.
    pub async fn get_text(&self, path: &str, query: &[(&str, String)]) -> Result<String, RestError> {
        let (url, bytes) = self.bytes(|| self.client.get(self.address(path, query))).await?;
        match String::from_utf8_lossy(&bytes).into_owned() {
            page if is_page(&page) => Err(RestError::NotJson { url, what: " but a page of HTML".to_owned() }),
            text => Ok(text),
        }
    }

    /// `POST path` with the query as a form, for questions that are too long for an address.
    pub async fn post_form<T: DeserializeOwned>(&self, path: &str, query: &[(&str, String)]) -> Result<T, RestError> {
        // The question part of a URL and a form are written alike.
        let url = self.address("", query);
        let form = url.split_once('?').map(|(_, form)| form.to_owned()).unwrap_or_default();
        self.json(|| {
            let request = self.client.post(self.address(path, &[]));
            request.header("content-type", "application/x-www-form-urlencoded").body(form.clone())
        })
        .await
    }

    /// `POST path?query` with a body that describes a search.
    pub async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
        body: &Value,
    ) -> Result<T, RestError> {
        self.json(|| self.client.post(self.address(path, query)).json(body)).await
    }

    /// `DELETE path`, for what a search left at the server (a point in time), never for data.
    pub async fn release(&self, path: &str, body: &Value) -> Result<Value, RestError> {
        self.json(|| self.client.delete(self.address(path, &[])).json(body)).await
    }

    /// What is to be said of the server's clock, where it differs from this machine's.
    pub fn clock_note(&self) -> Option<String> {
        let ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner).filter(|by| by.abs() >= WORTH_TELLING)?;
        let by = format!("{:#}", SignedDuration::from_secs(ahead.abs().as_secs()));
        let direction = if ahead.is_negative() { "behind" } else { "ahead of" };
        Some(format!("the clock of {} is {by} {direction} this machine's: its times may be off", self.settings.url))
    }

    fn address(&self, path: &str, query: &[(&str, String)]) -> String {
        let mut url = format!("{}{path}", self.settings.url);
        for (index, (name, value)) in query.iter().enumerate() {
            url.push(if index == 0 { '?' } else { '&' });
            url.push_str(name);
            url.push('=');
            url.push_str(&encoded(value));
        }
        url
    }

    async fn json<T: DeserializeOwned>(&self, make: impl Fn() -> RequestBuilder) -> Result<T, RestError> {
        let (url, bytes) = self.bytes(make).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            let text = String::from_utf8_lossy(&bytes);
            let what = match text.trim_start() {
                "" => " but nothing".to_owned(),
                page if is_page(page) => " but a page of HTML".to_owned(),
                _ => format!(" that is understood ({})", clean_line(&error.to_string(), 200)),
            };
            RestError::NotJson { url, what }
        })
    }

    /// The address asked and the whole answer.
    async fn bytes(&self, make: impl Fn() -> RequestBuilder) -> Result<(String, Vec<u8>), RestError> {
        // Credentials are read once a request: a file that is gone is told before anything is sent.
        let _unsent = self.settings.credentials.sign(make())?;
        let signed = || self.settings.credentials.sign(make()).unwrap_or_else(|_| make());
        let response = http::send(signed, RETRIES, |_, _| {}).await?;
        self.read_clock(&response);
        let url = http::shown(response.url());
        Ok((url.clone(), read_all(response, url).await?))
    }

    fn read_clock(&self, response: &Response) {
        let date = response.headers().get(DATE).and_then(|value| value.to_str().ok());
        let date = date.and_then(|text| jiff::fmt::rfc2822::parse(text).ok()).map(|date| date.timestamp());
        let ahead = date.map(|date| date.duration_since(Timestamp::now()));
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
    }
}

async fn read_all(mut response: Response, url: String) -> Result<Vec<u8>, RestError> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(part)) if bytes.len() + part.len() > MAX_ANSWER_BYTES => return Err(RestError::TooLarge { url }),
            Ok(Some(part)) => bytes.extend_from_slice(&part),
            Ok(None) => return Ok(bytes),
            Err(error) if error.is_timeout() => return Err(transport_error(&error).into()),
            Err(error) => return Err(RestError::CutOff { url, reason: http::with_causes(&error) }),
        }
    }
}

fn is_page(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

/// Percent encoding of everything but RFC 3986's unreserved characters.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Credentials, HttpSettings};

    fn remote() -> Remote {
        let settings = RemoteSettings {
            url: "http://127.0.0.1:1".into(),
            credentials: Credentials::None,
            http: HttpSettings::default(),
        };
        Remote::new(settings).unwrap()
    }

    #[test]
    fn addresses_are_encoded() {
        let address = remote().address("/q", &[("query", "a{b=\"c d\"}".into()), ("x", "é".into())]);
        assert_eq!(address, "http://127.0.0.1:1/q?query=a%7Bb%3D%22c%20d%22%7D&x=%C3%A9");
    }

    #[test]
    fn a_clock_that_is_off_is_told_with_its_direction() {
        let remote = remote();
        let note = |seconds: i64| {
            *remote.ahead.lock().unwrap() = Some(SignedDuration::from_secs(seconds));
            remote.clock_note()
        };
        assert_eq!(note(3), None);
        let told = "the clock of http://127.0.0.1:1 is 1h behind this machine's: its times may be off";
        assert_eq!(note(-3600).as_deref(), Some(told));
        assert!(note(3600).unwrap().contains("1h ahead of"));
    }

    #[test]
    fn an_error_is_of_its_kind() {
        let status = |status: u16| {
            let error = HttpError::Status { url: "u".into(), status, body: "b".into(), retry_after: None };
            SourceError::from(RestError::from(error))
        };
        assert_eq!(status(403).kind, FailureKind::Unauthorized);
        assert!(status(401).message.ends_with("check `auth` of this source and the rights of its user"));
        assert_eq!(status(429).kind, FailureKind::Unavailable);
        assert_eq!(status(500).kind, FailureKind::SourceError);
        let cut = RestError::CutOff { url: "u".into(), reason: "r".into() };
        assert_eq!(SourceError::from(cut).kind, FailureKind::Unavailable);
    }
}
