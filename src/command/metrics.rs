//! `oncall metrics`: PromQL over a source, with a sparkline, a summary and change points per series.
//!
//! As JSON it answers in the shape of the Prometheus HTTP API, with the summaries beside the data.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{BadInput, Context, Exit, Unreachable, bad_input, live};
use crate::analysis::series::summarize;
use crate::domain::{Failure, FailureKind, Sample, Series, SeriesSummary, Window, value_text};
use crate::source::incident::Incident;
use crate::source::{MetricSource, QueryAnswer, QueryValue, SourceError};
use crate::tool::arguments::{TimeArgument, ToolClock, parse_time};
use crate::tool::metrics::{checked_step, default_step};

mod view;

/// The time looked at where nothing says which.
const USUAL_WINDOW: SignedDuration = SignedDuration::from_hours(1);

#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// A PromQL expression
    expr: String,
    /// The incident folder whose metrics are asked
    #[arg(long, value_name = "DIR")]
    incident: Option<PathBuf>,
    /// The configured source that is asked, where there are several
    #[arg(long, value_name = "NAME", conflicts_with = "incident")]
    source: Option<String>,
    /// Evaluate at this instant: RFC 3339, Unix seconds, or relative to the incident's now such as -15m
    #[arg(long, value_name = "TIME", conflicts_with_all = ["start", "end", "step"], allow_hyphen_values = true)]
    time: Option<String>,
    /// Evaluate over a range that starts here
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<String>,
    /// The end of the range
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<String>,
    /// Distance of points in the range, such as 30s
    #[arg(long, value_name = "DURATION")]
    step: Option<String>,
}

pub async fn run(args: MetricsArgs, context: &Context) -> anyhow::Result<Exit> {
    let lang = context.lang.unwrap_or_default();
    let (source, clock) = open(&args, context).await?;
    let question = Question::new(&args, &clock).map_err(|failure| BadInput(failure.message))?;
    let answer = question.ask(source.as_ref()).await.map_err(|error| report(error, source.name()))?;
    for warning in &answer.warnings {
        context.warn(warning);
    }
    if context.is_json() {
        context.print(&format!("{}\n", document(&answer)))?;
    } else {
        let page =
            view::Page { expr: &args.expr, window: answer.window, zone: clock.zone, lang, columns: context.columns() };
        context.print(&page.render(&answer))?;
    }
    Ok(Exit::Success)
}

/// The source of metrics and the clock by which times are read.
async fn open(args: &MetricsArgs, context: &Context) -> anyhow::Result<(Arc<dyn MetricSource>, ToolClock)> {
    let Some(folder) = &args.incident else { return open_live(args, context).await };
    let incident = Incident::open(folder).map_err(bad_input)?;
    for warning in &incident.warnings {
        context.warn(warning);
    }
    let Some(source) = incident.metrics.clone() else {
        return Err(BadInput(format!("{}: there are no metrics in it: expected metrics/*.om", folder.display())).into());
    };
    let window = window_of(&incident).await;
    Ok((source, ToolClock { now: incident.now, window, zone: incident.zone.clone() }))
}

/// The configured source of that name, or the only one.
async fn open_live(args: &MetricsArgs, context: &Context) -> anyhow::Result<(Arc<dyn MetricSource>, ToolClock)> {
    let (now, zone) = (Timestamp::now(), TimeZone::system());
    let live = live::open(None, now, &zone, context.lang.unwrap_or_default(), context).await;
    let mut found = live.sources.metrics;
    let names: Vec<String> = found.iter().map(|source| source.name().to_owned()).collect();
    let missing = |what: String| -> anyhow::Error { BadInput(what).into() };
    match (&args.source, names.as_slice()) {
        (_, []) => Err(missing(
            "no source of metrics: configure one in oncall.toml (kind = \"prometheus\"), or give --incident DIR, a \
             folder with metrics/*.om in it"
                .into(),
        )),
        (Some(wanted), _) => match names.iter().position(|name| name == wanted) {
            Some(index) => Ok(found.swap_remove(index)),
            None => Err(missing(format!("--source {wanted}: expected one of {}", names.join(", ")))),
        },
        (None, [_]) => Ok(found.swap_remove(0)),
        (None, _) => Err(missing(format!("several sources of metrics: name one with --source: {}", names.join(", ")))),
    }
    .map(|source| (source, ToolClock { now, window: Window::ending_at(now, USUAL_WINDOW), zone }))
}

/// The time around the incident's alert; the hour before its now where no alert can be read.
async fn window_of(incident: &Incident) -> Window {
    let usual = Window::ending_at(incident.now, USUAL_WINDOW);
    if !incident.alert_path.is_file() {
        return usual;
    }
    match super::alert::read(&incident.alert_path.display().to_string()).await {
        Ok(batch) if !batch.alerts.is_empty() => crate::reason::facts::analyze(&batch.alerts, incident.now).window,
        _ => usual,
    }
}

