//! The parts of a header behind the stamp: numbers, brackets, levels, loggers, up to the message.

use std::borrow::Cow;

use super::super::level;
use super::super::line::{Line, level_of_text};
use super::super::stamp::{self, Clock, Stamp};
use super::word_end;
use crate::domain::Level;

/// So many parts a header has at most, and so long one bracket of it is at most.
const HEADER_PARTS: usize = 12;
const BRACKET_BYTES: usize = 160;

/// A cursor over the header behind the stamp. `at` moves on with every part; `message` only with parts that are
/// surely header, so that a message that begins with a number keeps it.
#[derive(Default)]
pub(super) struct Header<'a> {
    pub text: &'a str,
    pub at: usize,
    pub message: usize,
    pub level: Option<Level>,
    /// Whether the level stood before the stamp; it may then be repeated behind it.
    pub level_is_early: bool,
    pub service: Option<&'a str>,
    pub instance: Option<&'a str>,
    pub numbers: usize,
}

impl<'a> Header<'a> {
    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    pub fn finish(self, stamp: Stamp) -> Line<'a> {
        let message = self.text[self.message.max(self.at.min(self.message))..].trim_start_matches([' ', '\t']);
        Line {
            at: Some(stamp),
            level: self.level.or_else(|| level_of_text(message)),
            service: self.service.map(Cow::Borrowed),
            instance: self.instance.map(Cow::Borrowed),
            ..Line::begins(message.trim_end())
        }
    }

    /// The `]` of a bracketed stamp, perhaps after a process number: `[2024-… #1234]`.
    pub fn close_bracket(&mut self, open: bool) {
        self.message = self.at;
        if !open {
            return;
        }
        let rest = &self.bytes()[self.at..];
        if let Some(close) = memchr::memchr(b']', &rest[..rest.len().min(40)]) {
            self.at += close + 1;
            self.message = self.at;
        }
    }

    /// `E0517 15:04:22.619632 1952 file.cc:253] message`.
    pub fn skip_glog_origin(&mut self) {
        self.message = self.at;
        let rest = &self.bytes()[self.at..];
        if let Some(close) = memchr::memmem::find(&rest[..rest.len().min(BRACKET_BYTES)], b"]") {
            self.message = self.at + close + 1;
        }
    }

    /// Collectors put an epoch before the line: what follows has a stamp and a host of its own.
    pub fn skip_to_second_stamp(&mut self, clock: &Clock) {
        let bytes = self.bytes();
        let mut at = self.at;
        let mut before = None;
        for _ in 0..4 {
            while bytes.get(at) == Some(&b' ') {
                at += 1;
            }
            if at >= bytes.len() {
                return;
            }
            if let Some((_, end)) = stamp::parse_at(bytes, at, clock) {
                self.at = end;
                self.instance = before;
                return;
            }
            let end = word_end(bytes, at);
            before = self.text.get(at..end);
            at = end;
        }
    }

    pub fn read(&mut self) {
        for _ in 0..HEADER_PARTS {
            self.skip_separators();
            let Some(&first) = self.bytes().get(self.at) else { break };
            let goes_on = match first {
                b'[' => self.bracket(),
                b'(' if self.numbers == 0 => self.parenthesis(),
                _ => self.word(),
            };
            if !goes_on {
                break;
            }
        }
    }

    /// Blanks and lone marks between parts: ` - `, ` | `, `:`, ` : `, ` --- `.
    fn skip_separators(&mut self) {
        let bytes = self.bytes();
        let at_message = self.at == self.message;
        loop {
            let start = self.at;
            while bytes.get(self.at).is_some_and(|c| matches!(c, b' ' | b'\t')) {
                self.at += 1;
            }
            let marks = bytes[self.at..].iter().take_while(|c| matches!(c, b'-' | b'|' | b':' | b',' | b'>')).count();
            let next = bytes.get(self.at + marks);
            let stands_alone = next.is_none_or(|c| matches!(c, b' ' | b'\t' | b'['))
                || (self.at == start && marks > 0 && bytes[self.at] != b'-');
            if marks > 0 && stands_alone {
                self.at += marks;
            } else if self.at == start {
                break;
            }
            if marks == 0 {
                break;
            }
        }
        if at_message {
            self.message = self.at;
        }
    }

    /// Takes what was read so far into the header.
    fn commit(&mut self) -> bool {
        self.message = self.at;
        true
    }

    /// A bracket: a level, or the name of a thread, logger, request or module.
    fn bracket(&mut self) -> bool {
        let Some(inner) = self.balanced() else { return false };
        let end = self.at + inner.len() + 2;
        let trimmed = inner.trim();
        let last_word = trimmed.rsplit(':').next().unwrap_or(trimmed);
        if let Some(level) = level::from_word(trimmed.as_bytes()).or_else(|| level::from_word(last_word.as_bytes())) {
            self.level = self.level.or(Some(level));
            self.at = end;
            return self.commit();
        }
        let rest = self.bytes().get(end..).unwrap_or_default();
        let before_mark = matches!(rest.first(), Some(b'[' | b':'))
            || rest.starts_with(b" - ")
            || rest.starts_with(b" : ")
            || level::from_capitals(leading_word(rest)).is_some()
            || self.level.is_some() && stands_before_logger(rest);
        let names_a_part = !trimmed.contains(": ")
            && (!trimmed.contains(' ') || trimmed.starts_with("req-") || trimmed.starts_with("pid "));
        if !(names_a_part || before_mark) || trimmed.contains('@') && trimmed.contains('=') && !before_mark {
            return false;
        }
        self.at = end;
        self.commit()
    }

    /// The text within the bracket that opens here.
    fn balanced(&self) -> Option<&'a str> {
        let bytes = &self.bytes()[self.at..];
        let mut depth = 0;
        for (index, c) in bytes.iter().enumerate().take(BRACKET_BYTES) {
            match c {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.text.get(self.at + 1..self.at + index);
            }
        }
        None
    }

    /// `(main)` and `(thread-3)` before a level or a mark.
    fn parenthesis(&mut self) -> bool {
        let bytes = &self.bytes()[self.at..];
        let Some(close) = memchr::memchr(b')', &bytes[..bytes.len().min(60)]) else { return false };
        let rest = &bytes[close + 1..];
        let header =
            level::from_capitals(leading_word(rest)).is_some() || rest.starts_with(b" - ") || rest.starts_with(b" [");
        if !header || bytes[..close].contains(&b' ') {
            return false;
        }
        self.at += close + 1;
        self.commit()
    }

    fn word(&mut self) -> bool {
        let bytes = self.bytes();
        let end = word_end(bytes, self.at);
        let word = &bytes[self.at..end];
        let bare = trim_marks(word);
        if self.pipe_field() {
            return true;
        }
        if self.level_word(bare, end) {
            return true;
        }
        if !bare.is_empty() && bare.iter().all(|c| c.is_ascii_digit() || *c == b'#') {
            // A process or thread number, if header follows; else the message begins with a number.
            self.numbers += 1;
            self.at = end;
            if bare.contains(&b'#') {
                // nginx: `process#thread: *connection`.
                self.commit();
                self.skip_connection_number();
            }
            return self.numbers <= 3;
        }
        if let [letter] = word
            && self.numbers == 2
            && let Some(level) = level::from_letter(*letter)
        {
            // Android: process, thread, letter, tag.
            self.level = Some(level);
            self.at = end;
            self.commit();
            return self.tag();
        }
        if self.instance.is_some_and(|instance| instance.as_bytes() == word) {
            self.at = end;
            return self.commit();
        }
        self.logger(word, end) || self.capitals_before_level(word, end)
    }

    /// nginx's `*5` before the message.
    fn skip_connection_number(&mut self) {
        let rest = &self.bytes()[self.at..];
        let digits = rest.iter().skip(2).take_while(|c| c.is_ascii_digit()).count();
        if rest.starts_with(b" *") && digits > 0 && rest.get(2 + digits) == Some(&b' ') {
            self.at += 2 + digits;
            self.commit();
        }
    }

    fn level_word(&mut self, bare: &[u8], end: usize) -> bool {
        // A level glued to what follows: `WARN:message`, `INFO:root:message`, `INFO[0012] message`.
        let letters = bare.iter().take_while(|c| c.is_ascii_alphabetic()).count();
        let word = &self.bytes()[self.at..end];
        let next = word.get(letters).copied();
        let level =
            if next == Some(b':') { level::from_label(&bare[..letters]) } else { level::from_word(&bare[..letters]) };
        let Some(level) = level else { return false };
        if self.level.is_some() && !self.level_is_early {
            return false;
        }
        let is_name = word[0].is_ascii_uppercase();
        let wide = self.bytes()[end..].starts_with(b"  ") || self.bytes().get(end) == Some(&b'\t');
        let ends = match next {
            None => is_name || wide || is_plain_level(&bare[..letters]),
            Some(b':' | b']' | b',' | b'|' | b'[') => true,
            _ => false,
        };
        if !ends {
            return false;
        }
        self.level = self.level.or(Some(level));
        self.level_is_early = false;
        self.at += letters + usize::from(next.is_some_and(|c| c != b'['));
        if next == Some(b'[') {
            self.skip_short_bracket();
        }
        self.commit();
        self.component();
        true
    }

    /// `[0012]` behind a level, as logrus counts seconds.
    fn skip_short_bracket(&mut self) {
        if let Some(inner) = self.balanced()
            && inner.bytes().all(|c| c.is_ascii_digit() || c == b'.')
        {
            self.at += inner.len() + 2;
        }
    }

    /// A name in a column of its own behind the level: `Info                  CBS    message`, or up to a tab.
    fn component(&mut self) {
        let rest = &self.bytes()[self.at..];
        if rest.first() == Some(&b'\t') {
            return self.tab_fields();
        }
        let blanks = rest.iter().take_while(|c| **c == b' ').count();
        let name = leading_word(&rest[blanks..]);
        if blanks >= 2 && !name.is_empty() && name.len() <= 24 && rest[blanks + name.len()..].starts_with(b"  ") {
            self.at += blanks + name.len();
            self.commit();
        }
    }

    /// Logger and place in the code, each up to a tab; the message is the field before the record's JSON or the end.
    fn tab_fields(&mut self) {
        for _ in 0..2 {
            let rest = &self.bytes()[self.at + 1..];
            let Some(tab) = memchr::memchr(b'\t', &rest[..rest.len().min(80)]) else { return };
            if rest[..tab].contains(&b' ') || rest.get(tab + 1) == Some(&b'{') {
                return;
            }
            self.at += 1 + tab;
            self.commit();
        }
    }

    /// `Step_LSC|30002312|` of columns divided by bars.
    fn pipe_field(&mut self) -> bool {
        let bytes = self.bytes();
        if self.at == 0 || bytes[self.at - 1] != b'|' {
            return false;
        }
        let rest = &bytes[self.at..];
        let Some(bar) = memchr::memchr(b'|', &rest[..rest.len().min(64)]) else { return false };
        if rest[..bar].contains(&b' ') {
            return false;
        }
        if let Some(level) = level::from_word(&rest[..bar]) {
            self.level = self.level.or(Some(level));
        }
        self.at += bar + 1;
        self.commit()
    }

    /// The tag of an Android line, up to `: `.
    fn tag(&mut self) -> bool {
        let rest = &self.bytes()[self.at..];
        if let Some(colon) = memchr::memmem::find(&rest[..rest.len().min(80)], b":") {
            self.at += colon + 1;
            self.commit();
        }
        false
    }

    /// A logger: a dotted or compound name that ends in `:` or stands before ` - `, ` : ` or a bracket.
    fn logger(&mut self, word: &[u8], end: usize) -> bool {
        let rest = &self.bytes()[end..];
        let rest_trimmed = rest.trim_ascii_start();
        let before_level = || level::from_capitals(leading_word(rest)).is_some();
        let before_dash = rest_trimmed.starts_with(b"- ");
        let marked = word.ends_with(b":")
            || before_dash
            || matches!(rest_trimmed, [b'[', ..] | [b':' | b'|', b' ', ..])
            || (self.level.is_none() && before_level());
        let name = trim_marks(word);
        let known = marked && (self.level.is_some() || before_dash || before_level());
        let plain = known
            && !name.is_empty()
            && name.len() <= 100
            && name.iter().all(|c| c.is_ascii_alphanumeric() || b"._$/:@*#-[]".contains(c));
        if plain && (is_compound(name) || before_dash) {
            self.at = end;
            return self.commit();
        }
        // `app.exe - message`, `app.exe *64 - message`.
        if self.level.is_none()
            && name.ends_with(b".exe")
            && let Some(dash) = memchr::memmem::find(&rest[..rest.len().min(16)], b" - ")
        {
            self.at = end + dash + 3;
            return self.commit();
        }
        false
    }

    /// `RAS KERNEL INFO message`: words in capitals up to a level.
    fn capitals_before_level(&mut self, word: &[u8], end: usize) -> bool {
        let capitals = |word: &[u8]| word.len() > 1 && word.iter().all(|c| c.is_ascii_uppercase() || *c == b'_');
        if self.level.is_some() || !capitals(word) {
            return false;
        }
        let mut at = end;
        for _ in 0..3 {
            let rest = &self.bytes()[at..];
            let blanks = rest.iter().take_while(|c| **c == b' ').count();
            let next = leading_word(rest);
            if let Some(level) = level::from_capitals(next) {
                self.level = Some(level);
                self.at = at + blanks + next.len();
                return self.commit();
            }
            if !capitals(next) {
                return false;
            }
            at += blanks + next.len();
        }
        false
    }
}

