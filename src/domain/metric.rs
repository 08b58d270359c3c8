//! Time series, and what an analysis says of one.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One measured value. `value` may be NaN or infinite, as in Prometheus.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub at: Timestamp,
    pub value: f64,
}

/// A labelled series, samples in order of time. The metric name, when there is one, is the label `__name__`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    pub labels: BTreeMap<String, String>,
    pub samples: Vec<Sample>,
}

impl Series {
    /// The metric name, or the empty text for a computed series.
    pub fn name(&self) -> &str {
        self.labels.get("__name__").map_or("", String::as_str)
    }
}

/// The type that the metric's metadata declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MetricType {
    Counter,
    Gauge,
    Histogram,
    Summary,
    Unknown,
}

/// What a source knows about one metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MetricInfo {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: MetricType,
    pub help: String,
    pub unit: String,
    /// Number of series in the window asked.
    pub series: usize,
    /// Label names with up to five of their values.
    pub labels: BTreeMap<String, Vec<String>>,
}

/// The form of a series over the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeriesShape {
    /// Nothing that stands out of its own noise.
    Flat,
    /// Left its baseline and came back.
    Spike,
    /// Fell out of its baseline and came back.
    Dip,
    /// Moved to another level and stayed.
    Step,
    /// Grows or falls steadily.
    Ramp,
    /// Holds at a ceiling (a limit, 100 %, a pool size).
    Saturated,
    /// Had samples, has none at the end.
    Absent,
}

/// An instant at which the level of a series changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChangePoint {
    #[schemars(with = "String")]
    pub at: Timestamp,
    /// Mean level before and after.
    pub before: f64,
    pub after: f64,
}

/// What an analysis says of one series over a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesSummary {
    /// The expression asked; for a ranked raw series its selector, wrapped in `rate(...)` where it is a counter.
    pub expr: String,
    pub labels: BTreeMap<String, String>,
    /// Median before the onset (over the whole window when there is none).
    pub baseline: f64,
    /// The value farthest from the baseline, and when.
    pub peak: f64,
    #[schemars(with = "Option<String>")]
    pub peak_at: Option<Timestamp>,
    /// The last value; `None` when the series ended before the window did.
    pub now: Option<f64>,
    pub shape: SeriesShape,
    /// When it left its baseline.
    #[schemars(with = "Option<String>")]
    pub onset: Option<Timestamp>,
    pub change_points: Vec<ChangePoint>,
    /// Distance of the peak from the median, in interquartile ranges of the time before the onset.
    pub score: f64,
    /// Number of samples seen.
    pub samples: usize,
    /// At most 240 points `[unix seconds, value]` for plots; non-finite values are left out.
    pub points: Vec<(i64, f64)>,
}

impl SeriesSummary {
    /// Whether the series moved upwards from its baseline.
    pub fn rose(&self) -> bool {
        self.peak > self.baseline
    }
}

/// A service that may be where the trouble started, as its metrics and the service graph see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedService {
    pub service: String,
    /// Higher is more likely the cause; comparable within one answer only.
    pub score: f64,
    /// The earliest onset among its anomalous series.
    #[schemars(with = "Option<String>")]
    pub onset: Option<Timestamp>,
    /// Expressions of its anomalous series, most anomalous first, at most 8.
    pub anomalous: Vec<String>,
    /// Why it stands where it stands, in one sentence.
    pub reason: String,
}
