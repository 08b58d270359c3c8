//! What a tool is called with and what it gives back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Finding, RetrievalQuality, SourceReport, Window};

/// How a tool presents itself to a reasoner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments object.
    pub input_schema: Value,
    /// `builtin`, or the MCP server it comes from.
    pub server: String,
    /// Whether it only reads: such calls run in parallel, are retried and may be answered from memory.
    pub read_only: bool,
}

/// What a call gave: always a value that the reasoner can read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Output(Output),
    Failure(Failure),
}

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Served {
    Live,
    /// The last good outcome of the same call, this many seconds old.
    Stale {
        age_seconds: i64,
    },
}

/// A successful answer, an empty one included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Output {
    /// The source that was asked, by its configured name.
    pub source: String,
    pub window: Option<Window>,
    /// Most telling first. Empty never: nothing found is [`Finding::Nothing`].
    pub findings: Vec<Finding>,
    /// What the reader should know about the answer: cut, warnings of the server, an assumed zone.
    pub notes: Vec<String>,
    /// Whether a limit cut the answer.
    pub truncated: bool,
    pub served: Served,
    /// How each source answered, where several were asked or one failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<SourceReport>,
    /// For retrieval: how good it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retrieval: Option<RetrievalQuality>,
}

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The arguments do not fit the schema; the caller can mend them.
    BadArguments,
    Timeout,
    Unauthorized,
    /// The source cannot be reached, or says that it is overloaded.
    Unavailable,
    /// It answered something that cannot be understood, or an error of its own.
    SourceError,
    /// Closed for this run after repeated failures.
    Closed,
    Cancelled,
    /// Nobody is there to agree to a call that may do more than read.
    NotAllowed,
    /// It may change something, and the engineer did not approve it.
    Denied,
}

impl FailureKind {
    /// The identifier, as in JSON.
    pub fn id(self) -> &'static str {
        match self {
            Self::BadArguments => "bad_arguments",
            Self::Timeout => "timeout",
            Self::Unauthorized => "unauthorized",
            Self::Unavailable => "unavailable",
            Self::SourceError => "source_error",
            Self::Closed => "closed",
            Self::Cancelled => "cancelled",
            Self::NotAllowed => "not_allowed",
            Self::Denied => "denied",
        }
    }

    /// Whether the same call may work a moment later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Timeout | Self::Unavailable)
    }
}

/// A failed call: data for the reasoner, not an error of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// The source that was asked, where one was.
    pub source: Option<String>,
    /// What went wrong and what could be done, in one sentence.
    pub message: String,
    /// How each source failed, where several were asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<SourceReport>,
}

impl Failure {
    /// A failure of no source in particular.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, source: None, message: message.into(), asked: Vec::new() }
    }

    /// A failure of one source.
    pub fn of_source(source: impl Into<String>, kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, source: Some(source.into()), message: message.into(), asked: Vec::new() }
    }
}
