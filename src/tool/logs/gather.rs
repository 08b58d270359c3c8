//! Log events of all sources, streamed through the pattern miner.
//!
//! In: a [`Question`]. Out: patterns and volume of its window, with counts of the equally long time before; or the
//! first and last events of one template. Memory does not grow with the logs.

use std::sync::Arc;

use futures::StreamExt;
use tokio_util::sync::CancellationToken;

use super::template::Template;
use crate::analysis::patterns::{Assignments, Miner, MinerOptions, Services};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Failure, FailureKind, Level, LogEvent, LogPattern, LogVolume, Window};
use crate::source::{LogBatch, LogQuery, LogSource};
use crate::tool::arguments::source_failure;

/// Notes kept of a source that has one per file.
const MAX_NOTES: usize = 10;
const MAX_NOTE_CHARS: usize = 300;
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
    let said = read(sources, &query, cancel, &mut |event| {
        miner.add(event);
    })
    .await?;
    let mined = miner.finish();
    let mut patterns = mined.patterns;
    // What was logged before and no more is no pattern of the window.
    patterns.retain(|pattern| pattern.count > 0);
    let mut volume = LogVolume { service: question.query.service.clone(), ..mined.volume };
    volume.patterns = patterns.len();
    // A pattern has one level, so that what the level leaves out can be left out last, and the volume counts it still.
    patterns.retain(|pattern| question.level.is_none() || pattern.level >= question.level);
    Ok(Gathered { question, said, patterns, volume })
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

/// Reads all sources, one after another. One that fails is a note beside what the others gave, and what came before
/// the failure stands; when no source gave anything, the call fails.
async fn read(
    sources: &[Arc<dyn LogSource>],
    query: &LogQuery,
    cancel: &CancellationToken,
    each: &mut (dyn FnMut(&LogEvent) + Send),
) -> Result<Said, Failure> {
    let mut said = Said::default();
    let mut first_failure = None;
    for source in sources {
        let mut batches = source.search(query);
        let mut answered = false;
        loop {
            let batch = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(cancelled()),
                batch = batches.next() => batch,
            };
            match batch {
                None => {
                    answered = true;
                    break;
                }
                Some(Ok(mut batch)) => {
                    answered |= !batch.events.is_empty();
                    for event in &mut batch.events {
                        uncolour(event);
                        each(event);
                    }
                    said.take_notes(batch);
                }
                Some(Err(error)) => {
                    said.note(&format!("{}: {error}", source.name()));
                    said.truncated = true;
                    first_failure.get_or_insert(source_failure(source.name(), error));
                    break;
                }
            }
        }
        if answered {
            said.names.push(source.name().to_owned());
        }
    }
    match first_failure {
        Some(failure) if said.names.is_empty() => Err(failure),
        _ => Ok(said),
    }
}

/// Removes escape sequences, which would become part of templates.
fn uncolour(event: &mut LogEvent) {
    if event.message.contains(['\u{1b}', '\u{9b}']) {
        event.message = clean(&event.message, usize::MAX);
    }
}

fn cancelled() -> Failure {
    Failure { kind: FailureKind::Cancelled, source: None, message: "cancelled while reading logs".to_owned() }
}

impl Said {
    fn take_notes(&mut self, batch: LogBatch) {
        self.truncated |= batch.truncated;
        batch.notes.iter().for_each(|note| self.note(note));
    }

    fn note(&mut self, note: &str) {
        let note = clean_line(note, MAX_NOTE_CHARS);
        if self.notes.contains(&note) {
            return;
        }
        match self.notes.len() {
            MAX_NOTES.. => {}
            length if length + 1 == MAX_NOTES => self.notes.push("there are more notes of this kind".to_owned()),
            _ => self.notes.push(note),
        }
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
