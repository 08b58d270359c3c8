//! Log files of any usual format, as one stream of events in UTC.
//!
//! A file or reader comes in; events go out one by one, so that memory does not grow with the input. The way of a
//! line: `decode` (unpack, character set, cap) → `line` (format, `stamp`, `level`) → `assemble` (continuation lines).

mod access;
mod assemble;
mod by_time;
mod decode;
mod fields;
mod files;
mod header;
mod level;
mod line;
mod logfmt;
mod pattern;
mod record;
mod stamp;
mod structured;
mod syslog;
mod wrapped;

use std::fs::File;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::domain::LogEvent;
use crate::source::unpack::DamagedArchive;
use assemble::{Assembler, Tally};
use decode::{DecodeError, Lines};

pub use files::{FileLogs, LogFile, list_files};
pub use record::{RecordReader, level_of};

/// What a log may leave open.
#[derive(Debug, Clone)]
pub struct ReadOptions {
    /// The clock that a missing year or date is counted back from.
    pub now: Timestamp,
    /// The zone of stamps that name none.
    pub zone: TimeZone,
    /// The service and instance of events that name none (from the folder or file name).
    pub service: Option<String>,
    pub instance: Option<String>,
}

impl ReadOptions {
    pub fn new(now: Timestamp, zone: TimeZone) -> Self {
        Self { now, zone, service: None, instance: None }
    }
}

/// What was read of one stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReadReport {
    /// Physical lines, and the events that they make up.
    pub lines: u64,
    pub events: u64,
    /// Events without a time.
    pub undated: u64,
    /// What was assumed, cut or decoded, in words.
    pub notes: Vec<String>,
    /// Why reading ended before the stream did: everything up to there is used.
    pub broken: Option<String>,
}

/// Why a stream could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {name}: {source}; check the path and its permissions")]
    Open { name: String, source: std::io::Error },
    #[error("skipped {name}: it is binary, not text; give a text log, or one packed with gzip or zstd")]
    Binary { name: String },
    #[error(
        "skipped {name}: {source}, and nothing before that could be unpacked; copy it again, or unpack what can be saved of it"
    )]
    Damaged { name: String, source: std::io::Error },
}

/// Reads a file; `each` may end it early.
pub fn read_events(
    path: &Path,
    options: &ReadOptions,
    each: &mut dyn FnMut(LogEvent) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    let name = path.display().to_string();
    let open = || {
        let file = File::open(path)?;
        // Opening a folder succeeds on some systems and fails at the first read with a less clear message.
        if file.metadata()?.is_dir() {
            return Err(std::io::Error::other("it is a folder, and a file is expected"));
        }
        Ok(file)
    };
    let file = open().map_err(|source| ReadError::Open { name: name.clone(), source })?;
    read_from(Box::new(file), &name, options, each)
}

/// Reads a stream; `name` is what errors call it.
pub fn read_from(
    reader: Box<dyn Read + Send>,
    name: &str,
    options: &ReadOptions,
    each: &mut dyn FnMut(LogEvent) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    let mut text = decode::open(reader).map_err(|error| match error {
        DecodeError::Binary => ReadError::Binary { name: name.to_owned() },
        DecodeError::Io(source) if DamagedArchive::is_cause_of(&source) => {
            ReadError::Damaged { name: name.to_owned(), source }
        }
        DecodeError::Io(source) => ReadError::Open { name: name.to_owned(), source },
    })?;
    let mut assembler = Assembler::new(options);
    let mut broken = None;
    loop {
        let line = match text.lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) => break,
            Err(error) => {
                broken = Some(error);
                break;
            }
        };
        if let Some(event) = assembler.push(&line)
            && each(event).is_break()
        {
            return Ok(report(&assembler.tally, &text.lines, text.encoding, options, None));
        }
    }
    while let Some(event) = assembler.finish() {
        if each(event).is_break() {
            break;
        }
    }
    Ok(report(&assembler.tally, &text.lines, text.encoding, options, broken))
}

fn report(
    tally: &Tally,
    lines: &Lines,
    encoding: Option<&str>,
    options: &ReadOptions,
    broken: Option<std::io::Error>,
) -> ReadReport {
    let mut notes = Vec::new();
    if let Some(encoding) = encoding {
        notes.push(format!("read as {encoding}"));
    }
    let zone = options.zone.iana_name().unwrap_or("the default zone");
    if tally.assumed.zone {
        notes.push(format!("time stamps without a zone were read as {zone}"));
    }
    if tally.assumed.year {
        let year = options.now.to_zoned_datetime(options.zone.clone()).year();
        notes.push(format!(
            "time stamps without a year were put into {year}, or the year before where they would lie ahead"
        ));
    }
    if tally.assumed.date {
        notes.push("time stamps without a date were put on the day of the reference clock".to_owned());
    }
    if tally.undated > 0 {
        notes.push(format!("events without a time: {} of {}", tally.undated, tally.events));
    }
    if tally.impossible > 0 {
        let count = tally.impossible;
        notes.push(format!("events of a date or time that does not exist, kept without a time: {count}"));
    }
    if lines.nuls > 0 {
        notes.push(format!("NUL bytes dropped (a torn write, or a hole in a sparse file): {}", lines.nuls));
    }
    if lines.cut_lines > 0 {
        let (limit, count, bytes) = (Lines::MAX_LINE_BYTES, lines.cut_lines, lines.cut_bytes);
        notes.push(format!("lines cut at {limit} bytes: {count} (bytes not read: {bytes})"));
    }
    if tally.cut_events > 0 {
        notes.push(format!("events cut because their continuation lines are too long: {}", tally.cut_events));
    }
    let after = tally.lines;
    let broken = broken.map(|error| format!("reading broke off after line {after}: {error}; what came before is used"));
    ReadReport { lines: tally.lines, events: tally.events, undated: tally.undated, notes, broken }
}

#[cfg(test)]
mod tests;
