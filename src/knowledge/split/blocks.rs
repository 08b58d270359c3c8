//! Finds the blocks of a document: headings, code fences, tables and paragraphs, by the rules of CommonMark.
//!
//! In: the decoded text. Out: blocks that touch each other and together cover the text; blank lines belong to
//! the block before them.

use std::ops::Range;

/// How a document marks its headings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    Markdown,
    /// reStructuredText: titles underlined with `=` and `-`.
    Underlined,
    /// No headings, fences or tables.
    Plain,
}

/// A stretch of the document that a split would rather not cut.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    pub range: Range<usize>,
    pub kind: BlockKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum BlockKind {
    Heading {
        level: usize,
        text: String,
    },
    /// Fenced code, its fences included.
    Fence,
    /// A table; its first two lines, header and separator, are the first `header` bytes of it.
    Table {
        header: usize,
    },
    Text,
}

/// Underlined paragraphs longer than this are prose above a thematic break, not titles.
const MAX_TITLE_BYTES: usize = 400;

pub(super) fn blocks(text: &str, syntax: Syntax) -> Vec<Block> {
    let lines = lines(text);
    let mut blocks: Vec<Block> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if is_blank(&text[lines[at].clone()]) {
            match blocks.last_mut() {
                Some(last) => last.range.end = lines[at].end,
                None => blocks.push(Block { range: lines[at].clone(), kind: BlockKind::Text }),
            }
            at += 1;
            continue;
        }
        let (next, kind) = read_block(text, &lines, at, syntax);
        blocks.push(Block { range: lines[at].start..lines[next - 1].end, kind });
        at = next;
    }
    blocks
}

/// Reads the block that starts at line `at`, which is not blank. Gives the line after it.
fn read_block(text: &str, lines: &[Range<usize>], at: usize, syntax: Syntax) -> (usize, BlockKind) {
    let line = &text[lines[at].clone()];
    if syntax == Syntax::Markdown {
        if let Some(fence) = Fence::open(line) {
            return (end_where(text, lines, at + 1, |line| fence.is_closed_by(line)), BlockKind::Fence);
        }
        if let Some(end) = html_end(line) {
            return (end_where(text, lines, at, |line| contains_ignoring_case(line, end)), BlockKind::Text);
        }
        if let Some((level, title)) = atx_heading(line) {
            return (at + 1, BlockKind::Heading { level, text: title.to_string() });
        }
        if starts_table(text, lines, at) {
            let end = (at + 2..lines.len()).find(|&i| !text[lines[i].clone()].contains('|')).unwrap_or(lines.len());
            return (end, BlockKind::Table { header: lines[at + 1].end - lines[at].start });
        }
    }
    read_paragraph(text, lines, at, syntax)
}

fn read_paragraph(text: &str, lines: &[Range<usize>], at: usize, syntax: Syntax) -> (usize, BlockKind) {
    let mut end = at + 1;
    let mut may_be_title = syntax != Syntax::Plain && is_title_line(&text[lines[at].clone()]);
    while end < lines.len() {
        let line = &text[lines[end].clone()];
        if is_blank(line) {
            break;
        }
        if let Some(level) = underline_level(line) {
            let title = text[lines[at].start..lines[end - 1].end].trim();
            if may_be_title && title.len() <= MAX_TITLE_BYTES {
                let text = title.split_whitespace().collect::<Vec<_>>().join(" ");
                return (end + 1, BlockKind::Heading { level, text });
            }
        }
        if syntax == Syntax::Markdown && interrupts_paragraph(text, lines, end) {
            break;
        }
        may_be_title &= is_title_line(line);
        end += 1;
    }
    (end, BlockKind::Text)
}

fn interrupts_paragraph(text: &str, lines: &[Range<usize>], at: usize) -> bool {
    let line = &text[lines[at].clone()];
    Fence::open(line).is_some()
        || atx_heading(line).is_some()
        || html_end(line).is_some()
        || starts_table(text, lines, at)
}

