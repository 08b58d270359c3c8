//! The conversation: what was said by whom, with the evidence that it cites.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::domain::Evidence;
use crate::domain::text::clean;

/// Characters of an entry.
pub const ENTRY_CHARS: usize = 60_000;

/// Who said it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    User,
    Assistant,
    /// The program itself.
    System,
}

/// One thing said, as Markdown.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub at: Timestamp,
    pub who: Who,
    pub text: String,
    /// What the text cites, so that it can be opened after its run is gone.
    pub evidence: Vec<Evidence>,
}

impl Entry {
    pub fn new(at: Timestamp, who: Who, text: &str, mut evidence: Vec<Evidence>) -> Self {
        let cited: BTreeSet<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
        evidence.retain(|one| cited.contains(one.id.as_str()));
        Self { at, who, text: clean(text, ENTRY_CHARS), evidence }
    }
}
