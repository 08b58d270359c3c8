//! Names whose values are secrets: `DB_PASSWORD`, `clientSecret`, `x-api-key`, `密码`.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::{Kind, constant};

/// What may stand in a name, the longer first. Case does not count.
static WORD: LazyLock<Regex> = LazyLock::new(|| {
    constant(concat!(
        r"(?i-u:(?:access|secret|private|signing|encryption|account|master|auth|shared)[_-]?key|api[ _-]?key",
        r"|password|passwd|passphrase|passcode|pass|pwd|pw|secret|token|jwt|authorization",
        r"|(?:set-)?cookies?|signature|sig|jsessionid|phpsessid|connect\.sid)",
        r"|密码|口令|密钥|私钥|令牌|凭证",
    ))
});

/// How a value is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Plain,
    /// A scheme, then credentials.
    Authorization,
    /// `a=b; c=d`
    Cookies,
    /// `a=b; Path=/`
    SetCookie,
}

/// What else the name of a secret is used for, and so how much its value must look like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    /// A value is a secret unless it is empty or stands for another.
    Strong,
    /// Tokens are also counted, named and parsed.
    Weak,
    /// `PASS: 12`, `pass: true`.
    Assigned,
}

/// A name whose value is a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub kind: Kind,
    pub shape: Shape,
    pub strength: Strength,
    pub is_chinese: bool,
}

impl Key {
    pub fn strong(kind: Kind) -> Self {
        Self { kind, shape: Shape::Plain, strength: Strength::Strong, is_chinese: false }
    }
}

/// A key in a text: the whole name's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub key: Key,
    pub start: usize,
    pub end: usize,
}

/// Bytes of a name that are looked at on each side of its word.
const MAX_SIDE: usize = 64;

/// The next word from `at` on, as the name that it stands in if that is a key, and where to look further.
pub(super) fn next(text: &str, at: usize) -> Option<(Option<Found>, usize)> {
    let word = WORD.find_at(text, at)?;
    let bytes = text.as_bytes();
    let before = bytes[..word.start()].iter().rev().take(MAX_SIDE).take_while(|byte| is_name_byte(**byte)).count();
    let after = bytes[word.end()..].iter().take(MAX_SIDE).take_while(|byte| is_name_byte(**byte)).count();
    let (start, end) = (word.start() - before, word.end() + after);
    let [prefix, suffix] = [&text[start..word.start()], &text[word.end()..end]];
    let is_query = text[..start].ends_with(['?', '&']);
    // A placeholder names a kind of secret and holds none.
    let is_placeholder = is_behind(&bytes[..start], b"[redacted:");
    let key = classify(prefix, word.as_str(), suffix, is_query).filter(|_| !is_placeholder);
    Some((key.map(|key| Found { key, start, end }), word.end()))
}

fn is_behind(bytes: &[u8], opening: &[u8]) -> bool {
    bytes.len().checked_sub(opening.len()).is_some_and(|at| bytes[at..].eq_ignore_ascii_case(opening))
}

/// The key that a whole name is, as of a member of an object.
pub(super) fn of_name(name: &str) -> Option<Key> {
    let mut at = 0;
    while let Some((found, further)) = next(name, at) {
        if let Some(found) = found.filter(|found| found.end == name.len()) {
            return Some(found.key);
        }
        at = further;
    }
    None
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
}

