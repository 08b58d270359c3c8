//! JSON lines: records of structured loggers, of journald, and those that container runtimes wrap around a line.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::fields::Fields;
use super::line::{Line, Role, parse_nested};
use super::stamp::{self, Clock};

/// Objects within objects are looked at down to this depth (`kubernetes.labels.app` is the third).
const MAX_FIELD_DEPTH: usize = 4;

/// Reads a JSON object; `None` when the text is none, so that it may be read as plain text.
pub fn parse<'a>(text: &'a str, clock: &Clock, depth: usize) -> Option<Line<'a>> {
    let Value::Object(object) = serde_json::from_str(text).ok()? else { return None };
    if let Some(line) = docker(&object, clock, depth) {
        return Some(line);
    }
    let mut fields = Fields::default();
    take_object(&mut fields, &object, &mut String::new(), clock, 0);
    take_split_time(&mut fields, &object);
    let message_of_journal = object.get("MESSAGE").and_then(bytes_of_journal);
    if let Some(message) = message_of_journal {
        fields.take_text("message", Cow::Owned(message), clock);
    }
    Some(unwrap_message(fields.into_line(text), clock, depth))
}

/// Docker's `json-file` driver: `{"log": "…\n", "stream": "stdout", "time": "…"}`.
fn docker(object: &Map<String, Value>, clock: &Clock, depth: usize) -> Option<Line<'static>> {
    let log = object.get("log")?.as_str()?;
    let time = stamp::parse_text(object.get("time")?.as_str()?, clock)?;
    object.get("stream")?.as_str()?;
    let Some(whole) = log.strip_suffix('\n') else {
        return Some(Line { at: Some(time), role: Role::Partial, ..Line::bare(log.to_owned()) });
    };
    let inner = parse_nested(whole.trim_end_matches('\r'), clock, depth + 1).into_owned();
    Some(wrap(inner, time))
}

/// The inner line with the wrapper's time where its own is missing or had to be completed.
pub fn wrap<'a>(inner: Line<'a>, time: stamp::Stamp) -> Line<'a> {
    let at = inner.at.filter(|stamp| stamp.is_exact()).or(Some(time));
    Line { at, ..inner }
}

/// A message that is itself a record with a level or a time speaks for the event.
fn unwrap_message<'a>(line: Line<'a>, clock: &Clock, depth: usize) -> Line<'a> {
    if !line.message.starts_with('{') || matches!(line.message, Cow::Borrowed(_)) {
        return line;
    }
    let inner = parse_nested(&line.message, clock, depth + 1);
    if inner.role != Role::Begins || (inner.at.is_none() && inner.level.is_none()) {
        return line;
    }
    let inner = inner.into_owned();
    Line {
        at: inner.at.filter(|stamp| stamp.is_exact()).or(line.at),
        level: inner.level.or(line.level),
        service: inner.service.or(line.service),
        instance: inner.instance.or(line.instance),
        message: inner.message,
        role: Role::Begins,
    }
}

/// Walks the object; `path` is the dotted key so far.
fn take_object(fields: &mut Fields<'_>, object: &Map<String, Value>, path: &mut String, clock: &Clock, depth: usize) {
    for (key, value) in object {
        let length = path.len();
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
        match value {
            Value::String(text) => fields.take_text(path, Cow::Owned(text.clone()), clock),
            Value::Number(number) => fields.take_number(path, number),
            Value::Object(inner) if depth < MAX_FIELD_DEPTH => take_object(fields, inner, path, clock, depth + 1),
            _ => {}
        }
        path.truncate(length);
    }
}

/// Times that are written in two numbers: log4j2's `instant`, Google's `timestampSeconds` and `timestampNanos`.
fn take_split_time(fields: &mut Fields<'_>, object: &Map<String, Value>) {
    let number = |object: &Map<String, Value>, key: &str| object.get(key).and_then(Value::as_i64);
    let instant = object.get("instant").or_else(|| object.get("timestamp")).and_then(Value::as_object);
    let stamp = match instant {
        Some(instant) => number(instant, "epochSecond")
            .zip(number(instant, "nanoOfSecond"))
            .or_else(|| number(instant, "seconds").zip(number(instant, "nanos"))),
        None => number(object, "timestampSeconds").zip(number(object, "timestampNanos")),
    };
    if let Some(stamp) = stamp.and_then(|(seconds, nanos)| stamp::from_parts(seconds, nanos)) {
        fields.take_stamp(stamp);
    }
}

/// journald gives a message that is not UTF-8 as an array of bytes.
fn bytes_of_journal(value: &Value) -> Option<String> {
    let bytes: Option<Vec<u8>> =
        value.as_array()?.iter().map(|byte| byte.as_u64().and_then(|b| u8::try_from(b).ok())).collect();
    Some(String::from_utf8_lossy(&bytes?).into_owned())
}
