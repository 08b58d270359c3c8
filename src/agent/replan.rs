//! Node `replan`: goes on, revises what is left, or finishes.

use super::Crew;
use super::graph::{Next, NodeOutput};
use super::merge::Update;
use crate::domain::{Decision, Plan, State, StepState};
use crate::event::EventKind;

pub(super) async fn run(state: &State, crew: &Crew) -> NodeOutput {
    let reasoned = match crew.reasoner.replan(state).await {
        Ok(reasoned) => reasoned,
        Err(error) => {
            crew.events.emit(EventKind::Warning { message: error.to_string() });
            return NodeOutput { updates: Vec::new(), next: Next::Finish };
        }
    };
    let mut updates = vec![Update::Used(reasoned.usage)];
    let next = match reasoned.value {
        Decision::Finish { reason } => {
            crew.events.emit(EventKind::Thought { step: None, text: reason });
            Next::Finish
        }
        Decision::Continue if state.plan.next_pending().is_some() => Next::Again,
        Decision::Continue => Next::Finish,
        Decision::Revise { pending, reason } => {
            let next = if pending.is_empty() { Next::Finish } else { Next::Again };
            let plan = revised(&state.plan, &pending, &reason);
            crew.events.emit(EventKind::PlanRevised { plan, reason: reason.clone() });
            updates.push(Update::Revised { pending, reason });
            next
        }
    };
    NodeOutput { updates, next }
}

/// The plan as it will be once merged, for whoever watches.
fn revised(plan: &Plan, pending: &[crate::domain::Step], reason: &str) -> Plan {
    let mut plan = plan.clone();
    for step in plan.steps.iter_mut().filter(|step| step.state == StepState::Pending) {
        step.state = StepState::Skipped;
    }
    plan.steps.extend_from_slice(pending);
    plan.revisions.push(reason.to_string());
    plan
}
