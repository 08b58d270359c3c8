//! What the store remembers of an alert: how often it came lately, and what it was the last time.

use jiff::SignedDuration;
use jiff::tz::TimeZone;

use crate::domain::text::clean_line;
use crate::domain::{Feedback, Judgement, Lang, Session, SessionRecord};
use crate::session::{Filter, SessionStore, StoreError};

const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24 * 7);
const TEXT_CHARS: usize = 200;

/// Earlier sessions of the same alert within a week, and the last one that says what it was.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// This time included.
    pub times: usize,
    pub last: Option<SessionRecord>,
}

/// Looks for the alert of a session by its fingerprint; `None` when it is new.
///
/// # Errors
/// A store that cannot be read.
pub async fn recall(store: &dyn SessionStore, session: &Session) -> Result<Option<Memory>, StoreError> {
    let Some(fingerprint) = &session.fingerprint else { return Ok(None) };
    let filter = Filter {
        since: session.started_at.checked_sub(LOOK_BACK).ok(),
        until: Some(session.started_at),
        alert: Some(fingerprint.clone()),
        ..Filter::default()
    };
    let mut earlier = store.list(&filter).await?;
    earlier.retain(|other| other.id != session.id);
    if earlier.is_empty() {
        return Ok(None);
    }
    let times = earlier.len() + 1;
    for other in &earlier {
        let Some(record) = store.read(&other.id).await? else { continue };
        if other.cause.is_some() || !record.feedback.is_empty() {
            return Ok(Some(Memory { times, last: Some(record) }));
        }
    }
    Ok(Some(Memory { times, last: None }))
}

/// `3rd time in 7 days; last time (2026-03-04 06:45) the cause was …, confirmed; restarted stock`.
pub fn tell(memory: &Memory, lang: Lang, zone: &TimeZone) -> String {
    let times = memory.times;
    let often = lang.pick(format!("{} time in 7 days", ordinal(times)), format!("7 天内第 {times} 次"));
    let Some(last) = &memory.last else { return often };
    let at = last.session.started_at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M");
    let feedback = last.feedback.last();
    let named = last.session.cause.as_deref().map(|cause| clean_line(cause, TEXT_CHARS));
    let corrected = feedback.and_then(|feedback| feedback.cause.as_deref()).map(|cause| clean_line(cause, TEXT_CHARS));
    let wrong = feedback.is_some_and(|feedback| feedback.judgement == Judgement::Wrong);
    let cause = match (corrected, named) {
        (Some(cause), _) => lang.pick(format!("the cause was {cause}"), format!("原因是：{cause}")),
        (None, Some(cause)) if wrong => {
            lang.pick(format!("the diagnosis was {cause}, which was wrong"), format!("当时诊断为：{cause}，但有误"))
        }
        (None, Some(cause)) => {
            let sure = match feedback {
                Some(_) => lang.pick(", confirmed", "，已确认"),
                None => lang.pick(", not confirmed", "，未确认"),
            };
            lang.pick(format!("the cause was {cause}{sure}"), format!("原因是：{cause}{sure}"))
        }
        (None, None) => lang.pick("the cause was not found", "未找到原因").to_owned(),
    };
    let note =
        feedback.and_then(note).map_or_else(String::new, |note| lang.pick(format!("; {note}"), format!("；{note}")));
    lang.pick(format!("{often}; last time ({at}) {cause}{note}"), format!("{often}；上次（{at}）{cause}{note}"))
}

fn note(feedback: &Feedback) -> Option<String> {
    feedback.note.as_deref().map(|note| clean_line(note, TEXT_CHARS))
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

/// The alert of a session that was just recorded, in one line; nothing when it is new or the store cannot be asked.
pub async fn line(store: &dyn SessionStore, session: &Session, zone: &TimeZone) -> Option<String> {
    let memory = recall(store, session).await.ok().flatten()?;
    Some(tell(&memory, session.lang, zone))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::domain::SessionKind;

    fn memory(cause: Option<&str>, feedback: Option<Feedback>) -> Memory {
        let at = "2026-03-04T06:45:00Z".parse().unwrap();
        let mut session = Session::begin("s", SessionKind::Diagnosis, "graph", "HighErrorRate", Lang::En, at);
        session.cause = cause.map(str::to_owned);
        let mut record = SessionRecord::begin(session);
        record.feedback.extend(feedback);
        Memory { times: 3, last: Some(record) }
    }

    fn judged(judgement: Judgement, cause: Option<&str>, note: Option<&str>) -> Option<Feedback> {
        let (cause, note) = (cause.map(str::to_owned), note.map(str::to_owned));
        Some(Feedback { judgement, cause, note, at: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn what_people_said_weighs_more_than_what_was_named() {
        let told = |memory: &Memory| tell(memory, Lang::En, &TimeZone::UTC);
        let last = "3rd time in 7 days; last time (2026-03-04 06:45)";
        assert_eq!(told(&memory(Some("OOM"), None)), format!("{last} the cause was OOM, not confirmed"));
        let right = judged(Judgement::Right, None, Some("restarted stock"));
        assert_eq!(told(&memory(Some("OOM"), right)), format!("{last} the cause was OOM, confirmed; restarted stock"));
        let corrected = judged(Judgement::Wrong, Some("a full disk"), None);
        assert_eq!(told(&memory(Some("OOM"), corrected)), format!("{last} the cause was a full disk"));
        let wrong = judged(Judgement::Wrong, None, None);
        assert_eq!(told(&memory(Some("OOM"), wrong)), format!("{last} the diagnosis was OOM, which was wrong"));
        assert_eq!(told(&Memory { times: 11, last: None }), "11th time in 7 days");
        let zh = tell(&memory(Some("内存不足"), None), Lang::Zh, &TimeZone::UTC);
        assert_eq!(zh, "7 天内第 3 次；上次（2026-03-04 06:45）原因是：内存不足，未确认");
    }
}
