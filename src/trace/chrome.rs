//! A record as a trace-event document, which Perfetto and `chrome://tracing` open.
//!
//! Complete events (`"ph": "X"`) with times in microseconds; what runs side by side gets lanes (`tid`) of its own.

use serde_json::{Value, json};

use super::span::{Span, SpanEnd, SpanKind, spans};
use crate::domain::SessionRecord;

/// The document.
pub fn document(record: &SessionRecord) -> Value {
    let spans = spans(record);
    let lanes = lanes(&spans);
    let mut events = vec![json!({
        "ph": "M", "pid": 1, "tid": 0, "name": "process_name",
        "args": { "name": format!("oncall {}", record.session.id) },
    })];
    events.extend(spans.iter().zip(&lanes).map(|(span, lane)| event(span, *lane)));
    json!({ "displayTimeUnit": "ms", "traceEvents": events })
}

fn event(span: &Span<'_>, lane: usize) -> Value {
    let (category, args) = match span.kind {
        SpanKind::Run => ("run", json!({ "input_tokens": span.input_tokens, "output_tokens": span.output_tokens })),
        SpanKind::Node(step) => ("node", json!({ "decision": step.decision, "state_change": step.state_change })),
        SpanKind::PlanStep(step) => {
            ("step", json!({ "question": step.reason, "conclusion": step.decision, "step": step.plan_step }))
        }
        SpanKind::Call(call) => (
            "tool",
            json!({
                "arguments": call.arguments, "status": call.status.id(), "error": call.error,
                "attempts": call.attempts, "served_by": call.served_by, "output": call.output_preview,
            }),
        ),
    };
    let mut event = json!({
        "ph": "X", "pid": 1, "tid": lane, "name": span.name, "cat": category,
        "ts": span.start.as_microsecond(), "dur": span.microseconds, "args": args,
    });
    if span.end == SpanEnd::Failed {
        // A reserved colour name of the format: red.
        event["cname"] = json!("terrible");
    }
    event
}

/// A lane for each span: that of its parent where it lies after all that the lane already holds, else the first free
/// one. A lane holds only spans that contain each other or follow each other, as the format requires.
fn lanes(spans: &[Span<'_>]) -> Vec<usize> {
    let interval = |span: &Span<'_>| {
        let start = span.start.as_microsecond();
        (start, start.saturating_add(i64::try_from(span.microseconds).unwrap_or(i64::MAX)))
    };
    let mut held: Vec<Vec<(i64, i64)>> = Vec::new();
    spans
        .iter()
        .map(|span| {
            let (start, end) = interval(span);
            let fits =
                |lane: &Vec<(i64, i64)>| lane.iter().all(|&(s, e)| end <= s || e <= start || (s <= start && end <= e));
            let lane = held.iter().position(fits).unwrap_or(held.len());
            if lane == held.len() {
                held.push(Vec::new());
            }
            held[lane].push((start, end));
            lane
        })
        .collect()
}
