//! `oncall logs`: which messages log files hold, how often, since when.
//!
//! Files or standard input go through the reader and the pattern miner event by event; out comes a table, one JSON
//! document, or with `--per-line` the pattern of every line.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::json;

use super::{BadInput, Context, Exit, bad_input};
use crate::analysis::patterns::{Assignments, Mined, Miner, MinerOptions, Services, Ticket};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Level, LogEvent, LogPattern, Window};
use crate::source::logfile::{LogFile, ReadError, ReadOptions, ReadReport, list_files, read_events, read_from};
use crate::tool::arguments::{ToolClock, parse_time};

mod view;

const TEMPLATE_CHARS: usize = 2000;
const SAMPLE_CHARS: usize = 4000;
const NOTE_CHARS: usize = 300;
/// Rows of the table when nothing else is asked for.
const USUAL_ROWS: usize = 30;
/// Lines of `--per-line` output are written in pieces of this size.
const OUTPUT_BYTES: usize = 1 << 16;

#[derive(Debug, Args)]
pub struct LogsArgs {
    /// Log files, folders of them, or - for standard input; gzip and zstd are unpacked
    #[arg(value_name = "FILE|-", required = true)]
    files: Vec<PathBuf>,
    /// Print {"line", "pattern"} for every physical line, as JSON lines
    #[arg(long, conflicts_with_all = ["level", "since", "until", "service", "top"])]
    per_line: bool,
    /// Only events of this level or worse: trace, debug, info, warn, error or fatal
    #[arg(long, value_name = "LEVEL", value_parser = parse_level)]
    level: Option<Level>,
    /// Only events from here on: RFC 3339, a date and time, or a distance from now such as -15m
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    since: Option<String>,
    /// Only events up to here
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    until: Option<String>,
    /// Only events of this service
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Keep equal messages of different services apart (always so below a folder)
    #[arg(long)]
    by_service: bool,
    /// Show so many patterns (table: 30, JSON: all)
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// The zone of time stamps that name none, such as Asia/Shanghai (default: this machine's)
    #[arg(long, value_name = "ZONE", value_parser = parse_zone)]
    zone: Option<TimeZone>,
    /// The clock for stamps without a year or date (default: now)
    #[arg(long, value_name = "TIME")]
    now: Option<Timestamp>,
}

fn parse_level(text: &str) -> Result<Level, String> {
    serde_json::from_value(json!(text.to_lowercase()))
        .map_err(|_| "expected trace, debug, info, warn, error or fatal".to_owned())
}

fn parse_zone(text: &str) -> Result<TimeZone, String> {
    TimeZone::get(text).map_err(|_| "expected a zone of the IANA database, such as Asia/Shanghai or UTC".to_owned())
}

pub async fn run(args: LogsArgs, context: &Context) -> anyhow::Result<Exit> {
    let request = Request::new(&args)?;
    let gathering = Arc::new(Mutex::new(Gathering::new(&args)));
    let reading = {
        let (request, gathering) = (request.clone(), gathering.clone());
        tokio::task::spawn_blocking(move || request.read_all(&gathering))
    };
    // A log that never ends (`tail -f … | oncall logs -`) is ended by Ctrl-C, and what came until then is shown. The
    // reader finds the miner gone and stops with its next event.
    let interrupted = tokio::select! {
        done = reading => {
            done?;
            false
        }
        _ = tokio::signal::ctrl_c() => true,
    };
    let Some(gathered) = lock(&gathering).take() else {
        anyhow::bail!("the events read are gone: reading ended twice");
    };
    for failure in &gathered.failures {
        context.warn(&clean_line(failure, NOTE_CHARS));
    }
    if gathered.files.is_empty() && !interrupted {
        return Err(BadInput("no log could be read; the warnings above name the files".into()).into());
    }
    let incomplete = !gathered.failures.is_empty();
    show(&args, &request, gathered, context)?;
    Ok(match (interrupted, incomplete) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Incomplete,
        (false, false) => Exit::Success,
    })
}

fn show(args: &LogsArgs, request: &Request, gathered: Gathered, context: &Context) -> anyhow::Result<()> {
    if args.per_line {
        return print_lines(&gathered, context);
    }
    if context.is_json() {
        return Ok(context.print(&format!("{}\n", document(&gathered, args.top)))?);
    }
    let page = view::Page {
        zone: &request.zone,
        lang: context.lang.unwrap_or_default(),
        columns: context.columns(),
        rows: args.top.unwrap_or(USUAL_ROWS),
    };
    Ok(context.print(&page.render(&gathered))?)
}

