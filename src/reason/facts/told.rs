//! What the engineer tells while a run is under way, as a finding: a change where the words and a time say so, else the
//! words as they stand.

use std::sync::LazyLock;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use regex::Regex;
use serde_json::Value;

use crate::domain::{Change, ChangeKind, Facts, Finding};

static CLOCK: LazyLock<Regex> = LazyLock::new(|| {
    // A constant that the tests compile.
    Regex::new(r"(?:^|[^\d:])([01]?\d|2[0-3])[:：]([0-5]\d)(?::([0-5]\d))?(?:$|[^\d:])").expect("constant")
});

/// Words that tell what kind of change was made; the first that occurs decides.
const CHANGES: [(&[&str], ChangeKind); 4] = [
    (&["feature flag", "flag ", "开关"], ChangeKind::Flag),
    (&["config", "配置"], ChangeKind::Config),
    (&["scaled", "scale up", "scale down", "扩容", "缩容"], ChangeKind::Scale),
    (
        &["deploy", "rolled back", "rollback", "release", "rolled out", "rollout", "发布", "回滚", "上线"],
        ChangeKind::Deploy,
    ),
];

/// The finding for a fact.
pub fn told(text: &str, facts: &Facts, zone: &TimeZone) -> Finding {
    let words = text.to_lowercase();
    let kind = CHANGES.iter().find(|(names, _)| names.iter().any(|name| words.contains(name))).map(|(_, kind)| *kind);
    match (kind, time(text, facts.now, zone)) {
        (Some(kind), Some(time)) => {
            let service = facts.service.clone().filter(|service| words.contains(&service.to_lowercase()));
            Finding::Change(Change { time, service, kind, summary: text.to_owned() })
        }
        _ => Finding::Other { value: Value::String(text.to_owned()) },
    }
}

/// The last instant before the end of the investigation at which a clock in this zone showed the time in the text.
fn time(text: &str, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let found = CLOCK.captures(text)?;
    let number = |n: usize| found.get(n).map_or(Some(0), |part| part.as_str().parse::<i8>().ok());
    let now = now.to_zoned_datetime(zone.clone());
    let at = now.date().at(number(1)?, number(2)?, number(3)?, 0).to_zoned_datetime(zone.clone()).ok()?;
    let at = if at > now { at.checked_sub(1.day()).ok()? } else { at };
    Some(at.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        let alert = crate::alert::parse(r#"{"labels":{"alertname":"A","service":"cart"}}"#).unwrap().alerts;
        super::super::analyze(&alert, "2026-03-04T14:45:00Z".parse().unwrap())
    }

    #[test]
    fn a_change_with_a_time_is_a_change_and_anything_else_stays_words() {
        let told = |text: &str| told(text, &facts(), &TimeZone::UTC);
        let change = |time: &str, kind, service: Option<&str>, summary: &str| {
            let (time, service) = (time.parse().unwrap(), service.map(str::to_owned));
            Finding::Change(Change { time, service, kind, summary: summary.to_owned() })
        };
        let text = "deploy of cart was rolled back at 14:40";
        assert_eq!(told(text), change("2026-03-04T14:40:00Z", ChangeKind::Deploy, Some("cart"), text));
        let text = "昨晚 23:05 修改了配置";
        assert_eq!(told(text), change("2026-03-03T23:05:00Z", ChangeKind::Config, None, text));
        for text in ["deploy was rolled back", "users complain since 14:40", "ratio 14:40:99 config"] {
            assert_eq!(told(text), Finding::Other { value: text.into() }, "{text}");
        }
    }
}
