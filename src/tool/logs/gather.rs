//! Log events of all sources, streamed through the pattern miner.
//!
//! In: a [`Question`]. Out: patterns and volume of its window, with counts of the equally long time before; or the
//! first and last events of one template. Memory does not grow with the logs.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::StreamExt;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::template::Template;
use crate::analysis::patterns::{Assignments, Miner, MinerOptions, Services};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Failure, FailureKind, Level, LogEvent, LogPattern, LogVolume, SourceReport, SourceStatus, Window};
use crate::source::{LogQuery, LogSource, SourceError};
use crate::tool::sources::Roll;

/// Notes given, and notes looked at, of sources that have one per file.
const MAX_NOTES: usize = 10;
const MAX_NOTES_SEEN: usize = 10_000;
const MAX_NOTE_CHARS: usize = 300;
/// So many events of the time before show from when on the logs reach back; fewer may be far apart by themselves.
const MIN_EVENTS_FOR_REACH: u64 = 50;
/// Logs that reach back over a smaller part of the time before say nothing of it.
const MIN_REACH: f64 = 0.2;
/// Logs that reach back over a larger part of it are as good as whole.
const WHOLE_REACH: f64 = 0.95;
/// Events kept from each end of the window when one template is asked for.
const EVENTS_FROM_EACH_END: usize = 10;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Question {
    pub query: LogQuery,
    /// Only patterns of this level or worse.
    pub level: Option<Level>,
}

impl Question {
    /// What is looked for, in words.
    pub fn sought(&self) -> String {
        let LogQuery { service, instance, keywords, .. } = &self.query;
        let mut text = "log events".to_owned();
        for (word, name) in [(" of ", service), (" of instance ", instance)] {
            if let Some(name) = name {
                text.push_str(word);
                text.push_str(name);
            }
        }
        if !keywords.is_empty() {
            text.push_str(&format!(" with {}", keywords.join(", ")));
        }
        if let Some(level) = self.level {
            text.push_str(&format!(" at {} or worse", level.as_str()));
        }
        clean_line(&text, MAX_NOTE_CHARS)
    }
}

/// What the sources said beside their events.
#[derive(Debug, Default)]
pub struct Said {
    /// The sources that answered.
    pub names: Vec<String>,
    /// How each answered.
    pub asked: Vec<SourceReport>,
    pub notes: Vec<String>,
    pub truncated: bool,
}

/// What was mined.
pub struct Gathered {
    pub question: Question,
    pub said: Said,
    /// Those of the window, the most frequent first.
    pub patterns: Vec<LogPattern>,
    pub volume: LogVolume,
    /// The services that have logs, where that was asked.
    pub services: Option<Vec<String>>,
}

/// Mines the window, and counts the time before it.
pub async fn gather(
    sources: &[Arc<dyn LogSource>],
    question: Question,
    cancel: &CancellationToken,
) -> Result<Gathered, Failure> {
    let window = question.query.window;
    let mut miner =
        Miner::new(MinerOptions { window: Some(window), services: Services::Apart, assignments: Assignments::Dropped });
    let query = LogQuery { window: Window::new(window.before().start, window.end), ..question.query.clone() };
    let mut before = Before { window: window.before(), first: None, events: 0 };
    let mut said = read(sources, &query, cancel, &mut |event| {
        before.count(event);
        miner.add(event);
    })
    .await?;
    let mined = miner.finish();
    let mut patterns = mined.patterns;
    said.notes.extend(before.complete(&mut patterns));
    // What was logged before and no more is no pattern of the window.
    patterns.retain(|pattern| pattern.count > 0);
    let mut volume = LogVolume { service: question.query.service.clone(), ..mined.volume };
    volume.patterns = patterns.len();
    // A pattern has one level, so that what the level leaves out can be left out last, and the volume counts it still.
    patterns.retain(|pattern| question.level.is_none() || pattern.level >= question.level);
    Ok(Gathered { question, said, patterns, volume, services: None })
}

/// The time before the window, as far as the logs reach back.
struct Before {
    window: Window,
    first: Option<Timestamp>,
    events: u64,
}

impl Before {
    fn count(&mut self, event: &LogEvent) {
        if let Some(at) = event.at.filter(|at| *at < self.window.end) {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.events += 1;
        }
    }

    /// Where the logs begin within the time before, its counts are of a shorter time than those of the window: they
    /// are projected to the whole of it, or dropped where there is too little of it. Says so.
    fn complete(&self, patterns: &mut [LogPattern]) -> Option<String> {
        let first = self.first.filter(|_| self.events >= MIN_EVENTS_FOR_REACH)?;
        let reach = self.window.end.duration_since(first).as_secs_f64() / self.window.duration().as_secs_f64();
        if reach >= WHOLE_REACH {
            return None;
        }
        for pattern in patterns {
            let projected = |before: u64| (before as f64 / reach).round() as u64;
            pattern.before = pattern.before.filter(|_| reach >= MIN_REACH).map(projected);
        }
        Some(match reach >= MIN_REACH {
            true => format!("the logs begin at {first}: counts of the time before are projected from that part of it"),
            false => format!("the logs begin at {first}: there is too little of the time before to compare with"),
        })
    }
}

/// The first and last events of the window that a template describes, in the order of time.
pub async fn events_of(
    sources: &[Arc<dyn LogSource>],
    question: &Question,
    template: &Template,
    cancel: &CancellationToken,
) -> Result<(Vec<LogEvent>, Said), Failure> {
    let mut ends = Ends::default();
    let said = read(sources, &question.query, cancel, &mut |event| {
        if template.describes(event) && (question.level.is_none() || event.level >= question.level) {
            ends.keep(event);
        }
    })
    .await?;
    Ok((ends.into_events(), said))
}

