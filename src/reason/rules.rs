//! The embedded reasoner: deterministic, without a model. It knows the kinds of root causes from signature files,
//! asks what tells them apart, and weighs what came back.
//!
//! In the order of the data flow: `calls` asks, `planner` orders the questions, `observe` reads the answers,
//! `matching` and `absence` find clues, `score` weighs candidates, `verdict` ranks them, `conclude` puts it in words.

mod absence;
mod calls;
mod conclude;
mod coverage;
mod matching;
mod observe;
mod planner;
mod remedy;
mod score;
#[cfg(test)]
mod tests;
mod topology;
mod verdict;
mod windows;

use async_trait::async_trait;
use jiff::tz::TimeZone;

pub use calls::first_calls;

use super::{Conclusion, Pace, ReasonError, Reasoned, Reasoner, StepMove, judge};
use crate::domain::{Decision, Hypothesis, Plan, State, Step, Usage};

/// The reasoner; it knows nothing but the zone in which times are told.
pub struct Rules {
    zone: TimeZone,
}

impl Rules {
    pub fn new(zone: TimeZone) -> Self {
        Self { zone }
    }
}

/// What confidence is multiplied by for the kinds of evidence that could not be looked at.
pub fn coverage_factor(state: &State) -> f64 {
    coverage::Coverage::of(state).factor()
}

/// Where the ranking of hypotheses stands, while more is being asked.
pub fn standing(state: &State, zone: &TimeZone) -> Vec<Hypothesis> {
    judge::apply(conclude::conclude(state, zone), &state.judged, state.facts.lang).hypotheses
}

/// The rules cost nothing.
fn free<T>(value: T) -> Reasoned<T> {
    Reasoned { value, usage: Usage::default() }
}

#[async_trait]
impl Reasoner for Rules {
    fn name(&self) -> &'static str {
        "rules"
    }

    fn model(&self) -> Option<&str> {
        None
    }

    async fn plan(&self, state: &State) -> Result<Reasoned<Plan>, ReasonError> {
        Ok(free(planner::plan(state)))
    }

    async fn work(&self, state: &State, step: &Step, turn: usize) -> Result<Reasoned<StepMove>, ReasonError> {
        Ok(free(planner::work(state, step, turn)))
    }

    async fn replan(&self, state: &State) -> Result<Reasoned<Decision>, ReasonError> {
        Ok(free(planner::replan(state)))
    }

    async fn synthesize(&self, state: &State, _pace: Pace) -> Result<Reasoned<Conclusion>, ReasonError> {
        Ok(free(conclude::conclude(state, &self.zone)))
    }
}
