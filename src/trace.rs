//! A trace is a fold of events: in come the events of one run in their order, out comes the session's record (steps,
//! tool invocations, messages, the head) and, from the record, spans on a time axis.
//!
//! The fold also remembers which rows changed since somebody last took the changes, so that a store writes each of
//! them once however many events touched it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::Value;

use crate::control::{Approval, Control};
use crate::domain::text::{clean, clean_line, counted};
use crate::domain::{
    AgentStep, Alert, Diagnosis, EvidenceKind, Facts, InvocationStatus, Lang, Message, Plan, Role, RunStatus, Served,
    Session, SessionKind, SessionRecord, SessionStatus, ToolInvocation, Usage,
};
use crate::event::{CallResult, Event, EventKind};

pub mod chrome;
pub mod otlp;
pub mod replay;
pub mod span;

pub use span::{Span, SpanKind, spans};

/// Characters of a decision, a reason or an error that are kept.
const MAX_TEXT_CHARS: usize = 2000;
/// Characters of a message; an answer is longer than a thought.
const MAX_MESSAGE_CHARS: usize = 32_000;
const PREVIEW_CHARS: usize = 500;
/// The node of a plan's step.
pub const STEP_NODE: &str = "step";
/// The node of a call of a model.
pub const CHAT_NODE: &str = "chat";
const RETRIEVAL_NODE: &str = "retrieve_knowledge";
const EXECUTE_NODE: &str = "execute";

/// What a run added to the state while a step was open.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    calls: usize,
    failed: usize,
    evidence: usize,
}

/// The record of a run so far.
#[derive(Debug, Clone)]
pub struct Trace {
    pub record: SessionRecord,
    counts: Vec<Counts>,
    /// `order` of the node runs and plan steps under way.
    open: Vec<u32>,
    /// The highest id of a call that was there before: a run that goes on counts from 1 again.
    calls_before: u64,
    changed: Changed,
}

/// Places in the record that changed.
#[derive(Debug, Clone, Default)]
struct Changed {
    session: bool,
    diagnosis: bool,
    steps: BTreeSet<usize>,
    invocations: BTreeSet<usize>,
    messages: BTreeSet<usize>,
}

/// The rows that a store has to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    pub session_id: String,
    pub session: Option<Session>,
    pub steps: Vec<AgentStep>,
    pub invocations: Vec<ToolInvocation>,
    pub messages: Vec<Message>,
    pub diagnosis: Option<Value>,
}

impl Trace {
    /// A run about which only its head is known. The head counts as changed.
    pub fn begin(session: Session) -> Self {
        Self {
            record: SessionRecord::begin(session),
            counts: Vec::new(),
            open: Vec::new(),
            calls_before: 0,
            changed: Changed { session: true, ..Changed::default() },
        }
    }

