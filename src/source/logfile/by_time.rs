//! The part of a log that may hold a time: files that ended before it are passed over, large ones are entered by binary
//! search over the times of their lines, and left when the time is well over.
//!
//! In: a path and a time. Out: from where to read, and when to stop.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::line;
use super::stamp::Clock;
use super::{ReadError, ReadOptions, ReadReport, read_from};
use crate::domain::LogEvent;

/// A smaller file is read from its start.
const LARGE_BYTES: u64 = 4 << 20;
/// What is read to find the time of a place.
const PROBE_BYTES: u64 = 64 << 10;
/// Lines of several threads are not in strict order.
const SLACK: SignedDuration = SignedDuration::from_mins(5);
/// So many events in a row behind the time end the reading.
const FAR_EVENTS: usize = 1000;

/// Where the reading of a file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    Start,
    /// At a line that begins here.
    Offset(u64),
    /// It was written to before the time only.
    Nowhere,
}

/// Where the events from `start` on begin, at the latest.
pub fn from(path: &Path, start: Timestamp, options: &ReadOptions) -> From {
    let start = start.checked_sub(SLACK).unwrap_or(start);
    let Ok(metadata) = std::fs::metadata(path) else { return From::Start };
    let modified = metadata.modified().ok().and_then(|at| Timestamp::try_from(at).ok());
    if modified.is_some_and(|at| at < start) {
        return From::Nowhere;
    }
    if metadata.len() < LARGE_BYTES {
        return From::Start;
    }
    // What cannot be searched is read whole; why it cannot be read is told then.
    match search(path, metadata.len(), start, options) {
        Ok(Some(offset)) if offset > 0 => From::Offset(offset),
        _ => From::Start,
    }
}

/// The start of a line before which every line is older, or `None` where lines do not tell their time.
fn search(path: &Path, length: u64, start: Timestamp, options: &ReadOptions) -> io::Result<Option<u64>> {
    let mut file = File::open(path)?;
    let mut head = [0; 512];
    let count = file.read(&mut head)?;
    // Archives and text in two-byte units cannot be entered in the middle; records of several lines neither.
    if head[..count].contains(&0) || head.starts_with(&[0x1f, 0x8b]) || head.starts_with(b"__CURSOR=") {
        return Ok(None);
    }
    let clock = Clock::new(options.now, options.zone.clone());
    let (mut low, mut high) = (0, length);
    while high - low > PROBE_BYTES {
        let middle = low + (high - low) / 2;
        match first_time(&mut file, middle, &clock)? {
            Some((offset, at)) if at < start && offset < high => low = offset,
            Some(_) => high = middle,
            None => return Ok(Some(low)),
        }
    }
    Ok(Some(low))
}

/// The first line behind a place that says its date and time, and what it says.
fn first_time(file: &mut File, place: u64, clock: &Clock) -> io::Result<Option<(u64, Timestamp)>> {
    file.seek(SeekFrom::Start(place))?;
    let mut bytes = Vec::new();
    file.take(PROBE_BYTES).read_to_end(&mut bytes)?;
    let mut at = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1);
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let text = String::from_utf8_lossy(&bytes[at..at + length]);
        let stamp = line::parse(text.trim_end_matches('\r'), clock).at;
        // A date that the reader made up is no guide.
        if let Some(time) = stamp.filter(|stamp| !stamp.assumed.date).and_then(|stamp| stamp.at) {
            return Ok(Some((place + at as u64, time)));
        }
        at += length + 1;
    }
    Ok(None)
}

/// Reads a file from a line on.
pub fn read(
    path: &Path,
    offset: u64,
    options: &ReadOptions,
    each: &mut dyn FnMut(LogEvent) -> ControlFlow<()>,
) -> Result<ReadReport, ReadError> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|mut file| file.seek(SeekFrom::Start(offset)).map(|_| file));
    let file = opened.map_err(|source| ReadError::Open { name: name.clone(), source })?;
    read_from(Box::new(file), &name, options, each)
}

/// Tells when a file is well behind the time.
pub struct Behind {
    end: Timestamp,
    in_a_row: usize,
}

impl Behind {
    pub fn new(end: Timestamp) -> Self {
        Self { end: end.checked_add(SLACK).unwrap_or(end), in_a_row: 0 }
    }

    /// Whether this event and many before it came after the time.
    pub fn is_far(&mut self, event: &LogEvent) -> bool {
        match event.at {
            Some(at) if at > self.end => self.in_a_row += 1,
            Some(_) => self.in_a_row = 0,
            None => {}
        }
        self.in_a_row >= FAR_EVENTS
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use jiff::tz::TimeZone;

    use super::*;

    /// One line a second, with a stack trace now and then, from 2026-03-04T00:00:00Z on.
    fn write(path: &Path, seconds: i64) {
        let start: Timestamp = "2026-03-04T00:00:00Z".parse().unwrap();
        let mut file = io::BufWriter::new(File::create(path).unwrap());
        for second in 0..seconds {
            let at = start + SignedDuration::from_secs(second);
            writeln!(file, "{at} INFO order-service request {second} served in {} ms {}", second % 90, "x".repeat(60))
                .unwrap();
            if second % 50 == 0 {
                writeln!(file, "\tat a.B(C.java:{second})").unwrap();
            }
        }
    }

    fn options() -> ReadOptions {
        ReadOptions::new("2026-03-05T00:00:00Z".parse().unwrap(), TimeZone::UTC)
    }

    #[test]
    fn a_large_file_is_entered_shortly_before_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        write(&path, 60_000);
        let start: Timestamp = "2026-03-04T12:00:00Z".parse().unwrap();
        let From::Offset(offset) = from(&path, start, &options()) else { panic!("not entered") };
        let length = std::fs::metadata(&path).unwrap().len();
        let mut first = None;
        let report = read(&path, offset, &options(), &mut |event| {
            first = first.or(event.at);
            ControlFlow::Continue(())
        });
        let first = first.unwrap();
        assert!(first < start && start.duration_since(first) < SignedDuration::from_mins(20), "{first}");
        assert!(length - offset < length / 3 && report.unwrap().undated == 0);
        assert_eq!(from(&path, "2026-03-04T00:00:00Z".parse().unwrap(), &options()), From::Start);
        let future = Timestamp::now() + SignedDuration::from_hours(1);
        assert_eq!(from(&path, future, &options()), From::Nowhere);
    }

    #[test]
    fn what_has_no_times_is_read_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "no time here\n".repeat(400_000)).unwrap();
        assert_eq!(from(&path, "2026-03-04T12:00:00Z".parse().unwrap(), &options()), From::Start);
    }

    #[test]
    fn many_events_behind_the_time_end_the_reading() {
        let end: Timestamp = "2026-03-04T12:00:00Z".parse().unwrap();
        let mut behind = Behind::new(end);
        let event = |seconds: i64| LogEvent {
            at: Some(end + SignedDuration::from_secs(seconds)),
            level: None,
            service: None,
            instance: None,
            message: String::new(),
            line: 1,
            lines: 1,
        };
        assert!((0..FAR_EVENTS * 2).all(|_| !behind.is_far(&event(60))));
        assert!((1..FAR_EVENTS).all(|_| !behind.is_far(&event(3600))));
        assert!(behind.is_far(&event(3600)));
    }
}
