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
    TimeArgument, ToolClock, bad_arguments, input_schema, outcome, parse_arguments, parse_duration,
};
use super::sources::Roll;
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

    /// Asks all sources at once.
    async fn ask(&self, expr: &str, window: Window, step: SignedDuration) -> Result<Asked, Failure> {
        let answers =
            futures::future::join_all(self.sources.iter().map(|source| source.range(expr, window, step))).await;
        let mut asked = Asked::default();
        for (source, answer) in self.sources.iter().zip(answers) {
            let Some(answer) = asked.roll.take(source.name(), answer) else { continue };
            asked.roll.says(source.caveat());
            asked.roll.notes.extend(answer.warnings.iter().map(|warning| clean_line(warning, 300)));
            if matches!(&answer.value, QueryValue::Vector(series) | QueryValue::Matrix(series) if series.is_empty()) {
                asked.roll.found_nothing();
            }
            asked.take(answer.value);
        }
        Ok(Asked { roll: asked.roll.checked()?, ..asked })
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
    roll: Roll,
    series: Vec<Series>,
    texts: Vec<String>,
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
            self.roll.notes.push(format!(
                "{found} series; the {MAX_SERIES} most anomalous are given: aggregate or filter to see others"
            ));
        }
        if findings.is_empty() {
            findings.push(Finding::Nothing { what: format!("no data for {}", clean_line(expr, 300)) });
        }
        let asked = self.roll.strip();
        Output {
            source: self.roll.names.join(", "),
            window: Some(window),
            findings,
            notes: self.roll.notes,
            truncated: found > MAX_SERIES,
            served: Served::Live,
            asked,
            retrieval: None,
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
            Err(Failure::new(FailureKind::Cancelled, "cancelled"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::domain::{MetricType, SeriesShape, Topology};
    use crate::source::openmetrics::OpenMetricsFiles;

    const NOW: i64 = 1_772_605_800;
    const STEP: i64 = 15;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn clock() -> ToolClock {
        let window = Window::new(at(NOW - 3600), at(NOW));
        ToolClock { now: at(NOW), window, zone: TimeZone::UTC }
    }

    /// Three hours of a small shop: in the last ten minutes the database of the cart is slow, the cart fails, and
    /// everybody's traffic grows a little.
    fn shop() -> Vec<Arc<dyn MetricSource>> {
        let mut text =
            String::from("# TYPE http_requests counter\n# TYPE http_errors counter\n# TYPE db_latency_seconds gauge\n");
        let mut errors = 0.0;
        let mut sample = |line: std::fmt::Arguments<'_>| writeln!(text, "{line}").unwrap();
        for (count, time) in (NOW - 10_800..=NOW).step_by(STEP as usize).enumerate() {
            let wobble = (count * 7 % 5) as f64;
            let is_late = time > NOW - 600;
            errors += if is_late { 30.0 + wobble } else { wobble / 10.0 };
            let rate = if is_late { 33 } else { 30 };
            sample(format_args!("http_requests_total{{service=\"cart\"}} {} {time}", count * rate));
            sample(format_args!("http_requests_total{{service=\"search\"}} {} {time}", count * rate));
            sample(format_args!("http_errors_total{{service=\"cart\"}} {errors} {time}"));
            let latency = 0.01 + wobble / 1000.0 + if is_late { 0.5 } else { 0.0 };
            sample(format_args!("db_latency_seconds{{app=\"cart-db\"}} {latency} {time}"));
        }
        text.push_str("# EOF\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shop.om");
        std::fs::write(&path, text).unwrap();
        vec![Arc::new(OpenMetricsFiles::load("files/metrics", &[path]).unwrap())]
    }

    async fn call(tool: &dyn Tool, arguments: Value) -> Output {
        match tool.call(arguments, &CancellationToken::new()).await {
            Outcome::Output(output) => output,
            Outcome::Failure(failure) => panic!("{failure:?}"),
        }
    }

    async fn failure(tool: &dyn Tool, arguments: Value) -> (FailureKind, String) {
        match tool.call(arguments, &CancellationToken::new()).await {
            Outcome::Failure(failure) => (failure.kind, failure.message),
            Outcome::Output(output) => panic!("{output:?}"),
        }
    }

    fn discover() -> DiscoverMetrics {
        let topology: Topology = [("cart".to_owned(), vec!["cart-db".to_owned()])].into();
        DiscoverMetrics::new(shop(), clock(), topology)
    }

    #[tokio::test]
    async fn a_query_gives_a_summary_per_series_the_most_anomalous_first() {
        let tool = QueryMetrics::new(shop(), clock());
        let output = call(&tool, json!({"expr": "rate(http_errors_total[1m]) or rate(http_requests_total[1m])"})).await;
        let summaries: Vec<_> = output
            .findings
            .iter()
            .map(|finding| match finding {
                Finding::Series(summary) => (summary.labels["service"].as_str(), summary.shape),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(output.source, "files/metrics");
        assert_eq!(output.window, Some(clock().window));
        assert_eq!(summaries[0], ("cart", SeriesShape::Step));
        assert_eq!(summaries.len(), 2);
    }

    #[tokio::test]
    async fn no_data_is_a_finding() {
        let tool = QueryMetrics::new(shop(), clock());
        let output = call(&tool, json!({"expr": "up{job=\"x\"}", "start": "-10m"})).await;
        assert_eq!(output.findings, [Finding::Nothing { what: "no data for up{job=\"x\"}".into() }]);
        assert_eq!(output.window, Some(Window::new(at(NOW - 600), at(NOW))));
    }

    #[tokio::test]
    async fn what_the_caller_can_mend_is_told() {
        let tool = QueryMetrics::new(shop(), clock());
        for (arguments, words) in [
            (json!({}), "missing field `expr`"),
            (json!({"expr": " "}), "`expr` is empty"),
            (json!({"expr": "up", "from": "-5m"}), "unknown argument `from`"),
            (json!({"expr": "up", "start": "soon"}), "cannot read the time `soon`"),
            (json!({"expr": "up", "step": "0s"}), "cannot read the step `0s`"),
            (json!({"expr": "up", "step": "1ms"}), "more than 11000 points"),
            (json!({"expr": "sum((up"}), ""),
        ] {
            let (kind, message) = failure(&tool, arguments.clone()).await;
            assert_eq!(kind, FailureKind::BadArguments, "{arguments}: {message}");
            assert!(message.contains(words), "{arguments}: {message}");
        }
    }

    #[tokio::test]
    async fn a_cancelled_call_ends() {
        let tool = QueryMetrics::new(shop(), clock());
        let cancel = CancellationToken::new();
        cancel.cancel();
        let kinds = [Some(FailureKind::Cancelled), None];
        let kind = match tool.call(json!({"expr": "up"}), &cancel).await {
            Outcome::Failure(failure) => Some(failure.kind),
            Outcome::Output(_) => None,
        };
        assert!(kinds.contains(&kind));
    }

    #[tokio::test]
    async fn metrics_are_listed_for_all_or_for_one_service() {
        let names = |output: Output| -> Vec<(String, MetricType)> {
            output
                .findings
                .into_iter()
                .map(|finding| match finding {
                    Finding::Metric(metric) => (metric.name, metric.kind),
                    other => panic!("{other:?}"),
                })
                .collect()
        };
        let counter = |name: &str| (name.to_owned(), MetricType::Counter);
        let gauge = ("db_latency_seconds".to_owned(), MetricType::Gauge);
        let all = names(call(&discover(), json!({})).await);
        assert_eq!(all, [gauge.clone(), counter("http_errors_total"), counter("http_requests_total")]);
        assert_eq!(names(call(&discover(), json!({"service": "cart-db"})).await), [gauge]);
        let matched = names(call(&discover(), json!({"matcher": "{service=\"search\"}"})).await);
        assert_eq!(matched, [counter("http_requests_total")]);
        let none = call(&discover(), json!({"service": "nobody"})).await;
        let what = "no metrics of nobody have samples in the window".to_owned();
        assert_eq!(none.findings, [Finding::Nothing { what }]);
    }

    #[tokio::test]
    async fn anomalies_of_all_series_are_ranked_with_expressions_that_can_be_asked_again() {
        let output = call(&discover(), json!({"show": "anomalies", "alert_at": "-8m"})).await;
        let exprs: Vec<&str> = output
            .findings
            .iter()
            .map(|finding| match finding {
                Finding::Series(summary) => summary.expr.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(exprs.contains(&"rate(http_errors_total{service=\"cart\"}[60s])"), "{exprs:?}");
        assert!(exprs.contains(&"db_latency_seconds{app=\"cart-db\"}"), "{exprs:?}");
        let tool = QueryMetrics::new(shop(), clock());
        for expr in exprs {
            assert!(matches!(call(&tool, json!({"expr": expr})).await.findings[..], [Finding::Series(_)]), "{expr}");
        }
    }

    #[tokio::test]
    async fn services_are_ranked_by_who_calls_whom() {
        let arguments = json!({"show": "services", "alert_at": "-8m", "alerting_service": "cart", "symptom": "errors"});
        let output = call(&discover(), arguments).await;
        let services: Vec<&str> = output
            .findings
            .iter()
            .map(|finding| match finding {
                Finding::RankedService(service) => service.service.as_str(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(services[..2], ["cart-db", "cart"], "{output:?}");
    }
}
