//! Drawing: from the state to the cells of a screen, and nothing else.

use ratatui::Frame;
use ratatui::layout::{Position, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::layout::{self, areas};
use super::rows::{self, Row, count, since, spent};
use super::state::run::Phase;
use super::state::{App, Focus, Kind, Panel, PromptKind};
use super::text::{self, cut, pad};
use crate::domain::text::plural;
use crate::domain::{RunStatus, StepState};

pub mod live;
mod overlay;

pub use overlay::{detail_head, help_lines};

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    if layout::is_too_small(app) {
        return too_small(frame, app, area);
    }
    let areas = areas(app);
    put(frame, areas.head, head(app, usize::from(areas.head.width)));
    put(frame, areas.tabs, tabs(app, usize::from(areas.tabs.width)));
    if let Some([plan, calls]) = areas.side {
        side(frame, app, Panel::Plan, plan);
        side(frame, app, Panel::Calls, calls);
    }
    let main = if areas.side.is_some() { app.main } else { app.panel };
    panel(frame, app, main, areas.main);
    input(frame, app, areas.input);
    put(frame, areas.foot, foot(app, usize::from(areas.foot.width)));
    overlay::draw(frame, app);
}

/// Puts a line at the top of an area.
fn put(frame: &mut Frame<'_>, area: Rect, line: Line<'_>) {
    if area.height > 0 && area.width > 0 {
        let style = line.style;
        frame.buffer_mut().set_style(Rect { height: 1, ..area }, style);
        frame.buffer_mut().set_line(area.x, area.y, &line, area.width);
    }
}

fn too_small(frame: &mut Frame<'_>, app: &App, area: Rect) {
    let (columns, rows) = super::state::SMALLEST;
    let (has, needs) = (format!("{}x{}", app.size.0, app.size.1), format!("{columns}x{rows}"));
    let said = app.lang.pick(
        format!("This screen is {has}; oncall needs {needs}. Enlarge it, or press q to leave."),
        format!("当前屏幕为 {has}，至少需要 {needs}。请放大窗口，或按 q 退出。"),
    );
    let lines = text::wrap_plain(&said, usize::from(area.width).max(1), 0, app.theme.warn);
    for (n, line) in lines.into_iter().take(usize::from(area.height)).enumerate() {
        // At most the height of the screen.
        put(frame, Rect { y: area.y + n as u16, height: 1, ..area }, line);
    }
}

/// What runs, how far it is, what it has cost.
fn head(app: &App, columns: usize) -> Line<'static> {
    let run = &app.run;
    let lang = app.lang;
    let right = format!(" {} ", fitting(status(app), columns * 2 / 3));
    let service = run.facts.as_ref().and_then(|facts| facts.service.as_deref());
    let service = service.or_else(|| run.alert.as_ref().and_then(|alert| alert.service.as_deref()));
    let title = match (run.title.as_str(), service) {
        ("", _) => lang.pick("on call", "值班助手").to_owned(),
        (title, Some(service)) => format!("{title}  {}", text::line(service)),
        (title, None) => title.to_owned(),
    };
    let room = columns.saturating_sub(right.width());
    let left = pad(&format!(" oncall  {title}"), room);
    Line::from(vec![Span::raw(left), Span::raw(right)]).style(app.theme.bar_focused)
}

/// As many facts as there is room for, the most telling first; at least two.
pub fn fitting(mut facts: Vec<String>, columns: usize) -> String {
    while facts.len() > 2 && facts.join("  ").width() > columns {
        facts.pop();
    }
    cut(&facts.join("  "), columns)
}

/// Phase, time, steps, calls, tokens, cost: what a glance should tell.
pub fn status(app: &App) -> Vec<String> {
    let run = &app.run;
    let lang = app.lang;
    let mut facts = Vec::new();
    if let Some(playback) = &app.playback {
        let state = if playback.paused { lang.pick("paused", "已暂停") } else { lang.pick("playing", "回放") };
        facts.push(format!("{state} x{} {}/{}", playback.speed, playback.played, playback.total));
    }
    let phase = match run.phase {
        Phase::Idle => "",
        Phase::Running => lang.pick("running", "进行中"),
        Phase::Stopping => lang.pick("stopping", "正在停止"),
        Phase::Ended(RunStatus::Complete) => lang.pick("complete", "完成"),
        Phase::Ended(RunStatus::Incomplete) => lang.pick("incomplete", "未完成"),
        Phase::Ended(RunStatus::Cancelled) => lang.pick("cancelled", "已取消"),
    };
    if !phase.is_empty() && app.playback.is_none() {
        facts.push(phase.to_owned());
    }
    if let Some(start) = run.started {
        let end = u64::try_from(run.last.duration_since(start).as_millis()).unwrap_or(0);
        facts.push(spent(if app.is_moving() { since(app, start) } else { end }));
    }
    let steps = run.plan.steps.len();
    if steps > 0 {
        let open = [StepState::Pending, StepState::Running];
        let done = run.plan.steps.iter().filter(|step| !open.contains(&step.state)).count();
        facts.push(lang.pick(format!("{done}/{steps} steps"), format!("步骤 {done}/{steps}")));
    }
    let calls = run.calls.dropped + run.calls.len() as u64;
    if calls > 0 {
        facts.push(lang.pick(format!("{} {}", count(calls), plural(&calls, "call")), format!("调用 {}", count(calls))));
    }
    let tokens = run.usage.input_tokens + run.usage.output_tokens;
    if tokens > 0 {
        facts.push(lang.pick(format!("{} tokens", count(tokens)), format!("令牌 {}", count(tokens))));
    }
    facts.extend(run.usage.cost.map(|cost| lang.pick(format!("cost {cost:.4}"), format!("费用 {cost:.4}"))));
    facts
}

