//! An incident folder: an alert and the world around it, so that it can be diagnosed offline.
//!
//! In: a folder with any of `incident.toml`, `alert.json`, `metrics/`, `logs/`, `status/`, `changes.jsonl` (at least one
//! of the first two). Out: its clock, zone and topology, and a source for each kind of evidence that is there. What is
//! not there has no source; what could not be read is a warning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::kubernetes::FileStatus;
use super::kubernetes::files::read_folder;
use super::kubernetes::inventory::Inventory;
use super::logfile::FileLogs;
use super::openmetrics::OpenMetricsFiles;
use super::{LogSource, MetricSource, StatusSource};
use crate::domain::Topology;

mod changes;
mod clock;
mod expected;
mod settings;

pub use expected::Expected;

/// Names of the sources, as the source strip and the evidence show them.
pub const METRICS_NAME: &str = "files/metrics";
pub const LOGS_NAME: &str = "files/logs";
pub const STATUS_NAME: &str = "files/status";
pub const CHANGES_NAME: &str = "files/changes";

/// Endings of metric files, before `.gz` or `.zst`.
const METRIC_ENDINGS: [&str; 3] = [".om", ".prom", ".openmetrics"];

/// A folder that is no incident.
#[derive(Debug, thiserror::Error)]
pub enum IncidentError {
    #[error("{}: there is no such folder: expected an incident folder (incident.toml or alert.json in it)", .0.display())]
    NotAFolder(PathBuf),
    #[error("{}: neither incident.toml nor alert.json is in it: expected an incident folder", .0.display())]
    Empty(PathBuf),
    #[error("cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: std::io::Error },
    /// A mistake in `incident.toml` or `expected.toml`.
    #[error("{}: line {line}: {message}", path.display())]
    Settings { path: PathBuf, line: usize, message: String },
}

/// An opened incident.
pub struct Incident {
    pub folder: PathBuf,
    /// From `incident.toml`, else the folder's name.
    pub name: String,
    /// The clock of the incident.
    pub now: Timestamp,
    /// The zone that people of the incident live in.
    pub zone: TimeZone,
    pub topology: Topology,
    /// Where its alert is; the file may be absent.
    pub alert_path: PathBuf,
    pub metrics: Option<Arc<dyn MetricSource>>,
    pub logs: Option<Arc<dyn LogSource>>,
    /// Workload status, and the changes beside it.
    pub status: Option<Arc<dyn StatusSource>>,
    /// Changes alone, when there is no workload status.
    pub changes: Option<Arc<dyn StatusSource>>,
    /// What could not be read, and what was assumed.
    pub warnings: Vec<String>,
}

impl Incident {
    /// Opens a folder. Reads metrics and status into memory on the calling thread; logs are read when asked for.
    pub fn open(folder: &Path) -> Result<Self, IncidentError> {
        if !folder.is_dir() {
            return Err(IncidentError::NotAFolder(folder.to_path_buf()));
        }
        let settings_path = folder.join("incident.toml");
        let alert_path = folder.join("alert.json");
        if !settings_path.is_file() && !alert_path.is_file() {
            return Err(IncidentError::Empty(folder.to_path_buf()));
        }
        let settings = settings::read(&settings_path)?;
        let zone = settings.zone.unwrap_or_else(TimeZone::system);
        let mut warnings = settings.notes;
        let status = Status::read(folder, &zone, &mut warnings);
        let metrics = metric_files(&folder.join("metrics"), &mut warnings);
        let now = match settings.now {
            Some(now) => now,
            None => {
                let latest = status.files.last().max(clock::last_sample(&metrics));
                clock::judge(&alert_path, latest, &mut warnings)
            }
        };
        let (status, changes) = status.into_sources();
        Ok(Self {
            name: settings.name.unwrap_or_else(|| folder_name(folder)),
            now,
            topology: settings.topology,
            alert_path,
            metrics: open_metrics(&metrics, &mut warnings),
            logs: open_logs(folder.join("logs"), now, &zone),
            status,
            changes,
            zone,
            folder: folder.to_path_buf(),
            warnings,
        })
    }
}

