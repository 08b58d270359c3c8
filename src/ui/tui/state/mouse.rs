//! What the mouse does, where it was switched on: the wheel scrolls, a click chooses.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};
use ratatui::layout::Position;

use super::{App, Effect, Focus};
use crate::ui::tui::{layout, rows};

/// Rows that a turn of the wheel scrolls.
const WHEEL: isize = 3;

impl App {
    pub(super) fn mouse_event(&mut self, event: MouseEvent) -> Vec<Effect> {
        match event.kind {
            MouseEventKind::ScrollDown => self.wheel(WHEEL),
            MouseEventKind::ScrollUp => self.wheel(-WHEEL),
            MouseEventKind::Down(MouseButton::Left) => self.click(Position::new(event.column, event.row)),
            _ => {}
        }
        Vec::new()
    }

    fn wheel(&mut self, by: isize) {
        let (head, height) = self.detail_size();
        match &mut self.detail {
            Some(detail) => detail.scroll(by, head, height),
            None => self.move_cursor(by),
        }
    }

    /// A click on a row puts the cursor there.
    fn click(&mut self, at: Position) {
        if self.detail.is_some() || self.menu.is_some() || self.help.is_some() {
            return;
        }
        for panel in super::Panel::ALL {
            let Some(area) = layout::body(self, panel).filter(|area| area.contains(at)) else { continue };
            let count = rows::of(self, panel).len();
            let cursor = self.cursor(panel, count);
            let top = layout::top(cursor, self.view(panel).top, count, usize::from(area.height));
            self.show(panel);
            self.focus = Focus::Panel;
            let clicked = isize::try_from(top + usize::from(at.y - area.y)).unwrap_or(0);
            self.move_cursor(clicked - isize::try_from(cursor).unwrap_or(0));
        }
        if layout::areas(self).input.contains(at) {
            self.focus = Focus::Input;
        }
    }
}
