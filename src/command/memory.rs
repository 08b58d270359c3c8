//! Incident memory: what the session store and the knowledge base remember of an alert, and what feedback adds to it.
//!
//! In: an alert, before its diagnosis. Out: its [`History`]: earlier sessions of the same fingerprint, then incidents of
//! known cause whose alert reads alike. Nothing is remembered of a store that cannot be read: the diagnosis goes on
//! without, and the recording says what is wrong with the store.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::{Context, recording};
use crate::domain::history::symptom_text;
use crate::domain::{Alert, Category, Diagnosis, History, Judgement, Matched, Precedent, Session, SessionRecord};
use crate::knowledge::{Knowledge, KnownIncident};
use crate::session::{Filter, SessionStore, SqlStore, StoreError};

/// Earlier firings are counted over so many days.
const LOOK_BACK_DAYS: u32 = 7;
/// An alert that begins so often within so long comes and goes.
const FLAPPING_TIMES: usize = 4;
const FLAPPING_WITHIN: SignedDuration = SignedDuration::from_hours(6);
/// Judged sessions that are read, the newest; what is older has been told before.
const READ_SESSIONS: usize = 12;
const MAX_PRECEDENTS: usize = 3;
/// Two starts of one firing, told by senders with blurred clocks.
const SAME_FIRING: SignedDuration = SignedDuration::from_secs(5);

/// What is remembered of an alert; `None` when it is new.
pub async fn recall(alert: &Alert, knowledge: Option<&Knowledge>, context: &Context) -> Option<History> {
    let mut history = match open(context).await {
        Some(store) => {
            let known = of_sessions(&store, alert).await.unwrap_or_default();
            store.close().await;
            known
        }
        None => History { times: 1, days: LOOK_BACK_DAYS, ..History::default() },
    };
    if let Some(knowledge) = knowledge {
        let alike = knowledge.alike(&symptom_text(alert), MAX_PRECEDENTS).await;
        add_alike(&mut history, alike.unwrap_or_default(), &alert.fingerprint);
    }
    (!history.is_new()).then_some(history)
}

async fn open(context: &Context) -> Option<SqlStore> {
    let location = recording::location(context).ok().filter(|location| location.exists())?;
    SqlStore::open_for_reading(&location).await.ok()
}

async fn of_sessions(store: &dyn SessionStore, alert: &Alert) -> Result<History, StoreError> {
    let since = Timestamp::now().checked_sub(look_back()).ok();
    let filter = Filter { since, alert: Some(alert.fingerprint.clone()), ..Filter::default() };
    let mut earlier = store.list(&filter).await?;
    earlier.retain(|session| session.fingerprint.as_deref() == Some(alert.fingerprint.as_str()));
    let starts = firings(alert.starts_at, &earlier);
    let mut history = History {
        times: starts.len().max(1),
        days: LOOK_BACK_DAYS,
        flapping: is_flapping(&starts),
        precedents: Vec::new(),
    };
    let judged = store.list(&Filter { judged: true, limit: Some(READ_SESSIONS), ..filter }).await?;
    let judged_ids: BTreeSet<&str> = judged.iter().map(|session| session.id.as_str()).collect();
    // The same firing, diagnosed again: what nobody judged is no news.
    let is_again = |session: &Session| {
        session.alert_started_at.zip(alert.starts_at).is_none_or(|(earlier, this)| is_same_firing(earlier, this))
    };
    let others = earlier.iter().filter(|session| !judged_ids.contains(session.id.as_str()));
    let mut precedents: Vec<Precedent> = others
        .filter(|session| session.cause.is_some() && !is_again(session))
        .map(|session| precedent(&SessionRecord::begin(session.clone())))
        .collect();
    for session in &judged {
        if session.fingerprint.as_deref() == Some(alert.fingerprint.as_str()) {
            precedents.extend(store.read(&session.id).await?.map(|record| precedent(&record)));
        }
    }
    // What people said first, then the newest.
    precedents.sort_by_key(|one| std::cmp::Reverse((one.judgement.is_some(), one.at)));
    for precedent in precedents {
        let is_said = history.precedents.iter().any(|known| says_the_same(known, &precedent));
        if !is_said && history.precedents.len() < MAX_PRECEDENTS {
            history.precedents.push(precedent);
        }
    }
    Ok(history)
}

