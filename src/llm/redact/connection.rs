//! Credentials in URLs and in the commands and settings that have forms of their own for them.

use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

use super::detect::{Kind, Span, constant};
use super::value;

/// Bytes of a URL that are looked at for its password.
const MAX_AUTHORITY: usize = 512;
/// Bytes of a command that are looked at for its option.
const MAX_COMMAND: usize = 256;

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    urls(text, spans);
    for (pattern, kind) in FORMS.iter() {
        let groups = pattern.captures_iter(text).filter_map(|found| found.get(1));
        let real = groups.filter(|value| value::is_secret(value.as_str(), &super::key::Key::strong(*kind)));
        spans.extend(real.map(|value| Span::new(value.start(), value.end(), *kind)));
    }
    commands(text, spans);
}

/// The first group of each is the secret.
static FORMS: LazyLock<[(Regex, Kind); 8]> = LazyLock::new(|| {
    [
        // Oracle's thin driver, and Go's driver for MySQL
        (constant(r"jdbc:oracle:[a-z]+:[^\s/@]+/([^\s@]+)@"), Kind::Password),
        (constant(r"[A-Za-z0-9_.-]+:([^\s:@/\]]+)@(?:tcp|unix)\("), Kind::Password),
        // SQL
        (constant(r"(?i-u:\bidentified\s+by\s+(?:password\s+)?|\bpassword\s*\(?\s*)'([^'\n]+)'"), Kind::Password),
        // .netrc, Redis, pgpass
        (constant(r"(?-u:\b)login[ \t]+\S+[ \t]+password[ \t]+(\S+)"), Kind::Password),
        (constant(r"(?m)^[ \t]*(?:requirepass|masterauth)[ \t]+(\S+)"), Kind::Password),
        (
            constant(r"(?m)^[A-Za-z0-9_.*-]+:(?:[0-9]{2,5}|\*):[A-Za-z0-9_*-]+:[A-Za-z0-9_*-]+:([^\s:]+)$"),
            Kind::Password,
        ),
        // A crypt(3) hash, as in /etc/shadow
        (constant(r"(\$(?:1|2[aby]|5|6|7|y)\$[A-Za-z0-9./$,=]{20,})"), Kind::Password),
        // Signed URLs
        (constant(r"(?i-u:[?&]X-(?:Amz|Goog)-(?:Signature|Security-Token)=)([^&\s\x22']+)"), Kind::Token),
    ]
});

/// `scheme://user:password@host`: the password only; `https://key@host` of error trackers: the key.
fn urls(text: &str, spans: &mut Vec<Span>) {
    for at in memmem::find_iter(text.as_bytes(), "://") {
        let start = at + 3;
        let rest = &text.as_bytes()[start..text.len().min(start + MAX_AUTHORITY)];
        let authority = rest.iter().position(|byte| is_url_end(*byte) || matches!(byte, b'/' | b'?' | b'#'));
        let authority = &rest[..authority.unwrap_or(rest.len())];
        // Unescaped, a password may hold an @: the last one of the authority ends it.
        let found = match memchr::memrchr(b'@', authority) {
            Some(end) => credentials(&authority[..end]),
            None => slashed_password(rest),
        };
        if let Some((from, to, kind)) = found {
            let value = text.get(start + from..start + to).unwrap_or("");
            if value::is_secret(value, &super::key::Key::strong(kind)) {
                spans.push(Span::new(start + from, start + to, kind));
            }
        }
    }
}

fn is_url_end(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b'\\')
}

/// The secret part of what stands before the `@`.
fn credentials(user_info: &[u8]) -> Option<(usize, usize, Kind)> {
    // What was masked before.
    if user_info.starts_with(b"[") {
        return None;
    }
    if let Some(colon) = memchr::memchr(b':', user_info) {
        return Some((colon + 1, user_info.len(), Kind::Password));
    }
    let is_key = user_info.len() >= 20 && user_info.iter().all(u8::is_ascii_alphanumeric);
    (is_key && user_info.iter().any(u8::is_ascii_digit)).then_some((0, user_info.len(), Kind::ApiKey))
}

/// A password with an unescaped slash: `redis://:a/b@host`. What follows the colon is then no port.
fn slashed_password(rest: &[u8]) -> Option<(usize, usize, Kind)> {
    let url = &rest[..rest.iter().position(|byte| is_url_end(*byte)).unwrap_or(rest.len())];
    let end = memchr::memchr(b'@', url)?;
    let colon = memchr::memchr(b':', &url[..end])?;
    let password = &url[colon + 1..end];
    let before_slash = password.split(|byte| matches!(byte, b'/' | b'?' | b'#')).next().unwrap_or(password);
    let is_port = before_slash.iter().all(u8::is_ascii_digit) && !before_slash.is_empty();
    let is_in_path = memchr::memchr3(b'/', b'?', b'#', &url[..colon]).is_some();
    (!is_port && !is_in_path).then_some((colon + 1, end, Kind::Password))
}

/// `mysql -pSecret`, `sshpass -p secret`, `curl -u user:secret`, `redis-cli -a secret`.
fn commands(text: &str, spans: &mut Vec<Span>) {
    const COMMANDS: [(&str, &str, Argument); 7] = [
        ("mysql", "-p", Argument::Joined),
        ("mariadb", "-p", Argument::Joined),
        ("sshpass", "-p", Argument::Any),
        ("curl", "-u", Argument::User),
        ("curl", "--user", Argument::User),
        ("redis-cli", "-a", Argument::Any),
        ("redis-cli", "--pass", Argument::Any),
    ];
    for (command, option, argument) in COMMANDS {
        let mut at = 0;
        while let Some(found) = memmem::find(&text.as_bytes()[at..], command.as_bytes()) {
            at += found;
            let window = &text[at..text.floor_char_boundary(text.len().min(at + MAX_COMMAND))];
            let line = window.split(['\n', '|', ';']).next().unwrap_or(window);
            let Some((from, to)) = option_value(line, option, argument) else {
                // Another command may begin in the second half and end beyond the window.
                at = text.ceil_char_boundary(at + command.len().max(line.len() / 2));
                continue;
            };
            if value::is_secret(&text[at + from..at + to], &super::key::Key::strong(Kind::Password)) {
                spans.push(Span::new(at + from, at + to, Kind::Password));
            }
            at += to;
        }
    }
}

/// How an option has its value.
#[derive(Clone, Copy, PartialEq)]
enum Argument {
    /// `-pvalue` alone: `-p value` means something else.
    Joined,
    Any,
    /// `user:value`
    User,
}

/// The bytes of an option's secret.
fn option_value(line: &str, option: &str, argument: Argument) -> Option<(usize, usize)> {
    let mut words = line.split(' ').scan(0, |at, word| {
        let start = *at;
        *at += word.len() + 1;
        Some((start, word))
    });
    // The command's own word.
    words.next()?;
    let (mut start, word) = words.find(|(_, word)| word.starts_with(option))?;
    let mut value = &word[option.len()..];
    start += option.len();
    if value.is_empty() {
        if argument == Argument::Joined {
            return None;
        }
        (start, value) = words.find(|(_, word)| !word.is_empty())?;
    }
    for skipped in ['=', '\'', '"'] {
        if let Some(rest) = value.strip_prefix(skipped) {
            (start, value) = (start + 1, rest);
        }
    }
    if argument == Argument::User {
        let (user, password) = value.split_once(':')?;
        (start, value) = (start + user.len() + 1, password);
    }
    let end = value.find(['\'', '"', '\r', '\\']).unwrap_or(value.len());
    (end > 0 && !value.starts_with('-')).then_some((start, start + end))
}
