//! A made run with everything in it that a store keeps: parallel calls, a failure, a plan, a model, a diagnosis. Times
//! and ids are fixed, so that what is shown of it can be held by snapshots.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use oncall::alert;
use oncall::domain::{
    Call, Category, Diagnosis, Evidence, EvidenceKind, FailureKind, Finding, Lang, Plan, RetrievalQuality,
    RetrievalVerdict, RootCause, RunStatus, Served, Session, SessionKind, Step, StepState, Usage,
};
use oncall::event::{CallResult, Event, EventKind};
use oncall::reason::facts;
use oncall::session::{Location, Owner, SessionStore, SqlStore};
use oncall::trace::Trace;
use serde_json::{Value, json};

pub const START: &str = "2026-03-04T06:45:00Z";
pub const ID: &str = "019cb7a8-0000-7000-8000-000000000001";

const ALERT: &str = r#"{"labels":{"alertname":"HighErrorRate","service":"cart","severity":"critical"},
    "annotations":{"summary":"5 % of the requests of cart fail"},"startsAt":"2026-03-04T06:30:00Z"}"#;

pub fn start() -> Timestamp {
    START.parse().unwrap()
}

fn after(milliseconds: i64) -> Timestamp {
    start().checked_add(SignedDuration::from_millis(milliseconds)).unwrap()
}

/// The events of the run with their times.
pub fn events(id: &str) -> Vec<Event> {
    let alerts = alert::parse(ALERT).unwrap().alerts;
    let facts = facts::analyze(&alerts, start());
    let started = |node: &str| EventKind::NodeStarted { node: node.into() };
    let ended = |node: &str, milliseconds| EventKind::NodeEnded { node: node.into(), milliseconds };
    let kinds = vec![
        (0, started("analyze_alert")),
        (0, EventKind::RunStarted { session_id: id.into(), alert: Box::new(alerts[0].clone()) }),
        (1, EventKind::FactsFound { facts: Box::new(facts.clone()) }),
        (2, ended("analyze_alert", 2)),
        (2, started("parallel_query")),
        (2, started("retrieve_knowledge")),
        (3, called(1, None, "query_metrics", json!({"service": "cart"}))),
        (3, called(2, None, "search_logs", json!({"service": "cart"}))),
        (4, called(3, None, "retrieve_knowledge", json!({"query": "HighErrorRate 5 % of the requests of cart fail"}))),
        (160, gave(3, 156, "knowledge", Some(quality()))),
        (160, ended("retrieve_knowledge", 158)),
        (403, gave(1, 400, "files/metrics", None)),
        (903, failed(2, 900)),
        (904, ended("parallel_query", 902)),
        (904, found("E1", EvidenceKind::Metric)),
        (904, found("E2", EvidenceKind::Knowledge)),
        (905, started("plan")),
        (2105, used("plan", 1190, 2400, 180)),
        (2106, EventKind::PlanMade { plan: plan(StepState::Pending, None) }),
        (2106, ended("plan", 1201)),
        (2107, started("execute")),
        (2107, EventKind::StepStarted { step: 1, question: "Did a dependency of cart fail first?".into() }),
        (2108, EventKind::Thought { step: Some(1), text: "The errors began before the traffic changed.".into() }),
        (2110, called(4, Some(1), "query_metrics", json!({"service": "stock"}))),
        (2410, gave(4, 300, "files/metrics", None)),
        (2411, found("E3", EvidenceKind::Metric)),
        (2412, EventKind::StepEnded { step: 1, conclusion: "stock was out of memory four minutes earlier".into() }),
        (2413, ended("execute", 306)),
        (2413, started("synthesize")),
        (3300, used("synthesize", 880, 3100, 420)),
        (3301, ended("synthesize", 888)),
        (3301, started("respond")),
        (3302, ended("respond", 1)),
        (
            3303,
            EventKind::RunEnded {
                status: RunStatus::Complete,
                diagnosis: Some(Box::new(diagnosis(id, alerts[0].clone(), facts))),
            },
        ),
    ];
    let number = |(seq, (at, kind)): (usize, (i64, EventKind))| Event { seq: seq as u64, at: after(at), kind };
    kinds.into_iter().enumerate().map(number).collect()
}

fn called(call_id: u64, step: Option<u32>, tool: &str, arguments: Value) -> EventKind {
    EventKind::CallStarted { call_id, step, server: "builtin".into(), call: Call { tool: tool.into(), arguments } }
}

