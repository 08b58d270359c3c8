//! The plan: its steps with their state; expanded, why they are asked, what they came to and what they called.

use ratatui::text::{Line, Span};

use super::{Row, Target, evidence_under, is_open, since, spent, spread, under};
use crate::domain::{Step, StepState};
use crate::ui::tui::state::{App, Panel};
use crate::ui::tui::text;
use crate::ui::tui::theme::Theme;

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    for step in &app.run.plan.steps {
        let target = Target::Step(step.id);
        rows.push(Row::new(head(app, step, columns), target.clone()));
        if is_open(app, Panel::Plan, &target) {
            rows.extend(inside(app, step, columns, &target));
        }
    }
    for reason in &app.run.plan.revisions {
        let said = app.lang.pick("revised", "调整");
        let line = format!("{said}: {}", text::line(reason));
        rows.push(Row::new(Line::styled(text::cut(&line, columns), app.theme.dim), Target::Nothing));
    }
    rows
}

/// `[x]` done, `[>]` under way, `[ ]` to come, `[!]` failed, `[-]` left out.
pub fn mark(state: StepState, theme: &Theme) -> Span<'static> {
    match state {
        StepState::Pending => Span::styled("[ ]", theme.dim),
        StepState::Running => Span::styled("[>]", theme.accent),
        StepState::Done => Span::styled("[x]", theme.ok),
        StepState::Failed => Span::styled("[!]", theme.error),
        StepState::Skipped => Span::styled("[-]", theme.dim),
    }
}

/// One line for a step.
pub fn head(app: &App, step: &Step, columns: usize) -> Line<'static> {
    let took = took(app, step.id);
    let room = columns.saturating_sub(4 + took.len() + 1);
    let question = text::cut(&format!("{} {}", step.id, text::line(&step.question)), room);
    let style = match step.state {
        StepState::Pending | StepState::Skipped => app.theme.dim,
        _ => app.theme.text,
    };
    let left = vec![mark(step.state, &app.theme), Span::styled(format!(" {question}"), style)];
    spread(left, took, app.theme.dim, columns)
}

fn took(app: &App, step: u32) -> String {
    let run = app.run.nodes.iter().rev().find(|node| node.step == Some(step));
    run.map_or_else(String::new, |node| spent(node.milliseconds.unwrap_or_else(|| since(app, node.started))))
}

fn inside(app: &App, step: &Step, columns: usize, target: &Target) -> Vec<Row> {
    let lang = app.lang;
    let mut rows = under(app, &text::line(&step.question), "", columns, target);
    rows.extend(under(app, &text::line(&step.reason), lang.pick("why", "原因"), columns, target));
    let conclusion = step.conclusion.as_deref().map(text::line).unwrap_or_default();
    rows.extend(under(app, &conclusion, lang.pick("found", "结论"), columns, target));
    let calls: Vec<String> =
        app.run.calls.iter().filter(|call| call.step == Some(step.id)).map(|c| c.text.clone()).collect();
    let planned = step.calls.iter().map(crate::reason::words::call);
    let calls: Vec<String> = if calls.is_empty() { planned.collect() } else { calls };
    for call in calls {
        rows.extend(under(app, &call, lang.pick("call", "调用"), columns, target));
    }
    rows.extend(step.evidence.iter().map(|id| evidence_under(app, id, columns)));
    rows
}