fn classify(prefix: &str, word: &str, suffix: &str, is_query: bool) -> Option<Key> {
    if !is_harmless_suffix(suffix) {
        return None;
    }
    let lower = word.to_ascii_lowercase().replace([' ', '-', '_'], "");
    let is_chinese = !word.is_ascii();
    let starts_word = starts_word(prefix, word);
    let (kind, shape, strength) = match lower.as_str() {
        "password" | "passwd" | "passphrase" | "passcode" | "密码" | "口令" => {
            (Kind::Password, Shape::Plain, Strength::Strong)
        }
        "pass" if prefix.is_empty() => (Kind::Password, Shape::Plain, Strength::Assigned),
        "pass" | "pwd" | "pw" if starts_word || is_owner(prefix) => {
            // `PWD=/srv/app` is the working folder; the value's reader leaves paths alone.
            (Kind::Password, Shape::Plain, Strength::Strong)
        }
        "secret" | "密钥" | "私钥" | "凭证" => (Kind::Secret, Shape::Plain, Strength::Weak),
        "token" if !is_counted_token(prefix) => (Kind::Token, Shape::Plain, Strength::Weak),
        "jwt" if starts_word => (Kind::Token, Shape::Plain, Strength::Weak),
        "令牌" => (Kind::Token, Shape::Plain, Strength::Weak),
        "authorization" => (Kind::Credentials, Shape::Authorization, Strength::Strong),
        "cookie" | "cookies" if starts_word => (Kind::Cookie, Shape::Cookies, Strength::Strong),
        "setcookie" => (Kind::Cookie, Shape::SetCookie, Strength::Strong),
        "jsessionid" | "phpsessid" | "connect.sid" => (Kind::Cookie, Shape::Plain, Strength::Strong),
        "signature" | "sig" if is_query || prefix.to_ascii_lowercase().starts_with("x-") => {
            (Kind::Token, Shape::Plain, Strength::Weak)
        }
        key if key.ends_with("key") => (Kind::ApiKey, Shape::Plain, Strength::Weak),
        _ => return None,
    };
    Some(Key { kind, shape, strength, is_chinese })
}

/// `PASSWORD_2`, `token_value`; but `password_file`, `tokens` and `secretName` hold no secret.
fn is_harmless_suffix(suffix: &str) -> bool {
    const HARMLESS: [&str; 15] = [
        "",
        "confirm",
        "confirmation",
        "hash",
        "value",
        "text",
        "plain",
        "plaintext",
        "new",
        "old",
        "current",
        "encrypted",
        "base64",
        "b64",
        "base",
    ];
    let name =
        suffix.trim_start_matches(['_', '-', '.']).trim_end_matches(|c: char| c.is_ascii_digit() || "_-.".contains(c));
    HARMLESS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless))
}

/// Whether a word begins where it stands: `db_pass`, `dbPass`, and not `compass`.
fn starts_word(prefix: &str, word: &str) -> bool {
    match prefix.bytes().last() {
        None => true,
        Some(last) if !last.is_ascii_alphabetic() => true,
        Some(last) => last.is_ascii_lowercase() && word.starts_with(|c: char| c.is_ascii_uppercase()),
    }
}

/// `dbpass`, `MYSQL_ROOTPASS`.
fn is_owner(prefix: &str) -> bool {
    const OWNERS: [&str; 14] =
        ["db", "key", "store", "user", "root", "my", "ssh", "mysql", "ftp", "ldap", "mail", "smtp", "admin", "redis"];
    let last = prefix.rsplit(['_', '-', '.']).next().unwrap_or(prefix);
    OWNERS.iter().any(|owner| last.eq_ignore_ascii_case(owner))
}

/// Tokens of models, parsers and pages.
fn is_counted_token(prefix: &str) -> bool {
    const COUNTED: [&str; 30] = [
        "next",
        "page",
        "continue",
        "continuation",
        "sync",
        "resume",
        "max",
        "min",
        "num",
        "per",
        "prompt",
        "completion",
        "eos",
        "bos",
        "pad",
        "unk",
        "cls",
        "sep",
        "mask",
        "stop",
        "special",
        "first",
        "last",
        "unexpected",
        "total",
        "cached",
        "input",
        "output",
        "cursor",
        "pagination",
    ];
    let prefix = prefix.trim_end_matches(['_', '-', '.']);
    let camel =
        prefix.rfind(|c: char| c.is_ascii_uppercase()).filter(|_| prefix.bytes().any(|b| b.is_ascii_lowercase()));
    let last = prefix.rsplit(['_', '-', '.']).next().unwrap_or(prefix);
    let last_camel = &prefix[camel.unwrap_or(0)..];
    COUNTED.iter().any(|counted| last.eq_ignore_ascii_case(counted) || last_camel.eq_ignore_ascii_case(counted))
        || last.to_ascii_lowercase().ends_with("page") && !last.is_empty()
}
