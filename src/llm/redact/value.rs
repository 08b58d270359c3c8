//! The value after a key: where it ends, and whether it is a secret at all.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::constant;
use super::key::{Key, Strength};

/// What stands between key and value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    /// `=`, `:=`, `=>`
    Equals,
    /// `<password>`
    Tag,
    /// A colon without a space behind it.
    TightColon,
    /// As sentences have it too.
    Colon,
    /// `--password x`
    Space,
}

/// A value's bytes, without its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    pub start: usize,
    pub end: usize,
    pub is_quoted: bool,
}

/// A quoted value is no longer than this; a quote that is not closed by then opened nothing.
const MAX_QUOTED: usize = 4096;

/// The value that begins at `at`; `None` when there is none.
pub(super) fn read(text: &str, at: usize) -> Option<Value> {
    // Python's b'…' and the like.
    let rest = &text.as_bytes()[at..];
    let is_prefixed = matches!(rest, [b'b' | b'B' | b'r' | b'u' | b'f', b'"' | b'\'', ..]);
    let at = at + usize::from(is_prefixed);
    if let Some(quoted) = quoted(text, at) {
        return Some(quoted);
    }
    let opening = text[at..].bytes().take_while(|byte| *byte == b'\\').count();
    let is_quote = matches!(text.as_bytes().get(at + opening), Some(b'"' | b'\'' | b'`'));
    let at = if is_quote { at + opening + 1 } else { at };
    let end = at + unquoted_len(&text[at..]);
    (end > at).then_some(Value { start: at, end, is_quoted: false })
}

/// The text of an XML element that begins at `at`.
pub(super) fn read_element(text: &str, at: usize) -> Option<Value> {
    let len = text.as_bytes()[at..].iter().take(MAX_QUOTED).position(|byte| matches!(byte, b'<' | b'\n'))?;
    let is_closed = len > 0 && text[at + len..].starts_with("</");
    is_closed.then_some(Value { start: at, end: at + len, is_quoted: true })
}

/// The first line of a YAML block scalar, whose mark (`|`, `>-`) stands at `at`.
pub(super) fn read_block(text: &str, at: usize) -> Option<Value> {
    // The mark is short: what is no mark is not searched for the end of its line.
    let len = text.as_bytes()[at..].iter().take(8).position(|byte| *byte == b'\n')?;
    let (mark, rest) = (&text[at..at + len], &text[at + len + 1..]);
    if !matches!(mark.trim_end(), "|" | "|-" | "|+" | ">" | ">-" | ">+") {
        return None;
    }
    let line = rest.split('\n').next().unwrap_or(rest).trim_end();
    let start = at + mark.len() + 1 + (line.len() - line.trim_start().len());
    let end = at + mark.len() + 1 + line.len();
    (end > start).then_some(Value { start, end, is_quoted: true })
}

/// A value in quotes, which may themselves be escaped as often as JSON was put into JSON.
fn quoted(text: &str, at: usize) -> Option<Value> {
    let rest = &text[at..];
    if let Some(inner) = rest.strip_prefix('“') {
        let start = text.len() - inner.len();
        let len = inner.find(['”', '\n']).filter(|len| *len <= MAX_QUOTED && inner[*len..].starts_with('”'))?;
        return Some(Value { start, end: start + len, is_quoted: true });
    }
    let bytes = rest.as_bytes();
    let opening = bytes.iter().take(16).take_while(|byte| **byte == b'\\').count();
    let quote = *bytes.get(opening).filter(|byte| matches!(byte, b'"' | b'\'' | b'`'))?;
    // At each level an escape is written with twice the backslashes and one more.
    let level = opening + 1;
    if !level.is_power_of_two() {
        return None;
    }
    let start = at + level;
    let mut backslashes = 0;
    for (index, byte) in text.as_bytes()[start..].iter().take(MAX_QUOTED).enumerate() {
        match byte {
            b'\\' => backslashes += 1,
            b'\n' => return None,
            byte if *byte == quote && backslashes % (2 * level) == opening => {
                let end = start + index - opening;
                return Some(Value { start, end: end.max(start), is_quoted: true });
            }
            _ => backslashes = 0,
        }
    }
    None
}

/// Bytes up to where a value without quotes ends. Passwords hold any character, so punctuation ends one only where
/// something follows that is none of it.
fn unquoted_len(text: &str) -> usize {
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        let rest = &text[at + c.len_utf8()..];
        let ends = match c {
            c if c.is_whitespace() || c.is_control() => true,
            '<' | '>' | '，' | '。' | '；' | '、' | '！' | '？' | '）' | '」' | '”' | '’' | '】' => true,
            '"' | '\'' | '`' => !rest.starts_with(|next: char| next.is_alphanumeric()),
            '\\' => rest.starts_with(['"', '\'', 'n', 'r', 't', '\\']),
            ',' | ';' => ends_here(rest) || rest.starts_with(['"', '\'']) || assignment_follows(rest),
            '&' => ends_here(rest) || assignment_follows(rest),
            ')' | ']' | '}' => ends_here(rest) || rest.starts_with([',', ';', ':', '.', ')', ']', '}', '"', '\'']),
            _ => false,
        };
        if ends {
            end = at;
            break;
        }
    }
    text[..end].trim_end_matches(['.', ',', ';', ':']).len()
}

fn ends_here(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with(char::is_whitespace)
}

/// Whether `name=` or `"name":` is next.
fn assignment_follows(rest: &str) -> bool {
    let is_name = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | ' ' | '"' | '\\');
    let name: usize = rest.chars().take(40).take_while(is_name).map(char::len_utf8).sum();
    name > 0 && rest[name..].starts_with(['=', ':'])
}

