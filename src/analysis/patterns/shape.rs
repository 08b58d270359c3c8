//! The shape of a message: its words, with everything that varies from one occurrence to the next masked.
//!
//! One scan over the bytes, without allocation: it runs for every event. Numbers, addresses, paths, identifiers,
//! times, sizes and truth values become [`Piece::Variable`], and runs of them become one.

use std::ops::Range;

/// What of a message shapes it: its first line, up to this many bytes and pieces.
const MAX_BYTES: usize = 2048;
const MAX_PIECES: usize = 200;

/// A part of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A word that belongs to the message, by its place in it.
    Word(Place),
    Variable,
    Mark(u8),
}

/// Where a word stands in its message. Two bytes hold [`MAX_BYTES`], and small pieces are quick to pass around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    start: u16,
    end: u16,
}

impl Place {
    pub fn range(self) -> Range<usize> {
        usize::from(self.start)..usize::from(self.end)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    /// Whether a blank stands before it. It shows in templates; it does not tell messages apart.
    pub spaced: bool,
}

/// The scanner with its buffers, used again for every message.
#[derive(Debug, Default)]
pub struct Scanner {
    pub pieces: Vec<Piece>,
    /// Marks since the last variable, not yet surely part of the shape: joined variables swallow them.
    held: Vec<Piece>,
    after_variable: bool,
    /// The last variable was a plain number, so that a unit may follow.
    after_number: bool,
    /// An opening parenthesis and perhaps a variable are held.
    held_variable: bool,
}

/// Of which kinds a byte is: one look-up for each byte of every message.
const KINDS: [u8; 256] = kinds();
const WORD: u8 = 1;
const DIGIT: u8 = 2;
const LETTER: u8 = 4;
/// A letter beyond `f`.
const NOT_HEX: u8 = 8;
const SLASH: u8 = 16;
const DOT: u8 = 32;
const AT_SIGN: u8 = 64;
/// Any other byte that words are made of.
const OTHER: u8 = 128;

const fn kinds() -> [u8; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => WORD | DIGIT,
            b'a'..=b'f' | b'A'..=b'F' => WORD | LETTER,
            b'g'..=b'z' | b'G'..=b'Z' | 0x80..=0xff => WORD | LETTER | NOT_HEX,
            b'/' | b'\\' => WORD | SLASH,
            b'.' => WORD | DOT,
            b'@' => WORD | AT_SIGN,
            b'_' | b'-' | b'$' | b'%' | b'&' | b'*' | b'~' | b'+' | b'^' => WORD | OTHER,
            _ => 0,
        };
        byte += 1;
    }
    table
}

