//! Logs in Grafana Loki.
//!
//! In: a time, a service or instance, keywords. Out: events. The labels that name services are found from the server;
//! pages are read forwards by time, past the server's limit of one answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::rest::{Remote, RestError, encoded};
use super::stored::{
    Batches, EventMaker, INSTANCE_FIELDS, Known, SERVICE_FIELDS, SLICES, StoreOptions, note, quoted, sampled_note,
    shares, slices, streamed,
};
use super::{LogBatch, LogQuery, LogSource, SourceError};
use crate::domain::text::clean_line;
use crate::domain::{FailureKind, Window};
use crate::http::{HttpError, RemoteSettings};

/// Entries of one page: the most that servers give by default is five times as many.
const PAGE: usize = 1000;
/// Labels and metadata that name the level of an entry.
const LEVEL_LABELS: [&str; 5] = ["level", "severity", "severity_text", "loglevel", "detected_level"];
const MAX_REASON_CHARS: usize = 300;

type Labels = BTreeMap<String, String>;

/// A server, or a tenant of one.
#[derive(Clone)]
pub struct Loki {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    options: StoreOptions,
    remote: Remote,
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct Streams {
    result: Vec<Stream>,
}

#[derive(Deserialize)]
struct Stream {
    stream: Labels,
    values: Vec<Entry>,
}

/// Nanoseconds since 1970, the line, and structured metadata (Loki 3).
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Plain(String, String),
    WithMetadata(String, String, Value),
}

#[derive(Deserialize)]
struct Matrix {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    #[serde(default)]
    values: Vec<(f64, String)>,
}

impl Loki {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(name: &str, options: StoreOptions, settings: RemoteSettings) -> Result<Self, HttpError> {
        Ok(Self { inner: Arc::new(Inner { name: name.to_owned(), options, remote: Remote::new(settings)? }) })
    }

    /// The version, where it is told, and the labels by which services are named.
    ///
    /// # Errors
    /// When the labels cannot be asked.
    pub async fn state(&self) -> Result<(String, Vec<String>), SourceError> {
        let labels = self.inner.labels_of(None, &self.inner.options.fields.service, SERVICE_FIELDS).await?;
        let build: Value = self.inner.remote.get("/loki/api/v1/status/buildinfo", &[]).await.unwrap_or_default();
        Ok((clean_line(build["version"].as_str().unwrap_or_default(), 60), labels))
    }
}

impl Inner {
    async fn list(&self, path: &str, window: Option<Window>) -> Result<Vec<String>, SourceError> {
        let query = window.map(|window| vec![("start", nanos(window.start)), ("end", nanos(window.end))]);
        let found: Envelope<Option<Vec<String>>> =
            self.remote.get(&format!("/loki/api/v1/{path}"), &query.unwrap_or_default()).await.map_err(explained)?;
        Ok(found.data.unwrap_or_default())
    }

    /// The labels of the server among those that name a service or an instance, the most telling first.
    async fn labels_of(
        &self,
        window: Option<Window>,
        configured: &Option<String>,
        usual: &[&str],
    ) -> Result<Vec<String>, SourceError> {
        if let Some(label) = configured {
            return Ok(vec![label.clone()]);
        }
        let known = self.list("labels", window).await?;
        let mut found: Vec<String> = Vec::new();
        for label in usual.iter().map(|label| label.replace(['.', '/', '-'], "_")) {
            if known.contains(&label) && !found.contains(&label) {
                found.push(label);
            }
        }
        Ok(found)
    }

    /// The selector of streams and the filters behind it; `None` when no stream can be of what is asked.
    async fn expression(&self, query: &LogQuery) -> Result<Option<String>, SourceError> {
        let fields = &self.options.fields;
        let services = self.labels_of(Some(query.window), &fields.service, SERVICE_FIELDS).await?;
        let mut matchers = Vec::new();
        let mut filters = String::new();
        if let Some(service) = &query.service {
            match self.label_with(&services, service, query.window).await? {
                Some(label) => matchers.push(format!("{label}={}", quoted(service))),
                None => return Ok(None),
            }
        }
        if let Some(instance) = &query.instance {
            let instances = self.labels_of(Some(query.window), &fields.instance, INSTANCE_FIELDS).await?;
            match self.label_with(&instances, instance, query.window).await? {
                Some(label) => matchers.push(format!("{label}={}", quoted(instance))),
                // It may stand in the structured metadata.
                None => {
                    let alternatives = ["pod", "k8s_pod_name", "instance", "host", "host_name"];
                    let any = alternatives.map(|name| format!("{name}={}", quoted(instance))).join(" or ");
                    filters.push_str(&format!(" | {any}"));
                }
            }
        }
        if matchers.is_empty() {
            match services.first() {
                Some(label) => matchers.push(format!("{label}=~\".+\"")),
                None => return Ok(None),
            }
        }
        let words =
            query.keywords.iter().map(|word| format!(" |~ {}", quoted(&format!("(?i){}", regex::escape(word)))));
        Ok(Some(format!("{{{}}}{}{filters}", matchers.join(","), words.collect::<String>())))
    }

