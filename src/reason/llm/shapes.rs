//! The shapes in which a model answers, and their JSON schemas. Lengths are bounded, so that a server that enforces
//! the schema cannot be talked into an answer without end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::domain::{Call, Category};
use crate::llm::AnswerSchema;
use crate::tool::arguments::input_schema;

/// What `plan` answers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct PlanAnswer {
    #[schemars(length(min = 1, max = 8))]
    pub steps: Vec<StepAnswer>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct StepAnswer {
    #[schemars(length(max = 300))]
    pub question: String,
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub reason: String,
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub calls: Vec<CallAnswer>,
}

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct CallAnswer {
    #[schemars(length(max = 64))]
    pub tool: String,
    #[serde(default)]
    pub arguments: serde_json::Map<String, Value>,
}

impl CallAnswer {
    pub fn into_call(self) -> Call {
        Call { tool: self.tool, arguments: Value::Object(self.arguments) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum NextAnswer {
    Continue,
    Revise,
    Finish,
}

/// What `replan` answers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct ReplanAnswer {
    pub decision: NextAnswer,
    #[serde(default)]
    #[schemars(length(max = 400))]
    pub reason: String,
    /// With `revise`: the new open steps.
    #[serde(default)]
    #[schemars(length(max = 6))]
    pub steps: Vec<StepAnswer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct CauseAnswer {
    /// The category of the hypothesis that is the cause.
    #[schemars(length(max = 40))]
    pub category: String,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub service: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct HypothesisAnswer {
    pub category: Category,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub service: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 12), inner(length(max = 8)))]
    pub evidence_for: Vec<String>,
    #[serde(default)]
    #[schemars(length(max = 12), inner(length(max = 8)))]
    pub evidence_against: Vec<String>,
    /// From 0 to 1.
    pub confidence: f64,
    /// One or two sentences with citations.
    #[serde(default)]
    #[schemars(length(max = 600))]
    pub rationale: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct NextStepAnswer {
    #[schemars(length(max = 300))]
    pub text: String,
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub command: Option<String>,
}

/// What `synthesize` answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub(super) struct SynthesisAnswer {
    /// A paragraph with citations such as `[E1]`.
    #[schemars(length(max = 2000))]
    pub summary: String,
    /// Null when nothing fits.
    #[serde(default)]
    pub root_cause: Option<CauseAnswer>,
    /// Best first; refuted ones too.
    #[schemars(length(max = 8))]
    pub hypotheses: Vec<HypothesisAnswer>,
    #[serde(default)]
    #[schemars(length(max = 6))]
    pub next_steps: Vec<NextStepAnswer>,
}

/// What `analyze` answers.
#[derive(Debug, Clone, PartialEq, Default, Deserialize, JsonSchema)]
pub(super) struct NamesAnswer {
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub service: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub namespace: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub pod: Option<String>,
    #[serde(default)]
    #[schemars(length(max = 300))]
    pub metric: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum RouteName {
    Simple,
    Complex,
}

/// What `route` answers.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub(super) struct RouteAnswer {
    pub route: RouteName,
    #[serde(default)]
    #[schemars(length(max = 200))]
    pub reason: String,
}

/// The schema of a shape, under the name of its node.
pub(super) fn schema<T: JsonSchema>(node: &str) -> Option<AnswerSchema> {
    Some(AnswerSchema { name: node.to_string(), schema: input_schema::<T>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_hold_no_references_and_the_categories_by_their_identifiers() {
        let schema = schema::<SynthesisAnswer>("synthesize").unwrap().schema;
        let text = schema.to_string();
        assert!(!text.contains("$ref") && !text.contains("$defs"), "{text}");
        assert!(text.contains("db_connection_pool_exhausted"), "{text}");
        assert!(text.contains("\"maxLength\":2000"), "{text}");
    }

    #[test]
    fn what_a_model_leaves_out_is_empty() {
        let answer: SynthesisAnswer = serde_json::from_str(r#"{"summary":"s","hypotheses":[]}"#).unwrap();
        assert_eq!((answer.root_cause, answer.next_steps), (None, vec![]));
        let call: CallAnswer = serde_json::from_str(r#"{"tool":"x"}"#).unwrap();
        assert_eq!(call.into_call(), Call { tool: "x".into(), arguments: serde_json::json!({}) });
    }
}
