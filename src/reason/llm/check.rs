//! Whether what a model claims stands in the evidence that it cites: checked by code, sentence by sentence.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use regex::Regex;
use serde_json::Value;

use crate::domain::State;
use crate::domain::text::clean_line;

const QUOTED_CHARS: usize = 160;
/// Whole numbers up to this pass: "both", "one of two" are words as much as figures.
const PLAIN_WORDS: f64 = 2.0;
/// Figures may be rounded by this share.
const ROUNDING: f64 = 0.005;
/// Arrays of more values are courses, in which any number is found by chance.
const MAX_ARRAY: usize = 12;

// Constants that the tests compile.
static CITATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[\[【(（]\s*(E\d+(?:\s*[,，、;；和&]\s*E\d+)*)\s*[\]】)）]").expect("constant"));
static ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"E\d+").expect("constant"));
static BARE_ID: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\bE\d+\b").expect("constant"));
static CLOCK: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\b\d{1,2}:\d{2}(?::\d{2})?\b").expect("constant"));
static DATE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\b\d{4}-\d{2}-\d{2}\b|\b\d{2}-\d{2}\b").expect("constant"));
static NUMBER: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\d[\d,]*(?:\.\d+)?").expect("constant"));
static QUOTED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"`[^`]*`|"[^"]*"|“[^”]*”|「[^」]*」"#).expect("constant"));

/// A text without what the evidence does not bear.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    pub text: String,
    /// Sentences that were struck, with the reason.
    pub struck: Vec<String>,
}

/// Checks texts against one state.
pub(super) struct Checker<'a> {
    state: &'a State,
    zone: &'a TimeZone,
    /// What the alert itself says may be said again without a citation.
    alert: Support,
}

/// Figures and times that something holds.
#[derive(Debug, Default)]
struct Support {
    numbers: Vec<f64>,
    times: Vec<Timestamp>,
    text: String,
}

impl<'a> Checker<'a> {
    pub fn new(state: &'a State, zone: &'a TimeZone) -> Self {
        let mut alert = Support::default();
        let facts = &state.facts;
        alert.numbers.extend(facts.value.into_iter().chain(facts.threshold));
        alert.times.extend([facts.window.start, facts.window.end, facts.now]);
        alert.times.extend(facts.fired_at);
        for one in &state.alerts {
            alert.read_text(&one.text());
        }
        alert.read_text(facts.metric.as_deref().unwrap_or_default());
        Self { state, zone, alert }
    }

    /// Whether evidence of this id exists.
    pub fn exists(&self, id: &str) -> bool {
        self.state.evidence(id).is_some()
    }

    /// Strikes every sentence that cites what does not exist, or holds a figure that is in none of what it cites.
    pub fn check(&self, text: &str) -> Checked {
        let mut checked = Checked::default();
        for sentence in sentences(text) {
            match self.problem(sentence) {
                None => checked.text.push_str(sentence),
                Some(problem) => {
                    checked.struck.push(format!("{} ({problem})", clean_line(sentence.trim(), QUOTED_CHARS)));
                }
            }
        }
        checked.text = checked.text.trim().to_string();
        checked
    }

    /// What is wrong with a sentence, in words for the model and the reader.
    fn problem(&self, sentence: &str) -> Option<String> {
        let cited = cited(sentence);
        if let Some(unknown) = cited.iter().find(|id| !self.exists(id)) {
            return Some(format!("there is no {unknown}"));
        }
        let support = self.support(&cited);
        let holds = |figure: &Figure| self.holds(&support, figure);
        let missing = figures(sentence).into_iter().find(|figure| !holds(figure))?;
        let shown = missing.shown();
        Some(match cited.is_empty() {
            true => format!("{shown} stands in no evidence"),
            false => format!("{shown} does not stand in {}", cited.iter().cloned().collect::<Vec<_>>().join(", ")),
        })
    }

    /// What the cited evidence holds; all of it, for a sentence without citations.
    fn support(&self, cited: &BTreeSet<String>) -> Support {
        let mut support = Support::default();
        let relevant = self.state.evidence.iter().filter(|one| cited.is_empty() || cited.contains(&one.id));
        for one in relevant {
            support.read_text(&one.summary);
            support.read_text(&one.source);
            support.read_json(&serde_json::to_value(&one.data).unwrap_or_default());
            support.times.extend(one.window.iter().flat_map(|window| [window.start, window.end]));
        }
        support
    }