    /// The first of the labels that has this value.
    async fn label_with(&self, labels: &[String], value: &str, window: Window) -> Result<Option<String>, SourceError> {
        for label in labels {
            let values = self.list(&format!("label/{}/values", encoded(label)), Some(window)).await?;
            if values.iter().any(|known| known == value) {
                return Ok(Some(label.clone()));
            }
        }
        Ok(None)
    }

    async fn read(&self, query: &LogQuery, batches: &Batches) -> Result<(), SourceError> {
        let Some(expression) = self.expression(query).await? else { return Ok(()) };
        let limit = self.options.limit;
        let parts = slices(query.window, SLICES);
        let counts = self.counts(&expression, query.window, &parts).await?;
        let (all, shares) = shares(parts.into_iter().zip(counts), query.window, limit);
        let mut read = 0;
        for (window, quota) in shares {
            read += self.part(&expression, query, window, quota, batches).await?;
            if batches.is_closed() {
                return Ok(());
            }
        }
        if all > limit as u64 {
            let _ = batches.send(Ok(LogBatch { truncated: true, ..note(sampled_note(&self.name, read, all)) })).await;
        }
        Ok(())
    }

    /// How many entries each part of the time has, by one query whose steps are the parts.
    async fn counts(&self, expression: &str, window: Window, parts: &[Window]) -> Result<Vec<u64>, SourceError> {
        let step = (window.duration().as_secs() / parts.len() as i64).max(1);
        let query = [
            ("query", format!("sum(count_over_time({expression}[{step}s]))")),
            ("start", nanos(window.start.checked_add(SignedDuration::from_secs(step)).unwrap_or(window.end))),
            ("end", nanos(window.end)),
            ("step", format!("{step}s")),
        ];
        let found: Envelope<Matrix> = self.remote.get("/loki/api/v1/query_range", &query).await.map_err(explained)?;
        let mut counts = vec![0; parts.len()];
        for (at, value) in found.data.result.iter().flat_map(|series| &series.values) {
            // A value stands at the end of its part.
            let index = ((at - window.start.as_millisecond() as f64 / 1000.0) / step as f64).round() as usize;
            let index = index.saturating_sub(1).min(parts.len() - 1);
            counts[index] += value.parse::<f64>().unwrap_or(0.0) as u64;
        }
        Ok(counts)
    }

    /// Reads up to `quota` entries of a part of the time, oldest first; says how many came.
    async fn part(
        &self,
        expression: &str,
        query: &LogQuery,
        window: Window,
        quota: usize,
        batches: &Batches,
    ) -> Result<usize, SourceError> {
        let (mut start, end) = (window.start.as_nanosecond(), window.end.as_nanosecond() + 1);
        let mut read = 0;
        // Entries of the last instant, which the next page begins with again.
        let mut seen: BTreeSet<(Labels, String)> = BTreeSet::new();
        while read < quota && start < end {
            let size = (quota - read).min(PAGE) + seen.len();
            let entries = self.page(expression, start, end, size).await?;
            let is_last = entries.len() < size;
            let newest = entries.iter().map(|entry| entry.at).max();
            let fresh: Vec<Found> =
                entries.into_iter().filter(|entry| entry.at > start || !seen.contains(&entry.key())).collect();
            read += fresh.len();
            let (Some(newest), false) = (newest, fresh.is_empty()) else { break };
            if newest > start {
                seen.clear();
                start = newest;
            }
            seen.extend(fresh.iter().filter(|entry| entry.at == newest).map(Found::key));
            let maker = EventMaker::new(query);
            let events = fresh.iter().filter_map(|entry| self.event(&maker, entry)).collect();
            if batches.send(Ok(LogBatch { events, ..LogBatch::default() })).await.is_err() || is_last {
                break;
            }
        }
        Ok(read)
    }

