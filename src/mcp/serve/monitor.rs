//! The tools of the `monitor` server: PromQL and its metrics, processor and memory of a service, the state of workloads.

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::usage::{self, Resource};
use super::{answered, spec};
use crate::domain::text::clean_line;
use crate::domain::{Failure, FailureKind, MetricInfo, Outcome, Output, Series, ToolSpec};
use crate::mcp::exchange::{self, LIST_METRICS, QUERY_METRICS, WORKLOAD_STATUS};
use crate::source::{MetricSource, QueryValue, StatusQuery};
use crate::tool::Tool;
use crate::tool::arguments::{TimeArgument, ToolClock, bad_arguments, outcome, parse_arguments, parse_time};
use crate::tool::builtin::Sources;
use crate::tool::metrics::{checked_step, default_step};
use crate::tool::sources::Roll;
use crate::tool::status;

/// Samples of one answer.
const MAX_SAMPLES: usize = 200_000;
/// Metrics of one answer.
const MAX_METRICS: usize = 2000;

/// All tools.
pub fn tools(sources: &Sources, clock: &ToolClock) -> Vec<Arc<dyn Tool>> {
    let made = |question: Question| -> Arc<dyn Tool> {
        Arc::new(MonitorTool { spec: question.spec(), question, sources: sources.clone(), clock: clock.clone() })
    };
    [Question::Cpu, Question::Memory, Question::Query, Question::List, Question::Status].map(made).into()
}

