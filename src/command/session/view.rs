//! Sessions for people: a table of many, and one with everything that happened.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use unicode_width::UnicodeWidthStr;

use crate::domain::text::clean_line;
use crate::domain::{Feedback, Judgement, Lang, Role, Session, SessionRecord};
use crate::ui::columns::{cut, pad};
use crate::ui::timeline;

/// Characters of an id that tell sessions of different milliseconds apart.
pub const SHORT_ID: usize = 13;
const CELL_CHARS: usize = 40;
/// Between two columns.
const GAP: usize = 2;
/// Columns that a cell of text keeps.
const LEAST_CELL: usize = 8;
const MESSAGE_CHARS: usize = 4000;

/// One line per session. Where it has to fit into so many display columns, dates lose their year and the longest cells of
/// text their ends.
pub fn table(sessions: &[Session], lang: Lang, zone: &TimeZone, columns: Option<usize>) -> String {
    let heads = lang.pick(
        ["ID", "STARTED", "STATUS", "TOOK", "SERVICE", "TITLE", "CAUSE"],
        ["编号", "开始时间", "状态", "用时", "服务", "标题", "根因"],
    );
    let table = |time_format: &str| -> Vec<[String; 7]> {
        let rows = sessions.iter().map(|session| row(session, lang, zone, time_format));
        std::iter::once(heads.map(str::to_owned)).chain(rows).collect()
    };
    let mut rows = table("%Y-%m-%d %H:%M:%S");
    if let Some(columns) = columns.filter(|columns| total_width(&rows) > *columns) {
        rows = table("%m-%d %H:%M");
        let over = total_width(&rows).saturating_sub(columns);
        shorten(&mut rows, over);
    }
    let widths = widths(&rows);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            line.push_str(&pad(cell, width + GAP));
        }
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn widths(rows: &[[String; 7]]) -> [usize; 7] {
    std::array::from_fn(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0))
}

fn total_width(rows: &[[String; 7]]) -> usize {
    widths(rows).iter().sum::<usize>() + 6 * GAP
}

/// Takes columns from service, title and cause, always from the widest of them.
fn shorten(rows: &mut [[String; 7]], over: usize) {
    let mut widths = widths(rows);
    for _ in 0..over {
        let widest = (4..7).max_by_key(|&column| widths[column]).filter(|&column| widths[column] > LEAST_CELL);
        match widest {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    for row in rows {
        for column in 4..7 {
            row[column] = cut(&row[column], widths[column]);
        }
    }
}

fn row(session: &Session, lang: Lang, zone: &TimeZone, time_format: &str) -> [String; 7] {
    let spent = session.ended_at.map_or_else(String::new, |end| {
        timeline::duration(u64::try_from(end.duration_since(session.started_at).as_micros()).unwrap_or(0))
    });
    [
        session.id.chars().take(SHORT_ID).collect(),
        session.started_at.to_zoned_datetime(zone.clone()).strftime(time_format).to_string(),
        timeline::status(session.status, lang).to_owned(),
        spent,
        clean_line(session.service.as_deref().unwrap_or("-"), CELL_CHARS),
        clean_line(&session.title, CELL_CHARS),
        cause(session).unwrap_or_else(|| "-".to_owned()),
    ]
}

/// `oom_killed at cart (92 %)`.
pub fn cause(session: &Session) -> Option<String> {
    let category = session.category.as_ref()?;
    let service = session.cause_service.as_ref().map_or_else(String::new, |service| format!(" @ {service}"));
    let confidence = session.confidence.map_or_else(String::new, |value| format!(" ({:.0} %)", value * 100.0));
    Some(format!("{category}{service}{confidence}"))
}

/// Timeline, what was said, feedback.
pub fn show(record: &SessionRecord, lang: Lang, zone: &TimeZone, columns: usize) -> String {
    let mut text = timeline::timeline(record, lang, zone, columns);
    if let Some(reason) = &record.session.status_reason {
        let _ = writeln!(text, "\n{}: {reason}", timeline::status(record.session.status, lang));
    }
    if let Some(cause) = cause(&record.session) {
        let title = record.session.cause.clone().unwrap_or_default();
        let _ = writeln!(text, "\n{}: {title}\n  {cause}", lang.pick("Root cause", "根因"));
    }
    for message in record.messages.iter().filter(|message| matches!(message.role, Role::Assistant | Role::Warning)) {
        let label = match message.role {
            Role::Warning => lang.pick("Warning", "警告"),
            _ => lang.pick("Answer", "回答"),
        };
        let _ = writeln!(text, "\n{label}: {}", crate::domain::text::clean(message.content.trim(), MESSAGE_CHARS));
    }
    for feedback in &record.feedback {
        let _ = writeln!(text, "\n{}", feedback_line(feedback, lang, zone));
    }
    text
}

pub fn feedback_line(feedback: &Feedback, lang: Lang, zone: &TimeZone) -> String {
    let at = feedback.at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M");
    let verdict = match feedback.judgement {
        Judgement::Right => lang.pick("right", "正确"),
        Judgement::Wrong => lang.pick("wrong", "错误"),
    };
    let mut line = format!("{} {at}: {verdict}", lang.pick("Feedback", "反馈"));
    if let Some(cause) = &feedback.cause {
        let _ = write!(line, "; {}: {}", lang.pick("cause", "原因"), clean_line(cause, 400));
    }
    if let Some(note) = &feedback.note {
        let _ = write!(line, "; {}", clean_line(note, 400));
    }
    line
}