/// What is asked, checked.
#[derive(Debug, Clone)]
struct Request {
    places: Vec<PathBuf>,
    now: Timestamp,
    zone: TimeZone,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    level: Option<Level>,
    service: Option<String>,
}

impl Request {
    fn new(args: &LogsArgs) -> anyhow::Result<Self> {
        let now = args.now.unwrap_or_else(Timestamp::now);
        let zone = args.zone.clone().unwrap_or_else(TimeZone::system);
        let clock = ToolClock { now, window: Window::new(now, now), zone: zone.clone() };
        let time = |text: &Option<String>| {
            text.as_deref()
                .map(|text| parse_time(text, &clock))
                .transpose()
                .map_err(|failure| bad_input(failure.message))
        };
        let (since, until) = (time(&args.since)?, time(&args.until)?);
        if since.zip(until).is_some_and(|(since, until)| since > until) {
            return Err(BadInput("--since is after --until: swap them".into()).into());
        }
        Ok(Self {
            places: args.files.clone(),
            now,
            zone,
            since,
            until,
            level: args.level,
            service: args.service.clone(),
        })
    }

    /// Reads every place, one after the other. What cannot be read is a failure beside the rest.
    fn read_all(&self, gathering: &Mutex<Gathering>) {
        for place in &self.places {
            if place.as_os_str() == "-" {
                self.read(gathering, "standard input", None, |options, each| {
                    read_from(Box::new(std::io::stdin()), "standard input", options, each)
                });
                continue;
            }
            // A folder's files are named after their place in it; a file that is named itself may be called anything.
            let files = if place.is_dir() {
                let (files, notes) = list_files(std::slice::from_ref(place));
                if let Some(open) = lock(gathering).open.as_mut() {
                    open.failures.extend(notes);
                    if files.is_empty() {
                        open.failures.push(format!("{}: there is no file in this folder", place.display()));
                    }
                }
                files
            } else {
                vec![LogFile { path: place.clone(), service: None, instance: None }]
            };
            for file in &files {
                let name = file.path.display().to_string();
                self.read(gathering, &name, Some(file), |options, each| read_events(&file.path, options, each));
            }
        }
    }

    fn read(
        &self,
        gathering: &Mutex<Gathering>,
        name: &str,
        file: Option<&LogFile>,
        read: impl FnOnce(&ReadOptions, &mut dyn FnMut(LogEvent) -> ControlFlow<()>) -> Result<ReadReport, ReadError>,
    ) {
        let options = ReadOptions {
            service: file.and_then(|file| file.service.clone()),
            instance: file.and_then(|file| file.instance.clone()),
            ..ReadOptions::new(self.now, self.zone.clone())
        };
        let index = match lock(gathering).open.as_mut() {
            Some(open) => open.files.len(),
            None => return,
        };
        let result = read(&options, &mut |event| match lock(gathering).open.as_mut() {
            Some(open) => {
                if self.wants(&event) {
                    open.add(&event, index);
                }
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        });
        let mut gathering = lock(gathering);
        let Some(open) = gathering.open.as_mut() else { return };
        match result {
            Ok(report) => {
                open.failures.extend(report.broken.map(|reason| format!("{name}: {reason}")));
                open.files.push(FileRead {
                    name: name.to_owned(),
                    lines: report.lines,
                    events: report.events,
                    notes: report.notes,
                });
            }
            Err(error) => open.failures.push(error.to_string()),
        }
    }

    fn wants(&self, event: &LogEvent) -> bool {
        let in_time = match event.at {
            Some(at) => self.since.is_none_or(|since| since <= at) && self.until.is_none_or(|until| at <= until),
            None => self.since.is_none() && self.until.is_none(),
        };
        in_time
            && self.level.is_none_or(|least| event.level.is_some_and(|level| level >= least))
            && (self.service.is_none() || self.service == event.service)
    }
}

/// One file that was read.
#[derive(Debug)]
struct FileRead {
    name: String,
    lines: u64,
    events: u64,
    notes: Vec<String>,
}

/// Events of a file by their pattern: how many lines, and the ticket.
#[derive(Debug, Clone, Copy)]
struct Assigned {
    file: u32,
    line: u64,
    lines: u32,
    ticket: Ticket,
}

/// What is being gathered, shared by the reader and whoever may end it early; `None` once it was taken.
struct Gathering {
    open: Option<Open>,
}

struct Open {
    miner: Miner,
    per_line: bool,
    assigned: Vec<Assigned>,
    files: Vec<FileRead>,
    failures: Vec<String>,
}

/// What was gathered.
struct Gathered {
    mined: Mined,
    assigned: Vec<Assigned>,
    files: Vec<FileRead>,
    failures: Vec<String>,
}

impl Gathering {
    fn new(args: &LogsArgs) -> Self {
        let assignments = if args.per_line { Assignments::Kept } else { Assignments::Dropped };
        // Within one file a message is the same whichever program wrote it; files of a folder are of different services.
        let apart = args.by_service || args.files.iter().any(|place| place.is_dir());
        let services = if apart { Services::Apart } else { Services::Together };
        let miner = Miner::new(MinerOptions { window: None, services, assignments });
        let open =
            Open { miner, per_line: args.per_line, assigned: Vec::new(), files: Vec::new(), failures: Vec::new() };
        Self { open: Some(open) }
    }

