//! The built-in tools that a set of sources allows.
//!
//! In: [`Sources`], the clock of the investigation and the topology. Out: a [`Registry`] with a tool for each question
//! that can be answered. A kind of source that is not there has no tool, and [`Sources::absent`] says so, so that a
//! report can.

use std::sync::Arc;

use super::Tool;
use super::arguments::ToolClock;
use super::changes::RecentChanges;
use super::logs::SearchLogs;
use super::metrics::{DiscoverMetrics, QueryMetrics};
use super::registry::Registry;
use super::status::WorkloadStatus;
use super::time::CurrentTime;
use crate::domain::Topology;
use crate::source::incident::Incident;
use crate::source::{LogSource, MetricSource, StatusSource};

/// What can be asked.
#[derive(Clone, Default)]
pub struct Sources {
    pub metrics: Vec<Arc<dyn MetricSource>>,
    pub logs: Vec<Arc<dyn LogSource>>,
    /// Workload status, and the changes beside it.
    pub status: Vec<Arc<dyn StatusSource>>,
    /// Sources that know changes only.
    pub changes: Vec<Arc<dyn StatusSource>>,
}

/// A kind of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    Metrics,
    Logs,
    Status,
    Changes,
}

impl SourceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Status => "status",
            Self::Changes => "changes",
        }
    }
}

impl Sources {
    /// The kinds of which there is no source.
    pub fn absent(&self) -> Vec<SourceKind> {
        let kinds = [
            (SourceKind::Metrics, self.metrics.is_empty()),
            (SourceKind::Logs, self.logs.is_empty()),
            (SourceKind::Status, self.status.is_empty()),
            (SourceKind::Changes, self.status.is_empty() && self.changes.is_empty()),
        ];
        kinds.into_iter().filter(|(_, is_absent)| *is_absent).map(|(kind, _)| kind).collect()
    }
}

impl From<&Incident> for Sources {
    fn from(incident: &Incident) -> Self {
        Self {
            metrics: incident.metrics.iter().cloned().collect(),
            logs: incident.logs.iter().cloned().collect(),
            status: incident.status.iter().cloned().collect(),
            changes: incident.changes.iter().cloned().collect(),
        }
    }
}

/// A tool for each question that the sources can answer.
pub fn builtin_tools(sources: Sources, clock: ToolClock, topology: Topology) -> Registry {
    let mut tools: Vec<Arc<dyn Tool>> = vec![Arc::new(CurrentTime::new(clock.clone()))];
    if !sources.metrics.is_empty() {
        tools.push(Arc::new(QueryMetrics::new(sources.metrics.clone(), clock.clone())));
        tools.push(Arc::new(DiscoverMetrics::new(sources.metrics, clock.clone(), topology)));
    }
    if !sources.logs.is_empty() {
        tools.push(Arc::new(SearchLogs::new(sources.logs, clock.clone())));
    }
    let know_changes: Vec<_> = sources.status.iter().chain(&sources.changes).cloned().collect();
    if !know_changes.is_empty() {
        tools.push(Arc::new(RecentChanges::new(know_changes, clock.clone())));
    }
    if !sources.status.is_empty() {
        tools.push(Arc::new(WorkloadStatus::new(sources.status, clock)));
    }
    Registry::new(tools)
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use jiff::{SignedDuration, Timestamp};

    use super::*;
    use crate::domain::Window;
    use crate::source::kubernetes::FileStatus;
    use crate::source::kubernetes::inventory::Inventory;

    fn names(sources: Sources) -> Vec<String> {
        let now = Timestamp::UNIX_EPOCH;
        let clock =
            ToolClock { now, window: Window::ending_at(now, SignedDuration::from_hours(1)), zone: TimeZone::UTC };
        builtin_tools(sources, clock, Topology::new()).specs().into_iter().map(|spec| spec.name).collect()
    }

    #[test]
    fn without_sources_there_is_only_the_time_and_all_is_absent() {
        let none = Sources::default();
        use SourceKind::{Changes, Logs, Metrics, Status};
        assert_eq!(none.absent(), [Metrics, Logs, Status, Changes]);
        assert_eq!(names(none), ["get_current_time"]);
    }

    #[test]
    fn a_source_brings_the_tools_that_it_can_answer() {
        let source = || -> Arc<dyn StatusSource> { Arc::new(FileStatus::new("s", Inventory::default(), Vec::new())) };
        let status = Sources { status: vec![source()], ..Sources::default() };
        assert_eq!(status.absent(), [SourceKind::Metrics, SourceKind::Logs]);
        assert_eq!(names(status), ["get_current_time", "recent_changes", "workload_status"]);
        let changes = Sources { changes: vec![source()], ..Sources::default() };
        assert_eq!(changes.absent(), [SourceKind::Metrics, SourceKind::Logs, SourceKind::Status]);
        assert_eq!(names(changes), ["get_current_time", "recent_changes"]);
    }
}
