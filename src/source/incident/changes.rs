//! `changes.jsonl`: a change a line, as somebody or something wrote it down.
//!
//! In: the file, which may be absent. Out: the changes in its order; a line that is none becomes a warning with its
//! number.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::domain::text::clean_line;
use crate::domain::{Change, ChangeKind};

/// Changes read of one file.
const MAX_CHANGES: usize = 10_000;
/// A line that is longer is left out.
const MAX_LINE_BYTES: usize = 64 << 10;
/// Warnings about single lines; more are counted only.
const MAX_LINE_WARNINGS: usize = 10;
const MAX_SERVICE_CHARS: usize = 200;
const MAX_SUMMARY_CHARS: usize = 500;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct RawChange {
    time: String,
    service: Option<String>,
    kind: Option<ChangeKind>,
    summary: Option<String>,
}

/// Reads the file; `None` when there is none. Times without an offset are of `zone`.
pub fn read(path: &Path, zone: &TimeZone, warnings: &mut Vec<String>) -> Option<Vec<Change>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            warnings.push(format!("changes.jsonl: cannot read it: {error}"));
            return None;
        }
    };
    match read_lines(BufReader::new(file), zone, warnings) {
        Ok(changes) => Some(changes),
        Err(error) => {
            warnings.push(format!("changes.jsonl: cannot read it: {error}"));
            None
        }
    }
}

fn read_lines(mut reader: impl BufRead, zone: &TimeZone, warnings: &mut Vec<String>) -> std::io::Result<Vec<Change>> {
    let mut changes = Vec::new();
    let mut bad = 0;
    let mut number = 0;
    while let Some(line) = next_line(&mut reader)? {
        number += 1;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim().trim_start_matches('\u{feff}');
        if text.is_empty() {
            continue;
        }
        if changes.len() == MAX_CHANGES {
            warnings.push(format!("changes.jsonl: more than {MAX_CHANGES} changes; the rest was left out"));
            break;
        }
        match parse(text, line.len(), zone) {
            Ok(change) => changes.push(change),
            Err(message) => {
                bad += 1;
                if bad <= MAX_LINE_WARNINGS {
                    warnings.push(format!("changes.jsonl: line {number}: {message}"));
                }
            }
        }
    }
    if bad > MAX_LINE_WARNINGS {
        warnings.push(format!("changes.jsonl: lines that could not be read, in all: {bad}"));
    }
    Ok(changes)
}

/// The next line, cut just above the limit; the rest of a longer one is skipped. `None` at the end.
fn next_line(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = MAX_LINE_BYTES as u64 + 1;
    if reader.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == limit && !line.ends_with(b"\n") {
        reader.skip_until(b'\n')?;
    }
    Ok(Some(line))
}

fn parse(text: &str, bytes: usize, zone: &TimeZone) -> Result<Change, String> {
    if bytes > MAX_LINE_BYTES {
        return Err(format!("longer than {MAX_LINE_BYTES} bytes"));
    }
    let expected = "expected {\"time\", \"service\", \"kind\", \"summary\"}";
    let raw: RawChange = serde_json::from_str(text).map_err(|error| format!("{error}; {expected}"))?;
    let time = instant(&raw.time, zone)
        .ok_or_else(|| format!("`time`: cannot read `{}`: expected RFC 3339", clean_line(&raw.time, 60)))?;
    Ok(Change {
        time,
        service: raw.service.map(|name| clean_line(name.trim(), MAX_SERVICE_CHARS)).filter(|name| !name.is_empty()),
        kind: raw.kind.unwrap_or(ChangeKind::Other),
        summary: clean_line(raw.summary.unwrap_or_default().trim(), MAX_SUMMARY_CHARS),
    })
}

fn instant(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let text = text.trim();
    text.parse().ok().or_else(|| {
        let civil: DateTime = text.parse().ok()?;
        civil.to_zoned_datetime(zone.clone()).ok().map(|zoned| zoned.timestamp())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<Change>, Vec<String>) {
        let mut warnings = Vec::new();
        let zone = TimeZone::fixed(jiff::tz::offset(8));
        (read_lines(text.as_bytes(), &zone, &mut warnings).unwrap(), warnings)
    }

    #[test]
    fn changes_are_read_and_bad_lines_are_named() {
        let (changes, warnings) = read(concat!(
            "\u{feff}{\"time\": \"2026-03-04T13:31:00+08:00\", \"service\": \"a\", \"kind\": \"deploy\", \"summary\": \"1 \\u001b[31m-> 2\"}\n",
            "\n",
            "not json\n",
            "{\"time\": \"soon\", \"kind\": \"flag\", \"summary\": \"x\"}\n",
            "{\"time\": \"2026-03-04 13:40\", \"kind\": \"weather\"}",
        ));
        let change = |time: &str, service: Option<&str>, kind, summary: &str| Change {
            time: time.parse().unwrap(),
            service: service.map(str::to_owned),
            kind,
            summary: summary.to_owned(),
        };
        assert_eq!(
            changes,
            [
                change("2026-03-04T05:31:00Z", Some("a"), ChangeKind::Deploy, "1 -> 2"),
                change("2026-03-04T05:40:00Z", None, ChangeKind::Other, ""),
            ]
        );
        assert_eq!(
            warnings,
            [
                "changes.jsonl: line 3: expected ident at line 1 column 2; expected {\"time\", \"service\", \"kind\", \"summary\"}",
                "changes.jsonl: line 4: `time`: cannot read `soon`: expected RFC 3339",
            ]
        );
    }

    #[test]
    fn what_is_no_object_is_said_without_names_of_the_program() {
        let expected = "expected {\"time\", \"service\", \"kind\", \"summary\"}";
        assert_eq!(
            read("5\n").1,
            [format!(
                "changes.jsonl: line 1: invalid type: integer `5`, expected an object at line 1 column 1; {expected}"
            )]
        );
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory_and_the_next_is_read() {
        let mut text = "x".repeat(MAX_LINE_BYTES * 3);
        text.push_str("\n{\"time\": \"2026-03-04T13:31:00Z\", \"kind\": \"scale\", \"summary\": \"s\"}\n");
        let (changes, warnings) = read(&text);
        assert_eq!(changes.len(), 1);
        assert_eq!(warnings, ["changes.jsonl: line 1: longer than 65536 bytes"]);
    }
}
