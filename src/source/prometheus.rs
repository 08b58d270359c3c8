//! Prometheus and what speaks its HTTP API: Thanos, Mimir, VictoriaMetrics.
//!
//! In: PromQL and times. Out: values, the metrics there are, the rule behind an alert, and how the server is.

mod wire;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::openmetrics::line::MetadataKind;
use super::openmetrics::metadata::Metadata;
use super::rest::{Remote, RestError, encoded};
use super::{MetricSource, QueryAnswer, QueryValue, SourceError};
use crate::domain::metric::SERVICE_LABELS;
use crate::domain::text::{clean_line, counted};
use crate::domain::{FailureKind, MetricInfo, Series, Window};
use crate::http::{HttpError, RemoteSettings};
use wire::{Envelope, QueryData, explained};

/// Points per series that a server refuses to exceed.
const MOST_POINTS: i64 = 11_000;
/// A question longer than this goes as a form: addresses are cut by proxies.
const MAX_ADDRESS_CHARS: usize = 1500;
/// Series that are listed one by one; of more, names and labels are told apart.
const MAX_LISTED_SERIES: usize = 20_000;
/// Values of a label that are listed.
const LISTED_VALUES: usize = 5;
/// Series that are read of an answer that is too large as a whole.
const MOST_TELLING: usize = 50;
/// Lists of metrics that are kept for the run.
const MAX_LISTS: usize = 32;
/// In which the newest sample is looked for, and of how many metrics.
const LATELY: SignedDuration = SignedDuration::from_mins(5);
const MAX_LOOKED_AT: usize = 5;
const MAX_WARNINGS: usize = 10;
const MAX_WARNING_CHARS: usize = 300;

type Labels = BTreeMap<String, String>;
/// Metrics by matcher and time.
type Lists = BTreeMap<(Option<String>, Timestamp, Timestamp), Vec<MetricInfo>>;

/// A server.
pub struct Prometheus {
    name: String,
    remote: Remote,
    metadata: OnceCell<Metadata>,
    lists: Mutex<Lists>,
}

/// How a server is.
#[derive(Debug, Clone, PartialEq)]
pub struct PrometheusState {
    /// Empty where the server does not say.
    pub version: String,
    /// The time of the newest sample of `up`, or of any series.
    pub newest: Option<Timestamp>,
    /// Scrape targets that are up, and that are down with their last error.
    pub up: usize,
    pub down: Vec<(String, String)>,
}

impl Prometheus {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(name: &str, settings: RemoteSettings) -> Result<Self, HttpError> {
        Ok(Self {
            name: name.to_owned(),
            remote: Remote::new(settings)?,
            metadata: OnceCell::new(),
            lists: Mutex::default(),
        })
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        endpoint: &str,
        query: &[(&str, String)],
    ) -> Result<(T, Vec<String>), RestError> {
        let path = format!("/api/v1/{endpoint}");
        let length: usize = query.iter().map(|(_, value)| encoded(value).len()).sum();
        let envelope: Envelope<T> = match length > MAX_ADDRESS_CHARS {
            true => self.remote.post_form(&path, query).await?,
            false => self.remote.get(&path, query).await?,
        };
        let mut warnings: Vec<String> = envelope.warnings.into_iter().chain(envelope.infos).flatten().collect();
        warnings.truncate(MAX_WARNINGS);
        warnings.iter_mut().for_each(|warning| *warning = clean_line(warning, MAX_WARNING_CHARS));
        warnings.extend(self.remote.clock_note());
        match envelope.data {
            Some(data) => Ok((data, warnings)),
            None => {
                let said = envelope.error.unwrap_or_else(|| "it holds no data".to_owned());
                let what = format!(" of the Prometheus API ({})", clean_line(&said, MAX_WARNING_CHARS));
                Err(RestError::NotJson { url: self.remote.url().to_owned(), what })
            }
        }
    }

    async fn query(&self, endpoint: &str, query: &[(&str, String)]) -> Result<QueryAnswer, RestError> {
        let (data, mut warnings) = self.ask::<QueryData>(endpoint, query).await?;
        let (value, histograms) = data.into_value();
        if histograms > 0 {
            warnings.push(format!(
                "{} as native histograms: not shown; ask for histogram_quantile or histogram_avg of them",
                counted(histograms, "series")
            ));
        }
        Ok(QueryAnswer { value, warnings })
    }

