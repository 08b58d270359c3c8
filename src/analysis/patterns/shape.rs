//! The shape of a message: its words, with everything that varies from one occurrence to the next masked.
//!
//! One scan over the bytes, without allocation: it runs for every event. Numbers, addresses, paths, identifiers,
//! times, sizes and truth values become [`Piece::Variable`], and runs of them become one.

use std::ops::Range;

/// What of a message shapes it: its first line, up to this many bytes and pieces.
const MAX_BYTES: usize = 2048;
const MAX_PIECES: usize = 200;

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A word that belongs to the message, by its place in it.
    Word(Range<usize>),
    Variable,
    Mark(u8),
}

#[derive(Debug, Clone, PartialEq, Eq)]
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

/// What a run of word characters is made of.
#[derive(Default)]
struct Traits {
    digits: usize,
    letters: usize,
    slashes: usize,
    dots: usize,
    at_signs: usize,
    other: usize,
    non_hex: bool,
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
        let mut traits = Traits::default();
        let mut end = from;
        while let Some(&c) = bytes.get(end)
            && (is_word_byte(c) || is_apostrophe(bytes, end))
        {
            traits.count(c);
            end += 1;
        }
        if bytes[end..].starts_with(b"://") {
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
        let classified = self.classify(word, &traits, bytes, word_end);
        match classified {
            Class::Word => self.constant(Kind::Word(from..word_end), spaced),
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

    fn classify(&self, word: &[u8], traits: &Traits, bytes: &[u8], end: usize) -> Class {
        let rest = &bytes[end..];
        if traits.digits > 0 {
            if traits.letters > 0 && is_named_with_digit(word) {
                return Class::Word;
            }
            return if traits.letters == 0 || traits.letters <= 3 { Class::Number } else { Class::Variable };
        }
        if traits.letters == 0 {
            return if word.len() > 1 && word.iter().all(|c| *c == b'*') { Class::Variable } else { Class::Word };
        }
        if self.after_number && (self.held.is_empty() || self.held_variable) && is_unit(word) {
            return Class::Unit;
        }
        if traits.dots > 0 && is_port(rest) || self.names_a_user(bytes) {
            return Class::Variable;
        }
        if self.after_variable && word.len() == 2 && !traits.non_hex && self.held_is(b':') {
            return Class::Variable;
        }
        if traits.is_path(word) || traits.is_dotted_name(word) || is_truth_value(word) {
            return Class::Variable;
        }
        if traits.at_signs > 0 && word[0] != b'@' && !word.ends_with(b"@") {
            return Class::Variable;
        }
        if word.len() == 8 && !traits.non_hex && traits.other == 0 {
            return Class::Variable;
        }
        if is_calendar_name(word, rest) {
            return Class::Variable;
        }
        Class::Word
    }

    /// Whether the two words before say that a user's name follows: `for user alice`, `invalid user bob`.
    fn names_a_user(&self, bytes: &[u8]) -> bool {
        const BEFORE: [&[u8]; 7] = [b"for", b"by", b"of", b"as", b"from", b"invalid", b"unknown"];
        let [.., Piece { kind: Kind::Word(first), .. }, Piece { kind: Kind::Word(second), .. }] =
            self.pieces.as_slice()
        else {
            return false;
        };
        &bytes[second.clone()] == b"user" && BEFORE.contains(&&bytes[first.clone()])
    }

    fn held_is(&self, mark: u8) -> bool {
        matches!(self.held.as_slice(), [Piece { kind: Kind::Mark(m), spaced: false }] if *m == mark)
    }

    fn constant(&mut self, kind: Kind, spaced: bool) {
        self.release();
        self.pieces.push(Piece { kind, spaced });
        (self.after_variable, self.after_number) = (false, false);
    }

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
    fn release(&mut self) {
        self.pieces.append(&mut self.held);
        self.held_variable = false;
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

impl Traits {
    fn count(&mut self, c: u8) {
        match c {
            b'0'..=b'9' => self.digits += 1,
            b'a'..=b'f' | b'A'..=b'F' => self.letters += 1,
            b'/' | b'\\' => self.slashes += 1,
            b'.' => self.dots += 1,
            b'@' => self.at_signs += 1,
            c if c.is_ascii_alphabetic() || c >= 0x80 => {
                self.letters += 1;
                self.non_hex = true;
            }
            _ => self.other += 1,
        }
    }

    fn is_path(&self, word: &[u8]) -> bool {
        match word[0] {
            b'/' | b'\\' => word.len() > 1,
            b'~' | b'.' if word.get(1) == Some(&b'/') => true,
            _ => self.slashes >= 2 || (self.slashes == 1 && self.dots > 0),
        }
    }

    /// Host names and packages with two dots or more. A class name, and above all that of an exception, tells what
    /// happened: it stays.
    fn is_dotted_name(&self, word: &[u8]) -> bool {
        if self.dots < 2 || memchr::memmem::find(word, b"..").is_some() {
            return false;
        }
        let last = word.rsplit(|c| *c == b'.').next().unwrap_or(word);
        !(last.first().is_some_and(u8::is_ascii_uppercase) && last.iter().any(u8::is_ascii_lowercase))
    }
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
    c.is_ascii_alphanumeric() || c >= 0x80 || b"_.-/\\$@%&*~+^".contains(&c)
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
    const UNITS: [&[u8]; 41] = [
        b"b",
        b"kb",
        b"mb",
        b"gb",
        b"tb",
        b"kib",
        b"mib",
        b"gib",
        b"tib",
        b"byte",
        b"bytes",
        b"ns",
        b"us",
        b"ms",
        b"s",
        b"sec",
        b"secs",
        b"second",
        b"seconds",
        b"m",
        b"min",
        b"mins",
        b"minute",
        b"minutes",
        b"h",
        b"hr",
        b"hrs",
        b"hour",
        b"hours",
        b"d",
        b"day",
        b"days",
        b"hz",
        b"khz",
        b"mhz",
        b"ghz",
        b"millis",
        b"milliseconds",
        b"microseconds",
        b"nanoseconds",
        b"msec",
    ];
    word.len() <= 12 && UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(word))
}

fn is_truth_value(word: &[u8]) -> bool {
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
    if word.len() != 3 || !NAMES.contains(&word) {
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