    fn holds(&self, support: &Support, figure: &Figure) -> bool {
        let both = [support, &self.alert];
        match figure {
            Figure::Clock(clock) => both.iter().any(|support| {
                support.text.contains(clock.as_str())
                    || support.times.iter().any(|at| {
                        let local = at.to_zoned_datetime(self.zone.clone()).strftime("%H:%M:%S").to_string();
                        let utc = at.to_zoned_datetime(TimeZone::UTC).strftime("%H:%M:%S").to_string();
                        let padded = if clock.find(':') == Some(1) { format!("0{clock}") } else { clock.clone() };
                        local.starts_with(&padded) || utc.starts_with(&padded)
                    })
            }),
            Figure::Number { value, decimals, unit } => {
                let tolerance = (0.5 * 0.1f64.powi(*decimals)).max(ROUNDING * value.abs()) + 1e-9;
                let is_word = *decimals == 0 && *value <= PLAIN_WORDS && *unit == Unit::None;
                let stands = both
                    .iter()
                    .flat_map(|support| &support.numbers)
                    .any(|known| unit.scales().iter().any(|scale| (known * scale - value).abs() <= tolerance));
                is_word || stands || self.is_span(support, *value, *unit)
            }
        }
    }

    /// A span between two moments that the evidence or the alert names.
    fn is_span(&self, support: &Support, value: f64, unit: Unit) -> bool {
        let Some(seconds) = unit.seconds() else { return false };
        let times: Vec<Timestamp> = support.times.iter().chain(&self.alert.times).copied().collect();
        times.iter().enumerate().any(|(n, one)| {
            times[n + 1..].iter().any(|other| {
                let span = one.duration_since(*other).as_secs_f64().abs() / seconds;
                (span - value).abs() <= 1.0
            })
        })
    }
}

impl Support {
    fn read_text(&mut self, text: &str) {
        self.numbers.extend(numbers(text).into_iter().map(|(value, ..)| value));
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn read_json(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.numbers.extend(number.as_f64()),
            Value::String(text) => match text.parse::<Timestamp>() {
                Ok(at) => self.times.push(at),
                Err(_) => self.read_text(text),
            },
            Value::Array(items) if items.len() > MAX_ARRAY && items.iter().all(Value::is_number) => {}
            Value::Array(items) => items.iter().for_each(|item| self.read_json(item)),
            Value::Object(fields) => fields.values().for_each(|field| self.read_json(field)),
            Value::Null | Value::Bool(_) => {}
        }
    }
}

/// A figure of a sentence.
#[derive(Debug, Clone, PartialEq)]
enum Figure {
    Clock(String),
    Number { value: f64, decimals: i32, unit: Unit },
}

