//! The graph that works an alert: nodes in the order of the data flow, bounded in rounds, node runs and time.
//!
//! In come alerts, a reasoner and an invoker; out comes a [`Diagnosis`], always: a bound that is hit or an
//! interruption jumps to `synthesize`, and the answer says so.

mod analyze_alert;
pub mod ask;
mod execute;
mod graph;
mod merge;
mod parallel_query;
mod plan;
mod replan;
mod respond;
mod retrieve_knowledge;
pub mod steering;
mod synthesize;

use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use crate::control::ControlStream;
use crate::domain::{Alert, Diagnosis, Facts, History, SourceReport, Topology};
use crate::event::EventSink;
use crate::reason::Reasoner;
use crate::tool::invoker::Invoker;

pub use graph::run;
pub use steering::Steering;

/// The bounds of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Rounds of execute and replan.
    pub max_steps: usize,
    /// Node runs in all.
    pub max_nodes: usize,
    pub max_time: Duration,
}

/// What is to be diagnosed.
#[derive(Debug, Clone)]
pub struct Task {
    pub session_id: String,
    /// The alert, first, and those of the same root; never empty.
    pub alerts: Vec<Alert>,
    /// What the alerts say, with the clock and the language of the run.
    pub facts: Facts,
    pub zone: TimeZone,
    /// What is known of the alert from earlier.
    pub history: Option<History>,
    pub topology: Topology,
    /// Kinds of evidence that nothing is configured for; they stay in the source strip.
    pub absent_sources: Vec<SourceReport>,
}

/// What the nodes work with.
#[derive(Clone)]
pub struct Crew {
    pub reasoner: Arc<dyn Reasoner>,
    pub invoker: Arc<Invoker>,
    pub events: EventSink,
    /// Cancelled by the user: the best answer so far is given.
    pub cancel: CancellationToken,
    pub bounds: Bounds,
    /// What the engineer wished while it runs.
    pub steering: Arc<Steering>,
}

/// Runs the graph while a front end steers it.
pub async fn run_steered(task: Task, crew: Crew, controls: ControlStream) -> Diagnosis {
    let helm = crew.clone();
    tokio::select! {
        biased;
        diagnosis = run(task, crew) => diagnosis,
        never = steering::follow(controls, helm) => match never {},
    }
}