    /// A session that goes on: what is stored of it stays, what comes is added.
    pub fn resume(mut record: SessionRecord) -> Self {
        record.session.status = SessionStatus::Running;
        (record.session.status_reason, record.session.ended_at) = (None, None);
        Self {
            counts: vec![Counts::default(); record.steps.len()],
            open: Vec::new(),
            calls_before: record.tool_invocations.iter().map(|made| made.id).max().unwrap_or(0),
            changed: Changed { session: true, ..Changed::default() },
            record,
        }
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: &Event) {
        let at = event.at;
        match &event.kind {
            EventKind::RunStarted { alert, .. } => self.run_started(alert, at),
            EventKind::FactsFound { facts } => self.facts_found(facts),
            EventKind::NodeStarted { node } => {
                self.start_step(node, None, None, at);
            }
            EventKind::NodeEnded { node, milliseconds } => self.end_node(node, *milliseconds),
            EventKind::StepStarted { step, question } => {
                let parent = self.open_node(EXECUTE_NODE);
                let index = self.start_step(STEP_NODE, parent, Some(*step), at);
                self.record.steps[index].reason = Some(clean_line(question, MAX_TEXT_CHARS));
            }
            EventKind::StepEnded { step, conclusion } => self.end_plan_step(*step, conclusion, at),
            EventKind::PlanMade { plan } => self.planned("plan", plan, None),
            EventKind::PlanRevised { plan, reason } => self.planned("replan", plan, Some(reason)),
            EventKind::Thought { step, text } => self.thought(*step, text, at),
            EventKind::CallStarted { .. } => self.call_started(&event.kind, at),
            EventKind::CallEnded { call_id, milliseconds, attempts, result } => {
                self.call_ended(*call_id, *milliseconds, *attempts, result);
            }
            EventKind::ToolClosed { tool, failures } => {
                self.message(Role::Warning, &format!("closed {tool} after {failures} failures in a row"), at);
            }
            EventKind::EvidenceFound { evidence } => {
                let index = self.finder(evidence.kind);
                self.count(index, |counts| counts.evidence += 1);
            }
            EventKind::ModelUsed { node, model, milliseconds, usage } => {
                self.model_used(node, model, *milliseconds, *usage, at);
            }
            EventKind::AnswerDelta { .. } | EventKind::HypothesesRanked { .. } => {}
            EventKind::ApprovalRequested { call, .. } => {
                let arguments = clean_line(&call.arguments.to_string(), MAX_TEXT_CHARS);
                self.message(Role::Warning, &format!("approval asked for: {} {arguments}", call.tool), at);
            }
            EventKind::ApprovalAnswered { approval, .. } => {
                let answer = match approval {
                    Approval::Deny => "denied",
                    Approval::Once => "approved once",
                    Approval::Session => "approved for this session",
                };
                self.message(Role::Warning, answer, at);
            }
            EventKind::Steered { control } => self.steered(control, at),
            EventKind::Warning { message } => self.message(Role::Warning, message, at),
            EventKind::RunEnded { status, diagnosis } => self.run_ended(*status, diagnosis.as_deref(), at),
        }
    }

    /// Ends a session that never said how it ended.
    pub fn close(&mut self, status: SessionStatus, reason: Option<&str>, at: Timestamp) {
        let session = &mut self.record.session;
        session.status = status;
        session.status_reason = reason.map(|reason| clean_line(reason, MAX_TEXT_CHARS));
        session.ended_at = Some(at);
        self.changed.session = true;
    }

    /// Adds what somebody said.
    pub fn message(&mut self, role: Role, content: &str, at: Timestamp) {
        let order = self.record.messages.len() as u32 + 1;
        self.changed.messages.insert(self.record.messages.len());
        self.record.messages.push(Message { order, role, content: clean(content, MAX_MESSAGE_CHARS), at });
    }

    /// Whether a store has something to write.
    pub fn has_changes(&self) -> bool {
        let Changed { session, diagnosis, steps, invocations, messages } = &self.changed;
        *session || *diagnosis || !steps.is_empty() || !invocations.is_empty() || !messages.is_empty()
    }

    /// The rows that changed since the last time. Whoever fails to write them has to [`Self::restore`] them.
    pub fn take_changes(&mut self) -> Changes {
        let changed = std::mem::take(&mut self.changed);
        let record = &self.record;
        let pick = |index: &usize| record.steps[*index].clone();
        Changes {
            session_id: record.session.id.clone(),
            session: changed.session.then(|| record.session.clone()),
            steps: changed.steps.iter().map(pick).collect(),
            invocations: changed.invocations.iter().map(|&index| record.tool_invocations[index].clone()).collect(),
            messages: changed.messages.iter().map(|&index| record.messages[index].clone()).collect(),
            diagnosis: if changed.diagnosis { record.diagnosis.clone() } else { None },
        }
    }

    /// Marks rows as changed again.
    pub fn restore(&mut self, changes: &Changes) {
        self.changed.session |= changes.session.is_some();
        self.changed.diagnosis |= changes.diagnosis.is_some();
        // Orders count from 1 and rows are never taken out.
        self.changed.steps.extend(changes.steps.iter().map(|step| step.order as usize - 1));
        self.changed.messages.extend(changes.messages.iter().map(|message| message.order as usize - 1));
        let ids: BTreeSet<u64> = changes.invocations.iter().map(|invocation| invocation.id).collect();
        let places = self.record.tool_invocations.iter().enumerate();
        self.changed.invocations.extend(places.filter(|(_, made)| ids.contains(&made.id)).map(|(index, _)| index));
    }

