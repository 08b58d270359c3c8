//! A stored conversation or diagnosis: the session, its steps, tool invocations, messages and feedback.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Lang, RetrievalQuality, Usage};

pub const SESSION_SCHEMA: &str = "oncall.session/v1";

/// What a session was about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionKind {
    /// An alert was diagnosed.
    Diagnosis,
    /// A question was answered.
    Question,
}

/// How far a session came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    Running,
    Complete,
    Incomplete,
    Cancelled,
    /// Ended with an error and without an answer.
    Failed,
    /// The process that worked on it is gone and never said how it ended.
    Interrupted,
}

impl SessionStatus {
    pub const ALL: [Self; 6] =
        [Self::Running, Self::Complete, Self::Incomplete, Self::Cancelled, Self::Failed, Self::Interrupted];

    /// The identifier in stores, documents and filters.
    pub fn id(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Incomplete => "incomplete",
            Self::Cancelled => "cancelled",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.id() == id)
    }
}

impl SessionKind {
    pub fn id(self) -> &'static str {
        match self {
            Self::Diagnosis => "diagnosis",
            Self::Question => "question",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        [Self::Diagnosis, Self::Question].into_iter().find(|kind| kind.id() == id)
    }
}

/// The head of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// A UUID of version 7: ids sort by the time of their start.
    pub id: String,
    pub kind: SessionKind,
    /// `graph` for a diagnosis; `simple` or `complex` for a question.
    pub route: String,
    pub status: SessionStatus,
    pub status_reason: Option<String>,
    /// The alert's name, or the question.
    pub title: String,
    pub service: Option<String>,
    /// The alert's.
    pub fingerprint: Option<String>,
    /// When the alert began, by its sender's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alert_started_at: Option<Timestamp>,
    pub lang: Lang,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reasoner: Option<String>,
    pub model: Option<String>,
    pub usage: Usage,
    /// What was named as the cause: category, title, service, confidence.
    pub category: Option<String>,
    pub cause: Option<String>,
    pub cause_service: Option<String>,
    pub confidence: Option<f64>,
}

impl Session {
    /// A session that begins now.
    pub fn begin(id: &str, kind: SessionKind, route: &str, title: &str, lang: Lang, at: Timestamp) -> Self {
        Self {
            id: id.to_owned(),
            kind,
            route: route.to_owned(),
            status: SessionStatus::Running,
            status_reason: None,
            title: title.to_owned(),
            service: None,
            fingerprint: None,
            alert_started_at: None,
            lang,
            started_at: at,
            ended_at: None,
            reasoner: None,
            model: None,
            usage: Usage::default(),
            category: None,
            cause: None,
            cause_service: None,
            confidence: None,
        }
    }
}

/// A run of a node, or a step of the plan worked inside one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStep {
    /// From 1, in the order of starts; unique within the session.
    pub order: u32,
    /// The graph's node; `step` for a step of the plan.
    pub node: String,
    /// `order` of the node run that worked the step.
    pub parent: Option<u32>,
    /// The step's number in the plan.
    pub plan_step: Option<u32>,
    /// What it came to: the plan, the conclusion of a step.
    pub decision: Option<String>,
    /// Why: the question of a step, the reason of a revision, what the reasoner thought.
    pub reason: Option<String>,
    /// What it added to the state, in short: `4 calls, 12 evidence`.
    pub state_change: Option<String>,
    pub started_at: Timestamp,
    /// `None` while it runs.
    pub milliseconds: Option<u64>,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InvocationStatus {
    Running,
    Ok,
    /// Answered from memory of an earlier call.
    Stale,
    Failed,
}

impl InvocationStatus {
    pub fn id(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ok => "ok",
            Self::Stale => "stale",
            Self::Failed => "failed",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        [Self::Running, Self::Ok, Self::Stale, Self::Failed].into_iter().find(|status| status.id() == id)
    }
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInvocation {
    /// Unique within the session.
    pub id: u64,
    /// `order` of the step that made it.
    pub step: Option<u32>,
    pub tool: String,
    /// `builtin`, or the MCP server.
    pub server: String,
    pub arguments: Value,
    pub status: InvocationStatus,
    /// `kind: message` of a failure.
    pub error: Option<String>,
    pub attempts: u32,
    /// The source that answered, with its age when it was answered from memory.
    pub served_by: Option<String>,
    pub started_at: Timestamp,
    /// `None` while it runs.
    pub milliseconds: Option<u64>,
    /// The first 500 characters.
    pub output_preview: Option<String>,
    /// Bytes of the whole output.
    pub output_bytes: Option<u64>,
    pub findings: Option<u64>,
    pub truncated: bool,
    /// For retrieval: how good it was.
    pub retrieval: Option<RetrievalQuality>,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The question, or the alert.
    User,
    Assistant,
    /// What the reasoner thought before it called.
    Thought,
    /// Something the user was warned of.
    Warning,
}

impl Role {
    pub fn id(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Thought => "thought",
            Self::Warning => "warning",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        [Self::User, Self::Assistant, Self::Thought, Self::Warning].into_iter().find(|role| role.id() == id)
    }
}

/// Something said in a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// From 1, unique within the session.
    pub order: u32,
    pub role: Role,
    pub content: String,
    pub at: Timestamp,
}

/// Whether a diagnosis was right.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    Right,
    Wrong,
}

impl Judgement {
    pub fn id(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Wrong => "wrong",
        }
    }

    pub fn of_id(id: &str) -> Option<Self> {
        [Self::Right, Self::Wrong].into_iter().find(|judgement| judgement.id() == id)
    }
}

/// What a human said of a session afterwards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Feedback {
    pub judgement: Judgement,
    /// What the cause really was.
    pub cause: Option<String>,
    /// What fixed it, or anything else worth keeping.
    pub note: Option<String>,
    pub at: Timestamp,
}

/// The document that `oncall session show --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// [`SESSION_SCHEMA`].
    pub schema: String,
    pub session: Session,
    pub steps: Vec<AgentStep>,
    pub tool_invocations: Vec<ToolInvocation>,
    pub messages: Vec<Message>,
    pub feedback: Vec<Feedback>,
    /// The `oncall.diagnosis/v1` document of a diagnosis that came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Value>,
}

impl SessionRecord {
    /// A record in which nothing has happened yet.
    pub fn begin(session: Session) -> Self {
        Self {
            schema: SESSION_SCHEMA.to_owned(),
            session,
            steps: Vec::new(),
            tool_invocations: Vec::new(),
            messages: Vec::new(),
            feedback: Vec::new(),
            diagnosis: None,
        }
    }
}
