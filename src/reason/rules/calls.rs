//! Calls of tools, as the rules make them. Only tools that are there are called.

use serde_json::{Map, Value, json};

use super::windows::over_usual_range;
use crate::domain::{Call, Lang, State, Window};

pub const METRICS: &str = "query_metrics";
pub const DISCOVER: &str = "discover_metrics";
pub const LOGS: &str = "search_logs";
pub const STATUS: &str = "workload_status";
pub const CHANGES: &str = "recent_changes";

/// What is asked of every alert, before anything is known: its own metric, what else moved, the logs and state of its
/// service, and what was changed.
pub fn first_calls(state: &State) -> Vec<Call> {
    let facts = &state.facts;
    let service = facts.service.as_deref();
    let mut calls = Vec::new();
    if let Some(expr) = &facts.metric {
        calls.extend(metric(state, expr));
        calls.extend(over_usual_range(expr).and_then(|usual| metric(state, &usual)));
    }
    calls.extend(anomalies(state, service));
    calls.extend(services(state));
    match (service, &facts.pod, &facts.instance) {
        (Some(service), _, _) => calls.extend(logs(state, service)),
        (None, Some(instance), _) | (None, None, Some(instance)) => calls.extend(logs_of_instance(state, instance)),
        (None, None, None) => {}
    }
    if service.is_some() {
        calls.extend(status(state, service));
    }
    // Without a service: whatever is not as it should be, nodes included.
    calls.extend(status(state, None));
    calls.extend(changes(state));
    calls
}

fn call(state: &State, tool: &str, arguments: Map<String, Value>) -> Option<Call> {
    state.has_tool(tool).then(|| Call { tool: tool.to_string(), arguments: Value::Object(arguments) })
}

/// The entries whose value is known.
fn arguments<const N: usize>(entries: [(&str, Option<Value>); N]) -> Map<String, Value> {
    entries.into_iter().filter_map(|(key, value)| Some((key.to_string(), value?))).collect()
}

/// The course of an expression over the window.
pub fn metric(state: &State, expr: &str) -> Option<Call> {
    let Window { start, end } = state.facts.window;
    call(
        state,
        METRICS,
        arguments([
            ("expr", Some(json!(expr))),
            ("start", Some(json!(start.to_string()))),
            ("end", Some(json!(end.to_string()))),
        ]),
    )
}

/// The series that moved most, of one service or of all.
pub fn anomalies(state: &State, service: Option<&str>) -> Option<Call> {
    call(
        state,
        DISCOVER,
        arguments([
            ("show", Some(json!("anomalies"))),
            ("service", service.map(|service| json!(service))),
            ("alert_at", state.facts.fired_at.map(|at| json!(at.to_string()))),
        ]),
    )
}

/// The services in which the trouble most likely starts, by metrics and topology.
pub fn services(state: &State) -> Option<Call> {
    let facts = &state.facts;
    call(
        state,
        DISCOVER,
        arguments([
            ("show", Some(json!("services"))),
            ("alert_at", facts.fired_at.map(|at| json!(at.to_string()))),
            ("alerting_service", facts.service.as_deref().map(|service| json!(service))),
            ("symptom", Some(json!(facts.symptom))),
            ("lang", (facts.lang == Lang::Zh).then(|| json!(facts.lang))),
        ]),
    )
}

/// The patterns in the logs of a service.
pub fn logs(state: &State, service: &str) -> Option<Call> {
    logs_by(state, "service", service)
}

/// The patterns in the logs of a pod or host.
pub fn logs_of_instance(state: &State, instance: &str) -> Option<Call> {
    logs_by(state, "instance", instance)
}

fn logs_by(state: &State, key: &str, name: &str) -> Option<Call> {
    let Window { start, end } = state.facts.window;
    call(
        state,
        LOGS,
        arguments([
            (key, Some(json!(name))),
            ("start", Some(json!(start.to_string()))),
            ("end", Some(json!(end.to_string()))),
        ]),
    )
}

/// The state of one workload, or all that is not as it should be.
pub fn status(state: &State, service: Option<&str>) -> Option<Call> {
    // The namespace of the alert is that of its own service only.
    let own = service.is_some() && service == state.facts.service.as_deref();
    let namespace = state.facts.namespace.as_deref().filter(|_| own).map(|namespace| json!(namespace));
    call(state, STATUS, arguments([("service", service.map(|service| json!(service))), ("namespace", namespace)]))
}

/// All changes of the last day: which of them matters is for the reasoner to say.
pub fn changes(state: &State) -> Option<Call> {
    call(state, CHANGES, Map::new())
}
