//! Arguments of tools: a JSON object that a model or a person wrote becomes a checked value, or a failure that says
//! what to mend. Times may be absolute, or relative to the clock of the investigation.

use std::fmt;

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer, Visitor};
use serde_json::{Map, Value};

use crate::domain::text::nearest;
use crate::domain::{Failure, FailureKind, Outcome, Output, Window};
use crate::source::SourceError;

/// The time that tools reckon with: an incident's clock, not the wall's.
#[derive(Debug, Clone)]
pub struct ToolClock {
    pub now: Timestamp,
    /// The window asked when a call names none.
    pub window: Window,
    /// The zone of times written without one.
    pub zone: TimeZone,
}

impl ToolClock {
    /// The window that a call asks for. Without a start it is as long as the default window; without an end it ends
    /// where the default window does, or now when it starts later than that.
    pub fn window_of(&self, start: Option<&TimeArgument>, end: Option<&TimeArgument>) -> Result<Window, Failure> {
        let start = start.map(|time| parse_time(&time.0, self)).transpose()?;
        let end = end.map(|time| parse_time(&time.0, self)).transpose()?;
        match (start, end) {
            (None, None) => Ok(self.window),
            (None, Some(end)) => Ok(Window::ending_at(end, self.window.duration())),
            (Some(start), None) if start < self.window.end => Ok(Window::new(start, self.window.end)),
            (Some(start), None) if start < self.now => Ok(Window::new(start, self.now)),
            (Some(start), None) => Err(bad_arguments(format!("`start` {start} is not before now, {}", self.now))),
            (Some(start), Some(end)) if start > end => {
                Err(bad_arguments(format!("`start` {start} is after `end` {end}: swap them")))
            }
            (Some(start), Some(end)) => Ok(Window::new(start, end)),
        }
    }
}

/// An instant as written in a call: a text for [`parse_time`], or a number of Unix seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeArgument(pub String);

impl<'de> Deserialize<'de> for TimeArgument {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrNumber;
        impl Visitor<'_> for TextOrNumber {
            type Value = String;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as \"2026-03-04T14:30:00+08:00\" or \"-15m\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
                Ok(text.to_owned())
            }
            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<String, E> {
                Ok(seconds.to_string())
            }
            fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<String, E> {
                Ok(seconds.to_string())
            }
            fn visit_f64<E: de::Error>(self, seconds: f64) -> Result<String, E> {
                Ok(seconds.to_string())
            }
        }
        deserializer.deserialize_any(TextOrNumber).map(Self)
    }
}

