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

/// Labels that name the service a series is about, the most telling first.
pub const SERVICE_LABELS: &[&str] = &[
    "exported_service",
    "service",
    "service_name",
    "microservice",
    "destination_workload",
    "destination_service_name",
    "app_kubernetes_io_name",
    "app",
    "application",
    "svc",
    "deployment",
    "statefulset",
    "daemonset",
    "workload",
    "owner_name",
    "container",
    "container_name",
    "exported_job",
    "job",
    "component",
];

/// Labels that name a place where no service is named.
const PLACE_LABELS: &[&str] = &["node", "nodename", "host", "hostname", "instance"];

/// Names of those that measure, not of what is measured: they count only when no other label says more.
const EXPORTERS: &[&str] = &[
    "kube-state-metrics",
    "node-exporter",
    "node_exporter",
    "cadvisor",
    "kubelet",
    "blackbox",
    "blackbox-exporter",
    "pushgateway",
    "otel-collector",
    "kubernetes-pods",
    "kubernetes-nodes",
    "kubernetes-cadvisor",
    "kubernetes-service-endpoints",
    "POD",
    "istio-proxy",
];

/// The service that a series is about: what its labels name, else the pod's workload, else the node or instance.
pub fn service_of(labels: &BTreeMap<String, String>) -> Option<String> {
    let value = |name: &&str| labels.get(*name).map(|value| value.trim()).filter(|value| !value.is_empty());
    let is_exporter = |name: &&str| EXPORTERS.contains(name);
    let named = SERVICE_LABELS.iter().filter_map(value).find(|name| !is_exporter(name));
    if let Some(name) = named {
        return Some(name.to_owned());
    }
    if let Some(pod) = ["exported_pod", "pod", "pod_name"].iter().filter_map(value).next() {
        return Some(workload_of_pod(pod).to_owned());
    }
    if let Some(place) = PLACE_LABELS.iter().filter_map(value).next() {
        return Some(place.rsplit_once(':').map_or(place, |(host, _)| host).to_owned());
    }
    SERVICE_LABELS.iter().filter_map(value).next().map(str::to_owned)
}

/// The pod's name without what its controllers append: the hash of a replica set and the random suffix of a pod
/// (both without vowels, so that no word is taken for one), or the ordinal of a stateful set.
fn workload_of_pod(pod: &str) -> &str {
    let is_suffix = |part: &str| part.len() == 5 && part.chars().all(is_generated);
    let is_hash = |part: &str| (6..=10).contains(&part.len()) && part.chars().all(is_generated);
    match pod.rsplit_once('-') {
        Some((rest, suffix)) if is_suffix(suffix) => match rest.rsplit_once('-') {
            Some((name, hash)) if is_hash(hash) => name,
            _ => rest,
        },
        Some((rest, ordinal)) if !ordinal.is_empty() && ordinal.chars().all(|c| c.is_ascii_digit()) => rest,
        _ => pod,
    }
}

/// Whether Kubernetes uses the character in names that it makes (its alphabet also spells hashes in hexadecimal).
fn is_generated(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, 'a'..='f') || (c.is_ascii_lowercase() && !matches!(c, 'i' | 'o' | 'u'))
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

/// A value as Prometheus writes it.
pub fn value_text(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() }
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(labels: &[(&str, &str)]) -> Option<String> {
        service_of(&labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_service_is_named_by_the_most_telling_label() {
        for (labels, want) in [
            (&[("service", "cart"), ("job", "pods")][..], Some("cart")),
            (&[("service_name", "cart"), ("pod", "x-1")], Some("cart")),
            (&[("microservice", "PetSearch_AWS::ECS::Fargate")], Some("PetSearch_AWS::ECS::Fargate")),
            (&[("job", "cart"), ("instance", "10.0.0.1:8080")], Some("cart")),
            (&[("container", "cart"), ("pod", "cart-7d9f8b6c5d-x2x4q")], Some("cart")),
            (&[("service", "kube-state-metrics"), ("job", "kube-state-metrics"), ("deployment", "cart")], Some("cart")),
            (&[("job", "node-exporter"), ("instance", "worker-3:9100")], Some("worker-3")),
            (&[("pod", "order-service-7d9f8b6c5d-x2x4q")], Some("order-service")),
            (&[("pod", "mysql-0")], Some("mysql")),
            (&[("container", "POD"), ("pod", "fluentd-x2x4q")], Some("fluentd")),
            (&[("pod", "order-service")], Some("order-service")),
            (&[("service", " "), ("path", "/x")], None),
        ] {
            assert_eq!(service(labels).as_deref(), want, "{labels:?}");
        }
    }
}
