//! A stored record as the events that it was folded from, as far as it kept them: for a front end that shows or plays back
//! what happened. The order is that of time; what the record did not keep (state between nodes) is not made up.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{CHAT_NODE, RETRIEVAL_NODE, STEP_NODE};
use crate::domain::{
    AgentStep, Call, Diagnosis, Evidence, EvidenceKind, FailureKind, InvocationStatus, Plan, Role, RunStatus, Served,
    SessionRecord, SessionStatus, StepState, ToolInvocation, Usage,
};
use crate::event::{CallResult, Event, EventKind};

/// The events, numbered anew.
pub fn events(record: &SessionRecord) -> Vec<Event> {
    let diagnosis: Option<Diagnosis> = record.diagnosis.clone().and_then(|value| serde_json::from_value(value).ok());
    let mut told = Told::default();
    if let Some(diagnosis) = &diagnosis {
        told.begin(record, diagnosis);
    }
    for step in &record.steps {
        told.step(record, step, diagnosis.as_ref());
    }
    record.tool_invocations.iter().for_each(|made| told.call(record, made));
    for message in &record.messages {
        match message.role {
            Role::Thought => told.add(message.at, 3, EventKind::Thought { step: None, text: message.content.clone() }),
            Role::Warning => told.add(message.at, 3, EventKind::Warning { message: message.content.clone() }),
            Role::User | Role::Assistant => {}
        }
    }
    if let Some(diagnosis) = &diagnosis {
        told.evidence(record, diagnosis);
    }
    let end = record.session.ended_at.unwrap_or_else(|| told.last(record.session.started_at));
    let status = status(record.session.status);
    told.add(end, 9, EventKind::RunEnded { status, diagnosis: diagnosis.map(Box::new) });
    told.in_order()
}

fn status(status: SessionStatus) -> RunStatus {
    match status {
        SessionStatus::Complete => RunStatus::Complete,
        SessionStatus::Cancelled => RunStatus::Cancelled,
        SessionStatus::Incomplete | SessionStatus::Failed | SessionStatus::Running | SessionStatus::Interrupted => {
            RunStatus::Incomplete
        }
    }
}

/// Events with the place that they take among those of the same instant.
#[derive(Default)]
struct Told(Vec<(Timestamp, u8, EventKind)>);

impl Told {
    fn add(&mut self, at: Timestamp, place: u8, kind: EventKind) {
        self.0.push((at, place, kind));
    }

    fn last(&self, start: Timestamp) -> Timestamp {
        self.0.iter().map(|(at, ..)| *at).max().unwrap_or(start).max(start)
    }

    fn in_order(mut self) -> Vec<Event> {
        // Stable: what is equal in time and place stays in the order of the record.
        self.0.sort_by_key(|(at, place, _)| (*at, *place));
        let numbered = (0..).zip(self.0);
        numbered.map(|(seq, (at, _, kind))| Event { seq, at, kind }).collect()
    }

    fn begin(&mut self, record: &SessionRecord, diagnosis: &Diagnosis) {
        let session = &record.session;
        let alert = Box::new(diagnosis.alert.clone());
        self.add(session.started_at, 0, EventKind::RunStarted { session_id: session.id.clone(), alert });
        self.add(session.started_at, 2, EventKind::FactsFound { facts: Box::new(diagnosis.facts.clone()) });
    }

    fn step(&mut self, record: &SessionRecord, step: &AgentStep, diagnosis: Option<&Diagnosis>) {
        let end = step.milliseconds.map(|spent| after(step.started_at, spent));
        match (step.node.as_str(), step.plan_step) {
            (STEP_NODE, Some(number)) => {
                let question = step.reason.clone().unwrap_or_default();
                self.add(step.started_at, 2, EventKind::StepStarted { step: number, question });
                if let Some(end) = end {
                    let conclusion = step.decision.clone().unwrap_or_default();
                    self.add(end, 6, EventKind::StepEnded { step: number, conclusion });
                }
            }
            (CHAT_NODE, _) => {
                let usage = Usage {
                    input_tokens: step.input_tokens,
                    output_tokens: step.output_tokens,
                    calls: 1,
                    ..Usage::default()
                };
                let parent = record.steps.iter().find(|one| Some(one.order) == step.parent);
                let node = parent.map_or_else(String::new, |one| one.node.clone());
                let model = record.session.model.clone().unwrap_or_default();
                let milliseconds = step.milliseconds.unwrap_or(0);
                let at = end.unwrap_or(step.started_at);
                self.add(at, 5, EventKind::ModelUsed { node, model, milliseconds, usage });
            }
            (node, _) => {
                self.add(step.started_at, 1, EventKind::NodeStarted { node: node.to_owned() });
                if let (Some(end), Some(milliseconds)) = (end, step.milliseconds) {
                    if node == "plan"
                        && let Some(diagnosis) = diagnosis
                    {
                        self.add(end, 6, EventKind::PlanMade { plan: as_made(&diagnosis.plan) });
                    }
                    self.add(end, 7, EventKind::NodeEnded { node: node.to_owned(), milliseconds });
                }
            }
        }
    }

    fn call(&mut self, record: &SessionRecord, made: &ToolInvocation) {
        let worker = record.steps.iter().find(|step| Some(step.order) == made.step);
        let step = worker.and_then(|step| step.plan_step);
        let call = Call { tool: made.tool.clone(), arguments: made.arguments.clone() };
        self.add(
            made.started_at,
            3,
            EventKind::CallStarted { call_id: made.id, step, server: made.server.clone(), call },
        );
        if let Some(milliseconds) = made.milliseconds {
            let (call_id, attempts, result) = (made.id, made.attempts, result(made));
            let at = after(made.started_at, milliseconds);
            self.add(at, 4, EventKind::CallEnded { call_id, milliseconds, attempts, result });
        }
    }

