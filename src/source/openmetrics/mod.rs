//! Metrics in files: OpenMetrics (or classic Prometheus) text with time stamps, held in memory and asked with PromQL.

pub(super) mod line;
mod load;
pub(super) mod metadata;
mod read;
mod store;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};

use self::load::{Loaded, Loader};
use super::promql::{self, QueryError};
use super::unpack::DamagedArchive;
use super::{MetricSource, QueryAnswer, QueryValue, SourceError};
use crate::domain::{FailureKind, MetricInfo, Series, Window};

pub use self::store::{Ends, Labels, Point, SeriesStore, StoredSeries};

/// Values of a label that [`MetricInfo`] lists.
const LISTED_VALUES: usize = 5;

/// Most series and samples that a raw answer holds.
const MAX_RAW_SERIES: usize = 5_000;
const MAX_RAW_SAMPLES: usize = 2_000_000;

/// The metrics of a set of files.
#[derive(Debug, Clone)]
pub struct OpenMetricsFiles {
    name: String,
    loaded: Arc<Loaded>,
}

impl OpenMetricsFiles {
    /// Reads files, `.gz` and `.zst` too. A bad line or file becomes a warning that every answer carries; an error
    /// is only that none of the files could be read. Reads on the calling thread.
    pub fn load(name: impl Into<String>, paths: &[PathBuf]) -> Result<Self, SourceError> {
        let mut loader = Loader::default();
        let mut failures = Vec::new();
        for path in paths {
            if let Err(error) = loader.read_file(path) {
                let path = path.display();
                failures.push(if DamagedArchive::is_cause_of(&error) {
                    format!("{path}: {error}; what came before is used")
                } else {
                    format!("cannot read {path}: {error}")
                });
            }
        }
        if !failures.is_empty() && failures.len() == paths.len() && loader.is_empty() {
            return Err(SourceError::new(FailureKind::Unavailable, failures.join("; ")));
        }
        failures.into_iter().for_each(|failure| loader.warn(failure));
        Ok(Self { name: name.into(), loaded: Arc::new(loader.finish()) })
    }

    /// What was wrong with the files, in the order of reading.
    pub fn warnings(&self) -> &[String] {
        &self.loaded.warnings
    }

    /// Runs a computation off the threads that serve tasks.
    async fn compute<T: Send + 'static>(
        &self,
        f: impl FnOnce(&Loaded) -> Result<T, QueryError> + Send + 'static,
    ) -> Result<T, SourceError> {
        let loaded = Arc::clone(&self.loaded);
        match tokio::task::spawn_blocking(move || f(&loaded)).await {
            Ok(result) => result.map_err(|error| SourceError::new(FailureKind::BadArguments, error.to_string())),
            Err(error) => {
                Err(SourceError::new(FailureKind::SourceError, format!("the query could not be finished: {error}")))
            }
        }
    }

    fn answer(&self, value: QueryValue) -> QueryAnswer {
        QueryAnswer { value, warnings: self.loaded.warnings.clone() }
    }
}

#[async_trait]
impl MetricSource for OpenMetricsFiles {
    fn name(&self) -> &str {
        &self.name
    }

    async fn instant(&self, expr: &str, at: Timestamp) -> Result<QueryAnswer, SourceError> {
        let expr = expr.to_owned();
        let value = self.compute(move |loaded| promql::instant(&loaded.store, &expr, at)).await?;
        Ok(self.answer(value))
    }

    async fn range(&self, expr: &str, window: Window, step: SignedDuration) -> Result<QueryAnswer, SourceError> {
        let expr = expr.to_owned();
        let value = self.compute(move |loaded| promql::range(&loaded.store, &expr, window, step)).await?;
        Ok(self.answer(value))
    }

    async fn metrics(&self, matcher: Option<&str>, window: Window) -> Result<Vec<MetricInfo>, SourceError> {
        let matcher = matcher.map(str::to_owned);
        self.compute(move |loaded| {
            let series = promql::select(&loaded.store, matcher.as_deref())?;
            Ok(describe(loaded, series.into_iter().filter(|series| !within(&series.points, window).is_empty())))
        })
        .await
    }

    async fn series(&self, matcher: &str, window: Window) -> Result<(Vec<Series>, bool), SourceError> {
        let matcher = matcher.to_owned();
        self.compute(move |loaded| Ok(raw_series(promql::select(&loaded.store, Some(&matcher))?, window))).await
    }
}

