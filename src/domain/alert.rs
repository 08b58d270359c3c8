//! What fired ([`Alert`]) and what was understood of it ([`Facts`]).

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Lang, Window};

/// How urgent an alert says it is. Names of other systems are mapped by the parsers (`page` and `P1` are critical).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Info,
    Warning,
    Error,
    Critical,
}

/// Whether the condition still holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AlertStatus {
    Firing,
    Resolved,
    /// Pending in Prometheus: the condition holds but not yet for long enough.
    Pending,
    /// Silenced, inhibited or acknowledged: it fires, but somebody muted it.
    Suppressed,
}

/// One alert, whatever system sent it. Absent information is absent (`None`, empty map), never invented.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// `alertname`, or the title that stands for it; `"(unnamed alert)"` when the payload has neither.
    pub name: String,
    /// The service that the labels, or failing those the text, name.
    pub service: Option<String>,
    pub severity: Option<Severity>,
    pub status: AlertStatus,
    pub labels: BTreeMap<String, String>,
    /// Annotations, and whatever else of the payload explains the alert (title, description, values, links).
    pub annotations: BTreeMap<String, String>,
    #[schemars(with = "Option<String>")]
    pub starts_at: Option<Timestamp>,
    /// `None` while it fires; Alertmanager's year 1 is read as `None`.
    #[schemars(with = "Option<String>")]
    pub ends_at: Option<Timestamp>,
    /// The sender's fingerprint, else 16 hexadecimal digits over the sorted label set (or the text, without labels).
    pub fingerprint: String,
}

impl Alert {
    /// The first of these labels that is present and not blank.
    pub fn label(&self, names: &[&str]) -> Option<&str> {
        names.iter().filter_map(|name| self.labels.get(*name)).map(|v| v.trim()).find(|v| !v.is_empty())
    }

    /// Name, annotations and labels as one text, for matching and retrieval.
    pub fn text(&self) -> String {
        let mut text = self.name.clone();
        for value in self.annotations.values().chain(self.labels.values()) {
            text.push('\n');
            text.push_str(value);
        }
        text
    }
}

/// The shape of a payload, found by its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayloadShape {
    AlertmanagerWebhook,
    AlertmanagerAlerts,
    AlertmanagerGroups,
    PrometheusAlerts,
    GrafanaUnified,
    GrafanaLegacy,
    PagerdutyWebhook,
    PagerdutyIncident,
    OpsgenieWebhook,
    Labels,
    Text,
}

/// All alerts of one payload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertBatch {
    pub shape: PayloadShape,
    /// In the order of the payload, one per fingerprint.
    pub alerts: Vec<Alert>,
    /// What a diagnosis would want and the payload does not hold, in words ("no start time: the window ends now").
    pub missing: Vec<String>,
    /// How many alerts the sender says it left out (`truncatedAlerts`).
    pub truncated: u64,
}

/// What kind of trouble an alert reports, read from its name, expression and text. It chooses the first questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Symptom {
    Errors,
    Latency,
    Unavailable,
    Cpu,
    Memory,
    Disk,
    Network,
    Restarts,
    Rollout,
    Certificate,
    Queue,
    Traffic,
    Database,
    Cache,
    Node,
    Other,
}

/// What `analyze_alert` made of an alert.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Facts {
    pub service: Option<String>,
    pub instance: Option<String>,
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub node: Option<String>,
    /// The metric name or expression that the alert watches.
    pub metric: Option<String>,
    /// In the unit of `value`; a percentage that the text gives as such stays a percentage.
    pub threshold: Option<f64>,
    pub value: Option<f64>,
    /// `%`, `s`, `ms`, `bytes`…, as the text gives it.
    pub unit: Option<String>,
    pub symptom: Symptom,
    /// When it fired; `None` when the payload does not say.
    #[schemars(with = "Option<String>")]
    pub fired_at: Option<Timestamp>,
    /// The time to look at: from some time before the alert to the end of what is known.
    pub window: Window,
    /// The clock of the investigation: the incident's `now`, else the real one.
    #[schemars(with = "String")]
    pub now: Timestamp,
    pub runbook_url: Option<String>,
    /// Names of the other alerts diagnosed together with this one.
    pub related: Vec<String>,
    pub lang: Lang,
}
