//! Alerts: any common payload becomes [`AlertBatch`].
//!
//! The shape is found by the payload's fields, never by a file name. Every label is optional, and what a payload
//! holds beyond the known fields is kept as annotations.

mod fields;
mod group;
mod labelled;
mod service;
mod text;
mod unread;
mod vendors;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::domain::{Alert, AlertBatch, AlertStatus, PayloadShape};

pub use group::groups;

const EXAMPLE: &str = r#"{"labels": {"alertname": "HighErrorRate", "service": "cart"}}"#;

/// A payload that is no alert.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AlertError {
    #[error("empty input: expected an alert payload (JSON or text)")]
    Empty,
    #[error("line {line}, column {column}: {message}")]
    Json { line: usize, column: usize, message: String },
    #[error("{found}: expected an alert (a JSON object or list, or text)")]
    NotAnAlert { found: String },
    #[error("{found} says nothing: expected an alert with labels, annotations or a title, such as {EXAMPLE}")]
    SaysNothing { found: String },
}

/// Reads a payload of any known shape.
///
/// # Errors
/// Empty input, JSON that is broken (with line and column), JSON that holds no alert (a number, say).
pub fn parse(input: &str) -> Result<AlertBatch, AlertError> {
    let input = input.trim_start_matches('\u{feff}').trim();
    if input.is_empty() {
        return Err(AlertError::Empty);
    }
    if !looks_like_json(input) {
        return Ok(finish(PayloadShape::Text, vec![text::parse(input)], 0, Vec::new()));
    }
    let value: Value = serde_json::from_str(input).map_err(|error| AlertError::Json {
        line: error.line(),
        column: error.column(),
        message: without_place(&error.to_string()),
    })?;
    match value {
        Value::Object(_) | Value::Array(_) => {
            let (shape, alerts, truncated) = sniff(&value)?;
            let listed = alerts.len();
            let alerts: Vec<Alert> = alerts.into_iter().filter(says_something).collect();
            if alerts.is_empty() && listed > 0 {
                return Err(AlertError::SaysNothing { found: head_of(&value) });
            }
            let mut unread = unread::unread(&value);
            if alerts.len() < listed {
                unread.push(format!("alerts that say nothing, left out: {}", listed - alerts.len()));
            }
            Ok(finish(shape, alerts, truncated, unread))
        }
        Value::String(message) if !message.trim().is_empty() => {
            Ok(finish(PayloadShape::Text, vec![text::parse(message.trim())], 0, Vec::new()))
        }
        other => Err(AlertError::NotAnAlert { found: head_of(&other) }),
    }
}

fn says_something(alert: &Alert) -> bool {
    !(alert.labels.is_empty() && alert.annotations.is_empty() && alert.name == fields::UNNAMED)
}

/// A chat message may start with `[FIRING:1]`; JSON lists start with an object, a list, or end at once.
fn looks_like_json(input: &str) -> bool {
    match input.as_bytes()[0] {
        b'{' | b'"' => true,
        b'[' => matches!(input[1..].trim_start().as_bytes().first(), None | Some(b'{' | b'[' | b']')),
        _ => serde_json::from_str::<serde::de::IgnoredAny>(input).is_ok(),
    }
}

/// serde_json puts the place at the end of its message; it is said at the beginning here.
fn without_place(message: &str) -> String {
    match message.rfind(" at line ") {
        Some(end) => message[..end].to_string(),
        None => message.to_string(),
    }
}

fn head_of(value: &Value) -> String {
    crate::domain::text::clean_line(&value.to_string(), 60)
}

type Sniffed = (PayloadShape, Vec<Alert>, u64);

fn sniff(value: &Value) -> Result<Sniffed, AlertError> {
    if let Value::Array(items) = value {
        return sniff_list(items);
    }
    let object = |key: &str| value.get(key).filter(|v| v.is_object());
    let list = |key: &str| value.get(key).and_then(Value::as_array);
    if let Some(event) = object("event").filter(|event| event.get("event_type").is_some()) {
        return Ok((PayloadShape::PagerdutyWebhook, vec![vendors::pagerduty_event(event)], 0));
    }
    if let Some(incidents) = list("incidents") {
        return Ok((PayloadShape::PagerdutyIncident, incidents.iter().map(vendors::pagerduty_incident).collect(), 0));
    }
    if let Some(incident) = object("incident").filter(|_| value.get("alerts").is_none()) {
        return Ok((PayloadShape::PagerdutyIncident, vec![vendors::pagerduty_incident(incident)], 0));
    }
    if value.get("incident_number").is_some() || value.get("type").and_then(Value::as_str) == Some("incident") {
        return Ok((PayloadShape::PagerdutyIncident, vec![vendors::pagerduty_incident(value)], 0));
    }
    if let Some(alerts) = list("alerts") {
        let shape =
            if is_grafana(value, alerts) { PayloadShape::GrafanaUnified } else { PayloadShape::AlertmanagerWebhook };
        let truncated = value.get("truncatedAlerts").and_then(Value::as_u64).unwrap_or(0);
        return Ok((shape, labelled::grouped(alerts, value), truncated));
    }
    if let Some(data) = object("data") {
        if let Some(alerts) = data.get("alerts").and_then(Value::as_array) {
            return Ok((PayloadShape::PrometheusAlerts, labelled::grouped(alerts, data), 0));
        }
        if let Some(groups) = data.get("groups").and_then(Value::as_array) {
            return Ok((PayloadShape::PrometheusAlerts, labelled::of_rules(groups), 0));
        }
    }
    if ["ruleName", "ruleId", "evalMatches", "ruleUrl"].iter().any(|key| value.get(key).is_some()) {
        return Ok((PayloadShape::GrafanaLegacy, vec![vendors::grafana_legacy(value)], 0));
    }
    if let (Some(alert), Some(_)) = (object("alert"), value.get("action")) {
        return Ok((PayloadShape::OpsgenieWebhook, vec![vendors::opsgenie(value, alert)], 0));
    }
    // Wrappers of other tools (a message queue, an incident manager) hold the alert under one of these.
    for key in ["raw", "alert", "payload", "body"] {
        if let Some(inner) = object(key).filter(|inner| inner.get("labels").is_some() || inner.get("alerts").is_some())
        {
            return sniff(inner);
        }
    }
    if value.get("labels").is_some_and(|labels| labels.is_object() || labels.is_array()) {
        return Ok((PayloadShape::AlertmanagerAlerts, vec![labelled::alert(value)], 0));
    }
    Ok((PayloadShape::Labels, vec![labelled::flat(value)], 0))
}

