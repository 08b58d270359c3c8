//! What keys do to what lies on top of the panels: help, a request for approval, a menu, a line asked for, one thing in full.

use crossterm::event::{KeyCode, KeyEvent};

use super::{App, Effect, Pick, Prompt, PromptKind};
use crate::control::{Approval, Control};
use crate::ui::tui::input::{Edited, Editor};

/// Columns by which a key scrolls sideways.
pub(super) const SIDEWAYS: usize = 8;

impl App {
    pub(super) fn help_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let last = super::super::view::help_lines(self).len().saturating_sub(1);
        let top = self.help.unwrap_or(0);
        self.help = match key.code {
            KeyCode::Down | KeyCode::Char('j') => Some((top + 1).min(last)),
            KeyCode::Up | KeyCode::Char('k') => Some(top.saturating_sub(1)),
            KeyCode::PageDown | KeyCode::Char(' ') => Some((top + 10).min(last)),
            KeyCode::PageUp => Some(top.saturating_sub(10)),
            _ => None,
        };
        Vec::new()
    }

    /// The default is no: only `y` and `a` approve.
    pub(super) fn approval_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let approval = match key.code {
            KeyCode::Char('y' | 'Y') => Approval::Once,
            KeyCode::Char('a' | 'A') => Approval::Session,
            KeyCode::Char('n' | 'N') | KeyCode::Esc | KeyCode::Enter => Approval::Deny,
            _ => return Vec::new(),
        };
        let Some(request) = self.run.approvals.first().map(|asked| asked.request) else { return Vec::new() };
        // Closed at once, so that a key pressed twice does not answer the next.
        self.run.approval_answered(request, approval, self.now);
        vec![Effect::Control(Control::AnswerApproval { request, approval })]
    }

    pub(super) fn menu_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(menu) = &mut self.menu else { return Vec::new() };
        let last = menu.items.len().saturating_sub(1);
        match key.code {
            KeyCode::Down | KeyCode::Char('j') => menu.cursor = (menu.cursor + 1).min(last),
            KeyCode::Up | KeyCode::Char('k') => menu.cursor = menu.cursor.saturating_sub(1),
            KeyCode::PageDown => menu.cursor = (menu.cursor + 10).min(last),
            KeyCode::PageUp => menu.cursor = menu.cursor.saturating_sub(10),
            KeyCode::Enter => {
                let picked = self.menu.take().and_then(|menu| menu.items.into_iter().nth(menu.cursor));
                return picked.map(|item| self.pick(item.pick)).unwrap_or_default();
            }
            KeyCode::Esc | KeyCode::Char('q') => self.menu = None,
            _ => {}
        }
        Vec::new()
    }

    fn pick(&mut self, pick: Pick) -> Vec<Effect> {
        if let Pick::Evidence(id) = &pick {
            self.open_evidence(id);
            return Vec::new();
        }
        vec![Effect::Pick(pick)]
    }

    pub(super) fn prompt_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.code == KeyCode::Esc {
            self.prompt = None;
            return Vec::new();
        }
        let Some(prompt) = &mut self.prompt else { return Vec::new() };
        let Edited::Entered(entered) = prompt.editor.key(key) else { return Vec::new() };
        let kind = prompt.kind;
        self.prompt = None;
        match kind {
            PromptKind::Search => {
                self.search = Some(entered);
                self.find(1);
                Vec::new()
            }
            PromptKind::Fact => self.fact(entered),
        }
    }

    pub(super) fn fact(&mut self, fact: String) -> Vec<Effect> {
        if !self.run.is_running() {
            self.tell(self.lang.pick("nothing runs that could take a fact", "当前没有运行中的诊断").to_owned());
            return Vec::new();
        }
        vec![Effect::Control(Control::AddFact { text: fact })]
    }

    pub(super) fn ask_for(&mut self, kind: PromptKind) {
        self.prompt = Some(Prompt { kind, editor: Editor::default() });
    }

    pub(super) fn detail_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let (head, height) = self.detail_size();
        let page = isize::try_from(height.saturating_sub(2)).unwrap_or(1);
        let search = self.search.clone();
        let Some(detail) = &mut self.detail else { return Vec::new() };
        let mut scroll = |by: isize| detail.scroll(by, head, height);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Backspace => self.detail = None,
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => scroll(1),
            KeyCode::Up | KeyCode::Char('k') => scroll(-1),
            KeyCode::PageDown | KeyCode::Char(' ') => scroll(page),
            KeyCode::PageUp => scroll(-page),
            KeyCode::Home | KeyCode::Char('g') => detail.top = 0,
            KeyCode::End | KeyCode::Char('G') => scroll(isize::MAX),
            KeyCode::Right | KeyCode::Char('l') => detail.left += SIDEWAYS,
            KeyCode::Left | KeyCode::Char('h') => detail.left = detail.left.saturating_sub(SIDEWAYS),
            KeyCode::Char('/') => self.ask_for(PromptKind::Search),
            KeyCode::Char(direction @ ('n' | 'N')) => {
                if let Some(search) = search {
                    let found = detail.find(&search, direction == 'n', head);
                    self.told_found(found, &search);
                }
            }
            KeyCode::Char('y') => return self.copied(self.detail.as_ref().map(|detail| detail.lines.join("\n"))),
            KeyCode::Char('?') => self.help = Some(0),
            _ => {}
        }
        Vec::new()
    }

    /// Lines of the head of what is shown in full, and how many are on the screen.
    pub(super) fn detail_size(&self) -> (usize, usize) {
        (super::super::view::detail_head(self).len(), usize::from(self.size.1).saturating_sub(2))
    }
}
