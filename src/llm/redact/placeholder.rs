//! What stands for what: `[redacted:kind:number]` and back, in whole texts and in streams.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};
use serde_json::{Number, Value};

use super::Redactor;
use super::detect::{Kind, constant};

/// A placeholder as models write it back: other case, other spacing, full-width punctuation. It holds no bracket
/// inside, so two can never overlap, and text around a placeholder cannot make it another one.
pub(super) static LIKE: LazyLock<Regex> = LazyLock::new(|| {
    constant(
        r"(?i)[\[［【]\s{0,3}redacted\s{0,3}[:：]\s{0,3}([a-z]{1,12}(?:[_ -][a-z]{1,12})?)\s{0,3}[:：]\s{0,3}([0-9]{1,9})\s{0,3}[\]］】]",
    )
});
const OPENING: [char; 3] = ['[', '［', '【'];
const CLOSING: [char; 3] = [']', '］', '】'];
/// No placeholder is longer; see `LIKE`.
const MAX_CHARS: usize = 72;
const NAME: &str = "redacted";

/// A value that was taken out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Secret {
    Text(String),
    /// Of a JSON document.
    Number(Number),
}

/// The secrets of a run, numbered from 1.
#[derive(Default)]
pub(super) struct Registry {
    numbers: HashMap<Secret, usize>,
    secrets: Vec<(Kind, Secret)>,
}

impl Registry {
    pub fn placeholder(&mut self, secret: Secret, kind: Kind) -> String {
        let number = match self.numbers.get(&secret) {
            Some(number) => *number,
            None => {
                self.secrets.push((kind, secret.clone()));
                self.numbers.insert(secret, self.secrets.len());
                self.secrets.len()
            }
        };
        // The kind of the first sighting: what a secret is called must not change within a run.
        format!("[{NAME}:{}:{number}]", self.secrets[number - 1].0.as_str())
    }

    pub fn restore(&self, text: &str) -> String {
        let value = |found: &Captures<'_>| match self.secret(found) {
            Some(Secret::Text(text)) => text.clone(),
            Some(Secret::Number(number)) => number.to_string(),
            None => found[0].to_owned(),
        };
        LIKE.replace_all(text, value).into_owned()
    }

    /// A string of a document: a number where it is the placeholder of one.
    pub fn restore_value(&self, text: &str) -> Value {
        let whole = LIKE.captures(text).filter(|found| found[0].len() == text.len());
        match whole.and_then(|found| self.secret(&found)) {
            Some(Secret::Number(number)) => Value::Number(number.clone()),
            _ => Value::String(self.restore(text)),
        }
    }

    fn secret(&self, found: &Captures<'_>) -> Option<&Secret> {
        let number: usize = found[2].parse().ok()?;
        let (kind, secret) = self.secrets.get(number.checked_sub(1)?)?;
        let named = found[1].replace([' ', '-'], "_");
        named.eq_ignore_ascii_case(kind.as_str()).then_some(secret)
    }
}

/// Restores a text that comes in parts, cut anywhere: what may be the beginning of a placeholder waits for the rest.
pub struct Restorer {
    redactor: Arc<Redactor>,
    held: String,
}

impl Restorer {
    pub fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, held: String::new() }
    }

    /// Takes a part and gives what can be shown by now; it may be empty.
    pub fn push(&mut self, part: &str) -> String {
        self.held.push_str(part);
        let complete = match self.held.rfind(OPENING) {
            Some(at) if may_become_placeholder(&self.held[at..]) => at,
            _ => self.held.len(),
        };
        let rest = self.held.split_off(complete);
        let complete = std::mem::replace(&mut self.held, rest);
        self.redactor.restore(&complete)
    }

    /// What was still held when the stream ended.
    pub fn finish(self) -> String {
        self.redactor.restore(&self.held)
    }
}

/// Whether a text that begins with an opening bracket is the beginning of a placeholder.
fn may_become_placeholder(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next();
    let inside = chars.as_str();
    if inside.contains(CLOSING) || inside.chars().count() > MAX_CHARS {
        return false;
    }
    let name: String = inside.trim_start().chars().take(NAME.len()).collect();
    NAME.get(..name.len()).is_some_and(|beginning| name.eq_ignore_ascii_case(beginning))
}
