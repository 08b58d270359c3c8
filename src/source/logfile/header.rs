//! Text lines with a header: where the stamp stands, and what stands between it and the message.
//!
//! Headers are told by kind, not by name of product: a stamp among the first words, then in any order process
//! numbers, bracketed thread or logger names, a level, a logger that ends in `:` or ` - `. What follows the last
//! part that is surely header is the message. Here: finding the stamp, and formats that are told by what stands
//! around it; `parts` reads what follows.

mod parts;

use super::line::{Line, parse_nested};
use super::stamp::{self, Clock, Stamp};
use super::{access, level, syslog};
use crate::domain::Level;
use parts::Header;

/// A stamp stands among this many words from the start of a line, and so many bytes.
const STAMP_WORDS: usize = 8;
const STAMP_BYTES: usize = 200;

/// Reads a line that has a stamp; `None` when there is none.
pub fn parse<'a>(text: &'a str, clock: &Clock, depth: usize) -> Option<Line<'a>> {
    let bytes = text.as_bytes();
    let (start, found, end) = find_stamp(bytes, clock)?;
    if start > 1
        && bytes[start - 1] == b'['
        && let Some(line) = access::parse_after_stamp(text, end, found)
    {
        return Some(line);
    }
    let mut header = Header { text, at: end, ..Header::default() };
    header.level = level_before(&bytes[..start]);
    header.level_is_early = header.level.is_some();
    if matches!(bytes.get(start), Some(b'I' | b'W' | b'E' | b'F' | b'D')) && bytes[start + 1].is_ascii_digit() {
        header.level = level::from_letter(bytes[start]);
        header.skip_glog_origin();
        return Some(header.finish(found));
    }
    if let Some(level) = redis_level(&bytes[..start], &bytes[end..]) {
        header.level = Some(level);
        // A blank and the mark.
        header.message = end + 2;
        return Some(header.finish(found));
    }
    if stamp_is_epoch(bytes, start, end) {
        header.skip_to_second_stamp(clock);
    }
    header.close_bracket(bytes[..start].last() == Some(&b'['));
    if let Some(line) = syslog::parse_after_stamp(text, header.at, found) {
        return Some(line);
    }
    header.read();
    let mut line = header.finish(found);
    if line.message.starts_with('{') {
        unwrap_json(&mut line, clock, depth);
    }
    Some(line)
}

/// A JSON record behind a text header speaks for itself where it says something.
fn unwrap_json(line: &mut Line<'_>, clock: &Clock, depth: usize) {
    let inner = parse_nested(&line.message, clock, depth + 1);
    if inner.at.is_none() && inner.level.is_none() {
        return;
    }
    let inner = inner.into_owned();
    line.at = inner.at.filter(|stamp| stamp.is_exact()).or(line.at);
    line.level = inner.level.or(line.level);
    line.service = inner.service.or(line.service.take());
    line.instance = inner.instance.or(line.instance.take());
    line.message = inner.message;
}

/// The stamp among the first words, with where it starts and ends.
fn find_stamp(bytes: &[u8], clock: &Clock) -> Option<(usize, Stamp, usize)> {
    let mut at = 0;
    let numbered = bytes.first().is_some_and(u8::is_ascii_digit);
    let mut header_like = true;
    for word in 0..STAMP_WORDS {
        while bytes.get(at).is_some_and(|c| matches!(c, b' ' | b'\t')) {
            at += 1;
        }
        if at >= bytes.len() || at > STAMP_BYTES {
            return None;
        }
        let end = word_end(bytes, at);
        let bracket = usize::from(matches!(bytes[at], b'[' | b'('));
        let start = at + bracket;
        // Words of a sentence may stand before a bracketed stamp, or before the epoch of a numbered record.
        let trusted = header_like || bracket == 1 || (numbered && word < 6 && end - start == 10);
        if trusted && let Some((stamp, end)) = stamp::parse_at(bytes, start, clock) {
            return Some((start, stamp, end));
        }
        if word == 0
            && let Some(found) = stamp_within_word(bytes, at, end, clock)
        {
            return Some(found);
        }
        header_like &= is_header_word(&bytes[at..end], word);
        at = end;
    }
    None
}

/// `Thread-1::DEBUG::2011-…`, `INFO:2024-…`, `app.log:2024-…`: a stamp glued to what stands before it.
fn stamp_within_word(bytes: &[u8], from: usize, to: usize, clock: &Clock) -> Option<(usize, Stamp, usize)> {
    (from + 1..to.min(from + 80)).filter(|at| matches!(bytes[at - 1], b':' | b'|' | b'=' | b',')).find_map(|at| {
        let (stamp, end) = stamp::parse_at(bytes, at, clock)?;
        // A time of day within a word is part of a number or an address.
        (!stamp.assumed.date && !stamp.assumed.year).then_some((at, stamp, end))
    })
}

/// Whether a word before a stamp belongs to a header: a number, a mark, a level, a name with digits or dots.
fn is_header_word(word: &[u8], index: usize) -> bool {
    let letters_only = word.iter().all(u8::is_ascii_alphabetic);
    !letters_only || level::from_word(word).is_some() || (index == 0 && word.iter().all(u8::is_ascii_uppercase))
}

fn word_end(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..].iter().take_while(|c| !matches!(c, b' ' | b'\t')).count()
}

fn stamp_is_epoch(bytes: &[u8], start: usize, end: usize) -> bool {
    end - start >= 10 && bytes[start..start + 10].iter().all(u8::is_ascii_digit)
}

/// The level in the words before the stamp.
fn level_before(bytes: &[u8]) -> Option<Level> {
    if bytes.is_empty() {
        return None;
    }
    let mut letters = None;
    for word in
        bytes.split(|c| matches!(c, b' ' | b'\t' | b':' | b'[' | b']' | b',' | b'|')).filter(|word| !word.is_empty())
    {
        if let Some(level) = level::from_word(word) {
            return Some(level);
        }
        if let [letter] = word {
            letters = level::from_letter(*letter);
        }
    }
    // `I, [2024-…`: one letter and a comma. `E [23/Jul/…`: one letter and a bracket.
    letters.filter(|_| bytes.len() <= 5 && bytes.contains(&b'['))
}

/// `1:M 04 Mar 2026 14:30:00.123 * message`: process and role before the stamp, the level as a mark behind it. Older
/// versions write `[4018]` in place of `1:M`.
fn redis_level(before: &[u8], after: &[u8]) -> Option<Level> {
    let process = match before {
        [process @ .., b':', b'M' | b'S' | b'C' | b'X', b' '] | [b'[', process @ .., b']', b' '] => process,
        _ => return None,
    };
    match after {
        [b' ', mark, b' ', ..] if !process.is_empty() && process.iter().all(u8::is_ascii_digit) => {
            level::from_redis_mark(*mark)
        }
        _ => None,
    }
}
