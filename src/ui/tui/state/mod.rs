//! The state of the terminal front end, and how it changes: a pure reducer. In come messages (events of the agent, keys,
//! what a command answered, the clock), out come effects for whoever owns the terminal and the agent.

use std::collections::{BTreeMap, BTreeSet};

use crossterm::event::{KeyEvent, MouseEvent};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::input::Editor;
use super::theme::{Theme, ThemeName};
use crate::control::Control;
use crate::domain::text::{clean, clean_line};
use crate::domain::{Diagnosis, Evidence, Lang};
use crate::event::{Event, EventKind};
use crate::ui::report;

pub mod chat;
pub mod detail;
mod keys;
mod mouse;
mod overlays;
pub mod ring;
pub mod run;
pub mod slash;

pub use chat::{Entry, Who};
pub use detail::{Detail, DetailOf};
use ring::Ring;
use run::Run;

const KEPT_ENTRIES: usize = 400;
const NOTICE_CHARS: usize = 400;
/// The smallest screen that is drawn.
pub const SMALLEST: (u16, u16) = (60, 15);

/// What the screen is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One diagnosis; there is no conversation.
    Diagnosis,
    /// A conversation, with runs in it.
    Session,
}

/// A part of the screen that has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Panel {
    Chat,
    Plan,
    Calls,
    Evidence,
    Timeline,
    Hypotheses,
    Report,
}

impl Panel {
    pub const ALL: [Self; 7] =
        [Self::Chat, Self::Plan, Self::Calls, Self::Evidence, Self::Timeline, Self::Hypotheses, Self::Report];

    pub fn title(self, lang: Lang) -> &'static str {
        match self {
            Self::Chat => lang.pick("Chat", "对话"),
            Self::Plan => lang.pick("Plan", "计划"),
            Self::Calls => lang.pick("Calls", "调用"),
            Self::Evidence => lang.pick("Evidence", "证据"),
            Self::Timeline => lang.pick("Timeline", "时间线"),
            Self::Hypotheses => lang.pick("Hypotheses", "假设"),
            Self::Report => lang.pick("Report", "报告"),
        }
    }

    /// Whether it stands at the side of a wide screen.
    pub fn is_side(self) -> bool {
        matches!(self, Self::Plan | Self::Calls)
    }

    /// Whether what comes last is what matters.
    fn follows(self) -> bool {
        matches!(self, Self::Chat | Self::Calls)
    }
}

/// Where keys go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Focus {
    Panel,
    Input,
}

/// How far a panel is scrolled, and what is open in it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PanelView {
    /// The row under the cursor.
    pub cursor: usize,
    /// The first row that is shown.
    pub top: usize,
    /// Columns that are scrolled out at the left.
    pub left: usize,
    /// Whether the cursor stays at the end as rows come.
    pub follows: bool,
    /// What is expanded, by the keys of the rows.
    pub open: BTreeSet<String>,
}

/// A line that is asked for below the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub kind: PromptKind,
    pub editor: Editor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    Search,
    Fact,
}

/// Something to choose from.
#[derive(Debug, Clone, PartialEq)]
pub struct Menu {
    pub title: String,
    pub items: Vec<MenuItem>,
    pub cursor: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MenuItem {
    pub label: String,
    pub pick: Pick,
}

/// What choosing an item does.
#[derive(Debug, Clone, PartialEq)]
pub enum Pick {
    Evidence(String),
    /// Goes on with a stored session.
    Resume(String),
    /// Diagnoses one of the alerts that were listed, by its place.
    Alert(usize),
    Model(String),
}

/// How a stored session is played back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Playback {
    /// Times the speed at which it happened.
    pub speed: f64,
    pub paused: bool,
    pub played: usize,
    pub total: usize,
}

/// Something that happened outside.
#[derive(Debug, Clone)]
pub enum Msg {
    Event(Box<Event>),
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    Tick(Timestamp),
    /// A run begins that has no event for it.
    Began {
        title: String,
        at: Timestamp,
    },
    /// A question was answered; evidence is cited as `[E3]`.
    Answered {
        text: String,
    },
    /// Something to tell in the conversation, as Markdown.
    Said(String),
    /// A line of the log, or a note of a command.
    Logged(String),
    /// Something to choose from.
    Choose(Menu),
    /// A text to read in full.
    Read {
        title: String,
        lines: Vec<String>,
    },
    /// The run could not be begun, or ended with an error.
    Failed(String),
    /// Something that was asked for beside the run cannot be had.
    Refused(String),
    /// A stored session takes the place of what is shown: what was said, oldest first; its run follows as events.
    Opened {
        title: String,
        said: Vec<(Who, String, Timestamp)>,
    },
    Played(Playback),
    Language(Lang),
}

