//! Whether an event is one of a pattern, by the pattern's template.
//!
//! In: a template with its variable parts as `<*>`. Out: yes or no for an event. Blanks do not count, as they do not for
//! the miner.

use crate::analysis::patterns::WILDCARD;
use crate::domain::{Level, LogEvent, LogPattern};

/// The miner reads no more of a message, so that a template need not reach the end of a longer one.
const WHOLE_MESSAGE_BYTES: usize = 1500;
/// What marks a template that was cut.
const CUT: &str = "...";

/// A template that can be compared.
pub struct Template {
    /// The fixed parts in their order, without blanks.
    parts: Vec<String>,
    starts_fixed: bool,
    ends_fixed: bool,
    /// The level of the pattern, where it is known; `Some(None)` is a pattern without a level.
    level: Option<Option<Level>>,
}

impl Template {
    /// Of a template that somebody wrote.
    pub fn new(text: &str) -> Self {
        let text = text.trim();
        let whole = text.strip_suffix(CUT).unwrap_or(text);
        let parts = whole.split(WILDCARD).map(without_blanks).filter(|part| !part.is_empty()).collect();
        Self {
            parts,
            starts_fixed: !whole.starts_with(WILDCARD),
            ends_fixed: whole.len() == text.len() && !whole.ends_with(WILDCARD),
            level: None,
        }
    }

    /// Of a mined pattern, which has one level.
    pub fn of(pattern: &LogPattern) -> Self {
        Self { level: Some(pattern.level), ..Self::new(&pattern.template) }
    }

    pub fn describes(&self, event: &LogEvent) -> bool {
        if self.level.is_some_and(|level| level != event.level) {
            return false;
        }
        let message = without_blanks(event.message.lines().next().unwrap_or_default());
        let mut rest = message.as_str();
        for (index, part) in self.parts.iter().enumerate() {
            let is_last = index + 1 == self.parts.len();
            if index == 0 && self.starts_fixed {
                let Some(after) = rest.strip_prefix(part.as_str()) else { return false };
                rest = after;
            } else if is_last && self.ends_fixed && message.len() <= WHOLE_MESSAGE_BYTES {
                return rest.ends_with(part.as_str());
            } else {
                let Some(at) = rest.find(part.as_str()) else { return false };
                rest = &rest[at + part.len()..];
            }
        }
        // One fixed part and nothing else: the message ends with it, too.
        let is_whole = self.parts.len() == 1 && self.starts_fixed && self.ends_fixed;
        !is_whole || rest.is_empty() || message.len() > WHOLE_MESSAGE_BYTES
    }
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describes(template: &str, message: &str) -> bool {
        let event = LogEvent {
            at: None,
            level: Some(Level::Error),
            service: None,
            instance: None,
            message: message.to_owned(),
            line: 1,
            lines: 1,
        };
        Template::new(template).describes(&event)
    }

    #[test]
    fn fixed_parts_must_occur_in_order_and_blanks_do_not_count() {
        let template = "pool timeout after <*>ms for user <*>";
        assert!(describes(template, "pool  timeout after 30000ms\tfor user bob\nat java.lang.Thread"));
        assert!(!describes(template, "a pool timeout after 30000ms for user bob"));
        assert!(!describes(template, "for user bob pool timeout after 30000ms"));
    }

    #[test]
    fn ends_are_fixed_unless_they_vary_or_were_cut() {
        assert!(describes("<*> refused", "10.0.0.1:80 refused"));
        assert!(!describes("<*> refused", "10.0.0.1:80 refused again"));
        assert!(!describes("connection refused", "connection refused again"));
        assert!(describes("connection refused", "connection refused"));
        assert!(describes("connection ref...", "connection refused again"));
        assert!(describes("<*>", "anything"));
    }

    #[test]
    fn a_mined_pattern_is_of_one_level() {
        let mut template = Template::new("x <*>");
        template.level = Some(Some(Level::Info));
        let event =
            LogEvent { at: None, level: None, service: None, instance: None, message: "x 1".into(), line: 1, lines: 1 };
        assert!(!template.describes(&event));
        assert!(template.describes(&LogEvent { level: Some(Level::Info), ..event }));
    }
}