impl JsonSchema for TimeArgument {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Time".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

/// Reads an instant: RFC 3339; a date and time, or a time of day, in the clock's zone; Unix seconds or milliseconds;
/// `now`; or a distance from the clock's now (`-15m`, `now-1h30m`, `15m ago`).
pub fn parse_time(text: &str, clock: &ToolClock) -> Result<Timestamp, Failure> {
    let text = text.trim();
    read_relative(text, clock.now)
        .or_else(|| text.parse::<Timestamp>().ok())
        .or_else(|| read_unix(text))
        .or_else(|| read_civil(text, clock))
        .ok_or_else(|| {
            let shown = crate::domain::text::clean_line(text, 60);
            bad_arguments(format!(
                "cannot read the time `{shown}`: expected RFC 3339 (2026-03-04T14:30:00+08:00), Unix seconds, or a distance from now such as -15m"
            ))
        })
}

fn read_relative(text: &str, now: Timestamp) -> Option<Timestamp> {
    if text.eq_ignore_ascii_case("now") {
        return Some(now);
    }
    if let Some(distance) = text.strip_suffix("ago") {
        return now.checked_sub(parse_duration(distance.trim())?).ok();
    }
    let distance = text.strip_prefix("now").unwrap_or(text).trim_start();
    // A bare signed number is Unix seconds: a distance needs its unit.
    if !distance.ends_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    match distance.split_at_checked(1)? {
        ("-", span) => now.checked_sub(parse_duration(span.trim())?).ok(),
        ("+", span) => now.checked_add(parse_duration(span.trim())?).ok(),
        _ => None,
    }
}

/// Unix times above this are milliseconds (as seconds they would lie beyond the year 5000).
const FIRST_MILLISECONDS: f64 = 1e11;

fn read_unix(text: &str) -> Option<Timestamp> {
    let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
    let seconds = if number.abs() >= FIRST_MILLISECONDS { number / 1000.0 } else { number };
    // Whole milliseconds: more digits are an artefact of the floating point. The cast saturates, the constructor checks.
    Timestamp::from_millisecond((seconds * 1000.0).round() as i64).ok()
}

fn read_civil(text: &str, clock: &ToolClock) -> Option<Timestamp> {
    if let Ok(at) = text.parse::<DateTime>() {
        return clock.zone.to_timestamp(at).ok();
    }
    let time: Time = text.parse().ok()?;
    let today = clock.now.to_zoned_datetime(clock.zone.clone()).date();
    let at = clock.zone.to_timestamp(today.to_datetime(time)).ok()?;
    if at <= clock.now {
        return Some(at);
    }
    // A time of day that is still to come means yesterday's.
    clock.zone.to_timestamp(today.yesterday().ok()?.to_datetime(time)).ok()
}

/// Reads a length of time as Prometheus writes it (`1h30m`, `500ms`, `2d`), or a plain number of seconds.
pub fn parse_duration(text: &str) -> Option<SignedDuration> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return SignedDuration::try_from_secs_f64(seconds).ok();
    }
    let mut rest = text;
    let mut total = SignedDuration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&end| end > 0)?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let milliseconds: i64 = match &tail[..unit] {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            "y" => 31_536_000_000,
            _ => return None,
        };
        let part = number.parse::<i64>().ok()?.checked_mul(milliseconds)?;
        total = total.checked_add(SignedDuration::from_millis(part))?;
        rest = &tail[unit..];
    }
    (!text.is_empty()).then_some(total)
}

/// Checks arguments against a type: an unknown key, a missing one or a wrong type is named. No arguments at all are
/// an empty object, and `null` for an optional key is as if it were not there.
pub fn parse_arguments<T: DeserializeOwned + JsonSchema>(arguments: Value) -> Result<T, Failure> {
    let mut object = into_object(arguments)?;
    let schema = input_schema::<T>();
    let known: Vec<&str> =
        schema["properties"].as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
    if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(bad_arguments(unknown_key(unknown, &known)));
    }
    object.retain(|_, value| !value.is_null());
    match T::deserialize(Value::Object(object.clone())) {
        Ok(parsed) => Ok(parsed),
        Err(error) => Err(bad_arguments(explain::<T>(&object, &error))),
    }
}

/// Some models send the object as a text that holds it.
fn into_object(arguments: Value) -> Result<Map<String, Value>, Failure> {
    match arguments {
        Value::Object(object) => Ok(object),
        Value::Null => Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => Ok(Map::new()),
        Value::String(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(bad_arguments("the arguments are not a JSON object")),
            Err(error) => Err(bad_arguments(format!("the arguments are not a JSON object: {error}"))),
        },
        _ => Err(bad_arguments("the arguments are not a JSON object")),
    }
}

fn unknown_key(key: &str, known: &[&str]) -> String {
    let key = crate::domain::text::clean_line(key, 60);
    let hint = nearest(&key, known.iter().copied()).map(|name| format!("did you mean `{name}`? ")).unwrap_or_default();
    match known {
        [] => format!("unknown argument `{key}`: this tool takes none"),
        _ => format!("unknown argument `{key}`: {hint}known: {}", known.join(", ")),
    }
}