fn look_back() -> SignedDuration {
    SignedDuration::from_hours(24 * i64::from(LOOK_BACK_DAYS))
}

/// The instants at which the alert began, each once, in order, up to this time. An alert that does not say when it began
/// cannot be told from itself.
fn firings(begun: Option<Timestamp>, earlier: &[Session]) -> Vec<Timestamp> {
    let Some(begun) = begun else { return Vec::new() };
    let starts: BTreeSet<Timestamp> = earlier.iter().filter_map(|session| session.alert_started_at).collect();
    let mut firings: Vec<Timestamp> = Vec::new();
    for start in starts.into_iter().filter(|start| *start < begun).chain([begun]) {
        let is_new = firings.last().is_none_or(|last| !is_same_firing(*last, start));
        if is_new && begun.duration_since(start) <= look_back() {
            firings.push(start);
        }
    }
    firings
}

fn is_same_firing(a: Timestamp, b: Timestamp) -> bool {
    a.duration_since(b).abs() <= SAME_FIRING
}

/// Whether enough starts lie close together, and the last is among them.
fn is_flapping(starts: &[Timestamp]) -> bool {
    let last = starts.len().checked_sub(FLAPPING_TIMES).and_then(|first| starts.get(first..));
    match last {
        Some([first, .., last]) => last.duration_since(*first) <= FLAPPING_WITHIN,
        _ => false,
    }
}

/// Whether the second adds nothing for a reader.
fn says_the_same(known: &Precedent, other: &Precedent) -> bool {
    (known.cause.as_ref(), known.judgement) == (other.cause.as_ref(), other.judgement)
        && (other.note.is_none() || other.note == known.note)
}

/// Similar incidents behind those of the same alert, as far as they are other ones.
fn add_alike(history: &mut History, alike: Vec<Precedent>, fingerprint: &str) {
    for mut precedent in alike {
        let is_there = history.precedents.iter().any(|known| known.session_id == precedent.session_id);
        if is_there || history.precedents.len() == MAX_PRECEDENTS {
            continue;
        }
        // An old session of this alert that the store has forgotten, or another team's.
        if precedent.fingerprint == fingerprint {
            precedent.matched = Matched::Fingerprint;
            precedent.similarity = None;
        }
        history.precedents.push(precedent);
    }
}

/// A stored session as a precedent; the last feedback is the one that counts.
fn precedent(record: &SessionRecord) -> Precedent {
    let session = &record.session;
    let feedback = record.feedback.last();
    let correction = feedback.and_then(|feedback| feedback.cause.clone());
    let diagnosis = record.diagnosis.as_ref();
    let references = diagnosis.and_then(|document| document.get("references")?.as_array().cloned()).unwrap_or_default();
    let source = |reference: &serde_json::Value| reference.get("source")?.as_str().map(str::to_owned);
    let relied_on: BTreeSet<String> = references.iter().filter_map(source).collect();
    let named = session.category.as_deref().and_then(Category::from_id);
    let is_wrong = feedback.is_some_and(|feedback| feedback.judgement == Judgement::Wrong);
    // A correction may be the identifier of a category, which is as good as a diagnosis of it.
    let category = match &correction {
        Some(text) => Category::from_id(text.trim()),
        None if is_wrong => None,
        None => named,
    };
    Precedent {
        session_id: session.id.clone(),
        at: session.alert_started_at.unwrap_or(session.started_at),
        alert: session.title.clone(),
        fingerprint: session.fingerprint.clone().unwrap_or_default(),
        service: session.service.clone(),
        category,
        refuted: named.filter(|named| is_wrong && Some(*named) != category),
        cause_service: session.cause_service.clone(),
        corrected: correction.is_some(),
        cause: correction.or_else(|| session.cause.clone()),
        judgement: feedback.map(|feedback| feedback.judgement),
        note: feedback.and_then(|feedback| feedback.note.clone()),
        relied_on: relied_on.into_iter().collect(),
        matched: Matched::Fingerprint,
        similarity: None,
    }
}

