//! Servers that stand in for sources: one whose tools are those of oncall's own servers answers the rules, and the
//! built-in tools, as a Prometheus or a folder of logs does.
//!
//! In: a connected server, and what it is to provide. Out: sources, or what it lacks.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::client::Server;
use super::exchange::{
    self, LIST_METRICS, LogPage, QUERY_METRICS, RECENT_CHANGES, SEARCH_LOG, SEARCH_TOPIC, WORKLOAD_STATUS,
};
use super::result;
use crate::domain::{Change, FailureKind, Finding, MetricInfo, Series, Window};
use crate::source::{
    LogBatch, LogQuery, LogSource, MetricSource, QueryAnswer, QueryValue, SourceError, StatusAnswer, StatusQuery,
    StatusSource,
};
use crate::tool::builtin::Sources;

/// Events of one question.
const EVENTS_AT_ONCE: usize = 5000;
/// Parts of one answer: after these it is cut.
const MAX_PAGES: usize = 20;

/// What a server stands in for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Provides {
    Logs,
    Metrics,
    Status,
}

impl Provides {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Metrics => "metrics",
            Self::Status => "status",
        }
    }

    /// The tools that it takes, each with the arguments that they are called with.
    fn needs(self) -> &'static [(&'static str, &'static [&'static str])] {
        match self {
            Self::Logs => &[
                (SEARCH_LOG, &["service", "instance", "start", "end", "keywords", "limit", "offset"]),
                (SEARCH_TOPIC, &["service_name"]),
            ],
            Self::Metrics => &[
                (QUERY_METRICS, &["expr", "at", "start", "end", "step"]),
                (LIST_METRICS, &["matcher", "start", "end"]),
            ],
            Self::Status => &[(WORKLOAD_STATUS, &["service", "namespace", "start", "end"])],
        }
    }
}

/// Whether a tool is asked through a source, so that nobody needs it by itself.
pub fn is_asked_through_sources(tool: &str, provides: &[Provides]) -> bool {
    provides.iter().flat_map(|one| one.needs()).any(|(name, _)| *name == tool)
        || tool == RECENT_CHANGES && provides.contains(&Provides::Status)
}

/// Adds the server to the sources.
///
/// # Errors
/// What it lacks of the tools of oncall's own servers.
pub fn bind(server: &Arc<Server>, provides: Provides, sources: &mut Sources) -> Result<(), String> {
    for (tool, arguments) in provides.needs() {
        let own = match provides {
            Provides::Logs => "logs",
            Provides::Metrics | Provides::Status => "monitor",
        };
        let why = format!("expected the tools of `oncall mcp serve {own}`");
        let Some(offer) = server.offers().iter().find(|offer| offer.tool == *tool) else {
            return Err(format!("it cannot provide {}: it has no tool `{tool}`; {why}", provides.as_str()));
        };
        let known = &offer.spec.input_schema["properties"];
        if let Some(missing) = arguments.iter().find(|argument| known.get(**argument).is_none()) {
            let kind = provides.as_str();
            return Err(format!("it cannot provide {kind}: its tool `{tool}` takes no `{missing}`; {why}"));
        }
        if !offer.runs_unattended {
            return Err(format!(
                "it cannot provide {}: its tool `{tool}` does not say that it only reads, and allow does not name it",
                provides.as_str()
            ));
        }
    }
    let source = Arc::new(McpSource { server: Arc::clone(server), name: server.source() });
    match provides {
        Provides::Logs => sources.logs.push(source),
        Provides::Metrics => sources.metrics.push(source),
        Provides::Status => sources.status.push(source),
    }
    Ok(())
}

/// A server behind the traits of sources.
#[derive(Clone)]
struct McpSource {
    server: Arc<Server>,
    name: String,
}