    /// Evidence comes when the call that gave it has ended; where that is not known, when its node has.
    fn evidence(&mut self, record: &SessionRecord, diagnosis: &Diagnosis) {
        for evidence in &diagnosis.evidence {
            let at = found_at(record, evidence).unwrap_or(record.session.started_at);
            self.add(at, 5, EventKind::EvidenceFound { evidence: Box::new(evidence.clone()) });
        }
    }
}

fn found_at(record: &SessionRecord, evidence: &Evidence) -> Option<Timestamp> {
    let ended = |made: &ToolInvocation| made.milliseconds.map(|spent| after(made.started_at, spent));
    // `files/logs search_logs(service=cart)`: source, then the call in words, which begins with the tool's name.
    let by_call = record.tool_invocations.iter().find(|made| {
        let is_source = made.served_by.as_ref().is_some_and(|source| evidence.source.starts_with(source.as_str()));
        is_source && evidence.source.contains(&format!(" {}(", made.tool)) && names_arguments(&evidence.source, made)
    });
    let node = if evidence.kind == EvidenceKind::Knowledge { RETRIEVAL_NODE } else { "parallel_query" };
    let of_node = || {
        let step = record.steps.iter().find(|step| step.node == node)?;
        Some(after(step.started_at, step.milliseconds?))
    };
    by_call.and_then(ended).or_else(of_node)
}

/// Whether the words of a call hold its shorter arguments, which are not cut in them.
fn names_arguments(source: &str, made: &ToolInvocation) -> bool {
    const WHOLE: usize = 40;
    let Value::Object(arguments) = &made.arguments else { return true };
    let mut texts = arguments
        .values()
        .filter_map(Value::as_str)
        .filter(|text| text.len() <= WHOLE && text.parse::<Timestamp>().is_err() && !text.contains(['\n', '\t']));
    texts.all(|text| source.contains(text))
}

fn after(start: Timestamp, milliseconds: u64) -> Timestamp {
    let span = SignedDuration::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX));
    start.checked_add(span).unwrap_or(start)
}

fn result(made: &ToolInvocation) -> CallResult {
    if let Some(error) = &made.error {
        let (kind, message) = error.split_once(": ").unwrap_or(("source_error", error));
        let kind = serde_json::from_value(Value::from(kind)).unwrap_or(FailureKind::SourceError);
        return CallResult::Failure { kind, message: message.to_owned() };
    }
    let served_by = made.served_by.clone().unwrap_or_default();
    let (source, served) = match (made.status, served_by.rsplit_once(", ")) {
        (InvocationStatus::Stale, Some((source, age))) => {
            let age_seconds = age.trim_end_matches(" s old").parse().unwrap_or(0);
            (source.to_owned(), Served::Stale { age_seconds })
        }
        _ => (served_by.clone(), Served::Live),
    };
    CallResult::Output {
        source,
        // Both were counted in this width before they were stored.
        findings: made.findings.unwrap_or(0) as usize,
        bytes: made.output_bytes.unwrap_or(0) as usize,
        truncated: made.truncated,
        served,
        preview: made.output_preview.clone().unwrap_or_default(),
        retrieval: made.retrieval,
    }
}

/// The plan before any step was worked.
fn as_made(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for step in &mut plan.steps {
        (step.state, step.conclusion) = (StepState::Pending, None);
        step.evidence.clear();
    }
    plan.revisions.clear();
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Lang, Session, SessionKind};
    use crate::trace::Trace;

    fn at(milliseconds: i64) -> Timestamp {
        Timestamp::from_millisecond(1_772_600_000_000 + milliseconds).unwrap()
    }

    fn folded(events: &[Event]) -> SessionRecord {
        let mut trace = Trace::begin(Session::begin("s", SessionKind::Question, "complex", "q", Lang::En, at(0)));
        events.iter().for_each(|event| trace.apply(event));
        trace.record
    }

    #[test]
    fn what_is_folded_and_told_again_folds_to_the_same_rows() {
        let call = Call { tool: "search_logs".into(), arguments: serde_json::json!({"service": "cart"}) };
        let failure = CallResult::Failure { kind: FailureKind::Timeout, message: "slow: very".into() };
        let kinds = [
            (0, EventKind::NodeStarted { node: "execute".into() }),
            (5, EventKind::StepStarted { step: 1, question: "why?".into() }),
            (10, EventKind::CallStarted { call_id: 1, step: Some(1), server: "builtin".into(), call }),
            (310, EventKind::CallEnded { call_id: 1, milliseconds: 300, attempts: 2, result: failure }),
            (320, EventKind::StepEnded { step: 1, conclusion: "slow".into() }),
            (330, EventKind::NodeEnded { node: "execute".into(), milliseconds: 330 }),
            (340, EventKind::RunEnded { status: RunStatus::Cancelled, diagnosis: None }),
        ];
        let told: Vec<Event> = (0..).zip(kinds).map(|(seq, (ms, kind))| Event { seq, at: at(ms), kind }).collect();
        let record = folded(&told);
        assert_eq!(events(&record), told);
        assert_eq!(folded(&events(&record)), record);
    }
}