/// What is to be done outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    Control(Control),
    /// Leave, the run having ended.
    Quit,
    /// Leave now, whatever runs.
    Leave,
    Suspend,
    Redraw,
    Copy(String),
    Mouse(bool),
    /// What was entered: a question.
    Ask(String),
    Command(slash::Command),
    Pick(Pick),
    /// Fetch what happened before the first line that is kept.
    ReadBack,
    Play(Playback),
}

/// Everything that is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct App {
    pub kind: Kind,
    pub lang: Lang,
    pub zone: TimeZone,
    pub theme_name: ThemeName,
    pub theme: Theme,
    /// Columns and rows.
    pub size: (u16, u16),
    pub now: Timestamp,
    pub run: Run,
    pub chat: Ring<Entry>,
    /// The panel with the focus, and the last one that was not at the side.
    pub panel: Panel,
    pub main: Panel,
    pub focus: Focus,
    pub views: BTreeMap<Panel, PanelView>,
    pub input: Editor,
    /// The completion under the cursor.
    pub completion: usize,
    pub prompt: Option<Prompt>,
    pub search: Option<String>,
    pub detail: Option<Detail>,
    /// The first line of the help that is shown.
    pub help: Option<usize>,
    pub menu: Option<Menu>,
    pub notice: Option<String>,
    /// Ctrl-C was pressed once.
    pub leaving: bool,
    pub mouse: bool,
    /// How many times the timeline is enlarged, and the share of it that is left of the screen.
    pub zoom: (u32, f64),
    pub playback: Option<Playback>,
    /// The report of the run's end, as Markdown.
    pub report: String,
    /// Whether the user chose a panel, so that none is chosen for them.
    pub has_chosen: bool,
}

impl App {
    pub fn new(kind: Kind, lang: Lang, zone: TimeZone, theme: ThemeName, size: (u16, u16), now: Timestamp) -> Self {
        let view = |panel: Panel| (panel, PanelView { follows: panel.follows(), ..PanelView::default() });
        let (panel, focus) = match kind {
            Kind::Diagnosis => (Panel::Evidence, Focus::Panel),
            Kind::Session => (Panel::Chat, Focus::Input),
        };
        Self {
            kind,
            lang,
            zone,
            theme_name: theme,
            theme: Theme::of(theme),
            size,
            now,
            run: Run::default(),
            chat: Ring::new(KEPT_ENTRIES),
            panel,
            main: panel,
            focus,
            views: Panel::ALL.into_iter().map(view).collect(),
            input: Editor::default(),
            completion: 0,
            prompt: None,
            search: None,
            detail: None,
            help: None,
            menu: None,
            notice: None,
            leaving: false,
            mouse: false,
            zoom: (1, 0.0),
            playback: None,
            report: String::new(),
            has_chosen: false,
        }
    }

