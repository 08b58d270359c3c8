//! The model-driven reasoner. A model plans, works steps, replans and concludes; code checks its shapes, its calls and its
//! citations; and the rules stand under it: whatever a model cannot do, they do, and the diagnosis says so.

mod answering;
mod check;
mod commands;
mod concluding;
mod digest;
mod planning;
pub mod prompts;
mod shapes;
mod trouble;
mod working;

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use jiff::tz::TimeZone;

pub use answering::{ASK_STEP, AskTalk, Question, Route, Routed, citations};
pub use check::Checked;
use prompts::Prompts;
use trouble::Trouble;
use working::Talk;

use super::rules::Rules;
use super::{Conclusion, Names, Pace, ReasonError, Reasoned, Reasoner, StepMove};
use crate::domain::{Decision, Lang, Plan, State, Step};
use crate::llm::{Chat, ChatRequest, ModelError};

/// The models by role; one may serve all.
#[derive(Clone)]
pub struct Models {
    pub planner: Chat,
    pub executor: Chat,
    pub synthesizer: Chat,
}

/// The reasoner.
pub struct Llm {
    models: Models,
    prompts: Prompts,
    rules: Rules,
    zone: TimeZone,
    /// The conversations of the steps under way.
    talks: Mutex<BTreeMap<u32, Talk>>,
    trouble: Trouble,
}

impl Llm {
    pub fn new(models: Models, prompts: Prompts, zone: TimeZone) -> Self {
        let trouble = Trouble::new(models.planner.events.clone());
        Self { models, prompts, rules: Rules::new(zone.clone()), zone, talks: Mutex::default(), trouble }
    }

    /// The name of the model that answers.
    pub fn model_name(&self) -> &str {
        self.models.synthesizer.model.name()
    }

    /// A request of a node, from its template.
    fn request(&self, node: &str, values: minijinja::Value) -> Result<ChatRequest, ModelError> {
        let messages = self.prompts.render(node, values).map_err(|error| ModelError::Settings(error.to_string()))?;
        Ok(ChatRequest { node: node.to_string(), messages, ..ChatRequest::default() })
    }
}

#[async_trait]
impl Reasoner for Llm {
    fn name(&self) -> &'static str {
        if self.trouble.rules_concluded() { "rules" } else { "llm" }
    }

    fn model(&self) -> Option<&str> {
        Some(self.model_name())
    }

    async fn analyze(&self, state: &State) -> Reasoned<Names> {
        self.trouble.guard(self.names(state)).await.unwrap_or_default()
    }

    async fn plan(&self, state: &State) -> Result<Reasoned<Plan>, ReasonError> {
        match self.trouble.guard(self.make_plan(state)).await {
            Some(plan) => Ok(plan),
            None => self.rules.plan(state).await,
        }
    }

    async fn work(&self, state: &State, step: &Step, turn: usize) -> Result<Reasoned<StepMove>, ReasonError> {
        match self.trouble.guard(self.work_step(state, step, turn)).await {
            Some(next) => Ok(next),
            None => self.rules.work(state, step, turn).await,
        }
    }

    async fn replan(&self, state: &State) -> Result<Reasoned<Decision>, ReasonError> {
        match self.trouble.guard(self.decide(state)).await {
            Some(decision) => Ok(decision),
            None => self.rules.replan(state).await,
        }
    }

    async fn synthesize(&self, state: &State, pace: Pace) -> Result<Reasoned<Conclusion>, ReasonError> {
        let floor = self.rules.synthesize(state, pace).await?;
        let concluded = match pace {
            Pace::Thorough => self.trouble.guard(self.conclude(state, &floor.value)).await,
            Pace::Hurried => None,
        };
        Ok(concluded.unwrap_or_else(|| {
            self.trouble.conclude_by_rules(pace);
            floor
        }))
    }

    fn shortfall(&self, lang: Lang) -> Option<String> {
        self.trouble.budget(lang)
    }

    fn notes(&self, state: &State) -> Vec<String> {
        self.trouble.note(state.facts.lang).into_iter().collect()
    }
}
