//! The graph under trouble: tools that fail or hang, bounds, interruptions. The tools are made here, the rest is real.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use oncall::agent::{self, Bounds, Crew, Task};
use oncall::alert;
use oncall::domain::{Diagnosis, Failure, FailureKind, Finding, Outcome, Output, RunStatus, Served, ToolSpec};
use oncall::event::{Event, EventKind, EventSink};
use oncall::reason::facts;
use oncall::reason::rules::Rules;
use oncall::tool::Tool;
use oncall::tool::invoker::{Invoker, InvokerSettings};
use oncall::tool::registry::Registry;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// What a made tool does when it is called.
#[derive(Clone, Copy)]
pub enum Behaviour {
    Fails,
    Hangs,
    FindsNothing,
    /// The same after so many seconds.
    FindsNothingAfter(u64),
}

struct Made(ToolSpec, Behaviour);

#[async_trait]
impl Tool for Made {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, _arguments: Value, cancel: &CancellationToken) -> Outcome {
        match self.1 {
            Behaviour::Fails => Outcome::Failure(Failure::of_source("made", FailureKind::SourceError, "it is broken")),
            Behaviour::Hangs => {
                cancel.cancelled().await;
                Outcome::Failure(Failure::new(FailureKind::Cancelled, "cancelled"))
            }
            Behaviour::FindsNothing => nothing(&self.0.name),
            Behaviour::FindsNothingAfter(seconds) => {
                tokio::time::sleep(Duration::from_secs(seconds)).await;
                nothing(&self.0.name)
            }
        }
    }
}

fn nothing(tool: &str) -> Outcome {
    Outcome::Output(Output {
        source: "made".into(),
        window: None,
        findings: vec![Finding::Nothing { what: format!("anything by {tool}") }],
        notes: Vec::new(),
        truncated: false,
        served: Served::Live,
        asked: Vec::new(),
        retrieval: None,
    })
}

pub fn registry(tools: &[(&str, Behaviour)]) -> Registry {
    Registry::new(tools.iter().map(|(name, behaviour)| -> Arc<dyn Tool> {
        let spec = ToolSpec {
            name: (*name).into(),
            description: String::new(),
            input_schema: json!({}),
            server: "builtin".into(),
            read_only: true,
        };
        Arc::new(Made(spec, *behaviour))
    }))
}

pub const EVIDENCE_TOOLS: [&str; 5] =
    ["query_metrics", "discover_metrics", "search_logs", "workload_status", "recent_changes"];

pub fn all(behaviour: Behaviour) -> Registry {
    registry(&EVIDENCE_TOOLS.map(|name| (name, behaviour)))
}

pub const BOUNDS: Bounds = Bounds { max_steps: 10, max_nodes: 30, max_time: Duration::from_secs(60) };

/// What a run of the rules over these tools needs, and its events.
pub fn prepared(
    registry: Registry,
    text: &str,
    bounds: Bounds,
    cancel: CancellationToken,
) -> (Task, Crew, UnboundedReceiver<Event>) {
    let (events, received) = EventSink::channel();
    let settings =
        InvokerSettings { deadline: Duration::from_secs(10), attempts: 1, failures_to_close: 3, concurrency: 8 };
    let crew = Crew {
        reasoner: Arc::new(Rules::new(TimeZone::UTC)),
        invoker: Arc::new(Invoker::new(registry, settings, events.clone())),
        events,
        cancel,
        bounds,
        steering: Arc::default(),
    };
    let topology = [("cart".to_string(), vec!["stock".into(), "prices".into(), "users".into(), "mail".into()])];
    let alerts = alert::parse(text).unwrap().alerts;
    let task = Task {
        session_id: "test".into(),
        facts: facts::analyze(&alerts, "2026-03-04T06:45:00Z".parse().unwrap()),
        alerts,
        zone: TimeZone::UTC,
        history: None,
        topology: topology.into(),
        absent_sources: Vec::new(),
    };
    (task, crew, received)
}

async fn run(registry: Registry, text: &str, bounds: Bounds, cancel: CancellationToken) -> (Diagnosis, Vec<Event>) {
    let (task, crew, mut received) = prepared(registry, text, bounds, cancel);
    let diagnosis = agent::run(task, crew).await;
    let mut seen = Vec::new();
    while let Ok(event) = received.try_recv() {
        seen.push(event);
    }
    (diagnosis, seen)
}

pub const ENGLISH: &str =
    r#"{"labels":{"alertname":"HighErrorRate","service":"cart"},"startsAt":"2026-03-04T06:30:00Z"}"#;
const CHINESE: &str = r#"{"labels":{"alertname":"错误率过高","service":"cart"},"startsAt":"2026-03-04T06:30:00Z"}"#;

