//! Payloads made of label sets: Alertmanager, Prometheus, Grafana's unified alerting, and flat objects.

use serde_json::Value;

use super::{fields, service};
use crate::domain::{Alert, AlertStatus};

/// Fields of an alert that have a place of their own; all others become annotations.
const KNOWN: [&str; 16] = [
    "labels",
    "annotations",
    "status",
    "state",
    "startsAt",
    "endsAt",
    "activeAt",
    "starts_at",
    "ends_at",
    "fingerprint",
    "generatorURL",
    "receivers",
    "updatedAt",
    "silenceURL",
    "orgId",
    "keepFiringSince",
];

/// The alerts of one group, each with what the group says of all (`commonLabels`, `labels`, `commonAnnotations`).
pub fn grouped(alerts: &[Value], group: &Value) -> Vec<Alert> {
    let common_labels = fields::text_map(group.get("commonLabels").or_else(|| group.get("labels")));
    let common_annotations = fields::text_map(group.get("commonAnnotations"));
    alerts
        .iter()
        .filter(|alert| alert.is_object())
        .map(|value| {
            let mut labels = common_labels.clone();
            labels.extend(fields::text_map(value.get("labels")));
            let mut annotations = common_annotations.clone();
            annotations.extend(annotations_of(value));
            // Grafana says in the title and message of the group what an alert without labels does not.
            for key in ["title", "message"] {
                if let Some(text) = fields::text(group, &[key]).filter(|_| !annotations.contains_key(key)) {
                    annotations.insert(key.into(), text);
                }
            }
            build(value, labels, annotations)
        })
        .collect()
}

/// One alert with its own `labels`.
pub fn alert(value: &Value) -> Alert {
    build(value, fields::text_map(value.get("labels")), annotations_of(value))
}

/// The alerts that Prometheus' `/api/v1/rules` lists below its rules.
pub fn of_rules(groups: &[Value]) -> Vec<Alert> {
    let rules = groups.iter().filter_map(|group| group.get("rules")?.as_array()).flatten();
    let alerts = rules.filter_map(|rule| Some((rule, rule.get("alerts")?.as_array()?)));
    alerts
        .flat_map(|(rule, alerts)| {
            alerts.iter().map(move |value| {
                let mut alert = alert(value);
                if let Some(query) = fields::text(rule, &["query"]) {
                    alert.annotations.entry("expr".into()).or_insert(query);
                }
                alert
            })
        })
        .collect()
}

/// A flat object: scalars are labels, anything nested is an annotation.
pub fn flat(value: &Value) -> Alert {
    let mut labels = std::collections::BTreeMap::new();
    let mut annotations = fields::text_map(value.get("annotations"));
    for (key, field) in value.as_object().into_iter().flatten() {
        let explains = ["summary", "description", "message", "title", "runbook_url", "annotations"];
        match fields::scalar(field) {
            Some(text) if !explains.contains(&key.as_str()) => {
                labels.insert(key.clone(), text);
            }
            _ if key == "annotations" => {}
            _ => {
                if let Some(text) = fields::any_text(field) {
                    annotations.insert(key.clone(), text);
                }
            }
        }
    }
    build(value, labels, annotations)
}

fn annotations_of(value: &Value) -> std::collections::BTreeMap<String, String> {
    let mut annotations = fields::text_map(value.get("annotations"));
    for (key, field) in value.as_object().into_iter().flatten() {
        if KNOWN.contains(&key.as_str()) || annotations.contains_key(key) {
            continue;
        }
        if let Some(text) = fields::any_text(field) {
            annotations.insert(key.clone(), text);
        }
    }
    if let Some(url) = fields::text(value, &["generatorURL"]) {
        annotations.insert("generatorURL".into(), url);
    }
    annotations
}

fn build(
    value: &Value,
    labels: std::collections::BTreeMap<String, String>,
    annotations: std::collections::BTreeMap<String, String>,
) -> Alert {
    let name_keys = ["alertname", "alert_name", "alert", "rulename", "aggregation_key", "name", "title"];
    let name = name_keys
        .iter()
        .find_map(|key| labels.get(*key).or_else(|| annotations.get(*key)))
        .or_else(|| annotations.get("summary"))
        .map_or_else(|| fields::UNNAMED.to_string(), |name| one_line(name));
    let severity_keys = ["severity", "priority", "level", "urgency"];
    let severity = severity_keys
        .iter()
        .filter_map(|key| labels.get(*key).or_else(|| annotations.get(*key)))
        .find_map(|word| fields::severity(word));
    let ends_at = fields::time(value, &["endsAt", "ends_at"]);
    let status = status(value, ends_at);
    let fingerprint = fields::text(value, &["fingerprint"])
        .unwrap_or_else(|| fields::fingerprint(&labels, annotations.values().next().unwrap_or(&name)));
    let service = service::of(&labels, &name, &annotations);
    Alert {
        name,
        service,
        severity,
        status,
        starts_at: fields::time(value, &["startsAt", "activeAt", "starts_at", "fired_at", "timestamp", "time"]),
        // Alertmanager's API gives a firing alert the time at which it will expire.
        ends_at: ends_at.filter(|_| status == AlertStatus::Resolved),
        labels,
        annotations,
        fingerprint,
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `status` is a word in webhooks, `{state: …}` in Alertmanager's API, and `state` in Prometheus'.
fn status(value: &Value, ends_at: Option<jiff::Timestamp>) -> AlertStatus {
    let state = value.get("status").and_then(|status| fields::text(status, &["state"]));
    let word = state.or_else(|| fields::text(value, &["status", "state"])).unwrap_or_default().to_lowercase();
    match word.as_str() {
        "resolved" | "ok" | "normal" | "inactive" | "closed" | "recovered" | "已恢复" => AlertStatus::Resolved,
        "pending" => AlertStatus::Pending,
        "suppressed" | "silenced" | "acknowledged" | "muted" => AlertStatus::Suppressed,
        "" if ends_at.is_some() && ends_at < Some(jiff::Timestamp::now()) => AlertStatus::Resolved,
        _ => AlertStatus::Firing,
    }
}