impl McpSource {
    /// One call; nulls among the arguments are left out.
    async fn ask(&self, tool: &str, arguments: Value) -> Result<Value, SourceError> {
        let mut object: Map<String, Value> = match arguments {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        object.retain(|_, value| !value.is_null());
        // Whoever stops waiting drops the future, which tells the server.
        let never = CancellationToken::new();
        let answer = self.server.call(tool, object, &never).await;
        let answer = answer.map_err(|error| SourceError::new(error.kind(), error.to_string()))?;
        result::value(answer).map_err(|(kind, message)| SourceError::new(kind, message))
    }

    fn unreadable(tool: &str) -> SourceError {
        SourceError::new(
            FailureKind::SourceError,
            format!("its tool `{tool}` answered in another shape than oncall's own"),
        )
    }

    async fn query(&self, arguments: Value) -> Result<(QueryAnswer, bool), SourceError> {
        let answer = self.ask(QUERY_METRICS, arguments).await?;
        let value = exchange::from_json(&answer).ok_or_else(|| Self::unreadable(QUERY_METRICS))?;
        Ok((QueryAnswer { value, warnings: texts(&answer["warnings"]) }, answer["truncated"] == true))
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn read<T: DeserializeOwned>(value: Value, tool: &str) -> Result<T, SourceError> {
    serde_json::from_value(value).map_err(|_| McpSource::unreadable(tool))
}

#[async_trait]
impl MetricSource for McpSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn instant(&self, expr: &str, at: Timestamp) -> Result<QueryAnswer, SourceError> {
        Ok(self.query(json!({"expr": expr, "at": at.to_string()})).await?.0)
    }

    async fn range(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, SourceError> {
        let (start, end) = (window.start.to_string(), window.end.to_string());
        let step = step.as_secs_f64().to_string();
        Ok(self.query(json!({"expr": expr, "start": start, "end": end, "step": step})).await?.0)
    }

    async fn metrics(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        let (start, end) = (window.start.to_string(), window.end.to_string());
        let mut answer = self.ask(LIST_METRICS, json!({"matcher": matcher, "start": start, "end": end})).await?;
        read(answer["metrics"].take(), LIST_METRICS)
    }

    /// The samples of a range selector at the end of the window. It leaves its start out, so that it reaches a
    /// millisecond further back.
    async fn series(&self, matcher: &str, window: Window) -> Result<(Vec<Series>, bool), SourceError> {
        let milliseconds = window.duration().as_millis() + 1;
        let expr = format!("{matcher}[{milliseconds}ms]");
        let (answer, is_cut) = self.query(json!({"expr": expr, "at": window.end.to_string()})).await?;
        match answer.value {
            QueryValue::Matrix(mut series) => {
                series.sort_by(|a, b| a.labels.cmp(&b.labels));
                Ok((series, is_cut))
            }
            _ => Err(Self::unreadable(QUERY_METRICS)),
        }
    }
}

#[async_trait]
impl LogSource for McpSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let source = self.clone();
        let (start, end) = (query.window.start.to_string(), query.window.end.to_string());
        let arguments = json!({
            "service": query.service, "instance": query.instance, "start": start, "end": end,
            "keywords": query.keywords, "limit": EVENTS_AT_ONCE,
        });
        let parts = futures::stream::unfold(Some((0, 0)), move |next| {
            let (source, mut arguments) = (source.clone(), arguments.clone());
            async move {
                let (part, offset): (usize, usize) = next?;
                arguments["offset"] = json!(offset);
                let page = match source.ask(SEARCH_LOG, arguments).await {
                    Ok(page) => read::<LogPage>(page, SEARCH_LOG),
                    Err(error) => Err(error),
                };
                let page = match page {
                    Ok(page) => page,
                    Err(error) => return Some((Err(error), None)),
                };
                let is_cut = page.next_offset.is_some() && part + 1 >= MAX_PAGES;
                let next = page.next_offset.filter(|next| !is_cut && *next > offset).map(|next| (part + 1, next));
                let notes = if part == 0 { page.notes } else { Vec::new() };
                let batch = LogBatch { events: page.events, notes, truncated: page.truncated || is_cut };
                Some((Ok(batch), next))
            }
        });
        parts.boxed()
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        let answer = self.ask(SEARCH_TOPIC, json!({})).await?;
        let topics = answer["topics"].as_array().ok_or_else(|| Self::unreadable(SEARCH_TOPIC))?;
        let mut services: Vec<String> = topics.iter().flat_map(|topic| texts(&topic["services"])).collect();
        services.sort();
        services.dedup();
        Ok(services)
    }
}

#[async_trait]
impl StatusSource for McpSource {
    fn name(&self) -> &str {
        &self.name
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
        let (start, end) = (query.window.start.to_string(), query.window.end.to_string());
        let arguments = json!({"service": query.service, "namespace": query.namespace, "start": start, "end": end});
        read(self.ask(WORKLOAD_STATUS, arguments).await?, WORKLOAD_STATUS)
    }

    /// Of a server that knows none, none.
    async fn changes(&self, window: Window, service: Option<&str>) -> Result<Vec<Change>, SourceError> {
        if !self.server.has(RECENT_CHANGES) {
            return Ok(Vec::new());
        }
        let (start, end) = (window.start.to_string(), window.end.to_string());
        let mut answer = self.ask(RECENT_CHANGES, json!({"start": start, "end": end, "service": service})).await?;
        let findings: Vec<Finding> = read(answer["findings"].take(), RECENT_CHANGES)?;
        let mut changes: Vec<Change> = findings
            .into_iter()
            .filter_map(|finding| match finding {
                Finding::Change(change) => Some(change),
                _ => None,
            })
            .collect();
        changes.sort_by_key(|change| change.time);
        Ok(changes)
    }
}
