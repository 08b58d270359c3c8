//! Who plans and concludes: the [`Reasoner`] seam, the embedded `rules` reasoner, and the model-driven one.

pub mod facts;
pub mod judge;
pub mod llm;
pub mod rules;
pub mod signature;
pub mod words;

use async_trait::async_trait;

use crate::domain::{Call, Decision, Hypothesis, Lang, NextStep, Plan, RootCause, State, Step, Usage};

/// What to do next inside a step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepMove {
    /// Make these calls, all at once, then ask again.
    Call { thought: String, calls: Vec<Call> },
    /// The step's question is answered, or cannot be.
    Done { conclusion: String },
}

/// What a reasoner concludes from the state.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// A paragraph in the user's language, with citations such as `[E1]`.
    pub summary: String,
    /// `None` when nothing fits well enough.
    pub root_cause: Option<RootCause>,
    /// Best first.
    pub hypotheses: Vec<Hypothesis>,
    pub next_steps: Vec<NextStep>,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
}

/// A value and what the model's part in it cost.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reasoned<T> {
    pub value: T,
    pub usage: Usage,
}

/// A reasoner that could not do its part; the caller goes on with the rules.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ReasonError(pub String);

/// Names that stand in an alert's text and that its fields do not hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Names {
    pub service: Option<String>,
    pub namespace: Option<String>,
    pub pod: Option<String>,
    pub metric: Option<String>,
}

/// How much time there is for a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    Thorough,
    /// The user or a budget ended the run: what is known is put together at once.
    Hurried,
}

/// Plans, works steps, replans and concludes. Sees only the state; makes no calls itself.
#[async_trait]
pub trait Reasoner: Send + Sync {
    /// `rules` or `llm`.
    fn name(&self) -> &'static str;

    /// The model's name, where there is one.
    fn model(&self) -> Option<&str>;

    /// Names that the facts lack and the alert's text holds; nothing, for a reasoner that reads fields only.
    async fn analyze(&self, _state: &State) -> Reasoned<Names> {
        Reasoned::default()
    }

    /// The first plan, made when the first round of questions is answered and the runbooks are there.
    async fn plan(&self, state: &State) -> Result<Reasoned<Plan>, ReasonError>;

    /// The next move of `step`; `turn` counts from 0 and grows with every round of calls.
    async fn work(&self, state: &State, step: &Step, turn: usize) -> Result<Reasoned<StepMove>, ReasonError>;

    /// What to do after a step has ended.
    async fn replan(&self, state: &State) -> Result<Reasoned<Decision>, ReasonError>;

    async fn synthesize(&self, state: &State, pace: Pace) -> Result<Reasoned<Conclusion>, ReasonError>;

    /// Why the run is incomplete although the graph came to its end: a budget of the reasoner's own.
    fn shortfall(&self, _lang: Lang) -> Option<String> {
        None
    }

    /// What the reader should know of how the conclusion came about.
    fn notes(&self, _state: &State) -> Vec<String> {
        Vec::new()
    }
}
