//! `list_documents`: what the knowledge base holds. (`retrieve_knowledge` is the agent's own tool.)

use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::{answered, spec};
use crate::domain::{Failure, FailureKind, Outcome, Output, ToolSpec};
use crate::knowledge::Knowledge;
use crate::tool::Tool;
use crate::tool::arguments::{bad_arguments, outcome, parse_arguments};
use crate::tool::knowledge::SOURCE;

/// Documents in one answer.
const MAX_DOCUMENTS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// Only documents whose path holds this text, ignoring case.
    filter: Option<String>,
    /// How many documents to skip, for the next part of a long list.
    offset: Option<usize>,
}

/// The tool.
pub struct ListDocuments {
    spec: ToolSpec,
    knowledge: Arc<Knowledge>,
}

impl ListDocuments {
    pub fn new(knowledge: Arc<Knowledge>) -> Self {
        let description = "The documents of the knowledge base by path, with the number of passages of each.";
        Self { spec: spec::<Arguments>("list_documents", description), knowledge }
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let all = self.knowledge.document_list().await.map_err(|error| Failure {
            kind: FailureKind::Unavailable,
            source: Some(SOURCE.to_owned()),
            ..bad_arguments(error.to_string())
        })?;
        let filter = arguments.filter.unwrap_or_default().to_lowercase();
        let found: Vec<_> = all.into_iter().filter(|(path, _)| path.to_lowercase().contains(&filter)).collect();
        let offset = arguments.offset.unwrap_or_default();
        let documents: Vec<_> = found
            .iter()
            .skip(offset)
            .take(MAX_DOCUMENTS)
            .map(|(path, passages)| json!({"source": path, "passages": passages}))
            .collect();
        let end = offset.saturating_add(documents.len());
        let next = (end < found.len()).then_some(end);
        let value = json!({"total": found.len(), "documents": documents, "next_offset": next});
        Ok(answered(SOURCE.to_owned(), value))
    }
}

#[async_trait]
impl Tool for ListDocuments {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments).await)
    }
}
