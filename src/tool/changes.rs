//! `recent_changes`: what somebody or something changed: written-down changes and rollouts.
//!
//! In: a service or nothing, and a time. Out: changes and rollouts, newest first.

use std::cmp::Reverse;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{TimeArgument, ToolClock, input_schema, outcome, parse_arguments};
use super::sources::Roll;
use super::status::ask;
use crate::domain::{Failure, Finding, Outcome, Output, Served, ToolSpec, Window};
use crate::source::{StatusQuery, StatusSource};

pub const NAME: &str = "recent_changes";

/// A cause may be some hours older than its symptom, so that changes are looked for in a longer time than evidence.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24);
const MAX_CHANGES: usize = 30;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// Only changes of this service, and those of no service in particular.
    service: Option<String>,
    /// From when on: RFC 3339, or a distance from now such as -6h. Default: 24 hours before now.
    start: Option<TimeArgument>,
    /// Until when. Default: now.
    end: Option<TimeArgument>,
}

/// The tool.
pub struct RecentChanges {
    spec: ToolSpec,
    sources: Vec<Arc<dyn StatusSource>>,
    clock: ToolClock,
}

impl RecentChanges {
    pub fn new(sources: Vec<Arc<dyn StatusSource>>, clock: ToolClock) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: "Deployments, configuration changes, scalings and flags of the last 24 hours (or the given \
                          time), newest first, with old and new images where a rollout shows them."
                .to_owned(),
            input_schema: input_schema::<Arguments>(),
            server: "builtin".to_owned(),
            read_only: true,
        };
        Self { spec, sources, clock }
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let mut clock = self.clock.clone();
        clock.window = Window::ending_at(clock.now, LOOK_BACK);
        let window = clock.window_of(arguments.start.as_ref(), arguments.end.as_ref())?;
        let service = arguments.service.as_deref().map(str::trim).filter(|service| !service.is_empty());
        let query = StatusQuery { service: service.map(str::to_owned), namespace: None, window };
        let asked = ask(&self.sources, &query).await?;
        let mut changes = Roll::default();
        let mut dated: Vec<(Option<Timestamp>, Finding)> = Vec::new();
        for source in &self.sources {
            let found = changes.take(source.name(), source.changes(window, service).await).into_iter().flatten();
            dated.extend(found.map(|change| (Some(change.time), Finding::Change(change))));
        }
        dated.extend(asked.answer.rollouts.into_iter().map(|rollout| (rollout.at, Finding::Rollout(rollout))));
        dated.sort_by_key(|(at, _)| Reverse(*at));
        let mut roll = asked.roll.merged(changes);
        let asked = roll.strip();
        let (mut notes, source) = (roll.notes, roll.names.join(", "));
        let truncated = dated.len() > MAX_CHANGES;
        if truncated {
            notes.push(format!("{MAX_CHANGES} of {} changes are shown", dated.len()));
        }
        let mut findings: Vec<_> = dated.into_iter().take(MAX_CHANGES).map(|(_, finding)| finding).collect();
        if findings.is_empty() {
            let whose = service.map(|service| format!(" of {service}")).unwrap_or_default();
            findings.push(Finding::Nothing { what: format!("change or rollout{whose}") });
        }
        let (window, served) = (Some(window), Served::Live);
        Ok(Output { source, window, findings, notes, truncated, served, asked, retrieval: None })
    }
}

#[async_trait]
impl Tool for RecentChanges {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments).await)
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use serde_json::json;

    use super::*;
    use crate::domain::{Change, ChangeKind};
    use crate::source::kubernetes::FileStatus;
    use crate::source::kubernetes::inventory::Inventory;

    fn change(time: &str, service: Option<&str>) -> Change {
        Change {
            time: time.parse().unwrap(),
            service: service.map(str::to_owned),
            kind: ChangeKind::Deploy,
            summary: time.to_owned(),
        }
    }

    async fn findings(arguments: Value) -> Vec<Finding> {
        let mut inventory = Inventory::default();
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kubernetes/replicasets.json");
        inventory.read("replicasets.json", std::fs::File::open(path).unwrap());
        let changes = vec![
            change("2026-11-30T09:29:00Z", Some("user-service")),
            change("2026-11-30T09:00:00Z", Some("order-service")),
            change("2026-11-30T08:00:00Z", None),
            change("2026-11-28T08:00:00Z", Some("order-service")),
        ];
        let now = "2026-11-30T09:30:00Z".parse().unwrap();
        let clock =
            ToolClock { now, window: Window::ending_at(now, SignedDuration::from_hours(1)), zone: TimeZone::UTC };
        let source = Arc::new(FileStatus::new("files/status", inventory, changes));
        match RecentChanges::new(vec![source], clock).call(arguments, &CancellationToken::new()).await {
            Outcome::Output(output) => output.findings,
            Outcome::Failure(failure) => panic!("{failure:?}"),
        }
    }

    fn times(findings: &[Finding]) -> Vec<String> {
        let time = |finding: &Finding| match finding {
            Finding::Change(change) => change.time.to_string(),
            Finding::Rollout(rollout) => format!("rollout {}", rollout.at.unwrap()),
            other => panic!("{other:?}"),
        };
        findings.iter().map(time).collect()
    }

    #[tokio::test]
    async fn changes_and_rollouts_of_a_service_come_newest_first() {
        assert_eq!(
            times(&findings(json!({"service": "order-service"})).await),
            [
                "rollout 2026-11-30T09:26:25Z",
                "rollout 2026-11-30T09:26:23Z",
                "2026-11-30T09:00:00Z",
                "2026-11-30T08:00:00Z"
            ]
        );
    }

    #[tokio::test]
    async fn a_time_can_be_asked_for_and_nothing_is_a_finding() {
        assert_eq!(
            times(&findings(json!({"start": "2026-11-28T00:00:00Z", "end": "2026-11-29T00:00:00Z"})).await),
            ["2026-11-28T08:00:00Z"]
        );
        assert_eq!(
            findings(json!({"service": "x", "start": "-5m"})).await,
            [Finding::Nothing { what: "change or rollout of x".into() }]
        );
    }
}
