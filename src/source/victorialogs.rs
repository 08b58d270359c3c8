//! Logs in VictoriaLogs.
//!
//! In: a time, a service or instance, keywords. Out: events. The fields that name services are found from the server;
//! how much matches is counted first, and read by parts of the time where it is too much.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::rest::Remote;
use super::stored::{
    Batches, EventMaker, INSTANCE_FIELDS, Known, SERVICE_FIELDS, SLICES, StoreOptions, note, quoted, sampled_note,
    shares, streamed,
};
use super::{LogBatch, LogQuery, LogSource, SourceError};
use crate::domain::Window;
use crate::domain::text::clean_line;
use crate::http::{HttpError, RemoteSettings};

/// Events that go on at a time.
const BATCH: usize = 1000;
/// Fields whose values are listed as services.
const SERVICE_FIELDS_LISTED: usize = 3;
/// The time that services are listed of.
const LISTED: SignedDuration = SignedDuration::from_hours(24);
/// Fields that a store adds to every event, which say nothing more.
const OWN_FIELDS: [&str; 2] = ["_stream_id", "_stream"];

/// A server, or a tenant of one.
#[derive(Clone)]
pub struct VictoriaLogs {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    options: StoreOptions,
    remote: Remote,
}

#[derive(Deserialize)]
struct Values {
    values: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    value: String,
}

#[derive(Deserialize)]
struct Hits {
    hits: Vec<Course>,
}

#[derive(Deserialize)]
struct Course {
    timestamps: Vec<Timestamp>,
    values: Vec<u64>,
}

impl VictoriaLogs {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(name: &str, options: StoreOptions, settings: RemoteSettings) -> Result<Self, HttpError> {
        Ok(Self { inner: Arc::new(Inner { name: name.to_owned(), options, remote: Remote::new(settings)? }) })
    }

    /// The version and the time of the newest event of the last day.
    ///
    /// # Errors
    /// When a query is not answered.
    pub async fn state(&self) -> Result<(String, Option<Timestamp>), SourceError> {
        let remote = &self.inner.remote;
        let query = [("query", "_time:1d | fields _time | sort by (_time desc) | limit 1".to_owned())];
        let text = remote.get_text("/select/logsql/query", &query).await?;
        let newest = serde_json::from_str::<Value>(text.trim()).ok();
        let newest = newest.and_then(|event| event["_time"].as_str()?.parse().ok());
        let metrics = remote.get_text("/metrics", &[]).await.unwrap_or_default();
        let version = metrics.split("version=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        Ok((clean_line(version, 60), newest))
    }
}

impl Inner {
    async fn field_names(&self, window: Window) -> Result<BTreeSet<String>, SourceError> {
        let query = [("query", "*".to_owned()), ("start", window.start.to_string()), ("end", window.end.to_string())];
        let found: Values = self.remote.get("/select/logsql/field_names", &query).await?;
        Ok(found.values.into_iter().map(|one| one.value).collect())
    }

    /// The fields of the store among those that name a service or an instance, the most telling first.
    fn fields_of(names: &BTreeSet<String>, configured: &Option<String>, usual: &[&str]) -> Vec<String> {
        match configured {
            Some(field) => vec![field.clone()],
            None => usual.iter().filter(|name| names.contains(**name)).map(|name| (*name).to_owned()).collect(),
        }
    }

    /// The filters of a question, without its time; `None` when no field can hold what is asked.
    async fn filters(&self, query: &LogQuery) -> Result<Option<String>, SourceError> {
        let names = self.field_names(query.window).await?;
        let fields = &self.options.fields;
        let asked = [
            (&query.service, Self::fields_of(&names, &fields.service, SERVICE_FIELDS)),
            (&query.instance, Self::fields_of(&names, &fields.instance, INSTANCE_FIELDS)),
        ];
        let mut filters = Vec::new();
        for (value, fields) in asked {
            let Some(value) = value else { continue };
            if fields.is_empty() {
                return Ok(None);
            }
            let any: Vec<_> = fields.iter().map(|field| format!("{}:={}", quoted(field), quoted(value))).collect();
            filters.push(format!("({})", any.join(" or ")));
        }
        let message = fields.message.as_deref().unwrap_or("_msg");
        for word in &query.keywords {
            let pattern = format!("(?i){}", regex::escape(word));
            filters.push(format!("{}:~{}", quoted(message), quoted(&pattern)));
        }
        Ok(Some(if filters.is_empty() { "*".to_owned() } else { filters.join(" ") }))
    }

    async fn read(&self, query: &LogQuery, batches: &Batches) -> Result<(), SourceError> {
        let Some(filters) = self.filters(query).await? else { return Ok(()) };
        let limit = self.options.limit;
        let parts = self.counts(&filters, query.window).await?;
        let (all, shares) = shares(parts, query.window, limit);
        let mut read = 0;
        for (window, quota) in shares {
            read += self.part(&filters, query, window, quota, batches).await?;
            if batches.is_closed() {
                return Ok(());
            }
        }
        if all > limit as u64 {
            let _ = batches.send(Ok(LogBatch { truncated: true, ..note(sampled_note(&self.name, read, all)) })).await;
        }
        Ok(())
    }

