//! One line of a log, whatever its format: text in, a [`Line`] out.
//!
//! The formats are told line by line, because real files mix them. Structured ones come first, then text with
//! a header; a line with neither may continue the event before it.

use std::borrow::Cow;

use super::stamp::{Clock, Stamp};
use super::{header, level, logfmt, structured, syslog, wrapped};
use crate::domain::Level;

/// What a line says of itself.
#[derive(Debug, Clone, PartialEq)]
pub struct Line<'a> {
    pub at: Option<Stamp>,
    pub level: Option<Level>,
    pub service: Option<Cow<'a, str>>,
    pub instance: Option<Cow<'a, str>>,
    pub message: Cow<'a, str>,
    pub role: Role,
}

/// How a line relates to the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It begins an event: it has a header, or it is a record of its own.
    Begins,
    /// It has no header: an event of its own, or part of the one before, as the neighbours tell.
    Bare,
    /// A piece of a line that a container runtime cut: the next piece follows without a line break.
    Partial,
}

impl<'a> Line<'a> {
    pub fn begins(message: impl Into<Cow<'a, str>>) -> Self {
        Self { at: None, level: None, service: None, instance: None, message: message.into(), role: Role::Begins }
    }

    pub fn bare(message: impl Into<Cow<'a, str>>) -> Self {
        Self { role: Role::Bare, ..Self::begins(message) }
    }

    pub fn into_owned(self) -> Line<'static> {
        Line {
            at: self.at,
            level: self.level,
            service: self.service.map(|s| Cow::Owned(s.into_owned())),
            instance: self.instance.map(|s| Cow::Owned(s.into_owned())),
            message: Cow::Owned(self.message.into_owned()),
            role: self.role,
        }
    }
}

/// How deep wrappers may nest: docker JSON around JSON is two.
const MAX_DEPTH: usize = 4;

/// Reads one line.
pub fn parse<'a>(text: &'a str, clock: &Clock) -> Line<'a> {
    parse_nested(text, clock, 0)
}

/// Reads a line that was found within another; `depth` bounds the nesting.
pub fn parse_nested<'a>(text: &'a str, clock: &Clock, depth: usize) -> Line<'a> {
    if depth > MAX_DEPTH {
        return Line::bare(text);
    }
    let bytes = text.as_bytes();
    if memchr::memchr(0x1b, bytes).is_some() {
        // Colours hide the level and the stamp, and must not reach a screen anyway.
        let plain = crate::domain::text::clean(text, usize::MAX);
        return parse_nested(&plain, clock, depth + 1).into_owned();
    }
    match bytes.first() {
        None => return Line::bare(text),
        Some(b'{') => {
            if let Some(line) = structured::parse(text, clock, depth) {
                return line;
            }
        }
        Some(b'<') => {
            if let Some(line) = syslog::parse_with_priority(text, clock) {
                return line;
            }
        }
        Some(c) if c.is_ascii_digit() => {
            if let Some(line) = wrapped::parse_cri(text, clock, depth) {
                return line;
            }
        }
        Some(c) if c.is_ascii_alphabetic() || *c == b'@' || *c == b'_' => {
            if let Some(line) = logfmt::parse(text, clock) {
                return line;
            }
        }
        _ => {}
    }
    header::parse(text, clock, depth).unwrap_or_else(|| undated(text))
}

/// A line without a stamp: its level, where it begins with one.
fn undated(text: &str) -> Line<'_> {
    Line { level: level_of_text(text), ..Line::bare(text) }
}

/// The level that a message without one names in its first word: `error: ...`, `[WARN] ...`, `ERROR ...`.
pub fn level_of_text(text: &str) -> Option<Level> {
    let text = text.trim_ascii_start().as_bytes();
    let bracketed = text.first() == Some(&b'[');
    let text = &text[usize::from(bracketed)..];
    let word = &text[..text.iter().take(13).take_while(|c| c.is_ascii_alphabetic()).count()];
    match text.get(word.len()) {
        Some(b']') if bracketed => level::from_word(word),
        Some(b':') if !bracketed => level::from_label(word).or_else(|| panicking(text)),
        Some(b' ' | b'\t') if !bracketed => level::from_capitals(word).or_else(|| panicking(text)),
        _ => None,
    }
}

/// The first words of a crash.
fn panicking(text: &[u8]) -> Option<Level> {
    const STARTS: [&[u8]; 3] = [b"Traceback (most recent call last)", b"Exception in thread ", b"Unhandled exception"];
    STARTS.iter().any(|start| text.starts_with(start)).then_some(Level::Error)
}
