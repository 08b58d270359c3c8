//! Node `plan`: ordered questions from the runbook, the alert's kind and the first findings.

use super::Crew;
use super::graph::{Next, NodeOutput};
use super::merge::Update;
use crate::domain::State;
use crate::event::EventKind;

pub(super) async fn run(state: &State, crew: &Crew) -> NodeOutput {
    match crew.reasoner.plan(state).await {
        Ok(planned) => {
            let next = if planned.value.next_pending().is_some() { Next::Edges } else { Next::Finish };
            crew.events.emit(EventKind::PlanMade { plan: planned.value.clone() });
            NodeOutput { updates: vec![Update::Planned(planned.value), Update::Used(planned.usage)], next }
        }
        Err(error) => {
            crew.events.emit(EventKind::Warning { message: error.to_string() });
            NodeOutput { updates: Vec::new(), next: Next::Finish }
        }
    }
}