fn sniff_list(items: &[Value]) -> Result<Sniffed, AlertError> {
    if let Some(odd) = items.iter().find(|item| !item.is_object()) {
        return Err(AlertError::NotAnAlert { found: format!("a list that holds {}", head_of(odd)) });
    }
    if items.iter().any(|item| item.get("alerts").is_some_and(Value::is_array)) {
        let alerts = items.iter().filter_map(|group| Some((group, group.get("alerts")?.as_array()?)));
        let alerts = alerts.flat_map(|(group, alerts)| labelled::grouped(alerts, group)).collect();
        return Ok((PayloadShape::AlertmanagerGroups, alerts, 0));
    }
    if items.iter().all(|item| item.get("labels").is_some()) {
        return Ok((PayloadShape::AlertmanagerAlerts, items.iter().map(labelled::alert).collect(), 0));
    }
    let mut all = Vec::new();
    let (mut shape, mut truncated) = (PayloadShape::Labels, 0);
    for item in items {
        let (item_shape, alerts, cut) = sniff(item)?;
        (shape, truncated) = (item_shape, truncated + cut);
        all.extend(alerts);
    }
    Ok((shape, all, truncated))
}

/// Grafana sends Alertmanager's webhook with fields of its own.
fn is_grafana(value: &Value, alerts: &[Value]) -> bool {
    let own = ["orgId", "title", "message", "appVersion"];
    let of_alert = ["valueString", "values", "dashboardURL", "panelURL", "orgId"];
    own.iter().any(|key| value.get(key).is_some())
        || alerts.iter().any(|alert| of_alert.iter().any(|key| alert.get(key).is_some()))
}

/// One alert per fingerprint and label set, and a list of what could not be read and what is missing.
fn finish(shape: PayloadShape, alerts: Vec<Alert>, truncated: u64, unread: Vec<String>) -> AlertBatch {
    let alerts = deduplicated(alerts);
    let mut missing = missing(&alerts, truncated);
    missing.splice(0..0, unread);
    AlertBatch { shape, alerts, missing, truncated }
}

/// Alerts sent twice become one; annotations in which they differ are kept under a numbered key.
fn deduplicated(alerts: Vec<Alert>) -> Vec<Alert> {
    let mut kept: Vec<Alert> = Vec::new();
    let mut by_labels: BTreeMap<BTreeMap<String, String>, usize> = BTreeMap::new();
    let mut by_fingerprint: BTreeMap<String, usize> = BTreeMap::new();
    for alert in alerts {
        let same_labels = (!alert.labels.is_empty()).then(|| by_labels.get(&alert.labels)).flatten();
        match by_fingerprint.get(&alert.fingerprint).or(same_labels).copied() {
            Some(at) => absorb(&mut kept[at], alert),
            None => {
                by_labels.insert(alert.labels.clone(), kept.len());
                by_fingerprint.insert(alert.fingerprint.clone(), kept.len());
                kept.push(alert);
            }
        }
    }
    kept
}

fn absorb(kept: &mut Alert, again: Alert) {
    for (key, value) in again.annotations {
        if kept.annotations.get(&key) == Some(&value) {
            continue;
        }
        let free = (1..).map(|n| if n == 1 { key.clone() } else { format!("{key} ({n})") });
        if let Some(free) = free.into_iter().find(|key| !kept.annotations.contains_key(key)) {
            kept.annotations.insert(free, value);
        }
    }
    // Firing beats resolved: one of the two is the newer state, and the safer reading is that it still fires.
    if again.status == AlertStatus::Firing {
        (kept.status, kept.ends_at) = (AlertStatus::Firing, again.ends_at);
    }
    kept.starts_at = [kept.starts_at, again.starts_at].into_iter().flatten().min();
}

fn missing(alerts: &[Alert], truncated: u64) -> Vec<String> {
    let mut missing = Vec::new();
    if alerts.is_empty() {
        missing.push("no alert: the payload lists none".to_string());
    }
    let without = |what: fn(&Alert) -> bool| alerts.iter().filter(|alert| what(alert)).count();
    let checks: [(usize, &str); 5] = [
        (without(|a| a.name == fields::UNNAMED), "no alert name"),
        (without(|a| a.service.is_none()), "no service: evidence is sought by the other labels"),
        (without(|a| a.starts_at.is_none()), "no start time: the window ends now"),
        (without(|a| a.severity.is_none()), "no severity"),
        (without(|a| !a.annotations.contains_key("runbook_url")), "no runbook_url"),
    ];
    for (count, text) in checks.into_iter().filter(|(count, _)| *count > 0) {
        missing.push(if alerts.len() > 1 { format!("{text} ({count} of {})", alerts.len()) } else { text.into() });
    }
    if truncated > 0 {
        missing.push(format!("alerts that the sender left out: {truncated} (truncatedAlerts)"));
    }
    missing
}
