//! The scheduler: starts a node when all its predecessors have ended, merges what nodes return in one place, and
//! jumps to `synthesize` when a bound is hit.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::merge::{Update, merge};
use super::{
    Crew, Task, analyze_alert, execute, parallel_query, plan, replan, respond, retrieve_knowledge, synthesize,
};
use crate::domain::{Diagnosis, RunStatus, State, Timing};
use crate::event::EventKind;
use crate::reason::{Conclusion, Pace, Reasoned, judge, rules};

/// What a conclusion may take when the run's time is nearly used up; then it is drawn at once.
const LEAST_TIME_TO_CONCLUDE: Duration = Duration::from_secs(20);

/// A box of the graph, in the order of the data flow, which is the order in which outputs are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Node {
    ParallelQuery,
    RetrieveKnowledge,
    Plan,
    Execute,
    Replan,
}

impl Node {
    fn name(self) -> &'static str {
        match self {
            Self::ParallelQuery => "parallel_query",
            Self::RetrieveKnowledge => "retrieve_knowledge",
            Self::Plan => "plan",
            Self::Execute => "execute",
            Self::Replan => "replan",
        }
    }

    /// The nodes that must have ended before this one starts.
    fn predecessors(self) -> &'static [Node] {
        match self {
            Self::ParallelQuery | Self::RetrieveKnowledge => &[],
            Self::Plan => &[Self::ParallelQuery, Self::RetrieveKnowledge],
            Self::Execute => &[Self::Plan],
            Self::Replan => &[Self::Execute],
        }
    }
}

/// What a node gives back.
pub(super) struct NodeOutput {
    pub updates: Vec<Update>,
    /// Whether a node that decides wants another round.
    pub next: Next,
}

/// Where the flow goes after a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// To the successors by the graph's edges.
    Edges,
    /// Back to `execute`.
    Again,
    /// To `synthesize`.
    Finish,
}

impl NodeOutput {
    pub fn edges(updates: Vec<Update>) -> Self {
        Self { updates, next: Next::Edges }
    }
}

/// Why a run left the loop early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Cancelled,
    Time,
    Nodes,
    Steps,
    Loop,
}

/// Runs the graph on one task. Never fails: what goes wrong is in the diagnosis.
pub async fn run(task: Task, crew: Crew) -> Diagnosis {
    let deadline = Instant::now() + crew.bounds.max_time;
    let mut timings = Vec::new();
    let mut state = timed(&crew, "analyze_alert", &mut timings, analyze_alert::run(&task, &crew)).await;
    let mut stop = work(&task, &crew, &mut state, &mut timings, deadline).await;
    take_wishes(&task, &crew, &mut state);

    let pace = match stop {
        Some(Stop::Cancelled | Stop::Time) => Pace::Hurried,
        _ => Pace::Thorough,
    };
    let concluding = async {
        let until = deadline.max(Instant::now() + LEAST_TIME_TO_CONCLUDE);
        match tokio::time::timeout_at(until, synthesize::run(&state, &crew, pace)).await {
            Ok(conclusion) => conclusion,
            Err(_) => {
                stop = Some(Stop::Time);
                synthesize::run(&state, &crew, Pace::Hurried).await
            }
        }
    };
    let Reasoned { value, usage } = timed(&crew, "synthesize", &mut timings, concluding).await;
    let conclusion = Reasoned { value: judge::apply(value, &state.judged, state.facts.lang), usage };
    state.usage.add(conclusion.usage);
    if let Conclusion { root_cause: Some(cause), .. } = &conclusion.value {
        tracing::debug!(category = cause.category.id(), confidence = cause.confidence, "concluded");
    }
    let started = Instant::now();
    crew.events.emit(EventKind::NodeStarted { node: "respond".into() });
    let mut diagnosis = respond::run(&task, &crew, state, conclusion, stop);
    let milliseconds = elapsed_ms(started);
    timings.push(Timing { node: "respond".into(), milliseconds });
    crew.events.emit(EventKind::NodeEnded { node: "respond".into(), milliseconds });
    diagnosis.timings = timings;
    let status = if stop == Some(Stop::Cancelled) { RunStatus::Cancelled } else { diagnosis.status };
    crew.events.emit(EventKind::RunEnded { status, diagnosis: Some(Box::new(diagnosis.clone())) });
    diagnosis
}

