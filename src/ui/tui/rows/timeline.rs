//! The timeline: node runs, steps and calls as bars on one time axis, so that what ran side by side is seen as such.
//! `#` nodes, `-` steps, `=` calls, `x` what failed, `~` what has not ended.

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Row, Target, count, is_open, mark, since, spent, under};
use crate::domain::text::counted;
use crate::event::CallResult;
use crate::reason::words::figure::clock;
use crate::ui::tui::state::run::{CallEnd, CallView, NodeView, NoteKind};
use crate::ui::tui::state::{App, Panel};
use crate::ui::tui::text::{cut, pad, pad_left};

/// Columns of names, at most, and of durations.
const NAMES: usize = 40;
const DURATION: usize = 9;

/// The part of the run that the axis shows, in milliseconds from its start.
struct Axis {
    start: Timestamp,
    from: f64,
    to: f64,
    columns: usize,
}

impl Axis {
    fn of(app: &App, columns: usize) -> Option<Self> {
        let start = app.run.started?;
        let end = if app.is_moving() { app.now.max(app.run.last) } else { app.run.last };
        let whole = end.duration_since(start).as_millis().max(1) as f64;
        let from = whole * app.zoom.1;
        Some(Self { start, from, to: from + whole / f64::from(app.zoom.0), columns })
    }

    fn place(&self, milliseconds: f64) -> f64 {
        (milliseconds - self.from) / (self.to - self.from) * self.columns as f64
    }

    /// Blanks, a bar of at least one mark, blanks; nothing but blanks where it lies outside.
    fn bar(&self, start: Timestamp, milliseconds: u64, symbol: &str) -> (String, String) {
        let begin = start.duration_since(self.start).as_millis() as f64;
        let (a, b) = (self.place(begin), self.place(begin + milliseconds as f64));
        let columns = self.columns as f64;
        if b < 0.0 || a >= columns {
            return (String::new(), String::new());
        }
        // Clamped to the axis, so that the casts cannot leave their range.
        let from = (a.max(0.0) as usize).min(self.columns.saturating_sub(1));
        let to = (b.clamp(0.0, columns).round() as usize).clamp(from + 1, self.columns.max(from + 1));
        (" ".repeat(from), symbol.repeat(to - from))
    }
}

pub fn rows(app: &App, columns: usize) -> Vec<Row> {
    let names = NAMES.min(columns / 3);
    let axis = Axis::of(app, columns.saturating_sub(names + DURATION + 2));
    let Some(axis) = axis.filter(|axis| axis.columns >= 8 && !app.run.nodes.is_empty()) else { return Vec::new() };
    let mut rows = vec![Row::new(axis_line(app, &axis, names), Target::Nothing)];
    let mut told = vec![false; app.run.calls.len()];
    for (index, node) in app.run.nodes.iter().enumerate() {
        let target = Target::Node(index);
        rows.push(Row::new(node_line(app, node, &target, &axis, names), target.clone()));
        if is_open(app, Panel::Timeline, &target) {
            rows.extend(inside(app, node, columns, &target));
        }
        for (call, told) in app.run.calls.iter().zip(&mut told) {
            if !*told && belongs(app, call, node) {
                *told = true;
                rows.push(call_row(app, call, &axis, names));
            }
        }
    }
    for (call, _) in app.run.calls.iter().zip(told).filter(|(_, told)| !told) {
        rows.push(call_row(app, call, &axis, names));
    }
    rows.extend(notes(app, columns));
    rows
}

/// What was thought, warned of and wished, below the bars.
fn notes(app: &App, columns: usize) -> Vec<Row> {
    let mut rows = Vec::new();
    if app.run.notes.is_empty() {
        return rows;
    }
    rows.push(Row::new(Line::default(), Target::Nothing));
    if app.run.notes.dropped > 0 {
        let n = count(app.run.notes.dropped);
        let said = app.lang.pick(
            format!("{n} earlier lines: Enter reads them back from the session"),
            format!("更早的 {n} 行：按 Enter 从会话中读取"),
        );
        rows.push(Row::new(Line::styled(cut(&said, columns), app.theme.accent), Target::ReadBack));
    }
    rows.extend(app.run.notes.iter().map(|note| {
        let style = match note.kind {
            NoteKind::Thought => app.theme.text,
            NoteKind::Warning => app.theme.warn,
            NoteKind::Steering => app.theme.accent,
        };
        let at = clock(note.at, &app.zone);
        let text = cut(&note.text, columns.saturating_sub(at.len() + 1));
        Row::new(
            Line::from(vec![Span::styled(format!("{at} "), app.theme.dim), Span::styled(text, style)]),
            Target::Nothing,
        )
    }));
    rows
}

