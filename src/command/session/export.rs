//! A session as a file: JSON, or Markdown with the report, the timeline and every call.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use jiff::tz::TimeZone;

use super::view;
use crate::command::{Context, bad_input};
use crate::domain::text::clean_line;
use crate::domain::{Diagnosis, Lang, Role, SessionRecord};
use crate::ui::{report, timeline};

const CELL_CHARS: usize = 160;
/// Columns of a timeline in a file.
const COLUMNS: usize = 110;

/// The `oncall.session/v1` document.
pub fn json(record: &SessionRecord) -> anyhow::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(record)?))
}

/// Report, timeline, calls and feedback.
pub fn markdown(record: &SessionRecord, lang: Lang, zone: &TimeZone) -> String {
    let mut text = match diagnosis(record) {
        Some(diagnosis) => report::markdown(&diagnosis, zone),
        None => conversation(record, lang),
    };
    let _ = writeln!(text, "\n## {}\n\n```", lang.pick("Timeline", "时间线"));
    text.push_str(&timeline::timeline(record, lang, zone, COLUMNS));
    text.push_str("```\n");
    if !record.tool_invocations.is_empty() {
        text.push_str(&calls(record, lang));
    }
    if !record.feedback.is_empty() {
        let _ = writeln!(text, "\n## {}\n", lang.pick("Feedback", "反馈"));
        for feedback in &record.feedback {
            let _ = writeln!(text, "- {}", view::feedback_line(feedback, lang, zone));
        }
    }
    text
}

/// The stored document, where this version can read it.
pub fn diagnosis(record: &SessionRecord) -> Option<Diagnosis> {
    serde_json::from_value(record.diagnosis.clone()?).ok()
}

fn conversation(record: &SessionRecord, lang: Lang) -> String {
    let mut text = format!("# {}\n", clean_line(&record.session.title, 400));
    for message in record.messages.iter().filter(|message| message.role != Role::Thought) {
        let who = match message.role {
            Role::User => lang.pick("Question", "问题"),
            Role::Warning => lang.pick("Warning", "警告"),
            Role::Assistant | Role::Thought => lang.pick("Answer", "回答"),
        };
        let _ = writeln!(text, "\n**{who}**\n\n{}", message.content.trim());
    }
    text
}

fn calls(record: &SessionRecord, lang: Lang) -> String {
    let mut text = format!("\n## {}\n\n", lang.pick("Tool calls", "工具调用"));
    text.push_str(lang.pick(
        "| tool | arguments | status | took | answered by |\n| --- | --- | --- | --- | --- |\n",
        "| 工具 | 参数 | 状态 | 用时 | 来源 |\n| --- | --- | --- | --- | --- |\n",
    ));
    for call in &record.tool_invocations {
        let cell = |text: &str| clean_line(text, CELL_CHARS).replace('|', "\\|");
        let status = call.error.as_deref().unwrap_or_else(|| call.status.id());
        let took = call.milliseconds.map_or_else(String::new, |spent| timeline::duration(spent * 1000));
        let _ = writeln!(
            text,
            "| {} | `{}` | {} | {took} | {} |",
            cell(&call.tool),
            cell(&call.arguments.to_string()).replace('`', "'"),
            cell(status),
            cell(call.served_by.as_deref().unwrap_or("-"))
        );
    }
    text
}

/// To a file that nobody else can read, or to standard output.
///
/// # Errors
/// A file that cannot be written: exit 2.
pub fn write_out(text: &str, file: Option<&Path>, context: &Context) -> anyhow::Result<()> {
    let Some(path) = file else { return Ok(context.print(text)?) };
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| bad_input(format!("cannot write {}: {error}", path.display())))?;
    let lang = context.lang.unwrap_or_default();
    context.note(&lang.pick(format!("wrote {}", path.display()), format!("已写入 {}", path.display())));
    Ok(())
}
