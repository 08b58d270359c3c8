//! The JSON of the Prometheus HTTP API (https://prometheus.io/docs/prometheus/latest/querying/api/), as it arrives from
//! Prometheus, Thanos, Mimir and VictoriaMetrics, and what it becomes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::de::{Deserializer, Error};

use crate::domain::{FailureKind, Sample, Series};
use crate::source::rest::RestError;
use crate::source::{QueryValue, SourceError};

/// What every answer is wrapped in.
#[derive(Debug, Deserialize)]
pub struct Envelope<T> {
    pub data: Option<T>,
    #[serde(default)]
    pub warnings: Option<Vec<String>>,
    #[serde(default)]
    pub infos: Option<Vec<String>>,
    /// Beside `status: error` in a 200, as some proxies pass it on.
    pub error: Option<String>,
}

/// What a query gave.
#[derive(Debug, Deserialize)]
#[serde(tag = "resultType", content = "result", rename_all = "lowercase")]
pub enum QueryData {
    Scalar(Point),
    String((f64, String)),
    Vector(Vec<Instant>),
    Matrix(Vec<Range>),
}

/// `[seconds, "value"]`.
#[derive(Debug, Clone, Copy)]
pub struct Point(Sample);

impl<'de> Deserialize<'de> for Point {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (seconds, text) = <(f64, Text<'de>)>::deserialize(deserializer)?;
        // Rust reads `NaN`, `+Inf` and `-Inf` as Prometheus writes them.
        let value = text.0.parse().map_err(|_| D::Error::custom(format!("`{}` is no sample value", text.0)))?;
        let at = time(seconds).ok_or_else(|| D::Error::custom(format!("{seconds} is no time")))?;
        Ok(Self(Sample { at, value }))
    }
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[derive(Debug, Deserialize)]
pub struct Instant {
    pub metric: BTreeMap<String, String>,
    /// Absent for a native histogram.
    pub value: Option<Point>,
}

#[derive(Debug, Deserialize)]
pub struct Range {
    pub metric: BTreeMap<String, String>,
    #[serde(default)]
    pub values: Vec<Point>,
}

/// Unix seconds with a fraction of at most milliseconds.
pub fn time(seconds: f64) -> Option<Timestamp> {
    let milliseconds = (seconds * 1000.0).round();
    (milliseconds.abs() < 9.2e15).then(|| Timestamp::from_millisecond(milliseconds as i64).ok()).flatten()
}

impl QueryData {
    /// The value, and how many series were native histograms, which have no samples.
    pub fn into_value(self) -> (QueryValue, usize) {
        match self {
            Self::Scalar(point) => (QueryValue::Scalar(point.0), 0),
            Self::String((seconds, text)) => (QueryValue::String(time(seconds).unwrap_or_default(), text), 0),
            Self::Vector(all) => {
                let found = all.len();
                let series: Vec<Series> = all
                    .into_iter()
                    .filter_map(|one| Some(Series { labels: one.metric, samples: vec![one.value?.0] }))
                    .collect();
                let histograms = found - series.len();
                (QueryValue::Vector(series), histograms)
            }
            Self::Matrix(all) => {
                let found = all.len();
                let series: Vec<Series> = all.into_iter().filter_map(series_of_range).collect();
                let histograms = found - series.len();
                (QueryValue::Matrix(series), histograms)
            }
        }
    }
}

fn series_of_range(range: Range) -> Option<Series> {
    let samples: Vec<Sample> = range.values.into_iter().map(|point| point.0).collect();
    (!samples.is_empty()).then_some(Series { labels: range.metric, samples })
}

/// An error of the API says what was wrong with the question; everything else is of the transport.
pub fn explained(error: RestError) -> SourceError {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ApiError {
        error_type: Option<String>,
        error: String,
    }
    let Some(said) = error.body().and_then(|body| serde_json::from_str::<ApiError>(body).ok()) else {
        return error.into();
    };
    let kind = match (said.error_type.as_deref(), error.status()) {
        (Some("timeout"), _) => FailureKind::Timeout,
        // An expression that cannot be evaluated (many-to-many matching, too many samples) is the caller's to mend.
        (Some("bad_data" | "execution"), _) | (_, Some(400 | 422)) => FailureKind::BadArguments,
        _ => return error.into(),
    };
    SourceError::new(kind, said.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::HttpError;

    fn value(json: &str) -> (QueryValue, usize) {
        serde_json::from_str::<Envelope<QueryData>>(json).unwrap().data.unwrap().into_value()
    }

    fn sample(milliseconds: i64, value: f64) -> Sample {
        Sample { at: Timestamp::from_millisecond(milliseconds).unwrap(), value }
    }

    #[test]
    fn values_are_texts_and_histograms_are_counted() {
        let json = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"a":"b\"c"},"value":[1.5,"+Inf"]},{"metric":{},"histogram":[1.5,{}]}]}}"#;
        let labels = BTreeMap::from([("a".to_owned(), "b\"c".to_owned())]);
        let series = Series { labels, samples: vec![sample(1500, f64::INFINITY)] };
        assert_eq!(value(json), (QueryValue::Vector(vec![series]), 1));
        let (nan, _) = value(r#"{"data":{"resultType":"scalar","result":[1796023.123,"NaN"]}}"#);
        assert!(
            matches!(nan, QueryValue::Scalar(Sample { at, value }) if value.is_nan() && at.as_millisecond() == 1_796_023_123)
        );
        let (matrix, _) = value(r#"{"data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"-0.5"]]}]}}"#);
        assert_eq!(matrix, QueryValue::Matrix(vec![Series { samples: vec![sample(1000, -0.5)], ..Series::default() }]));
        let (text, _) = value(r#"{"data":{"resultType":"string","result":[1,"x"]}}"#);
        assert_eq!(text, QueryValue::String(Timestamp::from_second(1).unwrap(), "x".into()));
    }

    #[test]
    fn an_error_of_the_api_is_told_in_its_own_words() {
        let said = |status: u16, body: &str| {
            let error = HttpError::Status { url: "http://p".into(), status, body: body.into(), retry_after: None };
            let error = explained(error.into());
            (error.kind, error.message)
        };
        let body = r#"{"status":"error","errorType":"bad_data","error":"parse error: unclosed left brace"}"#;
        assert_eq!(said(400, body), (FailureKind::BadArguments, "parse error: unclosed left brace".into()));
        let late = r#"{"status":"error","errorType":"timeout","error":"query timed out"}"#;
        assert_eq!(said(503, late).0, FailureKind::Timeout);
        let (kind, message) = said(500, "oops");
        assert_eq!((kind, message.as_str()), (FailureKind::SourceError, "http://p answered 500: oops"));
    }
}
