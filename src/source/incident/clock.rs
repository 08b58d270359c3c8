//! The clock of an incident that does not say its `now`: the latest time that its parts speak of.

use std::path::Path;

use jiff::Timestamp;
use serde_json::Value;

/// Keys of an alert payload under which a time of the alert stands; a rule's own times are not among them.
const ALERT_TIME_KEYS: [&str; 8] =
    ["startsat", "starts_at", "activeat", "active_at", "firedat", "created_at", "createdat", "occurred_at"];
/// An alert payload is larger than this only by mistake.
const MAX_ALERT_BYTES: u64 = 32 << 20;

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
