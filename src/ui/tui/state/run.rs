//! What is known of one run: a fold of its events, bounded in memory. Texts from outside are cleaned on their way in.

use jiff::Timestamp;

use super::ring::Ring;
use crate::control::{Approval, Control};
use crate::domain::text::{clean, clean_line};
use crate::domain::{
    Alert, Call, Diagnosis, Evidence, Facts, FailureKind, Hypothesis, HypothesisKey, Plan, RunStatus, Step, StepState,
    Usage,
};
use crate::event::{CallResult, Event, EventKind};

/// Calls, evidence, node runs and lines that are kept; what was before is in the session store.
pub const KEPT_CALLS: usize = 2000;
pub const KEPT_EVIDENCE: usize = 2000;
pub const KEPT_NODES: usize = 500;
pub const KEPT_NOTES: usize = 2000;
const LINE_CHARS: usize = 1000;
const ANSWER_CHARS: usize = 60_000;
const KEPT_STEPS: usize = 500;
const TOOLS_KEPT: usize = 100;
const APPROVALS_KEPT: usize = 100;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Phase {
    #[default]
    Idle,
    Running,
    /// Asked to stop; the best answer so far is on its way.
    Stopping,
    Ended(RunStatus),
}

/// A call, under way or ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CallView {
    pub id: u64,
    pub step: Option<u32>,
    pub server: String,
    pub call: Call,
    /// `words::call`, cleaned.
    pub text: String,
    pub started: Timestamp,
    pub ended: Option<CallEnd>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    pub milliseconds: u64,
    pub attempts: u32,
    pub result: CallResult,
}

/// A run of a node, or a step of the plan worked inside one.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeView {
    pub name: String,
    /// The step of the plan, where it is one.
    pub step: Option<u32>,
    pub started: Timestamp,
    pub milliseconds: Option<u64>,
    /// What it decided, and why; cleaned.
    pub decision: String,
    pub reason: String,
    pub calls: usize,
    pub evidence: usize,
    pub input_tokens: u64,
    pub output_tokens: u64,
}

/// What a line of the record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    Thought,
    Warning,
    /// What the engineer did.
    Steering,
}

/// A line of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    pub at: Timestamp,
    pub kind: NoteKind,
    pub text: String,
}

/// A call that waits for a yes or a no.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalRequest {
    pub request: u64,
    pub server: String,
    pub call: Call,
}

/// One run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub phase: Phase,
    pub session_id: String,
    pub title: String,
    pub alert: Option<Box<Alert>>,
    pub facts: Option<Box<Facts>>,
    pub plan: Plan,
    pub calls: Ring<CallView>,
    pub evidence: Ring<Evidence>,
    pub nodes: Ring<NodeView>,
    pub notes: Ring<Note>,
    pub hypotheses: Vec<Hypothesis>,
    pub pinned: Vec<HypothesisKey>,
    pub dismissed: Vec<HypothesisKey>,
    pub approvals: Vec<ApprovalRequest>,
    pub closed_tools: Vec<String>,
    pub usage: Usage,
    pub model: Option<String>,
    /// The answer as far as it is written.
    pub answer: String,
    pub diagnosis: Option<Box<Diagnosis>>,
    pub started: Option<Timestamp>,
    pub last: Timestamp,
    /// Events taken in.
    pub events: u64,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            session_id: String::new(),
            title: String::new(),
            alert: None,
            facts: None,
            plan: Plan::default(),
            calls: Ring::new(KEPT_CALLS),
            evidence: Ring::new(KEPT_EVIDENCE),
            nodes: Ring::new(KEPT_NODES),
            notes: Ring::new(KEPT_NOTES),
            hypotheses: Vec::new(),
            pinned: Vec::new(),
            dismissed: Vec::new(),
            approvals: Vec::new(),
            closed_tools: Vec::new(),
            usage: Usage::default(),
            model: None,
            answer: String::new(),
            diagnosis: None,
            started: None,
            last: Timestamp::UNIX_EPOCH,
            events: 0,
        }
    }
}

impl Run {
    /// A run that begins now.
    pub fn begin(title: &str, at: Timestamp) -> Self {
        let title = clean_line(title, LINE_CHARS);
        Self { phase: Phase::Running, title, started: Some(at), last: at, ..Self::default() }
    }

