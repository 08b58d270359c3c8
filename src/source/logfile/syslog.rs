//! Syslog: with priority (RFC 3164 and RFC 5424), and as files keep it, without.

use std::borrow::Cow;

use super::level;
use super::line::{Line, level_of_text};
use super::stamp::{self, Clock, Stamp};
use crate::domain::Level;

/// A tag longer than this is a part of the message.
const TAG_BYTES: usize = 96;

/// `<34>1 2024-… host app procid msgid [sd] message`, `<34>Oct 11 22:14:15 host tag[pid]: message`.
pub fn parse_with_priority<'a>(text: &'a str, clock: &Clock) -> Option<Line<'a>> {
    let bytes = text.as_bytes();
    let close = memchr::memchr(b'>', &bytes[..bytes.len().min(5)])?;
    let priority: i64 = text.get(1..close)?.parse().ok().filter(|p| (0..192).contains(p))?;
    let level = level::from_syslog_severity(priority % 8);
    let body = close + 1;
    if text[body..].starts_with("1 ") {
        return rfc5424(text, body + 2, level, clock);
    }
    let Some((stamp, end)) = stamp::parse_at(bytes, body, clock) else {
        // Devices leave out the stamp: the severity and the text stand.
        return Some(Line { level, ..Line::begins(text[body..].trim()) });
    };
    let line = parse_after_stamp(text, end, stamp)
        .unwrap_or_else(|| Line { at: Some(stamp), ..Line::begins(text[end..].trim()) });
    Some(Line { level, ..line })
}

fn rfc5424<'a>(text: &'a str, from: usize, level: Option<Level>, clock: &Clock) -> Option<Line<'a>> {
    let (stamp, end) = match stamp::parse_at(text.as_bytes(), from, clock) {
        Some((stamp, end)) => (Some(stamp), end),
        None if text[from..].starts_with("- ") => (None, from + 1),
        None => return None,
    };
    let line = fields_5424(text, end)?;
    Some(Line { at: stamp, level: level.or(line.level), ..line })
}

/// What follows the stamp of a syslog line without priority, in either of its two forms.
pub fn parse_after_stamp<'a>(text: &'a str, from: usize, stamp: Stamp) -> Option<Line<'a>> {
    if text.as_bytes().get(from) != Some(&b' ') {
        return None;
    }
    // A number behind the stamp is a process or thread, no host.
    let first = text.as_bytes()[from + 1..].iter().take_while(|c| !matches!(c, b' ' | b'\t'));
    if first.clone().all(u8::is_ascii_digit) {
        return None;
    }
    // RFC 5424 stamps have a year.
    let full = if stamp.assumed.year { None } else { fields_5424(text, from) };
    let line = full.or_else(|| host_and_tag(text, from, stamp))?;
    Some(Line { at: Some(stamp), ..line })
}

/// ` host app procid msgid [structured data] message`; `-` stands for what is not there.
fn fields_5424(text: &str, from: usize) -> Option<Line<'_>> {
    let mut at = from;
    let mut field = || {
        let rest = text.get(at..)?.strip_prefix(' ')?;
        let length = rest.find(' ')?;
        at += 1 + length;
        (length > 0).then(|| &rest[..length])
    };
    let host = field()?;
    let app = field()?;
    let process = field()?;
    let _message_id = field()?;
    // Without a priority before it, `- name - LEVEL -` is a header of another kind.
    if host == "-" && !has_priority(text) {
        return None;
    }
    if process != "-" && !process.bytes().all(|c| c.is_ascii_digit()) || app.ends_with(':') || host.starts_with('[') {
        return None;
    }
    let rest = text.get(at..)?.strip_prefix(' ')?;
    let data = structured_data(rest)?;
    let message = rest[data.len()..].trim().trim_start_matches('\u{feff}');
    let parameter = |name: &str| {
        let start = data.find(&format!(" {name}=\""))? + name.len() + 3;
        data[start..].split('"').next().filter(|value| !value.is_empty())
    };
    let level = parameter("level").or_else(|| parameter("severity")).and_then(|word| level::from_word(word.as_bytes()));
    Some(Line {
        level: level.or_else(|| level_of_text(message)),
        service: present(app),
        instance: present(host),
        ..Line::begins(message)
    })
}

