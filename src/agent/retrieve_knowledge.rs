//! Node `retrieve_knowledge`: the runbooks for this alert, while the first questions are under way.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Crew;
use super::graph::NodeOutput;
use super::merge::Update;
use crate::domain::text::clean_line;
use crate::domain::{Call, State};

const TOOL: &str = "retrieve_knowledge";
/// Longer queries dilute the vector without adding words that a runbook uses.
const MAX_QUERY_CHARS: usize = 600;

pub(super) async fn run(state: &State, crew: &Crew, cancel: &CancellationToken) -> NodeOutput {
    if !state.has_tool(TOOL) {
        return NodeOutput::edges(Vec::new());
    }
    let call = Call { tool: TOOL.into(), arguments: json!({ "query": query(state) }) };
    let outcome = crew.invoker.invoke(&call, None, cancel).await;
    NodeOutput::edges(vec![Update::Called(vec![(call, outcome)])])
}

/// Name, summary and description of the alert; the metric where the text names none.
fn query(state: &State) -> String {
    let alert = state.alert();
    let mut parts = vec![alert.name.clone()];
    for key in ["summary", "title", "message", "description"] {
        parts.extend(alert.annotations.get(key).cloned());
    }
    if parts.len() == 1 {
        parts.extend(state.facts.metric.clone());
        parts.extend(alert.annotations.values().take(3).cloned());
    }
    parts.dedup();
    clean_line(&parts.join(" "), MAX_QUERY_CHARS)
}
