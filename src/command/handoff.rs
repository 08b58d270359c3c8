//! `oncall handoff`: what a shift saw, as Markdown for the next one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

use super::session::{instant, open_existing, trouble};
use super::{Context, Exit};
use crate::domain::text::clean_line;
use crate::domain::{Judgement, Lang, Session, SessionKind, SessionRecord, SessionStatus};
use crate::session::{Filter, SessionStore};
use crate::ui::timeline;

const CELL_CHARS: usize = 120;
/// Before the shift: an alert that fired then too is a recurring one.
const LOOK_BACK: SignedDuration = SignedDuration::from_hours(24 * 7);
/// So many in a row, each within [`FLAPPING_GAP`] of the one before, are one alert that flaps.
const FLAPPING: usize = 3;
const FLAPPING_GAP: SignedDuration = SignedDuration::from_mins(30);

#[derive(Debug, Args)]
pub struct HandoffArgs {
    /// The beginning of the shift: an age such as 8h, or a time
    #[arg(long, value_name = "TIME", default_value = "8h")]
    since: String,
}

pub async fn run(args: HandoffArgs, context: &Context) -> anyhow::Result<Exit> {
    let now = ZonedDateTime::now();
    let since = instant(&args.since, "--since", &now)?;
    let mut shift = Vec::new();
    let mut before = Vec::new();
    if let Some(store) = open_existing(context).await? {
        let from = since.checked_sub(LOOK_BACK).unwrap_or(Timestamp::MIN);
        let filter = Filter { since: Some(from), ..Filter::default() };
        for session in store.list(&filter).await.map_err(trouble)? {
            if session.started_at < since {
                before.push(session);
            } else if let Some(record) = store.read(&session.id).await.map_err(trouble)? {
                shift.push(record);
            }
        }
        store.close().await;
    }
    // In the order in which things happened.
    shift.reverse();
    let lang = context.lang.unwrap_or_default();
    context.print(&markdown(&shift, &before, since, now.timestamp(), lang, &TimeZone::system()))?;
    Ok(Exit::Success)
}

fn markdown(
    shift: &[SessionRecord],
    before: &[Session],
    since: Timestamp,
    until: Timestamp,
    lang: Lang,
    zone: &TimeZone,
) -> String {
    let clock = |at: Timestamp| at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string();
    let (from, to) = (clock(since), clock(until));
    let mut text = lang.pick(format!("# Handoff, {from} to {to}\n"), format!("# 交接班：{from} 至 {to}\n"));
    let of_kind = |kind| shift.iter().filter(move |record| record.session.kind == kind);
    let (alerts, questions) = (of_kind(SessionKind::Diagnosis).count(), of_kind(SessionKind::Question).count());
    let _ = match lang {
        Lang::En => writeln!(text, "\n{alerts} alerts diagnosed, {questions} questions answered."),
        Lang::Zh => writeln!(text, "\n诊断告警 {alerts} 条，回答问题 {questions} 个。"),
    };
    if alerts > 0 {
        let _ = writeln!(text, "\n## {}\n", lang.pick("Diagnoses", "诊断"));
        text.push_str(lang.pick(
            "| time | alert | service | cause | judged | session |\n| --- | --- | --- | --- | --- | --- |\n",
            "| 时间 | 告警 | 服务 | 根因 | 判定 | 会话 |\n| --- | --- | --- | --- | --- | --- |\n",
        ));
        of_kind(SessionKind::Diagnosis).for_each(|record| text.push_str(&row(record, lang, zone)));
    }
    section(&mut text, lang.pick("Open", "待处理"), shift.iter().filter_map(|record| open(record, lang)).collect());
    section(&mut text, lang.pick("Recurring", "反复出现"), recurring(shift, before, lang));
    let asked = of_kind(SessionKind::Question).map(|record| cell(&record.session.title)).collect();
    section(&mut text, lang.pick("Questions", "问题"), asked);
    text
}

fn section(text: &mut String, heading: &str, lines: Vec<String>) {
    if !lines.is_empty() {
        let _ = writeln!(text, "\n## {heading}\n");
        lines.iter().for_each(|line| _ = writeln!(text, "- {line}"));
    }
}

fn cell(text: &str) -> String {
    clean_line(text, CELL_CHARS).replace('|', "\\|")
}

fn row(record: &SessionRecord, lang: Lang, zone: &TimeZone) -> String {
    let session = &record.session;
    let at = session.started_at.to_zoned_datetime(zone.clone()).strftime("%H:%M");
    let cause = match (&session.cause, session.confidence) {
        (Some(cause), Some(confidence)) => format!("{} ({:.0} %)", cell(cause), confidence * 100.0),
        (Some(cause), None) => cell(cause),
        (None, _) => lang.pick("unknown", "未知").to_owned(),
    };
    let judged = match record.feedback.last().map(|feedback| feedback.judgement) {
        Some(Judgement::Right) => lang.pick("right", "正确"),
        Some(Judgement::Wrong) => lang.pick("wrong", "错误"),
        None => "-",
    };
    let service = session.service.as_deref().map_or_else(|| "-".to_owned(), cell);
    format!("| {at} | {} | {service} | {cause} | {judged} | {} |\n", cell(&session.title), session.id)
}