    /// A fact is something said; the rest is kept as what happened.
    fn steered(&mut self, control: &Control, at: Timestamp) {
        let text = match control {
            Control::AddFact { text } => return self.message(Role::User, text, at),
            Control::Stop => "the engineer ended the run".to_owned(),
            Control::CancelCall { call_id } => format!("the engineer cancelled call {call_id}"),
            Control::SkipStep { step } => format!("the engineer skipped step {step}"),
            Control::PinHypothesis { hypothesis } => format!("the engineer pinned {}", hypothesis.category.id()),
            Control::DismissHypothesis { hypothesis } => {
                format!("the engineer dismissed {}", hypothesis.category.id())
            }
            Control::ReleaseHypothesis { hypothesis } => format!("the engineer released {}", hypothesis.category.id()),
            // The event of the approval says it.
            Control::AnswerApproval { .. } => return,
        };
        self.message(Role::Warning, &text, at);
    }

    fn run_started(&mut self, alert: &Alert, at: Timestamp) {
        let session = &mut self.record.session;
        if session.kind == SessionKind::Diagnosis {
            session.title = clean_line(&alert.name, MAX_TEXT_CHARS);
        }
        session.service = alert.service.clone();
        session.fingerprint = Some(alert.fingerprint.clone());
        session.alert_started_at = alert.starts_at;
        session.started_at = session.started_at.min(at);
        self.changed.session = true;
        self.message(Role::User, &alert.text(), at);
    }

    fn facts_found(&mut self, facts: &Facts) {
        let session = &mut self.record.session;
        session.lang = facts.lang;
        if session.service.is_none() {
            session.service.clone_from(&facts.service);
        }
        self.changed.session = true;
    }

    /// Index of the new row.
    fn start_step(&mut self, node: &str, parent: Option<u32>, plan_step: Option<u32>, at: Timestamp) -> usize {
        let index = self.record.steps.len();
        let order = index as u32 + 1;
        self.record.steps.push(AgentStep {
            order,
            node: clean_line(node, MAX_TEXT_CHARS),
            parent,
            plan_step,
            decision: None,
            reason: None,
            state_change: None,
            started_at: at,
            milliseconds: None,
            input_tokens: 0,
            output_tokens: 0,
        });
        self.counts.push(Counts::default());
        self.open.push(order);
        self.changed.steps.insert(index);
        index
    }

    fn end_node(&mut self, node: &str, milliseconds: u64) {
        let Some(order) = self.open_node(node) else { return };
        self.end(order, milliseconds);
    }

    fn end_plan_step(&mut self, step: u32, conclusion: &str, at: Timestamp) {
        let found = self.open.iter().rev().find(|&&order| self.step(order).plan_step == Some(step));
        let Some(&order) = found else { return };
        let row = &mut self.record.steps[order as usize - 1];
        if !conclusion.is_empty() {
            row.decision = Some(clean_line(conclusion, MAX_TEXT_CHARS));
        }
        let spent = at.duration_since(row.started_at).as_millis().max(0);
        self.end(order, u64::try_from(spent).unwrap_or(u64::MAX));
    }

    fn end(&mut self, order: u32, milliseconds: u64) {
        // A step of the plan that was broken off ends with its node.
        let broken_off: Vec<u32> =
            self.open.iter().copied().filter(|&open| self.step(open).parent == Some(order)).collect();
        for inner in broken_off {
            self.end(inner, milliseconds);
        }
        self.open.retain(|&open| open != order);
        self.record.steps[order as usize - 1].milliseconds = Some(milliseconds);
        self.changed.steps.insert(order as usize - 1);
    }

    fn step(&self, order: u32) -> &AgentStep {
        &self.record.steps[order as usize - 1]
    }

    /// `order` of the last open run of a node.
    fn open_node(&self, node: &str) -> Option<u32> {
        self.open.iter().rev().copied().find(|&order| self.step(order).node == node)
    }

