//! A draft of a post-mortem: what the evidence tells is filled in, what only people know is asked for.

use std::fmt::Write as _;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::export::diagnosis;
use crate::domain::text::clean_line;
use crate::domain::{Diagnosis, Finding, Lang, SessionRecord};

const LINE_CHARS: usize = 300;
/// Lines of the timeline.
const MAX_LINES: usize = 40;

/// The draft; `None` for a session without a diagnosis.
pub fn draft(record: &SessionRecord, lang: Lang, zone: &TimeZone) -> Option<String> {
    let diagnosis = diagnosis(record)?;
    let mut text = format!("# {}: {}\n", lang.pick("Post-mortem", "事后复盘"), line(&diagnosis.alert.name));
    let service = diagnosis.facts.service.as_deref().unwrap_or("?");
    let _ = writeln!(text, "\n{}: {}  ", lang.pick("Service", "服务"), line(service));
    let _ = writeln!(text, "{}: {}", lang.pick("Session", "会话"), record.session.id);
    let _ = writeln!(text, "\n## {}\n\n{}", lang.pick("Summary", "概述"), line(&diagnosis.summary));
    cause(&mut text, record, &diagnosis, lang);
    let _ = writeln!(text, "\n## {}\n", lang.pick("Timeline", "时间线"));
    for (at, what) in timeline(&diagnosis, lang) {
        let at = at.to_zoned_datetime(zone.clone()).strftime("%Y-%m-%d %H:%M:%S %:z");
        let _ = writeln!(text, "- {at} {what}");
    }
    for (heading, ask) in asked(lang) {
        let _ = writeln!(text, "\n## {heading}\n\n_{ask}_");
    }
    if !diagnosis.next_steps.is_empty() {
        let _ = writeln!(text, "\n## {}\n", lang.pick("Actions", "改进措施"));
        for step in &diagnosis.next_steps {
            let _ = writeln!(text, "- [ ] {}", line(&step.text));
        }
    }
    Some(text)
}

fn line(text: &str) -> String {
    clean_line(text, LINE_CHARS)
}

/// What was named as the cause, what speaks for it, and what people said of it afterwards.
fn cause(text: &mut String, record: &SessionRecord, diagnosis: &Diagnosis, lang: Lang) {
    let _ = writeln!(text, "\n## {}\n", lang.pick("Root cause", "根因"));
    match &diagnosis.root_cause {
        Some(cause) => {
            let _ = writeln!(text, "{} ({:.0} %)\n", line(&cause.title), cause.confidence * 100.0);
            for id in &cause.evidence {
                if let Some(evidence) = diagnosis.evidence.iter().find(|evidence| evidence.id == *id) {
                    let _ = writeln!(text, "- {id}: {}", line(&evidence.summary));
                }
            }
        }
        None => _ = writeln!(text, "{}", lang.pick("The evidence did not show one.", "证据未能表明根因。")),
    }
    for feedback in &record.feedback {
        let said = [&feedback.cause, &feedback.note].into_iter().flatten().map(|said| line(said)).collect::<Vec<_>>();
        if !said.is_empty() {
            let _ = writeln!(text, "\n{}: {}", lang.pick("Said afterwards", "事后说明"), said.join("; "));
        }
    }
}

/// What happened when, as the evidence dates it.
fn timeline(diagnosis: &Diagnosis, lang: Lang) -> Vec<(Timestamp, String)> {
    let mut events: Vec<(Timestamp, String)> = Vec::new();
    for evidence in &diagnosis.evidence {
        let at = match &evidence.data {
            Finding::Series(series) => series.onset,
            Finding::Pattern(pattern) => pattern.first,
            Finding::Change(change) => Some(change.time),
            _ => None,
        };
        if let Some(at) = at {
            events.push((at, format!("{} [{}]", line(&evidence.summary), evidence.id)));
        }
    }
    let alert = &diagnosis.alert;
    let name = line(&alert.name);
    events.extend(alert.starts_at.map(|at| (at, lang.pick(format!("{name} fires"), format!("{name} 触发")))));
    events.extend(alert.ends_at.map(|at| (at, lang.pick(format!("{name} resolves"), format!("{name} 恢复")))));
    events.sort();
    events.dedup();
    events.truncate(MAX_LINES);
    events
}

/// What no evidence tells.
fn asked(lang: Lang) -> [(&'static str, &'static str); 3] {
    lang.pick(
        [
            ("Impact", "Who noticed, how many, for how long?"),
            ("What went well, what did not", "How was it found, and what delayed the fix?"),
            ("Fix", "What ended it, and is it lasting?"),
        ],
        [
            ("影响", "影响了哪些用户、多少、多久？"),
            ("做得好与不好的", "如何发现的？是什么拖延了修复？"),
            ("修复", "如何恢复的？是否治本？"),
        ],
    )
}
