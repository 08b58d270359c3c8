//! Node `analyze_alert`: what the alerts say becomes facts, and the state begins.

use super::{Crew, Task};
use crate::domain::{Plan, State, Usage};
use crate::event::EventKind;
use crate::reason::facts;

pub(super) fn run(task: &Task, crew: &Crew) -> State {
    let mut facts = facts::analyze(&task.alerts, task.now);
    if let Some(lang) = task.lang {
        facts.lang = lang;
    }
    crew.events
        .emit(EventKind::RunStarted { session_id: task.session_id.clone(), alert: Box::new(task.alerts[0].clone()) });
    crew.events.emit(EventKind::FactsFound { facts: Box::new(facts.clone()) });
    State {
        alerts: task.alerts.clone(),
        facts,
        topology: task.topology.clone(),
        tools: crew.invoker.registry().specs(),
        invocations: Vec::new(),
        evidence: Vec::new(),
        plan: Plan::default(),
        hits: Vec::new(),
        closed_tools: Vec::new(),
        usage: Usage::default(),
    }
}