fn tabs(app: &App, columns: usize) -> Line<'static> {
    let has_side = areas(app).side.is_some();
    let shown = |panel: Panel| if has_side { app.main == panel } else { app.panel == panel };
    let panels: Vec<(usize, Panel)> =
        app.panels().iter().copied().enumerate().filter(|(_, panel)| !(has_side && panel.is_side())).collect();
    let named = |n: usize, panel: Panel| format!(" {} {} ", n + 1, panel.title(app.lang));
    let fits = panels.iter().map(|(n, panel)| named(*n, *panel).width()).sum::<usize>() <= columns;
    let mut spans = Vec::new();
    for (n, panel) in &panels {
        let is_shown = shown(*panel);
        // Where not all names fit, the others are known by their numbers.
        let label = if fits || is_shown { named(*n, *panel) } else { format!(" {} ", n + 1) };
        let style = match (is_shown, layout::has_focus(app, *panel)) {
            (true, true) => app.theme.bar_focused,
            (true, false) => app.theme.bar.patch(app.theme.heading),
            _ => app.theme.bar,
        };
        spans.push(Span::styled(label, style));
    }
    Line::from(spans).style(app.theme.bar)
}

fn side(frame: &mut Frame<'_>, app: &App, which: Panel, area: Rect) {
    let number = app.panels().iter().position(|panel| *panel == which).map_or(0, |n| n + 1);
    let style = if layout::has_focus(app, which) { app.theme.bar_focused } else { app.theme.bar };
    put(frame, area, Line::styled(format!(" {number} {}", which.title(app.lang)), style));
    panel(frame, app, which, Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area });
}

fn panel(frame: &mut Frame<'_>, app: &App, which: Panel, area: Rect) {
    let rows = rows::of(app, which);
    let view = app.view(which);
    let cursor = app.cursor(which, rows.len());
    let top = layout::top(cursor, view.top, rows.len(), usize::from(area.height));
    let has_focus = layout::has_focus(app, which);
    for (n, row) in rows.iter().enumerate().skip(top).take(usize::from(area.height)) {
        // At most the height of the screen.
        let place = Rect { y: area.y + (n - top) as u16, height: 1, ..area };
        put(frame, place, shown(app, row, view.left));
        if n == cursor && has_focus {
            frame.buffer_mut().set_style(place, app.theme.cursor);
        }
    }
    let below = rows.len().saturating_sub(top + usize::from(area.height));
    if below > 0 && area.width > 20 {
        let label = format!(" {} ", app.lang.pick(format!("{below} more"), format!("还有 {below} 行")));
        let width = label.width().min(usize::from(area.width)) as u16;
        let place = Rect { x: area.right() - width, y: area.bottom() - 1, width, height: 1 };
        put(frame, place, Line::styled(label, app.theme.bar));
    }
}

/// The row as it is scrolled, with what was searched for marked.
fn shown(app: &App, row: &Row, left: usize) -> Line<'static> {
    let line = text::shifted(row.line.clone(), left);
    match &app.search {
        Some(search) => found(line, search, app.theme.found),
        None => line,
    }
}

