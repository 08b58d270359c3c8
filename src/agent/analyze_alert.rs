//! Node `analyze_alert`: the state begins with the alerts and what they say; a model may add what they leave open.

use super::{Crew, Task};
use crate::domain::State;
use crate::event::EventKind;
use crate::reason::Reasoned;

pub(super) async fn run(task: &Task, crew: &Crew) -> State {
    crew.events
        .emit(EventKind::RunStarted { session_id: task.session_id.clone(), alert: Box::new(task.alerts[0].clone()) });
    let mut state = State {
        topology: task.topology.clone(),
        history: task.history.clone(),
        tools: crew.invoker.registry().specs(),
        ..State::begin(task.alerts.clone(), task.facts.clone())
    };
    // Names are a help; without them the run goes on, as far as there is time left.
    let named = tokio::time::timeout(crew.bounds.max_time, crew.reasoner.analyze(&state)).await;
    let Reasoned { value: named, usage } = named.unwrap_or_default();
    let facts = &mut state.facts;
    facts.service = facts.service.take().or(named.service);
    facts.namespace = facts.namespace.take().or(named.namespace);
    facts.pod = facts.pod.take().or(named.pod);
    facts.metric = facts.metric.take().or(named.metric);
    state.usage.add(usage);
    crew.events.emit(EventKind::FactsFound { facts: Box::new(state.facts.clone()) });
    state
}
