//! Lines to events: continuation lines join the event that they belong to, pieces are put together.
//!
//! Every physical line belongs to exactly one event. Memory is bounded by one event: what is beyond the caps is
//! counted, not kept.

use super::ReadOptions;
use super::line::{self, Line, Role};
use super::stamp::{Assumed, Clock, Stamp};
use crate::domain::LogEvent;

/// The text that is kept of one event.
const MAX_EVENT_BYTES: usize = 64 * 1024;
/// So many unindented lines without a stamp may follow a stamped one before they count as events of their own.
const MAX_FOLLOWERS: u32 = 500;

/// What came together over a stream.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Tally {
    pub lines: u64,
    pub events: u64,
    /// Events without a time.
    pub undated: u64,
    /// Those of them whose stamp is a date or a time that does not exist.
    pub impossible: u64,
    /// Events of which text was dropped.
    pub cut_events: u64,
    pub assumed: Assumed,
}

/// Puts events together, line by line.
pub struct Assembler<'a> {
    options: &'a ReadOptions,
    clock: Clock,
    pending: Option<Pending>,
    /// Pieces of a line so far.
    partial: String,
    partial_start: Option<(u64, Stamp)>,
    partial_lines: u32,
    /// Whether a line of this stream brought a stamp of its own.
    dated: bool,
    /// Journal export: `KEY=value` lines up to a blank one.
    journal: Option<Journal>,
    pub tally: Tally,
}

struct Pending {
    event: LogEvent,
    followers: u32,
    cut: bool,
    /// Whether its stamp is its own, not only that of a wrapper around a bare line.
    own_header: bool,
}

struct Journal {
    start: u64,
    lines: u32,
    text: String,
}

impl<'a> Assembler<'a> {
    pub fn new(options: &'a ReadOptions) -> Self {
        Self {
            options,
            clock: Clock::new(options.now, options.zone.clone()),
            pending: None,
            partial: String::new(),
            partial_start: None,
            partial_lines: 0,
            dated: false,
            journal: None,
            tally: Tally::default(),
        }
    }

    /// Takes the next physical line; gives the event that it completes.
    pub fn push(&mut self, text: &str) -> Option<LogEvent> {
        self.tally.lines += 1;
        let number = self.tally.lines;
        if self.journal.is_some() || text.starts_with("__CURSOR=") {
            return self.push_journal(text, number);
        }
        let line = line::parse(text, &self.clock);
        if line.role == Role::Partial {
            self.push_piece(&line, number);
            return None;
        }
        if let Some((start, stamp)) = self.partial_start.take() {
            // The last piece came parsed as a line of its own; the whole is what has to be parsed.
            let mut whole = std::mem::take(&mut self.partial);
            append_capped(&mut whole, &line.message);
            let lines = std::mem::take(&mut self.partial_lines) + 1;
            let clock = self.clock.clone();
            let line = super::structured::wrap(line::parse(&whole, &clock), stamp);
            return self.accept(line, start, lines);
        }
        self.accept(line, number, 1)
    }

    /// The last event.
    pub fn finish(&mut self) -> Option<LogEvent> {
        if let Some(journal) = self.journal.take() {
            let clock = self.clock.clone();
            let line = journal_line(&journal.text, &clock);
            if let Some(event) = self.accept(line, journal.start, journal.lines) {
                return Some(event);
            }
        }
        if let Some((start, stamp)) = self.partial_start.take() {
            let whole = std::mem::take(&mut self.partial);
            let clock = self.clock.clone();
            let line = super::structured::wrap(line::parse(&whole, &clock), stamp);
            let lines = std::mem::take(&mut self.partial_lines);
            if let Some(event) = self.accept(line, start, lines) {
                return Some(event);
            }
        }
        self.flush()
    }

    fn push_piece(&mut self, line: &Line<'_>, number: u64) {
        if let (None, Some(stamp)) = (self.partial_start, line.at) {
            self.partial_start = Some((number, stamp));
        }
        append_capped(&mut self.partial, &line.message);
        self.partial_lines += 1;
    }