fn folder_name(folder: &Path) -> String {
    // `.` has no name of its own.
    let full = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    full.file_name().map_or_else(|| "incident".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// A source of status or changes, where there is one.
type Part = Option<Arc<dyn StatusSource>>;

/// What `status/` and `changes.jsonl` hold together.
struct Status {
    files: FileStatus,
    has_status: bool,
    has_changes: bool,
}

impl Status {
    fn read(folder: &Path, zone: &TimeZone, warnings: &mut Vec<String>) -> Self {
        let changes = changes::read(&folder.join("changes.jsonl"), zone, warnings);
        let status_folder = folder.join("status");
        let inventory = if status_folder.is_dir() { read_folder(&status_folder) } else { Inventory::default() };
        warnings.extend(inventory.notes.iter().map(|note| format!("status/{note}")));
        // A folder in which every answer was refused is a source, too: it says so when asked.
        let has_status = !inventory.is_empty() || !inventory.notes.is_empty();
        let has_changes = changes.is_some();
        let name = if has_status { STATUS_NAME } else { CHANGES_NAME };
        Self { files: FileStatus::new(name, inventory, changes.unwrap_or_default()), has_status, has_changes }
    }

    /// The source of status, and the source of changes alone: at most one of them is there.
    fn into_sources(self) -> (Part, Part) {
        let source: Arc<dyn StatusSource> = Arc::new(self.files);
        match (self.has_status, self.has_changes) {
            (true, _) => (Some(source), None),
            (false, true) => (None, Some(source)),
            (false, false) => (None, None),
        }
    }
}

/// The logs of a folder; none when there is no file in it.
fn open_logs(folder: PathBuf, now: Timestamp, zone: &TimeZone) -> Option<Arc<dyn LogSource>> {
    let is_file = |entry: ignore::DirEntry| entry.file_type().is_some_and(|kind| kind.is_file());
    let mut walk = ignore::WalkBuilder::new(&folder).standard_filters(false).follow_links(true).build();
    // What cannot be listed is a reason to have the source: it says so when asked.
    let has_logs = folder.is_dir() && walk.any(|entry| entry.map_or(true, is_file));
    has_logs.then(|| -> Arc<dyn LogSource> { Arc::new(FileLogs::new(LOGS_NAME, vec![folder], now, zone.clone())) })
}

/// The metric files of a folder by name; anything else in it is named.
fn metric_files(folder: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let mut paths = files_in(folder, warnings);
    paths.retain(|path| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(&name);
        let is_metrics = METRIC_ENDINGS.iter().any(|ending| plain.ends_with(ending));
        if !is_metrics {
            warnings.push(format!("metrics/{name}: not read: expected OpenMetrics text in a file named *.om"));
        }
        is_metrics
    });
    paths
}

fn open_metrics(paths: &[PathBuf], warnings: &mut Vec<String>) -> Option<Arc<dyn MetricSource>> {
    if paths.is_empty() {
        return None;
    }
    match OpenMetricsFiles::load(METRICS_NAME, paths) {
        Ok(metrics) => {
            warnings.extend(metrics.warnings().iter().map(|warning| format!("metrics: {warning}")));
            Some(Arc::new(metrics))
        }
        Err(error) => {
            warnings.push(format!("metrics: {error}"));
            None
        }
    }
}

/// The visible files of a folder by name; none when it is not there.
fn files_in(folder: &Path, warnings: &mut Vec<String>) -> Vec<PathBuf> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            warnings.push(format!("cannot read {}: {error}", folder.display()));
            return Vec::new();
        }
    };
    let mut paths: Vec<_> = entries.filter_map(|entry| entry.ok()).map(|entry| entry.path()).collect();
    paths.retain(|path| {
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        !is_hidden && path.is_file()
    });
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;
    use crate::domain::Window;
    use crate::source::StatusQuery;

    fn write(folder: &Path, name: &str, text: &str) {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn error(folder: &Path) -> String {
        Incident::open(folder).err().unwrap().to_string()
    }

    #[test]
    fn a_folder_that_is_no_incident_is_named() {
        let folder = tempfile::tempdir().unwrap();
        assert!(error(&folder.path().join("nosuch")).contains("there is no such folder"));
        assert!(error(folder.path()).contains("neither incident.toml nor alert.json is in it"));
        write(folder.path(), "incident.toml", "name = 1");
        assert!(error(folder.path()).ends_with("incident.toml: line 1: `name`: expected a text, found integer"));
    }

    #[test]
    fn absent_parts_have_no_source() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "incident.toml", "now = \"2026-03-04T14:45:00+08:00\"");
        std::fs::create_dir_all(folder.path().join("logs/a")).unwrap();
        std::fs::create_dir_all(folder.path().join("status")).unwrap();
        let incident = Incident::open(folder.path()).unwrap();
        let absent = (
            incident.metrics.is_none(),
            incident.logs.is_none(),
            incident.status.is_none(),
            incident.changes.is_none(),
        );
        assert_eq!(absent, (true, true, true, true));
        assert_eq!(incident.now, "2026-03-04T06:45:00Z".parse().unwrap());
        assert_eq!(incident.warnings, Vec::<String>::new());
    }

    #[tokio::test]
    async fn every_part_that_is_there_becomes_a_source() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "alert.json", "{\"alertname\": \"A\", \"startsAt\": \"2026-03-04T06:30:00Z\"}");
        write(folder.path(), "metrics/a.om", "# TYPE up gauge\nup 1 1772605800\n# EOF\n");
        write(folder.path(), "metrics/readme.txt", "text");
        write(folder.path(), "logs/a/a.log", "2026-03-04T06:30:00Z ERROR x\n");
        write(folder.path(), "status/pods.json", "{\"kind\": \"PodList\", \"items\": []}");
        write(folder.path(), "changes.jsonl", "{\"time\": \"2026-03-04T06:00:00Z\", \"kind\": \"flag\"}\nx\n");
        let incident = Incident::open(folder.path()).unwrap();
        assert_eq!(incident.metrics.as_ref().map(|source| source.name()), Some(METRICS_NAME));
        assert_eq!(incident.logs.as_ref().map(|source| source.name()), Some(LOGS_NAME));
        assert!(incident.changes.is_none());
        let status = incident.status.as_ref().unwrap();
        assert_eq!(status.name(), STATUS_NAME);
        let window = Window::ending_at(incident.now, SignedDuration::from_hours(1));
        assert_eq!(status.changes(window, None).await.unwrap().len(), 1);
        let query = StatusQuery { service: None, namespace: None, window };
        assert_eq!(status.status(&query).await.unwrap().pods, []);
        assert_eq!(
            incident.warnings,
            [
                "changes.jsonl: line 2: expected value at line 1 column 1; expected {\"time\", \"service\", \"kind\", \"summary\"}",
                "metrics/readme.txt: not read: expected OpenMetrics text in a file named *.om",
                "the incident has no `now`: its clock is set to 2026-03-04T06:30:00Z, the time of its alert",
            ]
        );
    }

    #[test]
    fn changes_alone_are_a_source_of_changes() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "incident.toml", "");
        write(folder.path(), "changes.jsonl", "");
        let incident = Incident::open(folder.path()).unwrap();
        assert_eq!(incident.changes.map(|source| source.name().to_owned()), Some(CHANGES_NAME.to_owned()));
        assert!(incident.status.is_none());
    }
}
