//! `password=…` in text, JSON, YAML, query strings, logfmt, XML and command lines; headers with credentials; cookies.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::{Kind, Span, constant};
use super::key::{self, Found, Shape};
use super::token::looks_random;
use super::value::{self, Separator};

/// Spaces that may stand around a separator; columns of configuration files are aligned with some.
const MAX_SPACES: usize = 32;

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    let mut at = 0;
    while let Some((found, further)) = key::next(text, at) {
        at = further;
        let Some(found) = found else { continue };
        let Some((value_at, separator)) = separator(text, &found) else { continue };
        let end = match found.key.shape {
            Shape::Plain => plain(text, value_at, separator, &found, spans),
            Shape::Authorization => authorization(text, value_at, separator, spans),
            Shape::Cookies | Shape::SetCookie => cookies(text, value_at, found.key.shape, spans),
        };
        // What was read as a value is not read again, so that all takes one pass.
        at = at.max(end);
    }
}

/// Reads the value of a key, and tells where it ends.
fn plain(text: &str, at: usize, separator: Separator, found: &Found, spans: &mut Vec<Span>) -> usize {
    let rest = &text[at..];
    if is_list(rest) {
        return list(text, at, found, spans);
    }
    // Structures and templates (`${DB_PASSWORD:default}`) hold keys of their own.
    let holds_keys = rest.starts_with(['{', '(']) || rest.starts_with("${");
    if holds_keys || (separator == Separator::Space && rest.starts_with('-')) {
        return at;
    }
    if let Some(block) = value::read_block(text, at) {
        spans.push(Span::new(block.start, block.end, found.key.kind));
        return block.end;
    }
    let value = if separator == Separator::Tag { value::read_element(text, at) } else { value::read(text, at) };
    let Some(value) = value else { return at };
    let own_name = &text[found.start..found.end];
    let is_stand_in = own_name.trim_start_matches('-').eq_ignore_ascii_case(&text[value.start..value.end])
        && separator == Separator::Space;
    if value::is_secret_in(text, value, separator, &found.key) && !is_stand_in {
        spans.push(Span::new(value.start, value.end, found.key.kind));
    }
    value.end
}

/// What was masked before is no list.
fn is_list(value: &str) -> bool {
    value.starts_with('[') && !value[1..].get(..4).is_some_and(|word| word.eq_ignore_ascii_case("reda"))
}

/// Values in quotes, between brackets.
fn list(text: &str, at: usize, found: &Found, spans: &mut Vec<Span>) -> usize {
    let mut at = at + 1;
    loop {
        at = text.len() - text[at..].trim_start_matches([' ', ',', '\n', '\t']).len();
        let is_quote = text[at..].trim_start_matches('\\').starts_with(['"', '\'']);
        let Some(value) = value::read(text, at).filter(|value| is_quote && value.is_quoted) else { return at };
        if value::is_secret(&text[value.start..value.end], &found.key) {
            spans.push(Span::new(value.start, value.end, found.key.kind));
        }
        // Past the quote, and what escapes it.
        let closed = text[value.end..].trim_start_matches('\\');
        at = text.len() - closed.strip_prefix(['"', '\'', '`', '”']).unwrap_or(closed).len();
    }
}

/// Where the value begins, if the name is followed by a separator.
fn separator(text: &str, found: &Found) -> Option<(usize, Separator)> {
    let before = &text[..found.start];
    let rest = &text[found.end..];
    if before.ends_with('<') && !found.key.is_chinese {
        let tag_end = rest.bytes().take(64).position(|byte| matches!(byte, b'>' | b'<' | b'\n'))?;
        let is_open = rest.as_bytes()[tag_end] == b'>' && !rest[..tag_end].ends_with('/');
        return is_open.then_some((found.end + tag_end + 1, Separator::Tag));
    }
    if text[found.start..].starts_with("--") && rest.starts_with(' ') {
        return Some((text.len() - skip_spaces(rest).len(), Separator::Space));
    }
    // `"name":`, `["name"] =`, `\"name\":`
    let closed = rest.trim_start_matches('\\');
    let closed = closed.strip_prefix(['"', '\'', '`']).unwrap_or(rest);
    let closed = closed.strip_prefix([']', ')', '）']).unwrap_or(closed);
    let spaced = skip_spaces(closed);
    let is_path = before.ends_with('/');
    let (after, separator) = match spaced.chars().next()? {
        '=' => (spaced.trim_start_matches(['=', '>']), Separator::Equals),
        ':' if spaced.starts_with("::") || spaced.starts_with("://") || is_path => return None,
        ':' if spaced.starts_with(":=") => (&spaced[2..], Separator::Equals),
        ':' if closed.len() < rest.len() => (&spaced[1..], Separator::Equals),
        ':' if spaced[1..].starts_with([' ', '\t']) => (&spaced[1..], Separator::Colon),
        ':' => (&spaced[1..], Separator::TightColon),
        '：' => (&spaced['：'.len_utf8()..], Separator::Colon),
        '＝' => (&spaced['＝'.len_utf8()..], Separator::Equals),
        '为' | '是' if found.key.is_chinese => (&spaced['为'.len_utf8()..], Separator::Equals),
        _ => return None,
    };
    let value = skip_spaces(after);
    Some((text.len() - value.len(), separator))
}

