//! The editor: several lines, a cursor that moves by grapheme, a history, paste, and completion of slash commands.
//!
//! In come keys and pasted text, out comes a text that was entered. Columns are display columns, so that wide characters
//! sit where the cursor says.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::text::clean;

/// Characters of a text, pasted ones included.
const MAX_CHARS: usize = 32_000;
const MAX_HISTORY: usize = 200;

/// What a key did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edited {
    /// The text was entered; the editor is empty again.
    Entered(String),
    /// The editor changed, or the key was one of its own.
    Taken,
    /// The key is somebody else's.
    Ignored,
}

/// The text being written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Editor {
    text: String,
    /// A byte offset at a grapheme's boundary.
    cursor: usize,
    history: Vec<String>,
    /// Where in the history the text stands, and what was written before going there.
    recalled: Option<(usize, String)>,
}

/// Where the text of the editor stands on a screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub lines: Vec<String>,
    /// Line and column of the cursor.
    pub cursor: (usize, usize),
}

impl Editor {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub fn set(&mut self, text: &str) {
        self.text = clean(text, MAX_CHARS);
        self.cursor = self.text.len();
        self.recalled = None;
    }

    pub fn clear(&mut self) {
        self.set("");
    }

    /// Pasted text goes in as it is, without escape sequences; a line feed in it enters nothing.
    pub fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let room = MAX_CHARS.saturating_sub(self.text.chars().count());
        let text: String = clean(&text, MAX_CHARS).replace('\t', "    ").chars().take(room).collect();
        self.insert(&text);
    }

    /// Takes a key.
    pub fn key(&mut self, key: KeyEvent) -> Edited {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match (key.code, control, alt) {
            (KeyCode::Enter, false, false) if !key.modifiers.contains(KeyModifiers::SHIFT) => return self.enter(),
            (KeyCode::Enter, ..) | (KeyCode::Char('j'), true, _) => self.insert("\n"),
            (KeyCode::Char('a'), true, _) | (KeyCode::Home, ..) => self.cursor = self.line_start(),
            (KeyCode::Char('e'), true, _) | (KeyCode::End, ..) => self.cursor = self.line_end(),
            (KeyCode::Char('u'), true, _) => self.delete(self.line_start(), self.cursor),
            (KeyCode::Char('k'), true, _) => self.delete(self.cursor, self.line_end()),
            (KeyCode::Char('w'), true, _) | (KeyCode::Backspace, _, true) => {
                self.delete(self.word_start(), self.cursor)
            }
            (KeyCode::Char('b'), true, _) | (KeyCode::Left, false, false) => self.cursor = self.before(),
            (KeyCode::Char('f'), true, _) | (KeyCode::Right, false, false) => self.cursor = self.after(),
            (KeyCode::Left, ..) | (KeyCode::Char('b'), _, true) => self.cursor = self.word_start(),
            (KeyCode::Right, ..) | (KeyCode::Char('f'), _, true) => self.cursor = self.word_end(),
            (KeyCode::Char('p'), true, _) | (KeyCode::Up, ..) => self.up(),
            (KeyCode::Char('n'), true, _) | (KeyCode::Down, ..) => self.down(),
            (KeyCode::Backspace, ..) | (KeyCode::Char('h'), true, _) => self.delete(self.before(), self.cursor),
            (KeyCode::Delete, ..) | (KeyCode::Char('d'), true, _) => self.delete(self.cursor, self.after()),
            (KeyCode::Char(c), false, false) if !c.is_control() => self.insert(c.encode_utf8(&mut [0; 4])),
            _ => return Edited::Ignored,
        }
        Edited::Taken
    }

    fn enter(&mut self) -> Edited {
        // A backslash before the end of the line goes on with the next, for terminals that cannot tell Shift-Enter.
        if self.text[..self.cursor].ends_with('\\') {
            self.delete(self.cursor - 1, self.cursor);
            self.insert("\n");
            return Edited::Taken;
        }
        let text = self.text.trim().to_owned();
        if text.is_empty() {
            return Edited::Taken;
        }
        self.remember(&text);
        self.clear();
        Edited::Entered(text)
    }

    /// Adds an entry to the history; one that repeats the last is kept once.
    pub fn remember(&mut self, text: &str) {
        if self.history.last().is_none_or(|last| last != text) {
            self.history.push(text.to_owned());
        }
        let over = self.history.len().saturating_sub(MAX_HISTORY);
        self.history.drain(..over);
    }

    fn insert(&mut self, text: &str) {
        if self.text.chars().count() + text.chars().count() > MAX_CHARS {
            return;
        }
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
        // A mark that combines joins the grapheme before it.
        self.settle();
        self.recalled = None;
    }

    fn delete(&mut self, from: usize, to: usize) {
        if from < to {
            self.text.replace_range(from..to, "");
            self.cursor = from;
            // What stood on both sides may be one grapheme now.
            self.settle();
            self.recalled = None;
        }
    }

    /// Puts the cursor at the end of the grapheme that it stands in.
    fn settle(&mut self) {
        let next = self.boundaries().find(|at| *at >= self.cursor).unwrap_or(self.text.len());
        self.cursor = next;
    }

    fn boundaries(&self) -> impl Iterator<Item = usize> {
        self.text.grapheme_indices(true).map(|(at, _)| at).chain([self.text.len()])
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].graphemes(true).next().map_or(self.cursor, |first| self.cursor + first.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self) -> usize {
        let before = &self.text[..self.cursor];
        let words = before.unicode_word_indices().map(|(at, _)| at);
        words.max().unwrap_or(0)
    }

    fn word_end(&self) -> usize {
        let rest = &self.text[self.cursor..];
        rest.unicode_word_indices().next().map_or(self.text.len(), |(at, word)| self.cursor + at + word.len())
    }

    /// To the line above at the same column; from the first line, to the entry before.
    fn up(&mut self) {
        let start = self.line_start();
        if start == 0 {
            return self.recall(-1);
        }
        let column = self.text[start..self.cursor].width();
        self.cursor = start - 1;
        self.cursor = self.at_column(self.line_start(), column);
    }

    fn down(&mut self) {
        let end = self.line_end();
        if end == self.text.len() {
            return self.recall(1);
        }
        let column = self.text[self.line_start()..self.cursor].width();
        self.cursor = self.at_column(end + 1, column);
    }

    fn at_column(&self, line_start: usize, column: usize) -> usize {
        let line = self.text[line_start..].split('\n').next().unwrap_or_default();
        let mut width = 0;
        for (at, grapheme) in line.grapheme_indices(true) {
            width += grapheme.width();
            if width > column {
                return line_start + at;
            }
        }
        line_start + line.len()
    }

    fn recall(&mut self, direction: isize) {
        let (at, draft) = match self.recalled.take() {
            Some((at, draft)) => (at, draft),
            None => (self.history.len(), self.text.clone()),
        };
        let Some(next) = at.checked_add_signed(direction).filter(|next| *next <= self.history.len()) else {
            self.recalled = (at < self.history.len()).then_some((at, draft));
            return;
        };
        match self.history.get(next) {
            Some(entry) => {
                self.text.clone_from(entry);
                self.recalled = Some((next, draft));
            }
            None => self.text = draft,
        }
        self.cursor = self.text.len();
    }

    /// The text as lines of at most `columns`, and the place of the cursor. A line that is exactly full leaves room for
    /// the cursor on the next.
    pub fn layout(&self, columns: usize) -> Layout {
        let columns = columns.max(2);
        let mut lines = vec![String::new()];
        let mut width = 0;
        let mut cursor = (0, 0);
        for (at, grapheme) in self.text.grapheme_indices(true) {
            if at == self.cursor {
                cursor = place(&mut lines, &mut width, columns);
            }
            if grapheme == "\n" {
                lines.push(String::new());
                width = 0;
                continue;
            }
            let more = grapheme.width();
            if width + more > columns {
                lines.push(String::new());
                width = 0;
            }
            if let Some(last) = lines.last_mut() {
                last.push_str(grapheme);
            }
            width += more;
        }
        if self.cursor == self.text.len() {
            cursor = place(&mut lines, &mut width, columns);
        }
        Layout { lines, cursor }
    }
}