#[tokio::test(start_paused = true)]
async fn tools_that_always_fail_are_closed_and_a_human_is_asked_for() {
    for (text, reason) in [(ENGLISH, "tool layer failing, a human is needed"), (CHINESE, "工具层异常，请人工介入")]
    {
        let (diagnosis, events) = run(all(Behaviour::Fails), text, BOUNDS, CancellationToken::new()).await;
        assert_eq!((diagnosis.status, diagnosis.status_reason.as_deref()), (RunStatus::Incomplete, Some(reason)));
        assert_eq!(diagnosis.root_cause, None);
        let closed: Vec<(&str, u32)> = events
            .iter()
            .filter_map(|event| match &event.kind {
                EventKind::ToolClosed { tool, failures } => Some((tool.as_str(), *failures)),
                _ => None,
            })
            .collect();
        assert!(closed.contains(&("search_logs", 3)), "{closed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_found_anywhere_is_complete_and_unknown() {
    let (diagnosis, _) = run(all(Behaviour::FindsNothing), ENGLISH, BOUNDS, CancellationToken::new()).await;
    assert_eq!((diagnosis.status, diagnosis.root_cause), (RunStatus::Complete, None));
}

#[tokio::test(start_paused = true)]
async fn the_time_budget_ends_with_the_best_answer_so_far() {
    let bounds = Bounds { max_time: Duration::from_secs(3), ..BOUNDS };
    let started = tokio::time::Instant::now();
    let (diagnosis, _) = run(all(Behaviour::Hangs), ENGLISH, bounds, CancellationToken::new()).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(
        (diagnosis.status, diagnosis.status_reason.as_deref()),
        (RunStatus::Incomplete, Some("the time budget is used up"))
    );
}

#[tokio::test(start_paused = true)]
async fn an_interruption_ends_with_the_best_answer_so_far() {
    let cancel = CancellationToken::new();
    let later = cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(1)).await;
        later.cancel();
    });
    let (diagnosis, events) = run(all(Behaviour::Hangs), ENGLISH, BOUNDS, cancel).await;
    assert_eq!(diagnosis.status, RunStatus::Cancelled);
    assert!(matches!(events.last().map(|e| &e.kind), Some(EventKind::RunEnded { status: RunStatus::Cancelled, .. })));
}

#[tokio::test(start_paused = true)]
async fn a_bound_on_node_runs_is_told() {
    let bounds = Bounds { max_nodes: 3, ..BOUNDS };
    let (diagnosis, _) = run(all(Behaviour::FindsNothing), ENGLISH, bounds, CancellationToken::new()).await;
    assert_eq!(
        (diagnosis.status, diagnosis.status_reason.as_deref()),
        (RunStatus::Incomplete, Some("the limit of node runs (agent.max_nodes) was hit"))
    );
}

#[tokio::test(start_paused = true)]
async fn the_first_questions_and_the_runbooks_are_asked_at_the_same_time() {
    let (_, events) = run(all(Behaviour::FindsNothing), ENGLISH, BOUNDS, CancellationToken::new()).await;
    let node = |event: &Event| match &event.kind {
        EventKind::NodeStarted { node } => Some(format!("+{node}")),
        EventKind::NodeEnded { node, .. } => Some(format!("-{node}")),
        _ => None,
    };
    let nodes: Vec<String> = events.iter().filter_map(node).collect();
    assert_eq!(&nodes[..2], ["+analyze_alert", "-analyze_alert"]);
    assert_eq!(&nodes[2..4], ["+parallel_query", "+retrieve_knowledge"]);
    assert_eq!(nodes[6], "+plan");
    assert_eq!(&nodes[nodes.len() - 4..], ["+synthesize", "-synthesize", "+respond", "-respond"]);
}

#[tokio::test(start_paused = true)]
async fn evidence_has_the_same_numbers_whichever_source_is_faster() {
    let numbered = async |runbooks: u64, others: u64| -> Vec<(String, String)> {
        let mut tools = EVIDENCE_TOOLS.map(|name| (name, Behaviour::FindsNothingAfter(others))).to_vec();
        tools.push(("retrieve_knowledge", Behaviour::FindsNothingAfter(runbooks)));
        let (diagnosis, _) = run(registry(&tools), ENGLISH, BOUNDS, CancellationToken::new()).await;
        diagnosis.evidence.into_iter().map(|evidence| (evidence.id, evidence.summary)).collect()
    };
    let slow_runbooks = numbered(5, 1).await;
    assert!(slow_runbooks.iter().any(|(_, summary)| summary.contains("retrieve_knowledge")), "{slow_runbooks:?}");
    assert_eq!(numbered(1, 5).await, slow_runbooks);
}
