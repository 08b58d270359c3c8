//! Reading single fields of a payload: tolerant of absent, null and oddly typed values.

use std::collections::BTreeMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::domain::Severity;

/// The name of an alert that has none.
pub const UNNAMED: &str = "(unnamed alert)";

/// The text of a scalar; `None` for null, blank text, lists and objects.
pub fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        _ => None,
    }
}

/// The text of the first of these fields that has one.
pub fn text(value: &Value, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| scalar(value.get(key)?))
}

/// A map of texts, from an object or a list of pairs; lists and objects in it are kept as JSON, nulls and blanks are
/// left out.
pub fn text_map(value: Option<&Value>) -> BTreeMap<String, String> {
    match value {
        Some(Value::Object(map)) => {
            map.iter().filter_map(|(key, value)| Some((key.clone(), any_text(value)?))).collect()
        }
        Some(Value::Array(items)) => items.iter().filter_map(pair).collect(),
        _ => BTreeMap::new(),
    }
}

/// A label as an item of a list: `{"name": …, "value": …}` (or with `key`), `{"service": "cart"}`, `"service=cart"`,
/// `"service:cart"`.
pub fn pair(item: &Value) -> Option<(String, String)> {
    match item {
        Value::Object(object) => {
            let name = ["name", "key", "label"].iter().find_map(|key| scalar(object.get(*key)?));
            match (name, object.get("value"), object.len()) {
                (Some(name), Some(value), _) => Some((name, any_text(value)?)),
                (_, _, 1) => object.iter().next().and_then(|(key, value)| Some((key.clone(), any_text(value)?))),
                _ => None,
            }
        }
        Value::String(text) => {
            let (name, value) = text.split_once('=').or_else(|| text.split_once(':'))?;
            let (name, value) = (name.trim(), value.trim().trim_matches('"'));
            let is_name = !name.is_empty() && !name.contains(char::is_whitespace);
            (is_name && !value.is_empty()).then(|| (name.to_string(), value.to_string()))
        }
        _ => None,
    }
}

/// Whether a field of a time says one, or says that there is none: null, blank, zero, the year 1.
pub fn is_time(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => {
            let text = text.trim();
            text.is_empty() || instant(text).is_some() || text.parse::<Timestamp>().is_ok() || text == "0"
        }
        Value::Number(number) => number.as_f64().is_some_and(|number| number == 0.0 || epoch(number).is_some()),
        _ => false,
    }
}

/// As [`scalar`], with lists and objects as JSON.
pub fn any_text(value: &Value) -> Option<String> {
    match value {
        Value::Array(items) if items.is_empty() => None,
        Value::Object(map) if map.is_empty() => None,
        Value::Array(_) | Value::Object(_) => Some(value.to_string()),
        value => scalar(value),
    }
}

/// The instant of the first of these fields that holds one.
pub fn time(value: &Value, keys: &[&str]) -> Option<Timestamp> {
    keys.iter().find_map(|key| match value.get(key)? {
        Value::String(text) => instant(text),
        Value::Number(number) => epoch(number.as_f64()?),
        _ => None,
    })
}

/// RFC 3339, or the same without a zone (UTC), or digits since the epoch. Year 1, which Alertmanager and Grafana
/// send for "not yet", is no instant.
pub fn instant(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let parsed = text
        .parse::<Timestamp>()
        .ok()
        .or_else(|| {
            let civil = text.parse::<jiff::civil::DateTime>().ok()?;
            TimeZone::UTC.to_timestamp(civil).ok()
        })
        .or_else(|| epoch(text.parse::<f64>().ok()?))?;
    (parsed > Timestamp::UNIX_EPOCH).then_some(parsed)
}

/// Seconds, milliseconds, microseconds or nanoseconds since the epoch, told apart by their size.
fn epoch(number: f64) -> Option<Timestamp> {
    let seconds = match number.abs() {
        n if n < 1e8 || !n.is_finite() => return None,
        n if n < 1e11 => number,
        n if n < 1e14 => number / 1e3,
        n if n < 1e17 => number / 1e6,
        _ => number / 1e9,
    };
    Timestamp::from_millisecond((seconds * 1e3).round() as i64).ok()
}

/// The severity that a word means in any common scheme.
pub fn severity(text: &str) -> Option<Severity> {
    match text.trim().to_lowercase().as_str() {
        "critical" | "crit" | "page" | "emergency" | "emerg" | "fatal" | "disaster" | "p1" | "p0" | "sev0" | "sev1"
        | "s1" | "blocker" | "紧急" | "严重" | "致命" | "危急" => Some(Severity::Critical),
        "error" | "err" | "major" | "high" | "p2" | "sev2" | "s2" | "错误" | "重要" | "高" => {
            Some(Severity::Error)
        }
        "warning" | "warn" | "minor" | "average" | "medium" | "moderate" | "p3" | "sev3" | "s3" | "警告" | "中"
        | "次要" => Some(Severity::Warning),
        "info" | "information" | "informational" | "notice" | "low" | "none" | "debug" | "p4" | "p5" | "sev4"
        | "sev5" | "提示" | "通知" | "低" => Some(Severity::Info),
        _ => None,
    }
}

/// 16 hexadecimal digits over a label set, or over a text where there are no labels.
pub fn fingerprint(labels: &BTreeMap<String, String>, otherwise: &str) -> String {
    let mut hasher = blake3::Hasher::new();
    for (key, value) in labels {
        // Lengths keep ("ab", "c") and ("a", "bc") apart.
        for part in [key, value] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
    }
    if labels.is_empty() {
        hasher.update(otherwise.as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_string()
}
