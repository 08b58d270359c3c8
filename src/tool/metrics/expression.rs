//! From what a source knows about a metric to the expressions worth looking at: counters as rates, histograms as the
//! rate of their count, their mean and their 99th percentile, gauges as they are.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;

use crate::analysis::rank::Signal;
use crate::domain::{MetricInfo, MetricType};

/// Endings of names whose values say nothing about a service's course.
const UNTOLD: &[&str] = &["_created", "_info"];

/// The matchers of a series selector, without the braces: `{a="b"}`, `a="b"`, `name` and `name{a="b"}` are all read.
pub(super) fn matchers(selector: &str) -> String {
    let selector = selector.trim();
    let (name, inner) = match selector.split_once('{') {
        Some((name, rest)) => (name.trim(), rest.trim_end().trim_end_matches('}').trim()),
        None if selector.contains('=') || selector.contains('~') => ("", selector),
        None => (selector, ""),
    };
    let inner = inner.trim_end_matches(',');
    match (name, inner) {
        ("", inner) => inner.to_owned(),
        (name, "") => name_matcher(name),
        (name, inner) => format!("{},{inner}", name_matcher(name)),
    }
}

fn name_matcher(name: &str) -> String {
    equals("__name__", name)
}

/// `label="value"`, with what PromQL wants escaped.
pub(super) fn equals(label: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("{label}=\"{value}\"")
}

/// A selector of the metric `name` with further matchers.
fn selector(name: &str, matchers: &str) -> String {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        && !name.starts_with(|c: char| c.is_ascii_digit());
    match (is_plain && !matchers.contains("__name__"), matchers.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{name}{{{matchers}}}"),
        (false, true) => format!("{{{}}}", name_matcher(name)),
        (false, false) => format!("{{{},{matchers}}}", name_matcher(name)),
    }
}

/// How a metric is asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    Raw(String),
    Rate(String),
    /// Of a histogram or summary: its sum and its count.
    Mean(String, String),
    /// Of a histogram's buckets.
    Quantile(String),
}

impl Form {
    /// The expression for the series that match.
    pub fn text(&self, matchers: &str, range: SignedDuration) -> String {
        let rate = |name: &str| format!("rate({}[{}s])", selector(name, matchers), range.as_secs());
        match self {
            Self::Raw(name) => selector(name, matchers),
            Self::Rate(name) => rate(name),
            Self::Mean(sum, count) => format!("{} / {}", rate(sum), rate(count)),
            Self::Quantile(buckets) => format!("histogram_quantile(0.99, {})", rate(buckets)),
        }
    }

    /// The expression for this one series.
    pub fn of_series(&self, labels: &BTreeMap<String, String>, range: SignedDuration) -> String {
        let matchers: Vec<String> = labels
            .iter()
            .filter(|(label, _)| *label != "__name__" && *label != "le")
            .map(|(label, value)| equals(label, value))
            .collect();
        self.text(&matchers.join(","), range)
    }
}

/// Endings of counters whose type nobody declared; older exporters leave `_total` out.
const COUNTED: [&str; 6] = ["_total", "_requests", "_errors", "_failures", "_hits", "_misses"];

/// The forms in which `metrics` are asked, the most telling signals first.
pub(super) fn forms(metrics: &[MetricInfo]) -> Vec<Form> {
    let names: BTreeSet<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
    let mut found: Vec<Form> = metrics.iter().filter_map(|metric| form(metric, &names)).collect();
    found.sort_by_key(|form| Signal::of(&form.text("", SignedDuration::ZERO)));
    found
}