/// Whether the node made the call: the step by its number, else the node that was under way and calls such tools.
fn belongs(app: &App, call: &CallView, node: &NodeView) -> bool {
    if call.step.is_some() || node.step.is_some() {
        let end = end_of(app, node.started, node.milliseconds);
        return call.step == node.step && (node.started..=end).contains(&call.started);
    }
    let is_retrieval = call.call.tool == "retrieve_knowledge";
    let calls_it = match node.name.as_str() {
        "retrieve_knowledge" => is_retrieval,
        "parallel_query" => !is_retrieval,
        _ => true,
    };
    calls_it && (node.started..=end_of(app, node.started, node.milliseconds)).contains(&call.started)
}

fn end_of(app: &App, start: Timestamp, milliseconds: Option<u64>) -> Timestamp {
    // Whole milliseconds are rounded down: one more covers what began in the last.
    let milliseconds = milliseconds.unwrap_or_else(|| since(app, start)).saturating_add(1);
    let span = jiff::SignedDuration::from_millis(i64::try_from(milliseconds).unwrap_or(i64::MAX));
    start.checked_add(span).unwrap_or(Timestamp::MAX)
}

fn axis_line(app: &App, axis: &Axis, names: usize) -> Line<'static> {
    let told = |milliseconds: f64| spent(milliseconds.max(0.0) as u64);
    let zoom = if app.zoom.0 > 1 { format!("x{}", app.zoom.0) } else { String::new() };
    let to = told(axis.to);
    let from = pad(&told(axis.from), axis.columns.saturating_sub(to.len()));
    let lead = pad(&zoom, names + DURATION + 1);
    Line::styled(format!("{lead}{from}{to}"), app.theme.dim)
}

fn node_line(app: &App, node: &NodeView, target: &Target, axis: &Axis, names: usize) -> Line<'static> {
    let milliseconds = node.milliseconds.unwrap_or_else(|| since(app, node.started));
    let name = match node.step {
        Some(step) => format!("  {} {step}", app.lang.pick("step", "步骤")),
        None => node.name.clone(),
    };
    let (symbol, style) = match (node.milliseconds, node.step) {
        (None, _) => ("~", app.theme.accent),
        (_, Some(_)) => ("-", app.theme.ok),
        (_, None) => ("#", app.theme.ok),
    };
    let name = format!("{}{name}", mark(app, Panel::Timeline, target));
    line(app, &name, axis.bar(node.started, milliseconds, symbol), style, milliseconds, names)
}

fn call_row(app: &App, call: &CallView, axis: &Axis, names: usize) -> Row {
    let milliseconds = call.ended.as_ref().map_or_else(|| since(app, call.started), |end| end.milliseconds);
    let (symbol, style) = match &call.ended {
        None => ("~", app.theme.accent),
        Some(CallEnd { result: CallResult::Failure { .. }, .. }) => ("x", app.theme.error),
        Some(_) => ("=", app.theme.accent),
    };
    let indent = if call.step.is_some() { "      " } else { "    " };
    let name = format!("{indent}{}", call.text);
    let line = line(app, &name, axis.bar(call.started, milliseconds, symbol), style, milliseconds, names);
    Row::new(line, Target::Call(call.id))
}

fn line(
    app: &App,
    name: &str,
    (blank, bar): (String, String),
    style: Style,
    milliseconds: u64,
    names: usize,
) -> Line<'static> {
    Line::from(vec![
        Span::styled(pad(&cut(name, names), names), app.theme.text),
        Span::styled(format!("{} ", pad_left(&spent(milliseconds), DURATION)), app.theme.dim),
        Span::raw(blank),
        Span::styled(bar, style),
    ])
}

fn inside(app: &App, node: &NodeView, columns: usize, target: &Target) -> Vec<Row> {
    let lang = app.lang;
    let mut rows = under(app, &node.reason, lang.pick("why", "原因"), columns, target);
    rows.extend(under(app, &node.decision, lang.pick("decided", "结论"), columns, target));
    let added = lang.pick(
        format!("{}, {} of evidence", counted(node.calls, "call"), counted(node.evidence, "piece")),
        format!("调用 {} 次，证据 {} 条", node.calls, node.evidence),
    );
    rows.extend(under(app, &added, lang.pick("added", "新增"), columns, target));
    if node.input_tokens + node.output_tokens > 0 {
        let tokens = format!("{} + {}", node.input_tokens, node.output_tokens);
        rows.extend(under(app, &tokens, lang.pick("tokens", "令牌"), columns, target));
    }
    rows
}