fn skip_spaces(text: &str) -> &str {
    let spaces = text.bytes().take(MAX_SPACES).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &text[spaces..]
}

/// The bytes of a header's value that begins at `at`: to the end of the line, or to the quote that it stands in.
fn header_end(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let ends = |index: &usize| match bytes[*index] {
        b'\n' | b'\r' | b'"' | b'\'' => true,
        b'\\' => matches!(bytes.get(index + 1), Some(b'n' | b'r' | b'"' | b'\'' | b'\\')),
        _ => false,
    };
    (at..bytes.len()).find(ends).unwrap_or(bytes.len())
}

/// Past the quotes that a value begins with, and Go's `[` around the values of a header.
fn unwrapped(text: &str, at: usize) -> usize {
    text.len() - text[at..].trim_start_matches(['\\', '"', '\'', '[']).len()
}

fn authorization(text: &str, at: usize, separator: Separator, spans: &mut Vec<Span>) -> usize {
    static SCHEME: LazyLock<Regex> = LazyLock::new(|| {
        constant(
            r"^(?i-u:(bearer|basic|token|negotiate|ntlm|apikey|api-key|splunk|bot)|(digest|aws4-hmac-sha256|hawk|oauth))[ \t+]+",
        )
    });
    let start = unwrapped(text, at);
    let scheme = SCHEME.captures(&text[start..]);
    let has_scheme = scheme.is_some();
    let is_list = scheme.as_ref().is_some_and(|scheme| scheme.get(2).is_some());
    let start = start + scheme.map_or(0, |scheme| scheme[0].len());
    let end = match (is_list, value::read(text, start)) {
        (true, _) => header_end(text, start),
        (false, Some(value)) => value.end,
        (false, None) => return start,
    };
    let value = text[start..end].trim_end_matches(']');
    let key = key::Key::strong(Kind::Credentials);
    // `Authorization: required` is no credential; `Authorization: Bearer abc` is, however short.
    let is_value = if has_scheme { separator != Separator::Space } else { looks_random(value) };
    if is_value && value::is_secret(value, &key) {
        spans.push(Span::new(start, start + value.len(), Kind::Credentials));
    }
    end.max(start)
}

fn cookies(text: &str, at: usize, shape: Shape, spans: &mut Vec<Span>) -> usize {
    const ATTRIBUTES: [&str; 5] = ["path", "domain", "expires", "max-age", "samesite"];
    let start = unwrapped(text, at);
    let end = header_end(text, start);
    let pairs = if shape == Shape::SetCookie { 1 } else { usize::MAX };
    let mut part_at = start;
    for part in text[start..end].split(';').take(pairs) {
        let begin = part_at;
        part_at += part.len() + 1;
        let Some((name, value)) = part.split_once('=') else { continue };
        let is_name = !name.trim().is_empty() && !name.trim().contains(char::is_whitespace);
        let is_attribute = ATTRIBUTES.iter().any(|attribute| name.trim().eq_ignore_ascii_case(attribute));
        let value_at = begin + name.len() + 1;
        let value = value.trim_end();
        if is_name && !is_attribute && value::is_secret(value, &key::Key::strong(Kind::Cookie)) {
            spans.push(Span::new(value_at, value_at + value.len(), Kind::Cookie));
        }
    }
    end
}