impl Figure {
    fn shown(&self) -> String {
        match self {
            Self::Clock(text) => text.clone(),
            Self::Number { value, .. } => value.to_string(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    None,
    Percent,
    Milliseconds,
    Seconds,
    Minutes,
    Hours,
    Bytes,
}

impl Unit {
    /// What a known number may be multiplied by to be told in this unit.
    fn scales(self) -> &'static [f64] {
        match self {
            Self::None => &[1.0],
            Self::Percent => &[1.0, 100.0],
            Self::Milliseconds => &[1.0, 1000.0],
            Self::Seconds => &[1.0, 0.001, 60.0],
            Self::Minutes => &[1.0, 1.0 / 60.0],
            Self::Hours => &[1.0, 1.0 / 60.0, 1.0 / 3600.0],
            Self::Bytes => &[1.0, 1e-3, 1e-6, 1e-9, 1.0 / 1024.0, 1.0 / 1_048_576.0, 1.0 / 1_073_741_824.0],
        }
    }

    fn seconds(self) -> Option<f64> {
        match self {
            Self::Seconds => Some(1.0),
            Self::Minutes => Some(60.0),
            Self::Hours => Some(3600.0),
            _ => None,
        }
    }
}

/// The ids that a text cites in brackets.
pub(super) fn cited(text: &str) -> BTreeSet<String> {
    CITATION
        .captures_iter(text)
        .flat_map(|found| ID.find_iter(found.get(1).map_or("", |m| m.as_str())))
        .map(|id| id.as_str().to_string())
        .collect()
}

/// The figures of a sentence; ids, names and quotations do not count.
fn figures(sentence: &str) -> Vec<Figure> {
    let text = CITATION.replace_all(sentence, " ");
    let text = QUOTED.replace_all(&text, " ");
    let clocks = CLOCK.find_iter(&text).map(|clock| Figure::Clock(clock.as_str().into()));
    let numbers = numbers(&text).into_iter().map(|(value, decimals, unit)| Figure::Number { value, decimals, unit });
    clocks.chain(numbers).collect()
}

/// Numbers with their decimals and units; those of times, ids and names do not count.
fn numbers(text: &str) -> Vec<(f64, i32, Unit)> {
    let text = CLOCK.replace_all(text, " ");
    let text = DATE.replace_all(&text, " ");
    let text = BARE_ID.replace_all(&text, " ");
    let mut found = Vec::new();
    for number in NUMBER.find_iter(&text) {
        let (before, after) = (&text[..number.start()], &text[number.end()..]);
        if in_a_name(before, after) {
            continue;
        }
        let Some(value) = parse(number.as_str()) else { continue };
        let decimals = number.as_str().split_once('.').map_or(0, |(_, digits)| digits.len() as i32);
        let (zeros, unit) = unit(after);
        // "2.1 万" stands for 21,000, give or take 500.
        found.push((value * 10f64.powi(zeros), decimals - zeros, unit));
    }
    found
}

/// `node-3`, `v2.8.1`, `HTTP/2`, `p99`, `3.12.0`, `E2`, `10.0.0.1`: part of a name, no figure.
fn in_a_name(before: &str, after: &str) -> bool {
    let mut left = before.chars().rev();
    let glued_before = match left.next() {
        // "50/50 in use": a share is two figures, "HTTP/2" is a name.
        Some('/') => !left.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => c.is_ascii_alphabetic() || "-_.#:@".contains(c),
        None => false,
    };
    let mut rest = after.chars();
    let glued_after = match rest.next() {
        Some('/') => rest.next().is_some_and(|c| c.is_ascii_alphabetic()),
        Some('-' | '_' | '@' | ':') => rest.next().is_some_and(|c| c.is_ascii_alphanumeric()),
        Some('.') => rest.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) if c.is_ascii_alphabetic() => {
            !["ms", "s", "m", "h", "k", "K", "G", "M", "B", "min", "x"].iter().any(|unit| {
                after.strip_prefix(unit).is_some_and(|rest| {
                    !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
                        || unit.len() == 1 && rest.starts_with(['i', 'B'])
                })
            })
        }
        _ => false,
    };
    glued_before || glued_after
}

fn parse(text: &str) -> Option<f64> {
    text.replace(',', "").parse().ok()
}

/// What follows a number: zeros that it stands for, and a unit.
fn unit(after: &str) -> (i32, Unit) {
    let text = after.trim_start();
    let starts = |words: &[&str]| words.iter().any(|word| text.starts_with(word));
    if starts(&["%", "％", "percent"]) {
        (0, Unit::Percent)
    } else if starts(&["ms", "毫秒", "millisecond"]) {
        (0, Unit::Milliseconds)
    } else if starts(&["min", "分钟"]) {
        (0, Unit::Minutes)
    } else if starts(&["hour", "小时"]) || text == "h" || text.starts_with("h ") {
        (0, Unit::Hours)
    } else if starts(&["KiB", "MiB", "GiB", "KB", "MB", "GB", "kB", "bytes", "字节"]) {
        (0, Unit::Bytes)
    } else if starts(&["s ", "s,", "s.", "s;", "s)", "sec", "秒"]) || text == "s" {
        (0, Unit::Seconds)
    } else if starts(&["万"]) {
        (4, Unit::None)
    } else if starts(&["k ", "k,", "thousand"]) {
        (3, Unit::None)
    } else {
        (0, Unit::None)
    }
}

/// Sentences with the citations and blanks that follow them, so that together they are the text.
fn sentences(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = match c {
            '。' | '！' | '？' | '；' | '\n' => true,
            '.' | '!' | '?' | ';' => text[at + 1..].starts_with(char::is_whitespace) || at + 1 == text.len(),
            _ => false,
        };
        if !ends {
            continue;
        }
        let mut end = at + c.len_utf8();
        // Citations after the full stop belong to what stands before it.
        loop {
            let rest = &text[end..];
            let blanks = rest.len() - rest.trim_start().len();
            match CITATION.find(&rest[blanks..]).filter(|found| found.start() == 0) {
                Some(found) => end += blanks + found.end(),
                None => {
                    end += blanks;
                    break;
                }
            }
        }
        parts.push(&text[start..end]);
        start = end;
        while chars.peek().is_some_and(|(next, _)| *next < end) {
            chars.next();
        }
    }
    if start < text.len() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{Evidence, EvidenceKind, Finding};
    use crate::reason::facts;