fn gave(call_id: u64, milliseconds: u64, source: &str, retrieval: Option<RetrievalQuality>) -> EventKind {
    let preview = r#"[{"type":"series","expr":"rate(errors_total[5m])"}]"#.to_owned();
    let bytes = 12_345;
    let (source, served) = (source.into(), Served::Live);
    let result = CallResult::Output { source, findings: 3, truncated: false, served, preview, bytes, retrieval };
    EventKind::CallEnded { call_id, milliseconds, attempts: 1, result }
}

fn failed(call_id: u64, milliseconds: u64) -> EventKind {
    let message = "`search_logs` gave no answer within 10 s".into();
    let result = CallResult::Failure { kind: FailureKind::Timeout, message };
    EventKind::CallEnded { call_id, milliseconds, attempts: 3, result }
}

fn quality() -> RetrievalQuality {
    RetrievalQuality {
        candidates: 87,
        best_distance: Some(0.25),
        best_text_score: Some(7.5),
        kept: 3,
        best_score: Some(1.5),
        margin: Some(0.125),
        verdict: RetrievalVerdict::Strong,
    }
}

fn evidence(id: &str, kind: EvidenceKind) -> Evidence {
    Evidence {
        id: id.into(),
        kind,
        source: "files/metrics query_metrics(service=cart)".into(),
        window: None,
        summary: format!("{id}: errors of cart rose at 06:29"),
        data: Finding::Nothing { what: "a made finding".into() },
        stale_seconds: None,
    }
}

fn found(id: &str, kind: EvidenceKind) -> EventKind {
    EventKind::EvidenceFound { evidence: Box::new(evidence(id, kind)) }
}

fn used(node: &str, milliseconds: u64, input_tokens: u64, output_tokens: u64) -> EventKind {
    let usage = Usage { input_tokens, output_tokens, cached_tokens: 0, calls: 1, cost: Some(0.002) };
    EventKind::ModelUsed { node: node.into(), model: "made/model-1".into(), milliseconds, usage }
}

fn plan(state: StepState, conclusion: Option<&str>) -> Plan {
    let step = Step {
        id: 1,
        question: "Did a dependency of cart fail first?".into(),
        reason: "the runbook asks it".into(),
        calls: Vec::new(),
        state,
        conclusion: conclusion.map(str::to_owned),
        evidence: Vec::new(),
    };
    Plan { steps: vec![step], revisions: Vec::new() }
}

fn diagnosis(id: &str, alert: oncall::domain::Alert, facts: oncall::domain::Facts) -> Diagnosis {
    Diagnosis {
        schema: "oncall.diagnosis/v1".into(),
        session_id: id.into(),
        status: RunStatus::Complete,
        status_reason: None,
        reasoner: "llm".into(),
        model: Some("made/model-1".into()),
        alert,
        related_alerts: Vec::new(),
        facts,
        zone: None,
        history: None,
        summary: "stock ran out of memory [E3]; cart fails when it asks it [E1].".into(),
        root_cause: Some(RootCause {
            title: "Out of memory in stock".into(),
            service: Some("stock".into()),
            category: Category::OomKilled,
            confidence: 0.92,
            evidence: vec!["E3".into()],
        }),
        hypotheses: Vec::new(),
        evidence: vec![evidence("E1", EvidenceKind::Metric), evidence("E3", EvidenceKind::Metric)],
        next_steps: Vec::new(),
        references: Vec::new(),
        sources: Vec::new(),
        unchecked: Vec::new(),
        plan: plan(StepState::Done, Some("stock was out of memory four minutes earlier")),
        usage: Usage { input_tokens: 5500, output_tokens: 600, cached_tokens: 0, calls: 2, cost: Some(0.004) },
        timings: Vec::new(),
    }
}

/// The run folded, its head as it was before the first event.
pub fn trace(id: &str, events: &[Event]) -> Trace {
    let begin = Session::begin(id, SessionKind::Diagnosis, "graph", "HighErrorRate", Lang::En, start());
    let mut trace = Trace::begin(begin);
    events.iter().for_each(|event| trace.apply(event));
    trace
}

/// Writes the run into the SQLite store of a data folder under several ids, a day apart.
pub fn seed(data_dir: &Path, ids: &[&str]) {
    let location = Location::Sqlite(data_dir.join("sessions.db"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = SqlStore::open(&location).await.unwrap();
        for (day, id) in ids.iter().enumerate() {
            let mut trace = trace(id, &events(id));
            let days = SignedDuration::from_hours(24 * day as i64);
            let session = &mut trace.record.session;
            session.started_at = session.started_at.checked_add(days).unwrap();
            session.ended_at = session.ended_at.map(|end| end.checked_add(days).unwrap());
            store.write(&trace.take_changes(), &Owner::this()).await.unwrap();
        }
        store.close().await;
    });
}
