//! One diagnosis of one incident, with what it took.

use std::time::Instant;

use tokio_util::sync::CancellationToken;

use super::Case;
use super::score::{Scored, Spent};
use crate::agent::{self, Task};
use crate::command::models::{self, BudgetArgs};
use crate::command::{Context, bad_input, diagnose, diagnosing, world};
use crate::event::{EventKind, EventSink};
use crate::source::incident::Incident;
use crate::tool::invoker::Fallback;

/// # Errors
/// An incident or an alert that cannot be read, a model that cannot be used.
pub(super) async fn diagnose(case: &Case, context: &Context, budget: &BudgetArgs) -> anyhow::Result<Scored> {
    let incident = Incident::open(&case.folder).map_err(bad_input)?;
    let batch = crate::command::alert::read(&incident.alert_path.display().to_string()).await?;
    let alerts = diagnose::choose(&batch, None, context)?;
    let (now, zone) = (incident.now, incident.zone.clone());
    let mut facts = crate::reason::facts::analyze(&alerts, now);
    facts.lang = context.lang.unwrap_or(facts.lang);
    let world = world::build(Some(&incident), None, &facts, &zone, facts.lang, context).await;
    let (events, mut received) = EventSink::channel();
    let cancel = CancellationToken::new();
    let around = models::Surroundings {
        events: &events,
        cancel: &cancel,
        zone: &zone,
        incident: Some(&case.folder),
        budget,
        recorder: None,
    };
    let reasoner = models::reasoner_or_rules(context, &around)?;
    let crew = diagnosing::crew(reasoner, world.registry, Fallback::Run, (events, cancel), budget, None, context);
    let task = Task {
        session_id: uuid::Uuid::now_v7().to_string(),
        alerts,
        facts,
        zone: zone.clone(),
        // What a machine remembers of earlier runs must not change what it is measured by.
        history: None,
        topology: world.topology,
        absent_sources: world.absent,
    };
    let started = Instant::now();
    let run = tokio::spawn(agent::run(task, crew));
    let mut calls = 0;
    while let Some(event) = received.recv().await {
        calls += usize::from(matches!(event.kind, EventKind::CallStarted { .. }));
    }
    let diagnosis = run.await?;
    let spent = Spent { calls, time: started.elapsed(), usage: diagnosis.usage };
    Ok(Scored::of(&case.name, &case.expected, &diagnosis, &zone, spent))
}
