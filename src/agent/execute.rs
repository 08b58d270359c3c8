//! Node `execute`: works the next step of the plan by a ReAct loop (Yao et al. 2023): the reasoner thinks and
//! names calls, they are made at once, what came of them is read, and so on until the step is done.

use tokio_util::sync::CancellationToken;

use super::graph::NodeOutput;
use super::merge::{Update, record};
use super::{Crew, Task};
use crate::domain::{Call, Outcome, State, Step, Usage};
use crate::event::EventKind;
use crate::reason::StepMove;

/// Rounds of calls within one step.
const MAX_TURNS: usize = 6;

pub(super) async fn run(state: &State, task: &Task, crew: &Crew, cancel: &CancellationToken) -> NodeOutput {
    let Some(step) = state.plan.next_pending().cloned() else { return NodeOutput::edges(Vec::new()) };
    crew.events.emit(EventKind::StepStarted { step: step.id, question: step.question.clone() });
    let broken_off = crew.steering.begin_step(step.id, cancel);
    let Worked { calls, mut conclusion, usages } = react(state, &step, task, crew, &broken_off).await;
    let is_skipped = crew.steering.end_step(step.id);
    if is_skipped && conclusion.is_empty() {
        conclusion = state.facts.lang.pick("skipped by the engineer", "已由值班工程师跳过").to_owned();
    }
    crew.events.emit(EventKind::StepEnded { step: step.id, conclusion: conclusion.clone() });
    let mut updates = vec![Update::Worked { step: step.id, calls, conclusion, is_skipped }];
    updates.extend(usages.into_iter().map(Update::Used));
    NodeOutput::edges(updates)
}

/// What came of the loop.
struct Worked {
    calls: Vec<(Call, Outcome)>,
    conclusion: String,
    usages: Vec<Usage>,
}

/// The loop itself, on a working copy of the state: the graph merges the same calls in the same order afterwards,
/// so that evidence gets the same numbers.
async fn react(state: &State, step: &Step, task: &Task, crew: &Crew, cancel: &CancellationToken) -> Worked {
    let mut local = state.clone();
    let mut made: Vec<(Call, Outcome)> = Vec::new();
    let mut usages = Vec::new();
    let mut conclusion = String::new();
    for turn in 0..MAX_TURNS {
        if cancel.is_cancelled() {
            break;
        }
        let reasoned = match crew.reasoner.work(&local, step, turn).await {
            Ok(reasoned) => reasoned,
            Err(error) => {
                crew.events.emit(EventKind::Warning { message: error.to_string() });
                break;
            }
        };
        usages.push(reasoned.usage);
        let calls = match reasoned.value {
            StepMove::Done { conclusion: text } => {
                conclusion = text;
                break;
            }
            StepMove::Call { thought, calls } => {
                if !thought.is_empty() {
                    crew.events.emit(EventKind::Thought { step: Some(step.id), text: thought });
                }
                calls
            }
        };
        let outcomes = answer(&local, &calls, step.id, crew, cancel).await;
        for (call, outcome) in calls.into_iter().zip(outcomes) {
            made.push((call.clone(), outcome.clone()));
            let known = local.evidence.len();
            record(&mut local, call, outcome, Some(step.id), &task.zone);
            for evidence in &local.evidence[known..] {
                crew.events.emit(EventKind::EvidenceFound { evidence: Box::new(evidence.clone()) });
            }
        }
    }
    Worked { calls: made, conclusion, usages }
}

/// Makes the calls, all at once; one that was answered before is answered from memory, and its reader is told.
pub(super) async fn answer(
    state: &State,
    calls: &[Call],
    step: u32,
    crew: &Crew,
    cancel: &CancellationToken,
) -> Vec<Outcome> {
    let known = |call: &Call| {
        let same = state.invocations.iter().find(|made| &made.call == call)?;
        let Outcome::Output(output) = &same.outcome else { return None };
        let mut output = output.clone();
        output.notes.push("this very call was made before: the same answer from memory".into());
        Some(Outcome::Output(output))
    };
    let remembered: Vec<Option<Outcome>> = calls.iter().map(known).collect();
    let new: Vec<Call> =
        calls.iter().zip(&remembered).filter(|(_, known)| known.is_none()).map(|(call, _)| call.clone()).collect();
    let mut made = crew.invoker.invoke_all(&new, Some(step), cancel).await.into_iter();
    remembered.into_iter().filter_map(|known| known.or_else(|| made.next())).collect()
}