impl Scanner {
    /// Splits a message into [`Scanner::pieces`].
    pub fn scan(&mut self, message: &str) {
        self.pieces.clear();
        self.held.clear();
        (self.after_variable, self.after_number, self.held_variable) = (false, false, false);
        let bytes = first_line(message);
        let mut at = 0;
        let mut spaced = false;
        while at < bytes.len() && self.pieces.len() < MAX_PIECES {
            let c = bytes[at];
            if c == b' ' || c == b'\t' {
                spaced = true;
                at += 1;
            } else if is_word_byte(c) {
                at = self.word(bytes, at, spaced);
                spaced = false;
            } else if c == b'<' && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
                // `<1 sec` is a size like any other.
                at += 1;
            } else {
                self.mark(c, spaced);
                spaced = false;
                at += 1;
            }
        }
        self.release();
    }

    /// Takes the run of word characters at `from`; gives where it ends.
    fn word(&mut self, bytes: &[u8], from: usize, spaced: bool) -> usize {
        let mut kinds = 0;
        let mut end = from;
        while let Some(&c) = bytes.get(end) {
            let kind = KINDS[usize::from(c)];
            if kind == 0 && !is_apostrophe(bytes, end) {
                break;
            }
            kinds |= kind;
            end += 1;
        }
        if bytes.get(end) == Some(&b':') && bytes[end..].starts_with(b"://") {
            let rest = &bytes[end..];
            let length = rest.iter().position(|c| matches!(c, b' ' | b'\t' | b'"' | b'\'' | b')' | b']' | b'>' | b','));
            self.variable(Number::No, spaced);
            return end + length.unwrap_or(rest.len());
        }
        // Sentence marks at the end of a word are marks.
        let mut word_end = end;
        while word_end > from + 1 && matches!(bytes[word_end - 1], b'.' | b'-') {
            word_end -= 1;
        }
        let word = &bytes[from..word_end];
        let classified = self.classify(word, kinds, bytes, word_end);
        match classified {
            Class::Word => self.constant(Kind::Word(Place { start: from as u16, end: word_end as u16 }), spaced),
            Class::Number => self.variable(Number::Yes, spaced),
            Class::Variable => self.variable(Number::No, spaced),
            // The unit goes with its number, within a held parenthesis too.
            Class::Unit => self.after_number = false,
        }
        for mark in &bytes[word_end..end] {
            self.mark(*mark, false);
        }
        end
    }

    #[inline]
    fn classify(&self, word: &[u8], kinds: u8, bytes: &[u8], end: usize) -> Class {
        let has = |kind: u8| kinds & kind != 0;
        if has(DIGIT) {
            return classify_with_digits(word, kinds);
        }
        if !has(LETTER) {
            return if word.len() > 1 && word.iter().all(|c| *c == b'*') { Class::Variable } else { Class::Word };
        }
        if self.after_number && (self.held.is_empty() || self.held_variable) && is_unit(word) {
            return Class::Unit;
        }
        let rest = &bytes[end..];
        let variable = (has(SLASH) && is_path(word, kinds))
            || (has(DOT) && (is_dotted_name(word) || is_port(rest)))
            || (has(AT_SIGN) && word[0] != b'@' && !word.ends_with(b"@"))
            || (!has(NOT_HEX)
                && (word.len() == 8 && !has(OTHER) || word.len() == 2 && self.after_variable && self.held_is(b':')))
            || is_truth_value(word)
            || self.names_a_user(bytes)
            || (word.len() == 3 && is_calendar_name(word, rest));
        if variable { Class::Variable } else { Class::Word }
    }

    /// Whether the two words before say that a user's name follows: `for user alice`, `invalid user bob`.
    fn names_a_user(&self, bytes: &[u8]) -> bool {
        const BEFORE: [&[u8]; 7] = [b"for", b"by", b"of", b"as", b"from", b"invalid", b"unknown"];
        let [.., Piece { kind: Kind::Word(first), .. }, Piece { kind: Kind::Word(second), .. }] =
            self.pieces.as_slice()
        else {
            return false;
        };
        second.end - second.start == 4 && &bytes[second.range()] == b"user" && BEFORE.contains(&&bytes[first.range()])
    }

    fn held_is(&self, mark: u8) -> bool {
        matches!(self.held.as_slice(), [Piece { kind: Kind::Mark(m), spaced: false }] if *m == mark)
    }

    #[inline]
    fn constant(&mut self, kind: Kind, spaced: bool) {
        self.release();
        self.pieces.push(Piece { kind, spaced });
        (self.after_variable, self.after_number) = (false, false);
    }

    #[inline]
    fn variable(&mut self, number: Number, spaced: bool) {
        self.after_number = number == Number::Yes;
        if self.after_variable {
            if self.held.iter().all(|piece| matches!(piece.kind, Kind::Mark(mark) if is_joint(mark))) {
                self.held.clear();
                return;
            }
            if !self.held_variable && self.held.len() == 1 && matches!(self.held[0].kind, Kind::Mark(b'(')) {
                self.held.push(Piece { kind: Kind::Variable, spaced });
                self.held_variable = true;
                return;
            }
        }
        self.release();
        self.pieces.push(Piece { kind: Kind::Variable, spaced });
        self.after_variable = true;
    }

    #[inline]
    fn mark(&mut self, mark: u8, spaced: bool) {
        if !self.after_variable {
            self.pieces.push(Piece { kind: Kind::Mark(mark), spaced });
            return;
        }
        let opened = self.held.first().is_some_and(|piece| piece.kind == Kind::Mark(b'('));
        if mark == b')' && opened && (self.held.len() == 1 || (self.held_variable && self.held.len() == 2)) {
            // `10.0.0.1 (web-1.example.com)`, `1165 bytes (1.13 KB)`, `10.0.0.1 ()`: one variable with its other name.
            self.held.clear();
            self.held_variable = false;
            return;
        }
        if self.held_variable && !is_joint(mark) {
            self.release();
            self.after_variable = true;
        }
        self.held.push(Piece { kind: Kind::Mark(mark), spaced });
    }

    /// What was held is part of the shape after all.
    #[inline]
    fn release(&mut self) {
        if !self.held.is_empty() {
            self.pieces.append(&mut self.held);
            self.held_variable = false;
        }
    }
}

