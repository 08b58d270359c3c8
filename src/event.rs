//! The one record of something that happened. The agent emits events; front ends and stores read them, and a
//! trace is a fold of them.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::control::{Approval, Control};
use crate::domain::{
    Alert, Call, Diagnosis, Evidence, Facts, FailureKind, Hypothesis, Plan, RetrievalQuality, RunStatus, Served, Usage,
};

/// An event with its place in the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Event {
    /// From 0, without gaps within a session.
    pub seq: u64,
    #[schemars(with = "String")]
    pub at: Timestamp,
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    RunStarted {
        session_id: String,
        alert: Box<Alert>,
    },
    NodeStarted {
        node: String,
    },
    NodeEnded {
        node: String,
        milliseconds: u64,
    },
    FactsFound {
        facts: Box<Facts>,
    },
    PlanMade {
        plan: Plan,
    },
    PlanRevised {
        plan: Plan,
        reason: String,
    },
    StepStarted {
        step: u32,
        question: String,
    },
    StepEnded {
        step: u32,
        conclusion: String,
    },
    /// What the reasoner thinks before it calls.
    Thought {
        step: Option<u32>,
        text: String,
    },
    CallStarted {
        /// Unique within the run.
        call_id: u64,
        step: Option<u32>,
        /// `builtin`, the MCP server, or nothing when there is no such tool.
        server: String,
        call: Call,
    },
    CallEnded {
        call_id: u64,
        milliseconds: u64,
        attempts: u32,
        result: CallResult,
    },
    /// A tool was closed for the rest of the run.
    ToolClosed {
        tool: String,
        failures: u32,
    },
    EvidenceFound {
        evidence: Box<Evidence>,
    },
    /// A model was called and answered.
    ModelUsed {
        /// The node that asked.
        node: String,
        model: String,
        milliseconds: u64,
        usage: Usage,
    },
    /// A piece of the answer as it is written.
    AnswerDelta {
        text: String,
    },
    /// Where the ranking stands; only while a front end follows that can steer.
    HypothesesRanked {
        hypotheses: Vec<Hypothesis>,
    },
    /// A call that may change something waits for a yes or a no.
    ApprovalRequested {
        /// The `call_id` of the call.
        request: u64,
        server: String,
        call: Call,
    },
    ApprovalAnswered {
        request: u64,
        approval: Approval,
    },
    /// The agent took up a wish of the engineer.
    Steered {
        control: Control,
    },
    /// Something that the user should know and that does not stop the run.
    Warning {
        message: String,
    },
    RunEnded {
        status: RunStatus,
        diagnosis: Option<Box<Diagnosis>>,
    },
}

/// How a call ended, in short; the findings follow as evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum CallResult {
    Output {
        source: String,
        findings: usize,
        truncated: bool,
        served: Served,
        /// The first 500 characters of the findings as JSON.
        preview: String,
        /// Bytes of all of it.
        bytes: usize,
        /// For retrieval: how good it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retrieval: Option<RetrievalQuality>,
    },
    Failure {
        kind: FailureKind,
        message: String,
    },
}

/// Where events go. Cloned freely; numbering is shared. A receiver that is gone is no error: the run goes on.
#[derive(Debug, Clone)]
pub struct EventSink {
    sender: tokio::sync::mpsc::UnboundedSender<Event>,
    seq: std::sync::Arc<std::sync::Mutex<u64>>,
}

impl EventSink {
    /// A sink and the stream that it feeds.
    pub fn channel() -> (Self, tokio::sync::mpsc::UnboundedReceiver<Event>) {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        (Self { sender, seq: std::sync::Arc::default() }, receiver)
    }

    /// Records that something happened now.
    pub fn emit(&self, kind: EventKind) {
        // Numbering and sending under one lock keeps the stream in the order of its numbers.
        let mut seq = self.seq.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = self.sender.send(Event { seq: *seq, at: Timestamp::now(), kind });
        *seq += 1;
    }
}
