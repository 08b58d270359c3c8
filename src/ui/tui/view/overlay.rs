//! What lies on top of the panels: one thing in full, a menu, completions, help, a request for approval.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};

use super::{foot, put};
use crate::ui::tui::layout::areas;
use crate::ui::tui::rows::{evidence, since, spent};
use crate::ui::tui::state::slash::{COMMANDS, completions};
use crate::ui::tui::state::{App, DetailOf, Focus};
use crate::ui::tui::text::{self, cut, pad, shifted, wrap, wrap_plain};

/// Completions that are shown at once.
const SHOWN_COMPLETIONS: usize = 8;
const NAME_COLUMNS: usize = 30;

pub(super) fn draw(frame: &mut Frame<'_>, app: &App) {
    if app.detail.is_some() {
        detail(frame, app);
    } else if app.focus == Focus::Input && app.prompt.is_none() {
        completion(frame, app);
    }
    menu(frame, app);
    approval(frame, app);
    if let Some(top) = app.help {
        help(frame, app, top);
    }
}

/// A box over the middle of the screen, with a title; returns what is inside.
fn window(frame: &mut Frame<'_>, app: &App, title: &str, lines: usize) -> Rect {
    let (columns, rows) = app.size;
    let width = columns.saturating_sub(4).min(100);
    // At most the height of the screen.
    let height = (lines.min(usize::from(rows)) as u16 + 2).min(rows.saturating_sub(2));
    let area = Rect { x: (columns - width) / 2, y: (rows - height) / 2, width, height };
    Clear.render(area, frame.buffer_mut());
    put(frame, area, Line::styled(pad(&format!(" {title}"), usize::from(width)), app.theme.bar_focused));
    let bottom = Rect { y: area.bottom() - 1, height: 1, ..area };
    put(frame, bottom, Line::styled(pad("", usize::from(width)), app.theme.bar_focused));
    Rect { x: area.x + 1, y: area.y + 1, width: width.saturating_sub(2), height: height.saturating_sub(2) }
}

fn put_all(frame: &mut Frame<'_>, area: Rect, lines: impl IntoIterator<Item = Line<'static>>) {
    for (n, line) in lines.into_iter().take(usize::from(area.height)).enumerate() {
        // At most the height of the area.
        put(frame, Rect { y: area.y + n as u16, height: 1, ..area }, line);
    }
}

/// Over everything but the foot: a head made for the width, then the raw lines; of a hundred thousand only those shown are
/// touched.
fn detail(frame: &mut Frame<'_>, app: &App) {
    let Some(detail) = &app.detail else { return };
    let parts = areas(app);
    let bottom = if app.prompt.is_some() { parts.input.y } else { parts.foot.y };
    let area = Rect { x: 0, y: 0, width: app.size.0, height: bottom };
    Clear.render(area, frame.buffer_mut());
    let columns = usize::from(area.width);
    let head = detail_head(app);
    let total = head.len() + detail.lines.len();
    let body = Rect { y: 1, height: area.height.saturating_sub(1), ..area };
    let at = format!(" {}/{total} ", (detail.top + 1).min(total));
    let title = format!("{}{at}", pad(&format!(" {}", detail.title), columns.saturating_sub(at.len())));
    put(frame, area, Line::styled(title, app.theme.bar_focused));
    let shown_head = head.into_iter().skip(detail.top);
    let head_gone = detail.top.min(total - detail.lines.len());
    let raw = detail.lines.iter().skip(detail.top - head_gone).map(|line| {
        let line = Line::styled(line.clone(), app.theme.code);
        let line = shifted(line, detail.left);
        match &app.search {
            Some(search) => super::found(line, search, app.theme.found),
            None => line,
        }
    });
    put_all(frame, body, shown_head.chain(raw));
    let keys = app.lang.pick(
        " arrows scroll  g G ends  / n N search  y copy  Esc back",
        " 方向键滚动  g G 首尾  / n N 查找  y 复制  Esc 返回",
    );
    match app.notice {
        Some(_) => put(frame, parts.foot, foot(app, columns)),
        None => put(frame, parts.foot, Line::styled(pad(keys, columns), app.theme.bar)),
    }
}

/// What stands above the raw lines.
pub fn detail_head(app: &App) -> Vec<Line<'static>> {
    let columns = usize::from(app.size.0).saturating_sub(1);
    match app.detail.as_ref().map(|detail| &detail.of) {
        Some(DetailOf::Evidence(evidence)) => evidence::head(app, evidence, columns),
        Some(DetailOf::Call(call)) => {
            let milliseconds = call.ended.as_ref().map_or_else(|| since(app, call.started), |end| end.milliseconds);
            let mut lines = wrap(&[(call.text.clone(), app.theme.heading)], columns, 2);
            lines.push(Line::styled(format!("{}  {}", call.server, spent(milliseconds)), app.theme.dim));
            lines.push(Line::default());
            lines
        }
        _ => Vec::new(),
    }
}

fn completion(frame: &mut Frame<'_>, app: &App) {
    let found = completions(app.input.text());
    let parts = areas(app);
    let height = found.len().min(SHOWN_COMPLETIONS).min(usize::from(parts.main.height));
    if height == 0 {
        return;
    }
    let chosen = app.completion.min(found.len() - 1);
    let top = (chosen + 1).saturating_sub(height);
    let width = app.size.0.min(84);
    // At most the height of the panel.
    let area = Rect { x: 0, y: parts.input.y - height as u16, width, height: height as u16 };
    Clear.render(area, frame.buffer_mut());
    for (n, (name, arguments, en, zh)) in found.iter().enumerate().skip(top).take(height) {
        let style = if n == chosen { app.theme.bar_focused } else { app.theme.bar };
        let typed = pad(&format!(" /{name} {arguments}"), NAME_COLUMNS);
        let line = pad(&format!("{typed} {}", app.lang.pick(en, zh)), usize::from(width));
        put(frame, Rect { y: area.y + (n - top) as u16, height: 1, ..area }, Line::styled(line, style));
    }
}

