//! What a front end tells a running agent: the one Control enum, from front end to agent. In come the wishes of the
//! person at the keyboard, out they come at the agent, in order; the agent says by an event what it took up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::domain::HypothesisKey;

/// A wish.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "control", rename_all = "snake_case")]
pub enum Control {
    /// End with the best answer so far.
    Stop,
    /// Break off one call; the reasoner reads that it was cancelled.
    CancelCall { call_id: u64 },
    /// Leave a step of the plan out, or break off the one under way.
    SkipStep { step: u32 },
    /// Look at this hypothesis first.
    PinHypothesis { hypothesis: HypothesisKey },
    /// Do not name this as the cause.
    DismissHypothesis { hypothesis: HypothesisKey },
    /// Take back either.
    ReleaseHypothesis { hypothesis: HypothesisKey },
    /// Something that the engineer knows; it becomes evidence that the replanner sees.
    AddFact { text: String },
    /// The answer to a request for approval.
    AnswerApproval { request: u64, approval: Approval },
}

/// Whether a call that may change something is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    #[default]
    Deny,
    Once,
    /// This call, and every further one of the same tool in this session.
    Session,
}

/// The front end's end. Cloned freely; an agent that has ended is no error.
#[derive(Debug, Clone)]
pub struct ControlSink(UnboundedSender<Control>);

/// The agent's end.
#[derive(Debug)]
pub struct ControlStream(UnboundedReceiver<Control>);

/// Both ends.
pub fn channel() -> (ControlSink, ControlStream) {
    let (sender, receiver) = unbounded_channel();
    (ControlSink(sender), ControlStream(receiver))
}

impl ControlSink {
    pub fn send(&self, control: Control) {
        let _ = self.0.send(control);
    }
}

impl ControlStream {
    /// The next wish; `None` when no front end is left.
    pub async fn next(&mut self) -> Option<Control> {
        self.0.recv().await
    }
}
