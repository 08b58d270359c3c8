//! Styled text in columns: wrapping and shifting by display width. In come cleaned texts and styled lines, out come lines
//! that fit.

use ratatui::style::Style;
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::domain::text::clean_line;
pub use crate::ui::columns::{cut, cut_middle, pad, pad_left};

/// Characters of a line that are looked at; no screen is wider.
const MAX_LINE_CHARS: usize = 4000;

/// The text on one line, without escape sequences.
pub fn line(text: &str) -> String {
    clean_line(text.trim(), MAX_LINE_CHARS)
}

/// The plain text of a line.
pub fn plain(line: &Line<'_>) -> String {
    line.spans.iter().map(|span| span.content.as_ref()).collect()
}

/// The columns of a styled line from `left` on.
pub fn shifted(line: Line<'static>, left: usize) -> Line<'static> {
    if left == 0 {
        return line;
    }
    let mut gone = 0;
    let style = line.style;
    let spans = line.spans.into_iter().filter_map(|span| {
        let mut kept = String::new();
        for grapheme in span.content.graphemes(true) {
            if gone < left {
                gone += grapheme.width();
                // Half of a wide character that is cut stays as a blank, so that columns keep their place.
                kept.extend(std::iter::repeat_n(' ', gone.saturating_sub(left)));
            } else {
                kept.push_str(grapheme);
            }
        }
        (!kept.is_empty()).then(|| Span::styled(kept, span.style))
    });
    Line::from(spans.collect::<Vec<_>>()).style(style)
}

/// Styled pieces broken into lines of at most `columns`; what follows the first is indented by `hanging`.
pub fn wrap(spans: &[(String, Style)], columns: usize, hanging: usize) -> Vec<Line<'static>> {
    let text: String = spans.iter().map(|(text, _)| text.as_str()).collect();
    let hanging = hanging.min(columns.saturating_sub(4));
    let blank = " ".repeat(hanging);
    let options = textwrap::Options::new(columns.max(1))
        .subsequent_indent(&blank)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .wrap_algorithm(textwrap::WrapAlgorithm::FirstFit);
    let mut lines = Vec::new();
    let mut at = 0;
    for (n, piece) in textwrap::wrap(&text, options).iter().enumerate() {
        let piece = if n == 0 { piece.as_ref() } else { piece.strip_prefix(blank.as_str()).unwrap_or(piece) };
        // Wrapping drops blanks at the breaks and nothing else.
        let skipped = text[at..].find(piece).unwrap_or(0);
        let (from, to) = (at + skipped, (at + skipped + piece.len()).min(text.len()));
        at = to;
        let mut line = slice(spans, from, to);
        if n > 0 && hanging > 0 {
            line.spans.insert(0, Span::raw(blank.clone()));
        }
        lines.push(line);
    }
    lines
}

/// The bytes `from..to` of styled pieces.
fn slice(spans: &[(String, Style)], from: usize, to: usize) -> Line<'static> {
    let mut start = 0;
    let mut out = Vec::new();
    for (text, style) in spans {
        let end = start + text.len();
        let (a, b) = (from.max(start), to.min(end));
        if a < b
            && let Some(part) = text.get(a - start..b - start)
        {
            out.push(Span::styled(part.to_owned(), *style));
        }
        start = end;
    }
    Line::from(out)
}

/// Plain text broken into lines of at most `columns`.
pub fn wrap_plain(text: &str, columns: usize, hanging: usize, style: Style) -> Vec<Line<'static>> {
    text.lines().flat_map(|line| wrap(&[(line.to_owned(), style)], columns, hanging)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[Line<'_>]) -> Vec<String> {
        lines.iter().map(plain).collect()
    }

    #[test]
    fn wrapped_pieces_keep_their_styles_and_lose_only_blanks() {
        let bold = Style::new().bold();
        let pieces = [("one ".to_owned(), Style::new()), ("two three".to_owned(), bold)];
        let lines = wrap(&pieces, 8, 2);
        assert_eq!(texts(&lines), ["one two", "  three"]);
        assert_eq!(lines[0].spans[1].style, bold);
        assert_eq!(texts(&wrap(&[("数据库连接池耗尽了".to_owned(), bold)], 8, 0)), ["数据库连", "接池耗尽", "了"]);
        let mixed = wrap(&[("service 数据库连接池耗尽".to_owned(), bold)], 12, 0);
        assert_eq!(texts(&mixed), ["service 数据", "库连接池耗尽"]);
    }

    #[test]
    fn repeated_words_are_found_where_they_stand() {
        let pieces = [("a a a a a".to_owned(), Style::new())];
        assert_eq!(texts(&wrap(&pieces, 3, 0)), ["a a", "a a", "a"]);
    }

    #[test]
    fn shifting_cuts_columns_from_the_left() {
        let line = Line::from(vec![Span::raw("连ab"), Span::raw("cd")]);
        assert_eq!(plain(&shifted(line.clone(), 1)), " ab".to_owned() + "cd");
        assert_eq!(plain(&shifted(line, 3)), "bcd");
    }
}
