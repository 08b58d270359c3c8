//! A run that is steered while it goes: calls broken off, steps left out, facts added.

use std::time::Duration;

use oncall::agent;
use oncall::control::{self, Control};
use oncall::domain::{Diagnosis, FailureKind, Finding, RunStatus, StepState};
use oncall::event::{CallResult, Event, EventKind};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::agent::{BOUNDS, Behaviour, ENGLISH, EVIDENCE_TOOLS, all, prepared, registry};

/// Runs while somebody answers events with wishes; the diagnosis, the events, and how long it took.
async fn steered(
    tools: oncall::tool::registry::Registry,
    mut wish: impl FnMut(&Event) -> Option<Control>,
) -> (Diagnosis, Vec<Event>, Duration) {
    let (task, crew, mut received) = prepared(tools, ENGLISH, BOUNDS, CancellationToken::new());
    let (sink, stream) = control::channel();
    let started = Instant::now();
    let watching = async {
        let mut seen = Vec::new();
        while let Some(event) = received.recv().await {
            if let Some(control) = wish(&event) {
                sink.send(control);
            }
            seen.push(event);
        }
        seen
    };
    let (diagnosis, seen) = tokio::join!(agent::run_steered(task, crew, stream), watching);
    (diagnosis, seen, started.elapsed())
}

#[tokio::test(start_paused = true)]
async fn calls_that_hang_are_cancelled_one_by_one_and_the_run_comes_to_its_end() {
    let tools = EVIDENCE_TOOLS.map(|name| match name {
        "search_logs" => (name, Behaviour::Hangs),
        _ => (name, Behaviour::FindsNothing),
    });
    let (diagnosis, events, took) = steered(registry(&tools), |event| match &event.kind {
        EventKind::CallStarted { call_id, call, .. } if call.tool == "search_logs" => {
            Some(Control::CancelCall { call_id: *call_id })
        }
        _ => None,
    })
    .await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(diagnosis.status, RunStatus::Complete);
    let cancelled = events.iter().filter(|event| {
        let kind = FailureKind::Cancelled;
        matches!(&event.kind, EventKind::CallEnded { result: CallResult::Failure { kind: k, .. }, .. } if *k == kind)
    });
    let told =
        events.iter().filter(|event| matches!(event.kind, EventKind::Steered { control: Control::CancelCall { .. } }));
    assert!(cancelled.count() > 0);
    assert!(told.count() > 0);
}

#[tokio::test(start_paused = true)]
async fn a_fact_becomes_evidence_before_the_plan_is_looked_at_again() {
    let mut is_told = false;
    // Tools that take their time: a run without a pause would be over before anybody could say a word.
    let (diagnosis, events, _) = steered(all(Behaviour::FindsNothingAfter(1)), |event| {
        let begins = matches!(event.kind, EventKind::CallStarted { .. }) && !std::mem::replace(&mut is_told, true);
        begins.then(|| Control::AddFact { text: "the deploy of cart was rolled back at 06:40".into() })
    })
    .await;
    let fact = diagnosis.evidence.iter().find(|one| one.source == "engineer").expect("the fact is evidence");
    assert_eq!(fact.summary, "the engineer says: the deploy of cart was rolled back at 06:40");
    assert!(matches!(&fact.data, Finding::Change(change) if change.time.to_string() == "2026-03-04T06:40:00Z"));
    let found = events
        .iter()
        .position(|event| matches!(&event.kind, EventKind::EvidenceFound { evidence } if evidence.id == fact.id));
    let replans =
        events.iter().position(|event| matches!(&event.kind, EventKind::NodeStarted { node } if node == "replan"));
    assert!(found.unwrap() < replans.unwrap(), "{found:?} {replans:?}");
    assert!(events.iter().any(|event| matches!(&event.kind, EventKind::HypothesesRanked { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_step_is_broken_off_and_a_step_to_come_is_left_out() {
    let mut last = 0;
    // The first step with a call of its own: those before it are answered by what was asked already.
    let mut broken_off = None;
    let mut ended = None;
    let begun = Instant::now();
    let (diagnosis, events, _) = steered(all(Behaviour::FindsNothingAfter(5)), |event| match &event.kind {
        EventKind::PlanMade { plan } => {
            last = plan.steps.last().map_or(0, |step| step.id);
            Some(Control::SkipStep { step: last })
        }
        EventKind::CallStarted { step: Some(step), .. } if broken_off.is_none() => {
            broken_off = Some(*step);
            Some(Control::SkipStep { step: *step })
        }
        EventKind::StepEnded { step, conclusion } if broken_off == Some(*step) => {
            ended = Some((conclusion.clone(), begun.elapsed()));
            None
        }
        _ => None,
    })
    .await;
    let (conclusion, at) = ended.expect("the step ended");
    assert_eq!(conclusion, "skipped by the engineer");
    // The first round takes five seconds, the step that is broken off none.
    assert!(at < Duration::from_secs(7), "{at:?}");
    let state = |id: u32| diagnosis.plan.steps.iter().find(|step| step.id == id).map(|step| step.state);
    assert!(last > 1, "the plan has several steps: {:?}", diagnosis.plan);
    assert_eq!([state(broken_off.unwrap()), state(last)], [Some(StepState::Skipped); 2]);
    assert!(!events.iter().any(|event| matches!(event.kind, EventKind::StepStarted { step, .. } if step == last)));
}

#[tokio::test(start_paused = true)]
async fn stop_ends_with_the_best_answer_so_far() {
    let (diagnosis, _, took) = steered(all(Behaviour::Hangs), |event| {
        matches!(event.kind, EventKind::CallStarted { .. }).then_some(Control::Stop)
    })
    .await;
    assert_eq!(diagnosis.status, RunStatus::Cancelled);
    assert!(took < Duration::from_secs(3), "{took:?}");
}