/// From the first questions to the last replan. Returns the bound that ended it early, if one did.
async fn work(
    task: &Task,
    crew: &Crew,
    state: &mut State,
    timings: &mut Vec<Timing>,
    deadline: Instant,
) -> Option<Stop> {
    // Cancelled with the user's token, and alone when the time is up: calls in flight end, `synthesize` still runs.
    let cancel = crew.cancel.child_token();
    let mut running = Running::default();
    let mut ended = BTreeSet::new();
    let mut bounds = Counters { seen: BTreeSet::new(), nodes: 0, rounds: 0 };
    let mut ready = vec![Node::ParallelQuery, Node::RetrieveKnowledge];
    loop {
        for node in ready.drain(..) {
            if let Some(stop) = bounds.enter(node, state, crew) {
                cancel.cancel();
                drain(task, crew, state, &mut running).await;
                return Some(stop);
            }
            running.start(node, state, task, crew, &cancel);
        }
        let turns = tokio::select! {
            biased;
            () = crew.cancel.cancelled() => {
                drain(task, crew, state, &mut running).await;
                return Some(Stop::Cancelled);
            }
            () = tokio::time::sleep_until(deadline) => {
                cancel.cancel();
                drain(task, crew, state, &mut running).await;
                return Some(Stop::Time);
            }
            turns = running.next() => turns?,
        };
        for (node, NodeOutput { updates, next }, milliseconds) in turns {
            timings.push(Timing { node: node.name().into(), milliseconds });
            absorb(task, crew, state, updates);
            take_wishes(task, crew, state);
            tell_standing(task, crew, state);
            ended.insert(node);
            match next {
                Next::Finish => return None,
                Next::Again => ready.push(Node::Execute),
                Next::Edges => ready.extend(successors(node, &ended)),
            }
        }
    }
}

/// A node that has ended, what it gave, and how long it took.
type Ended = (Node, NodeOutput, u64);

/// The nodes under way. What those that run side by side give is handed on in the order of the nodes, not of their
/// ends: evidence gets the same numbers on every run, however fast a source was this time.
#[derive(Default)]
struct Running {
    futures: FuturesUnordered<BoxFuture<'static, Ended>>,
    under_way: BTreeSet<Node>,
    waiting: BTreeMap<Node, Ended>,
}

impl Running {
    fn start(&mut self, node: Node, state: &State, task: &Task, crew: &Crew, cancel: &CancellationToken) {
        self.under_way.insert(node);
        self.futures.push(start(node, Arc::new(state.clone()), crew.clone(), task.clone(), cancel.clone()));
    }

    /// Waits until at least one output has its turn; `None` when nothing is under way.
    async fn next(&mut self) -> Option<Vec<Ended>> {
        loop {
            let ended = self.futures.next().await?;
            self.under_way.remove(&ended.0);
            self.waiting.insert(ended.0, ended);
            let first_under_way = self.under_way.first().copied();
            let later = first_under_way.map(|node| self.waiting.split_off(&node)).unwrap_or_default();
            let turns = std::mem::replace(&mut self.waiting, later);
            if !turns.is_empty() {
                return Some(turns.into_values().collect());
            }
        }
    }

    /// What has ended and waited for an earlier node that never did.
    fn rest(&mut self) -> Vec<Ended> {
        std::mem::take(&mut self.waiting).into_values().collect()
    }
}

/// How often nodes were entered, and in which states.
struct Counters {
    seen: BTreeSet<(Node, u64)>,
    nodes: usize,
    rounds: usize,
}

impl Counters {
    /// Counts an entry; a bound that it would break, or a state in which this node was entered before, stops the run.
    fn enter(&mut self, node: Node, state: &State, crew: &Crew) -> Option<Stop> {
        self.nodes += 1;
        if self.nodes > crew.bounds.max_nodes {
            return Some(Stop::Nodes);
        }
        if node == Node::Execute {
            self.rounds += 1;
            if self.rounds > crew.bounds.max_steps {
                return Some(Stop::Steps);
            }
        }
        (!self.seen.insert((node, fingerprint(state)))).then_some(Stop::Loop)
    }
}

