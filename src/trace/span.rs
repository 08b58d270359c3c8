//! A record as spans: what ran when, inside what, on one time axis.

use jiff::Timestamp;

use crate::domain::{AgentStep, InvocationStatus, SessionRecord, SessionStatus, ToolInvocation};

/// What a span stands for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpanKind<'a> {
    /// The whole session.
    Run,
    Node(&'a AgentStep),
    PlanStep(&'a AgentStep),
    Call(&'a ToolInvocation),
}

/// How a span ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanEnd {
    Ok,
    Failed,
    /// It had not ended when the record was written.
    Open,
}

/// A stretch of time in which something ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Span<'a> {
    /// Unique within the record, the same whenever it is read: `run`, `step 3`, `call 7`.
    pub id: String,
    pub parent: Option<String>,
    /// Ancestors above it.
    pub depth: usize,
    pub kind: SpanKind<'a>,
    pub name: &'a str,
    pub start: Timestamp,
    /// Where it has not ended: up to the last thing known of the session.
    pub microseconds: u64,
    pub end: SpanEnd,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// All spans, each followed by what ran inside it, in the order of starts. The first is the run itself.
pub fn spans(record: &SessionRecord) -> Vec<Span<'_>> {
    let session = &record.session;
    let last = last_known(record);
    let mut spans = vec![Span {
        id: "run".into(),
        parent: None,
        depth: 0,
        kind: SpanKind::Run,
        name: &session.title,
        start: session.started_at,
        microseconds: between(session.started_at, last),
        end: match session.status {
            SessionStatus::Running | SessionStatus::Interrupted => SpanEnd::Open,
            SessionStatus::Failed => SpanEnd::Failed,
            SessionStatus::Complete | SessionStatus::Incomplete | SessionStatus::Cancelled => SpanEnd::Ok,
        },
        input_tokens: session.usage.input_tokens,
        output_tokens: session.usage.output_tokens,
    }];
    for step in record.steps.iter().filter(|step| step.parent.is_none()) {
        push_step(record, step, "run", 1, last, &mut spans);
    }
    for call in record.tool_invocations.iter().filter(|call| call.step.is_none()) {
        spans.push(call_span(call, "run", 1, last));
    }
    settle(&mut spans);
    spans
}

/// Durations are whole milliseconds, so that what ran inside a node may seem to end just after it: it ends with it.
fn settle(spans: &mut [Span<'_>]) {
    const ROUNDING: u64 = 2000;
    for at in 1..spans.len() {
        let Some(parent) = spans[..at].iter().rev().find(|span| Some(&span.id) == spans[at].parent.as_ref()) else {
            continue;
        };
        let room = (parent.microseconds + between(spans[0].start, parent.start))
            .saturating_sub(between(spans[0].start, spans[at].start));
        let over = spans[at].microseconds.saturating_sub(room);
        if over <= ROUNDING {
            spans[at].microseconds = spans[at].microseconds.min(room);
        }
    }
}

fn push_step<'a>(
    record: &'a SessionRecord,
    step: &'a AgentStep,
    parent: &str,
    depth: usize,
    last: Timestamp,
    spans: &mut Vec<Span<'a>>,
) {
    let id = format!("step {}", step.order);
    spans.push(Span {
        id: id.clone(),
        parent: Some(parent.to_owned()),
        depth,
        kind: if step.plan_step.is_some() { SpanKind::PlanStep(step) } else { SpanKind::Node(step) },
        name: &step.node,
        start: step.started_at,
        microseconds: step.milliseconds.map_or_else(|| between(step.started_at, last), |spent| spent * 1000),
        end: if step.milliseconds.is_some() { SpanEnd::Ok } else { SpanEnd::Open },
        input_tokens: step.input_tokens,
        output_tokens: step.output_tokens,
    });
    for call in record.tool_invocations.iter().filter(|call| call.step == Some(step.order)) {
        spans.push(call_span(call, &id, depth + 1, last));
    }
    for inner in record.steps.iter().filter(|inner| inner.parent == Some(step.order) && inner.order > step.order) {
        push_step(record, inner, &id, depth + 1, last, spans);
    }
}

fn call_span<'a>(call: &'a ToolInvocation, parent: &str, depth: usize, last: Timestamp) -> Span<'a> {
    Span {
        id: format!("call {}", call.id),
        parent: Some(parent.to_owned()),
        depth,
        kind: SpanKind::Call(call),
        name: &call.tool,
        start: call.started_at,
        microseconds: call.milliseconds.map_or_else(|| between(call.started_at, last), |spent| spent * 1000),
        end: match call.status {
            InvocationStatus::Running => SpanEnd::Open,
            InvocationStatus::Failed => SpanEnd::Failed,
            InvocationStatus::Ok | InvocationStatus::Stale => SpanEnd::Ok,
        },
        input_tokens: 0,
        output_tokens: 0,
    }
}

/// The end of the session, else the last instant of anything in it.
fn last_known(record: &SessionRecord) -> Timestamp {
    let ended = |start: Timestamp, milliseconds: Option<u64>| {
        let spent = i64::try_from(milliseconds.unwrap_or(0)).unwrap_or(i64::MAX);
        start.checked_add(jiff::SignedDuration::from_millis(spent)).unwrap_or(start)
    };
    let steps = record.steps.iter().map(|step| ended(step.started_at, step.milliseconds));
    let calls = record.tool_invocations.iter().map(|call| ended(call.started_at, call.milliseconds));
    let messages = record.messages.iter().map(|message| message.at);
    let started = record.session.started_at;
    let last = steps.chain(calls).chain(messages).max().unwrap_or(started);
    record.session.ended_at.map_or(last, |end| end.max(last)).max(started)
}

fn between(start: Timestamp, end: Timestamp) -> u64 {
    u64::try_from(end.duration_since(start).as_micros()).unwrap_or(0)
}
