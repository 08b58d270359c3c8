//! What a payload holds at a known place and in a form that cannot be read: said to the user, not dropped.
//!
//! In: the whole payload. Out: a line for each such field, with its path.

use serde_json::Value;

use super::fields;
use crate::domain::text::clean_line;

/// Fields under which alerts stand, at any level.
const CONTAINERS: [&str; 11] =
    ["alerts", "data", "groups", "rules", "incidents", "incident", "event", "alert", "raw", "payload", "body"];
const TIMES: [&str; 13] = [
    "startsAt",
    "endsAt",
    "activeAt",
    "starts_at",
    "ends_at",
    "fired_at",
    "timestamp",
    "time",
    "created_at",
    "createdAt",
    "insertedAt",
    "resolved_at",
    "occurred_at",
];
const MAPS: [&str; 4] = ["labels", "annotations", "commonLabels", "commonAnnotations"];
/// Lines that are given; more are counted.
const MAX_LINES: usize = 20;
/// Containers within containers.
const MAX_DEPTH: usize = 6;
const VALUE_CHARS: usize = 60;

/// A line for each field that cannot be read, or can be read in part only.
pub fn unread(payload: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    walk(payload, "", 0, &mut lines);
    let more = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if more > 0 {
        lines.push(format!("other fields that cannot be read: {more}"));
    }
    lines
}

fn walk(value: &Value, path: &str, depth: usize, lines: &mut Vec<String>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| walk(item, &format!("{path}[{i}]"), depth, lines));
        }
        Value::Object(object) => {
            for (key, field) in object {
                let place = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let key = key.as_str();
                if TIMES.contains(&key) && !fields::is_time(field) {
                    let example = "2026-03-04T14:30:00+08:00";
                    lines.push(format!("{place}: {} is no time: expected RFC 3339 ({example})", shown(field)));
                } else if MAPS.contains(&key) {
                    map(field, &place, lines);
                } else if CONTAINERS.contains(&key) && depth < MAX_DEPTH {
                    walk(field, &place, depth + 1, lines);
                }
            }
        }
        _ => {}
    }
}

/// Labels or annotations.
fn map(value: &Value, path: &str, lines: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(object) => {
            for (key, value) in object {
                let place = format!("{path}.{}", clean_line(key, VALUE_CHARS));
                match value {
                    Value::Null => lines.push(format!("{place}: null was left out: expected a text")),
                    Value::Array(_) | Value::Object(_) => {
                        lines.push(format!("{place}: {} is kept as JSON: expected a text", shown(value)));
                    }
                    Value::String(_) | Value::Number(_) | Value::Bool(_) => {}
                }
            }
        }
        Value::Array(items) => {
            let odd = items.iter().enumerate().filter(|(_, item)| fields::pair(item).is_none());
            lines.extend(odd.map(|(i, item)| {
                let found = shown(item);
                format!("{path}[{i}]: {found} was left out: expected {{\"name\": …, \"value\": …}} or \"name=value\"")
            }));
        }
        other => {
            let found = shown(other);
            lines.push(format!("{path}: {found} was left out: expected an object such as {{\"service\": \"cart\"}}"));
        }
    }
}

fn shown(value: &Value) -> String {
    clean_line(&value.to_string(), VALUE_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_be_read_is_not_mentioned() {
        let payload = json!({"alerts": [{
            "labels": {"alertname": "A", "port": 80, "canary": true, "pod": ""},
            "annotations": [{"name": "summary", "value": "x"}, {"key": "n", "value": 1}, "team=a", {"b": "c"}],
            "startsAt": "2026-03-04T06:30:00Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "time": 1772605800,
        }], "commonLabels": null, "timestamp": ""});
        assert_eq!(unread(&payload), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_place() {
        let payload = json!({"alerts": [{
            "labels": {"pod": null, "service": {"name": "cart"}},
            "annotations": ["words", 5],
            "startsAt": "yesterday",
            "endsAt": true,
        }], "commonLabels": "severity=page"});
        assert_eq!(
            unread(&payload),
            [
                "alerts[0].labels.pod: null was left out: expected a text",
                "alerts[0].labels.service: {\"name\":\"cart\"} is kept as JSON: expected a text",
                "alerts[0].annotations[0]: \"words\" was left out: expected {\"name\": …, \"value\": …} or \"name=value\"",
                "alerts[0].annotations[1]: 5 was left out: expected {\"name\": …, \"value\": …} or \"name=value\"",
                "alerts[0].startsAt: \"yesterday\" is no time: expected RFC 3339 (2026-03-04T14:30:00+08:00)",
                "alerts[0].endsAt: true is no time: expected RFC 3339 (2026-03-04T14:30:00+08:00)",
                "commonLabels: \"severity=page\" was left out: expected an object such as {\"service\": \"cart\"}",
            ]
        );
    }

    #[test]
    fn a_payload_of_many_faults_gives_a_short_list() {
        let payload = json!(vec![json!({"startsAt": "soon"}); 100]);
        let lines = unread(&payload);
        assert_eq!((lines.len(), lines[20].as_str()), (21, "other fields that cannot be read: 80"));
    }
}
