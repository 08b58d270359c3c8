//! Node `synthesize`: hypotheses, ranked, from whatever evidence there is.

use super::Crew;
use crate::domain::{State, Usage};
use crate::event::EventKind;
use crate::reason::{Conclusion, Pace, Reasoned};

pub(super) async fn run(state: &State, crew: &Crew, pace: Pace) -> Reasoned<Conclusion> {
    match crew.reasoner.synthesize(state, pace).await {
        Ok(conclusion) => conclusion,
        Err(error) => {
            crew.events.emit(EventKind::Warning { message: error.to_string() });
            let conclusion = Conclusion {
                summary: error.to_string(),
                root_cause: None,
                hypotheses: Vec::new(),
                next_steps: Vec::new(),
                unchecked: Vec::new(),
            };
            Reasoned { value: conclusion, usage: Usage::default() }
        }
    }
}
