//! What the agent knows so far. Nodes read it and return changes, which the graph merges in one place.

use std::collections::BTreeMap;

use super::{Alert, Call, Evidence, Facts, History, Hit, Judged, Outcome, Plan, ToolSpec, Usage};

/// Callees by caller, as far as somebody wrote it down or a mesh metric shows it.
pub type Topology = BTreeMap<String, Vec<String>>;

/// A call that was made, and what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    pub call: Call,
    pub outcome: Outcome,
    /// The step that made it; `None` for the first round of questions.
    pub step: Option<u32>,
    /// Ids of the evidence drawn from it, in the order of its findings.
    pub evidence: Vec<String>,
}

/// The state of one diagnosis.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    /// The alert diagnosed, first, and those of the same root.
    pub alerts: Vec<Alert>,
    pub facts: Facts,
    /// What is known of the alert from earlier.
    pub history: Option<History>,
    pub topology: Topology,
    /// The tools that may be called.
    pub tools: Vec<ToolSpec>,
    pub invocations: Vec<Invocation>,
    pub evidence: Vec<Evidence>,
    pub plan: Plan,
    /// Passages of the knowledge base, best first.
    pub hits: Vec<Hit>,
    /// Tools closed after repeated failures.
    pub closed_tools: Vec<String>,
    /// What the engineer said of hypotheses.
    pub judged: Judged,
    pub usage: Usage,
}

impl State {
    /// The state before anything was asked.
    pub fn begin(alerts: Vec<Alert>, facts: Facts) -> Self {
        Self {
            alerts,
            facts,
            history: None,
            topology: Topology::default(),
            tools: Vec::new(),
            invocations: Vec::new(),
            evidence: Vec::new(),
            plan: Plan::default(),
            hits: Vec::new(),
            closed_tools: Vec::new(),
            judged: Judged::default(),
            usage: Usage::default(),
        }
    }

    /// The alert under diagnosis.
    pub fn alert(&self) -> &Alert {
        &self.alerts[0]
    }

    /// Whether a tool of this name may be called.
    pub fn has_tool(&self, name: &str) -> bool {
        self.tools.iter().any(|tool| tool.name == name) && !self.closed_tools.iter().any(|closed| closed == name)
    }

    /// Whether this very call was made before.
    pub fn was_called(&self, call: &Call) -> bool {
        self.invocations.iter().any(|invocation| &invocation.call == call)
    }

    pub fn evidence(&self, id: &str) -> Option<&Evidence> {
        self.evidence.iter().find(|evidence| evidence.id == id)
    }
}