/// Whether a value of a document is its key's secret.
pub(super) fn is_secret(text: &str, key: &Key) -> bool {
    !text.trim().is_empty() && !is_reference(text) && !is_word_for_nothing(text) && !is_too_plain(text, key)
}

/// Whether a value of a text is: beside what [`is_secret`] says, a sentence may go on behind a colon.
pub(super) fn is_secret_in(text: &str, value: Value, separator: Separator, key: &Key) -> bool {
    let found = &text[value.start..value.end];
    if value.is_quoted {
        return is_secret(found, key);
    }
    let is_assigned = matches!(separator, Separator::Equals | Separator::Tag | Separator::Space);
    if key.strength == Strength::Assigned && !is_assigned {
        return false;
    }
    if key.is_chinese && !found.starts_with(|c: char| c.is_ascii_graphic()) {
        return false;
    }
    let is_prose = separator == Separator::Colon && (is_status(found) || goes_on(found, &text[value.end..]));
    is_secret(found, key) && !is_prose && !is_code(found) && !is_count(found, key)
}

/// A value that stands for another: a variable, a template, a file, what was masked before.
fn is_reference(value: &str) -> bool {
    const OPENINGS: [&str; 10] = ["${", "{{", "$(", "<", "%(", "{%", "[redacted", "[REDACTED", "[FILTERED", "[MASKED"];
    const FOLDERS: [&str; 15] = [
        "/run/",
        "/var/",
        "/etc/",
        "/home/",
        "/usr/",
        "/opt/",
        "/tmp/",
        "/mnt/",
        "/secrets/",
        "/root/",
        "/data/",
        "/app",
        "/srv/",
        "./",
        "~/",
    ];
    let value = value.trim();
    let is_variable = value.strip_prefix('$').is_some_and(|name| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    });
    let is_mask =
        value.chars().all(|c| matches!(c, '*' | 'x' | 'X' | '•' | '·' | '.' | '-' | '#' | '_' | '?' | '~' | '…'));
    let is_format = value.len() <= 3 && value.starts_with('%');
    let starts = |openings: &[&str]| openings.iter().any(|opening| value.starts_with(opening));
    let is_code = ["os.environ", "os.Getenv", "process.env", "System.getenv", "env.", "arn:aws:", "vault:", "file:"];
    is_variable
        || is_mask
        || is_format
        || starts(&OPENINGS)
        || starts(&FOLDERS)
        || starts(&is_code)
        || matches!(value, "{}" | "[]" | "|" | "|-" | ">" | ">-" | "{" | "[" | "\\")
}

fn is_word_for_nothing(value: &str) -> bool {
    const WORDS: [&str; 27] = [
        "null",
        "nil",
        "none",
        "true",
        "false",
        "undefined",
        "unset",
        "empty",
        "required",
        "optional",
        "string",
        "str",
        "bytes",
        "hidden",
        "masked",
        "redacted",
        "removed",
        "omitted",
        "expired",
        "invalid",
        "missing",
        "n/a",
        "yes",
        "no",
        "not",
        "is",
        "must",
    ];
    WORDS.iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

/// Counts, ports and versions behind names that have those too.
fn is_too_plain(value: &str, key: &Key) -> bool {
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    key.strength == Strength::Weak && is_number && (value.len() < 6 || value.contains('.'))
}

/// `pass=12`: of tests, not into a system.
pub(super) fn is_count(value: &str, key: &Key) -> bool {
    key.strength == Strength::Assigned && value.len() < 6 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// What a message says about a password or token: `token: expired`.
fn is_status(value: &str) -> bool {
    const STATES: [&str; 44] = [
        "incorrect",
        "wrong",
        "denied",
        "mismatch",
        "unknown",
        "failed",
        "failure",
        "success",
        "ok",
        "changed",
        "reset",
        "updated",
        "rotated",
        "revoked",
        "the",
        "a",
        "an",
        "has",
        "was",
        "will",
        "cannot",
        "text",
        "int",
        "number",
        "boolean",
        "varchar",
        "char",
        "object",
        "any",
        "latest",
        "files",
        "compat",
        "default",
        "encrypted",
        "present",
        "absent",
        "enabled",
        "disabled",
        "set",
        "unchanged",
        "accepted",
        "rejected",
        "verified",
        "valid",
    ];
    STATES.iter().any(|state| value.eq_ignore_ascii_case(state))
}

/// Whether a word is followed by another that is no key: `invalid token: signature is invalid`.
fn goes_on(value: &str, rest: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
        || (value.len() > 1 && value.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()) && value.is_ascii());
    let next = rest.trim_start_matches([' ', '\t']);
    let is_sentence =
        next.len() < rest.len() && next.starts_with(|c: char| c.is_alphanumeric() || c == '"' || c == '\'');
    is_word && is_sentence && !assignment_follows(next.split(' ').next().unwrap_or(next))
}

/// A call or a field: `getPassword()`, `self.password`, `request.headers["x"]`.
fn is_code(value: &str) -> bool {
    static CODE: LazyLock<Regex> = LazyLock::new(|| {
        constant(
            r"^(?:[A-Za-z_][A-Za-z0-9_]*(?:\.|::))*[A-Za-z_][A-Za-z0-9_]*[(\[]|^(?:self|this|cfg|config|opts|options|args|request|req|user|params|settings)\.[A-Za-z_.]+$",
        )
    });
    !value.starts_with("ENC(") && CODE.is_match(value)
}