/// Why somebody has to look at a session again.
fn open(record: &SessionRecord, lang: Lang) -> Option<String> {
    let session = &record.session;
    let last = record.feedback.last();
    let why = match session.status {
        // Somebody said what it was: nothing is open.
        _ if last.is_some_and(|feedback| feedback.judgement == Judgement::Right || feedback.cause.is_some()) => {
            return None;
        }
        _ if last.is_some() => {
            lang.pick("the diagnosis was wrong, the cause is not known", "诊断有误，原因未知").to_owned()
        }
        SessionStatus::Complete if session.kind == SessionKind::Question || session.cause.is_some() => return None,
        SessionStatus::Complete => lang.pick("no cause was found", "未找到根因").to_owned(),
        status => match &session.status_reason {
            Some(reason) => format!("{}: {}", timeline::status(status, lang), cell(reason)),
            None => timeline::status(status, lang).to_owned(),
        },
    };
    let service = session.service.as_ref().map_or_else(String::new, |service| format!(" ({})", cell(service)));
    Some(format!("{}{service}: {why} `{}`", cell(&session.title), session.id))
}

/// Alerts of the shift that came more than once, in it or in the week before it; the most frequent first.
fn recurring(shift: &[SessionRecord], before: &[Session], lang: Lang) -> Vec<String> {
    let mut times: BTreeMap<(&str, &str), Vec<Timestamp>> = BTreeMap::new();
    let all: Vec<&Session> = before.iter().rev().chain(shift.iter().map(|record| &record.session)).collect();
    for session in all.iter().filter(|session| session.kind == SessionKind::Diagnosis) {
        let service = session.service.as_deref().unwrap_or_default();
        times.entry((session.title.as_str(), service)).or_default().push(session.started_at);
    }
    let is_in_shift = |title: &str, service: &str| {
        let sessions = shift.iter().map(|record| &record.session);
        sessions.into_iter().any(|s| s.title == title && s.service.as_deref().unwrap_or_default() == service)
    };
    let mut found: Vec<_> =
        times.into_iter().filter(|((title, service), at)| at.len() > 1 && is_in_shift(title, service)).collect();
    found.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then(a.0.cmp(&b.0)));
    let tell = |((title, service), mut at): ((&str, &str), Vec<Timestamp>)| {
        at.sort_unstable();
        let n = at.len();
        let service = if service.is_empty() { String::new() } else { format!(" ({})", cell(service)) };
        let flapping = if is_flapping(&at) { lang.pick(", flapping", "，抖动") } else { "" };
        lang.pick(
            format!("{}{service}: {n} times in 7 days{flapping}", cell(title)),
            format!("{}{service}：7 天内 {n} 次{flapping}", cell(title)),
        )
    };
    found.into_iter().map(tell).collect()
}

/// Whether some of these times, in order, follow each other closely.
fn is_flapping(at: &[Timestamp]) -> bool {
    at.windows(FLAPPING).any(|run| run.windows(2).all(|pair| pair[1].duration_since(pair[0]) <= FLAPPING_GAP))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_mins(minutes)).unwrap()
    }

    fn record(minutes: i64, title: &str, cause: Option<&str>) -> SessionRecord {
        let id = format!("id-{minutes}");
        let mut session = Session::begin(&id, SessionKind::Diagnosis, "graph", title, Lang::En, at(minutes));
        session.service = Some("cart".into());
        session.status = SessionStatus::Complete;
        session.cause = cause.map(str::to_owned);
        session.confidence = cause.map(|_| 0.9);
        SessionRecord::begin(session)
    }

    #[test]
    fn a_shift_is_told_with_what_is_open_and_what_recurs() {
        let shift = [record(600, "HighErrorRate", Some("out of memory")), record(620, "HighErrorRate", None)];
        let before = [record(590, "HighErrorRate", None).session, record(10, "DiskFull", None).session];
        for lang in [Lang::En, Lang::Zh] {
            let text = markdown(&shift, &before, at(595), at(1080), lang, &TimeZone::UTC);
            insta::assert_snapshot!(format!("handoff_{}", lang.pick("en", "zh")), text);
        }
    }

    #[test]
    fn an_alert_flaps_when_it_comes_back_soon_and_again() {
        assert!(is_flapping(&[at(0), at(20), at(45)]));
        assert!(!is_flapping(&[at(0), at(20), at(90)]));
        assert!(!is_flapping(&[at(0), at(5)]));
    }
}
