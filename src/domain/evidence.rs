//! Findings, and the numbered evidence that a diagnosis cites.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Change, Hit, KubeEvent, Lang, LogPattern, LogVolume, MetricInfo, NodeStatus, PodStatus, RankedService, Rollout,
    SeriesSummary, Window, Workload,
};

/// One thing that a tool found out. A tool's output is a list of these, so that every one can be cited by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Finding {
    Series(SeriesSummary),
    RankedService(RankedService),
    Metric(MetricInfo),
    Pattern(LogPattern),
    LogVolume(LogVolume),
    Workload(Workload),
    Pod(PodStatus),
    Event(KubeEvent),
    Node(NodeStatus),
    Rollout(Rollout),
    Change(Change),
    Hit(Hit),
    /// Asked, answered, and nothing there: that is a finding too.
    Nothing {
        /// What was looked for, in words.
        what: String,
    },
    /// What a tool without a type of its own said.
    Other {
        value: Value,
    },
}

/// The kind of evidence, by the question that it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceKind {
    Metric,
    Log,
    Status,
    Change,
    Knowledge,
    Other,
}

impl EvidenceKind {
    /// In a word, for people.
    pub fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Metric => lang.pick("metric", "指标"),
            Self::Log => lang.pick("log", "日志"),
            Self::Status => lang.pick("status", "状态"),
            Self::Change => lang.pick("change", "变更"),
            Self::Knowledge => lang.pick("runbook", "手册"),
            Self::Other => lang.pick("other", "其他"),
        }
    }
}

/// A finding with its number. Only evidence can be cited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// `E1`, `E2`, … in the order of discovery.
    pub id: String,
    pub kind: EvidenceKind,
    /// The source's name and the call that gave it: `files/logs search_logs(service=order-service)`.
    pub source: String,
    pub window: Option<Window>,
    /// One sentence in the user's language.
    pub summary: String,
    pub data: Finding,
    /// Age in seconds when it was answered from memory of an earlier call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stale_seconds: Option<i64>,
}
