//! The one place where what nodes return becomes state: findings get their numbers here.

use std::collections::BTreeSet;

use jiff::tz::TimeZone;

use crate::domain::{
    Call, Evidence, Finding, Invocation, Judged, Outcome, Output, Plan, Served, State, Step, StepState, Usage,
};
use crate::reason::{facts, words};

/// A change of the state.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Update {
    /// Calls of the first round, with what came of them.
    Called(Vec<(Call, Outcome)>),
    Planned(Plan),
    /// One step was worked: its calls in order, and its conclusion.
    Worked {
        step: u32,
        calls: Vec<(Call, Outcome)>,
        conclusion: String,
        /// The engineer broke it off.
        is_skipped: bool,
    },
    /// The pending steps are replaced.
    Revised {
        pending: Vec<Step>,
        reason: String,
    },
    Used(Usage),
    /// The engineer knows something.
    Told(String),
    /// The engineer wants these steps left out.
    Skipped(BTreeSet<u32>),
    /// What the engineer said of hypotheses, all of it.
    Judged(Judged),
}

/// Applies one update and returns the evidence that it added.
pub(super) fn merge(state: &mut State, update: Update, zone: &TimeZone) -> Vec<Evidence> {
    let known = state.evidence.len();
    match update {
        Update::Called(calls) => {
            for (call, outcome) in calls {
                record(state, call, outcome, None, zone);
            }
        }
        Update::Planned(plan) => state.plan = plan,
        Update::Worked { step, calls, conclusion, is_skipped } => {
            let skipped = is_skipped.then_some(StepState::Skipped);
            work_step(state, step, calls, conclusion, skipped, zone);
        }
        Update::Revised { pending, reason } => {
            for step in state.plan.steps.iter_mut().filter(|step| step.state == StepState::Pending) {
                step.state = StepState::Skipped;
            }
            state.plan.steps.extend(pending);
            state.plan.revisions.push(reason);
        }
        Update::Used(usage) => state.usage.add(usage),
        Update::Told(text) => told(state, &text, zone),
        Update::Skipped(ids) => {
            let open = [StepState::Pending, StepState::Running];
            for step in state.plan.steps.iter_mut().filter(|s| ids.contains(&s.id) && open.contains(&s.state)) {
                step.state = StepState::Skipped;
            }
        }
        Update::Judged(judged) => state.judged = judged,
    }
    state.evidence[known..].to_vec()
}

/// A fact gets a number like everything that can be cited.
fn told(state: &mut State, text: &str, zone: &TimeZone) {
    let data = facts::told(text, &state.facts, zone);
    if state.evidence.iter().any(|known| known.data == data) {
        return;
    }
    let lang = state.facts.lang;
    state.evidence.push(Evidence {
        id: format!("E{}", state.evidence.len() + 1),
        kind: words::evidence_kind(&data),
        source: lang.pick("engineer", "值班工程师").to_owned(),
        window: None,
        summary: lang.pick(format!("the engineer says: {text}"), format!("值班工程师补充：{text}")),
        data,
        stale_seconds: None,
    });
}

/// `ended`: how the step ended, where its calls do not tell.
fn work_step(
    state: &mut State,
    id: u32,
    calls: Vec<(Call, Outcome)>,
    conclusion: String,
    ended: Option<StepState>,
    zone: &TimeZone,
) {
    let failed = !calls.is_empty() && calls.iter().all(|(_, outcome)| matches!(outcome, Outcome::Failure(_)));
    let mut evidence = Vec::new();
    for (call, outcome) in calls {
        evidence.extend(record(state, call, outcome, Some(id), zone));
    }
    if let Some(step) = state.plan.steps.iter_mut().find(|step| step.id == id) {
        step.state = ended.unwrap_or(if failed { StepState::Failed } else { StepState::Done });
        step.conclusion = Some(conclusion);
        step.evidence = evidence;
    }
}

/// Keeps a call with its outcome and numbers its findings; returns their evidence ids.
pub(super) fn record(
    state: &mut State,
    call: Call,
    outcome: Outcome,
    step: Option<u32>,
    zone: &TimeZone,
) -> Vec<String> {
    let ids = match &outcome {
        Outcome::Output(output) => {
            output.findings.iter().map(|finding| number(state, &call, output, finding, zone)).collect()
        }
        Outcome::Failure(_) => Vec::new(),
    };
    state.invocations.push(Invocation { call, outcome, step, evidence: ids.clone() });
    ids
}

/// The id of the evidence for a finding: the one it has already, or the next number.
fn number(state: &mut State, call: &Call, output: &Output, finding: &Finding, zone: &TimeZone) -> String {
    if let Some(known) = state.evidence.iter().find(|evidence| &evidence.data == finding) {
        return known.id.clone();
    }
    if let Finding::Hit(hit) = finding {
        state.hits.push(hit.clone());
    }
    let id = format!("E{}", state.evidence.len() + 1);
    state.evidence.push(Evidence {
        id: id.clone(),
        kind: words::evidence_kind(finding),
        source: format!("{} {}", output.source, words::call(call)),
        window: output.window,
        summary: words::summarize(finding, state.facts.lang, zone),
        data: finding.clone(),
        stale_seconds: match output.served {
            Served::Live => None,
            Served::Stale { age_seconds } => Some(age_seconds),
        },
    });
    id
}