/// Marks every occurrence of a text, in any case, within each piece.
fn found(line: Line<'static>, search: &str, style: Style) -> Line<'static> {
    let wanted = search.to_lowercase();
    let line_style = line.style;
    let spans = line.spans.into_iter().flat_map(|span| {
        let lower = span.content.to_lowercase();
        // Lower case may change lengths; then places in it are none in the text.
        if wanted.is_empty() || lower.len() != span.content.len() || !lower.contains(&wanted) {
            return vec![span];
        }
        let mut pieces = Vec::new();
        let mut at = 0;
        for (start, part) in lower.match_indices(&wanted) {
            let (before, hit) = (span.content.get(at..start), span.content.get(start..start + part.len()));
            let (Some(before), Some(hit)) = (before, hit) else { return vec![span] };
            pieces.push(Span::styled(before.to_owned(), span.style));
            pieces.push(Span::styled(hit.to_owned(), span.style.patch(style)));
            at = start + part.len();
        }
        pieces.push(Span::styled(span.content.get(at..).unwrap_or_default().to_owned(), span.style));
        pieces
    });
    Line::from(spans.collect::<Vec<_>>()).style(line_style)
}

fn input(frame: &mut Frame<'_>, app: &App, area: Rect) {
    if area.height == 0 {
        return;
    }
    let lang = app.lang;
    let (lead, editor, focused) = match &app.prompt {
        Some(prompt) => {
            let lead = match prompt.kind {
                PromptKind::Search => lang.pick("search: ", "查找："),
                PromptKind::Fact => lang.pick("fact: ", "事实："),
            };
            (lead, &prompt.editor, true)
        }
        None => ("> ", &app.input, app.focus == Focus::Input),
    };
    let indent = lead.width();
    let layout = editor.layout(usize::from(area.width).saturating_sub(indent));
    let height = usize::from(area.height);
    let top = (layout.cursor.0 + 1).saturating_sub(height);
    for (n, line) in layout.lines.iter().skip(top).take(height).enumerate() {
        let mark = if n == 0 { lead.to_owned() } else { " ".repeat(indent) };
        let spans = vec![Span::styled(mark, app.theme.accent), Span::styled(line.clone(), app.theme.text)];
        put(frame, Rect { y: area.y + n as u16, height: 1, ..area }, Line::from(spans));
    }
    let is_covered = app.help.is_some()
        || app.menu.is_some()
        || !app.run.approvals.is_empty()
        || (app.detail.is_some() && app.prompt.is_none());
    if focused && !is_covered {
        let x = usize::from(area.x) + indent + layout.cursor.1;
        let y = usize::from(area.y) + layout.cursor.0 - top;
        // Both lie within the area.
        frame.set_cursor_position(Position::new((x as u16).min(area.right().saturating_sub(1)), y as u16));
    }
}

/// A notice, else the keys that help here.
fn foot(app: &App, columns: usize) -> Line<'static> {
    let lang = app.lang;
    if let Some(notice) = &app.notice {
        return Line::styled(pad(&format!(" {notice}"), columns), app.theme.bar.patch(app.theme.warn));
    }
    let running = app.run.is_running() && app.playback.is_none();
    let mut keys: Vec<&str> = Vec::new();
    match (app.focus, app.kind) {
        (Focus::Input, _) => {
            keys.push(lang.pick("Enter send", "Enter 发送"));
            keys.push(lang.pick("Alt-Enter new line", "Alt-Enter 换行"));
            keys.push(lang.pick("/ commands", "/ 命令"));
            keys.push(lang.pick("Tab panels", "Tab 面板"));
        }
        (Focus::Panel, kind) => {
            keys.push(lang.pick("Tab next panel", "Tab 切换面板"));
            keys.push(lang.pick("Enter open", "Enter 打开"));
            keys.push(lang.pick("/ search", "/ 查找"));
            match app.panel {
                Panel::Calls if running => keys.push(lang.pick("x cancel call", "x 取消调用")),
                Panel::Plan if running => keys.push(lang.pick("s skip step", "s 跳过步骤")),
                Panel::Hypotheses if running => keys.push(lang.pick("p pin, d dismiss", "p 置顶，d 否决")),
                Panel::Timeline => keys.push(lang.pick("+ - zoom", "+ - 缩放")),
                _ => {}
            }
            if app.playback.is_some() {
                keys.push(lang.pick("Space pause, [ ] speed", "空格暂停，[ ] 速度"));
            }
            if running {
                keys.push(lang.pick("f add fact", "f 补充事实"));
            }
            if kind == Kind::Session {
                keys.push(lang.pick("i type", "i 输入"));
            }
        }
    }
    keys.push(if running {
        lang.pick("Esc stop", "Esc 停止")
    } else if app.focus == Focus::Panel {
        lang.pick("q leave", "q 退出")
    } else {
        ""
    });
    keys.push(lang.pick("? help", "? 帮助"));
    let keys: Vec<&str> = keys.into_iter().filter(|key| !key.is_empty()).collect();
    Line::styled(pad(&cut(&format!(" {}", keys.join("  ")), columns), columns), app.theme.bar)
}

#[cfg(test)]
mod tests;