fn place(lines: &mut Vec<String>, width: &mut usize, columns: usize) -> (usize, usize) {
    if *width >= columns {
        lines.push(String::new());
        *width = 0;
    }
    (lines.len() - 1, *width)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(editor: &mut Editor, keys: &str) -> Edited {
        let mut last = Edited::Ignored;
        for key in keys.chars() {
            let (code, modifiers) = match key {
                '<' => (KeyCode::Left, KeyModifiers::NONE),
                '>' => (KeyCode::Right, KeyModifiers::NONE),
                '^' => (KeyCode::Up, KeyModifiers::NONE),
                'v' => (KeyCode::Down, KeyModifiers::NONE),
                '~' => (KeyCode::Backspace, KeyModifiers::NONE),
                '|' => (KeyCode::Enter, KeyModifiers::NONE),
                '\n' => (KeyCode::Enter, KeyModifiers::ALT),
                'W' => (KeyCode::Char('w'), KeyModifiers::CONTROL),
                c => (KeyCode::Char(c), KeyModifiers::NONE),
            };
            last = editor.key(KeyEvent::new(code, modifiers));
        }
        last
    }

    #[test]
    fn chinese_is_edited_by_character_and_the_cursor_sits_in_display_columns() {
        let mut editor = Editor::default();
        press(&mut editor, "订单a服务<~x");
        assert_eq!(editor.text(), "订单ax务");
        assert_eq!(editor.layout(40).cursor, (0, 6));
        assert_eq!(editor.layout(5), Layout { lines: vec!["订单a".into(), "x务".into()], cursor: (1, 1) });
    }

    #[test]
    fn a_grapheme_of_several_characters_is_one_step() {
        let mut editor = Editor::default();
        editor.paste("e\u{301}x\u{1F1E9}\u{1F1EA}");
        press(&mut editor, "~");
        assert_eq!(editor.text(), "e\u{301}x");
        press(&mut editor, "<<~");
        assert_eq!((editor.text(), editor.layout(9).cursor), ("e\u{301}x", (0, 0)));
    }

    #[test]
    fn lines_are_made_with_alt_enter_or_a_backslash_and_enter_sends() {
        let mut editor = Editor::default();
        press(&mut editor, "one\ntwo\\|three");
        assert_eq!(editor.text(), "one\ntwo\nthree");
        press(&mut editor, "^^");
        assert_eq!(editor.layout(20).cursor, (0, 3));
        assert_eq!(press(&mut editor, "|"), Edited::Entered("one\ntwo\nthree".into()));
        assert!(editor.is_empty());
        assert_eq!(press(&mut editor, "  |"), Edited::Taken);
    }

    #[test]
    fn the_history_goes_back_and_comes_back_to_the_draft() {
        let mut editor = Editor::default();
        press(&mut editor, "first|second|second|draft");
        press(&mut editor, "^");
        assert_eq!(editor.text(), "second");
        press(&mut editor, "^^^");
        assert_eq!(editor.text(), "first");
        press(&mut editor, "vv");
        assert_eq!(editor.text(), "draft");
        press(&mut editor, "v");
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn a_paste_keeps_its_lines_and_loses_its_escape_sequences() {
        let mut editor = Editor::default();
        editor.paste("a\r\nb\u{1b}[31mc\td");
        assert_eq!(editor.text(), "a\nbc    d");
        editor.paste(&"x".repeat(100_000));
        assert_eq!(editor.text().chars().count(), MAX_CHARS);
    }

    #[test]
    fn words_are_deleted_in_both_languages() {
        let mut editor = Editor::default();
        press(&mut editor, "check order-service  W");
        assert_eq!(editor.text(), "check order-");
        editor.clear();
        press(&mut editor, "\u{1}");
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_full_line_puts_the_cursor_on_the_next() {
        let mut editor = Editor::default();
        press(&mut editor, "abcd");
        assert_eq!(editor.layout(4), Layout { lines: vec!["abcd".into(), String::new()], cursor: (1, 0) });
    }
}