/// Whose mistake it is decides the exit code.
fn report(error: SourceError, source: &str) -> anyhow::Error {
    match error.kind {
        FailureKind::BadArguments => BadInput(error.message).into(),
        FailureKind::Timeout | FailureKind::Unauthorized | FailureKind::Unavailable => {
            Unreachable(format!("{source}: {error}")).into()
        }
        _ => anyhow::anyhow!("{source}: {error}"),
    }
}

/// What is asked: a value at an instant, or a range.
#[derive(Debug, Clone, PartialEq)]
struct Question {
    expr: String,
    /// `None`: the range is the answer.
    at: Option<Timestamp>,
    /// The range that is summarised.
    window: Window,
    step: SignedDuration,
}

/// What the source said.
#[derive(Debug, Clone, PartialEq)]
struct Answer {
    value: QueryValue,
    summaries: Vec<SeriesSummary>,
    window: Window,
    step: SignedDuration,
    warnings: Vec<String>,
}

impl Question {
    fn new(args: &MetricsArgs, clock: &ToolClock) -> Result<Self, Failure> {
        let time = |text: &Option<String>| text.clone().map(TimeArgument);
        let at = args.time.as_ref().map(|time| parse_time(time, clock)).transpose()?;
        let is_range = args.start.is_some() || args.end.is_some() || args.step.is_some();
        let window = match at {
            Some(at) => Window::ending_at(at, clock.window.duration()),
            None => clock.window_of(time(&args.start).as_ref(), time(&args.end).as_ref())?,
        };
        let step = match &args.step {
            Some(step) => checked_step(step, window)?,
            None => default_step(window),
        };
        let at = if is_range { None } else { Some(at.unwrap_or(clock.now)) };
        Ok(Self { expr: args.expr.clone(), at, window, step })
    }

    async fn ask(&self, source: &dyn MetricSource) -> Result<Answer, SourceError> {
        let instant = match self.at {
            Some(at) => Some(source.instant(&self.expr, at).await?),
            None => None,
        };
        let range = match &instant {
            // A range selector (`x[5m]`) and a text have a value at an instant only.
            Some(QueryAnswer { value: QueryValue::Matrix(_) | QueryValue::String(..), .. }) => None,
            _ => Some(source.range(&self.expr, self.window, self.step).await?),
        };
        let summarized = range.as_ref().or(instant.as_ref()).map_or(&[][..], |answer| series_of(&answer.value));
        let summaries = summarized.iter().map(|series| summarize(&self.expr, series, self.window, None)).collect();
        let mut warnings: Vec<String> =
            instant.iter().chain(&range).flat_map(|answer| answer.warnings.iter().cloned()).collect();
        warnings.sort();
        warnings.dedup();
        let value = instant.or(range).map_or(QueryValue::Vector(Vec::new()), |answer| answer.value);
        Ok(Answer { value, summaries, window: self.window, step: self.step, warnings })
    }
}

fn series_of(value: &QueryValue) -> &[Series] {
    match value {
        QueryValue::Vector(series) | QueryValue::Matrix(series) => series,
        QueryValue::Scalar(_) | QueryValue::String(..) => &[],
    }
}

/// The answer as `/api/v1/query` and `/api/v1/query_range` give it, and the summaries.
fn document(answer: &Answer) -> Value {
    let (kind, result) = match &answer.value {
        QueryValue::Scalar(sample) => ("scalar", point(sample)),
        QueryValue::String(at, text) => ("string", json!([seconds(*at), text])),
        QueryValue::Vector(series) => {
            let last = |series: &Series| series.samples.last().map(point);
            ("vector", series.iter().map(|one| json!({"metric": one.labels, "value": last(one)})).collect())
        }
        QueryValue::Matrix(series) => {
            let values = |series: &Series| series.samples.iter().map(point).collect::<Vec<_>>();
            ("matrix", series.iter().map(|one| json!({"metric": one.labels, "values": values(one)})).collect())
        }
    };
    let mut document = json!({
        "status": "success",
        "data": {"resultType": kind, "result": result},
        "summary": answer.summaries,
    });
    if !answer.warnings.is_empty() {
        document["warnings"] = json!(answer.warnings);
    }
    document
}

fn point(sample: &Sample) -> Value {
    json!([seconds(sample.at), value_text(sample.value)])
}

/// Unix seconds, with a fraction only where there is one.
fn seconds(at: Timestamp) -> Value {
    let milliseconds = at.as_millisecond();
    if milliseconds % 1000 == 0 { json!(milliseconds / 1000) } else { json!(milliseconds as f64 / 1000.0) }
}

#[cfg(test)]
mod tests {
    use jiff::tz::offset;

    use super::*;
    use crate::domain::Lang;