    /// `order` of what makes a call or thinks now: the plan's step, else the node that calls this tool, else whatever
    /// is open.
    fn worker(&self, plan_step: Option<u32>, tool: &str) -> Option<u32> {
        if let Some(step) = plan_step {
            let found = self.open.iter().rev().copied().find(|&order| self.step(order).plan_step == Some(step));
            return found.or_else(|| self.open_node(EXECUTE_NODE)).or_else(|| self.open.last().copied());
        }
        if tool == RETRIEVAL_NODE && self.open_node(RETRIEVAL_NODE).is_some() {
            return self.open_node(RETRIEVAL_NODE);
        }
        self.open_node("parallel_query").or_else(|| self.open.last().copied())
    }

    /// Index of the step that evidence comes from. What the first round found is merged after its nodes have ended.
    fn finder(&self, kind: EvidenceKind) -> Option<usize> {
        if let Some(&order) = self.open.iter().rev().find(|&&order| self.step(order).plan_step.is_some()) {
            return Some(order as usize - 1);
        }
        let node = if kind == EvidenceKind::Knowledge { RETRIEVAL_NODE } else { "parallel_query" };
        self.record.steps.iter().rposition(|step| step.node == node)
    }

    fn count(&mut self, index: Option<usize>, add: impl Fn(&mut Counts)) {
        let Some(index) = index else { return };
        add(&mut self.counts[index]);
        self.record.steps[index].state_change = Some(self.counts[index].text());
        self.changed.steps.insert(index);
    }

    fn planned(&mut self, node: &str, plan: &Plan, reason: Option<&String>) {
        let Some(order) = self.open_node(node).or_else(|| self.open.last().copied()) else { return };
        let pending: Vec<String> =
            plan.steps.iter().filter(|s| s.conclusion.is_none()).map(|s| format!("{}. {}", s.id, s.question)).collect();
        let row = &mut self.record.steps[order as usize - 1];
        row.decision = Some(clean_line(&pending.join(" "), MAX_TEXT_CHARS));
        row.state_change = Some(counted(plan.steps.len(), "step"));
        if let Some(reason) = reason {
            row.reason = Some(clean_line(reason, MAX_TEXT_CHARS));
        }
        self.changed.steps.insert(order as usize - 1);
    }

    fn thought(&mut self, step: Option<u32>, text: &str, at: Timestamp) {
        if let Some(order) = self.worker(step, "") {
            let row = &mut self.record.steps[order as usize - 1];
            // The reason of a plan's step is its question.
            if row.plan_step.is_none() {
                row.reason = Some(clean_line(text, MAX_TEXT_CHARS));
                self.changed.steps.insert(order as usize - 1);
            }
        }
        self.message(Role::Thought, text, at);
    }

    fn call_started(&mut self, kind: &EventKind, at: Timestamp) {
        let EventKind::CallStarted { call_id, step, server, call } = kind else { return };
        let worker = self.worker(*step, &call.tool);
        self.changed.invocations.insert(self.record.tool_invocations.len());
        self.record.tool_invocations.push(ToolInvocation {
            id: self.calls_before + *call_id,
            step: worker,
            tool: clean_line(&call.tool, MAX_TEXT_CHARS),
            server: clean_line(server, MAX_TEXT_CHARS),
            arguments: call.arguments.clone(),
            status: InvocationStatus::Running,
            error: None,
            attempts: 0,
            served_by: None,
            started_at: at,
            milliseconds: None,
            output_preview: None,
            output_bytes: None,
            findings: None,
            truncated: false,
            retrieval: None,
        });
        self.count(worker.map(|order| order as usize - 1), |counts| counts.calls += 1);
    }

    fn call_ended(&mut self, call_id: u64, milliseconds: u64, attempts: u32, result: &CallResult) {
        let Some(index) = self.record.tool_invocations.iter().rposition(|made| made.id == self.calls_before + call_id)
        else {
            return;
        };
        self.changed.invocations.insert(index);
        let made = &mut self.record.tool_invocations[index];
        made.milliseconds = Some(milliseconds);
        made.attempts = attempts;
        match result {
            CallResult::Output { source, findings, truncated, served, preview, bytes, retrieval } => {
                (made.status, made.served_by) = match served {
                    Served::Live => (InvocationStatus::Ok, Some(source.clone())),
                    Served::Stale { age_seconds } => {
                        (InvocationStatus::Stale, Some(format!("{source}, {age_seconds} s old")))
                    }
                };
                made.output_preview = Some(clean(preview, PREVIEW_CHARS));
                made.output_bytes = Some(*bytes as u64);
                made.findings = Some(*findings as u64);
                made.truncated = *truncated;
                made.retrieval = *retrieval;
            }
            CallResult::Failure { kind, message } => {
                made.status = InvocationStatus::Failed;
                made.error = Some(clean_line(&format!("{}: {message}", kind.id()), MAX_TEXT_CHARS));
                let step = made.step.map(|order| order as usize - 1);
                self.count(step, |counts| counts.failed += 1);
            }
        }
    }