fn form(metric: &MetricInfo, names: &BTreeSet<&str>) -> Option<Form> {
    let name = metric.name.as_str();
    if UNTOLD.iter().any(|ending| name.ends_with(ending)) {
        return None;
    }
    let sibling =
        |base: &str, ending: &str| Some(format!("{base}{ending}")).filter(|name| names.contains(name.as_str()));
    let has_buckets = metric.kind == MetricType::Histogram || metric.labels.contains_key("le");
    if name.ends_with("_bucket") && has_buckets {
        return Some(Form::Quantile(name.to_owned()));
    }
    if let Some(base) = name.strip_suffix("_sum")
        && let Some(count) = sibling(base, "_count")
    {
        return Some(Form::Mean(name.to_owned(), count));
    }
    let counts = match metric.kind {
        MetricType::Counter | MetricType::Histogram => true,
        MetricType::Summary => name.ends_with("_count"),
        MetricType::Gauge => false,
        MetricType::Unknown => {
            COUNTED.iter().any(|ending| name.ends_with(ending))
                || name.strip_suffix("_count").is_some_and(|base| sibling(base, "_sum").is_some())
        }
    };
    Some(if counts { Form::Rate(name.to_owned()) } else { Form::Raw(name.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(name: &str, kind: MetricType) -> MetricInfo {
        MetricInfo {
            name: name.into(),
            kind,
            help: String::new(),
            unit: String::new(),
            series: 1,
            labels: BTreeMap::new(),
        }
    }

    #[test]
    fn selectors_are_read_in_every_form() {
        for (text, want) in [
            ("{a=\"b\"}", "a=\"b\""),
            ("a=\"b\", c=~\"d.*\",", "a=\"b\", c=~\"d.*\""),
            ("up", "__name__=\"up\""),
            (" up{ a=\"b\" } ", "__name__=\"up\",a=\"b\""),
            ("{}", ""),
            ("", ""),
        ] {
            assert_eq!(matchers(text), want, "{text}");
        }
        assert_eq!(equals("path", "C:\\\"x\""), "path=\"C:\\\\\\\"x\\\"\"");
    }

    #[test]
    fn each_type_is_asked_in_its_way_and_errors_come_first() {
        let metrics = [
            metric("build_info", MetricType::Gauge),
            metric("queue_depth", MetricType::Gauge),
            metric("http.requests", MetricType::Counter),
            metric("http_errors_total", MetricType::Unknown),
            metric("rpc_seconds_bucket", MetricType::Histogram),
            metric("rpc_seconds_count", MetricType::Histogram),
            metric("rpc_seconds_sum", MetricType::Histogram),
            metric("goods_count", MetricType::Unknown),
        ];
        let texts: Vec<String> =
            forms(&metrics).iter().map(|form| form.text("job=\"x\"", SignedDuration::from_secs(60))).collect();
        assert_eq!(
            texts,
            [
                "rate(http_errors_total{job=\"x\"}[60s])",
                "histogram_quantile(0.99, rate(rpc_seconds_bucket{job=\"x\"}[60s]))",
                "rate(rpc_seconds_sum{job=\"x\"}[60s]) / rate(rpc_seconds_count{job=\"x\"}[60s])",
                "queue_depth{job=\"x\"}",
                "rate({__name__=\"http.requests\",job=\"x\"}[60s])",
                "rate(rpc_seconds_count{job=\"x\"}[60s])",
                "goods_count{job=\"x\"}",
            ]
        );
    }

    #[test]
    fn one_series_is_named_by_its_labels() {
        let labels: BTreeMap<String, String> =
            [("__name__", "x"), ("a", "b\"c"), ("d", "e")].map(|(name, value)| (name.into(), value.into())).into();
        let text = |form: Form| form.of_series(&labels, SignedDuration::from_secs(60));
        assert_eq!(text(Form::Rate("x_total".into())), "rate(x_total{a=\"b\\\"c\",d=\"e\"}[60s])");
        assert_eq!(text(Form::Raw("x.y".into())), "{__name__=\"x.y\",a=\"b\\\"c\",d=\"e\"}");
        assert_eq!(Form::Raw("up".into()).of_series(&BTreeMap::new(), SignedDuration::ZERO), "up");
    }
}
