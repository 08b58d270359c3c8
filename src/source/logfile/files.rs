//! Log files and folders as a [`LogSource`].

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::BoxStream;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::mpsc;

use super::by_time::{self, From};
use super::pattern;
use super::{ReadOptions, read_events};
use crate::domain::{FailureKind, LogEvent};
use crate::source::{LogBatch, LogQuery, LogSource, SourceError};

/// Events go out in batches of this size, through a channel that holds so many batches.
const BATCH_EVENTS: usize = 1024;
const CHANNEL_BATCHES: usize = 4;
/// To list services, so many events of each file are looked at.
const SERVICE_SAMPLE_EVENTS: usize = 2000;

/// A set of log files and folders.
#[derive(Debug, Clone)]
pub struct FileLogs {
    name: String,
    roots: Vec<PathBuf>,
    now: Timestamp,
    zone: TimeZone,
    reach: Reach,
}

/// How much of the files is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All of it: files of an incident may be copies whose times of change say nothing.
    Whole,
    /// Of files that grow on this machine, the part that the question is about.
    ByTime,
}

/// One file with what its place says of its events.
#[derive(Debug, Clone, PartialEq)]
pub struct LogFile {
    pub path: PathBuf,
    pub service: Option<String>,
    pub instance: Option<String>,
}

