//! What is known of an alert from earlier: how often it came, and what it was the other times.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Alert, Category, Judgement, Lang};
use crate::domain::text::clean_line;

/// Characters of the text by which incidents are compared.
const MAX_SYMPTOM_CHARS: usize = 600;
const MAX_TOLD_CHARS: usize = 200;

/// What is remembered of an alert.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// Times that this alert began within `days`, this one included.
    pub times: usize,
    pub days: u32,
    /// It begins and ends again and again within hours.
    pub flapping: bool,
    /// What it was, or something like it: the same alert first, then the most alike; the newest of each first.
    pub precedents: Vec<Precedent>,
}

impl History {
    /// Whether there is nothing to tell.
    pub fn is_new(&self) -> bool {
        self.times <= 1 && self.precedents.is_empty()
    }

    /// `3rd time in 7 days; it comes and goes (flapping)`; nothing the first time.
    pub fn often(&self, lang: Lang) -> Option<String> {
        if self.times <= 1 {
            return None;
        }
        let (times, days) = (self.times, self.days);
        let often = lang.pick(format!("{} time in {days} days", ordinal(times)), format!("{days} 天内第 {times} 次"));
        if !self.flapping {
            return Some(often);
        }
        Some(lang.pick(
            format!("{often}; it comes and goes within hours (flapping): a longer `for:` or a lower threshold for its end may be due"),
            format!("{often}；数小时内反复触发又恢复（抖动）：可考虑延长 `for:` 或为恢复设置更低的阈值"),
        ))
    }

    /// Everything there is to tell, a line each.
    pub fn lines(&self, lang: Lang, zone: &TimeZone) -> Vec<String> {
        let told = self.precedents.iter().map(|precedent| precedent.told(lang, zone));
        self.often(lang).into_iter().chain(told).collect()
    }
}

/// How a precedent was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Matched {
    /// The same alert.
    Fingerprint,
    /// Another alert whose words mean the same.
    Similarity,
}

/// An earlier diagnosis, and what people said of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Precedent {
    pub session_id: String,
    #[schemars(with = "String")]
    pub at: Timestamp,
    pub alert: String,
    pub fingerprint: String,
    pub service: Option<String>,
    /// The kind of cause, as far as nobody said that it is another.
    pub category: Option<Category>,
    /// The kind that was named and is not the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refuted: Option<Category>,
    pub cause_service: Option<String>,
    /// In words: what a person said it was, else what was named.
    pub cause: Option<String>,
    /// `None`: nobody said whether it was right.
    pub judgement: Option<Judgement>,
    /// Whether `cause` is a person's correction.
    #[serde(default)]
    pub corrected: bool,
    /// What fixed it, or what else somebody noted.
    pub note: Option<String>,
    /// The documents that the diagnosis drew on.
    #[serde(default)]
    pub relied_on: Vec<String>,
    pub matched: Matched,
    /// Cosine, for [`Matched::Similarity`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

impl Precedent {
    /// Whether a person confirmed or corrected the cause: what is known rather than thought.
    pub fn is_known(&self) -> bool {
        self.judgement == Some(Judgement::Right) || (self.corrected && self.cause.is_some())
    }

    /// `2026-03-04 06:45: the cause was …, confirmed; restarted stock`.
    pub fn told(&self, lang: Lang, zone: &TimeZone) -> String {
        let at = self.at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M");
        let what = match &self.cause {
            None => lang.pick("the cause was not found", "未找到原因").to_owned(),
            Some(cause) => {
                let cause = clean_line(cause, MAX_TOLD_CHARS);
                match (self.corrected, self.judgement) {
                    (true, _) => lang.pick(format!("the cause was: {cause}"), format!("原因是：{cause}")),
                    (_, Some(Judgement::Right)) => {
                        lang.pick(format!("the cause was: {cause}, confirmed"), format!("原因是：{cause}，已确认"))
                    }
                    (_, Some(Judgement::Wrong)) => lang.pick(
                        format!("the diagnosis was: {cause}, which was wrong"),
                        format!("当时诊断为：{cause}，但有误"),
                    ),
                    (_, None) => lang.pick(
                        format!("the diagnosis was: {cause}, not confirmed"),
                        format!("当时诊断为：{cause}，未经确认"),
                    ),
                }
            }
        };
        let note = self.note.as_deref().map(|note| clean_line(note, MAX_TOLD_CHARS)).filter(|note| !note.is_empty());
        let note = note.map_or_else(String::new, |note| lang.pick(format!("; {note}"), format!("；{note}")));
        let like = match (self.matched, self.similarity) {
            (Matched::Similarity, Some(similarity)) => {
                let alert = clean_line(&self.alert, MAX_TOLD_CHARS);
                lang.pick(
                    format!(" (a similar alert, {alert}, {similarity:.2})"),
                    format!("（相似告警 {alert}，{similarity:.2}）"),
                )
            }
            _ => String::new(),
        };
        lang.pick(format!("{at}{like}: {what}{note}"), format!("{at}{like}：{what}{note}"))
    }
}

