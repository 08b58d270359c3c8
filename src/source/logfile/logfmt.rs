//! logfmt: `time=… level=info msg="…" key=value`.

use std::borrow::Cow;

use super::fields::Fields;
use super::line::Line;
use super::stamp::Clock;

/// More pairs than this are not looked at.
const MAX_PAIRS: usize = 128;

/// Reads a line that begins with `key=` and has a level, a message or a time among its pairs.
pub fn parse<'a>(text: &'a str, clock: &Clock) -> Option<Line<'a>> {
    let first = text.bytes().position(|c| !is_key_byte(c))?;
    if text.as_bytes()[first] != b'=' {
        return None;
    }
    let mut fields = Fields::default();
    let mut pairs = 0;
    for (key, value) in (Pairs { text, at: 0 }).take(MAX_PAIRS) {
        pairs += 1;
        fields.take_text(key, value, clock);
    }
    (pairs >= 2 && fields.tells_something()).then(|| fields.into_line(text))
}

fn is_key_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || b"_.-@/".contains(&c)
}

/// The pairs of a line; words without `=` are passed over.
struct Pairs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a str, Cow<'a, str>);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = self.text.as_bytes();
        loop {
            while bytes.get(self.at).is_some_and(|c| matches!(c, b' ' | b'\t' | b',')) {
                self.at += 1;
            }
            let start = self.at;
            while bytes.get(self.at).is_some_and(|c| is_key_byte(*c)) {
                self.at += 1;
            }
            let key = &self.text[start..self.at];
            match bytes.get(self.at)? {
                b'=' if !key.is_empty() => {
                    self.at += 1;
                    return Some((key, self.value()));
                }
                _ => self.skip_word(),
            }
        }
    }
}

impl<'a> Pairs<'a> {
    fn skip_word(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().position(|c| *c == b' ').unwrap_or(rest.len()).max(1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Cow<'a, str> {
        let bytes = self.text.as_bytes();
        if bytes.get(self.at) != Some(&b'"') {
            let start = self.at;
            let rest = &bytes[start..];
            self.at += rest.iter().position(|c| matches!(c, b' ' | b'\t')).unwrap_or(rest.len());
            return Cow::Borrowed(self.text[start..self.at].trim_end_matches(','));
        }
        let start = self.at + 1;
        let mut at = start;
        let mut escaped = false;
        while let Some(&c) = bytes.get(at) {
            match c {
                b'\\' => {
                    escaped = true;
                    at += 1;
                }
                b'"' => break,
                _ => {}
            }
            at += 1;
        }
        let end = at.min(bytes.len());
        self.at = (end + 1).min(bytes.len());
        // A lone backslash at the end of the line may have moved past it, never into a character.
        let raw = self.text.get(start..end).unwrap_or_default();
        if escaped { Cow::Owned(unescape(raw)) } else { Cow::Borrowed(raw) }
    }
}

fn unescape(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut chars = raw.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => {}
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            c => text.push(c),
        }
    }
    text
}
