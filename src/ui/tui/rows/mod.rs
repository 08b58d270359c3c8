//! What each panel says, row by row: a projection of the state on a width. The view draws a part of the rows; keys find
//! in them what the cursor is on.

use jiff::Timestamp;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::layout;
use super::state::{App, Panel};
use super::text;
use crate::ui::timeline::duration;

mod calls;
mod chat;
pub mod evidence;
mod hypotheses;
pub mod plan;
mod report;
pub mod timeline;

/// Columns of a panel that is not on the screen.
const UNSEEN: usize = 80;

/// What a row is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Nothing,
    Step(u32),
    Call(u64),
    /// A node run by its place.
    Node(usize),
    Evidence(String),
    /// A hypothesis by its place.
    Hypothesis(usize),
    /// An entry of the conversation by its place.
    Entry(usize),
    /// What was before the first row.
    ReadBack,
}

impl Target {
    /// What it is expanded by.
    pub fn key(&self) -> String {
        format!("{self:?}")
    }
}

/// One row.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub line: Line<'static>,
    pub target: Target,
    /// The evidence that Enter opens from here.
    pub cites: Vec<String>,
}

impl Row {
    fn new(line: impl Into<Line<'static>>, target: Target) -> Self {
        Self { line: line.into(), target, cites: Vec::new() }
    }

    fn citing(line: impl Into<Line<'static>>, target: Target, cites: Vec<String>) -> Self {
        Self { line: line.into(), target, cites }
    }
}

/// The rows of a panel.
pub fn of(app: &App, panel: Panel) -> Vec<Row> {
    let columns = layout::body(app, panel).map_or(UNSEEN, |area| usize::from(area.width));
    let rows = match panel {
        Panel::Chat => chat::rows(app, columns),
        Panel::Plan => plan::rows(app, columns),
        Panel::Calls => calls::rows(app, columns),
        Panel::Evidence => evidence::rows(app, columns),
        Panel::Timeline => timeline::rows(app, columns),
        Panel::Hypotheses => hypotheses::rows(app, columns),
        Panel::Report => report::rows(app, columns),
    };
    if rows.is_empty() {
        vec![Row::new(Line::styled(nothing(app, panel), app.theme.dim), Target::Nothing)]
    } else {
        rows
    }
}

fn nothing(app: &App, panel: Panel) -> &'static str {
    let lang = app.lang;
    match panel {
        Panel::Chat => lang.pick("Ask something, or type / for commands.", "请输入问题，或输入 / 查看命令。"),
        Panel::Plan => lang.pick("no plan yet", "暂无计划"),
        Panel::Calls => lang.pick("no calls yet", "暂无调用"),
        Panel::Evidence => lang.pick("no evidence yet", "暂无证据"),
        Panel::Timeline => lang.pick("nothing has run yet", "尚未运行"),
        Panel::Hypotheses => lang.pick("no hypotheses yet", "暂无假设"),
        Panel::Report => lang.pick("the report comes at the end", "报告将在结束时给出"),
    }
}

/// What is copied from a row: all of what it is about.
pub fn copied(app: &App, panel: Panel, row: &Row) -> String {
    match (panel, &row.target) {
        (Panel::Report, _) => app.report.clone(),
        (_, Target::Evidence(id)) => app.evidence(id).map_or_else(String::new, |evidence| {
            let json = serde_json::to_string_pretty(&evidence.data).unwrap_or_default();
            format!("{} {}\n{}\n{json}\n", evidence.id, evidence.summary, evidence.source)
        }),
        (_, Target::Call(id)) => app
            .run
            .calls
            .iter()
            .rev()
            .find(|call| call.id == *id)
            .map_or_else(String::new, |call| format!("{} {}\n", call.call.tool, call.call.arguments)),
        (_, Target::Entry(index)) => app.chat.get(*index).map_or_else(String::new, |entry| entry.text.clone()),
        _ => text::plain(&row.line).trim().to_owned(),
    }
}

/// A row of text that is wrapped, under an item.
fn under(app: &App, text: &str, label: &str, columns: usize, target: &Target) -> Vec<Row> {
    if text.is_empty() {
        return Vec::new();
    }
    const INDENT: usize = 4;
    let label = if label.is_empty() { String::new() } else { format!("{label}: ") };
    let hanging = 0;
    let pieces = [(label, app.theme.dim), (text.to_owned(), app.theme.text)];
    text::wrap(&pieces, columns.saturating_sub(INDENT), hanging)
        .into_iter()
        .map(|mut line| {
            line.spans.insert(0, Span::raw(" ".repeat(INDENT)));
            Row::new(line, target.clone())
        })
        .collect()
}

/// `E3 [metric] summary` under an item.
fn evidence_under(app: &App, id: &str, columns: usize) -> Row {
    let summary = app.evidence(id).map_or("", |evidence| evidence.summary.as_str());
    let shown = text::cut_middle(summary, columns.saturating_sub(6 + id.len()));
    let line = Line::from(vec![
        Span::raw("    "),
        Span::styled(id.to_owned(), app.theme.cite),
        Span::styled(format!(" {shown}"), app.theme.dim),
    ]);
    Row::new(line, Target::Evidence(id.to_owned()))
}

/// A mark that says whether there is more below.
fn mark(app: &App, panel: Panel, target: &Target) -> &'static str {
    if app.view(panel).open.contains(&target.key()) { "- " } else { "+ " }
}

fn is_open(app: &App, panel: Panel, target: &Target) -> bool {
    app.view(panel).open.contains(&target.key())
}

/// Milliseconds since then, by the clock of the state.
pub fn since(app: &App, start: Timestamp) -> u64 {
    u64::try_from(app.now.duration_since(start).as_millis()).unwrap_or(0)
}

/// `1.25 s`.
pub fn spent(milliseconds: u64) -> String {
    duration(milliseconds.saturating_mul(1000))
}

/// `12,345`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::new();
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Text between what stands at the left and at the right of a row.
fn spread(left: Vec<Span<'static>>, right: String, style: Style, columns: usize) -> Line<'static> {
    let used: usize = left.iter().map(Span::width).sum();
    let mut spans = left;
    if !right.is_empty() {
        let free = columns.saturating_sub(used);
        spans.push(Span::styled(text::pad_left(&right, free.max(right.len() + 1)), style));
    }
    Line::from(spans)
}