/// The words by which an incident is found again: what the alert says, without what differs each time.
pub fn symptom_text(alert: &Alert) -> String {
    let mut parts = vec![alert.name.clone()];
    for key in ["summary", "title", "message", "description"] {
        parts.extend(alert.annotations.get(key).cloned());
    }
    parts.extend(alert.service.clone());
    parts.dedup();
    clean_line(&parts.join(" "), MAX_SYMPTOM_CHARS)
}

fn ordinal(n: usize) -> String {
    let ending = match (n % 10, n % 100) {
        (1, rest) if rest != 11 => "st",
        (2, rest) if rest != 12 => "nd",
        (3, rest) if rest != 13 => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn precedent(cause: Option<&str>, judgement: Option<Judgement>) -> Precedent {
        Precedent {
            session_id: "s".into(),
            at: "2026-03-04T06:45:00Z".parse().unwrap(),
            alert: "StockDown".into(),
            fingerprint: "f".into(),
            service: None,
            category: None,
            refuted: None,
            cause_service: None,
            cause: cause.map(str::to_owned),
            judgement,
            corrected: false,
            note: None,
            relied_on: Vec::new(),
            matched: Matched::Fingerprint,
            similarity: None,
        }
    }

    #[test]
    fn what_people_said_weighs_more_than_what_was_named() {
        let told = |precedent: &Precedent| precedent.told(Lang::En, &TimeZone::UTC);
        assert_eq!(told(&precedent(None, None)), "2026-03-04 06:45: the cause was not found");
        assert_eq!(told(&precedent(Some("OOM"), None)), "2026-03-04 06:45: the diagnosis was: OOM, not confirmed");
        let right =
            Precedent { note: Some("restarted stock".into()), ..precedent(Some("OOM"), Some(Judgement::Right)) };
        assert_eq!(told(&right), "2026-03-04 06:45: the cause was: OOM, confirmed; restarted stock");
        let wrong = precedent(Some("OOM"), Some(Judgement::Wrong));
        assert_eq!(told(&wrong), "2026-03-04 06:45: the diagnosis was: OOM, which was wrong");
        let corrected = Precedent { corrected: true, ..precedent(Some("a full disk"), Some(Judgement::Wrong)) };
        assert_eq!(told(&corrected), "2026-03-04 06:45: the cause was: a full disk");
        // Nothing but a command to a terminal.
        let blank = Precedent { note: Some("\u{1b}[2J".into()), ..precedent(Some("OOM"), None) };
        assert_eq!(told(&blank), "2026-03-04 06:45: the diagnosis was: OOM, not confirmed");
        let alike = Precedent { matched: Matched::Similarity, similarity: Some(0.834), ..right };
        assert_eq!(
            alike.told(Lang::Zh, &TimeZone::UTC),
            "2026-03-04 06:45（相似告警 StockDown，0.83）：原因是：OOM，已确认；restarted stock"
        );
    }

    #[test]
    fn how_often_is_told_from_the_second_time_on() {
        let times = |times, flapping| History { times, days: 7, flapping, precedents: Vec::new() };
        assert_eq!(times(1, false).often(Lang::En), None);
        assert_eq!(times(3, false).often(Lang::En).unwrap(), "3rd time in 7 days");
        assert_eq!(times(12, false).often(Lang::Zh).unwrap(), "7 天内第 12 次");
        assert!(times(22, true).often(Lang::En).unwrap().starts_with("22nd time in 7 days; it comes and goes"));
        assert!(times(1, false).is_new() && !times(2, false).is_new());
    }
}
