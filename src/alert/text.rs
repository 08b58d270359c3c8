//! Plain text: a chat message, an e-mail, a line somebody typed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::{fields, service};
use crate::domain::{Alert, AlertStatus};

const NAME_CHARS: usize = 200;

/// `key: value` and `key=value`, with full-width colons too.
static PAIR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?m)(?:^|[\s,;{(])([\p{Alphabetic}_][\p{Alphabetic}\p{N}_.]{0,40})\s*[:=：]\s*("[^"\n]*"|[^\s,;}]+)"#)
        .ok()
});

/// An instant with date, time and perhaps a zone.
static INSTANT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?").ok());

/// Keys that are labels wherever they stand in a text.
const LABEL_KEYS: [(&str, &str); 24] = [
    ("alertname", "alertname"),
    ("alert", "alertname"),
    ("service", "service"),
    ("app", "app"),
    ("job", "job"),
    ("instance", "instance"),
    ("host", "host"),
    ("namespace", "namespace"),
    ("pod", "pod"),
    ("container", "container"),
    ("node", "node"),
    ("cluster", "cluster"),
    ("severity", "severity"),
    ("priority", "severity"),
    ("env", "env"),
    ("region", "region"),
    ("metric", "metric"),
    ("告警", "alertname"),
    ("告警名称", "alertname"),
    ("服务", "service"),
    ("实例", "instance"),
    ("主机", "host"),
    ("级别", "severity"),
    ("命名空间", "namespace"),
];

/// The first line names the alert, the whole text describes it.
pub fn parse(text: &str) -> Alert {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or(fields::UNNAMED);
    let labels = labels(text);
    let name = labels.get("alertname").cloned();
    let name = name.unwrap_or_else(|| crate::domain::text::head(first, NAME_CHARS).to_string());
    let annotations = BTreeMap::from([("description".to_string(), text.to_string())]);
    let lower = text.to_lowercase();
    let is_resolved = lower.contains("[resolved") || lower.contains("已恢复") || lower.starts_with("resolved");
    let service = service::of(&labels, &name, &annotations);
    Alert {
        severity: labels.get("severity").and_then(|word| fields::severity(word)),
        status: if is_resolved { AlertStatus::Resolved } else { AlertStatus::Firing },
        starts_at: INSTANT.as_ref().and_then(|regex| fields::instant(&normalised(regex.find(text)?.as_str()))),
        ends_at: None,
        fingerprint: fields::fingerprint(&labels, text),
        name,
        service,
        labels,
        annotations,
    }
}

fn labels(text: &str) -> BTreeMap<String, String> {
    let mut labels = BTreeMap::new();
    for pair in PAIR.iter().flat_map(|regex| regex.captures_iter(text)) {
        let key = pair[1].to_lowercase();
        if let Some((_, label)) = LABEL_KEYS.iter().find(|(word, _)| *word == key) {
            labels.entry(label.to_string()).or_insert_with(|| pair[2].trim_matches('"').to_string());
        }
    }
    labels
}

/// `2026-03-04 14:30` → `2026-03-04T14:30:00`, as the parser of instants expects it.
fn normalised(text: &str) -> String {
    let text = text.replacen(' ', "T", 1);
    if text.len() == 16 { format!("{text}:00") } else { text }
}