    pub fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running | Phase::Stopping)
    }

    pub fn running_calls(&self) -> impl Iterator<Item = &CallView> {
        self.calls.iter().filter(|call| call.ended.is_none())
    }

    pub fn step(&self, id: u32) -> Option<&Step> {
        self.plan.steps.iter().find(|step| step.id == id)
    }

    pub fn evidence_of(&self, id: &str) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.id == id)
    }

    /// Lines that were taken in, kept or not.
    pub fn lines(&self) -> u64 {
        self.notes.dropped + self.notes.len() as u64
    }

    /// Takes one event in.
    pub fn take(&mut self, event: &Event) {
        self.events += 1;
        self.last = self.last.max(event.at);
        self.started.get_or_insert(event.at);
        if self.phase == Phase::Idle {
            self.phase = Phase::Running;
        }
        match &event.kind {
            EventKind::RunStarted { session_id, alert } => {
                self.session_id = clean_line(session_id, LINE_CHARS);
                self.title = clean_line(&alert.name, LINE_CHARS);
                self.alert = Some(alert.clone());
            }
            EventKind::FactsFound { facts } => self.facts = Some(facts.clone()),
            EventKind::NodeStarted { node } => self.start_node(node, None, event.at),
            EventKind::NodeEnded { node, milliseconds } => self.end_node(node, *milliseconds),
            EventKind::PlanMade { plan } => self.planned(plan, "plan", ""),
            EventKind::PlanRevised { plan, reason } => self.planned(plan, "replan", reason),
            EventKind::StepStarted { step, question } => self.start_step(*step, question, event.at),
            EventKind::StepEnded { step, conclusion } => self.end_step(*step, conclusion, event.at),
            EventKind::Thought { step, text } => self.thought(*step, text, event.at),
            EventKind::CallStarted { call_id, step, server, call } => {
                self.start_call(*call_id, *step, server, call, event.at);
            }
            EventKind::CallEnded { call_id, milliseconds, attempts, result } => {
                self.end_call(
                    *call_id,
                    CallEnd { milliseconds: *milliseconds, attempts: *attempts, result: cleaned(result) },
                );
            }
            EventKind::ToolClosed { tool, failures } => self.tool_closed(tool, *failures, event.at),
            EventKind::EvidenceFound { evidence } => self.found(evidence),
            EventKind::ModelUsed { node, model, usage, .. } => self.model_used(node, model, *usage),
            EventKind::AnswerDelta { text } => self.answer_goes_on(text),
            EventKind::HypothesesRanked { hypotheses } => self.hypotheses.clone_from(hypotheses),
            EventKind::ApprovalRequested { request, server, call } => {
                let (request, server, call) = (*request, clean_line(server, LINE_CHARS), call.clone());
                if self.approvals.len() < APPROVALS_KEPT {
                    self.approvals.push(ApprovalRequest { request, server, call });
                }
            }
            EventKind::ApprovalAnswered { request, approval } => self.approval_answered(*request, *approval, event.at),
            EventKind::Steered { control } => self.steered(control, event.at),
            EventKind::Warning { message } => self.note(NoteKind::Warning, message, event.at),
            EventKind::RunEnded { status, diagnosis } => self.ended(*status, diagnosis.as_deref(), event.at),
        }
    }

    pub fn note(&mut self, kind: NoteKind, text: &str, at: Timestamp) {
        self.notes.push(Note { at, kind, text: clean_line(text, LINE_CHARS) });
    }

    fn start_node(&mut self, node: &str, step: Option<u32>, at: Timestamp) {
        self.nodes.push(NodeView {
            name: clean_line(node, 80),
            step,
            started: at,
            milliseconds: None,
            decision: String::new(),
            reason: String::new(),
            calls: 0,
            evidence: 0,
            input_tokens: 0,
            output_tokens: 0,
        });
    }

    fn open_node(&mut self, node: &str) -> Option<&mut NodeView> {
        self.nodes.newest_mut(|one| one.name == node && one.milliseconds.is_none())
    }

    fn end_node(&mut self, node: &str, milliseconds: u64) {
        let started = self.open_node(node).map(|open| {
            open.milliseconds = Some(milliseconds);
            open.started
        });
        // A step that was broken off ends with its node.
        if let (Some(started), "execute") = (started, node) {
            for inner in self.nodes.iter_mut().filter(|inner| inner.step.is_some() && inner.started >= started) {
                inner.milliseconds.get_or_insert(milliseconds);
            }
        }
    }

    fn planned(&mut self, plan: &Plan, node: &str, reason: &str) {
        // What ran is known here; a plan that comes later tells only what is to come.
        let known = std::mem::take(&mut self.plan);
        self.plan = plan.clone();
        for step in &mut self.plan.steps {
            if let Some(before) = known.steps.iter().find(|one| one.id == step.id)
                && before.state != StepState::Pending
                && step.state == StepState::Pending
            {
                step.clone_from(before);
            }
        }
        let decision = plan.steps.iter().filter(|step| step.state == StepState::Pending);
        let decision: Vec<String> = decision.map(|step| format!("{}. {}", step.id, step.question)).collect();
        if let Some(open) = self.open_node(node) {
            open.decision = clean_line(&decision.join(" "), LINE_CHARS);
            open.reason = clean_line(reason, LINE_CHARS);
        }
    }

    fn start_step(&mut self, id: u32, question: &str, at: Timestamp) {
        self.start_node("step", Some(id), at);
        if let Some(open) = self.open_node("step") {
            open.reason = clean_line(question, LINE_CHARS);
        }
        let known = self.plan.steps.len();
        match self.plan.steps.iter_mut().find(|step| step.id == id) {
            Some(step) => step.state = StepState::Running,
            None if known < KEPT_STEPS => self.plan.steps.push(Step {
                id,
                question: clean_line(question, LINE_CHARS),
                reason: String::new(),
                calls: Vec::new(),
                state: StepState::Running,
                conclusion: None,
                evidence: Vec::new(),
            }),
            None => {}
        }
    }

    fn end_step(&mut self, id: u32, conclusion: &str, at: Timestamp) {
        if let Some(open) = self.nodes.newest_mut(|one| one.step == Some(id) && one.milliseconds.is_none()) {
            open.milliseconds = Some(u64::try_from(at.duration_since(open.started).as_millis()).unwrap_or(0));
            open.decision = clean_line(conclusion, LINE_CHARS);
        }
        let mut own = self.calls.iter().filter(|call| call.step == Some(id)).peekable();
        let has_calls = own.peek().is_some();
        let has_failed = has_calls
            && own.all(|call| matches!(&call.ended, Some(CallEnd { result: CallResult::Failure { .. }, .. })));
        if let Some(step) = self.plan.steps.iter_mut().find(|step| step.id == id) {
            if step.state != StepState::Skipped {
                step.state = if has_failed { StepState::Failed } else { StepState::Done };
            }
            step.conclusion = Some(clean_line(conclusion, LINE_CHARS));
        }
    }

    fn thought(&mut self, step: Option<u32>, text: &str, at: Timestamp) {
        // What was written before calls was no answer.
        self.answer.clear();
        let worker = self.nodes.newest_mut(|one| one.milliseconds.is_none() && (step.is_none() || one.step == step));
        if let Some(open) = worker
            && open.step.is_none()
        {
            open.reason = clean_line(text, LINE_CHARS);
        }
        self.note(NoteKind::Thought, text, at);
    }

    fn start_call(&mut self, id: u64, step: Option<u32>, server: &str, call: &Call, at: Timestamp) {
        if let Some(open) = self.nodes.newest_mut(|one| one.milliseconds.is_none() && one.step == step) {
            open.calls += 1;
        }
        self.calls.push(CallView {
            id,
            step,
            server: clean_line(server, 80),
            call: call.clone(),
            text: crate::reason::words::call(call),
            started: at,
            ended: None,
        });
    }

    fn end_call(&mut self, id: u64, end: CallEnd) {
        self.approvals.retain(|open| open.request != id);
        if let Some(call) = self.calls.newest_mut(|call| call.id == id && call.ended.is_none()) {
            call.ended = Some(end);
        }
    }

    fn tool_closed(&mut self, tool: &str, failures: u32, at: Timestamp) {
        let tool = clean_line(tool, 80);
        self.note(NoteKind::Warning, &format!("closed {tool} after {failures} failures in a row"), at);
        if self.closed_tools.len() < TOOLS_KEPT {
            self.closed_tools.push(tool);
        }
    }

    fn found(&mut self, evidence: &Evidence) {
        if let Some(node) = self.nodes.newest_mut(|one| one.milliseconds.is_none()) {
            node.evidence += 1;
        }
        // A replay may tell it twice.
        let number = |id: &str| id.get(1..).and_then(|n| n.parse::<u64>().ok()).unwrap_or(u64::MAX);
        let is_new = self.evidence.last().is_none_or(|last| number(&last.id) < number(&evidence.id));
        if is_new || self.evidence_of(&evidence.id).is_none() {
            let summary = clean_line(&evidence.summary, LINE_CHARS);
            self.evidence.push(Evidence { summary, ..evidence.clone() });
        }
    }

    fn model_used(&mut self, node: &str, model: &str, usage: Usage) {
        self.usage.add(usage);
        self.model = Some(clean_line(model, 120));
        let inner = if node == "execute" { "step" } else { node };
        if let Some(open) = self.nodes.newest_mut(|one| one.milliseconds.is_none() && one.name == inner) {
            open.input_tokens += usage.input_tokens;
            open.output_tokens += usage.output_tokens;
        }
    }

    fn answer_goes_on(&mut self, text: &str) {
        let room = ANSWER_CHARS.saturating_sub(self.answer.len());
        if room > 0 {
            self.answer.push_str(&clean(text, room));
        }
    }

    /// Closes a request; one that is closed already, because it was answered here, stays as it is.
    pub fn approval_answered(&mut self, request: u64, approval: Approval, at: Timestamp) {
        let Some(index) = self.approvals.iter().position(|open| open.request == request) else { return };
        let tool = self.approvals.remove(index).call.tool;
        let answer = match approval {
            Approval::Deny => "denied",
            Approval::Once => "approved once",
            Approval::Session => "approved for this session",
        };
        self.note(NoteKind::Steering, &format!("{tool}: {answer}"), at);
    }

    fn steered(&mut self, control: &Control, at: Timestamp) {
        let text = match control {
            Control::Stop => {
                if self.is_running() {
                    self.phase = Phase::Stopping;
                }
                "stop".to_owned()
            }
            Control::CancelCall { call_id } => format!("cancel call {call_id}"),
            Control::SkipStep { step } => {
                let open =
                    |one: &&mut Step| one.id == *step && matches!(one.state, StepState::Pending | StepState::Running);
                if let Some(step) = self.plan.steps.iter_mut().find(open) {
                    step.state = StepState::Skipped;
                }
                format!("skip step {step}")
            }
            Control::PinHypothesis { hypothesis } => {
                self.judge(hypothesis);
                self.pinned.push(hypothesis.clone());
                format!("pin {}", hypothesis.category.id())
            }
            Control::DismissHypothesis { hypothesis } => {
                self.judge(hypothesis);
                self.dismissed.push(hypothesis.clone());
                format!("dismiss {}", hypothesis.category.id())
            }
            Control::ReleaseHypothesis { hypothesis } => {
                self.judge(hypothesis);
                format!("release {}", hypothesis.category.id())
            }
            Control::AddFact { text } => format!("fact: {text}"),
            Control::AnswerApproval { .. } => return,
        };
        self.note(NoteKind::Steering, &text, at);
    }

    fn judge(&mut self, hypothesis: &HypothesisKey) {
        self.pinned.retain(|one| one != hypothesis);
        self.dismissed.retain(|one| one != hypothesis);
    }

    fn ended(&mut self, status: RunStatus, diagnosis: Option<&Diagnosis>, at: Timestamp) {
        self.phase = Phase::Ended(status);
        self.approvals.clear();
        for call in self.calls.iter_mut().filter(|call| call.ended.is_none()) {
            let milliseconds = u64::try_from(at.duration_since(call.started).as_millis()).unwrap_or(0);
            let (kind, message) = (FailureKind::Cancelled, "not answered when the run ended".to_owned());
            call.ended = Some(CallEnd { milliseconds, attempts: 0, result: CallResult::Failure { kind, message } });
        }
        for step in self.plan.steps.iter_mut().filter(|step| step.state == StepState::Running) {
            step.state = StepState::Skipped;
        }
        for node in self.nodes.iter_mut().filter(|node| node.milliseconds.is_none()) {
            node.milliseconds = Some(u64::try_from(at.duration_since(node.started).as_millis()).unwrap_or(0));
        }
        if let Some(diagnosis) = diagnosis {
            self.hypotheses.clone_from(&diagnosis.hypotheses);
            self.plan.clone_from(&diagnosis.plan);
            self.usage = diagnosis.usage;
            self.diagnosis = Some(Box::new(diagnosis.clone()));
        }
    }
}

/// The result with its texts cleaned.
fn cleaned(result: &CallResult) -> CallResult {
    let mut result = result.clone();
    match &mut result {
        CallResult::Output { source, preview, .. } => {
            *source = clean_line(source, 200);
            *preview = clean(preview, LINE_CHARS);
        }
        CallResult::Failure { message, .. } => *message = clean_line(message, LINE_CHARS),
    }
    result
}