/// Reads all sources at once: one that is slow holds up no other. What came before the failure of one stands.
async fn read(
    sources: &[Arc<dyn LogSource>],
    query: &LogQuery,
    cancel: &CancellationToken,
    each: &mut (dyn FnMut(&LogEvent) + Send),
) -> Result<Said, Failure> {
    let mut heard: Vec<Heard> = sources.iter().map(|_| Heard::default()).collect();
    let tagged = |(index, source): (usize, &Arc<dyn LogSource>)| source.search(query).map(move |batch| (index, batch));
    let mut batches = futures::stream::select_all(sources.iter().enumerate().map(tagged));
    let mut notes = Notes::default();
    loop {
        let next = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(cancelled()),
            next = batches.next() => next,
        };
        let Some((index, batch)) = next else { break };
        let heard = &mut heard[index];
        match batch {
            Ok(mut batch) => {
                heard.events += batch.events.len();
                heard.truncated |= batch.truncated;
                for event in &mut batch.events {
                    uncolour(event);
                    each(event);
                }
                batch.notes.iter().for_each(|note| notes.add(note));
            }
            Err(error) => heard.failure = Some(error),
        }
    }
    said(sources, heard, notes)
}

/// What one source gave.
#[derive(Default)]
struct Heard {
    events: usize,
    truncated: bool,
    failure: Option<SourceError>,
}

fn said(sources: &[Arc<dyn LogSource>], heard: Vec<Heard>, notes: Notes) -> Result<Said, Failure> {
    let (mut roll, mut truncated) = (Roll::default(), false);
    for (source, Heard { events, truncated: cut, failure }) in sources.iter().zip(heard) {
        let name = source.name();
        truncated |= cut || failure.is_some();
        match failure {
            None => {
                roll.names.push(name.to_owned());
                let status = match (events, cut) {
                    (_, true) => SourceStatus::Truncated,
                    (0, false) => SourceStatus::Empty,
                    (_, false) => SourceStatus::Ok,
                };
                roll.report(name, status, source.caveat().unwrap_or_default());
            }
            Some(error) => {
                if events > 0 {
                    roll.names.push(name.to_owned());
                }
                roll.fail(name, error);
            }
        }
    }
    let mut roll = roll.checked()?;
    let asked = roll.strip();
    let mut lines = roll.notes;
    lines.extend(notes.into_lines());
    Ok(Said { names: roll.names, asked, notes: lines, truncated })
}

/// Removes escape sequences, which would become part of templates.
fn uncolour(event: &mut LogEvent) {
    if event.message.contains(['\u{1b}', '\u{9b}']) {
        event.message = clean(&event.message, usize::MAX);
    }
}

fn cancelled() -> Failure {
    Failure::new(FailureKind::Cancelled, "cancelled while reading logs")
}

/// Notes as they come, which are one per file: what is said of several files becomes one note.
#[derive(Default)]
struct Notes {
    seen: BTreeSet<String>,
    /// What is said, the first note that said it, and of how many files.
    said: Vec<(String, String, usize)>,
}

impl Notes {
    fn add(&mut self, note: &str) {
        let note = clean_line(note, MAX_NOTE_CHARS);
        if self.seen.len() == MAX_NOTES_SEEN || !self.seen.insert(note.clone()) {
            return;
        }
        let about = about(&note).to_owned();
        match self.said.iter_mut().find(|(known, ..)| *known == about) {
            Some((.., files)) => *files += 1,
            None => self.said.push((about, note, 1)),
        }
    }

    fn into_lines(self) -> Vec<String> {
        let more = self.said.len().saturating_sub(MAX_NOTES);
        let line = |(about, note, files)| if files == 1 { note } else { format!("{files} files: {about}") };
        let mut lines: Vec<_> = self.said.into_iter().take(MAX_NOTES).map(line).collect();
        if more > 0 {
            lines.push(format!("more notes about the logs: {more}"));
        }
        lines
    }
}

/// A note without the file that it is about.
fn about(note: &str) -> &str {
    match note.split_once(": ") {
        Some((place, about)) if place.contains(['/', '\\']) => about,
        _ => note,
    }
}

/// The first and the last few events by time.
#[derive(Default)]
struct Ends {
    first: Vec<LogEvent>,
    last: Vec<LogEvent>,
}

impl Ends {
    fn keep(&mut self, event: &LogEvent) {
        if self.first.len() < EVENTS_FROM_EACH_END || self.first.last().is_some_and(|kept| event.at < kept.at) {
            let place = self.first.partition_point(|kept| kept.at <= event.at);
            self.first.insert(place, event.clone());
            if self.first.len() > EVENTS_FROM_EACH_END
                && let Some(displaced) = self.first.pop()
            {
                self.keep_last(displaced);
            }
        } else {
            self.keep_last(event.clone());
        }
    }

    fn keep_last(&mut self, event: LogEvent) {
        let place = self.last.partition_point(|kept| kept.at <= event.at);
        if place == 0 && self.last.len() == EVENTS_FROM_EACH_END {
            return;
        }
        self.last.insert(place, event);
        if self.last.len() > EVENTS_FROM_EACH_END {
            self.last.remove(0);
        }
    }

    fn into_events(mut self) -> Vec<LogEvent> {
        self.first.append(&mut self.last);
        self.first
    }
}
