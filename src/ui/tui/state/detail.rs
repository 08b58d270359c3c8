//! One thing in full, over the whole screen: a piece of evidence, a call, a text. Lines are made once, so that a hundred
//! thousand of them scroll as smoothly as ten.

use crate::domain::Evidence;
use crate::domain::text::clean;
use crate::event::CallResult;
use crate::ui::tui::state::run::CallView;

/// Characters of a raw output that are shown.
const MAX_CHARS: usize = 32 << 20;

/// What is shown in full.
#[derive(Debug, Clone, PartialEq)]
pub enum DetailOf {
    Evidence(Box<Evidence>),
    Call(Box<CallView>),
    Text,
}

/// A text with its place on the screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Detail {
    pub title: String,
    pub of: DetailOf,
    /// The raw text, cleaned; the view draws a head above it.
    pub lines: Vec<String>,
    /// The first line shown, counted over head and lines.
    pub top: usize,
    pub left: usize,
}

impl Detail {
    pub fn text(title: &str, lines: Vec<String>) -> Self {
        let lines = lines.iter().map(|line| clean(line, MAX_CHARS)).collect();
        Self { title: crate::domain::text::clean_line(title, 200), of: DetailOf::Text, lines, top: 0, left: 0 }
    }

    pub fn evidence(evidence: &Evidence) -> Self {
        let json = serde_json::to_string_pretty(&evidence.data).unwrap_or_default();
        Self {
            title: evidence.id.clone(),
            of: DetailOf::Evidence(Box::new(evidence.clone())),
            lines: split(&json),
            top: 0,
            left: 0,
        }
    }

    pub fn call(call: &CallView) -> Self {
        let arguments = serde_json::to_string_pretty(&call.call.arguments).unwrap_or_default();
        let mut lines = split(&arguments);
        match call.ended.as_ref().map(|end| &end.result) {
            Some(CallResult::Output { preview, .. }) => {
                lines.push(String::new());
                lines.extend(split(preview));
            }
            Some(CallResult::Failure { message, .. }) => {
                lines.push(String::new());
                lines.extend(split(message));
            }
            None => {}
        }
        Self { title: call.text.clone(), of: DetailOf::Call(Box::new(call.clone())), lines, top: 0, left: 0 }
    }

    /// Scrolls by so many lines of `head` and the raw ones, of which `height` are on the screen.
    pub fn scroll(&mut self, by: isize, head: usize, height: usize) {
        let last = (head + self.lines.len()).saturating_sub(height.max(1));
        self.top = self.top.saturating_add_signed(by).min(last);
    }

    /// Goes to the next raw line (from the one after the first shown, around the end) that holds a text, in any case.
    pub fn find(&mut self, text: &str, is_forward: bool, head: usize) -> bool {
        let wanted = text.to_lowercase();
        let count = self.lines.len();
        let shown = self.top.checked_sub(head);
        let found = (0..count).find_map(|step| {
            let at = match (shown, is_forward) {
                (Some(shown), true) => (shown + 1 + step) % count,
                (None, true) => step,
                (shown, false) => (shown.unwrap_or(0) + 2 * count - 1 - step) % count,
            };
            self.lines[at].to_lowercase().contains(&wanted).then_some(at)
        });
        self.top = found.map_or(self.top, |at| head + at);
        found.is_some()
    }
}

fn split(text: &str) -> Vec<String> {
    // Escaped line feeds in a JSON text are where a log message breaks.
    clean(text, MAX_CHARS).lines().map(|line| line.replace('\t', "    ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_thousand_lines_are_searched_around_the_end_and_scrolled_to_the_last() {
        let mut detail = Detail::text("t", (0..100_000).map(|n| format!("line {n}")).collect());
        detail.scroll(1_000_000, 2, 20);
        assert_eq!(detail.top, 99_982);
        assert!(detail.find("LINE 12345", true, 2));
        assert_eq!(detail.top, 12_347);
        assert!(detail.find("line 99", false, 2));
        assert_eq!(detail.top, 10_001);
        assert!(!detail.find("nowhere", true, 2));
        detail.scroll(-1_000_000, 2, 20);
        assert_eq!(detail.top, 0);
        assert!(detail.find("line 0", true, 2));
        assert_eq!(detail.top, 2);
        assert!(!Detail::text("t", Vec::new()).find("x", true, 0));
    }
}