    /// The panels that this screen has.
    pub fn panels(&self) -> &'static [Panel] {
        match self.kind {
            Kind::Diagnosis => &Panel::ALL[1..],
            Kind::Session => &Panel::ALL,
        }
    }

    /// Whether something moves by itself, so that the clock has to tick.
    pub fn is_moving(&self) -> bool {
        self.run.is_running() && self.playback.is_none()
    }

    pub fn view(&self, panel: Panel) -> &PanelView {
        // Every panel has a view from the beginning on.
        &self.views[&panel]
    }

    /// Takes a message in.
    pub fn reduce(&mut self, msg: Msg) -> Vec<Effect> {
        match msg {
            Msg::Event(event) => self.event(&event),
            Msg::Key(key) => return self.key(key),
            Msg::Paste(text) => self.paste(&text),
            Msg::Mouse(event) => return self.mouse_event(event),
            Msg::Resize(columns, rows) => self.size = (columns, rows),
            Msg::Tick(now) => self.now = self.now.max(now),
            Msg::Began { title, at } => self.begin(&title, at),
            Msg::Answered { text } => self.answered(&text),
            Msg::Said(text) => self.say(Who::System, &text, Vec::new()),
            Msg::Logged(text) => self.run.note(run::NoteKind::Warning, &text, self.now),
            Msg::Choose(menu) => self.menu = Some(menu),
            Msg::Read { title, lines } => self.detail = Some(Detail::text(&title, lines)),
            Msg::Failed(text) => self.failed(&text),
            Msg::Refused(text) => self.refused(&text),
            Msg::Opened { title, said } => self.opened(&title, said),
            Msg::Played(playback) => self.playback = Some(playback),
            Msg::Language(lang) => self.lang = lang,
        }
        Vec::new()
    }

    fn event(&mut self, event: &Event) {
        self.now = self.now.max(event.at);
        if let EventKind::RunStarted { .. } = event.kind
            && self.run.events > 0
        {
            let title = self.run.title.clone();
            self.begin(&title, event.at);
        }
        self.run.take(event);
        match &event.kind {
            EventKind::RunEnded { diagnosis: Some(diagnosis), .. } => self.diagnosed(diagnosis),
            EventKind::RunEnded { .. } => self.leaving = false,
            EventKind::FactsFound { facts } if self.kind == Kind::Diagnosis => self.lang = facts.lang,
            EventKind::Warning { message } => self.tell(message.clone()),
            _ => {}
        }
    }

    fn begin(&mut self, title: &str, at: Timestamp) {
        let session_id = std::mem::take(&mut self.run.session_id);
        self.run = Run { session_id, ..Run::begin(title, at) };
        self.report.clear();
        self.zoom = (1, 0.0);
        self.has_chosen = false;
        for panel in self.panels().iter().filter(|panel| **panel != Panel::Chat) {
            let fresh = PanelView { follows: panel.follows(), ..PanelView::default() };
            self.views.insert(*panel, fresh);
        }
    }

    fn diagnosed(&mut self, diagnosis: &Diagnosis) {
        self.leaving = false;
        self.report = report::markdown(diagnosis, &self.zone);
        match self.kind {
            Kind::Diagnosis if !self.has_chosen => self.show(Panel::Report),
            Kind::Diagnosis => {}
            Kind::Session => {
                let report = self.report.clone();
                self.say(Who::Assistant, &report, diagnosis.evidence.clone());
            }
        }
    }

    fn answered(&mut self, text: &str) {
        let evidence = self.run.evidence.iter().cloned().collect();
        self.run.answer.clear();
        self.say(Who::Assistant, text, evidence);
    }

    fn failed(&mut self, text: &str) {
        self.leaving = false;
        if self.run.is_running() {
            self.run.phase = run::Phase::Ended(crate::domain::RunStatus::Incomplete);
        }
        self.refused(text);
    }

    fn refused(&mut self, text: &str) {
        let failed = self.lang.pick("Failed", "失败");
        self.say(Who::System, &format!("**{failed}**: {text}"), Vec::new());
        self.tell(text.to_owned());
    }

    fn opened(&mut self, title: &str, said: Vec<(Who, String, Timestamp)>) {
        self.run = Run { title: clean_line(title, NOTICE_CHARS), ..Run::default() };
        self.chat = Ring::new(KEPT_ENTRIES);
        self.report.clear();
        self.playback = None;
        for (who, text, at) in said {
            self.chat.push(Entry { at, who, text: clean(&text, chat::ENTRY_CHARS), evidence: Vec::new() });
        }
    }

    /// Adds to the conversation; of the evidence, what the text cites is kept.
    pub fn say(&mut self, who: Who, text: &str, evidence: Vec<Evidence>) {
        self.chat.push(Entry::new(self.now, who, text, evidence));
    }

    /// A line below the screen, until the next key.
    pub fn tell(&mut self, text: String) {
        self.notice = Some(clean_line(&text, NOTICE_CHARS));
    }

    /// Brings a panel to the front.
    pub fn show(&mut self, panel: Panel) {
        self.panel = panel;
        if !panel.is_side() {
            self.main = panel;
        }
    }

    /// Evidence by its id: of this run, else of an answer before.
    pub fn evidence(&self, id: &str) -> Option<&Evidence> {
        let earlier = || self.chat.iter().rev().flat_map(|entry| &entry.evidence).find(|evidence| evidence.id == id);
        self.run.evidence_of(id).or_else(earlier)
    }
}

#[cfg(test)]
mod tests;
