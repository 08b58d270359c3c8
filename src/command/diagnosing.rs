//! A diagnosis under way: the agent runs in a task, its events come out, wishes go in, and everything is recorded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::models::{self, BudgetArgs};
use super::recording::Recording;
use super::world::World;
use super::{Context, live, record};
use crate::agent::{self, Bounds, Crew, Task};
use crate::control::ControlStream;
use crate::domain::{Alert, Diagnosis, Facts};
use crate::event::{Event, EventSink};
use crate::mcp::Fleet;
use crate::reason::Reasoner;
use crate::tool::approval::Approvals;
use crate::tool::invoker::{Fallback, Invoker, InvokerSettings};
use crate::tool::registry::Registry;

/// Calls under way at once.
const CONCURRENT_CALLS: usize = 8;
const CALL_ATTEMPTS: u32 = 3;

/// What is to be diagnosed, as far as the payload and the incident say it.
pub(super) struct Case {
    /// The alert, first, and those of the same root; never empty.
    pub alerts: Vec<Alert>,
    /// In the language of the run.
    pub facts: Facts,
    /// The zone in which times are shown.
    pub zone: TimeZone,
    /// The incident's folder.
    pub folder: Option<PathBuf>,
}

/// How it is to run.
pub(super) struct Settings<'a> {
    pub budget: &'a BudgetArgs,
    /// The folder in which it is kept as an incident.
    pub record: Option<&'a Path>,
    /// Whether what earlier runs were told is refused.
    pub refuses_stale: bool,
    /// Somebody is there who steers the run and answers requests for approval.
    pub steered: Option<Steered>,
}

/// The agent's side of somebody at a screen.
pub(super) struct Steered {
    pub wishes: ControlStream,
    pub approvals: Arc<Approvals>,
}

/// A diagnosis that has begun.
pub(super) struct Diagnosing {
    pub session_id: String,
    pub events: UnboundedReceiver<Event>,
    pub run: JoinHandle<Diagnosis>,
    pub recording: Recording,
    /// The servers that some of the tools belong to, to be closed at the end.
    pub fleet: Fleet,
}

/// Begins.
///
/// # Errors
/// A model profile, a template, a recording or a session store that cannot be used.
pub(super) fn begin(
    case: Case,
    world: World,
    settings: Settings<'_>,
    context: &Context,
    cancel: CancellationToken,
) -> anyhow::Result<Diagnosing> {
    let (sink, events) = EventSink::channel();
    let around = models::Surroundings {
        events: &sink,
        cancel: &cancel,
        zone: &case.zone,
        incident: case.folder.as_deref(),
        budget: settings.budget,
        recorder: settings.record.map(record::of_models).transpose()?,
    };
    let reasoner = models::reasoner_or_rules(context, &around)?;
    let approvals = settings.steered.as_ref().map(|steered| Arc::clone(&steered.approvals));
    let fallback = match settings.refuses_stale {
        true => Fallback::None,
        false => live::fallback(case.folder.is_some(), context)?,
    };
    let crew = crew(reasoner, world.registry, fallback, (sink, cancel), settings.budget, approvals, context);
    let session_id = uuid::Uuid::now_v7().to_string();
    let task = Task {
        session_id: session_id.clone(),
        alerts: case.alerts,
        facts: case.facts,
        zone: case.zone,
        history: world.history,
        topology: world.topology,
        absent_sources: world.absent,
    };
    let name = &task.alerts[0].name;
    let recording = Recording::of_diagnosis(&session_id, name, task.facts.lang, context)?;
    let run = match settings.steered {
        Some(Steered { wishes, .. }) => tokio::spawn(agent::run_steered(task, crew, wishes)),
        None => tokio::spawn(agent::run(task, crew)),
    };
    Ok(Diagnosing { session_id, events, run, recording, fleet: world.fleet })
}

/// Those who work a run: the reasoner, the tools, and the bounds of the configuration and the flags.
pub(super) fn crew(
    reasoner: Arc<dyn Reasoner>,
    registry: Registry,
    fallback: Fallback,
    (events, cancel): (EventSink, CancellationToken),
    budget: &BudgetArgs,
    approvals: Option<Arc<Approvals>>,
    context: &Context,
) -> Crew {
    let agent = &context.config.agent;
    let settings = InvokerSettings {
        deadline: agent.tool_timeout,
        attempts: CALL_ATTEMPTS,
        failures_to_close: agent.tool_failures,
        concurrency: CONCURRENT_CALLS,
    };
    let invoker = Invoker::new(registry, settings, events.clone()).falling_back(fallback);
    let invoker = match approvals {
        Some(approvals) => invoker.asking(approvals),
        None => invoker,
    };
    Crew {
        reasoner,
        invoker: Arc::new(invoker),
        events,
        cancel,
        bounds: Bounds {
            max_steps: agent.max_steps,
            max_nodes: agent.max_nodes,
            max_time: budget.max_time.unwrap_or(agent.max_time),
        },
        steering: Arc::default(),
    }
}
