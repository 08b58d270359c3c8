//! Where evidence lives: metrics, logs and workload status, in files or behind an API.
//!
//! Each kind of evidence has one trait here; what comes out are plain domain types in UTC.

pub mod alertmanager;
mod bounded;
pub mod elasticsearch;
pub mod incident;
pub mod kubernetes;
pub mod loki;
pub mod openmetrics;
pub mod prometheus;
pub mod promql;
mod rest;
pub mod stored;
pub mod logfile;
pub mod unpack;
pub mod victorialogs;

pub use bounded::Bounded;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::domain::{
    Change, FailureKind, KubeEvent, LogEvent, MetricInfo, NodeStatus, PodStatus, Rollout, Sample, Series, Window,
    Workload,
};

/// A source that did not answer as it should.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct SourceError {
    pub kind: FailureKind,
    /// What went wrong, where, and what could be done.
    pub message: String,
}

impl SourceError {
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

/// The value of an expression.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryValue {
    Scalar(Sample),
    /// One sample per series.
    Vector(Vec<Series>),
    Matrix(Vec<Series>),
    String(Timestamp, String),
}

/// A value with what the server said beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryAnswer {
    pub value: QueryValue,
    pub warnings: Vec<String>,
}

/// Something that answers PromQL.
#[async_trait]
pub trait MetricSource: Send + Sync {
    /// The configured name.
    fn name(&self) -> &str;

    /// What is to be said of the source itself, beside its answers: a clock that is off.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// The value of `expr` at one instant.
    async fn instant(&self, expr: &str, at: Timestamp) -> Result<QueryAnswer, SourceError>;

    /// The values of `expr` from `window.start` to `window.end` at every `step`.
    async fn range(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, SourceError>;

    /// The metrics that have samples in the window, sorted by name; `matcher` is a series selector such as
    /// `{service="order-service"}`, or `None` for all.
    async fn metrics(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError>;

    /// The raw series in the window that match a selector, sorted by labels, and whether a limit cut them.
    async fn series(&self, matcher: &str, window: Window) -> Result<(Vec<Series>, bool), SourceError>;
}

/// What to look for in logs.
#[derive(Debug, Clone, PartialEq)]
pub struct LogQuery {
    pub window: Window,
    /// Exact name of the service, where one is asked for.
    pub service: Option<String>,
    pub instance: Option<String>,
    /// Every one must occur in the message, ignoring case.
    pub keywords: Vec<String>,
}

/// Something that has logs.
#[async_trait]
pub trait LogSource: Send + Sync {
    /// The configured name.
    fn name(&self) -> &str;

    /// What is to be said of the source itself, beside its answers: a clock that is off.
    fn caveat(&self) -> Option<String> {
        None
    }

    /// The events that match, in batches, in no order that callers may rely on. The stream ends with an error
    /// when the source fails midway; what came before it stands.
    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>>;

    /// The services that have logs, sorted.
    async fn services(&self) -> Result<Vec<String>, SourceError>;
}

/// A part of a log answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LogBatch {
    pub events: Vec<LogEvent>,
    /// What the reader should know: a file skipped, a zone assumed, a cap reached.
    pub notes: Vec<String>,
    /// Whether a cap left events out.
    pub truncated: bool,
}

/// Which workloads to look at.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusQuery {
    /// `None`: everything that is not as it should be.
    pub service: Option<String>,
    pub namespace: Option<String>,
    /// Events and rollouts of this time; the state itself is the present one.
    pub window: Window,
}

/// What a status source knows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusAnswer {
    pub workloads: Vec<Workload>,
    pub pods: Vec<PodStatus>,
    pub events: Vec<KubeEvent>,
    pub nodes: Vec<NodeStatus>,
    pub rollouts: Vec<Rollout>,
    /// Resources that could not be read, with the reason.
    pub notes: Vec<String>,
}

impl StatusAnswer {
    /// Whether nothing is in it but notes.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty()
            && self.pods.is_empty()
            && self.events.is_empty()
            && self.nodes.is_empty()
            && self.rollouts.is_empty()
    }
}

/// Something that knows the state of workloads and what was changed.
#[async_trait]
pub trait StatusSource: Send + Sync {
    /// The configured name.
    fn name(&self) -> &str;

    /// What is to be said of the source itself, beside its answers: a clock that is off.
    fn caveat(&self) -> Option<String> {
        None
    }

    async fn status(&self, query: &StatusQuery) -> Result<StatusAnswer, SourceError>;

    /// Changes in the window, oldest first.
    async fn changes(&self, window: Window, service: Option<&str>) -> Result<Vec<Change>, SourceError>;
}