    /// The series with the highest peaks, of an answer that is too large as a whole.
    async fn most_telling(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, RestError> {
        let (span, step_text) = (window.duration().as_secs().max(1), step_text(step));
        let end = window.end.as_millisecond() as f64 / 1000.0;
        let top = format!("({expr}) and topk({MOST_TELLING}, max_over_time(({expr})[{span}s:{step_text}s] @ {end}))");
        let count = self.query("query", &[("query", format!("count({expr})")), ("time", time_text(window.end))]).await;
        let mut answer = self.query("query_range", &range_query(&top, window, step)).await?;
        let all = match count.map(|answer| answer.value) {
            Ok(QueryValue::Vector(series)) => {
                series.first().and_then(|one| one.samples.last()).map(|count| count.value)
            }
            _ => None,
        };
        let of = all.map_or_else(|| "too many".to_owned(), |all| format!("{all}"));
        answer.warnings.push(format!(
            "{of} series: only the {MOST_TELLING} with the highest values were read; aggregate to see all"
        ));
        Ok(answer)
    }

    async fn metadata(&self) -> &Metadata {
        self.metadata.get_or_init(|| self.read_metadata()).await
    }

    /// Types, helps and units; none where the server has none (a store of blocks, a gateway).
    async fn read_metadata(&self) -> Metadata {
        #[derive(Deserialize)]
        struct Described {
            #[serde(rename = "type", default)]
            kind: String,
            #[serde(default)]
            help: String,
            #[serde(default)]
            unit: String,
        }
        let query = [("limit_per_metric", "1".to_owned())];
        let found = self.ask::<BTreeMap<String, Vec<Described>>>("metadata", &query).await;
        let mut metadata = Metadata::default();
        for (name, described) in found.map(|(found, _)| found).unwrap_or_default() {
            let Some(Described { kind, help, unit }) = described.into_iter().next() else { continue };
            metadata.declare(MetadataKind::Type, name.clone(), kind);
            metadata.declare(MetadataKind::Help, name.clone(), help);
            metadata.declare(MetadataKind::Unit, name, unit);
        }
        metadata
    }

    async fn list(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        let in_all = match (matcher, self.series_in_all().await) {
            (None, Ok(all)) => all,
            (Some(_), Ok(_)) => 0,
            // Nobody is there: to ask more only costs time.
            (_, Err(error @ RestError::Http(HttpError::Unreachable { .. } | HttpError::Timeout { .. }))) => {
                return Err(explained(error));
            }
            // Not every server knows it.
            (_, Err(_)) => 0,
        };
        let metadata = self.metadata().await;
        if in_all > MAX_LISTED_SERIES as u64 {
            return self.list_names(metadata, window).await;
        }
        let query = [
            ("match[]", matcher.unwrap_or("{__name__!=\"\"}").to_owned()),
            ("start", time_text(window.start)),
            ("end", time_text(window.end)),
            ("limit", (MAX_LISTED_SERIES + 1).to_string()),
        ];
        match self.ask::<Vec<Labels>>("series", &query).await {
            Ok((series, _)) if matcher.is_none() && series.len() > MAX_LISTED_SERIES => {
                self.list_names(metadata, window).await
            }
            Ok((series, _)) => Ok(described(metadata, &series)),
            Err(RestError::TooLarge { .. }) if matcher.is_none() => self.list_names(metadata, window).await,
            Err(error) => Err(explained(error)),
        }
    }

    /// How many series the server holds in memory, where it says so.
    async fn series_in_all(&self) -> Result<u64, RestError> {
        let (status, _) = self.ask::<Value>("status/tsdb", &[("limit", "1".to_owned())]).await?;
        Ok(status["headStats"]["numSeries"].as_u64().or_else(|| status["totalSeries"].as_u64()).unwrap_or(0))
    }

    async fn metric_names(&self, window: Window) -> Result<Vec<String>, RestError> {
        let time = [("start", time_text(window.start)), ("end", time_text(window.end))];
        Ok(self.ask("label/__name__/values", &time).await?.0)
    }

    /// Of very many series: the names, and the labels of all as if each metric had them. A service is then looked for
    /// under those labels, which gives a list of a bearable size.
    async fn list_names(&self, metadata: &Metadata, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        let names = self.metric_names(window).await.map_err(explained)?;
        let time = [("start", time_text(window.start)), ("end", time_text(window.end))];
        let (known, _) = self.ask::<Vec<String>>("labels", &time).await.map_err(explained)?;
        let mut labels = BTreeMap::new();
        for label in SERVICE_LABELS.iter().filter(|label| known.iter().any(|name| name == *label)) {
            let found = self.ask::<Vec<String>>(&format!("label/{label}/values"), &time).await;
            let values: Vec<String> = found.map(|(values, _)| values).unwrap_or_default();
            labels.insert((*label).to_owned(), values.into_iter().take(LISTED_VALUES).collect::<Vec<_>>());
        }
        let describe = |name: String| MetricInfo { labels: labels.clone(), ..info(metadata, &name) };
        Ok(names.into_iter().map(describe).collect())
    }

    /// The expression of the rule of this name, whose labels do not contradict those of the alert.
    ///
    /// # Errors
    /// As of any question.
    pub async fn rule_of(&self, alert: &str, labels: &Labels) -> Result<Option<String>, SourceError> {
        #[derive(Deserialize)]
        struct Groups {
            groups: Vec<Group>,
        }
        #[derive(Deserialize)]
        struct Group {
            rules: Vec<Rule>,
        }
        #[derive(Deserialize)]
        struct Rule {
            name: String,
            query: String,
            #[serde(default)]
            labels: Labels,
        }
        let found = self.ask::<Groups>("rules", &[("type", "alert".to_owned())]).await.map_err(explained)?.0;
        let fits = |rule: &Rule| {
            // A label with a template in it has another value in each alert.
            let same = |(name, value): (&String, &String)| {
                value.contains("{{") || labels.get(name).is_none_or(|given| given == value)
            };
            rule.name == alert && rule.labels.iter().all(same)
        };
        let mut rules = found.groups.into_iter().flat_map(|group| group.rules);
        Ok(rules.find(fits).map(|rule| rule.query))
    }

    /// What a check of the server tells.
    ///
    /// # Errors
    /// When it does not answer a query.
    pub async fn state(&self) -> Result<PrometheusState, SourceError> {
        let now = Timestamp::now();
        let newest = self.newest(now).await.map_err(explained)?;
        let build = self.ask::<Value>("status/buildinfo", &[]).await.map(|(data, _)| data).unwrap_or_default();
        let targets = self.ask::<Value>("targets", &[("state", "active".to_owned())]).await;
        let targets = targets.map(|(data, _)| data).unwrap_or_default();
        let (mut up, mut down) = (0, Vec::new());
        for target in targets["activeTargets"].as_array().into_iter().flatten() {
            let text = |value: &Value| clean_line(value.as_str().unwrap_or_default(), MAX_WARNING_CHARS);
            match target["health"].as_str() {
                Some("down") => down.push((text(&target["scrapeUrl"]), text(&target["lastError"]))),
                _ => up += 1,
            }
        }
        let version = clean_line(build["version"].as_str().unwrap_or_default(), 60);
        Ok(PrometheusState { version, newest, up, down })
    }

    /// The time of the newest sample: of the targets' own series, else of the first metrics of the last minutes.
    async fn newest(&self, now: Timestamp) -> Result<Option<Timestamp>, RestError> {
        if let Some(newest) = self.newest_of("up", now).await? {
            return Ok(Some(newest));
        }
        let names = self.metric_names(Window { start: now - LATELY, end: now }).await?;
        // One by one: without their names, series of two metrics may be the same, which is an error.
        for name in names.iter().take(MAX_LOOKED_AT) {
            if let Some(newest) = self.newest_of(name, now).await? {
                return Ok(Some(newest));
            }
        }
        Ok(None)
    }

    async fn newest_of(&self, metric: &str, now: Timestamp) -> Result<Option<Timestamp>, RestError> {
        let expr = format!("max(timestamp({{__name__=\"{}\"}}))", metric.replace('\\', "\\\\").replace('"', "\\\""));
        let query = [("query", expr), ("time", time_text(now))];
        let QueryValue::Vector(series) = self.query("query", &query).await?.value else { return Ok(None) };
        let sample = series.first().and_then(|one| one.samples.last());
        Ok(sample.and_then(|sample| wire::time(sample.value)))
    }
}

#[async_trait]
impl MetricSource for Prometheus {
    fn name(&self) -> &str {
        &self.name
    }

