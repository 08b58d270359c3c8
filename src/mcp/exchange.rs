//! What passes between oncall as a server and oncall as a client of it: the values of PromQL in the shape of the
//! Prometheus HTTP API, and logs. Both directions stand here, so that they cannot drift apart.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::domain::{LogEvent, Sample, Series, value_text};
use crate::source::QueryValue;

/// Tools of the servers by their names, and what a client that binds a source needs of them.
pub const SEARCH_LOG: &str = "search_log";
pub const SEARCH_TOPIC: &str = "search_topic_by_service_name";
pub const QUERY_METRICS: &str = "query_metrics";
pub const LIST_METRICS: &str = "list_metrics";
pub const WORKLOAD_STATUS: &str = "workload_status";
pub const RECENT_CHANGES: &str = crate::tool::changes::NAME;

/// A part of what was logged, in order of time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogPage {
    pub source: String,
    pub events: Vec<LogEvent>,
    /// Events in all that match.
    pub total: usize,
    /// Where the next part begins, when there is one.
    pub next_offset: Option<usize>,
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether a cap of the source left events out.
    #[serde(default)]
    pub truncated: bool,
}

/// `resultType` and `result`, as the HTTP API has them.
pub fn to_json(value: &QueryValue) -> (&'static str, Value) {
    match value {
        QueryValue::Scalar(sample) => ("scalar", pair(*sample)),
        QueryValue::String(at, text) => ("string", json!([seconds(*at), text])),
        QueryValue::Vector(all) => {
            let one = |series: &Series| {
                let sample = series.samples.last().map(|sample| pair(*sample));
                json!({"metric": series.labels, "value": sample})
            };
            ("vector", all.iter().map(one).collect())
        }
        QueryValue::Matrix(all) => {
            let one = |series: &Series| {
                let values: Vec<Value> = series.samples.iter().map(|sample| pair(*sample)).collect();
                json!({"metric": series.labels, "values": values})
            };
            ("matrix", all.iter().map(one).collect())
        }
    }
}

fn pair(sample: Sample) -> Value {
    json!([seconds(sample.at), value_text(sample.value)])
}

fn seconds(at: Timestamp) -> f64 {
    at.as_millisecond() as f64 / 1000.0
}

/// The value of an answer with `resultType` and `result`; `None` where they are not in that shape.
pub fn from_json(answer: &Value) -> Option<QueryValue> {
    let result = &answer["result"];
    match answer["resultType"].as_str()? {
        "scalar" => sample(result).map(QueryValue::Scalar),
        "string" => Some(QueryValue::String(at(&result[0])?, result[1].as_str()?.to_owned())),
        "vector" => all(result, |one| Some(vec![sample(&one["value"])?])).map(QueryValue::Vector),
        "matrix" => all(result, |one| one["values"].as_array()?.iter().map(sample).collect()).map(QueryValue::Matrix),
        _ => None,
    }
}

fn all(result: &Value, samples: impl Fn(&Value) -> Option<Vec<Sample>>) -> Option<Vec<Series>> {
    let series = |one: &Value| {
        let labels = serde_json::from_value(one["metric"].clone()).ok()?;
        Some(Series { labels, samples: samples(one)? })
    };
    result.as_array()?.iter().map(series).collect()
}

fn sample(pair: &Value) -> Option<Sample> {
    // `+Inf`, `-Inf` and `NaN` parse as they are.
    Some(Sample { at: at(&pair[0])?, value: pair[1].as_str()?.parse().ok()? })
}

fn at(seconds: &Value) -> Option<Timestamp> {
    Timestamp::from_millisecond((seconds.as_f64()? * 1000.0).round() as i64).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_comes_back_as_it_was() {
        let at: Timestamp = "2026-03-04T06:30:00.125Z".parse().unwrap();
        let labels = [("__name__".to_owned(), "up".to_owned()), ("a".to_owned(), "\"\\".to_owned())];
        let series = |values: &[f64]| Series {
            labels: labels.clone().into(),
            samples: values.iter().map(|&value| Sample { at, value }).collect(),
        };
        for value in [
            QueryValue::Scalar(Sample { at, value: 0.1 }),
            QueryValue::String(at, "x".into()),
            QueryValue::Vector(vec![series(&[f64::INFINITY])]),
            QueryValue::Matrix(vec![series(&[1e-9, f64::NEG_INFINITY, 1.797e308, 12.0])]),
            QueryValue::Matrix(Vec::new()),
        ] {
            let (kind, result) = to_json(&value);
            assert_eq!(from_json(&json!({"resultType": kind, "result": result})), Some(value));
        }
        let (kind, result) = to_json(&QueryValue::Scalar(Sample { at, value: f64::NAN }));
        let Some(QueryValue::Scalar(sample)) = from_json(&json!({"resultType": kind, "result": result})) else {
            panic!()
        };
        assert!(sample.value.is_nan());
    }

    #[test]
    fn what_is_in_another_shape_is_no_value() {
        for answer in [
            json!({}),
            json!({"resultType": "matrix", "result": {}}),
            json!({"resultType": "scalar", "result": [1, 2]}),
        ] {
            assert_eq!(from_json(&answer), None);
        }
    }
}