    /// A call of a model is a step of its own inside the node that asked; the node's tokens are the sum of its calls'.
    fn model_used(&mut self, node: &str, model: &str, milliseconds: u64, usage: Usage, at: Timestamp) {
        self.record.session.usage.add(usage);
        self.record.session.model.get_or_insert_with(|| clean_line(model, MAX_TEXT_CHARS));
        self.changed.session = true;
        let asked = self.open_node(node).map(|order| {
            let inner = self.open.iter().rev().copied().find(|&open| self.step(open).parent == Some(order));
            inner.unwrap_or(order)
        });
        let parents = std::iter::successors(asked, |&order| self.step(order).parent).collect::<Vec<_>>();
        let spent = jiff::SignedDuration::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX));
        let index = self.start_step(CHAT_NODE, asked, None, at.checked_sub(spent).unwrap_or(at));
        let order = index as u32 + 1;
        self.record.steps[index].reason = Some(clean_line(model, MAX_TEXT_CHARS));
        for order in parents.into_iter().chain([order]) {
            let row = &mut self.record.steps[order as usize - 1];
            row.input_tokens += usage.input_tokens;
            row.output_tokens += usage.output_tokens;
            self.changed.steps.insert(order as usize - 1);
        }
        self.end(order, milliseconds);
    }

    fn run_ended(&mut self, status: RunStatus, diagnosis: Option<&Diagnosis>, at: Timestamp) {
        let status = match status {
            RunStatus::Complete => SessionStatus::Complete,
            RunStatus::Incomplete => SessionStatus::Incomplete,
            RunStatus::Cancelled => SessionStatus::Cancelled,
        };
        let reason = diagnosis.and_then(|diagnosis| diagnosis.status_reason.clone());
        self.close(status, reason.as_deref(), at);
        let Some(diagnosis) = diagnosis else { return };
        let session = &mut self.record.session;
        session.reasoner = Some(diagnosis.reasoner.clone());
        session.model.clone_from(&diagnosis.model);
        if diagnosis.usage != Usage::default() {
            session.usage = diagnosis.usage;
        }
        if let Some(cause) = &diagnosis.root_cause {
            session.category = Some(cause.category.id().to_owned());
            session.cause = Some(clean_line(&cause.title, MAX_TEXT_CHARS));
            session.cause_service.clone_from(&cause.service);
            session.confidence = Some(cause.confidence);
        }
        // Plain data, whose serialisation does not fail; were it to, the session is stored without the document.
        self.record.diagnosis = serde_json::to_value(diagnosis).ok();
        self.changed.diagnosis = self.record.diagnosis.is_some();
        self.message(Role::Assistant, &diagnosis.summary, at);
    }
}

impl Counts {
    fn text(self) -> String {
        let mut parts = vec![counted(self.calls, "call")];
        if self.failed > 0 {
            parts.push(format!("{} failed", self.failed));
        }
        parts.push(format!("{} evidence", self.evidence));
        parts.join(", ")
    }
}

/// A question with its answer, as a record that begins: for whoever has no events to fold.
pub fn question(id: &str, question: &str, lang: Lang, at: Timestamp) -> Trace {
    let session = Session::begin(id, SessionKind::Question, "simple", &clean_line(question, MAX_TEXT_CHARS), lang, at);
    let mut trace = Trace::begin(session);
    trace.message(Role::User, question, at);
    trace
}

/// A further question of a conversation that is stored.
pub fn follow_up(record: SessionRecord, question: &str, at: Timestamp) -> Trace {
    let mut trace = Trace::resume(record);
    trace.message(Role::User, question, at);
    trace
}