    fn push_journal(&mut self, text: &str, number: u64) -> Option<LogEvent> {
        let journal = self.journal.get_or_insert_with(|| Journal { start: number, lines: 0, text: String::new() });
        journal.lines += 1;
        if !text.is_empty() {
            if !journal.text.is_empty() {
                journal.text.push('\n');
            }
            append_capped(&mut journal.text, text);
            return None;
        }
        let journal = self.journal.take()?;
        let line = journal_line(&journal.text, &self.clock.clone());
        self.accept(line, journal.start, journal.lines)
    }

    fn accept(&mut self, line: Line<'_>, number: u64, lines: u32) -> Option<LogEvent> {
        if line.role == Role::Bare && self.continues(&line) {
            self.append(&line.message, lines);
            return None;
        }
        let done = self.flush();
        let own_header = line.role == Role::Begins;
        self.dated |= own_header && line.at.is_some();
        match line.at {
            Some(Stamp { at: Some(_), assumed }) => {
                let total = &mut self.tally.assumed;
                total.date |= assumed.date;
                total.year |= assumed.year;
                total.zone |= assumed.zone;
            }
            Some(Stamp { at: None, .. }) => self.tally.impossible += 1,
            None => {}
        }
        let event = LogEvent {
            at: line.at.and_then(|stamp| stamp.at),
            level: line.level,
            service: line.service.map(std::borrow::Cow::into_owned).or_else(|| self.options.service.clone()),
            instance: line.instance.map(std::borrow::Cow::into_owned).or_else(|| self.options.instance.clone()),
            message: line.message.into_owned(),
            line: number,
            lines,
        };
        self.pending = Some(Pending { event, followers: 0, cut: false, own_header });
        done
    }

    /// Whether a line without a header belongs to the event before it.
    fn continues(&self, line: &Line<'_>) -> bool {
        let Some(pending) = &self.pending else { return false };
        if looks_continued(&line.message) {
            return true;
        }
        // In a stream of stamped lines, a line without one belongs to the last; where nothing is stamped, every
        // line stands for itself.
        self.dated && pending.own_header && pending.followers < MAX_FOLLOWERS
    }

    fn append(&mut self, text: &str, lines: u32) {
        let Some(pending) = &mut self.pending else { return };
        if !looks_continued(text) {
            pending.followers += 1;
        }
        pending.event.lines += lines;
        let message = &mut pending.event.message;
        if message.len() + text.len() >= MAX_EVENT_BYTES {
            pending.cut = true;
            return;
        }
        // A header without a message has it on the next line.
        if !message.is_empty() {
            message.push('\n');
        }
        message.push_str(text.trim_end());
    }

    fn flush(&mut self) -> Option<LogEvent> {
        let mut pending = self.pending.take()?;
        let kept = pending.event.message.trim_ascii_end().len();
        pending.event.message.truncate(kept);
        self.tally.events += 1;
        self.tally.undated += u64::from(pending.event.at.is_none());
        self.tally.cut_events += u64::from(pending.cut);
        Some(pending.event)
    }
}

/// Appends up to the cap; what is beyond it is dropped.
fn append_capped(text: &mut String, more: &str) {
    let room = MAX_EVENT_BYTES.saturating_sub(text.len());
    let mut end = more.len().min(room);
    while !more.is_char_boundary(end) {
        end -= 1;
    }
    text.push_str(&more[..end]);
}

/// Lines that continue what stands above them in any log: indented ones, blank ones, the marks of stack traces.
fn looks_continued(text: &str) -> bool {
    const STARTS: [&str; 6] = [
        "Caused by: ",
        "Suppressed: ",
        "... ",
        "Traceback (most recent call last)",
        "goroutine ",
        "During handling of ",
    ];
    text.is_empty() || text.starts_with([' ', '\t', '}', ')']) || STARTS.iter().any(|start| text.starts_with(start))
}

/// A record of journald's export format.
fn journal_line<'t>(text: &'t str, clock: &Clock) -> Line<'t> {
    let mut fields = super::fields::Fields::default();
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        fields.take_text(key, value.into(), clock);
    }
    fields.into_line(text)
}