    async fn page(&self, expression: &str, start: i128, end: i128, size: usize) -> Result<Vec<Found>, SourceError> {
        let query = [
            ("query", expression.to_owned()),
            ("start", start.to_string()),
            ("end", end.to_string()),
            ("limit", size.to_string()),
            ("direction", "forward".to_owned()),
        ];
        let found: Envelope<Streams> = self.remote.get("/loki/api/v1/query_range", &query).await.map_err(explained)?;
        let mut entries: Vec<Found> = Vec::new();
        for Stream { stream, values } in found.data.result {
            for entry in values {
                let (at, line, metadata) = match entry {
                    Entry::Plain(at, line) => (at, line, Value::Null),
                    Entry::WithMetadata(at, line, metadata) => (at, line, metadata),
                };
                let Ok(at) = at.parse() else { continue };
                let mut labels = stream.clone();
                // Flat, or sorted by where it comes from when the server was asked for that.
                let inner = metadata.get("structuredMetadata").unwrap_or(&metadata);
                for (name, value) in inner.as_object().into_iter().flatten() {
                    if let Some(value) = value.as_str() {
                        labels.insert(name.clone(), value.to_owned());
                    }
                }
                entries.push(Found { at, line, labels });
            }
        }
        entries.sort_by_key(|entry| entry.at);
        Ok(entries)
    }

    fn event(&self, maker: &EventMaker, entry: &Found) -> Option<crate::domain::LogEvent> {
        let fields = &self.options.fields;
        let value = |configured: &Option<String>, usual: &[&str]| -> Option<&str> {
            let label = |name: &str| entry.labels.get(&name.replace(['.', '/', '-'], "_")).map(String::as_str);
            match configured {
                Some(name) => label(name),
                None => usual.iter().find_map(|name| label(name)),
            }
        };
        let at = Timestamp::from_nanosecond(entry.at).ok();
        let known = Known {
            at,
            level: value(&fields.level, &LEVEL_LABELS).filter(|level| *level != "unknown"),
            service: value(&fields.service, SERVICE_FIELDS),
            instance: value(&fields.instance, INSTANCE_FIELDS),
            message: None,
        };
        maker.event(&entry.line, known)
    }
}

/// An entry with all that is known of it.
struct Found {
    at: i128,
    line: String,
    labels: Labels,
}

impl Found {
    fn key(&self) -> (Labels, String) {
        (self.labels.clone(), self.line.clone())
    }
}

#[async_trait]
impl LogSource for Loki {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn caveat(&self) -> Option<String> {
        self.inner.remote.clock_note()
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let (inner, query) = (Arc::clone(&self.inner), query.clone());
        streamed(move |batches| async move { inner.read(&query, &batches).await })
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        let inner = &self.inner;
        let mut names = BTreeSet::new();
        for label in inner.labels_of(None, &inner.options.fields.service, SERVICE_FIELDS).await?.iter().take(3) {
            names.extend(inner.list(&format!("label/{}/values", encoded(label)), None).await?);
        }
        Ok(names.into_iter().collect())
    }
}

fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

/// Loki says what was wrong with a query as plain text.
fn explained(error: RestError) -> SourceError {
    match (error.status(), error.body()) {
        (Some(status @ (400 | 422)), Some(body)) => {
            let body = clean_line(body, MAX_REASON_CHARS);
            SourceError::new(FailureKind::SourceError, format!("the server answered {status}: {body}"))
        }
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_as_logql_wants_them() {
        assert_eq!(quoted("a\"b\\c\n"), "\"a\\\"b\\\\c\\n\"");
    }

    #[test]
    fn entries_are_read_with_and_without_metadata() {
        let json = r#"{"data":{"result":[{"stream":{"app":"cart"},"values":[
            ["1","a"],["2","b",{"pod":"x"}],["3","c",{"structuredMetadata":{"pod":"y"},"parsed":{}}]]}]}}"#;
        let found: Envelope<Streams> = serde_json::from_str(json).unwrap();
        let values = &found.data.result[0].values;
        assert!(matches!(&values[0], Entry::Plain(at, line) if at == "1" && line == "a"));
        assert!(
            matches!(&values[2], Entry::WithMetadata(_, _, metadata) if metadata["structuredMetadata"]["pod"] == "y")
        );
    }
}
