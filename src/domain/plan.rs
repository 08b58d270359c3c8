//! Plans: ordered questions, and the calls that answer them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StepState {
    #[default]
    Pending,
    Running,
    Done,
    /// Every call of it failed.
    Failed,
    /// Dropped by a revision, a budget or the user.
    Skipped,
}

/// One question of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// From 1, stable over revisions.
    pub id: u32,
    /// The question, in the user's language.
    pub question: String,
    /// Why it is asked: a runbook, the alert's kind, a finding.
    pub reason: String,
    /// First calls to make; a reasoner may make more when it works the step.
    pub calls: Vec<Call>,
    pub state: StepState,
    /// What the step found, once done.
    pub conclusion: Option<String>,
    /// Ids of the evidence that it drew.
    pub evidence: Vec<String>,
}

/// Ordered steps.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    pub steps: Vec<Step>,
    /// Why the plan was revised, in order.
    pub revisions: Vec<String>,
}

impl Plan {
    pub fn next_pending(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.state == StepState::Pending)
    }
}

/// What the replanner decides after a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Work the next pending step.
    Continue,
    /// Replace the pending steps, for a reason that the user sees.
    Revise { pending: Vec<Step>, reason: String },
    /// Enough is known, or nothing is left to ask.
    Finish { reason: String },
}