    const START: i64 = 1_772_602_200;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(START + second).unwrap()
    }

    fn window() -> Window {
        Window::new(at(0), at(3600))
    }

    fn series(labels: &[(&str, &str)], values: impl Fn(i64) -> f64) -> Series {
        Series {
            labels: labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            samples: (0..=120).map(|index| Sample { at: at(index * 30), value: values(index) }).collect(),
        }
    }

    fn errors() -> Series {
        let value = |index: i64| if index < 100 { (index % 4) as f64 / 1000.0 } else { 0.18 };
        series(&[("service", "order-service"), ("path", "/订单\u{1b}[31m")], value)
    }

    fn answer(value: QueryValue, range: &[Series]) -> Answer {
        let summaries = range.iter().map(|one| summarize("errors", one, window(), None)).collect();
        Answer { value, summaries, window: window(), step: SignedDuration::from_secs(30), warnings: Vec::new() }
    }

    fn page(answer: &Answer, lang: Lang) -> String {
        let zone = TimeZone::fixed(offset(8));
        view::Page { expr: "errors", window: answer.window, zone, lang, columns: 120 }.render(answer)
    }

    #[test]
    fn the_document_has_the_shape_of_the_prometheus_api() {
        let sample = |value: f64| Sample { at: Timestamp::from_millisecond(1_500).unwrap(), value };
        let one = |value: f64| Series { samples: vec![sample(value)], ..series(&[("a", "b")], |_| 0.0) };
        let vector = document(&answer(QueryValue::Vector(vec![one(f64::NAN), one(f64::INFINITY), one(0.25)]), &[]));
        assert_eq!(
            vector,
            json!({
                "status": "success",
                "data": {"resultType": "vector", "result": [
                    {"metric": {"a": "b"}, "value": [1.5, "NaN"]},
                    {"metric": {"a": "b"}, "value": [1.5, "+Inf"]},
                    {"metric": {"a": "b"}, "value": [1.5, "0.25"]},
                ]},
                "summary": [],
            })
        );
        let matrix = document(&answer(QueryValue::Matrix(vec![one(-3.0)]), &[]));
        assert_eq!(
            matrix["data"],
            json!({"resultType": "matrix", "result": [{"metric": {"a": "b"}, "values": [[1.5, "-3"]]}]})
        );
        let scalar = document(&answer(QueryValue::Scalar(sample(f64::NEG_INFINITY)), &[]));
        assert_eq!(scalar["data"], json!({"resultType": "scalar", "result": [1.5, "-Inf"]}));
        let ranged = document(&answer(QueryValue::Matrix(vec![errors()]), &[errors()]));
        assert_eq!(ranged["summary"][0]["shape"], json!("saturated"));
    }

    #[test]
    fn a_page_shows_the_course_of_each_series() {
        let flat = series(&[("__name__", "up")], |_| 1.0);
        let value = QueryValue::Matrix(vec![flat.clone(), errors()]);
        insta::assert_snapshot!("page_en", page(&answer(value.clone(), &[flat.clone(), errors()]), Lang::En));
        insta::assert_snapshot!("page_zh", page(&answer(value, &[flat, errors()]), Lang::Zh));
    }

    #[test]
    fn no_data_and_single_values_are_one_line() {
        assert_eq!(page(&answer(QueryValue::Vector(Vec::new()), &[]), Lang::En), "no data for errors\n");
        assert_eq!(page(&answer(QueryValue::Vector(Vec::new()), &[]), Lang::Zh), "errors 没有数据\n");
        assert_eq!(page(&answer(QueryValue::Scalar(Sample { at: at(0), value: 2.5 }), &[]), Lang::En), "2.5\n");
    }

    #[test]
    fn times_choose_between_an_instant_and_a_range() {
        let clock = ToolClock { now: at(3600), window: window(), zone: TimeZone::UTC };
        let question = |time: Option<&str>, start: Option<&str>, step: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let args = MetricsArgs {
                expr: "up".into(),
                incident: None,
                source: None,
                time: owned(time),
                start: owned(start),
                end: None,
                step: owned(step),
            };
            Question::new(&args, &clock).map_err(|failure| failure.message)
        };
        let usual =
            Question { expr: "up".into(), at: Some(at(3600)), window: window(), step: SignedDuration::from_secs(15) };
        assert_eq!(question(None, None, None), Ok(usual.clone()));
        let then = Question { at: Some(at(1800)), window: Window::new(at(-1800), at(1800)), ..usual.clone() };
        assert_eq!(question(Some("-30m"), None, None), Ok(then));
        let range = Question {
            at: None,
            window: Window::new(at(2400), at(3600)),
            step: SignedDuration::from_secs(60),
            ..usual
        };
        assert_eq!(question(None, Some("-20m"), Some("1m")), Ok(range));
        assert!(question(Some("tomorrow"), None, None).unwrap_err().contains("cannot read the time `tomorrow`"));
    }
}
