//! A question instead of an alert: one agent with tools for a simple one; plan, steps and an answer for a complex one.

use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::merge::{Update, merge, record};
use super::{Crew, Task, execute, graph, plan, replan, retrieve_knowledge, steering};
use crate::agent::graph::Next;
use crate::control::ControlStream;
use crate::domain::text::clean_line;
use crate::domain::{Alert, AlertStatus, Evidence, Plan, RunStatus, State, Usage};
use crate::event::EventKind;
use crate::llm::ModelError;
use crate::reason::StepMove;
use crate::reason::llm::{ASK_STEP, Checked, Llm, Question, Route, Routed};

/// Rounds of calls for a simple question.
const MAX_TURNS: usize = 6;
const TITLE_CHARS: usize = 200;

/// What is asked.
pub struct AskTask {
    pub question: Question,
    /// The user's choice of the way; `None`: it is found out.
    pub route: Option<Route>,
    /// Everything else, as for an alert; its alerts are those of [`question_alert`].
    pub task: Task,
}

/// What came of it.
#[derive(Debug)]
pub struct AskOutcome {
    pub routed: Routed,
    pub result: Result<Checked, ModelError>,
    pub status: RunStatus,
    pub evidence: Vec<Evidence>,
    pub plan: Plan,
    pub usage: Usage,
    /// Why calls were refused that nobody was there to agree to.
    pub refused: Vec<String>,
}

/// A question in the shape of an alert, so that the same nodes can work on it.
pub fn question_alert(question: &str) -> Alert {
    Alert {
        name: clean_line(question, TITLE_CHARS),
        service: None,
        severity: None,
        status: AlertStatus::Firing,
        labels: Default::default(),
        annotations: [("question".to_string(), question.to_string())].into(),
        starts_at: None,
        ends_at: None,
        fingerprint: String::new(),
    }
}

/// Answers, always: what goes wrong is in the outcome, with what was found until then.
pub async fn answer(mut ask: AskTask, llm: Arc<Llm>, crew: Crew) -> AskOutcome {
    let mut state = State {
        topology: ask.task.topology.clone(),
        tools: crew.invoker.registry().specs(),
        ..State::begin(ask.task.alerts.clone(), ask.task.facts.clone())
    };
    let cancel = crew.cancel.child_token();
    let mut routed = None;
    let deadline = Instant::now() + crew.bounds.max_time;
    let result = tokio::select! {
        biased;
        () = crew.cancel.cancelled() => Err(ModelError::Cancelled),
        result = tokio::time::timeout_at(deadline, work(&mut ask, &llm, &crew, &mut state, &mut routed, &cancel)) => {
            result.unwrap_or_else(|_| Err(ModelError::Budget("the time budget is used up".into())))
        }
    };
    let routed =
        routed.unwrap_or_else(|| Routed { route: Route::Simple, reason: "it ended before a way was chosen".into() });
    let refused = super::respond::not_allowed(&state.invocations);
    let status = match &result {
        Ok(_) if !refused.is_empty() => RunStatus::Incomplete,
        Ok(_) => RunStatus::Complete,
        Err(ModelError::Cancelled) => RunStatus::Cancelled,
        Err(_) => RunStatus::Incomplete,
    };
    crew.events.emit(EventKind::RunEnded { status, diagnosis: None });
    AskOutcome { routed, result, status, evidence: state.evidence, plan: state.plan, usage: state.usage, refused }
}

