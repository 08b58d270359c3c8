//! What keys do.

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::overlays::SIDEWAYS;
use super::slash::{self, Typed};
use super::{App, Detail, Effect, Focus, Kind, Menu, MenuItem, Panel, Pick, PromptKind, Who};
use crate::control::Control;
use crate::domain::StepState;
use crate::ui::tui::input::Edited;
use crate::ui::tui::layout;
use crate::ui::tui::rows::{self, Target};
use crate::ui::tui::text;
use crate::ui::tui::theme::{Theme, ThemeName};

const MAX_ZOOM: u32 = 1 << 16;

impl App {
    pub(super) fn key(&mut self, key: KeyEvent) -> Vec<Effect> {
        if key.kind == KeyEventKind::Release {
            return Vec::new();
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return self.interrupted();
        }
        self.leaving = false;
        self.notice = None;
        match (key.code, control) {
            (KeyCode::Char('z'), true) => return vec![Effect::Suspend],
            (KeyCode::Char('l'), true) => return vec![Effect::Redraw],
            (KeyCode::F(1), _) => {
                self.help = if self.help.is_some() { None } else { Some(0) };
                return Vec::new();
            }
            _ => {}
        }
        // What lies on top gets the key.
        if self.help.is_some() {
            return self.help_key(key);
        }
        if !self.run.approvals.is_empty() && self.playback.is_none() {
            return self.approval_key(key);
        }
        if self.menu.is_some() {
            return self.menu_key(key);
        }
        if self.prompt.is_some() {
            return self.prompt_key(key);
        }
        if self.detail.is_some() {
            return self.detail_key(key);
        }
        match self.focus {
            Focus::Input => self.input_key(key),
            Focus::Panel => self.panel_key(key),
        }
    }

    pub(super) fn paste(&mut self, pasted: &str) {
        if let Some(prompt) = &mut self.prompt {
            prompt.editor.paste(&text::line(pasted));
        } else if self.kind == Kind::Session && self.help.is_none() && self.menu.is_none() && self.detail.is_none() {
            self.focus = Focus::Input;
            self.input.paste(pasted);
        }
    }

    /// Ctrl-C: once ends the run, or empties the editor; twice leaves.
    fn interrupted(&mut self) -> Vec<Effect> {
        if std::mem::replace(&mut self.leaving, true) {
            return vec![Effect::Leave];
        }
        self.tell(self.lang.pick("Ctrl-C again leaves at once", "再按一次 Ctrl-C 立即退出").to_owned());
        if self.run.is_running() {
            return vec![Effect::Control(Control::Stop)];
        }
        self.input.clear();
        Vec::new()
    }

    /// Esc where nothing lies on top: ends a run gracefully.
    fn stop(&mut self) -> Vec<Effect> {
        self.tell(self.lang.pick("stopping with the best answer so far", "正在停止，将给出目前的最佳结论").to_owned());
        vec![Effect::Control(Control::Stop)]
    }

    pub(super) fn copied(&mut self, copied: Option<String>) -> Vec<Effect> {
        let Some(copied) = copied.filter(|copied| !copied.trim().is_empty()) else { return Vec::new() };
        self.tell(self.lang.pick("copied", "已复制").to_owned());
        vec![Effect::Copy(copied)]
    }