    /// Parts of the time with the number of events in each. The server aligns them to the step.
    async fn counts(&self, filters: &str, window: Window) -> Result<Vec<(Window, u64)>, SourceError> {
        let step = SignedDuration::from_secs((window.duration().as_secs() / SLICES as i64).max(1));
        let query = [
            ("query", filters.to_owned()),
            ("start", window.start.to_string()),
            ("end", window.end.to_string()),
            ("step", format!("{}s", step.as_secs())),
        ];
        let found: Hits = self.remote.get("/select/logsql/hits", &query).await?;
        let mut parts: BTreeMap<Timestamp, u64> = BTreeMap::new();
        for course in found.hits {
            for (at, count) in course.timestamps.into_iter().zip(course.values) {
                *parts.entry(at).or_default() += count;
            }
        }
        let part = |(at, count): (Timestamp, u64)| {
            let before_next = step - SignedDuration::from_nanos(1);
            let end = at.checked_add(before_next).unwrap_or(window.end);
            (Window::new(at.max(window.start).min(window.end), end.min(window.end)), count)
        };
        Ok(parts.into_iter().map(part).collect())
    }

    async fn part(
        &self,
        filters: &str,
        query: &LogQuery,
        window: Window,
        quota: usize,
        batches: &Batches,
    ) -> Result<usize, SourceError> {
        let text = format!("_time:[{}, {}] {filters}", window.start, window.end);
        let asked = [("query", text), ("limit", quota.to_string())];
        let text = self.remote.get_text("/select/logsql/query", &asked).await?;
        let maker = EventMaker::new(query);
        let (mut events, mut read) = (Vec::new(), 0);
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            read += 1;
            events.extend(self.event(&maker, line));
            if events.len() >= BATCH {
                let batch = LogBatch { events: std::mem::take(&mut events), ..LogBatch::default() };
                if batches.send(Ok(batch)).await.is_err() {
                    return Ok(read);
                }
            }
        }
        let _ = batches.send(Ok(LogBatch { events, ..LogBatch::default() })).await;
        Ok(read)
    }

    fn event(&self, maker: &EventMaker, line: &str) -> Option<crate::domain::LogEvent> {
        let Ok(Value::Object(mut record)) = serde_json::from_str(line) else { return None };
        OWN_FIELDS.iter().for_each(|name| drop(record.shift_remove(*name)));
        let at = record.shift_remove("_time").and_then(|time| time.as_str()?.parse().ok());
        // Without a message the record itself is told.
        let message = record.shift_remove("_msg");
        let fields = &self.options.fields;
        let text = |name: &Option<String>| name.as_ref().and_then(|name| record.get(name)).and_then(Value::as_str);
        let known = Known {
            at,
            level: text(&fields.level),
            service: text(&fields.service),
            instance: text(&fields.instance),
            message: text(&fields.message),
        };
        let mut told = record.clone();
        if let Some(message) = message {
            told.insert("message".to_owned(), message);
        }
        maker.event(&Value::Object(told).to_string(), known)
    }
}

#[async_trait]
impl LogSource for VictoriaLogs {
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
        let window = Window::ending_at(Timestamp::now(), LISTED);
        let names = inner.field_names(window).await?;
        let mut services = BTreeSet::new();
        for field in
            Inner::fields_of(&names, &inner.options.fields.service, SERVICE_FIELDS).iter().take(SERVICE_FIELDS_LISTED)
        {
            let query = [
                ("query", "*".to_owned()),
                ("field", field.clone()),
                ("limit", "200".to_owned()),
                ("start", window.start.to_string()),
                ("end", window.end.to_string()),
            ];
            let found: Values = inner.remote.get("/select/logsql/field_values", &query).await?;
            services.extend(found.values.into_iter().map(|one| one.value));
        }
        Ok(services.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{Credentials, HttpSettings};

    fn inner() -> Inner {
        let settings = RemoteSettings {
            url: "http://127.0.0.1:1".into(),
            credentials: Credentials::None,
            http: HttpSettings::default(),
        };
        let options = StoreOptions { fields: Default::default(), limit: 10 };
        Inner { name: "v".into(), options, remote: Remote::new(settings).unwrap() }
    }

    #[test]
    fn an_event_is_read_as_the_store_gives_it() {
        // A line as a real VictoriaLogs 1.112 answered it.
        let line = r#"{"_time":"2026-11-30T06:42:51.6Z","_stream_id":"0000000000000000031c68c6d0b1bdf42be23e5f0ff106a7","_stream":"{level=\"ERROR\",pod=\"order-service-7c9d-b\"}","_msg":"HikariPool-1 - Connection is not available","level":"ERROR","namespace":"shop","pod":"order-service-7c9d-b","service":"order-service"}"#;
        let query = LogQuery {
            window: Window::new("2026-11-30T06:00:00Z".parse().unwrap(), "2026-11-30T07:00:00Z".parse().unwrap()),
            service: Some("order-service".into()),
            instance: None,
            keywords: vec!["hikaripool".into()],
        };
        let event = inner().event(&EventMaker::new(&query), line).unwrap();
        assert_eq!(event.at, Some("2026-11-30T06:42:51.6Z".parse().unwrap()));
        assert_eq!(event.message, "HikariPool-1 - Connection is not available");
        assert_eq!(
            (event.level, event.instance.as_deref()),
            (Some(crate::domain::Level::Error), Some("order-service-7c9d-b"))
        );
    }
}
