//! Plans and their revision by a model: typed, checked, and never more than the bounds allow.

use minijinja::context;

use super::shapes::{NamesAnswer, NextAnswer, PlanAnswer, ReplanAnswer, StepAnswer, schema};
use super::{Llm, digest};
use crate::domain::text::clean_line;
use crate::domain::{Decision, Plan, State, Step, StepState, Usage};
use crate::llm::ModelError;
use crate::reason::{Names, Reasoned};

/// Steps of a plan, at most.
const MAX_STEPS: usize = 6;
const MAX_CALLS: usize = 6;
const TEXT_CHARS: usize = 300;
/// Tokens of evidence in a prompt.
const PLAN_EVIDENCE: u64 = 1300;
const REPLAN_EVIDENCE: u64 = 500;

impl Llm {
    /// Names that a text names; only what really stands there counts.
    pub(super) async fn names(&self, state: &State) -> Result<Reasoned<Names>, ModelError> {
        if state.facts.service.is_some() {
            return Ok(Reasoned { value: Names::default(), usage: Usage::default() });
        }
        let mut request = self.request("analyze", context! { alert => digest::alert(state) })?;
        request.answer = schema::<NamesAnswer>("analyze");
        let (named, usage) = self.models.planner.ask_shaped::<NamesAnswer>(request, |_| Ok(())).await?;
        let text = state.alert().text();
        let stands = |name: Option<String>| name.filter(|name| !name.trim().is_empty() && text.contains(name.as_str()));
        let value = Names {
            service: stands(named.service),
            namespace: stands(named.namespace),
            pod: stands(named.pod),
            metric: stands(named.metric),
        };
        Ok(Reasoned { value, usage })
    }

    pub(super) async fn make_plan(&self, state: &State) -> Result<Reasoned<Plan>, ModelError> {
        let values = context! {
            language => digest::language(state.facts.lang),
            max_steps => MAX_STEPS,
            alert => digest::alert(state),
            runbooks => digest::runbooks(&state.hits),
            evidence => digest::evidence(&state.evidence, PLAN_EVIDENCE),
            tools => digest::tools(&state.tools, &state.closed_tools),
        };
        let mut request = self.request("plan", values)?;
        request.answer = schema::<PlanAnswer>("plan");
        let check = |answer: &PlanAnswer| checked(&answer.steps, state);
        let (answer, usage) = self.models.planner.ask_shaped::<PlanAnswer>(request, check).await?;
        Ok(Reasoned { value: Plan { steps: steps(answer.steps, 1), revisions: Vec::new() }, usage })
    }

    pub(super) async fn decide(&self, state: &State) -> Result<Reasoned<Decision>, ModelError> {
        let last = state.plan.steps.iter().rev().find(|step| matches!(step.state, StepState::Done | StepState::Failed));
        let found = last.map(|step| step.evidence.as_slice()).unwrap_or_default();
        let found: Vec<_> = found.iter().filter_map(|id| state.evidence(id)).collect();
        let values = context! {
            language => digest::language(state.facts.lang),
            alert => digest::alert(state),
            done => digest::done(&state.plan.steps),
            open => digest::open(&state.plan.steps),
            evidence => digest::evidence(found, REPLAN_EVIDENCE),
            tools => digest::tool_names(&state.tools, &state.closed_tools),
        };
        let mut request = self.request("replan", values)?;
        request.answer = schema::<ReplanAnswer>("replan");
        let check = |answer: &ReplanAnswer| match answer.decision {
            NextAnswer::Revise => checked(&answer.steps, state),
            NextAnswer::Continue | NextAnswer::Finish => Ok(()),
        };
        let (answer, usage) = self.models.planner.ask_shaped::<ReplanAnswer>(request, check).await?;
        let reason = clean_line(answer.reason.trim(), TEXT_CHARS);
        let value = match answer.decision {
            NextAnswer::Continue => Decision::Continue,
            NextAnswer::Finish => Decision::Finish { reason },
            NextAnswer::Revise => {
                let next_id = state.plan.steps.iter().map(|step| step.id).max().unwrap_or(0) + 1;
                Decision::Revise { pending: steps(answer.steps, next_id), reason }
            }
        };
        Ok(Reasoned { value, usage })
    }
}

/// Whether steps can be worked: there is one, each asks something, and every call is of a tool that is there.
fn checked(steps: &[StepAnswer], state: &State) -> Result<(), String> {
    if steps.is_empty() {
        return Err("it has no steps".into());
    }
    if steps.iter().any(|step| step.question.trim().is_empty()) {
        return Err("a step asks no question".into());
    }
    let unknown = steps.iter().flat_map(|step| &step.calls).find(|call| !state.has_tool(&call.tool));
    match unknown {
        Some(call) => {
            let names = digest::tool_names(&state.tools, &state.closed_tools);
            Err(format!("there is no tool `{}`; there are {names}", clean_line(&call.tool, 64)))
        }
        None => Ok(()),
    }
}

fn steps(answers: Vec<StepAnswer>, first_id: u32) -> Vec<Step> {
    let ids = first_id..;
    answers
        .into_iter()
        .take(MAX_STEPS)
        .zip(ids)
        .map(|(answer, id)| Step {
            id,
            question: clean_line(answer.question.trim(), TEXT_CHARS),
            reason: clean_line(answer.reason.trim(), TEXT_CHARS),
            calls: answer.calls.into_iter().take(MAX_CALLS).map(super::shapes::CallAnswer::into_call).collect(),
            state: StepState::Pending,
            conclusion: None,
            evidence: Vec::new(),
        })
        .collect()
}
