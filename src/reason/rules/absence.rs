//! What is not there although it would be, and signs of health: evidence against a cause, as long as somebody looked.

use super::calls;
use super::matching::precedence;
use super::observe::{View, change_kind};
use crate::domain::{Finding, Invocation, Outcome, PodStatus};
use crate::reason::signature::Absence;

/// The evidence that shows the absence, `None` when it does not hold or nobody looked. An empty list means that the
/// answer to a question shows it by its silence.
pub(super) fn shown(view: &View<'_>, absence: Absence, service: &str) -> Option<Vec<String>> {
    match absence {
        Absence::NoRestart => no_restart(view, service),
        Absence::AllReady => all_ready(view, service),
        Absence::NodesReady => nodes_ready(view),
        Absence::NoChange => no_change(view, service),
        Absence::NoLog => logs_read(view, service),
        Absence::OtherTrouble => other_trouble(view, service),
    }
}

fn no_restart(view: &View<'_>, service: &str) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    for observation in view.all.iter().filter(|one| one.service.as_deref() == Some(service)) {
        if let Finding::Pod(pod) = &observation.evidence.data {
            if restarted(view, pod) {
                return None;
            }
            ids.push(observation.evidence.id.clone());
        }
    }
    (!ids.is_empty()).then_some(ids)
}

fn restarted(view: &View<'_>, pod: &PodStatus) -> bool {
    let start = view.state.facts.window.start;
    pod.containers.iter().any(|container| {
        container.state.contains("CrashLoop")
            || (container.restarts > 0 && container.last_termination_at.is_none_or(|at| at >= start))
    })
}

fn all_ready(view: &View<'_>, service: &str) -> Option<Vec<String>> {
    let own = view.all.iter().filter(|one| one.service.as_deref() == Some(service));
    let ids: Option<Vec<String>> = own
        .filter_map(|observation| match &observation.evidence.data {
            Finding::Workload(workload) if workload.ready < workload.desired || workload.desired == 0 => Some(None),
            Finding::Workload(_) => Some(Some(observation.evidence.id.clone())),
            _ => None,
        })
        .collect();
    ids.filter(|ids| !ids.is_empty())
}

fn nodes_ready(view: &View<'_>) -> Option<Vec<String>> {
    let mut ids = Vec::new();
    for observation in &view.all {
        if let Finding::Node(node) = &observation.evidence.data {
            if !node.ready || !node.conditions.is_empty() {
                return None;
            }
            ids.push(observation.evidence.id.clone());
        }
    }
    // Asked without a service, the status tool tells whatever is not as it should be: its silence about nodes counts.
    let asked = answered(view, calls::STATUS).any(|made| made.call.arguments["service"].is_null());
    (asked || !ids.is_empty()).then_some(ids)
}

fn no_change(view: &View<'_>, service: &str) -> Option<Vec<String>> {
    let made = answered(view, calls::CHANGES).next()?;
    let changes = || view.all.iter().filter(|one| change_kind(&one.evidence.data).is_some());
    let own = |name: Option<&str>| name.is_none_or(|name| name == service);
    if changes().any(|change| own(change.service.as_deref()) && precedence(view, change) > 0.0) {
        return None;
    }
    Some(made.evidence.iter().take(2).cloned().collect())
}

fn logs_read(view: &View<'_>, service: &str) -> Option<Vec<String>> {
    let made = answered(view, calls::LOGS).find(|made| made.call.arguments["service"].as_str() == Some(service))?;
    let volume = made.evidence.iter().find(|id| {
        view.state
            .evidence(id)
            .is_some_and(|evidence| matches!(evidence.data, Finding::LogVolume(_) | Finding::Nothing { .. }))
    });
    Some(volume.into_iter().cloned().collect())
}

fn other_trouble(view: &View<'_>, service: &str) -> Option<Vec<String>> {
    let troubled: Vec<String> = view
        .all
        .iter()
        .filter(|one| one.service.as_deref() == Some(service) && one.strength > 0.8)
        .filter(|one| match &one.evidence.data {
            Finding::Pattern(pattern) => pattern.count >= 10,
            Finding::Pod(pod) => restarted(view, pod),
            _ => false,
        })
        .map(|one| one.evidence.id.clone())
        .collect();
    (!troubled.is_empty()).then_some(troubled)
}

/// Calls of a tool that gave an output.
fn answered<'s>(view: &View<'s>, tool: &'s str) -> impl Iterator<Item = &'s Invocation> {
    let made = view.state.invocations.iter();
    made.filter(move |made| made.call.tool == tool && matches!(made.outcome, Outcome::Output(_)))
}
