//! The answer: ranked hypotheses, the evidence for and against them, and what to do next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Alert, Category, Evidence, Facts, History, Lang, Plan};

pub const DIAGNOSIS_SCHEMA: &str = "oncall.diagnosis/v1";

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Complete,
    /// Tools failing or a budget hit; the best answer so far.
    Incomplete,
    Cancelled,
}

/// Whether the evidence bears a hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Supported,
    Possible,
    Refuted,
}

impl Verdict {
    /// As a reader sees it.
    pub fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Supported => lang.pick("supported", "成立"),
            Self::Possible => lang.pick("possible", "可能"),
            Self::Refuted => lang.pick("refuted", "已排除"),
        }
    }
}

/// A candidate cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hypothesis {
    pub title: String,
    pub category: Category,
    pub service: Option<String>,
    /// Evidence ids.
    pub evidence_for: Vec<String>,
    pub evidence_against: Vec<String>,
    /// 0 to 1, calibrated; never 1.
    pub confidence: f64,
    pub verdict: Verdict,
    /// Why, in one or two sentences with citations.
    pub rationale: String,
}

/// What tells one hypothesis from the others, while their figures change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HypothesisKey {
    pub category: Category,
    pub service: Option<String>,
}

impl Hypothesis {
    pub fn key(&self) -> HypothesisKey {
        HypothesisKey { category: self.category, service: self.service.clone() }
    }
}

/// What the engineer said of hypotheses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Judged {
    /// To be looked at first.
    pub pinned: Vec<HypothesisKey>,
    /// Not to be named as the cause.
    pub dismissed: Vec<HypothesisKey>,
}

/// The first hypothesis, when it is good enough to be called the cause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RootCause {
    pub title: String,
    pub service: Option<String>,
    pub category: Category,
    pub confidence: f64,
    pub evidence: Vec<String>,
}

/// Something to do or to look at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NextStep {
    pub text: String,
    /// A command that only reads, unless the text says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Where the advice comes from: a reference (`[1]`) or `signature`.
    pub source: String,
}

/// A passage of the knowledge base that the diagnosis draws on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reference {
    pub n: usize,
    pub title: String,
    pub source: String,
    pub heading: String,
    /// The beginning of the passage.
    #[serde(default)]
    pub excerpt: String,
}

/// How a source answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceStatus {
    Ok,
    Empty,
    Truncated,
    Stale,
    Timeout,
    Unauthorized,
    Error,
}

impl SourceStatus {
    /// Empty first, so that any better answer replaces it; failures weigh most.
    pub fn badness(self) -> u8 {
        match self {
            Self::Empty => 0,
            Self::Ok => 1,
            Self::Truncated => 2,
            Self::Stale => 3,
            Self::Timeout => 4,
            Self::Error => 5,
            Self::Unauthorized => 6,
        }
    }
}

impl SourceStatus {
    /// In a word or two, for people.
    pub fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Ok => lang.pick("ok", "正常"),
            Self::Empty => lang.pick("empty", "无数据"),
            Self::Truncated => lang.pick("truncated", "已截断"),
            Self::Stale => lang.pick("stale", "旧数据"),
            Self::Timeout => lang.pick("timed out", "超时"),
            Self::Unauthorized => lang.pick("unauthorized", "未授权"),
            Self::Error => lang.pick("error", "错误"),
        }
    }
}

/// One entry of the source strip.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SourceReport {
    pub name: String,
    pub status: SourceStatus,
    pub detail: String,
}

/// What the model cost.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Of the input, read from the server's cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
    /// Calls of the model.
    pub calls: u64,
    /// In the currency of the configured prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Usage {
    /// Adds what more was used.
    pub fn add(&mut self, more: Usage) {
        self.input_tokens += more.input_tokens;
        self.output_tokens += more.output_tokens;
        self.cached_tokens += more.cached_tokens;
        self.calls += more.calls;
        if let Some(cost) = more.cost {
            self.cost = Some(self.cost.unwrap_or(0.0) + cost);
        }
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// How long one node of the graph took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Timing {
    pub node: String,
    pub milliseconds: u64,
}

/// The document that `oncall diagnose --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diagnosis {
    /// [`DIAGNOSIS_SCHEMA`].
    pub schema: String,
    pub session_id: String,
    pub status: RunStatus,
    /// Why it is incomplete or cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_reason: Option<String>,
    /// `rules` or `llm`.
    pub reasoner: String,
    pub model: Option<String>,
    pub alert: Alert,
    /// The other alerts that were diagnosed together with it.
    pub related_alerts: Vec<Alert>,
    pub facts: Facts,
    /// In which its texts tell times: a name of the IANA database, or an offset such as `+08:00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// How often the alert came, and what it was then; nothing when it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub history: Option<History>,
    pub summary: String,
    pub root_cause: Option<RootCause>,
    pub hypotheses: Vec<Hypothesis>,
    pub evidence: Vec<Evidence>,
    pub next_steps: Vec<NextStep>,
    pub references: Vec<Reference>,
    pub sources: Vec<SourceReport>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
    pub plan: Plan,
    pub usage: Usage,
    pub timings: Vec<Timing>,
}
