//! `workload_status`: what runs, what is ready, what restarted and why, and what Kubernetes said about it.
//!
//! In: a service or nothing. Out: findings, the worst first within each kind: workloads, pods, nodes, rollouts, events.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{ToolClock, input_schema, outcome, parse_arguments};
use super::sources::Roll;
use crate::domain::{Failure, Finding, Outcome, Output, Served, ToolSpec, Window};
use crate::source::{StatusAnswer, StatusQuery, StatusSource};

pub const NAME: &str = "workload_status";

/// Events and rollouts are told of this time before now.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24);
/// Findings of each kind.
const MAX_WORKLOADS: usize = 20;
const MAX_PODS: usize = 30;
const MAX_NODES: usize = 10;
const MAX_ROLLOUTS: usize = 10;
const MAX_EVENTS: usize = 25;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// Name of the service or workload, as its labels or deployment have it. Everything of it is told, healthy or not.
    /// Without it: whatever is not as it should be.
    service: Option<String>,
    /// Only this namespace.
    namespace: Option<String>,
}

/// The tool.
pub struct WorkloadStatus {
    spec: ToolSpec,
    sources: Vec<Arc<dyn StatusSource>>,
    clock: ToolClock,
}

impl WorkloadStatus {
    pub fn new(sources: Vec<Arc<dyn StatusSource>>, clock: ToolClock) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: "State of workloads: ready and desired replicas, pods with restarts and the reason of their \
                          last termination, conditions, nodes in trouble, rollouts and events of the last 24 hours. \
                          With a service: all of it, healthy or not. Without: what is not as it should be."
                .to_owned(),
            input_schema: input_schema::<Arguments>(),
            server: "builtin".to_owned(),
            read_only: true,
        };
        Self { spec, sources, clock }
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let back_from_now = Window::ending_at(self.clock.now, LOOK_BACK);
        let window = Window::new(back_from_now.start.min(self.clock.window.start), self.clock.now);
        let query = StatusQuery { service: arguments.service, namespace: arguments.namespace, window };
        let mut asked = ask(&self.sources, &query).await?;
        let mut output = Output {
            asked: asked.roll.strip(),
            source: asked.roll.names.join(", "),
            window: Some(window),
            findings: Vec::new(),
            notes: asked.roll.notes,
            truncated: false,
            served: Served::Live,
            retrieval: None,
        };
        // Rollouts alone say nothing of the state.
        let is_well = asked.answer.workloads.is_empty()
            && asked.answer.pods.is_empty()
            && asked.answer.nodes.is_empty()
            && asked.answer.events.is_empty();
        if is_well {
            output.findings.push(Finding::Nothing { what: sought(&query) });
        }
        add_findings(&mut output, asked.answer);
        Ok(output)
    }
}

#[async_trait]
impl Tool for WorkloadStatus {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments).await)
    }
}

/// What several sources answered together; their notes are the roll's.
pub(crate) struct Asked {
    pub roll: Roll,
    pub answer: StatusAnswer,
}

/// Asks all sources at once.
pub(crate) async fn ask(sources: &[Arc<dyn StatusSource>], query: &StatusQuery) -> Result<Asked, Failure> {
    let answers = futures::future::join_all(sources.iter().map(|source| source.status(query))).await;
    let (mut roll, mut all) = (Roll::default(), StatusAnswer::default());
    for (source, answer) in sources.iter().zip(answers) {
        let Some(mut answer) = roll.take(source.name(), answer) else { continue };
        roll.says(source.caveat());
        if answer.is_empty() {
            roll.found_nothing();
        }
        all.workloads.append(&mut answer.workloads);
        all.pods.append(&mut answer.pods);
        all.events.append(&mut answer.events);
        all.nodes.append(&mut answer.nodes);
        all.rollouts.append(&mut answer.rollouts);
        roll.notes.append(&mut answer.notes);
    }
    Ok(Asked { roll: roll.checked()?, answer: all })
}

fn add_findings(output: &mut Output, answer: StatusAnswer) {
    add(output, answer.workloads, Finding::Workload, MAX_WORKLOADS, "workloads");
    add(output, answer.pods, Finding::Pod, MAX_PODS, "pods");
    add(output, answer.nodes, Finding::Node, MAX_NODES, "nodes");
    add(output, answer.rollouts, Finding::Rollout, MAX_ROLLOUTS, "rollouts");
    add(output, answer.events, Finding::Event, MAX_EVENTS, "events");
}

