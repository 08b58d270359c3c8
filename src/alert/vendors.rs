//! Payloads with a vocabulary of their own: PagerDuty, OpsGenie, Grafana's legacy alerting.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::{fields, service};
use crate::domain::{Alert, AlertStatus, Severity};

/// A webhook v3 event; its data may be an incident, or something that refers to one.
pub fn pagerduty_event(event: &Value) -> Alert {
    let null = Value::Null;
    let data = event.get("data").unwrap_or(&null);
    let mut alert = pagerduty_incident(data);
    if let Some(incident) = data.get("incident").filter(|incident| incident.is_object()) {
        if let Some(title) = fields::text(incident, &["summary", "title"]) {
            alert.name = title;
        }
        if let Some(id) = fields::text(incident, &["id"]) {
            alert.fingerprint = id;
        }
    }
    if let Some(kind) = fields::text(event, &["event_type"]) {
        if kind.ends_with("resolved") {
            alert.status = AlertStatus::Resolved;
        }
        alert.annotations.insert("event_type".into(), kind);
    }
    let occurred = fields::time(event, &["occurred_at"]);
    match alert.status {
        AlertStatus::Resolved => alert.ends_at = alert.ends_at.or(occurred),
        _ => alert.starts_at = alert.starts_at.or(occurred),
    }
    alert
}

/// An incident, as the REST API and the webhook's data give it.
pub fn pagerduty_incident(incident: &Value) -> Alert {
    let name = fields::text(incident, &["title", "summary", "description"]).unwrap_or_else(|| fields::UNNAMED.into());
    let mut labels = BTreeMap::new();
    let mut annotations = BTreeMap::new();
    let service = incident.get("service").and_then(|service| fields::text(service, &["summary", "name"]));
    labels.extend(service.clone().map(|service| ("service".to_string(), service)));
    labels.extend(fields::text(incident, &["urgency"]).map(|urgency| ("urgency".to_string(), urgency)));
    for key in ["description", "html_url", "incident_key", "resolve_reason"] {
        annotations.extend(fields::text(incident, &[key]).map(|text| (key.to_string(), text)));
    }
    let body = incident.get("body").and_then(|body| body.get("details"));
    annotations.extend(body.and_then(fields::any_text).map(|text| ("details".to_string(), text)));
    let custom = incident.pointer("/first_trigger_log_entry/channel/details");
    annotations.extend(fields::text_map(custom));
    let priority = incident.get("priority").and_then(|priority| fields::text(priority, &["summary", "name"]));
    let severity = priority.as_deref().and_then(fields::severity).or_else(|| urgency(incident));
    let status = match fields::text(incident, &["status"]).unwrap_or_default().as_str() {
        "resolved" => AlertStatus::Resolved,
        "acknowledged" => AlertStatus::Suppressed,
        _ => AlertStatus::Firing,
    };
    let fingerprint = fields::text(incident, &["incident_key", "id"])
        .unwrap_or_else(|| fields::fingerprint(&BTreeMap::new(), &incident.to_string()));
    Alert {
        service: service::of(&labels, &name, &annotations),
        name,
        severity,
        status,
        starts_at: fields::time(incident, &["created_at", "createdAt"]),
        ends_at: fields::time(incident, &["resolved_at"]),
        labels,
        annotations,
        fingerprint,
    }
}

/// PagerDuty's urgency is what it pages by.
fn urgency(incident: &Value) -> Option<Severity> {
    match fields::text(incident, &["urgency"])?.as_str() {
        "high" => Some(Severity::Critical),
        "low" => Some(Severity::Warning),
        _ => None,
    }
}

/// An OpsGenie webhook: `action` says what happened to `alert`.
pub fn opsgenie(payload: &Value, alert: &Value) -> Alert {
    let name = fields::text(alert, &["message", "alias", "description"]).unwrap_or_else(|| fields::UNNAMED.into());
    let mut labels = fields::text_map(alert.get("details"));
    let mut annotations = BTreeMap::new();
    for key in ["entity", "source", "alias"] {
        if let Some(text) = fields::text(alert, &[key]) {
            labels.entry(key.into()).or_insert(text);
        }
    }
    for (key, text) in fields::text_map(Some(alert)) {
        if ["description", "note", "tags", "teams", "message"].contains(&key.as_str()) {
            annotations.insert(key, text);
        }
    }
    let action = fields::text(payload, &["action"]).unwrap_or_default();
    let status = match action.as_str() {
        "Close" | "Delete" => AlertStatus::Resolved,
        "Acknowledge" | "Snooze" => AlertStatus::Suppressed,
        _ => AlertStatus::Firing,
    };
    annotations.insert("action".into(), action);
    let severity = fields::text(alert, &["priority"]).as_deref().and_then(fields::severity);
    let fingerprint = fields::text(alert, &["alertId", "alias", "tinyId"])
        .unwrap_or_else(|| fields::fingerprint(&labels, &alert.to_string()));
    let updated: Option<Timestamp> = fields::time(alert, &["updatedAt"]);
    Alert {
        service: service::of(&labels, &name, &annotations),
        name,
        severity,
        status,
        starts_at: fields::time(alert, &["createdAt", "insertedAt"]),
        ends_at: updated.filter(|_| status == AlertStatus::Resolved),
        labels,
        annotations,
        fingerprint,
    }
}

/// Grafana before version 9: one rule, its matches, and tags.
pub fn grafana_legacy(payload: &Value) -> Alert {
    let name = fields::text(payload, &["ruleName", "title"]).unwrap_or_else(|| fields::UNNAMED.into());
    let mut labels = fields::text_map(payload.get("tags"));
    let mut annotations = BTreeMap::new();
    for key in ["title", "message", "ruleUrl", "imageUrl", "state"] {
        annotations.extend(fields::text(payload, &[key]).map(|text| (key.to_string(), text)));
    }
    for matched in payload.get("evalMatches").and_then(Value::as_array).into_iter().flatten() {
        for (key, text) in fields::text_map(matched.get("tags")) {
            labels.entry(key).or_insert(text);
        }
        if let (Some(metric), Some(value)) = (fields::text(matched, &["metric"]), matched.get("value")) {
            annotations.entry("metric".into()).or_insert(metric);
            annotations.extend(fields::scalar(value).map(|value| ("value".to_string(), value)));
        }
    }
    let status = match fields::text(payload, &["state"]).unwrap_or_default().as_str() {
        "ok" => AlertStatus::Resolved,
        "pending" => AlertStatus::Pending,
        "paused" => AlertStatus::Suppressed,
        _ => AlertStatus::Firing,
    };
    let severity = ["severity", "priority"].iter().filter_map(|key| labels.get(*key)).find_map(|w| fields::severity(w));
    let rule = fields::text(payload, &["ruleId"]).unwrap_or_default();
    Alert {
        service: service::of(&labels, &name, &annotations),
        fingerprint: fields::fingerprint(&labels, &format!("{name}{rule}")),
        name,
        severity,
        status,
        starts_at: None,
        ends_at: None,
        labels,
        annotations,
    }
}
