//! The live view of a diagnosis: a few lines below what the terminal has shown so far. Plan, running calls, the latest
//! findings, a growing timeline; what it costs.

use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::{fitting, status};
use crate::ui::tui::rows::{self, Target, evidence, plan, since, spent};
use crate::ui::tui::state::App;
use crate::ui::tui::state::run::{NoteKind, Phase};
use crate::ui::tui::text::{cut, pad, pad_left};

/// Lines at most, whatever the screen holds.
const MAX_LINES: usize = 16;
const STEPS: usize = 5;
const CALLS: usize = 4;
const FINDINGS: usize = 3;
const BARS: usize = 3;
const LABEL: usize = 6;

/// The lines for a screen of this size; never more than leave room for what was there before.
pub fn lines(app: &App) -> Vec<Line<'static>> {
    let columns = usize::from(app.size.0).saturating_sub(1).max(20);
    let room = usize::from(app.size.1).saturating_sub(2).clamp(2, MAX_LINES);
    let mut lines = vec![head(app, columns)];
    let mut more = Vec::new();
    more.extend(steps(app, columns));
    more.extend(calls(app, columns));
    more.extend(findings(app, columns));
    more.extend(bars(app, columns));
    more.truncate(room.saturating_sub(2));
    lines.extend(more);
    lines.push(foot(app, columns));
    lines
}

fn head(app: &App, columns: usize) -> Line<'static> {
    let facts = fitting(status(app), columns * 2 / 3);
    let room = columns.saturating_sub(facts.width() + 1);
    let title = if app.run.title.is_empty() { "oncall".to_owned() } else { app.run.title.clone() };
    Line::from(vec![
        Span::styled(pad(&cut(&title, room), room), app.theme.heading),
        Span::styled(format!(" {facts}"), app.theme.dim),
    ])
}

/// The steps around the one under way: those that come, and as many of those before as there is room for.
fn steps(app: &App, columns: usize) -> Vec<Line<'static>> {
    let steps = &app.run.plan.steps;
    let under_way = steps.iter().position(|step| step.state == crate::domain::StepState::Running);
    let at = under_way.unwrap_or_else(|| steps.iter().filter(|step| step.conclusion.is_some()).count());
    let first = at.saturating_sub(STEPS - 2).min(steps.len().saturating_sub(STEPS));
    steps.iter().skip(first).take(STEPS).map(|step| plan::head(app, step, columns)).collect()
}

fn labelled(app: &App, n: usize, label: &str, mut line: Line<'static>) -> Line<'static> {
    let label = if n == 0 { pad(label, LABEL) } else { " ".repeat(LABEL) };
    line.spans.insert(0, Span::styled(label, app.theme.dim));
    line
}

fn calls(app: &App, columns: usize) -> Vec<Line<'static>> {
    let running: Vec<_> = app.run.running_calls().collect();
    let hidden = running.len().saturating_sub(CALLS);
    let label = app.lang.pick("calls", "调用");
    let mut lines: Vec<Line<'static>> = running
        .iter()
        .take(CALLS)
        .enumerate()
        .map(|(n, call)| {
            let took = pad_left(&spent(since(app, call.started)), 8);
            let text = cut(&call.text, columns.saturating_sub(LABEL + 9));
            let line =
                Line::from(vec![Span::styled(format!("{took} "), app.theme.dim), Span::styled(text, app.theme.accent)]);
            labelled(app, n, label, line)
        })
        .collect();
    if hidden > 0 {
        let said = app.lang.pick(format!("and {hidden} more"), format!("另有 {hidden} 个"));
        lines.push(labelled(app, 1, "", Line::styled(said, app.theme.dim)));
    }
    lines
}

/// The newest findings, and before them a warning that is newer still.
fn findings(app: &App, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(note) = app.run.notes.last().filter(|note| note.kind == NoteKind::Warning) {
        let text = cut(&note.text, columns.saturating_sub(LABEL));
        lines.push(labelled(app, 0, app.lang.pick("warns", "警告"), Line::styled(text, app.theme.warn)));
    }
    let newest = app.run.evidence.iter().rev().take(FINDINGS).enumerate();
    lines.extend(newest.map(|(n, one)| {
        let line = evidence::row(app, one, columns.saturating_sub(LABEL));
        labelled(app, n, app.lang.pick("found", "发现"), line)
    }));
    lines
}

/// The last bars of the timeline.
fn bars(app: &App, columns: usize) -> Vec<Line<'static>> {
    let rows = rows::timeline::rows(app, columns.saturating_sub(LABEL));
    let nodes: Vec<Line<'static>> =
        rows.into_iter().filter(|row| matches!(row.target, Target::Node(_))).map(|row| row.line).collect();
    let first = nodes.len().saturating_sub(BARS);
    nodes
        .into_iter()
        .skip(first)
        .enumerate()
        .map(|(n, line)| labelled(app, n, app.lang.pick("time", "时间"), line))
        .collect()
}

fn foot(app: &App, columns: usize) -> Line<'static> {
    let keys = match app.run.phase {
        Phase::Stopping => app.lang.pick("stopping with the best answer so far", "正在停止，将给出目前的最佳结论"),
        _ => app.lang.pick("Esc stops, Ctrl-C twice leaves, f full screen", "Esc 停止，按两次 Ctrl-C 退出，f 全屏"),
    };
    match &app.notice {
        Some(notice) => Line::styled(cut(notice, columns), app.theme.warn),
        None => Line::styled(cut(keys, columns), app.theme.dim),
    }
}