/// The line after the first one from `from` on that `is_last`; the end of the document when none is.
fn end_where(text: &str, lines: &[Range<usize>], from: usize, is_last: impl Fn(&str) -> bool) -> usize {
    (from..lines.len()).find(|&i| is_last(&text[lines[i].clone()])).map_or(lines.len(), |i| i + 1)
}

/// Lines with their line ends: LF, CR LF, or CR alone.
fn lines(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut lines = Vec::new();
    let mut start = 0;
    for end in memchr::memchr2_iter(b'\n', b'\r', bytes) {
        let is_half_of_crlf = bytes[end] == b'\r' && bytes.get(end + 1) == Some(&b'\n');
        if !is_half_of_crlf {
            lines.push(start..end + 1);
            start = end + 1;
        }
    }
    if start < text.len() {
        lines.push(start..text.len());
    }
    lines
}

fn is_blank(line: &str) -> bool {
    line.trim().is_empty()
}

/// The line without an indentation of up to three spaces; `None` when it is indented further.
fn outdent(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches(' ');
    (line.len() - rest.len() <= 3 && !rest.starts_with('\t')).then_some(rest)
}

/// What opened a code fence.
struct Fence {
    mark: char,
    length: usize,
}

impl Fence {
    fn open(line: &str) -> Option<Self> {
        let line = outdent(line)?;
        let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = line.trim_start_matches(mark);
        let length = line.len() - info.len();
        // An info string with a backtick makes it code within a paragraph.
        (length >= 3 && !(mark == '`' && info.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let Some(line) = outdent(line) else { return false };
        let rest = line.trim_start_matches(self.mark);
        line.len() - rest.len() >= self.length && is_blank(rest)
    }
}

/// What ends the HTML block that this line opens and in which `#` is no heading.
fn html_end(line: &str) -> Option<&'static str> {
    let line = outdent(line)?;
    if line.starts_with("<!--") {
        return Some("-->");
    }
    let name = line.strip_prefix('<')?;
    [("pre", "</pre>"), ("script", "</script>"), ("style", "</style>"), ("textarea", "</textarea>")]
        .into_iter()
        .find(|(tag, _)| {
            name.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag))
                && name[tag.len()..].chars().next().is_none_or(|c| c.is_whitespace() || c == '>')
        })
        .map(|(_, end)| end)
}