fn menu(frame: &mut Frame<'_>, app: &App) {
    let Some(menu) = &app.menu else { return };
    let area = window(frame, app, &menu.title, menu.items.len().max(1));
    let height = usize::from(area.height);
    let top = (menu.cursor + 1).saturating_sub(height);
    let columns = usize::from(area.width);
    let lines: Vec<Line<'static>> = menu
        .items
        .iter()
        .enumerate()
        .skip(top)
        .take(height)
        .map(|(n, item)| {
            let style = if n == menu.cursor { app.theme.cursor } else { app.theme.text };
            Line::styled(pad(&text::line(&item.label), columns), style)
        })
        .collect();
    put_all(frame, area, lines);
}

/// The call in full: who would run it, and with what. The default is no.
fn approval(frame: &mut Frame<'_>, app: &App) {
    let Some(asked) = app.run.approvals.first().filter(|_| app.playback.is_none()) else { return };
    let lang = app.lang;
    let columns = usize::from(app.size.0.saturating_sub(6).min(98));
    let says = lang.pick(
        "This call may change something. It is made only if you say yes.",
        "该调用可能产生变更，只有在您同意后才会执行。",
    );
    let mut lines = wrap_plain(says, columns, 0, app.theme.warn);
    lines.push(Line::default());
    let server = text::line(&asked.server);
    let tool = format!("{} ({server})", text::line(&asked.call.tool));
    lines.push(Line::styled(cut(&tool, columns), app.theme.heading));
    let arguments = serde_json::to_string_pretty(&asked.call.arguments).unwrap_or_default();
    let arguments = crate::domain::text::clean(&arguments, 20_000);
    lines.extend(wrap_plain(&arguments, columns, 4, app.theme.code));
    let keys = vec![
        Span::styled(lang.pick("n no (default)   ", "n 否（默认）   "), app.theme.ok),
        Span::styled(lang.pick("y yes, once   ", "y 同意一次   "), app.theme.warn),
        Span::styled(lang.pick("a yes, this tool for this session", "a 本次会话内始终同意此工具"), app.theme.warn),
    ];
    // The keys stay on the screen however long the arguments are.
    let room = usize::from(app.size.1).saturating_sub(6);
    if lines.len() > room {
        lines.truncate(room.saturating_sub(1));
        lines.push(Line::styled(lang.pick("... (cut)", "...（已截断）"), app.theme.dim));
    }
    lines.push(Line::default());
    lines.push(Line::from(keys));
    let area = window(frame, app, lang.pick("Approval needed", "需要批准"), lines.len());
    put_all(frame, area, lines);
}

/// Keys and commands.
pub fn help_lines(app: &App) -> Vec<Line<'static>> {
    let lang = app.lang;
    let keys: [(&str, &str, &str); 20] = [
        ("Tab, 1-7", "go to a panel", "切换面板"),
        ("j k g G PgUp PgDn", "move the cursor", "移动光标"),
        ("Enter", "open, expand, follow a citation", "打开、展开、查看引用"),
        ("h l", "scroll sideways; along the timeline", "左右滚动；沿时间线移动"),
        ("+ -", "zoom the timeline", "缩放时间线"),
        ("/ n N", "search, next, previous", "查找、下一个、上一个"),
        ("y", "copy what is under the cursor (OSC 52)", "复制光标所在内容 (OSC 52)"),
        ("x", "cancel the call under the cursor", "取消光标处的调用"),
        ("s", "skip the step under the cursor", "跳过光标处的步骤"),
        ("p d", "pin or dismiss a hypothesis; again takes it back", "置顶或否决假设；再按撤销"),
        ("f", "add a fact that the agent should know", "补充已知事实"),
        ("t", "next theme: dark, light, 16, none", "切换配色"),
        ("m", "mouse on or off", "鼠标开关"),
        ("Space [ ]", "in a playback: pause, slower, faster", "回放时：暂停、减速、加速"),
        ("i", "type", "输入"),
        ("Esc", "back; while something runs, stop with the best answer so far", "返回；运行时停止并给出目前结论"),
        ("Ctrl-C twice", "leave at once", "按两次立即退出"),
        ("Ctrl-Z, Ctrl-L", "suspend, redraw", "挂起、重绘"),
        ("Alt-Enter, Ctrl-J", "new line while typing", "输入时换行"),
        ("q", "leave once the run has ended", "运行结束后退出"),
    ];
    let pair = |what: String, does: &str| {
        Line::from(vec![
            Span::styled(pad(&what, NAME_COLUMNS), app.theme.accent),
            Span::styled(does.to_owned(), app.theme.text),
        ])
    };
    let mut lines: Vec<Line<'static>> =
        keys.iter().map(|(key, en, zh)| pair((*key).to_owned(), lang.pick(en, zh))).collect();
    lines.push(Line::default());
    lines.extend(
        COMMANDS.iter().map(|(name, arguments, en, zh)| pair(format!("/{name} {arguments}"), lang.pick(en, zh))),
    );
    lines
}

fn help(frame: &mut Frame<'_>, app: &App, top: usize) {
    let lines = help_lines(app);
    let title = app.lang.pick("Help (arrows scroll, any other key closes)", "帮助（方向键滚动，其他键关闭）");
    let area = window(frame, app, title, lines.len());
    let top = top.min(lines.len().saturating_sub(usize::from(area.height)));
    put_all(frame, area, lines.into_iter().skip(top));
}