/// What a session taught, as an incident for the knowledge base; `None` when its cause is not known, or nothing says
/// what its alert was.
pub fn lesson(record: &SessionRecord) -> Option<KnownIncident> {
    let precedent = precedent(record);
    if !precedent.is_known() || precedent.cause.is_none() {
        return None;
    }
    let diagnosis: Diagnosis = serde_json::from_value(record.diagnosis.clone()?).ok()?;
    Some(KnownIncident { symptom: symptom_text(&diagnosis.alert), precedent })
}

/// The documents that a diagnosis of this very alert drew on and went wrong with.
pub fn distrusted(history: &History) -> Vec<String> {
    let of_same = history.precedents.iter().filter(|one| one.matched == Matched::Fingerprint);
    let wrong = of_same.clone().filter(|one| one.judgement == Some(Judgement::Wrong));
    let mut sources: Vec<String> = wrong.flat_map(|one| one.relied_on.clone()).collect();
    // What a right one drew on as well is not to blame.
    let right: Vec<&String> =
        of_same.filter(|one| one.judgement == Some(Judgement::Right)).flat_map(|one| &one.relied_on).collect();
    sources.retain(|source| !right.contains(&source));
    sources.dedup();
    sources
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Feedback, Lang, SessionKind};

    fn at(minutes: i64) -> Timestamp {
        "2026-03-04T06:30:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
    }

    fn session(minutes: Option<i64>) -> Session {
        let mut session = Session::begin("s", SessionKind::Diagnosis, "graph", "HighErrorRate", Lang::En, at(0));
        session.alert_started_at = minutes.map(at);
        session.category = Some("oom_killed".into());
        session.cause = Some("Killed for lack of memory".into());
        session
    }

    fn judged(judgement: Judgement, cause: Option<&str>) -> SessionRecord {
        let mut record = SessionRecord::begin(session(Some(0)));
        let (cause, note) = (cause.map(str::to_owned), Some("more memory".to_owned()));
        record.feedback.push(Feedback { judgement, cause, note, at: at(60) });
        record.diagnosis = Some(serde_json::json!({"references": [{"source": "oom.md"}, {"source": "oom.md"}]}));
        record
    }

    #[test]
    fn a_firing_counts_once_however_often_it_was_diagnosed() {
        let earlier = [session(Some(-60)), session(Some(-60)), session(None), session(Some(-60 * 24 * 8))];
        assert_eq!(firings(Some(at(0)), &earlier), [at(-60), at(0)]);
        assert_eq!(firings(Some(at(-60)), &earlier), [at(-60)]);
        assert_eq!(firings(None, &earlier), []);
    }

    #[test]
    fn four_firings_within_six_hours_are_flapping() {
        assert!(is_flapping(&[at(0), at(5), at(90), at(359)]));
        assert!(!is_flapping(&[at(0), at(5), at(90)]));
        assert!(!is_flapping(&[at(0), at(5), at(90), at(361)]));
        assert!(is_flapping(&[at(-9999), at(0), at(5), at(90), at(360)]));
    }

    #[test]
    fn feedback_says_which_cause_is_known_and_which_was_wrong() {
        let named = Some(Category::OomKilled);
        let of = |judgement, cause| {
            let found = precedent(&judged(judgement, cause));
            (found.category, found.refuted, found.is_known())
        };
        assert_eq!(of(Judgement::Right, None), (named, None, true));
        assert_eq!(of(Judgement::Wrong, None), (None, named, false));
        assert_eq!(of(Judgement::Wrong, Some("the disk was full")), (None, named, true));
        assert_eq!(of(Judgement::Wrong, Some("disk_full")), (Some(Category::DiskFull), named, true));
        assert_eq!(of(Judgement::Right, Some("oom_killed")), (named, None, true));
    }

    #[test]
    fn documents_of_wrong_diagnoses_are_distrusted_unless_a_right_one_used_them() {
        let history = |records: &[SessionRecord]| History {
            times: 2,
            days: 7,
            flapping: false,
            precedents: records.iter().map(precedent).collect(),
        };
        let wrong = judged(Judgement::Wrong, None);
        assert_eq!(distrusted(&history(std::slice::from_ref(&wrong))), ["oom.md"]);
        assert_eq!(distrusted(&history(&[wrong, judged(Judgement::Right, None)])), [""; 0]);
    }
}
