//! The two languages of reports, screens and prompts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A language that oncall writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Lang {
    #[default]
    En,
    Zh,
}

impl Lang {
    /// Chinese when the text holds any Han character, else English: the rule by which vectors are centred and
    /// by which a question or an alert chooses the language of its answer.
    pub fn of(text: &str) -> Self {
        if text.chars().any(is_han) { Self::Zh } else { Self::En }
    }

    /// The one of two texts that is in this language.
    pub fn pick<T>(self, en: T, zh: T) -> T {
        match self {
            Self::En => en,
            Self::Zh => zh,
        }
    }
}

/// Whether a character belongs to the Unified Han blocks (extensions A to G and compatibility included).
pub fn is_han(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3134F}')
}
