//! `discover_metrics`: what metrics there are, which series stand out among all of them, and which service the trouble
//! seems to start in.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::{FutureExt, StreamExt};
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::expression::{Form, equals, forms, matchers};
use super::{Tool, spec, until_cancelled};
use crate::analysis::rank::{Focus, RankedSeries, rank_series, rank_services};
use crate::domain::metric::SERVICE_LABELS;
use crate::domain::text::{clean_line, counted};
use crate::domain::{
    Failure, Finding, Lang, MetricInfo, Outcome, Output, Series, Served, SourceReport, Symptom, ToolSpec, Topology,
    Window,
};
use crate::source::{MetricSource, QueryValue, SourceError};
use crate::tool::arguments::{TimeArgument, ToolClock, outcome, parse_arguments, parse_time};
use crate::tool::sources::Roll;

/// Metrics listed, anomalous series and services given.
const MAX_METRICS: usize = 100;
const MAX_ANOMALIES: usize = 20;
const MAX_SERVICES: usize = 10;
/// Series looked at in one call.
const MAX_SERIES: usize = 5_000;
/// Queries in flight at one source.
const PARALLEL: usize = 8;
/// A call answers with what it has by then: the invoker's own deadline would throw all of it away.
const TIME_TO_LOOK: Duration = Duration::from_secs(7);
/// Samples wanted from before the window, to know what is normal.
const SAMPLES_BEFORE: i32 = 60;
const LONGEST_BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// Points of a series that is ranked, at most.
const RANKED_POINTS: i32 = 480;
/// The distance of samples where none can be measured.
const USUAL_INTERVAL: SignedDuration = SignedDuration::from_secs(60);
/// A rate over less is rough whatever the distance of samples.
const SHORTEST_RATE: SignedDuration = SignedDuration::from_secs(60);

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Show {
    /// Names, types and labels of the metrics.
    #[default]
    Names,
    /// The series that deviate most from the time before.
    Anomalies,
    /// The services in which the trouble most likely starts, by their anomalies and by who calls whom.
    Services,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DiscoverArguments {
    /// `names` lists metrics; `anomalies` gives the series that deviate most from the time before; `services` ranks the
    /// services in which the trouble most likely starts. Default: names.
    #[serde(default)]
    show: Show,
    /// Only metrics of this service.
    service: Option<String>,
    /// Only series that match this selector, such as `{namespace="shop"}`.
    matcher: Option<String>,
    /// Start of the time to look at: RFC 3339, Unix seconds, or relative to now such as -30m. Default: the time around
    /// the alert.
    start: Option<TimeArgument>,
    /// End of that time, in the same forms.
    end: Option<TimeArgument>,
    /// When the alert fired, where that is known: what came before tells what is normal.
    alert_at: Option<TimeArgument>,
    /// The service that alerts: services that it does not depend on are less likely causes.
    alerting_service: Option<String>,
    /// What the alert reports.
    symptom: Option<Symptom>,
    /// Language of reasons.
    lang: Option<Lang>,
}

/// The tool `discover_metrics`.
pub struct DiscoverMetrics {
    spec: ToolSpec,
    sources: Vec<Arc<dyn MetricSource>>,
    clock: ToolClock,
    topology: Topology,
}

impl DiscoverMetrics {
    pub fn new(sources: Vec<Arc<dyn MetricSource>>, clock: ToolClock, topology: Topology) -> Self {
        let description = "Finds out what there is among all metrics: their names; the series that deviate most from \
                           the time before (counters as rates, histograms as mean and 99th percentile); or the services \
                           in which the trouble most likely starts.";
        Self { spec: spec::<DiscoverArguments>("discover_metrics", description), sources, clock, topology }
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: DiscoverArguments = parse_arguments(arguments)?;
        let window = self.clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let alert_at = arguments.alert_at.as_ref().map(|time| parse_time(&time.0, &self.clock)).transpose()?;
        let focus = Focus {
            alert_at,
            service: arguments.alerting_service.clone(),
            symptom: arguments.symptom,
            topology: self.topology.clone(),
            lang: arguments.lang.unwrap_or_default(),
        };
        let ask = Ask {
            service: arguments.service,
            matchers: arguments.matcher.as_deref().map(matchers).unwrap_or_default(),
            window,
            until: Instant::now() + TIME_TO_LOOK,
        };
        let looked =
            futures::future::join_all(self.sources.iter().map(|source| ask.look(source.as_ref(), arguments.show)))
                .await;
        let found = Found::together(&self.sources, looked)?;
        Ok(found.into_output(arguments.show, &focus, &ask))
    }
}

#[async_trait]
impl Tool for DiscoverMetrics {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome {
        outcome(until_cancelled(cancel, self.answer(arguments)).await)
    }
}

/// What to look for in every source.
struct Ask {
    service: Option<String>,
    matchers: String,
    window: Window,
    until: Instant,
}

/// What was found in one source, or in all.
#[derive(Default)]
struct Found {
    names: Vec<String>,
    asked: Vec<SourceReport>,
    metrics: Vec<MetricInfo>,
    /// Each with the expression that gives it.
    series: Vec<(String, Series)>,
    window: Option<Window>,
    notes: Vec<String>,
    truncated: bool,
}

impl Ask {
    async fn look(&self, source: &dyn MetricSource, show: Show) -> Result<Found, SourceError> {
        let mut found = Found::default();
        let selections = self.selections(source).await?;
        if show == Show::Names {
            found.metrics = selections.into_iter().flat_map(|(_, metrics)| metrics).collect();
            return Ok(found);
        }
        let grid = Grid::measure(source, &selections, self.window).await;
        let questions = selections
            .iter()
            .flat_map(|(matchers, metrics)| forms(metrics).into_iter().map(move |form| (form, matchers.clone())))
            .collect();
        self.evaluate(source, questions, &grid, &mut found).await?;
        found.window = Some(grid.window);
        Ok(found)
    }

    /// Matchers with the metrics that they find. A service is looked for under every label that may name it.
    async fn selections(&self, source: &dyn MetricSource) -> Result<Vec<(String, Vec<MetricInfo>)>, SourceError> {
        let selector = |matchers: &str| (!matchers.is_empty()).then(|| format!("{{{matchers}}}"));
        let all = source.metrics(selector(&self.matchers).as_deref(), self.window).await?;
        let Some(service) = &self.service else { return Ok(vec![(self.matchers.clone(), all)]) };
        let mut selections = Vec::new();
        for label in SERVICE_LABELS.iter().filter(|label| all.iter().any(|metric| metric.labels.contains_key(**label)))
        {
            let both = [self.matchers.clone(), equals(label, service)];
            let matchers = both.iter().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(",");
            let metrics = source.metrics(selector(&matchers).as_deref(), self.window).await?;
            // A metric that was found under a more telling label is not asked twice.
            let seen = |name: &str| {
                selections.iter().any(|(_, found): &(String, Vec<MetricInfo>)| found.iter().any(|one| one.name == name))
            };
            let fresh: Vec<MetricInfo> = metrics.into_iter().filter(|metric| !seen(&metric.name)).collect();
            if !fresh.is_empty() {
                selections.push((matchers, fresh));
            }
        }
        Ok(selections)
    }

    /// Asks the questions (a form and its matchers), several at once, until all are answered, enough series are there
    /// or the time is over.
    async fn evaluate(
        &self,
        source: &dyn MetricSource,
        questions: Vec<(Form, String)>,
        grid: &Grid,
        found: &mut Found,
    ) -> Result<(), SourceError> {
        let wanted = questions.len();
        let (window, step, range) = (grid.window, grid.step, grid.rate_range());
        let mut answers = futures::stream::iter(questions)
            .map(|(form, matchers)| {
                async move { (source.range(&form.text(&matchers, range), window, step).await, form) }.boxed()
            })
            .buffered(PARALLEL);
        let (mut done, mut failed, mut first_error) = (0, 0, None);
        while let Ok(Some((answer, form))) = tokio::time::timeout_at(self.until, answers.next()).await {
            done += 1;
            match answer {
                Ok(answer) => {
                    if let QueryValue::Matrix(series) | QueryValue::Vector(series) = answer.value {
                        found
                            .series
                            .extend(series.into_iter().map(|series| (form.of_series(&series.labels, range), series)));
                    }
                }
                Err(error) => {
                    failed += 1;
                    first_error.get_or_insert(error);
                }
            }
            if found.series.len() >= MAX_SERIES {
                break;
            }
        }
        found.series.truncate(MAX_SERIES);
        if done < wanted {
            found.truncated = true;
            found.notes.push(format!("{done} of {} looked at: name a service to see all", counted(wanted, "metric")));
        }
        match first_error {
            Some(error) if failed == done => Err(error),
            Some(error) => {
                found.notes.push(format!("{} could not be asked: {error}", counted(failed, "metric")));
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// The times at which series are evaluated: on their own samples where these lie on a grid, and with enough of the
/// time before the window to know what is normal.
struct Grid {
    window: Window,
    step: SignedDuration,
    interval: SignedDuration,
}

impl Grid {
    async fn measure(source: &dyn MetricSource, selections: &[(String, Vec<MetricInfo>)], window: Window) -> Self {
        let metric = selections
            .iter()
            .flat_map(|(matchers, metrics)| metrics.iter().map(move |metric| (matchers, metric)))
            .min_by_key(|(_, metric)| metric.series);
        let series = match metric {
            Some((_, metric)) => {
                let selector = format!("{{{}}}", equals("__name__", &metric.name));
                source.series(&selector, window).await.map(|(series, _)| series).unwrap_or_default()
            }
            None => Vec::new(),
        };
        // Some series have a sample now and then only: the usual distance is that of the denser half.
        let mut distances: Vec<(SignedDuration, Timestamp)> = series.iter().filter_map(distance_of).collect();
        distances.sort();
        let usual = distances.get(distances.len() / 4);
        let (measured, first) = usual.map_or((USUAL_INTERVAL, None), |(distance, first)| (*distance, Some(*first)));
        let interval = measured.max(SignedDuration::from_secs(1));
        Self::with(window, interval, first)
    }

    fn with(window: Window, interval: SignedDuration, first: Option<Timestamp>) -> Self {
        let before = window.duration().max(interval * SAMPLES_BEFORE).min(LONGEST_BEFORE.max(window.duration()));
        let whole = Window::new(window.start.checked_sub(before).unwrap_or(window.start), window.end);
        let shortest = (whole.duration() / RANKED_POINTS).as_secs_f64();
        let steps = (shortest / interval.as_secs_f64()).ceil().max(1.0);
        let step = SignedDuration::from_secs_f64(interval.as_secs_f64() * steps);
        // Aligned with a sample: else each value is told up to a step late.
        let phase =
            first.map_or(0, |first| first.duration_since(whole.start).as_millis().rem_euclid(step.as_millis().max(1)));
        let start = whole.start.checked_add(SignedDuration::from_millis(phase as i64)).unwrap_or(whole.start);
        Self { window: Window::new(start.min(whole.end), whole.end), step, interval }
    }

    /// Two samples and a half: enough for a rate with one sample missing now and then, and short enough that an onset
    /// stays where it is.
    fn rate_range(&self) -> SignedDuration {
        (self.interval * 5 / 2).max(SHORTEST_RATE)
    }
}

/// The usual distance of a series' samples, and the time of the first.
fn distance_of(series: &Series) -> Option<(SignedDuration, Timestamp)> {
    let mut distances: Vec<SignedDuration> = series
        .samples
        .windows(2)
        .map(|pair| pair[1].at.duration_since(pair[0].at))
        .filter(|distance| distance.is_positive())
        .collect();
    distances.sort();
    Some((*distances.get(distances.len() / 2)?, series.samples.first()?.at))
}

impl Found {
    /// Joins what the sources gave.
    fn together(sources: &[Arc<dyn MetricSource>], looked: Vec<Result<Self, SourceError>>) -> Result<Self, Failure> {
        let (mut roll, mut together) = (Roll::default(), Self::default());
        for (source, looked) in sources.iter().zip(looked) {
            let Some(mut found) = roll.take(source.name(), looked) else { continue };
            roll.says(source.caveat());
            if found.metrics.is_empty() && found.series.is_empty() {
                roll.found_nothing();
            }
            together.metrics.append(&mut found.metrics);
            together.series.append(&mut found.series);
            roll.notes.append(&mut found.notes);
            together.truncated |= found.truncated;
            together.window = together.window.or(found.window);
        }
        let mut roll = roll.checked()?;
        let asked = roll.strip();
        Ok(Self { names: roll.names, notes: roll.notes, asked, ..together })
    }

    fn into_output(mut self, show: Show, focus: &Focus, ask: &Ask) -> Output {
        let window = self.window.unwrap_or(ask.window);
        let mut findings = match show {
            Show::Names => self.list(),
            Show::Anomalies => {
                let anomalies = self.rank(window, focus).into_iter().filter(|one| one.weight > 0.0);
                anomalies.take(MAX_ANOMALIES).map(|one| Finding::Series(one.summary)).collect()
            }
            Show::Services => {
                let services = rank_services(&self.rank(window, focus), focus);
                services.into_iter().take(MAX_SERVICES).map(Finding::RankedService).collect()
            }
        };
        if findings.is_empty() {
            findings.push(Finding::Nothing { what: ask.nothing(show, self.series.len()) });
        }
        Output {
            source: self.names.join(", "),
            window: Some(window),
            findings,
            notes: self.notes,
            truncated: self.truncated,
            served: Served::Live,
            asked: self.asked,
            retrieval: None,
        }
    }

    fn rank(&self, window: Window, focus: &Focus) -> Vec<RankedSeries> {
        rank_series(self.series.iter().map(|(expr, series)| (expr.as_str(), series)), window, focus)
    }

    fn list(&mut self) -> Vec<Finding> {
        let mut by_name: BTreeMap<String, MetricInfo> = BTreeMap::new();
        for metric in self.metrics.drain(..) {
            by_name.entry(metric.name.clone()).or_insert(metric);
        }
        if by_name.len() > MAX_METRICS {
            self.truncated = true;
            self.notes.push(format!(
                "{} metrics; the first {MAX_METRICS} by name are listed: name a service or a matcher to see others",
                by_name.len()
            ));
        }
        by_name.into_values().take(MAX_METRICS).map(Finding::Metric).collect()
    }
}

impl Ask {
    fn nothing(&self, show: Show, series: usize) -> String {
        let of = match (&self.service, self.matchers.is_empty()) {
            (Some(service), _) => format!(" of {}", clean_line(service, 100)),
            (None, false) => format!(" that match {{{}}}", clean_line(&self.matchers, 200)),
            (None, true) => String::new(),
        };
        match show {
            Show::Names => format!("no metrics{of} have samples in the window"),
            Show::Anomalies => format!("none of {series} series{of} stands out of the time before"),
            Show::Services => format!("no service stands out among {series} series{of}"),
        }
    }
}