#[derive(PartialEq)]
enum Class {
    Word,
    Number,
    Variable,
    /// Belongs to the number before it.
    Unit,
}

#[derive(PartialEq)]
enum Number {
    Yes,
    No,
}

fn classify_with_digits(word: &[u8], kinds: u8) -> Class {
    if kinds & LETTER == 0 {
        return Class::Number;
    }
    if is_named_with_digit(word) {
        return Class::Word;
    }
    // `5s`, `0x1f`, `12ms` are numbers as well as `12`; longer names are not.
    let letters = word.iter().filter(|c| KINDS[usize::from(**c)] & LETTER != 0).count();
    if letters <= 3 { Class::Number } else { Class::Variable }
}

fn is_path(word: &[u8], kinds: u8) -> bool {
    let slashes = || word.iter().filter(|c| KINDS[usize::from(**c)] & SLASH != 0).count();
    match word[0] {
        b'/' | b'\\' => word.len() > 1,
        b'~' | b'.' if word.get(1) == Some(&b'/') => true,
        _ => kinds & DOT != 0 || slashes() >= 2,
    }
}

/// Host names and packages with two dots or more. A class name, and above all that of an exception, tells what
/// happened: it stays.
fn is_dotted_name(word: &[u8]) -> bool {
    if word.iter().filter(|c| **c == b'.').count() < 2 || word.windows(2).any(|two| two == b"..") {
        return false;
    }
    let last = word.rsplit(|c| *c == b'.').next().unwrap_or(word);
    !(last.first().is_some_and(u8::is_ascii_uppercase) && last.iter().any(u8::is_ascii_lowercase))
}

fn first_line(message: &str) -> &[u8] {
    let bytes = &message.as_bytes()[..message.len().min(MAX_BYTES)];
    match memchr::memchr(b'\n', bytes) {
        Some(end) => &bytes[..end],
        // Half a word would look like another word.
        None if bytes.len() < message.len() => &bytes[..memchr::memrchr(b' ', bytes).unwrap_or(bytes.len())],
        None => bytes,
    }
}

fn is_word_byte(c: u8) -> bool {
    KINDS[usize::from(c)] != 0
}

fn is_apostrophe(bytes: &[u8], at: usize) -> bool {
    bytes[at] == b'\''
        && at > 0
        && bytes[at - 1].is_ascii_alphabetic()
        && bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase)
        && !bytes.get(at + 2).is_some_and(u8::is_ascii_alphanumeric)
}

/// Marks that join variables to one: `10.0.0.1:80`, `1, 2, 3`, `12/34`.
fn is_joint(mark: u8) -> bool {
    b":.,/-#+|;".contains(&mark)
}

/// Names with a digit that is part of the name.
fn is_named_with_digit(word: &[u8]) -> bool {
    const NAMES: [&[u8]; 20] = [
        b"ssh2", b"http2", b"h2", b"ipv4", b"ipv6", b"utf8", b"utf-8", b"md5", b"sha1", b"sha256", b"sha512", b"x509",
        b"k8s", b"s3", b"ec2", b"oauth2", b"log4j", b"log4j2", b"base64", b"slf4j",
    ];
    word.len() <= 6 && NAMES.iter().any(|name| name.eq_ignore_ascii_case(word))
}

/// `:443` behind a host, `:253` behind a file.
fn is_port(rest: &[u8]) -> bool {
    let digits = rest.iter().skip(1).take_while(|c| c.is_ascii_digit()).count();
    rest.first() == Some(&b':') && (1..=5).contains(&digits) && !rest.get(1 + digits).is_some_and(|c| is_word_byte(*c))
}

