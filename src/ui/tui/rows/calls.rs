//! Calls, oldest first: how each ended and how long it took; expanded, what went in and what came out.

use ratatui::text::{Line, Span};

use super::{Row, Target, count, evidence_under, is_open, since, spent, under};
use crate::domain::Served;
use crate::event::CallResult;
use crate::ui::tui::state::run::{CallEnd, CallView};
use crate::ui::tui::state::{App, Panel};
use crate::ui::tui::text;

/// Lines of arguments and of output that are shown in place; all are shown in full.
const SHOWN_LINES: usize = 12;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if app.run.calls.dropped > 0 {
        let n = count(app.run.calls.dropped);
        let said = app.lang.pick(
            format!("{n} earlier calls: Enter reads them back from the session"),
            format!("更早的 {n} 次调用：按 Enter 从会话中读取"),
        );
        rows.push(Row::new(Line::styled(text::cut(&said, columns), app.theme.accent), Target::ReadBack));
    }
    for call in app.run.calls.iter() {
        let target = Target::Call(call.id);
        rows.push(Row::new(head(app, call, columns), target.clone()));
        if is_open(app, Panel::Calls, &target) {
            rows.extend(inside(app, call, columns, &target));
        }
    }
    rows
}

/// One line for a call.
pub fn head(app: &App, call: &CallView, columns: usize) -> Line<'static> {
    let (mark, style) = match &call.ended {
        None => ("..", app.theme.accent),
        Some(CallEnd { result: CallResult::Failure { .. }, .. }) => ("!!", app.theme.error),
        Some(CallEnd { result: CallResult::Output { served: Served::Stale { .. }, .. }, .. }) => ("~~", app.theme.warn),
        Some(_) => ("ok", app.theme.ok),
    };
    let milliseconds = call.ended.as_ref().map_or_else(|| since(app, call.started), |end| end.milliseconds);
    let took = text::pad_left(&spent(milliseconds), 8);
    let shown = text::cut(&call.text, columns.saturating_sub(12));
    let body = if call.ended.is_none() { app.theme.accent } else { app.theme.text };
    Line::from(vec![
        Span::styled(mark, style),
        Span::styled(format!(" {took} "), app.theme.dim),
        Span::styled(shown, body),
    ])
}

fn inside(app: &App, call: &CallView, columns: usize, target: &Target) -> Vec<Row> {
    let lang = app.lang;
    let mut rows = under(app, &call.server, lang.pick("server", "服务端"), columns, target);
    let arguments = serde_json::to_string_pretty(&call.call.arguments).unwrap_or_default();
    for line in arguments.lines().take(SHOWN_LINES) {
        let line = format!("    {}", text::cut(line, columns.saturating_sub(4)));
        rows.push(Row::new(Line::styled(line, app.theme.code), target.clone()));
    }
    if let Some(end) = &call.ended {
        rows.extend(under(app, &facts(app, end), lang.pick("came", "结果"), columns, target));
        let output = match &end.result {
            CallResult::Output { preview, .. } => preview.as_str(),
            CallResult::Failure { message, .. } => message.as_str(),
        };
        rows.extend(
            under(app, &text::line(output), lang.pick("output", "输出"), columns, target).into_iter().take(SHOWN_LINES),
        );
    }
    let drawn = app.run.evidence.iter().filter(|evidence| evidence.source.ends_with(&call.text));
    rows.extend(drawn.take(SHOWN_LINES).map(|evidence| evidence_under(app, &evidence.id, columns)));
    let full = lang.pick("    Enter here shows it in full", "    在此按 Enter 查看全文");
    rows.push(Row::citing(Line::styled(full, app.theme.accent), target.clone(), vec!["full".into()]));
    rows
}

/// `3 findings, 1,204 bytes, files/logs, 2 attempts`.
fn facts(app: &App, end: &CallEnd) -> String {
    let lang = app.lang;
    let mut facts = Vec::new();
    match &end.result {
        CallResult::Output { source, findings, truncated, served, bytes, retrieval, .. } => {
            let found = count(*findings as u64);
            facts.push(lang.pick(format!("{found} findings"), format!("{found} 条结果")));
            facts.push(lang.pick(format!("{} bytes", count(*bytes as u64)), format!("{} 字节", count(*bytes as u64))));
            facts.push(source.clone());
            if *truncated {
                facts.push(lang.pick("cut", "已截断").to_owned());
            }
            if let Served::Stale { age_seconds } = served {
                facts.push(lang.pick(format!("{age_seconds} s old"), format!("{age_seconds} 秒前")));
            }
            if let Some(quality) = retrieval {
                facts.push(format!("L0 {} -> L1 {}", quality.candidates, quality.kept));
            }
        }
        CallResult::Failure { kind, .. } => facts.push(kind.id().to_owned()),
    }
    if end.attempts > 1 {
        facts.push(lang.pick(format!("{} attempts", end.attempts), format!("尝试 {} 次", end.attempts)));
    }
    facts.join(", ")
}
