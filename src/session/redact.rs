//! The one place where texts pass before they are stored or exported: secrets are taken out of everything that came
//! from outside.

use std::sync::Arc;

use serde_json::Value;

use crate::domain::{AgentStep, Message, Session, SessionRecord, ToolInvocation};
use crate::trace::Changes;

/// Takes secrets out of texts and documents. In a document the name of a member may tell that its value is one.
#[derive(Clone)]
pub struct Redact {
    pub text: Arc<dyn Fn(&str) -> String + Send + Sync>,
    pub json: Arc<dyn Fn(&Value) -> Value + Send + Sync>,
}

pub(super) fn changes(mut changes: Changes, redact: &Redact) -> Changes {
    changes.session.iter_mut().for_each(|row| session(row, redact));
    changes.steps.iter_mut().for_each(|row| step(row, redact));
    changes.invocations.iter_mut().for_each(|row| invocation(row, redact));
    changes.messages.iter_mut().for_each(|row| message(row, redact));
    changes.diagnosis.iter_mut().for_each(|document| value(document, redact));
    changes
}

/// The same for a whole record.
pub fn record(record: &mut SessionRecord, redact: &Redact) {
    session(&mut record.session, redact);
    record.steps.iter_mut().for_each(|row| step(row, redact));
    record.tool_invocations.iter_mut().for_each(|row| invocation(row, redact));
    record.messages.iter_mut().for_each(|row| message(row, redact));
    record.diagnosis.iter_mut().for_each(|document| value(document, redact));
}

fn session(row: &mut Session, redact: &Redact) {
    row.title = (redact.text)(&row.title);
    optional(&mut row.cause, redact);
    optional(&mut row.status_reason, redact);
}

fn step(row: &mut AgentStep, redact: &Redact) {
    optional(&mut row.decision, redact);
    optional(&mut row.reason, redact);
}

fn invocation(row: &mut ToolInvocation, redact: &Redact) {
    value(&mut row.arguments, redact);
    optional(&mut row.error, redact);
    optional(&mut row.output_preview, redact);
}

fn message(row: &mut Message, redact: &Redact) {
    row.content = (redact.text)(&row.content);
}

fn optional(text: &mut Option<String>, redact: &Redact) {
    if let Some(text) = text {
        *text = (redact.text)(text);
    }
}

fn value(value: &mut Value, redact: &Redact) {
    *value = (redact.json)(value);
}
