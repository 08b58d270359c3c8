//! Where things stand on a screen of a given size. Pure, so that keys can scroll by what is on the screen.

use ratatui::layout::Rect;

use super::state::{App, Focus, Kind, Panel, SMALLEST};

/// From this width on plan and calls stand beside the rest.
const WIDE: u16 = 100;
const SIDE: (u16, u16) = (36, 56);
/// Lines of the editor, at most.
const INPUT_LINES: usize = 6;

/// The parts of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Areas {
    pub head: Rect,
    pub tabs: Rect,
    /// Plan and calls, each with its bar on top, on a wide screen.
    pub side: Option<[Rect; 2]>,
    pub main: Rect,
    /// The line asked for, or the editor; empty when there is neither.
    pub input: Rect,
    pub foot: Rect,
}

/// Whether nothing can be drawn.
pub fn is_too_small(app: &App) -> bool {
    app.size.0 < SMALLEST.0 || app.size.1 < SMALLEST.1
}

/// The parts of this screen.
pub fn areas(app: &App) -> Areas {
    let (columns, rows) = app.size;
    let input = input_lines(app);
    let row = |y: u16, height: u16| Rect { x: 0, y, width: columns, height };
    let body = rows.saturating_sub(3 + input);
    let foot_at = rows.saturating_sub(1);
    let whole = row(2, body);
    let (side, main) = if columns >= WIDE {
        let width = (columns * 2 / 5).clamp(SIDE.0, SIDE.1);
        let top = (body * 2 / 5).max(3).min(body);
        // The side begins beside the tabs.
        let plan = Rect { x: 0, y: 1, width, height: top + 1 };
        let calls = Rect { x: 0, y: 2 + top, width, height: body - top };
        (Some([plan, calls]), Rect { x: width + 1, width: columns - width - 1, ..whole })
    } else {
        (None, whole)
    };
    let tabs = Rect { x: main.x, y: 1, width: main.width, height: 1 };
    Areas { head: row(0, 1), tabs, side, main, input: row(foot_at.saturating_sub(input), input), foot: row(foot_at, 1) }
}

fn input_lines(app: &App) -> u16 {
    if app.prompt.is_some() {
        return 1;
    }
    match app.kind {
        Kind::Diagnosis => 0,
        Kind::Session => {
            let lines = app.input.layout(usize::from(app.size.0).saturating_sub(2)).lines.len();
            // At most six.
            lines.clamp(1, INPUT_LINES) as u16
        }
    }
}

/// Where the rows of a panel stand; `None` when the panel is not on the screen.
pub fn body(app: &App, panel: Panel) -> Option<Rect> {
    let areas = areas(app);
    match (areas.side, panel) {
        (Some([plan, _]), Panel::Plan) => Some(under_bar(plan)),
        (Some([_, calls]), Panel::Calls) => Some(under_bar(calls)),
        (Some(_), panel) => (app.main == panel).then_some(areas.main),
        (None, panel) => (app.panel == panel).then_some(areas.main),
    }
}

fn under_bar(area: Rect) -> Rect {
    Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area }
}

/// The row at the top of a panel, so that the cursor is on the screen.
pub fn top(cursor: usize, top: usize, rows: usize, height: usize) -> usize {
    let height = height.max(1);
    let last_top = rows.saturating_sub(height);
    top.clamp((cursor + 1).saturating_sub(height), cursor).min(last_top)
}

/// Whether keys go to the panel.
pub fn has_focus(app: &App, panel: Panel) -> bool {
    app.focus == Focus::Panel && app.panel == panel && app.prompt.is_none()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::domain::Lang;
    use crate::ui::tui::theme::ThemeName;

    #[test]
    fn parts_never_overlap_nor_leave_the_screen() {
        for kind in [Kind::Diagnosis, Kind::Session] {
            for size in [(60, 15), (80, 24), (99, 30), (100, 15), (120, 40), (400, 200)] {
                let app = App::new(kind, Lang::En, TimeZone::UTC, ThemeName::None, size, Timestamp::UNIX_EPOCH);
                let Areas { head, tabs, side, main, input, foot } = areas(&app);
                let mut parts = vec![head, tabs, main, input, foot];
                parts.extend(side.into_iter().flatten());
                let screen = Rect::new(0, 0, size.0, size.1);
                for (n, part) in parts.iter().enumerate() {
                    assert_eq!(part.intersection(screen), *part, "{size:?}");
                    for other in &parts[n + 1..] {
                        assert_eq!(part.intersection(*other).area(), 0, "{size:?} {part:?} {other:?}");
                    }
                }
                assert!(main.height >= 10, "{size:?}");
            }
        }
    }

    #[test]
    fn the_cursor_is_always_on_the_screen() {
        assert_eq!([top(0, 5, 20, 10), top(19, 0, 20, 10), top(7, 0, 20, 10), top(3, 9, 5, 10)], [0, 10, 0, 0]);
    }
}
