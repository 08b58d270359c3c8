//! The clock of an incident that does not say its `now`: the latest time that its parts speak of.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

/// Keys of an alert payload under which a time of the alert stands; a rule's own times are not among them.
const ALERT_TIME_KEYS: [&str; 8] =
    ["startsat", "starts_at", "activeat", "active_at", "firedat", "created_at", "createdat", "occurred_at"];
/// An alert payload is larger than this only by mistake.
const MAX_ALERT_BYTES: u64 = 32 << 20;

/// The end of a metrics file that is looked at for its last sample.
const TAIL_BYTES: u64 = 64 << 10;

/// The latest time of the last samples of metric files. Samples are in the order of time within a series, so that the
/// last line of a file tells its end. Packed files are not opened for this.
pub fn last_sample(paths: &[PathBuf]) -> Option<Timestamp> {
    paths.iter().filter_map(|path| last_sample_of(path)).max()
}

fn last_sample_of(path: &Path) -> Option<Timestamp> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES))).ok()?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
    let tail = String::from_utf8(tail).ok()?;
    tail.lines().rev().find_map(sample_time)
}

/// The time of a sample line: the third field after the labels, in seconds (OpenMetrics) or milliseconds (Prometheus).
fn sample_time(line: &str) -> Option<Timestamp> {
    if line.starts_with('#') {
        return None;
    }
    // An exemplar follows after ` # ` and has a time of its own.
    let sample = line.split(" # ").next().unwrap_or(line);
    let after_labels = match sample.rsplit_once('}') {
        Some((_, rest)) => rest,
        None => sample.split_once(' ')?.1,
    };
    let time: f64 = after_labels.split_whitespace().nth(1)?.parse().ok()?;
    let seconds = if time.abs() >= FIRST_MILLISECONDS { time / 1000.0 } else { time };
    Timestamp::from_millisecond((seconds * 1000.0) as i64).ok()
}

/// Unix times above this are milliseconds (as seconds they would lie beyond the year 5000).
const FIRST_MILLISECONDS: f64 = 1e11;

/// Judges the clock from the alert and the latest other time, and says how.
pub fn judge(alert_path: &Path, latest: Option<Timestamp>, warnings: &mut Vec<String>) -> Timestamp {
    let alert = latest_alert_time(alert_path);
    let (now, how) = match (alert, latest) {
        (Some(alert), Some(latest)) if latest > alert => (latest, "the last time in its evidence"),
        (Some(alert), _) => (alert, "the time of its alert"),
        (None, Some(latest)) => (latest, "the last time in its evidence"),
        (None, None) => (Timestamp::now(), "the time of this computer, for nothing in it has a time"),
    };
    warnings.push(format!("the incident has no `now`: its clock is set to {now}, {how}"));
    now
}

fn latest_alert_time(path: &Path) -> Option<Timestamp> {
    if std::fs::metadata(path).ok()?.len() > MAX_ALERT_BYTES {
        return None;
    }
    let payload = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    latest_in(&payload)
}

fn latest_in(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Object(fields) => fields.iter().filter_map(|(key, value)| time_of(key, value)).max(),
        Value::Array(items) => items.iter().filter_map(latest_in).max(),
        _ => None,
    }
}

fn time_of(key: &str, value: &Value) -> Option<Timestamp> {
    match value {
        Value::String(text) if ALERT_TIME_KEYS.contains(&key.to_lowercase().as_str()) => text.parse().ok(),
        _ => latest_in(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_with(alert: &str, latest: Option<&str>) -> (Timestamp, Vec<String>) {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), alert).unwrap();
        let mut warnings = Vec::new();
        let now = judge(file.path(), latest.map(|text| text.parse().unwrap()), &mut warnings);
        (now, warnings)
    }

    #[test]
    fn the_last_sample_of_a_file_tells_its_end() {
        let last = |text: &str| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), text).unwrap();
            last_sample(&[file.path().to_path_buf()]).map(|at| at.to_string())
        };
        let text = "up{a=\"x } y\"} 1 1772605800\nup{a=\"b\"} 1 1772605860.5 # {id=\"1\"} 3 99\n# EOF\n";
        assert_eq!(last(text).as_deref(), Some("2026-03-04T06:31:00.5Z"));
        assert_eq!(last("up 1 1772605800000\n").as_deref(), Some("2026-03-04T06:30:00Z"));
        assert_eq!(last("up 1\n# EOF\n"), None);
    }

    #[test]
    fn the_clock_is_the_latest_time_of_alert_and_evidence() {
        let alert = r#"{"alerts": [{"startsAt": "2026-03-04T06:30:00Z", "endsAt": "0001-01-01T00:00:00Z"}]}"#;
        let said =
            |time: &str, how: &str| vec![format!("the incident has no `now`: its clock is set to {time}, {how}")];
        assert_eq!(
            judge_with(alert, Some("2026-03-04T06:00:00Z")),
            ("2026-03-04T06:30:00Z".parse().unwrap(), said("2026-03-04T06:30:00Z", "the time of its alert"))
        );
        assert_eq!(
            judge_with(alert, Some("2026-03-04T06:45:00Z")),
            ("2026-03-04T06:45:00Z".parse().unwrap(), said("2026-03-04T06:45:00Z", "the last time in its evidence"))
        );
        assert_eq!(judge_with("text", Some("2026-03-04T06:45:00Z")).0, "2026-03-04T06:45:00Z".parse().unwrap());
    }
}
