//! The conversation: what was said, then the answer as it is being written, then what runs.

use ratatui::text::{Line, Span};

use super::{Row, Target, plan, since, spent};
use crate::domain::StepState;
use crate::ui::tui::markdown;
use crate::ui::tui::state::{App, Who};
use crate::ui::tui::text;

/// Running calls that are shown below the conversation.
const SHOWN_CALLS: usize = 4;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if app.chat.dropped > 0 {
        let n = app.chat.dropped;
        let said = app.lang.pick(
            format!("{n} earlier messages: Enter reads them back from the session"),
            format!("更早的 {n} 条消息：按 Enter 从会话中读取"),
        );
        rows.push(Row::new(Line::styled(said, app.theme.accent), Target::ReadBack));
    }
    for (index, entry) in app.chat.iter().enumerate() {
        let target = Target::Entry(index);
        if !rows.is_empty() {
            rows.push(Row::new(Line::default(), target.clone()));
        }
        rows.extend(said(app, entry.who, &entry.text, columns, &target));
    }
    if app.run.is_running() && app.playback.is_none() {
        rows.extend(under_way(app, columns));
    }
    rows
}

fn said(app: &App, who: Who, text: &str, columns: usize, target: &Target) -> Vec<Row> {
    let (mark, style) = match who {
        Who::User => ("> ", app.theme.accent),
        Who::Assistant => ("", app.theme.text),
        Who::System => ("", app.theme.dim),
    };
    let lines = markdown::render(text, columns.saturating_sub(mark.len()), &app.theme);
    lines
        .into_iter()
        .enumerate()
        .map(|(n, mut told)| {
            if !mark.is_empty() {
                let lead = if n == 0 { mark.to_owned() } else { " ".repeat(mark.len()) };
                told.line.spans.insert(0, Span::styled(lead, style));
            }
            Row::citing(told.line, target.clone(), told.cites)
        })
        .collect()
}

fn under_way(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if !app.chat.is_empty() {
        rows.push(Row::new(Line::default(), Target::Nothing));
    }
    rows.extend(said(app, Who::Assistant, &app.run.answer, columns, &Target::Nothing));
    let steps = app.run.plan.steps.iter().filter(|step| step.state == StepState::Running);
    rows.extend(steps.map(|step| Row::new(plan::head(app, step, columns), Target::Step(step.id))));
    for call in app.run.running_calls().take(SHOWN_CALLS) {
        rows.push(Row::new(super::calls::head(app, call, columns), Target::Call(call.id)));
    }
    let took = app.run.started.map_or_else(String::new, |start| spent(since(app, start)));
    let thinking = app.lang.pick(format!("working, {took}"), format!("处理中，{took}"));
    rows.push(Row::new(Line::styled(text::cut(&thinking, columns), app.theme.dim), Target::Nothing));
    rows
}
