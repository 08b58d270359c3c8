//! `query_metrics` and `discover_metrics`: PromQL, and what there is to ask it about.
//!
//! In: an expression or nothing, and a time. Out: one summary per series, the most anomalous first, or the metrics,
//! series or services that stand out.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{
    TimeArgument, ToolClock, bad_arguments, input_schema, outcome, parse_arguments, parse_duration, source_failure,
};
use crate::analysis::rank::{Focus, rank_series};
use crate::domain::text::clean_line;
use crate::domain::{Failure, FailureKind, Finding, Outcome, Output, Series, Served, ToolSpec, Window};
use crate::source::{MetricSource, QueryValue};

mod discover;
mod expression;

pub use discover::DiscoverMetrics;

/// Series in one answer.
const MAX_SERIES: usize = 20;
/// Points of a range query: as many as a plot shows.
const POINTS: i32 = 240;
/// Points that Prometheus refuses to exceed.
const MOST_POINTS: f64 = 11_000.0;

#[derive(Debug, Deserialize, JsonSchema)]
struct QueryArguments {
    /// A PromQL expression, such as `sum by (service) (rate(http_requests_total{code=~"5.."}[5m]))`.
    expr: String,
    /// Start of the time to look at: RFC 3339, Unix seconds, or relative to now such as -30m. Default: the time around
    /// the alert.
    start: Option<TimeArgument>,
    /// End of that time, in the same forms.
    end: Option<TimeArgument>,
    /// Distance of points, such as 30s. Default: 240 points.
    step: Option<TimeArgument>,
}

/// The tool `query_metrics`.
pub struct QueryMetrics {
    spec: ToolSpec,
    sources: Vec<Arc<dyn MetricSource>>,
    clock: ToolClock,
}

impl QueryMetrics {
    pub fn new(sources: Vec<Arc<dyn MetricSource>>, clock: ToolClock) -> Self {
        let description = "Evaluates a PromQL expression over a time range and summarises each series: baseline, peak, \
                           value now, shape (spike, dip, step, ramp, saturated, flat, absent), onset, change points and \
                           a score in interquartile ranges. At most 20 series, the most anomalous first.";
        Self { spec: spec::<QueryArguments>("query_metrics", description), sources, clock }
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: QueryArguments = parse_arguments(arguments)?;
        let expr = arguments.expr.trim();
        if expr.is_empty() {
            return Err(bad_arguments("`expr` is empty: expected a PromQL expression"));
        }
        let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let step = match &arguments.step {
            Some(step) => checked_step(&step.0, window)?,
            None => default_step(window),
        };
        let asked = self.ask(expr, window, step).await?;
        Ok(asked.into_output(expr, window))
    }

    /// Asks all sources at once. One that fails is a note beside what the others say; when all fail, so does the call.
    async fn ask(&self, expr: &str, window: Window, step: SignedDuration) -> Result<Asked, Failure> {
        let answers =
            futures::future::join_all(self.sources.iter().map(|source| source.range(expr, window, step))).await;
        let mut asked = Asked::default();
        let mut first_failure = None;
        for (source, answer) in self.sources.iter().zip(answers) {
            match answer {
                Ok(answer) => {
                    asked.names.push(source.name().to_owned());
                    asked.notes.extend(answer.warnings.iter().map(|warning| clean_line(warning, 300)));
                    asked.take(answer.value);
                }
                Err(error) => {
                    asked.notes.push(format!("{}: {error}", source.name()));
                    first_failure.get_or_insert(source_failure(source.name(), error));
                }
            }
        }
        match first_failure {
            Some(failure) if asked.names.is_empty() => Err(failure),
            _ => Ok(asked),
        }
    }
}

#[async_trait]
impl Tool for QueryMetrics {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        outcome(until_cancelled(cancel, self.answer(arguments)).await)
    }
}

/// What several sources answered together.
#[derive(Default)]
struct Asked {
    /// The sources that answered.
    names: Vec<String>,
    series: Vec<Series>,
    texts: Vec<String>,
    notes: Vec<String>,
}

impl Asked {
    fn take(&mut self, value: QueryValue) {
        match value {
            QueryValue::Scalar(sample) => self.series.push(Series { samples: vec![sample], ..Series::default() }),
            QueryValue::Vector(series) | QueryValue::Matrix(series) => self.series.extend(series),
            QueryValue::String(_, text) => self.texts.push(text),
        }
    }

    fn into_output(mut self, expr: &str, window: Window) -> Output {
        let ranked = rank_series(self.series.iter().map(|series| (expr, series)), window, &Focus::default());
        let found = ranked.len();
        let mut summaries: Vec<_> = ranked.into_iter().map(|one| one.summary).collect();
        summaries.sort_by(|a, b| b.score.total_cmp(&a.score));
        summaries.truncate(MAX_SERIES);
        let mut findings: Vec<Finding> = summaries.into_iter().map(Finding::Series).collect();
        findings.extend(self.texts.iter().map(|text| Finding::Other { value: json!(clean_line(text, 1000)) }));
        if found > MAX_SERIES {
            self.notes.push(format!(
                "{found} series; the {MAX_SERIES} most anomalous are given: aggregate or filter to see others"
            ));
        }
        if findings.is_empty() {
            findings.push(Finding::Nothing { what: format!("no data for {}", clean_line(expr, 300)) });
        }
        Output {
            source: self.names.join(", "),
            window: Some(window),
            findings,
            notes: self.notes,
            truncated: found > MAX_SERIES,
            served: Served::Live,
        }
    }
}

fn spec<T: JsonSchema>(name: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: input_schema::<T>(),
        server: "builtin".to_owned(),
        read_only: true,
    }
}

/// The step at which a window has about as many points as a plot, in whole seconds.
pub fn default_step(window: Window) -> SignedDuration {
    let seconds = (window.duration() / POINTS).as_secs_f64().ceil();
    SignedDuration::from_secs((seconds as i64).max(1))
}

/// Reads a step and refuses one that no source would answer.
pub fn checked_step(text: &str, window: Window) -> Result<SignedDuration, Failure> {
    let step = parse_duration(text).filter(|step| step.is_positive()).ok_or_else(|| {
        let shown = clean_line(text, 60);
        bad_arguments(format!("cannot read the step `{shown}`: expected a duration above zero such as 30s"))
    })?;
    if window.duration().as_secs_f64() / step.as_secs_f64() > MOST_POINTS {
        let least = (window.duration().as_secs_f64() / MOST_POINTS).ceil();
        return Err(bad_arguments(format!(
            "step {} gives more than 11000 points per series: use {least}s or more",
            clean_line(text, 60)
        )));
    }
    Ok(step)
}

/// Stops waiting when the call is cancelled.
async fn until_cancelled(
    cancel: &CancellationToken,
    answer: impl Future<Output = Result<Output, Failure>>,
) -> Result<Output, Failure> {
    tokio::select! {
        answer = answer => answer,
        () = cancel.cancelled() => {
            Err(Failure { kind: FailureKind::Cancelled, source: None, message: "cancelled".to_owned() })
        }
    }
}