/// Every file at or below the roots, sorted, with the reasons why some could not be listed. Files below a folder
/// are named after their place in it.
pub fn list_files(roots: &[PathBuf]) -> (Vec<LogFile>, Vec<String>) {
    let (mut files, mut notes) = (Vec::new(), Vec::new());
    for root in roots {
        // Hidden and ignored files count too: whoever names a folder wants all of it.
        let walk = ignore::WalkBuilder::new(root).standard_filters(false).follow_links(true).build();
        for entry in walk {
            match entry {
                Ok(entry) if entry.file_type().is_some_and(|kind| kind.is_file()) => {
                    files.push(describe(root, entry.into_path()));
                }
                Ok(_) => {}
                Err(error) => notes.push(format!("cannot list {}: {error}", root.display())),
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files.dedup_by(|a, b| a.path == b.path);
    (files, notes)
}

impl FileLogs {
    /// A source over files and folders (recursively). `now` and `zone` complete stamps that leave something open.
    pub fn new(name: impl Into<String>, roots: Vec<PathBuf>, now: Timestamp, zone: TimeZone) -> Self {
        Self { name: name.into(), roots, now, zone, reach: Reach::Whole }
    }

    /// A source over the logs of this machine: files, folders, and patterns with their rotated parts (`app.log` stands
    /// for `app.log.1` and `app.log.2.gz`, too). Only what may hold the asked time is read.
    pub fn of_this_machine(name: impl Into<String>, patterns: Vec<PathBuf>, now: Timestamp, zone: TimeZone) -> Self {
        Self { reach: Reach::ByTime, ..Self::new(name, patterns, now, zone) }
    }

    fn options(&self, file: &LogFile) -> ReadOptions {
        ReadOptions {
            service: file.service.clone(),
            instance: file.instance.clone(),
            ..ReadOptions::new(self.now, self.zone.clone())
        }
    }

    fn list(&self) -> Result<(Vec<LogFile>, Vec<String>), SourceError> {
        let (files, notes) = match self.reach {
            Reach::Whole => list_files(&self.roots),
            Reach::ByTime => pattern::list(&self.roots),
        };
        if files.is_empty() && !notes.is_empty() {
            return Err(SourceError::new(FailureKind::Unavailable, notes.join("; ")));
        }
        Ok((files, notes))
    }

    /// Reads every file and sends what matches. Ends when nobody listens any more.
    fn read_all(&self, query: &LogQuery, sender: &mpsc::Sender<Result<LogBatch, SourceError>>) {
        let (files, notes) = match self.list() {
            Ok(listed) => listed,
            Err(error) => {
                let _ = sender.blocking_send(Err(error));
                return;
            }
        };
        let mut batch = LogBatch { notes, ..LogBatch::default() };
        let matcher = Matcher::new(query);
        for file in &files {
            let mut listening = true;
            let from = match self.reach {
                Reach::Whole => From::Start,
                Reach::ByTime => by_time::from(&file.path, query.window.start, &self.options(file)),
            };
            let mut after = by_time::Behind::new(query.window.end);
            let mut each = |event: LogEvent| {
                if self.reach == Reach::ByTime && after.is_far(&event) {
                    return ControlFlow::Break(());
                }
                if matcher.accepts(&event) {
                    batch.events.push(event);
                }
                if batch.events.len() >= BATCH_EVENTS {
                    listening = sender.blocking_send(Ok(std::mem::take(&mut batch))).is_ok();
                }
                if listening && !sender.is_closed() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let read = match from {
                From::Start => read_events(&file.path, &self.options(file), &mut each),
                From::Offset(offset) => by_time::read(&file.path, offset, &self.options(file), &mut each),
                From::Nowhere => continue,
            };
            match read {
                Ok(report) => {
                    batch.truncated |= report.broken.is_some();
                    let notes = report.notes.iter().chain(&report.broken);
                    batch.notes.extend(notes.map(|note| format!("{}: {note}", file.path.display())));
                }
                // One unreadable file does not hide the others.
                Err(error) => batch.notes.push(error.to_string()),
            }
            if !listening || sender.is_closed() {
                return;
            }
        }
        let _ = sender.blocking_send(Ok(batch));
    }

    fn list_services(&self) -> Result<Vec<String>, SourceError> {
        let mut services = BTreeSet::new();
        for file in self.list()?.0 {
            let mut left = SERVICE_SAMPLE_EVENTS;
            let mut each = |event: LogEvent| {
                services.extend(event.service);
                left -= 1;
                if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            // A file that cannot be read names no service; a search says why.
            let _ = read_events(&file.path, &self.options(&file), &mut each);
        }
        Ok(services.into_iter().collect())
    }
}

#[async_trait]
impl LogSource for FileLogs {
    fn name(&self) -> &str {
        &self.name
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let (sender, receiver) = mpsc::channel(CHANNEL_BATCHES);
        let (logs, query) = (self.clone(), query.clone());
        // The task ends by itself when the stream is dropped: sending fails then.
        tokio::task::spawn_blocking(move || logs.read_all(&query, &sender));
        futures::stream::unfold(
            receiver,
            |mut receiver| async move { receiver.recv().await.map(|batch| (batch, receiver)) },
        )
        .boxed()
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        let logs = self.clone();
        match tokio::task::spawn_blocking(move || logs.list_services()).await {
            Ok(services) => services,
            Err(error) => Err(SourceError::new(FailureKind::SourceError, format!("listing services failed: {error}"))),
        }
    }
}

/// What a query asks of each event.
struct Matcher<'a> {
    query: &'a LogQuery,
    keywords: Vec<String>,
}

impl<'a> Matcher<'a> {
    fn new(query: &'a LogQuery) -> Self {
        Self { query, keywords: query.keywords.iter().map(|word| word.to_lowercase()).collect() }
    }

    /// An event without a time lies in no window.
    fn accepts(&self, event: &LogEvent) -> bool {
        let same = |wanted: &Option<String>, has: &Option<String>| wanted.is_none() || wanted == has;
        event.at.is_some_and(|at| self.query.window.contains(at))
            && same(&self.query.service, &event.service)
            && same(&self.query.instance, &event.instance)
            && self.has_keywords(&event.message)
    }

    fn has_keywords(&self, message: &str) -> bool {
        if self.keywords.is_empty() {
            return true;
        }
        let message = message.to_lowercase();
        self.keywords.iter().all(|word| message.contains(word))
    }
}

/// The service and instance that a file's place names: `SERVICE/…/POD.log` below the root; a file directly in the
/// root is named after its service.
pub(super) fn describe(root: &Path, path: PathBuf) -> LogFile {
    let below = path.strip_prefix(root).unwrap_or(&path);
    let parts: Vec<&str> = below
        .components()
        .filter_map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let (service, instance) = match parts.as_slice() {
        [] => (path.file_name().and_then(|name| name.to_str()).map(stem), None),
        [file] => (Some(stem(file)), None),
        [service, .., file] => (Some((*service).to_owned()), Some(stem(file)).filter(|name| name != service)),
    };
    let known = |name: &String| !GENERIC_NAMES.contains(&name.as_str());
    LogFile { path, service: service.filter(known), instance: instance.filter(known) }
}

/// Names that say nothing about who logged.
const GENERIC_NAMES: [&str; 16] = [
    "log",
    "logs",
    "app",
    "application",
    "stdout",
    "stderr",
    "output",
    "out",
    "error",
    "errors",
    "access",
    "messages",
    "syslog",
    "current",
    "server",
    "main",
];

/// Whether an ending is one that rotation adds: a number or a date.
fn is_rotation(ending: &str) -> bool {
    !ending.is_empty() && ending.bytes().all(|c| c.is_ascii_digit() || c == b'-')
}

/// The path of the log that a rotated one was: `app.log.2.gz` and `app.log-20260304` → `app.log`.
pub(super) fn unrotated(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let plain = name.strip_suffix(".gz").or_else(|| name.strip_suffix(".zst")).unwrap_or(name);
    let by_dot = plain.rsplit_once('.').filter(|(_, ending)| is_rotation(ending));
    let by_dash = plain.rsplit_once('-').filter(|(_, ending)| ending.len() >= 6 && is_rotation(ending));
    let base = by_dot.or(by_dash).map_or(plain, |(base, _)| base);
    (base != name && !base.is_empty()).then(|| path.with_file_name(base))
}

/// A file's name without the endings of logs, archives and rotation: `order-service.log.1.gz` → `order-service`.
fn stem(name: &str) -> String {
    let mut stem = name;
    while let Some((rest, ending)) = stem.rsplit_once('.') {
        if rest.is_empty()
            || !(is_rotation(ending)
                || ["log", "gz", "zst", "json", "jsonl", "ndjson", "txt", "out", "logfmt"].contains(&ending))
        {
            break;
        }
        stem = rest;
    }
    stem.to_owned()
}