/// The parser's message with the key that it is about: the one without which the message is another.
fn explain<T: DeserializeOwned>(object: &Map<String, Value>, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let culprit = object.keys().find(|key| {
        let mut others = object.clone();
        others.remove(*key);
        T::deserialize(Value::Object(others)).err().is_none_or(|other| other.to_string() != message)
    });
    match culprit {
        Some(key) if !message.starts_with("missing field") => format!("argument `{key}`: {message}"),
        _ => message,
    }
}

/// The JSON schema of a tool's arguments, in the plain form that every model accepts: no references, no unions with
/// null, one `type` a property.
pub fn input_schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    simplify(&mut schema);
    if let Value::Object(object) = &mut schema {
        object.shift_remove("$schema");
        object.shift_remove("title");
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        object.insert("additionalProperties".into(), Value::Bool(false));
    }
    schema
}

fn simplify(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Object(object) => {
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".into(), only);
                }
            }
            if let Some(inner) = object.get_mut("anyOf").and_then(without_null) {
                object.shift_remove("anyOf");
                for (key, value) in inner {
                    object.entry(key).or_insert(value);
                }
            }
            if object.get("default") == Some(&Value::Null) {
                object.shift_remove("default");
            }
            object.values_mut().for_each(simplify);
        }
        _ => {}
    }
}

/// The one alternative of `anyOf [X, null]`.
fn without_null(alternatives: &mut Value) -> Option<Map<String, Value>> {
    let alternatives = alternatives.as_array_mut()?;
    alternatives.retain(|alternative| alternative["type"] != "null");
    match alternatives.as_slice() {
        [Value::Object(only)] => Some(only.clone()),
        _ => None,
    }
}

/// A failure that the caller can mend.
pub fn bad_arguments(message: impl Into<String>) -> Failure {
    Failure::new(FailureKind::BadArguments, message)
}

/// The failure of a source, with its name.
pub fn source_failure(source: &str, error: SourceError) -> Failure {
    Failure::of_source(source, error.kind, error.message)
}