fn is_unit(word: &[u8]) -> bool {
    /// No unit is longer.
    const LONGEST: usize = b"microseconds".len();
    let mut lower = [0; LONGEST];
    let Some(lower) = lower.get_mut(..word.len()) else { return false };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    matches!(
        &*lower,
        b"b" | b"kb"
            | b"mb"
            | b"gb"
            | b"tb"
            | b"kib"
            | b"mib"
            | b"gib"
            | b"tib"
            | b"byte"
            | b"bytes"
            | b"ns"
            | b"us"
            | b"ms"
            | b"msec"
            | b"millis"
            | b"milliseconds"
            | b"microseconds"
            | b"nanoseconds"
            | b"s"
            | b"sec"
            | b"secs"
            | b"second"
            | b"seconds"
            | b"m"
            | b"min"
            | b"mins"
            | b"minute"
            | b"minutes"
            | b"h"
            | b"hr"
            | b"hrs"
            | b"hour"
            | b"hours"
            | b"d"
            | b"day"
            | b"days"
            | b"hz"
            | b"khz"
            | b"mhz"
            | b"ghz"
    )
}

fn is_truth_value(word: &[u8]) -> bool {
    if !matches!(word[0], b't' | b'f' | b'T' | b'F' | b'n' | b'N' | b'u') || !(3..=9).contains(&word.len()) {
        return false;
    }
    matches!(
        word,
        b"true"
            | b"false"
            | b"True"
            | b"False"
            | b"TRUE"
            | b"FALSE"
            | b"null"
            | b"NULL"
            | b"nil"
            | b"None"
            | b"undefined"
    )
}

/// Names of days and months where a number or another such name follows: a date within the text.
fn is_calendar_name(word: &[u8], rest: &[u8]) -> bool {
    const NAMES: [&[u8]; 19] = [
        b"Mon", b"Tue", b"Wed", b"Thu", b"Fri", b"Sat", b"Sun", b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul",
        b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
    ];
    if !word[0].is_ascii_uppercase() || !NAMES.contains(&word) {
        return false;
    }
    let rest = rest.trim_ascii_start();
    let rest = rest.strip_prefix(b",").unwrap_or(rest).trim_ascii_start();
    rest.first().is_some_and(u8::is_ascii_digit) || rest.get(..3).is_some_and(|next| NAMES.contains(&next))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(message: &str) -> String {
        let mut scanner = Scanner::default();
        scanner.scan(message);
        super::super::render(message, &scanner.pieces)
    }

    #[test]
    fn what_varies_is_masked_and_words_stay() {
        for (message, expected) in [
            ("connection pool timeout after 3000ms", "connection pool timeout after <*>"),
            ("took 12.5 ms for 3 retries", "took <*> for <*> retries"),
            ("Failed password for root from 10.0.0.1 port 22 ssh2", "Failed password for root from <*> port <*> ssh2"),
            ("close, 1165 bytes (1.13 KB) sent, lifetime <1 sec", "close, <*> sent, lifetime <*>"),
            ("close, 403 bytes sent, lifetime 00:02", "close, <*> sent, lifetime <*>"),
            ("connection from 10.0.0.1 () at Sat Jul  9 11:35:59 2005", "connection from <*> at <*>"),
            ("GET https://example.com/a?b=1 failed", "GET <*> failed"),
            ("read /var/log/a.log and C:\\tmp\\x", "read <*> and C:<*>"),
            ("java.net.ConnectException: Connection refused", "java.net.ConnectException: Connection refused"),
            ("mac a4:5e:60:fe is up", "mac <*> is up"),
            ("enabled=true, owner=null", "enabled=<*>, owner=<*>"),
            ("can't open 'x'; don't retry", "can't open 'x'; don't retry"),
            ("replicate blk_1 to datanode(s) 10.0.0.1:1 10.0.0.2:1", "replicate <*> to datanode(s) <*>"),
            ("连接池超时 3000 毫秒", "连接池超时 <*> 毫秒"),
            ("first line\nsecond 2", "first line"),
        ] {
            assert_eq!(shape(message), expected);
        }
    }
}
