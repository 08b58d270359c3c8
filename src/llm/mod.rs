//! Language models: one seam, [`ChatModel`], over the wires that providers speak, and [`Chat`], which adds to any of them
//! what every call needs: redaction, the context window, budgets, retries and a record.

mod anthropic;
mod assemble;
mod capability;
mod chat;
pub mod json;
mod openai;
mod record;
pub mod redact;
mod replay;
mod sse;
pub mod tokens;
mod toolless;
mod window;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::HttpError;

pub use anthropic::Anthropic;
pub use capability::{JsonMode, Wire};
pub use chat::{Chat, ChatSettings, Meter, Prices, Reply};
pub use openai::{Endpoint, OpenAi};
pub use record::Recorder;
pub use replay::{Exchange, Replay};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    System,
    User,
    Assistant,
    Tool,
}

/// A call that a model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
    /// The arguments as they came, when they are no JSON object: such a call is never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed: Option<String>,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: String,
    /// Of an assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Of a tool: the call that this answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl Message {
    fn plain(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    pub fn system(content: impl Into<String>) -> Self {
        Self::plain(Role::System, content)
    }

    pub fn user(content: impl Into<String>) -> Self {
        Self::plain(Role::User, content)
    }

    pub fn assistant(content: impl Into<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self { tool_calls, ..Self::plain(Role::Assistant, content) }
    }

    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self { tool_call_id: Some(call_id.into()), ..Self::plain(Role::Tool, content) }
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON schema of the arguments.
    pub parameters: Value,
}

/// A schema that the answer must fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AnswerSchema {
    pub name: String,
    pub schema: Value,
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The node that asks: `plan`, `execute`, … Names the exchange in records.
    pub node: String,
    pub messages: Vec<Message>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolDefinition>,
    /// The answer is JSON of this shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerSchema>,
    /// Tokens of the answer, at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// Tokens as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TokenUsage {
    /// All of the prompt, cached ones included.
    pub input: u64,
    pub output: u64,
    /// Of the input, read from the server's cache.
    #[serde(default)]
    pub cached: u64,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// It was done, or did not say.
    #[default]
    Stop,
    /// The limit of tokens.
    Length,
    ToolCalls,
    /// A filter of the provider.
    Filtered,
    /// Whatever else a server says.
    Other(String),
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Answer {
    pub content: String,
    /// What it thought, kept apart: never part of the answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    #[serde(default)]
    pub finish: Finish,
    /// `None` when the server did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// A piece of an answer as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delta<'a> {
    Content(&'a str),
    Reasoning(&'a str),
}

/// Hears the pieces of an answer.
pub type OnDelta<'a> = &'a mut (dyn FnMut(Delta<'_>) + Send);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ModelError {
    /// The profile cannot be used; the user's to mend.
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Unauthorized(String),
    #[error("{}", unknown_model(.model, .known))]
    UnknownModel { model: String, known: Vec<String> },
    /// The prompt does not fit the model's window.
    #[error("the prompt is too long for the model: {0}")]
    Overflow(String),
    /// A filter of the provider, or the model itself, declined.
    #[error("the model declined: {0}")]
    Refused(String),
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An error object where an answer was due, or something that is no answer.
    #[error("the model's server answered something unusable: {0}")]
    Garbage(String),
    #[error("the model's answer broke off after {received} characters")]
    Cut { received: usize },
    /// Tokens or cost of the run are used up.
    #[error("{0}")]
    Budget(String),
    /// A recorded exchange that does not fit what is asked.
    #[error("{0}")]
    Replay(String),
    #[error("interrupted")]
    Cancelled,
}

/// No answer is larger; a server that sends more has lost its way.
const MAX_ANSWER_BYTES: usize = 16 << 20;

fn too_long() -> ModelError {
    ModelError::Garbage(format!("an answer of over {} MiB", MAX_ANSWER_BYTES >> 20))
}

fn unknown_model(model: &str, known: &[String]) -> String {
    match known {
        [] => format!("the endpoint has no model `{model}`: set `model` in the profile to one that it has"),
        known => format!("the endpoint has no model `{model}`: it has {}", known.join(", ")),
    }
}

impl ModelError {
    /// Whether the same request may succeed a moment later.
    pub fn is_transient(&self) -> bool {
        match self {
            // The wire has tried again already what HTTP tells to be passing.
            Self::Http(_) => false,
            Self::Cut { .. } | Self::Garbage(_) => true,
            _ => false,
        }
    }

    /// Whether no later request of this run can succeed either.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Settings(_) | Self::Unauthorized(_) | Self::UnknownModel { .. } | Self::Budget(_) => true,
            Self::Replay(_) | Self::Cancelled => true,
            Self::Http(error) => matches!(error, HttpError::Unreachable { .. } | HttpError::Timeout { .. }),
            _ => false,
        }
    }
}

/// A model that answers a conversation.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// The model's name, as the provider calls it.
    fn name(&self) -> &str;

    /// Answers; `on_delta` hears the pieces where the wire streams.
    async fn answer(&self, request: &ChatRequest, on_delta: OnDelta<'_>) -> Result<Answer, ModelError>;
}