/// One entry per metric name, sorted.
fn describe<'a>(loaded: &Loaded, series: impl Iterator<Item = &'a StoredSeries>) -> Vec<MetricInfo> {
    let mut metrics: BTreeMap<&str, MetricInfo> = BTreeMap::new();
    for one in series {
        let name = one.labels.get("__name__").map_or("", String::as_str);
        let metric = metrics.entry(name).or_insert_with(|| {
            let described = loaded.metadata.describe(name);
            MetricInfo {
                name: name.to_owned(),
                kind: described.kind,
                help: described.help,
                unit: described.unit,
                series: 0,
                labels: BTreeMap::new(),
            }
        });
        metric.series += 1;
        for (label, value) in one.labels.iter().filter(|(label, _)| *label != "__name__") {
            let values = metric.labels.entry(label.clone()).or_default();
            if values.len() < LISTED_VALUES && !values.contains(value) {
                values.push(value.clone());
            }
        }
    }
    metrics.into_values().collect()
}

/// The samples of each series in the window, and whether a limit left some series out.
fn raw_series(matching: Vec<&StoredSeries>, window: Window) -> (Vec<Series>, bool) {
    let mut series = Vec::new();
    let mut samples = 0;
    for one in matching {
        let points: Vec<Point> =
            within(&one.points, window).iter().copied().filter(|point| !point.is_stale_marker()).collect();
        if points.is_empty() {
            continue;
        }
        samples += points.len();
        if series.len() == MAX_RAW_SERIES || samples > MAX_RAW_SAMPLES {
            return (series, true);
        }
        series.push(promql::to_series(&one.labels, &points));
    }
    (series, false)
}

fn within(points: &[Point], window: Window) -> &[Point] {
    let (start, end) = (window.start.as_millisecond(), window.end.as_millisecond());
    let first = points.partition_point(|point| point.at < start);
    let after = points.partition_point(|point| point.at <= end);
    // `start <= end` holds for every window, so that `first <= after`.
    &points[first..after]
}