/// From the question to its answer: what it leaves to the conversation is put in, a way is chosen and gone.
async fn work(
    ask: &mut AskTask,
    llm: &Llm,
    crew: &Crew,
    state: &mut State,
    routed: &mut Option<Routed>,
    cancel: &CancellationToken,
) -> Result<Checked, ModelError> {
    let (history, used) = llm.remembered(std::mem::take(&mut ask.question.history)).await;
    ask.question.history = history;
    state.usage.add(used);
    let standalone = llm.standalone(&ask.question).await;
    state.usage.add(standalone.usage);
    ask.question.text = standalone.value;
    let chosen = match ask.route {
        Some(route) => Routed { route, reason: "it was asked for".into() },
        None => {
            let reasoned = llm.route(&ask.question.text).await;
            state.usage.add(reasoned.usage);
            reasoned.value
        }
    };
    let way = match chosen.route {
        Route::Simple => "simple",
        Route::Complex => "complex",
    };
    crew.events.emit(EventKind::Thought { step: None, text: format!("{way}: {}", chosen.reason) });
    let route = routed.insert(chosen).route;
    match route {
        Route::Simple => simple(ask, llm, crew, state, cancel).await,
        Route::Complex => complex(ask, llm, crew, state, cancel).await,
    }
}

async fn simple(
    ask: &AskTask,
    llm: &Llm,
    crew: &Crew,
    state: &mut State,
    cancel: &CancellationToken,
) -> Result<Checked, ModelError> {
    let mut talk = None;
    let mut on_text = |text: &str| crew.events.emit(EventKind::AnswerDelta { text: text.to_string() });
    for _ in 0..MAX_TURNS {
        let (next, so_far, usage) = llm.answer_move(state, &ask.question, talk, &mut on_text).await?;
        state.usage.add(usage);
        talk = Some(so_far);
        match next {
            StepMove::Done { conclusion } => {
                return Ok(llm.checked(state, &conclusion));
            }
            StepMove::Call { thought, calls } => {
                if !thought.is_empty() {
                    crew.events.emit(EventKind::Thought { step: Some(ASK_STEP), text: thought });
                }
                let outcomes = execute::answer(state, &calls, ASK_STEP, crew, cancel).await;
                for (call, outcome) in calls.into_iter().zip(outcomes) {
                    let known = state.evidence.len();
                    record(state, call, outcome, Some(ASK_STEP), &ask.task.zone);
                    announce(crew, &state.evidence[known..]);
                }
            }
        }
    }
    Err(ModelError::Garbage(format!("no answer within {MAX_TURNS} rounds of calls")))
}

async fn complex(
    ask: &AskTask,
    llm: &Llm,
    crew: &Crew,
    state: &mut State,
    cancel: &CancellationToken,
) -> Result<Checked, ModelError> {
    let found = retrieve_knowledge::run(state, crew, cancel).await;
    absorb(state, crew, &ask.task, found.updates);
    let planned = plan::run(state, crew).await;
    absorb(state, crew, &ask.task, planned.updates);
    for _ in 0..crew.bounds.max_steps {
        if state.plan.next_pending().is_none() {
            break;
        }
        let worked = execute::run(state, &ask.task, crew, cancel).await;
        absorb(state, crew, &ask.task, worked.updates);
        let decided = replan::run(state, crew).await;
        absorb(state, crew, &ask.task, decided.updates);
        if decided.next == Next::Finish {
            break;
        }
    }
    let mut on_text = |text: &str| crew.events.emit(EventKind::AnswerDelta { text: text.to_string() });
    let reasoned = llm.respond(state, &ask.question, &mut on_text).await?;
    state.usage.add(reasoned.usage);
    Ok(reasoned.value)
}

/// Answers while a front end steers.
pub async fn answer_steered(ask: AskTask, llm: Arc<Llm>, crew: Crew, controls: ControlStream) -> AskOutcome {
    let helm = crew.clone();
    tokio::select! {
        biased;
        outcome = answer(ask, llm, crew) => outcome,
        never = steering::follow(controls, helm) => match never {},
    }
}

fn absorb(state: &mut State, crew: &Crew, task: &Task, updates: Vec<Update>) {
    for update in updates {
        announce(crew, &merge(state, update, &task.zone));
    }
    state.closed_tools = crew.invoker.closed_tools();
    graph::take_wishes(task, crew, state);
}

fn announce(crew: &Crew, evidence: &[Evidence]) {
    for one in evidence {
        crew.events.emit(EventKind::EvidenceFound { evidence: Box::new(one.clone()) });
    }
}