fn contains_ignoring_case(line: &str, needle: &str) -> bool {
    line.as_bytes().windows(needle.len()).any(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}

/// Level and text of a heading that starts with `#`.
fn atx_heading(line: &str) -> Option<(usize, &str)> {
    let line = outdent(line)?;
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    if !(1..=6).contains(&level) || !rest.chars().next().is_none_or(char::is_whitespace) {
        return None;
    }
    let text = rest.trim();
    let open = text.trim_end_matches('#');
    // Closing hashes count only after a blank: `# C#` keeps its own.
    let text = if open.is_empty() || open.ends_with([' ', '\t']) { open.trim_end() } else { text };
    Some((level, text))
}

/// Level of the heading that this line makes of the paragraph before it.
fn underline_level(line: &str) -> Option<usize> {
    let line = outdent(line)?.trim_end();
    let all = |mark| !line.is_empty() && line.chars().all(|c| c == mark);
    if all('=') {
        return Some(1);
    }
    all('-').then_some(2)
}

/// Whether a line can be part of an underlined title: not a list item, a quotation, a table row or code.
fn is_title_line(line: &str) -> bool {
    let Some(line) = outdent(line) else { return false };
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = after_number.len() < line.len() && after_number.starts_with(['.', ')']);
    let bullet = line.starts_with(['-', '*', '+']) && line[1..].starts_with([' ', '\t']);
    !numbered && !bullet && !line.starts_with(['>', '|'])
}

fn starts_table(text: &str, lines: &[Range<usize>], at: usize) -> bool {
    at + 1 < lines.len() && text[lines[at].clone()].contains('|') && is_table_separator(&text[lines[at + 1].clone()])
}

/// `|---|:--:|`: only bars, dashes, colons and blanks, with at least one bar and one dash.
fn is_table_separator(line: &str) -> bool {
    line.contains('|')
        && line.contains('-')
        && outdent(line).is_some_and(|line| line.trim().chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headings(text: &str) -> Vec<(usize, String)> {
        blocks(text, Syntax::Markdown)
            .into_iter()
            .filter_map(|block| match block.kind {
                BlockKind::Heading { level, text } => Some((level, text)),
                _ => None,
            })
            .collect()
    }

    fn heading(level: usize, text: &str) -> (usize, String) {
        (level, text.to_string())
    }

    #[test]
    fn a_fence_hides_headings() {
        assert_eq!(
            headings("# A\n```sh\n# comment\n```\n~~~\n# other\n~~~\n## B\n"),
            [heading(1, "A"), heading(2, "B")]
        );
    }

    #[test]
    fn a_fence_is_closed_by_its_own_mark_of_at_least_its_length() {
        assert_eq!(headings("````\n# a\n```\n# b\n~~~~\n# c\n`````\n# D\n"), [heading(1, "D")]);
        assert_eq!(headings("```\n# a\n``` not a closer\n# b\n   ```\n# C\n"), [heading(1, "C")]);
    }

    #[test]
    fn an_unclosed_fence_runs_to_the_end() {
        assert_eq!(headings("# A\n   ```\n# b\n\n# c"), [heading(1, "A")]);
    }

    #[test]
    fn backticks_in_the_info_string_open_no_fence() {
        assert_eq!(headings("```a`b\n# A\n"), [heading(1, "A")]);
    }

    #[test]
    fn comments_and_preformatted_html_hide_headings() {
        assert_eq!(
            headings("<!-- one line -->\n# A\n<!--\n# b\n-->\n<PRE>\n# c\n</pre>\n# D\n"),
            [heading(1, "A"), heading(1, "D")]
        );
    }

    #[test]
    fn closing_hashes_are_dropped_and_others_kept() {
        assert_eq!(
            headings("## Title ##\n# C#\n#\n### ###\n#hashtag\n    # code\n####### seven\n"),
            [heading(2, "Title"), heading(1, "C#"), heading(1, ""), heading(3, ""),]
        );
    }

    #[test]
    fn underlined_titles_are_headings_and_lists_above_a_rule_are_not() {
        assert_eq!(
            headings("Title\nover two lines\n===\n\nSub\n---\n\n- item\n---\n\n> quote\n---\n\na | b\n--|--\n1 | 2\n"),
            [heading(1, "Title over two lines"), heading(2, "Sub"),]
        );
    }

    #[test]
    fn carriage_returns_end_lines() {
        assert_eq!(headings("# A\r\n\r\n## B\rtext"), [heading(1, "A"), heading(2, "B")]);
    }

    #[test]
    fn plain_text_has_paragraphs_only() {
        let text = "# not a heading\nline\n\nTitle\n===\n";
        let found: Vec<_> = blocks(text, Syntax::Plain).into_iter().map(|b| (b.range, b.kind)).collect();
        assert_eq!(found, [(0..22, BlockKind::Text), (22..32, BlockKind::Text)]);
        assert_eq!(blocks(text, Syntax::Underlined)[1].kind, BlockKind::Heading { level: 1, text: "Title".into() });
    }

    #[test]
    fn a_table_knows_its_header() {
        let text = "intro\n\n| a | b |\n|---|---|\n| 1 | 2 |\nafter\n";
        assert_eq!(blocks(text, Syntax::Markdown)[1], Block { range: 7..37, kind: BlockKind::Table { header: 20 } });
    }
}