    fn take(&mut self) -> Option<Gathered> {
        let open = self.open.take()?;
        Some(Gathered {
            mined: open.miner.finish(),
            assigned: open.assigned,
            files: open.files,
            failures: open.failures,
        })
    }
}

impl Open {
    fn add(&mut self, event: &LogEvent, file: usize) {
        let ticket = self.miner.add(event);
        if self.per_line {
            self.assigned.push(Assigned { file: file as u32, line: event.line, lines: event.lines, ticket });
        }
    }
}

/// A reader that panicked leaves counts behind that are still right.
fn lock(gathering: &Mutex<Gathering>) -> MutexGuard<'_, Gathering> {
    gathering.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pattern of every line, by its file where there are several.
fn print_lines(gathered: &Gathered, context: &Context) -> anyhow::Result<()> {
    let mut text = String::new();
    for assigned in &gathered.assigned {
        let Some(index) = gathered.mined.pattern_of(assigned.ticket) else { continue };
        let pattern = &gathered.mined.patterns[index].id;
        for line in assigned.line..assigned.line + u64::from(assigned.lines) {
            match gathered.files.get(assigned.file as usize) {
                Some(file) if gathered.files.len() > 1 => {
                    writeln!(text, "{}", json!({"file": file.name, "line": line, "pattern": pattern}))?;
                }
                _ => writeln!(text, "{{\"line\": {line}, \"pattern\": \"{pattern}\"}}")?,
            }
            if text.len() > OUTPUT_BYTES {
                context.print(&text)?;
                text.clear();
            }
        }
    }
    Ok(context.print(&text)?)
}

/// The document of `--json`.
fn document(gathered: &Gathered, top: Option<usize>) -> serde_json::Value {
    let volume = &gathered.mined.volume;
    let patterns: Vec<LogPattern> =
        most_telling(&gathered.mined.patterns).into_iter().take(top.unwrap_or(usize::MAX)).map(cleaned).collect();
    let files: Vec<_> = gathered
        .files
        .iter()
        .map(|file| json!({"name": file.name, "lines": file.lines, "events": file.events, "notes": file.notes}))
        .collect();
    json!({
        "schema": "oncall.logs/v1",
        "events": volume.events,
        "first": volume.first,
        "last": volume.last,
        "levels": volume.levels,
        "patterns_total": volume.patterns,
        "patterns": patterns,
        "files": files,
        "failures": gathered.failures,
    })
}

/// Patterns in the order in which they matter: the worst level first, then the most frequent.
fn most_telling(patterns: &[LogPattern]) -> Vec<&LogPattern> {
    let rank = |pattern: &LogPattern| match pattern.level {
        Some(Level::Fatal | Level::Error) => 0,
        Some(Level::Warn) => 1,
        _ => 2,
    };
    let mut sorted: Vec<&LogPattern> = patterns.iter().collect();
    // Stable: among equals the miner's order by count stays.
    sorted.sort_by_key(|pattern| rank(pattern));
    sorted
}

fn cleaned(pattern: &LogPattern) -> LogPattern {
    let instances: BTreeMap<String, u64> =
        pattern.instances.iter().map(|(name, count)| (clean_line(name, NOTE_CHARS), *count)).collect();
    LogPattern {
        template: clean_line(&pattern.template, TEMPLATE_CHARS),
        sample: clean(&pattern.sample, SAMPLE_CHARS),
        service: pattern.service.as_deref().map(|name| clean_line(name, NOTE_CHARS)),
        instances,
        ..pattern.clone()
    }
}