    fn state() -> State {
        let payload = json!({
            "labels": { "alertname": "HighErrorRate", "service": "cart" },
            "annotations": { "summary": "error rate 23 % over 5 %" },
            "startsAt": "2026-03-04T06:30:00Z"
        });
        let alerts = crate::alert::parse(&payload.to_string()).unwrap().alerts;
        let facts = facts::analyze(&alerts, "2026-03-04T06:45:00Z".parse().unwrap());
        let mut state = State::begin(alerts, facts);
        let evidence = |n: usize, summary: &str, value: Value| Evidence {
            id: format!("E{n}"),
            kind: EvidenceKind::Other,
            source: "s".into(),
            window: None,
            summary: summary.into(),
            data: Finding::Other { value },
            stale_seconds: None,
        };
        state.evidence = vec![
            evidence(
                1,
                "\"pool timeout\" 1,858 times from 14:22:31 to 14:44:49 (cart-7, error)",
                json!({ "first": "2026-03-04T06:22:31Z", "histogram": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 87] }),
            ),
            evidence(
                2,
                "p95 stepped up from 89.7 ms to 1.23 s",
                json!({ "baseline": 0.0897, "peak": 1.2301, "ratio": 0.184 }),
            ),
        ];
        state
    }

    fn struck(text: &str) -> Vec<String> {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        Checker::new(&state(), &zone).check(text).struck
    }

    #[test]
    fn what_stands_in_the_evidence_stays() {
        for text in [
            "The pool timed out 1858 times [E1].",
            "It began at 14:22 [E1] and 06:22 UTC [E1].",
            "Latency rose from 90 ms to 1.2 s [E2].",
            "18 % of requests failed [E2].",
            "The alert's 23 % is over its threshold of 5 %.",
            "It began about 7 minutes before the alert [E1].",
            "连接池超时 1,858 次 [E1]，比告警早约 7 分钟 [E1]。",
            "About 0.19 万 timeouts [E1].",
            "Pod cart-7f9-12 on node-3 runs v2.8.1 with p99 in mind [E2].",
            "One of the two pods is slow, 2/2 are ready, over HTTP/2 [E2].",
            "It said \"took 99999 ms\" and `x = 4711` [E2].",
            "No figures and no citation here.",
            "Slow. [E2] Timed out 1858 times. [E1]",
        ] {
            assert_eq!(struck(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_does_not_is_struck_with_the_reason() {
        assert_eq!(struck("It failed 87 times [E1]."), ["It failed 87 times [E1]. (87 does not stand in E1)"]);
        assert_eq!(
            struck("The pool is full (50/50 in use)."),
            ["The pool is full (50/50 in use). (50 stands in no evidence)"]
        );
        assert_eq!(struck("It is broken [E9]."), ["It is broken [E9]. (there is no E9)"]);
        assert_eq!(struck("CPU was at 97 %."), ["CPU was at 97 %. (97 stands in no evidence)"]);
        assert_eq!(struck("It began at 13:05 [E1]."), ["It began at 13:05 [E1]. (13:05 does not stand in E1)"]);
        assert_eq!(
            struck("Latency rose to 1858 ms [E2]."),
            ["Latency rose to 1858 ms [E2]. (1858 does not stand in E2)"]
        );
        assert_eq!(struck("错误 500 次 [E1, E2]。"), ["错误 500 次 [E1, E2]。 (500 does not stand in E1, E2)"]);
        assert_eq!(struck("It lasted 45 minutes [E1]."), ["It lasted 45 minutes [E1]. (45 does not stand in E1)"]);
    }

    #[test]
    fn the_other_sentences_stay_as_they_are() {
        let zone = TimeZone::UTC;
        let state = state();
        let checked = Checker::new(&state, &zone).check("Slow [E2]. It failed 87 times [E1]. Look at the pool [E1].");
        assert_eq!(checked.text, "Slow [E2]. Look at the pool [E1].");
    }

    #[test]
    fn sentences_put_together_are_the_text() {
        for text in ["a. b! c", "v2.8.1 is out. Yes", "一。二！三", "a. [E1] b", "a [E1].\n\n- b", "", "x."] {
            assert_eq!(sentences(text).concat(), text);
        }
        assert_eq!(sentences("a. [E1] b"), ["a. [E1] ", "b"]);
    }
}