    fn input_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let completions = slash::completions(self.input.text());
        if !completions.is_empty() {
            let last = completions.len() - 1;
            match key.code {
                KeyCode::Tab => {
                    let name = completions[self.completion.min(last)].0;
                    self.input.set(&format!("/{name} "));
                    self.completion = 0;
                    return Vec::new();
                }
                KeyCode::Down => {
                    self.completion = (self.completion + 1).min(last);
                    return Vec::new();
                }
                KeyCode::Up => {
                    self.completion = self.completion.saturating_sub(1);
                    return Vec::new();
                }
                _ => {}
            }
        }
        match key.code {
            KeyCode::Esc if self.run.is_running() => return self.stop(),
            KeyCode::Esc if !self.input.is_empty() => self.input.clear(),
            KeyCode::Esc | KeyCode::Tab => self.focus = Focus::Panel,
            KeyCode::BackTab => self.cycle(-1),
            KeyCode::PageUp => self.scroll_page(-1),
            KeyCode::PageDown => self.scroll_page(1),
            KeyCode::Char('?') if self.input.is_empty() => self.help = Some(0),
            _ => {
                self.completion = 0;
                if let Edited::Entered(entered) = self.input.key(key) {
                    return self.entered(entered);
                }
            }
        }
        Vec::new()
    }

    fn entered(&mut self, entered: String) -> Vec<Effect> {
        if !entered.starts_with('/') {
            if self.run.is_running() {
                self.input.set(&entered);
                let text = "still answering: Esc stops it, /fact TEXT tells it something";
                self.tell(self.lang.pick(text, "正在回答：Esc 停止，/fact 可补充事实").to_owned());
                return Vec::new();
            }
            self.say(Who::User, &entered, Vec::new());
            self.show(Panel::Chat);
            self.follow(Panel::Chat);
            return vec![Effect::Ask(entered)];
        }
        match slash::parse(&entered, self.lang) {
            Ok(typed) => self.typed(typed, &entered),
            Err(message) => {
                self.input.set(&entered);
                self.tell(message);
                Vec::new()
            }
        }
    }

    fn typed(&mut self, typed: Typed, entered: &str) -> Vec<Effect> {
        match typed {
            Typed::Command(command) => {
                let begins = matches!(command, slash::Command::Diagnose(_) | slash::Command::Resume(_));
                if begins && self.run.is_running() {
                    self.tell(self.lang.pick("something runs still: Esc stops it", "仍在运行：Esc 停止").to_owned());
                    return Vec::new();
                }
                self.say(Who::User, &format!("`{entered}`"), Vec::new());
                self.follow(Panel::Chat);
                return vec![Effect::Command(command)];
            }
            Typed::Trace => self.visit(Panel::Timeline),
            Typed::Evidence(None) => self.visit(Panel::Evidence),
            Typed::Evidence(Some(id)) => self.open_evidence(&id),
            Typed::Language(lang) => self.lang = lang,
            Typed::Theme(name) => self.choose_theme(name.as_deref()),
            Typed::Fact(fact) => return self.fact(fact),
            Typed::Clear => self.chat = super::Ring::new(super::KEPT_ENTRIES),
            Typed::Help => self.help = Some(0),
            Typed::Quit => return self.quit(),
        }
        Vec::new()
    }

    fn choose_theme(&mut self, name: Option<&str>) {
        let chosen = match name {
            None => Some(self.theme_name.next()),
            Some(name) => ThemeName::of_id(name),
        };
        match chosen {
            Some(theme) => (self.theme_name, self.theme) = (theme, Theme::of(theme)),
            None => {
                let known: Vec<&str> = ThemeName::ALL.iter().map(|theme| theme.id()).collect();
                let known = known.join(", ");
                self.tell(self.lang.pick(format!("themes: {known}"), format!("可选配色：{known}")));
            }
        }
    }

    fn quit(&mut self) -> Vec<Effect> {
        if self.run.is_running() && self.playback.is_none() {
            let text = "still running: Esc stops it with the best answer so far, Ctrl-C twice leaves";
            self.tell(self.lang.pick(text, "仍在运行：Esc 停止并给出结论，按两次 Ctrl-C 退出").to_owned());
            return Vec::new();
        }
        vec![Effect::Quit]
    }

    fn panel_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        match key.code {
            KeyCode::Esc if self.search.is_some() => self.search = None,
            KeyCode::Esc if self.run.is_running() && self.playback.is_none() => return self.stop(),
            KeyCode::Esc => self.focus_input(),
            KeyCode::Char('q') => return self.quit(),
            KeyCode::Char('?') => self.help = Some(0),
            KeyCode::Char('i') => self.focus_input(),
            KeyCode::Char(digit @ '1'..='9') => self.visit_number(digit),
            KeyCode::Tab => self.cycle(1),
            KeyCode::BackTab => self.cycle(-1),
            KeyCode::Down | KeyCode::Char('j') => self.move_cursor(1),
            KeyCode::Up | KeyCode::Char('k') => self.move_cursor(-1),
            KeyCode::PageDown => self.scroll_page(1),
            KeyCode::PageUp => self.scroll_page(-1),
            KeyCode::Char(' ') if self.playback.is_some() => return self.play(|playback| playback.paused ^= true),
            KeyCode::Char(' ') => self.scroll_page(1),
            KeyCode::Home | KeyCode::Char('g') => self.move_cursor(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.move_cursor(isize::MAX),
            KeyCode::Right | KeyCode::Char('l') => self.sideways(true),
            KeyCode::Left | KeyCode::Char('h') => self.sideways(false),
            KeyCode::Char('/') => self.ask_for(PromptKind::Search),
            KeyCode::Char('n') => self.find(1),
            KeyCode::Char('N') => self.find(-1),
            KeyCode::Char('f') if self.run.is_running() => self.ask_for(PromptKind::Fact),
            KeyCode::Char('t') => self.choose_theme(None),
            KeyCode::Char('m') => {
                self.mouse = !self.mouse;
                return vec![Effect::Mouse(self.mouse)];
            }
            KeyCode::Char('+' | '=') => self.enlarge(true),
            KeyCode::Char('-') => self.enlarge(false),
            KeyCode::Char(']') => return self.play(|playback| playback.speed = (playback.speed * 2.0).min(1024.0)),
            KeyCode::Char('[') => return self.play(|playback| playback.speed = (playback.speed / 2.0).max(0.125)),
            _ => return self.row_key(key),
        }
        Vec::new()
    }

    fn play(&mut self, change: impl FnOnce(&mut super::Playback)) -> Vec<Effect> {
        let Some(playback) = &mut self.playback else { return Vec::new() };
        change(playback);
        vec![Effect::Play(*playback)]
    }

    /// Keys that act on the row under the cursor.
    fn row_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let rows = rows::of(self, self.panel);
        let cursor = self.cursor(self.panel, rows.len());
        let Some(row) = rows.get(cursor) else { return Vec::new() };
        let running = self.run.is_running();
        match (key.code, &row.target) {
            (KeyCode::Enter, target) => return self.open(target.clone(), row.cites.clone()),
            (KeyCode::Char('y'), _) => {
                let copied = rows::copied(self, self.panel, row);
                return self.copied(Some(copied));
            }
            (KeyCode::Char('x'), Target::Call(id)) if running => {
                return vec![Effect::Control(Control::CancelCall { call_id: *id })];
            }
            (KeyCode::Char('s'), Target::Step(step)) if running => {
                let open = |state| matches!(state, StepState::Pending | StepState::Running);
                if self.run.step(*step).is_some_and(|step| open(step.state)) {
                    return vec![Effect::Control(Control::SkipStep { step: *step })];
                }
            }
            (KeyCode::Char(verdict @ ('p' | 'd')), Target::Hypothesis(index)) if running => {
                return self.judge(*index, verdict == 'p');
            }
            (KeyCode::Char('p' | 'd' | 'x' | 's'), _) if !running => {
                self.tell(self.lang.pick("the run has ended", "运行已结束").to_owned());
            }
            _ => {}
        }
        Vec::new()
    }

    fn judge(&mut self, index: usize, is_pin: bool) -> Vec<Effect> {
        let Some(hypothesis) = self.run.hypotheses.get(index).map(crate::domain::Hypothesis::key) else {
            return Vec::new();
        };
        let list = if is_pin { &self.run.pinned } else { &self.run.dismissed };
        vec![Effect::Control(match (list.contains(&hypothesis), is_pin) {
            (true, _) => Control::ReleaseHypothesis { hypothesis },
            (false, true) => Control::PinHypothesis { hypothesis },
            (false, false) => Control::DismissHypothesis { hypothesis },
        })]
    }

    /// Enter: what a row cites or holds is opened, in full or in its place.
    fn open(&mut self, target: Target, cites: Vec<String>) -> Vec<Effect> {
        match target {
            Target::Evidence(id) => self.open_evidence(&id),
            Target::Call(_) | Target::Step(_) | Target::Hypothesis(_) | Target::Node(_) if cites.is_empty() => {
                self.toggle(&target.key());
            }
            Target::Call(id) if cites == ["full"] => {
                self.detail = self.run.calls.iter().rev().find(|call| call.id == id).map(Detail::call);
            }
            Target::ReadBack => return vec![Effect::ReadBack],
            _ => match cites.as_slice() {
                [] => {}
                [id] => self.open_evidence(id),
                ids => self.choose_evidence(ids),
            },
        }
        Vec::new()
    }

    fn choose_evidence(&mut self, ids: &[String]) {
        let item = |id: &String| {
            let summary = self.evidence(id).map_or("", |evidence| evidence.summary.as_str());
            MenuItem { label: format!("{id}  {summary}"), pick: Pick::Evidence(id.clone()) }
        };
        let items = ids.iter().map(item).collect();
        self.menu = Some(Menu { title: Panel::Evidence.title(self.lang).to_owned(), items, cursor: 0 });
    }

    pub(super) fn open_evidence(&mut self, id: &str) {
        match self.evidence(id).map(Detail::evidence) {
            Some(detail) => self.detail = Some(detail),
            None => self.tell(self.lang.pick(format!("there is no {id} here"), format!("此处没有 {id}"))),
        }
    }

    pub(super) fn toggle(&mut self, key: &str) {
        if let Some(view) = self.views.get_mut(&self.panel)
            && !view.open.remove(key)
        {
            view.open.insert(key.to_owned());
        }
    }

    fn visit(&mut self, panel: Panel) {
        self.show(panel);
        self.focus = Focus::Panel;
        self.has_chosen = true;
    }

    fn visit_number(&mut self, digit: char) {
        let index = digit.to_digit(10).unwrap_or(0) as usize;
        if let Some(panel) = self.panels().get(index.wrapping_sub(1)).copied() {
            self.visit(panel);
        }
    }

    fn focus_input(&mut self) {
        if self.kind == Kind::Session {
            self.focus = Focus::Input;
        }
    }

    /// Through the panels, and the editor where there is one.
    fn cycle(&mut self, direction: isize) {
        let panels = self.panels();
        let places = panels.len() + usize::from(self.kind == Kind::Session);
        let at = match self.focus {
            Focus::Input => panels.len(),
            Focus::Panel => panels.iter().position(|panel| *panel == self.panel).unwrap_or(0),
        };
        let next = (at + places).wrapping_add_signed(direction) % places;
        match panels.get(next) {
            Some(panel) => self.visit(*panel),
            None => self.focus = Focus::Input,
        }
    }

    /// The row under the cursor, among so many.
    pub fn cursor(&self, panel: Panel, rows: usize) -> usize {
        let view = self.view(panel);
        let last = rows.saturating_sub(1);
        if view.follows { last } else { view.cursor.min(last) }
    }

    pub(super) fn move_cursor(&mut self, by: isize) {
        let rows = rows::of(self, self.panel).len();
        let last = rows.saturating_sub(1);
        let cursor = self.cursor(self.panel, rows).saturating_add_signed(by).min(last);
        self.put_cursor(self.panel, cursor, rows);
    }

    fn put_cursor(&mut self, panel: Panel, cursor: usize, rows: usize) {
        let height = layout::body(self, panel).map_or(1, |area| usize::from(area.height));
        let follows = panel.follows() && cursor + 1 >= rows;
        if let Some(view) = self.views.get_mut(&panel) {
            view.top = layout::top(cursor, view.top, rows, height);
            (view.cursor, view.follows) = (cursor, follows);
        }
    }

    fn follow(&mut self, panel: Panel) {
        if let Some(view) = self.views.get_mut(&panel) {
            view.follows = true;
        }
    }

    fn scroll_page(&mut self, direction: isize) {
        let height = layout::body(self, self.panel).map_or(10, |area| area.height.saturating_sub(1).max(1));
        self.move_cursor(direction * isize::try_from(height).unwrap_or(1));
    }

    /// Scrolls sideways; in the timeline, along the axis.
    fn sideways(&mut self, right: bool) {
        if self.panel == Panel::Timeline && self.zoom.0 > 1 {
            let step = 0.25 / f64::from(self.zoom.0);
            let most = 1.0 - 1.0 / f64::from(self.zoom.0);
            self.zoom.1 = (self.zoom.1 + if right { step } else { -step }).clamp(0.0, most);
        } else if let Some(view) = self.views.get_mut(&self.panel) {
            view.left = if right { view.left + SIDEWAYS } else { view.left.saturating_sub(SIDEWAYS) };
        }
    }

    fn enlarge(&mut self, more: bool) {
        let zoom = if more { self.zoom.0.saturating_mul(2).min(MAX_ZOOM) } else { (self.zoom.0 / 2).max(1) };
        // The middle of the screen stays where it is.
        let middle = self.zoom.1 + 0.5 / f64::from(self.zoom.0);
        let most = 1.0 - 1.0 / f64::from(zoom);
        self.zoom = (zoom, (middle - 0.5 / f64::from(zoom)).clamp(0.0, most));
    }

    /// To the next row that holds what is searched for, around the end.
    pub(super) fn find(&mut self, direction: isize) {
        let Some(search) = self.search.clone() else { return };
        let (head, _) = self.detail_size();
        if let Some(detail) = &mut self.detail {
            let found = detail.find(&search, direction > 0, head);
            return self.told_found(found, &search);
        }
        let rows = rows::of(self, self.panel);
        let wanted = search.to_lowercase();
        let count = rows.len();
        let cursor = self.cursor(self.panel, count);
        let found = (1..=count).find_map(|step| {
            let step = if direction > 0 { step } else { count - step };
            let at = (cursor + step) % count;
            text::plain(&rows[at].line).to_lowercase().contains(&wanted).then_some(at)
        });
        if let Some(at) = found {
            self.put_cursor(self.panel, at, count);
        }
        self.told_found(found.is_some(), &search);
    }

    pub(super) fn told_found(&mut self, found: bool, search: &str) {
        if !found {
            self.tell(self.lang.pick(format!("not found: {search}"), format!("未找到：{search}")));
        }
    }
}
