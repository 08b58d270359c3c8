//! Which log patterns tell the most.
//!
//! In: patterns with their counts in the window and before it. Out: the same, the most telling first: what reports an
//! error, what is new or comes in a burst, what is rare. A pattern that went on before as it does now explains nothing.

use crate::domain::{Level, LogPattern};

/// Words by which a message reports trouble whatever its level says.
const TROUBLE: [&str; 24] = [
    "error",
    "exception",
    "fail",
    "timeout",
    "timed out",
    "refused",
    "denied",
    "panic",
    "fatal",
    "killed",
    "unable",
    "unavailable",
    "exhausted",
    "expired",
    "reset by peer",
    "no space",
    "too many",
    "out of memory",
    "错误",
    "异常",
    "失败",
    "超时",
    "拒绝",
    "耗尽",
];
/// What a message that reports trouble weighs at least; less where its level plays it down (`error=0` is no trouble, but
/// a library that logs everything as information reports some).
const TROUBLE_WEIGHT: f64 = 2.5;
const QUIET_TROUBLE_WEIGHT: f64 = 1.0;
/// A pattern with a smaller share of all events is rare.
const RARE_SHARE: f64 = 0.001;

/// Sorts the most telling first; equal ones by count, then by template, so that the order is stable.
pub fn rank(patterns: &mut [LogPattern], events: u64) {
    let mut scored: Vec<_> = patterns.iter().map(|pattern| (score(pattern, events), pattern.clone())).collect();
    scored.sort_by(|(a, left), (b, right)| {
        b.total_cmp(a).then(right.count.cmp(&left.count)).then_with(|| left.template.cmp(&right.template))
    });
    for (place, (_, pattern)) in patterns.iter_mut().zip(scored) {
        *place = pattern;
    }
}

fn score(pattern: &LogPattern, events: u64) -> f64 {
    let count = pattern.count as f64;
    let rarity = if count < events as f64 * RARE_SHARE { 1.5 } else { 1.0 };
    weight(pattern) * rarity * (1.0 + 0.5 * count.ln_1p()) * (1.0 + growth(pattern))
}

/// Weight of the level, or of the words where they say more.
fn weight(pattern: &LogPattern) -> f64 {
    let by_level = match pattern.level {
        Some(Level::Fatal) => 5.0,
        Some(Level::Error) => 4.0,
        Some(Level::Warn) => 2.0,
        None => 1.0,
        Some(Level::Info) => 0.5,
        Some(Level::Debug | Level::Trace) => 0.25,
    };
    let template = pattern.template.to_lowercase();
    if !TROUBLE.iter().any(|word| template.contains(word)) {
        return by_level;
    }
    match pattern.level {
        Some(Level::Info | Level::Debug | Level::Trace) => QUIET_TROUBLE_WEIGHT,
        _ => by_level.max(TROUBLE_WEIGHT),
    }
}

/// How much more often than before it comes: 0 for as often or less, the logarithm of the ratio above.
fn growth(pattern: &LogPattern) -> f64 {
    match pattern.before {
        // Nothing is known of the time before, so that nothing speaks for a burst.
        None => 0.0,
        Some(before) => ((pattern.count as f64 + 1.0) / (before as f64 + 1.0)).ln().max(0.0),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn pattern(level: Option<Level>, count: u64, before: Option<u64>, template: &str) -> LogPattern {
        LogPattern {
            id: String::new(),
            level,
            service: None,
            count,
            before,
            first: None,
            last: None,
            template: template.to_owned(),
            sample: String::new(),
            histogram: Vec::new(),
            instances: BTreeMap::new(),
        }
    }

    fn order(mut patterns: Vec<LogPattern>) -> Vec<String> {
        let events = patterns.iter().map(|pattern| pattern.count).sum();
        rank(&mut patterns, events);
        patterns.into_iter().map(|pattern| pattern.template).collect()
    }

    #[test]
    fn a_burst_of_errors_outranks_a_steady_flood() {
        assert_eq!(
            order(vec![
                pattern(Some(Level::Info), 40_000, Some(39_500), "GET <*> 200"),
                pattern(Some(Level::Error), 500, Some(495), "cache miss <*>"),
                pattern(Some(Level::Error), 120, Some(0), "connection pool <*>"),
                pattern(Some(Level::Info), 300, Some(0), "scaled to <*>"),
                pattern(Some(Level::Fatal), 1, Some(0), "cannot bind"),
            ]),
            ["connection pool <*>", "cannot bind", "cache miss <*>", "scaled to <*>", "GET <*> 200"]
        );
    }

    #[test]
    fn words_of_trouble_count_where_no_level_does() {
        assert_eq!(
            order(vec![
                pattern(Some(Level::Info), 50, Some(50), "request served"),
                pattern(None, 50, Some(50), "连接超时 <*>"),
                pattern(Some(Level::Info), 50, Some(50), "error=<*>"),
            ]),
            ["连接超时 <*>", "error=<*>", "request served"]
        );
    }

    #[test]
    fn a_burst_needs_a_time_before() {
        assert_eq!(
            order(vec![pattern(Some(Level::Warn), 10, None, "a"), pattern(Some(Level::Warn), 10, Some(0), "b")]),
            ["b", "a"]
        );
    }
}
