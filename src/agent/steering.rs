//! Steering a run while it goes: the wishes of a front end are taken up here, and the nodes find them at their next turn.
//!
//! In: a [`ControlStream`]. Out: calls and steps broken off at once; facts and judgements, which the graph merges into
//! the state in its one place, between nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use super::Crew;
use crate::control::{Control, ControlStream};
use crate::domain::text::clean_line;
use crate::domain::{HypothesisKey, Judged};
use crate::event::EventKind;

const FACT_CHARS: usize = 1000;

/// What was wished and is not merged yet.
#[derive(Debug, Default)]
pub struct Steering {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Whether a front end follows that can steer.
    watched: bool,
    facts: Vec<String>,
    skipped: BTreeSet<u32>,
    /// What breaks off the steps under way.
    under_way: BTreeMap<u32, CancellationToken>,
    judged: Judged,
}

/// Takes up wishes, in their order, for as long as the caller polls it; never ends.
pub async fn follow(mut controls: ControlStream, crew: Crew) -> std::convert::Infallible {
    crew.steering.inner().watched = true;
    while let Some(control) = controls.next().await {
        crew.steering.take_up(control, &crew);
    }
    std::future::pending().await
}

impl Steering {
    fn take_up(&self, control: Control, crew: &Crew) {
        match &control {
            Control::Stop => crew.cancel.cancel(),
            Control::CancelCall { call_id } => {
                if !crew.invoker.cancel_call(*call_id) {
                    return;
                }
            }
            Control::SkipStep { step } => {
                let mut inner = self.inner();
                inner.skipped.insert(*step);
                if let Some(token) = inner.under_way.get(step) {
                    token.cancel();
                }
            }
            Control::PinHypothesis { hypothesis } => self.judge(hypothesis, |judged| &mut judged.pinned),
            Control::DismissHypothesis { hypothesis } => self.judge(hypothesis, |judged| &mut judged.dismissed),
            Control::ReleaseHypothesis { hypothesis } => self.release(hypothesis),
            Control::AddFact { text } => {
                let text = clean_line(text.trim(), FACT_CHARS);
                if text.is_empty() {
                    return;
                }
                self.inner().facts.push(text);
            }
            Control::AnswerApproval { request, approval } => {
                // The approval has an event of its own.
                return crew.invoker.answer_approval(*request, *approval);
            }
        }
        crew.events.emit(EventKind::Steered { control });
    }

    fn judge(&self, hypothesis: &HypothesisKey, list: impl Fn(&mut Judged) -> &mut Vec<HypothesisKey>) {
        self.release(hypothesis);
        list(&mut self.inner().judged).push(hypothesis.clone());
    }

    fn release(&self, hypothesis: &HypothesisKey) {
        let judged = &mut self.inner().judged;
        judged.pinned.retain(|one| one != hypothesis);
        judged.dismissed.retain(|one| one != hypothesis);
    }

    pub(super) fn is_watched(&self) -> bool {
        self.inner().watched
    }

    /// What breaks off a step that begins; broken off already when the step is to be skipped.
    pub(super) fn begin_step(&self, step: u32, cancel: &CancellationToken) -> CancellationToken {
        let token = cancel.child_token();
        let mut inner = self.inner();
        if inner.skipped.contains(&step) {
            token.cancel();
        }
        inner.under_way.insert(step, token.clone());
        token
    }

    /// Whether the step that has ended was broken off by a wish.
    pub(super) fn end_step(&self, step: u32) -> bool {
        let mut inner = self.inner();
        inner.under_way.remove(&step);
        inner.skipped.contains(&step)
    }

    pub(super) fn skipped(&self) -> BTreeSet<u32> {
        self.inner().skipped.clone()
    }

    pub(super) fn take_facts(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().facts)
    }

    pub(super) fn judged(&self) -> Judged {
        self.inner().judged.clone()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        // Nothing panics while it is held; were it so, the lists would still be whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