/// Adds the first of the values, which are the most telling ones, and says when there are more.
fn add<T>(output: &mut Output, values: Vec<T>, finding: fn(T) -> Finding, max: usize, what: &str) {
    if values.len() > max {
        output.truncated = true;
        output.notes.push(format!("{max} of {} {what} are shown", values.len()));
    }
    output.findings.extend(values.into_iter().take(max).map(finding));
}

fn sought(query: &StatusQuery) -> String {
    let place = query.namespace.as_ref().map(|namespace| format!(" in namespace {namespace}")).unwrap_or_default();
    match &query.service {
        Some(service) => format!("workload, pod or event of {service}{place}"),
        None => format!("workload, pod or node that is not as it should be{place}"),
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::domain::FailureKind;
    use crate::source::SourceError;
    use crate::source::kubernetes::FileStatus;
    use crate::source::kubernetes::inventory::Inventory;

    struct Refusing;

    #[async_trait]
    impl StatusSource for Refusing {
        fn name(&self) -> &str {
            "refusing"
        }

        async fn status(&self, _query: &StatusQuery) -> Result<StatusAnswer, SourceError> {
            Err(SourceError::new(FailureKind::Unauthorized, "pods is forbidden"))
        }

        async fn changes(
            &self,
            _window: Window,
            _service: Option<&str>,
        ) -> Result<Vec<crate::domain::Change>, SourceError> {
            Err(SourceError::new(FailureKind::Unauthorized, "forbidden"))
        }
    }

    fn files() -> Arc<dyn StatusSource> {
        let mut inventory = Inventory::default();
        for name in ["deployments.json", "pods.json", "replicasets.json", "events.json"] {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kubernetes").join(name);
            inventory.read(name, std::fs::File::open(path).unwrap());
        }
        Arc::new(FileStatus::new("files/status", inventory, Vec::new()))
    }

    async fn call(sources: Vec<Arc<dyn StatusSource>>, arguments: Value) -> Outcome {
        let now = "2026-11-30T09:30:00Z".parse().unwrap();
        let clock =
            ToolClock { now, window: Window::ending_at(now, SignedDuration::from_hours(1)), zone: TimeZone::UTC };
        WorkloadStatus::new(sources, clock).call(arguments, &CancellationToken::new()).await
    }

    fn output(outcome: Outcome) -> Output {
        match outcome {
            Outcome::Output(output) => output,
            Outcome::Failure(failure) => panic!("{failure:?}"),
        }
    }

    #[tokio::test]
    async fn a_service_is_told_workload_first_then_pods() {
        let output = output(call(vec![files()], json!({"service": "order-service"})).await);
        assert_eq!((output.source.as_str(), output.truncated), ("files/status", false));
        let kinds: Vec<_> = output
            .findings
            .iter()
            .map(|finding| serde_json::to_value(finding).unwrap()["type"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(kinds[..5], ["workload", "pod", "pod", "rollout", "rollout"]);
        assert!(kinds[5..].iter().all(|kind| kind == "event") && kinds.len() > 5);
    }

    #[tokio::test]
    async fn nothing_found_is_a_finding() {
        let output = output(call(vec![files()], json!({"service": "nosuch", "namespace": "shop"})).await);
        let what = "workload, pod or event of nosuch in namespace shop".to_owned();
        assert_eq!(output.findings, [Finding::Nothing { what }]);
    }

    #[tokio::test]
    async fn one_source_that_fails_is_a_note_and_all_are_a_failure() {
        let both = output(call(vec![Arc::new(Refusing), files()], json!({})).await);
        assert_eq!(
            (both.source.as_str(), both.notes.as_slice()),
            ("files/status", &["refusing: pods is forbidden".to_owned()][..])
        );
        let failure = Failure::of_source("refusing", FailureKind::Unauthorized, "pods is forbidden");
        assert_eq!(call(vec![Arc::new(Refusing)], json!({})).await, Outcome::Failure(failure));
    }

    #[tokio::test]
    async fn an_unknown_argument_is_refused() {
        match call(vec![files()], json!({"servce": "x"})).await {
            Outcome::Failure(failure) => {
                assert_eq!(failure.kind, FailureKind::BadArguments);
                assert!(failure.message.contains("did you mean `service`?"), "{}", failure.message);
            }
            Outcome::Output(output) => panic!("{output:?}"),
        }
    }
}
