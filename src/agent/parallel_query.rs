//! Node `parallel_query`: the first questions to metrics, logs and status, all at once.

use tokio_util::sync::CancellationToken;

use super::Crew;
use super::graph::NodeOutput;
use super::merge::Update;
use crate::domain::State;
use crate::reason::rules;

pub(super) async fn run(state: &State, crew: &Crew, cancel: &CancellationToken) -> NodeOutput {
    let calls = rules::first_calls(state);
    let outcomes = crew.invoker.invoke_all(&calls, None, cancel).await;
    NodeOutput::edges(vec![Update::Called(calls.into_iter().zip(outcomes).collect())])
}
