//! Takes secrets out of what leaves the machine, and puts them back into what the user sees.
//!
//! In: any text or JSON. Out: the same with numbered placeholders (`[redacted:password:1]`), the same secret under the
//! same number for as long as the [`Redactor`] lives; [`Redactor::restore`] gives the values back. What goes to disk
//! passes [`Redactor::mask`] instead, from which nothing can be restored.
//!
//! In reading order: `placeholder` knows what stands for what; `detect` joins what the finders find: `token` (keys with
//! well-known prefixes), `assignment` (with `key` and `value`: `password=…`), `connection` (URLs and commands),
//! `block` (private keys, Kubernetes secrets), `number` (payment cards).

mod assignment;
mod block;
mod connection;
mod detect;
mod key;
mod number;
mod placeholder;
#[cfg(test)]
mod tests;
mod token;
mod value;

use std::sync::{Mutex, PoisonError};

use regex::Regex;
use serde_json::Value;

use self::detect::{Kind, Span};
pub use self::placeholder::Restorer;
use self::placeholder::{Registry, Secret};
use crate::http;

/// Which endpoints get redacted text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RedactFor {
    All,
    /// Everything but this machine.
    #[default]
    Remote,
    None,
}

/// What counts as a secret.
#[derive(Debug, Clone)]
pub struct RedactSettings {
    pub endpoints: RedactFor,
    /// E-mail addresses too.
    pub emails: bool,
    /// Further secrets: the first group of a match, or the whole match of a pattern without groups.
    pub patterns: Vec<Regex>,
}

impl Default for RedactSettings {
    fn default() -> Self {
        Self { endpoints: RedactFor::default(), emails: true, patterns: Vec::new() }
    }
}

impl RedactSettings {
    /// Whether text for this URL is redacted. A URL that cannot be read counts as remote.
    pub fn covers(&self, url: &str) -> bool {
        match self.endpoints {
            RedactFor::All => true,
            RedactFor::Remote => !reqwest::Url::parse(url).is_ok_and(|url| http::is_loopback(&url)),
            RedactFor::None => false,
        }
    }
}

/// Redacts for one run. May be shared between threads; nothing is ever forgotten while it lives.
pub struct Redactor {
    settings: RedactSettings,
    registry: Mutex<Registry>,
}

impl Redactor {
    pub fn new(settings: RedactSettings) -> Self {
        Self { settings, registry: Mutex::new(Registry::default()) }
    }

    /// The text with a placeholder for each secret. Text that looks like a placeholder gets one itself, so that
    /// `restore(redact(x)) == x` whatever `x` is.
    pub fn redact(&self, text: &str) -> String {
        let spans = detect::spans(text, &self.settings, detect::PlaceholderLikes::AreSecrets);
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        replaced(text, &spans, |span| {
            registry.placeholder(Secret::Text(text[span.start..span.end].to_owned()), span.kind)
        })
    }

    /// As [`Self::redact`], for every string of a document, names of members included. A string or number that is the
    /// value of a member such as `password` is a secret as a whole.
    pub fn redact_json(&self, value: &Value) -> Value {
        detect::map_json(value, &mut |leaf, kind| match (leaf, kind) {
            (Value::String(text), Some(kind)) => self.whole(Secret::Text(text.clone()), kind),
            (Value::Number(number), Some(kind)) => self.whole(Secret::Number(number.clone()), kind),
            (Value::String(text), None) => Value::String(self.redact(text)),
            (other, _) => other.clone(),
        })
    }

    fn whole(&self, secret: Secret, kind: Kind) -> Value {
        let mut registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        Value::String(registry.placeholder(secret, kind))
    }

    /// The text with the values of its placeholders. Case and spacing of a placeholder may have changed; one that was
    /// not given out here, or is broken, stays as it is. JSON text is for [`Self::restore_json`]: a value may hold quotes.
    pub fn restore(&self, text: &str) -> String {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner).restore(text)
    }

    /// As [`Self::restore`], for every string of a document; a string that is the placeholder of a number is a number
    /// again.
    pub fn restore_json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.registry.lock().unwrap_or_else(PoisonError::into_inner).restore_value(text),
            Value::Array(items) => items.iter().map(|item| self.restore_json(item)).collect(),
            Value::Object(members) => members
                .iter()
                .map(|(name, value)| (self.restore(name), self.restore_json(value)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    /// The text with what its secrets were in their place (`[redacted:password]`), for disk: nothing gives them back.
    pub fn mask(&self, text: &str) -> String {
        let spans = detect::spans(text, &self.settings, detect::PlaceholderLikes::Stay);
        replaced(text, &spans, |span| mark(span.kind))
    }

    /// As [`Self::mask`], for a document; see [`Self::redact_json`].
    pub fn mask_json(&self, value: &Value) -> Value {
        detect::map_json(value, &mut |leaf, kind| match (leaf, kind) {
            (Value::String(_) | Value::Number(_), Some(kind)) => Value::String(mark(kind)),
            (Value::String(text), None) => Value::String(self.mask(text)),
            (other, _) => other.clone(),
        })
    }
}

fn mark(kind: Kind) -> String {
    format!("[redacted:{}]", kind.as_str())
}

fn replaced(text: &str, spans: &[Span], mut with: impl FnMut(&Span) -> String) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        out.push_str(&text[at..span.start]);
        out.push_str(&with(span));
        at = span.end;
    }
    out.push_str(&text[at..]);
    out
}