fn has_priority(text: &str) -> bool {
    text.starts_with('<')
}

/// `-`, or one or more `[id name="value" …]`; quoted values may hold brackets, and quotes behind a backslash.
fn structured_data(rest: &str) -> Option<&str> {
    let bytes = rest.as_bytes();
    if bytes.first() == Some(&b'-') && bytes.get(1).is_none_or(|c| *c == b' ') {
        return Some(&rest[..1]);
    }
    let mut at = 0;
    while bytes.get(at) == Some(&b'[') {
        let mut quoted = false;
        loop {
            at += 1;
            match bytes.get(at)? {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b']' if !quoted => break,
                _ => {}
            }
        }
        at += 1;
    }
    (at > 0 && rest.is_char_boundary(at)).then(|| &rest[..at])
}

/// ` host tag[pid]: message` and ` host tag: message`; ` tag[pid]: message` where no host was written.
fn host_and_tag(text: &str, from: usize, stamp: Stamp) -> Option<Line<'_>> {
    let rest = text[from..].trim_ascii_start();
    let (host, after_host) = rest.split_once(' ')?;
    if level::from_word(host.as_bytes()).is_some()
        || !host.bytes().all(|c| c.is_ascii_alphanumeric() || b".-_/:@".contains(&c))
    {
        return None;
    }
    // The classic stamp is always followed by a host; after an ISO stamp it is one only before a process's tag.
    let classic = stamp.assumed.year;
    if host.ends_with(':') {
        return classic.then(|| tagged(None, host.trim_end_matches(':'), after_host));
    }
    // Collectors write a second origin (`local@host`) before the tag.
    let after_host = after_host.trim_ascii_start();
    let after_origin = match after_host.split_once(' ') {
        Some((origin, after)) if origin.contains('@') && !origin.contains(':') => after,
        _ => after_host,
    };
    match split_tag(after_origin) {
        Some((tag, message)) if classic || tag.ends_with(']') || is_dateless(host) => {
            Some(tagged(Some(host), tag, message))
        }
        None if classic
            && !host.contains(':')
            && host.bytes().any(|c| c.is_ascii_alphabetic())
            && after_host.starts_with("--") =>
        {
            Some(Line { instance: Some(Cow::Borrowed(host)), level: None, ..Line::begins(after_host.trim_end()) })
        }
        _ => None,
    }
}

/// A host name with letters; numbers are process ids.
fn is_dateless(host: &str) -> bool {
    host.bytes().any(|c| c.is_ascii_alphabetic())
        && host.bytes().any(|c| matches!(c, b'-' | b'.') || c.is_ascii_digit())
}

/// The tag up to its `: `. Names of programs may hold blanks only before a process number.
fn split_tag(rest: &str) -> Option<(&str, &str)> {
    let limit = rest.len().min(TAG_BYTES);
    let colon = memchr::memchr_iter(b':', &rest.as_bytes()[..limit])
        .find(|at| rest.as_bytes().get(at + 1).is_none_or(|c| *c == b' '))?;
    let tag = &rest[..colon];
    let numbered = tag.ends_with(']') && tag.contains('[');
    let one_word = !tag.is_empty() && !tag.bytes().any(|c| matches!(c, b' ' | b'=' | b'"' | b'\''));
    (one_word || (numbered && tag.split(' ').count() <= 4)).then(|| (tag, &rest[colon + 1..]))
}

fn tagged<'a>(host: Option<&'a str>, tag: &'a str, message: &'a str) -> Line<'a> {
    // `sshd(pam_unix)[123]` and `postfix/smtpd[1]` belong to sshd and postfix/smtpd.
    let program = tag.split(['[', '(']).next().unwrap_or(tag).trim_ascii();
    let message = message.trim_ascii();
    Line {
        level: level_of_text(message),
        service: (!program.is_empty()).then_some(Cow::Borrowed(program)),
        instance: host.map(Cow::Borrowed),
        ..Line::begins(message)
    }
}

fn present(field: &str) -> Option<Cow<'_, str>> {
    (field != "-").then_some(Cow::Borrowed(field))
}
