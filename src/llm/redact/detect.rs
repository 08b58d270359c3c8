//! Where the secrets of a text are: all finders together, their findings joined where they overlap.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::key::{self, Key};
use super::{RedactSettings, assignment, block, connection, number, placeholder, token, value};

/// What a secret is; its placeholder says so, because a model reasons better about `password` than about `?`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    Password,
    Secret,
    ApiKey,
    Token,
    /// Of an authorization header.
    Credentials,
    Cookie,
    Card,
    PrivateKey,
    Email,
    /// Found by a pattern of the configuration.
    Custom,
    /// No secret, but it looks like a placeholder.
    Text,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Secret => "secret",
            Self::ApiKey => "api_key",
            Self::Token => "token",
            Self::Credentials => "credentials",
            Self::Cookie => "cookie",
            Self::Card => "card",
            Self::PrivateKey => "private_key",
            Self::Email => "email",
            Self::Custom => "custom",
            Self::Text => "text",
        }
    }
}

/// Bytes of a text that are a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub start: usize,
    pub end: usize,
    pub kind: Kind,
}

impl Span {
    pub fn new(start: usize, end: usize, kind: Kind) -> Self {
        Self { start, end, kind }
    }
}

/// What to do about text that looks like a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaceholderLikes {
    AreSecrets,
    Stay,
}

/// A constant pattern. Each is compiled by the tests, so that none can fail here.
pub(super) fn constant(pattern: &'static str) -> Regex {
    Regex::new(pattern).unwrap_or_else(|error| unreachable!("{pattern}: {error}"))
}

/// The secrets of a text in their order, none overlapping another. Takes time in proportion to the text's length.
pub(super) fn spans(text: &str, settings: &RedactSettings, likes: PlaceholderLikes) -> Vec<Span> {
    let mut spans = Vec::new();
    if likes == PlaceholderLikes::AreSecrets {
        spans.extend(placeholder::LIKE.find_iter(text).map(|found| Span::new(found.start(), found.end(), Kind::Text)));
    }
    // Where two find the same, the name that it stands behind says more than its form.
    block::find(text, &mut spans);
    assignment::find(text, &mut spans);
    token::find(text, &mut spans);
    connection::find(text, &mut spans);
    number::find(text, &mut spans);
    for pattern in &settings.patterns {
        for found in pattern.captures_iter(text) {
            if let Some(part) = found.get(1).or_else(|| found.get(0)).filter(|part| !part.is_empty()) {
                spans.push(Span::new(part.start(), part.end(), Kind::Custom));
            }
        }
    }
    let mut spans = joined(spans);
    if settings.emails {
        // `u:p@ss@host.example`: what stands in a secret or reaches into one is no address.
        let is_free = |email: &Span| {
            let next = spans.partition_point(|span| span.end <= email.start);
            spans.get(next).is_none_or(|span| span.start >= email.end)
        };
        let emails: Vec<Span> = emails(text).filter(is_free).collect();
        spans.extend(emails);
        spans.sort_by_key(|span| span.start);
    }
    spans
}

/// Overlapping spans become one, of the kind of the first and longest.
fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|a, b| a.start.cmp(&b.start).then(b.end.cmp(&a.end)));
    let mut joined: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.start < last.end => last.end = last.end.max(span.end),
            _ => joined.push(span),
        }
    }
    joined
}

/// `user@host.tld`, where it is no address of a machine, a package, a unit or a file.
fn emails(text: &str) -> impl Iterator<Item = Span> {
    static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
        constant(r"[A-Za-z0-9._%+-]*[A-Za-z0-9_%+-]@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}(?-u:\b)")
    });
    let is_email = move |found: &regex::Match<'_>| {
        let Some((user, host)) = found.as_str().split_once('@') else { return false };
        let before = &text[..found.start()];
        let is_url_user = before.ends_with("://") || (user == "git" && text[found.end()..].starts_with([':', '/']));
        !is_url_user && !is_no_mail_host(host)
    };
    EMAIL
        .find_iter(text)
        .filter(move |found| is_email(found))
        .map(|found| Span::new(found.start(), found.end(), Kind::Email))
}

fn is_no_mail_host(host: &str) -> bool {
    const NO_MAIL: [&str; 38] = [
        "local",
        "internal",
        "lan",
        "localdomain",
        "svc",
        "service",
        "socket",
        "timer",
        "mount",
        "slice",
        "scope",
        "target",
        "path",
        "device",
        "swap",
        "png",
        "jpg",
        "jpeg",
        "gif",
        "svg",
        "webp",
        "js",
        "css",
        "json",
        "yaml",
        "yml",
        "log",
        "txt",
        "conf",
        "xml",
        "html",
        "jar",
        "gz",
        "go",
        "toml",
        "ini",
        "sql",
        "tgz",
    ];
    let last = host.rsplit('.').next().unwrap_or(host).to_ascii_lowercase();
    // `lodash@4.17.x`: a version.
    let mut labels = host.split('.').map(|label| label.bytes().all(|byte| byte.is_ascii_digit()));
    NO_MAIL.contains(&last.as_str()) || (labels.next() == Some(true) && labels.next() == Some(true))
}

/// What to do with a string or number of a document; the kind is given where its name says that it is a secret.
type Leaf<'a> = dyn FnMut(&Value, Option<Kind>) -> Value + 'a;

/// A document with its strings and numbers replaced, and the names of its members.
pub(super) fn map_json(value: &Value, leaf: &mut Leaf<'_>) -> Value {
    map_under(value, None, leaf)
}

fn map_under(value: &Value, key: Option<&Key>, leaf: &mut Leaf<'_>) -> Value {
    match value {
        Value::Array(items) => items.iter().map(|item| map_under(item, key, leaf)).collect(),
        Value::Object(members) => map_members(members, leaf),
        Value::String(text) => leaf(value, key.filter(|key| value::is_secret(text, key)).map(|key| key.kind)),
        Value::Number(number) => {
            let text = number.to_string();
            let named =
                key.filter(|key| value::is_secret(&text, key) && !value::is_count(&text, key)).map(|key| key.kind);
            leaf(value, named.or_else(|| number::is_card(&text).then_some(Kind::Card)))
        }
        other => other.clone(),
    }
}

fn map_members(members: &serde_json::Map<String, Value>, leaf: &mut Leaf<'_>) -> Value {
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    let is_kubernetes_secret = text("kind") == Some("Secret");
    // `{"name": "DB_PASSWORD", "value": "…"}`, as containers have their environment.
    let named = text("name").or_else(|| text("key")).and_then(key::of_name);
    let mut mapped = serde_json::Map::new();
    for (name, value) in members {
        let own = key::of_name(name);
        let key = match name.as_str() {
            "value" => named.as_ref().or(own.as_ref()),
            _ => own.as_ref(),
        };
        let value = match (name.as_str(), value) {
            ("data" | "stringData", Value::Object(entries)) if is_kubernetes_secret => {
                let entry = Key::strong(Kind::Secret);
                entries.iter().map(|(name, value)| (name.clone(), map_under(value, Some(&entry), leaf))).collect()
            }
            _ => map_under(value, key, leaf),
        };
        let name = match leaf(&Value::String(name.clone()), None) {
            Value::String(name) => name,
            _ => name.clone(),
        };
        mapped.insert(name, value);
    }
    Value::Object(mapped)
}