/// The store of a text, for tests of the evaluator.
#[cfg(test)]
pub(super) fn store_of(text: &str) -> SeriesStore {
    let mut loader = Loader::default();
    loader.read("test", text.as_bytes()).unwrap();
    loader.finish().store
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::MetricType;

    fn fixture(name: &str) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/metrics").join(name)
    }

    fn second(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn written(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let folder = tempfile::tempdir().unwrap();
        let paths = files.iter().map(|(name, text)| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        });
        let paths = paths.collect();
        (folder, paths)
    }

    #[tokio::test]
    async fn metrics_are_described_under_the_names_that_queries_use() {
        let source = OpenMetricsFiles::load("files/metrics", &[fixture("shop.om")]).unwrap();
        let window = Window::new(second(1_700_000_000), second(1_700_000_060));
        let metrics = source.metrics(None, window).await.unwrap();
        let kinds: Vec<(&str, MetricType, usize)> =
            metrics.iter().map(|metric| (metric.name.as_str(), metric.kind, metric.series)).collect();
        assert_eq!(
            kinds,
            [
                ("db_pool_in_use", MetricType::Gauge, 1),
                ("http_requests_total", MetricType::Counter, 2),
                ("latency_seconds_bucket", MetricType::Histogram, 2),
                ("latency_seconds_count", MetricType::Histogram, 1),
                ("latency_seconds_sum", MetricType::Histogram, 1),
            ]
        );
        assert_eq!(
            metrics[1],
            MetricInfo {
                name: "http_requests_total".to_owned(),
                kind: MetricType::Counter,
                help: "Requests served.".to_owned(),
                unit: String::new(),
                series: 2,
                labels: BTreeMap::from([
                    ("service".to_owned(), vec!["order".to_owned()]),
                    ("status".to_owned(), vec!["200".to_owned(), "500".to_owned()]),
                ]),
            }
        );
        assert_eq!(source.warnings(), [] as [&str; 0]);
    }

    #[tokio::test]
    async fn a_matcher_and_a_window_choose_among_the_metrics() {
        let source = OpenMetricsFiles::load("files/metrics", &[fixture("shop.om")]).unwrap();
        let window = Window::new(second(1_700_000_000), second(1_700_000_060));
        let errors = source.metrics(Some("{status=\"500\"}"), window).await.unwrap();
        assert_eq!(errors.iter().map(|metric| metric.series).collect::<Vec<_>>(), [1]);
        let before = Window::new(second(1_600_000_000), second(1_600_000_060));
        assert!(source.metrics(None, before).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn raw_series_are_cut_to_the_window() {
        let source = OpenMetricsFiles::load("files/metrics", &[fixture("shop.om")]).unwrap();
        let window = Window::new(second(1_700_000_015), second(1_700_000_030));
        let (series, cut) = source.series("db_pool_in_use", window).await.unwrap();
        let samples: Vec<(i64, f64)> = series[0].samples.iter().map(|s| (s.at.as_second(), s.value)).collect();
        assert_eq!((samples, cut), (vec![(1_700_000_015, 13.0), (1_700_000_030, 50.0)], false));
    }

    #[tokio::test]
    async fn the_classic_format_in_milliseconds_is_read_alike() {
        let source = OpenMetricsFiles::load("files/metrics", &[fixture("classic.prom")]).unwrap();
        let answer = source.instant("sum(http_requests_total)", second(1_700_000_015)).await.unwrap();
        let QueryValue::Vector(series) = answer.value else { panic!("{:?}", answer.value) };
        assert_eq!(series[0].samples[0].value, 112.0);
        assert!(answer.warnings.is_empty());
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_a_warning_beside_one_that_can() {
        let (folder, mut paths) = written(&[("a.om", "up 1 1700000000\nbad\n")]);
        paths.push(folder.path().join("gone.om"));
        let source = OpenMetricsFiles::load("files/metrics", &paths).unwrap();
        let answer = source.instant("up", second(1_700_000_000)).await.unwrap();
        assert!(matches!(&answer.value, QueryValue::Vector(series) if series.len() == 1));
        assert_eq!(answer.warnings.len(), 2, "{:?}", answer.warnings);
        assert!(answer.warnings[0].ends_with(
            "a.om: line 2, column 4: expected a number after the series, found the end of the line; the line was left out"
        ));
        assert!(answer.warnings[1].contains("gone.om"));
    }

    #[tokio::test]
    async fn a_damaged_archive_gives_the_samples_before_the_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.om.gz");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        for at in 0..100 {
            std::io::Write::write_all(&mut encoder, format!("up {at} {}\n", 1_700_000_000 + at).as_bytes()).unwrap();
        }
        let mut archive = encoder.finish().unwrap();
        // The check sum at the end, and no more.
        archive.truncate(archive.len() - 8);
        std::fs::write(&path, archive).unwrap();
        let source = OpenMetricsFiles::load("files/metrics", &[path]).unwrap();
        let answer = source.instant("up", second(1_700_000_099)).await.unwrap();
        assert!(matches!(&answer.value, QueryValue::Vector(series) if series.len() == 1));
        let warning = &answer.warnings[0];
        assert!(warning.contains("a.om.gz: the gzip archive is damaged or cut off at byte "), "{warning}");
        assert!(warning.ends_with("; what came before is used"), "{warning}");
    }

    #[test]
    fn no_readable_file_at_all_is_an_error() {
        let error = OpenMetricsFiles::load("files/metrics", &[PathBuf::from("/nowhere/a.om")]).unwrap_err();
        assert_eq!(error.kind, FailureKind::Unavailable);
        assert!(error.message.starts_with("cannot read /nowhere/a.om: "), "{}", error.message);
    }

    #[tokio::test]
    async fn one_series_in_two_files_is_one_series() {
        let (_folder, paths) = written(&[("b.om", "up 2 1700000060\n"), ("a.om", "up 1 1700000000\n")]);
        let source = OpenMetricsFiles::load("files/metrics", &paths).unwrap();
        let window = Window::new(second(1_700_000_000), second(1_700_000_060));
        let (series, _) = source.series("up", window).await.unwrap();
        assert_eq!(series.iter().map(|one| one.samples.len()).collect::<Vec<_>>(), [2]);
    }

    #[tokio::test]
    async fn a_query_that_is_wrong_is_the_callers_fault() {
        let source = OpenMetricsFiles::load("files/metrics", &[fixture("shop.om")]).unwrap();
        let error = source.instant("rate(up", second(0)).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::BadArguments);
        let error = source.instant("limitk(1, up)", second(0)).await.unwrap_err();
        assert_eq!(error.message, "not supported here: limitk");
    }
}