/// Whether a compound name that ends in a colon comes next: what stands before it is header too.
fn stands_before_logger(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii_start();
    let word = &rest[..word_end(rest, 0)];
    word.ends_with(b":") && word.len() > 2 && is_compound(&word[..word.len() - 1])
}

/// Lower-case words that stand alone as a level and hardly ever begin a sentence.
fn is_plain_level(word: &[u8]) -> bool {
    matches!(
        word,
        b"info" | b"debug" | b"warn" | b"warning" | b"trace" | b"fatal" | b"notice" | b"err" | b"dbg" | b"inf" | b"wrn"
    )
}

/// A name that no sentence begins with: dotted, with a digit, underscore or slash, or with a capital inside.
fn is_compound(name: &[u8]) -> bool {
    name.iter().skip(1).any(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || b"._$/@:".contains(c))
}

fn trim_marks(word: &[u8]) -> &[u8] {
    let mut word = word;
    while let [rest @ .., b':' | b',' | b';' | b'-' | b'|'] = word {
        word = rest;
    }
    word
}

/// The word behind leading blanks.
fn leading_word(rest: &[u8]) -> &[u8] {
    let rest = rest.trim_ascii_start();
    let length = rest.iter().take_while(|c| !matches!(c, b' ' | b'\t' | b':' | b']')).count();
    &rest[..length]
}