/// What a tool answers.
#[derive(Debug, Clone, Copy)]
enum Question {
    Cpu,
    Memory,
    Query,
    List,
    Status,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UsageArguments {
    /// Name of the service, as its metrics have it.
    service_name: String,
    /// Start of the time to look at: RFC 3339, Unix seconds, or relative to now such as -15m. Default: an hour before
    /// the end.
    start: Option<TimeArgument>,
    /// End of that time, in the same forms. Default: now.
    end: Option<TimeArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct QueryArguments {
    /// A PromQL expression, such as `sum by (service) (rate(http_requests_total{code=~"5.."}[5m]))`.
    expr: String,
    /// For the value at one instant: RFC 3339, Unix seconds, or relative to now such as -15m. Without it a range is
    /// asked.
    at: Option<TimeArgument>,
    /// Start of the range, in the same forms. Default: an hour before the end.
    start: Option<TimeArgument>,
    /// End of the range. Default: now.
    end: Option<TimeArgument>,
    /// Distance of points, such as 30s. Default: 240 points.
    step: Option<TimeArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListArguments {
    /// Only metrics with series that this selector fits, such as `{service="order-service"}`.
    matcher: Option<String>,
    /// Start of the time in which they have samples. Default: an hour before the end.
    start: Option<TimeArgument>,
    /// End of that time. Default: now.
    end: Option<TimeArgument>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct StatusArguments {
    /// Name of the service or workload. Everything of it is told, healthy or not. Without it: what is not as it should
    /// be.
    service: Option<String>,
    /// Only this namespace.
    namespace: Option<String>,
    /// Start of the time of which events and rollouts are told. Default: 24 hours before the end.
    start: Option<TimeArgument>,
    /// End of that time. Default: now.
    end: Option<TimeArgument>,
}

impl Question {
    fn spec(self) -> ToolSpec {
        match self {
            Self::Cpu => spec::<UsageArguments>(
                "query_cpu_metrics",
                "Processor time and throttling of a service: every metric of it that tells of the processor, each \
                 series summarised (baseline, peak, value now, shape, onset).",
            ),
            Self::Memory => spec::<UsageArguments>(
                "query_memory_metrics",
                "Memory of a service, heap and limits included: every metric of it that tells of memory, each series \
                 summarised (baseline, peak, value now, shape, onset).",
            ),
            Self::Query => spec::<QueryArguments>(
                QUERY_METRICS,
                "Evaluates PromQL at an instant or over a range; the answer has the shape of the Prometheus HTTP API \
                 (resultType, result).",
            ),
            Self::List => spec::<ListArguments>(
                LIST_METRICS,
                "The metrics that have samples in a time, with type, help, number of series and labels.",
            ),
            Self::Status => spec::<StatusArguments>(
                WORKLOAD_STATUS,
                "State of workloads: ready and desired replicas, pods with restarts and the reason of their last \
                 termination, conditions, nodes in trouble, rollouts and events.",
            ),
        }
    }
}

struct MonitorTool {
    spec: ToolSpec,
    question: Question,
    sources: Sources,
    clock: ToolClock,
}

#[async_trait]
impl Tool for MonitorTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        let answer = async {
            match self.question {
                Question::Cpu => self.usage(Resource::Cpu, arguments, cancel).await,
                Question::Memory => self.usage(Resource::Memory, arguments, cancel).await,
                Question::Query => self.query(arguments).await,
                Question::List => self.list(arguments).await,
                Question::Status => self.status(arguments).await,
            }
        };
        tokio::select! {
            answer = answer => outcome(answer),
            () = cancel.cancelled() => {
                Outcome::Failure(Failure { kind: FailureKind::Cancelled, ..bad_arguments("cancelled") })
            }
        }
    }
}

impl MonitorTool {
    fn metrics(&self) -> Result<&[Arc<dyn MetricSource>], Failure> {
        if self.sources.metrics.is_empty() {
            return Err(absent("metrics"));
        }
        Ok(&self.sources.metrics)
    }

    async fn usage(&self, resource: Resource, arguments: Value, cancel: &CancellationToken) -> Result<Output, Failure> {
        let arguments: UsageArguments = parse_arguments(arguments)?;
        let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let service = arguments.service_name.trim();
        if service.is_empty() {
            return Err(bad_arguments("`service_name` is empty: expected the name of a service"));
        }
        usage::of(resource, service, self.metrics()?, window, &self.clock, cancel).await
    }

    async fn query(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: QueryArguments = parse_arguments(arguments)?;
        let expr = arguments.expr.trim();
        if expr.is_empty() {
            return Err(bad_arguments("`expr` is empty: expected a PromQL expression"));
        }
        let sources = self.metrics()?;
        let answers = match &arguments.at {
            Some(at) => {
                let at = parse_time(&at.0, &self.clock)?;
                futures::future::join_all(sources.iter().map(|source| source.instant(expr, at))).await
            }
            None => {
                let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
                let step = match &arguments.step {
                    Some(step) => checked_step(&step.0, window)?,
                    None => default_step(window),
                };
                futures::future::join_all(sources.iter().map(|source| source.range(expr, window, step))).await
            }
        };
        let mut roll = Roll::default();
        let mut value: Option<QueryValue> = None;
        for (source, answer) in sources.iter().zip(answers) {
            let Some(answer) = roll.take(source.name(), answer) else { continue };
            roll.notes.extend(answer.warnings.iter().map(|warning| clean_line(warning, 300)));
            value = Some(match value {
                None => answer.value,
                Some(known) => joined(known, answer.value),
            });
        }
        let mut roll = roll.checked()?;
        let mut value = value.unwrap_or(QueryValue::Matrix(Vec::new()));
        let truncated = cut(&mut value);
        if truncated {
            roll.notes.push(format!("cut: more than {MAX_SAMPLES} samples: aggregate, or ask for a shorter time"));
        }
        let (kind, result) = exchange::to_json(&value);
        let source = roll.names.join(", ");
        let answer = json!({
            "resultType": kind, "result": result, "warnings": roll.notes, "truncated": truncated, "source": source,
        });
        Ok(answered(source, answer))
    }

    async fn list(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: ListArguments = parse_arguments(arguments)?;
        let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let matcher = arguments.matcher.as_deref().map(str::trim).filter(|matcher| !matcher.is_empty());
        let sources = self.metrics()?;
        let answers = futures::future::join_all(sources.iter().map(|source| source.metrics(matcher, window))).await;
        let mut roll = Roll::default();
        let mut metrics: Vec<MetricInfo> = Vec::new();
        for (source, answer) in sources.iter().zip(answers) {
            metrics.extend(roll.take(source.name(), answer).unwrap_or_default());
        }
        let roll = roll.checked()?;
        metrics.sort_by(|a, b| a.name.cmp(&b.name));
        let total = metrics.len();
        metrics.truncate(MAX_METRICS);
        let source = roll.names.join(", ");
        let answer = json!({
            "total": total, "metrics": metrics, "notes": roll.notes, "truncated": total > MAX_METRICS, "source": source,
        });
        Ok(answered(source, answer))
    }

    async fn status(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: StatusArguments = parse_arguments(arguments)?;
        if self.sources.status.is_empty() {
            return Err(absent("status"));
        }
        let mut clock = self.clock.clone();
        clock.window = crate::domain::Window::ending_at(clock.now, jiff::SignedDuration::from_hours(24));
        let window = clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let filled = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
        let query = StatusQuery { service: filled(arguments.service), namespace: filled(arguments.namespace), window };
        let asked = status::ask(&self.sources.status, &query).await?;
        let source = asked.roll.names.join(", ");
        let mut value = serde_json::to_value(&asked.answer).unwrap_or_default();
        value["notes"] = json!(asked.roll.notes);
        value["source"] = json!(source);
        value["window"] = json!(window);
        Ok(answered(source, value))
    }
}

fn absent(kind: &str) -> Failure {
    Failure {
        kind: FailureKind::Unavailable,
        ..bad_arguments(format!("no source of {kind} is configured: add one to [sources] of oncall.toml"))
    }
}

/// What two sources said to one question.
fn joined(a: QueryValue, b: QueryValue) -> QueryValue {
    match (a, b) {
        (QueryValue::Vector(mut all), QueryValue::Vector(more)) => {
            all.extend(more);
            QueryValue::Vector(all)
        }
        (QueryValue::Matrix(mut all), QueryValue::Matrix(more)) => {
            all.extend(more);
            QueryValue::Matrix(all)
        }
        // Scalars and texts are the same wherever they are asked.
        (a, _) => a,
    }
}

/// Drops the series that are too many; says whether there were any.
fn cut(value: &mut QueryValue) -> bool {
    let (QueryValue::Vector(all) | QueryValue::Matrix(all)) = value else { return false };
    let mut samples = 0usize;
    let fits = |series: &Series, samples: &mut usize| {
        *samples = samples.saturating_add(series.samples.len().max(1));
        *samples <= MAX_SAMPLES
    };
    let kept = all.iter().take_while(|series| fits(series, &mut samples)).count();
    let is_cut = kept < all.len();
    all.truncate(kept);
    is_cut
}
