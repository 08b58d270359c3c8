//! Tools: each answers one question, read-only. Built-in ones stand over the sources.

pub mod approval;
pub mod arguments;
pub mod builtin;
pub mod changes;
pub mod invoker;
pub mod kept;
pub mod knowledge;
pub mod logs;
pub mod metrics;
pub mod output_limit;
pub mod registry;
pub mod replay;
pub mod sources;
pub mod status;
pub mod time;

use async_trait::async_trait;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::domain::{Outcome, ToolSpec};

/// Something that answers one question.
#[async_trait]
pub trait Tool: Send + Sync {
    fn spec(&self) -> &ToolSpec;

    /// Whether a person has to agree before it is called.
    fn needs_consent(&self) -> bool {
        !self.spec().read_only
    }

    /// Answers. Never panics on bad arguments: they are a [`crate::domain::FailureKind::BadArguments`] failure.
    /// Deadline, retries and fallback are the invoker's; a tool only has to stop soon after `cancel`.
    async fn call(&self, arguments: Value, cancel: &CancellationToken) -> Outcome;
}