/// What the seam wants of what a tool made.
pub fn outcome(result: Result<Output, Failure>) -> Outcome {
    match result {
        Ok(output) => Outcome::Output(output),
        Err(failure) => Outcome::Failure(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn clock() -> ToolClock {
        ToolClock {
            now: at("2026-03-04T06:45:00Z"),
            window: Window::new(at("2026-03-04T05:45:00Z"), at("2026-03-04T06:45:00Z")),
            zone: TimeZone::fixed(jiff::tz::offset(8)),
        }
    }

    fn time(text: &str) -> String {
        match parse_time(text, &clock()) {
            Ok(time) => time.to_string(),
            Err(failure) => failure.message,
        }
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Example {
        /// What to ask.
        query: String,
        service: Option<String>,
        #[serde(default)]
        limit: Option<u32>,
        start: Option<TimeArgument>,
    }

    fn complaint(arguments: Value) -> String {
        let failure = parse_arguments::<Example>(arguments).unwrap_err();
        assert_eq!(failure.kind, FailureKind::BadArguments);
        failure.message
    }

    #[test]
    fn times_are_read_in_every_written_form() {
        for (text, want) in [
            ("2026-03-04T14:30:00+08:00", "2026-03-04T06:30:00Z"),
            ("2026-03-04T06:30:00.5Z", "2026-03-04T06:30:00.5Z"),
            ("2026-03-04 14:30", "2026-03-04T06:30:00Z"),
            ("2026-03-04T14:30:05", "2026-03-04T06:30:05Z"),
            ("14:30", "2026-03-04T06:30:00Z"),
            ("23:50", "2026-03-03T15:50:00Z"),
            ("1772605800", "2026-03-04T06:30:00Z"),
            ("1772605800.5", "2026-03-04T06:30:00.5Z"),
            ("1772605800000", "2026-03-04T06:30:00Z"),
            ("now", "2026-03-04T06:45:00Z"),
            ("-15m", "2026-03-04T06:30:00Z"),
            ("now-1h30m", "2026-03-04T05:15:00Z"),
            ("+30s", "2026-03-04T06:45:30Z"),
            ("15m ago", "2026-03-04T06:30:00Z"),
            (" -2d ", "2026-03-02T06:45:00Z"),
        ] {
            assert_eq!(time(text), want, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_named_with_what_was_expected() {
        for text in ["", "yesterday", "-15", "-m", "-9y9", "NaN", "1e300", "-99999999999999y", "é", "25:61"] {
            let message = time(text);
            let relative_to_epoch = text == "-15";
            assert!(message.starts_with("cannot read the time") != relative_to_epoch, "{text}: {message}");
        }
    }

    #[test]
    fn a_window_takes_what_is_missing_from_the_default() {
        let given = |text: &str| Some(TimeArgument(text.to_owned()));
        let window = |start: Option<TimeArgument>, end: Option<TimeArgument>| {
            clock().window_of(start.as_ref(), end.as_ref()).map_err(|failure| failure.message)
        };
        assert_eq!(window(None, None), Ok(clock().window));
        assert_eq!(
            window(None, given("-30m")),
            Ok(Window::new(at("2026-03-04T05:15:00Z"), at("2026-03-04T06:15:00Z")))
        );
        assert_eq!(window(given("-2h"), None), Ok(Window::new(at("2026-03-04T04:45:00Z"), at("2026-03-04T06:45:00Z"))));
        assert!(window(given("-5m"), given("-10m")).unwrap_err().ends_with("swap them"));
        assert!(window(given("+5m"), None).unwrap_err().contains("is not before now"));
    }

    #[test]
    fn durations_are_read_as_prometheus_writes_them() {
        let milliseconds = |text: &str| parse_duration(text).map(|span| span.as_millis());
        assert_eq!(milliseconds("1h30m"), Some(5_400_000));
        assert_eq!(milliseconds("500ms"), Some(500));
        assert_eq!(milliseconds("15"), Some(15_000));
        assert_eq!(milliseconds("0.5"), Some(500));
        for bad in ["", "m", "1x", "1m-", "inf", "NaN", "99999999999999999999s", "9223372036854775807w"] {
            assert_eq!(milliseconds(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_unknown_key_is_named_with_its_nearest() {
        assert_eq!(
            complaint(json!({"query": "up", "servce": "x"})),
            "unknown argument `servce`: did you mean `service`? known: query, service, limit, start"
        );
        assert_eq!(complaint(json!({"zzz": 1})), "unknown argument `zzz`: known: query, service, limit, start");
    }

    #[test]
    fn a_wrong_type_and_a_missing_key_are_named() {
        assert_eq!(
            complaint(json!({"query": "up", "limit": "ten"})),
            "argument `limit`: invalid type: string \"ten\", expected u32"
        );
        assert_eq!(complaint(json!({"service": "x"})), "missing field `query`");
        assert_eq!(complaint(json!([1])), "the arguments are not a JSON object");
    }

    #[test]
    fn null_text_and_number_forms_that_models_send_are_accepted() {
        let want =
            Example { query: "up".into(), service: None, limit: None, start: Some(TimeArgument("1772605800".into())) };
        let sent = json!({"query": "up", "service": null, "limit": null, "start": 1_772_605_800});
        assert_eq!(parse_arguments::<Example>(Value::String(sent.to_string())).unwrap(), want);
        assert_eq!(parse_arguments::<Example>(sent).unwrap(), want);
    }

    #[test]
    fn the_schema_is_plain() {
        assert_eq!(
            input_schema::<Example>(),
            json!({
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to ask."},
                    "service": {"type": "string"},
                    "limit": {"type": "integer", "format": "uint32", "minimum": 0},
                    "start": {"type": "string"}
                },
                "required": ["query"],
                "additionalProperties": false
            })
        );
    }
}