    fn caveat(&self) -> Option<String> {
        self.remote.clock_note()
    }

    async fn instant(&self, expr: &str, at: Timestamp) -> Result<QueryAnswer, SourceError> {
        let query = [("query", expr.to_owned()), ("time", time_text(at))];
        self.query("query", &query).await.map_err(explained)
    }

    async fn range(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, SourceError> {
        let bearable = bearable_step(window, step);
        let answer = match self.query("query_range", &range_query(expr, window, bearable)).await {
            Err(RestError::TooLarge { .. }) => self.most_telling(expr, window, bearable).await,
            answer => answer,
        };
        let mut answer = answer.map_err(explained)?;
        if bearable > step {
            let step = step_text(bearable);
            answer
                .warnings
                .push(format!("a step of {step} s was taken: the server gives {MOST_POINTS} points at most"));
        }
        Ok(answer)
    }

    async fn metrics(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        let key = (matcher.map(str::to_owned), window.start, window.end);
        let lists = || self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lists().get(&key) {
            return Ok(known.clone());
        }
        let found = self.list(matcher, window).await?;
        if lists().len() < MAX_LISTS {
            lists().insert(key, found.clone());
        }
        Ok(found)
    }

    async fn series(&self, matcher: &str, window: Window) -> Result<(Vec<Series>, bool), SourceError> {
        let span = window.duration().as_millis().max(1);
        let answer = self.instant(&format!("{matcher}[{span}ms]"), window.end).await?;
        let (QueryValue::Matrix(mut series) | QueryValue::Vector(mut series)) = answer.value else {
            let message = format!("{matcher} gave no series: expected a series selector");
            return Err(SourceError::new(FailureKind::BadArguments, message));
        };
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        Ok((series, false))
    }
}

/// The step, or the least that gives no more points than a server allows.
fn bearable_step(window: Window, step: SignedDuration) -> SignedDuration {
    let least = window.duration().as_millis() / i128::from(MOST_POINTS - 1) + 1;
    let least = SignedDuration::from_millis(i64::try_from(least).unwrap_or(i64::MAX));
    match step >= least {
        true => step,
        // In whole seconds, which is how people speak of steps.
        false => SignedDuration::from_secs(least.as_secs() + 1),
    }
}

fn range_query(expr: &str, window: Window, step: SignedDuration) -> [(&'static str, String); 4] {
    [
        ("query", expr.to_owned()),
        ("start", time_text(window.start)),
        ("end", time_text(window.end)),
        ("step", step_text(step)),
    ]
}

/// Unix seconds, with a fraction where there is one.
fn time_text(at: Timestamp) -> String {
    let milliseconds = at.as_millisecond();
    match milliseconds % 1000 {
        0 => (milliseconds / 1000).to_string(),
        _ => format!("{:.3}", milliseconds as f64 / 1000.0),
    }
}

fn step_text(step: SignedDuration) -> String {
    let milliseconds = step.as_millis();
    if milliseconds % 1000 == 0 { (milliseconds / 1000).to_string() } else { format!("{}", step.as_secs_f64()) }
}

fn info(metadata: &Metadata, name: &str) -> MetricInfo {
    let described = metadata.describe(name);
    MetricInfo {
        name: name.to_owned(),
        kind: described.kind,
        help: clean_line(&described.help, MAX_WARNING_CHARS),
        unit: described.unit,
        series: 0,
        labels: BTreeMap::new(),
    }
}

/// One entry per metric name, sorted.
fn described(metadata: &Metadata, series: &[Labels]) -> Vec<MetricInfo> {
    let mut metrics: BTreeMap<&str, MetricInfo> = BTreeMap::new();
    for labels in series {
        let name = labels.get("__name__").map_or("", String::as_str);
        let metric = metrics.entry(name).or_insert_with(|| info(metadata, name));
        metric.series += 1;
        for (label, value) in labels.iter().filter(|(label, _)| *label != "__name__") {
            let values = metric.labels.entry(label.clone()).or_default();
            if values.len() < LISTED_VALUES && !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    metrics.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MetricType;

    #[test]
    fn a_step_gives_no_more_points_than_servers_allow() {
        let window = |seconds: i64| Window::ending_at(Timestamp::UNIX_EPOCH, SignedDuration::from_secs(seconds));
        let step = |window, seconds| bearable_step(window, SignedDuration::from_secs(seconds)).as_secs();
        assert_eq!(step(window(3600), 15), 15);
        assert_eq!(step(window(86_400), 1), 8);
        let points = window(86_400).duration().as_secs() / 8 + 1;
        assert!(points <= MOST_POINTS);
    }

    #[test]
    fn metrics_are_described_by_their_series() {
        let labels = |pairs: &[(&str, &str)]| -> Labels {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let mut metadata = Metadata::default();
        metadata.declare(MetadataKind::Type, "d_seconds".into(), "histogram".into());
        let all = [
            labels(&[("__name__", "d_seconds_bucket"), ("le", "1")]),
            labels(&[("__name__", "d_seconds_bucket"), ("le", "+Inf")]),
            labels(&[("__name__", "a"), ("job", "x")]),
        ];
        let metrics = described(&metadata, &all);
        let brief: Vec<_> = metrics.iter().map(|one| (one.name.as_str(), one.kind, one.series)).collect();
        assert_eq!(brief, [("a", MetricType::Unknown, 1), ("d_seconds_bucket", MetricType::Histogram, 2)]);
        assert_eq!(metrics[1].labels["le"], ["1", "+Inf"]);
    }

    #[test]
    fn times_and_steps_are_written_in_seconds() {
        assert_eq!(time_text("2026-03-04T06:30:00Z".parse().unwrap()), "1772605800");
        assert_eq!(time_text("2026-03-04T06:30:00.25Z".parse().unwrap()), "1772605800.250");
        assert_eq!(
            (step_text(SignedDuration::from_secs(15)), step_text(SignedDuration::from_millis(500))),
            ("15".into(), "0.5".into())
        );
    }
}
