//! Threshold, value and unit of an alert, read from its text in English and Chinese, its value annotations and the
//! comparison in its expression.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::Alert;

/// What an alert says was measured.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Measured {
    pub threshold: Option<f64>,
    pub value: Option<f64>,
    pub unit: Option<String>,
}

const NUMBER: &str = r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?";
const UNIT: &str = r"%|％|ms|毫秒|µs|us|[KMGT]i?B|bytes?|字节|seconds?|sec|s|秒|minutes?|mins?|m|分钟|hours?|h|小时|days?|d|天|cores?|核|qps|rps|req/s|/s";

static QUANTITY: LazyLock<Regex> = LazyLock::new(|| {
    // Constants that the tests compile, as are those below.
    Regex::new(&format!(r"({NUMBER})\s*({UNIT})?")).expect("constant")
});
static THRESHOLD: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"threshold(?:\s+(?:of|is|was))?|limit(?:\s+(?:of|is))?|exceed(?:s|ed|ing)?|(?:is\s+)?(?:above|over|below|under|greater than|less than|more than|fewer than)|>=?|<=?|超过(?:了)?(?:阈值|上限)?|高于(?:阈值)?|低于(?:阈值)?|大于|小于|阈值|上限|不足";
    Regex::new(&format!(r"(?i)(?:{words})\s*(?:为|是)?\s*[:：=]?\s*({NUMBER})\s*({UNIT})?")).expect("constant")
});
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let words = r"current(?:ly)?(?:\s+value)?(?:\s+(?:is|of|at))?|value(?:\s+(?:is|of))?|(?:is|was|reached|hit|at)\s+(?:now\s+)?|当前(?:值|使用率)?|现(?:在|为)|达到?|比例|已?为|是";
    Regex::new(&format!(r"(?i)(?:{words})\s*(?:为|是)?\s*[:：=]?\s*({NUMBER})\s*({UNIT})?")).expect("constant")
});
/// `over the last 5 minutes`, `最近 5 分钟`, `for 10m`: the window of the rule, not a figure.
static SPAN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)(?:(?:over|in|for|during|within|past|last|the)\s+)+(?:the\s+)?(?:last\s+|past\s+)?(?:\d+\s*(?:m|min|mins|minutes?|h|hours?|s|seconds?|d|days?)\b|minute|hour)|(?:最近|过去|持续(?:了)?|近)\s*\d+\s*(?:分钟|小时|秒|天)|p9\d(?:\.\d+)?|\bp50\b|5xx|\b[45]\d\d\b(?:\s*(?:的)?(?:比例|错误|errors?))?").expect("constant")
});

/// Reads the text first, since there value and threshold share a unit; what it does not say is taken from the value
/// that the payload carries and from the condition of the expression.
pub(super) fn measure(alert: &Alert, condition: Option<f64>) -> Measured {
    let text = prose(alert);
    let mut measured = read(&text);
    let carried = carried_value(alert);
    let is_percent = measured.unit.as_deref() == Some("%");
    if measured.value.is_none() {
        measured.value = carried.map(|value| scaled(value, is_percent));
    }
    if measured.threshold.is_none() {
        measured.threshold = condition.map(|value| scaled(value, is_percent));
    }
    measured
}

/// A share becomes a percentage where the text speaks of percent.
fn scaled(value: f64, is_percent: bool) -> f64 {
    if is_percent && value.abs() <= 1.0 { value * 100.0 } else { value }
}

/// The texts written for people, without those that hold addresses or expressions.
fn prose(alert: &Alert) -> String {
    let mut text = String::new();
    let first = ["description", "summary", "message", "title"];
    let ordered = first
        .iter()
        .filter_map(|key| alert.annotations.get(*key))
        .chain(alert.annotations.iter().filter(|(key, _)| !first.contains(&key.as_str())).map(|(_, value)| value));
    for value in ordered.filter(|value| !value.contains("://") && !value.contains('{')).chain([&alert.name]) {
        text.push_str(value);
        text.push('\n');
    }
    // An expression in a text loses its selector, not the figures after it.
    for value in alert.annotations.values().filter(|value| value.contains('{') && !value.contains("://")) {
        if let Some((_, rest)) = value.rsplit_once('}') {
            text.push_str(rest);
            text.push('\n');
        }
    }
    SPAN.replace_all(&text, " ").into_owned()
}

fn read(text: &str) -> Measured {
    let threshold = THRESHOLD.captures(text).and_then(|found| quantity(&found));
    // Blanked, so that the threshold is not read again as the value; the length stays.
    let rest = THRESHOLD.replace_all(text, " ; ").into_owned();
    let unit = threshold.as_ref().and_then(|(_, unit)| unit.clone());
    let mut candidates =
        VALUE.captures_iter(&rest).chain(QUANTITY.captures_iter(&rest)).filter_map(|found| quantity(&found));
    let value = match &unit {
        Some(unit) => candidates.find(|(_, other)| other.as_ref() == Some(unit)),
        None if threshold.is_some() => VALUE.captures_iter(&rest).find_map(|found| quantity(&found)),
        None => candidates
            .find(|(_, unit)| unit.is_some())
            .or_else(|| VALUE.captures(&rest).and_then(|found| quantity(&found))),
    };
    let unit = unit.or_else(|| value.as_ref().and_then(|(_, unit)| unit.clone()));
    Measured { threshold: threshold.map(|(number, _)| number), value: value.map(|(number, _)| number), unit }
}

fn quantity(found: &regex::Captures<'_>) -> Option<(f64, Option<String>)> {
    let number: f64 = found.get(1)?.as_str().replace(',', "").parse().ok()?;
    let unit = found.get(2).map(|unit| normal_unit(unit.as_str()));
    number.is_finite().then_some((number, unit))
}

/// One spelling per unit.
fn normal_unit(unit: &str) -> String {
    match unit.to_lowercase().as_str() {
        "％" => "%".into(),
        "毫秒" => "ms".into(),
        "秒" | "sec" | "second" | "seconds" => "s".into(),
        "字节" | "byte" => "bytes".into(),
        "minute" | "minutes" | "min" | "mins" | "分钟" => "m".into(),
        "hour" | "hours" | "小时" => "h".into(),
        "day" | "days" | "天" => "d".into(),
        "核" | "core" => "cores".into(),
        "rps" | "req/s" | "/s" | "qps" => "/s".into(),
        _ => unit.to_string(),
    }
}

/// The value that the payload carries by itself: `"value": "1.58e-01"`, or Grafana's `B=0.23`.
fn carried_value(alert: &Alert) -> Option<f64> {
    ["value", "current_value", "currentValue", "values", "valueString"].iter().find_map(|key| {
        let text = alert.annotations.get(*key)?;
        text.trim().parse().ok().or_else(|| last_number(text)).filter(|value: &f64| value.is_finite())
    })
}

fn last_number(text: &str) -> Option<f64> {
    let (_, tail) = text.rsplit_once(['=', ':'])?;
    QUANTITY.captures(tail)?.get(1)?.as_str().parse().ok()
}
