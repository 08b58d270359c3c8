//! What goes wrong with a model in one run: when it is given up, and what the reader is told.

use std::sync::{Mutex, PoisonError};

use crate::domain::Lang;
use crate::domain::text::clean_line;
use crate::event::{EventKind, EventSink};
use crate::llm::ModelError;
use crate::reason::Pace;

/// Failures in a row after which a model is not asked again.
const GIVE_UP_AFTER: u32 = 3;
const QUOTED_CHARS: usize = 300;

/// The failures of a run.
pub(super) struct Trouble {
    events: EventSink,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    in_a_row: u32,
    given_up: bool,
    /// The last failure, in words.
    last: Option<String>,
    /// Whether a budget of the run is used up.
    over_budget: bool,
    /// Why the rules drew the conclusion, if they did.
    by_rules: Option<Pace>,
}

impl Trouble {
    pub fn new(events: EventSink) -> Self {
        Self { events, seen: Mutex::default() }
    }

    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does what needs the model, unless it was given up. `None`: it failed, and the rules are to do it.
    pub async fn guard<T>(&self, work: impl Future<Output = Result<T, ModelError>>) -> Option<T> {
        if self.seen().given_up {
            return None;
        }
        match work.await {
            Ok(value) => {
                self.seen().in_a_row = 0;
                Some(value)
            }
            Err(error) => {
                self.failed(&error);
                None
            }
        }
    }

    fn failed(&self, error: &ModelError) {
        let message = clean_line(&error.to_string(), QUOTED_CHARS);
        {
            let mut seen = self.seen();
            seen.in_a_row += 1;
            seen.given_up = error.is_final() || seen.in_a_row >= GIVE_UP_AFTER;
            seen.over_budget |= matches!(error, ModelError::Budget(_));
            seen.last = Some(message.clone());
        }
        // An interruption is the user's wish and is told elsewhere.
        if *error != ModelError::Cancelled {
            self.events.emit(EventKind::Warning { message });
        }
    }

    /// The rules conclude: for lack of time, or because the model failed.
    pub fn conclude_by_rules(&self, pace: Pace) {
        self.seen().by_rules = Some(pace);
    }

    pub fn rules_concluded(&self) -> bool {
        self.seen().by_rules.is_some()
    }

    /// Why the run is incomplete, when a budget ended the model's part.
    pub fn budget(&self, lang: Lang) -> Option<String> {
        let over = self.seen().over_budget;
        over.then(|| lang.pick("the model's budget is used up", "模型预算已用完").to_string())
    }

    /// What the diagnosis says of it.
    pub fn note(&self, lang: Lang) -> Option<String> {
        let seen = self.seen();
        let last = seen.last.as_deref();
        match (seen.by_rules, last) {
            (Some(Pace::Thorough), Some(last)) => Some(lang.pick(
                format!("the model failed, and the fixed rules concluded from the evidence gathered: {last}"),
                format!("模型调用失败，由内置规则根据已采集的证据得出结论：{last}"),
            )),
            (Some(_), _) => Some(lang.pick(
                "the run ended early, and the fixed rules concluded instead of the model".to_string(),
                "运行提前结束，由内置规则代替模型得出结论".to_string(),
            )),
            (None, Some(last)) => Some(lang.pick(
                format!("the model failed on the way, and the fixed rules stood in for it there: {last}"),
                format!("模型在中途调用失败，由内置规则代为完成：{last}"),
            )),
            (None, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_model_is_given_up_after_three_failures_in_a_row_or_one_that_lasts() {
        let trouble = Trouble::new(EventSink::channel().0);
        let fail = || async { Err::<u8, _>(ModelError::Garbage("x".into())) };
        for _ in 0..2 {
            assert_eq!(trouble.guard(fail()).await, None);
        }
        assert_eq!(trouble.guard(async { Ok(1) }).await, Some(1));
        for _ in 0..3 {
            assert_eq!(trouble.guard(fail()).await, None);
        }
        assert_eq!(trouble.guard(async { Ok(1) }).await, None);

        let trouble = Trouble::new(EventSink::channel().0);
        assert_eq!(trouble.guard(async { Err::<u8, _>(ModelError::Unauthorized("no key".into())) }).await, None);
        assert_eq!(trouble.guard(async { Ok(1) }).await, None);
        assert_eq!(
            trouble.note(Lang::En).unwrap(),
            "the model failed on the way, and the fixed rules stood in for it there: no key"
        );
        trouble.conclude_by_rules(Pace::Thorough);
        assert_eq!(trouble.note(Lang::Zh).unwrap(), "模型调用失败，由内置规则根据已采集的证据得出结论：no key");
    }
}