/// What of the state a node can change: if all of it is as before, running the node again changes nothing either.
fn fingerprint(state: &State) -> u64 {
    let mut hasher = DefaultHasher::new();
    (state.evidence.len(), state.invocations.len(), state.hits.len(), state.closed_tools.len()).hash(&mut hasher);
    for step in &state.plan.steps {
        (step.id, &step.question, step.state as u8).hash(&mut hasher);
    }
    state.plan.revisions.hash(&mut hasher);
    (state.judged.pinned.len(), state.judged.dismissed.len()).hash(&mut hasher);
    hasher.finish()
}

/// The nodes for which `node` was the last predecessor to end.
fn successors(node: Node, ended: &BTreeSet<Node>) -> Vec<Node> {
    [Node::Plan, Node::Execute, Node::Replan]
        .into_iter()
        .filter(|next| next.predecessors().contains(&node))
        .filter(|next| next.predecessors().iter().all(|before| ended.contains(before)))
        .collect()
}

fn start(
    node: Node,
    state: Arc<State>,
    crew: Crew,
    task: Task,
    cancel: CancellationToken,
) -> BoxFuture<'static, (Node, NodeOutput, u64)> {
    Box::pin(async move {
        let started = Instant::now();
        crew.events.emit(EventKind::NodeStarted { node: node.name().into() });
        let output = match node {
            Node::ParallelQuery => parallel_query::run(&state, &crew, &cancel).await,
            Node::RetrieveKnowledge => retrieve_knowledge::run(&state, &crew, &cancel).await,
            Node::Plan => plan::run(&state, &crew).await,
            Node::Execute => execute::run(&state, &task, &crew, &cancel).await,
            Node::Replan => replan::run(&state, &crew).await,
        };
        let milliseconds = elapsed_ms(started);
        crew.events.emit(EventKind::NodeEnded { node: node.name().into(), milliseconds });
        (node, output, milliseconds)
    })
}

/// Lets nodes that were told to stop hand in what they have.
async fn drain(task: &Task, crew: &Crew, state: &mut State, running: &mut Running) {
    let grace = Instant::now() + Duration::from_secs(1);
    while let Ok(Some(turns)) = tokio::time::timeout_at(grace, running.next()).await {
        turns.into_iter().for_each(|(_, output, _)| absorb(task, crew, state, output.updates));
    }
    running.rest().into_iter().for_each(|(_, output, _)| absorb(task, crew, state, output.updates));
}

/// Merges updates and announces the evidence that is new.
fn absorb(task: &Task, crew: &Crew, state: &mut State, updates: Vec<Update>) {
    for update in updates {
        let announced = matches!(update, Update::Worked { .. });
        for evidence in merge(state, update, &task.zone) {
            if !announced {
                crew.events.emit(EventKind::EvidenceFound { evidence: Box::new(evidence) });
            }
        }
    }
    state.closed_tools = crew.invoker.closed_tools();
}

/// Merges what the engineer wished since the last time.
pub(super) fn take_wishes(task: &Task, crew: &Crew, state: &mut State) {
    if !crew.steering.is_watched() {
        return;
    }
    let told = crew.steering.take_facts().into_iter().map(Update::Told);
    let rest = [Update::Skipped(crew.steering.skipped()), Update::Judged(crew.steering.judged())];
    absorb(task, crew, state, told.chain(rest).collect());
}

/// Tells where the ranking stands, to a front end that can steer it.
fn tell_standing(task: &Task, crew: &Crew, state: &State) {
    if crew.steering.is_watched() && !state.evidence.is_empty() {
        let hypotheses = rules::standing(state, &task.zone);
        crew.events.emit(EventKind::HypothesesRanked { hypotheses });
    }
}

async fn timed<T>(crew: &Crew, name: &str, timings: &mut Vec<Timing>, work: impl Future<Output = T>) -> T {
    let started = Instant::now();
    crew.events.emit(EventKind::NodeStarted { node: name.into() });
    let value = work.await;
    let milliseconds = elapsed_ms(started);
    crew.events.emit(EventKind::NodeEnded { node: name.into(), milliseconds });
    timings.push(Timing { node: name.into(), milliseconds });
    value
}

fn elapsed_ms(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX)
}
