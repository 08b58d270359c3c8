//! Markdown as styled lines of a given width: headings, lists, tables, code, quotes, links; citations such as `[E3]`
//! stand out and are remembered for each line.
//!
//! In: text from outside (a report, a model's answer, also one that is still being written). Out: lines that fit, but for
//! code, which keeps its lines.

use pulldown_cmark::{Alignment, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_width::UnicodeWidthStr;

use super::text::{self, pad, pad_left, wrap};
use super::theme::Theme;
use crate::domain::text::clean;

/// Characters of a text that are shown.
const MAX_CHARS: usize = 200_000;
/// Columns of a table's column, at least.
const MIN_CELL: usize = 6;
const CELL_GAP: usize = 2;

/// One line with the evidence that it cites.
#[derive(Debug, Clone, PartialEq)]
pub struct MarkdownLine {
    pub line: Line<'static>,
    /// `E3`, `E7`, in the order of the text.
    pub cites: Vec<String>,
}

/// The lines of a text.
pub fn render(markdown: &str, columns: usize, theme: &Theme) -> Vec<MarkdownLine> {
    let markdown = clean(markdown, MAX_CHARS);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut writer = Writer::new(columns.max(8), theme);
    for event in Parser::new_ext(&markdown, options) {
        writer.take(event);
    }
    writer.end_paragraph();
    while writer.lines.last().is_some_and(|line| line.spans.is_empty()) {
        writer.lines.pop();
    }
    writer.lines.into_iter().map(|line| cited(line, theme)).collect()
}

struct Writer<'a> {
    columns: usize,
    theme: &'a Theme,
    lines: Vec<Line<'static>>,
    /// The paragraph under way.
    pieces: Vec<(String, Style)>,
    styles: Vec<Style>,
    /// One for each list around: the next number, or none for bullets.
    lists: Vec<Option<u64>>,
    /// The mark of the item that begins, until its first line is out.
    mark: Option<String>,
    /// Columns of the marks of the items around.
    indents: Vec<usize>,
    quotes: usize,
    code: Option<String>,
    link: Option<(String, usize)>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    alignments: Vec<Alignment>,
    /// Rows of cells; the first is the head.
    rows: Vec<Vec<Vec<(String, Style)>>>,
}

impl<'a> Writer<'a> {
    fn new(columns: usize, theme: &'a Theme) -> Self {
        Self {
            columns,
            theme,
            lines: Vec::new(),
            pieces: Vec::new(),
            styles: vec![theme.text],
            lists: Vec::new(),
            mark: None,
            indents: Vec::new(),
            quotes: 0,
            code: None,
            link: None,
            table: None,
        }
    }

    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::Code(code) => self.pieces.push((code.into_string(), self.style().patch(self.theme.code))),
            // People and models break lines where they mean it.
            Event::SoftBreak | Event::HardBreak => self.break_line(),
            Event::Rule => {
                self.gap();
                let rule = "-".repeat(self.columns.min(40));
                self.lines.push(Line::styled(rule, self.theme.dim));
            }
            Event::TaskListMarker(done) => {
                self.pieces.push((if done { "[x] " } else { "[ ] " }.to_owned(), self.style()));
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph => self.gap(),
            Tag::Heading { level, .. } => self.start_heading(level),
            Tag::BlockQuote(_) => {
                self.gap();
                self.quotes += 1;
                self.push_style(self.theme.dim);
            }
            Tag::CodeBlock(_) => {
                self.end_paragraph();
                self.gap();
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                self.end_paragraph();
                if self.lists.is_empty() {
                    self.gap();
                }
                self.lists.push(first);
            }
            Tag::Item => self.start_item(),
            Tag::Emphasis => self.push_style(Style::new().add_modifier(Modifier::ITALIC)),
            Tag::Strong => self.push_style(Style::new().add_modifier(Modifier::BOLD)),
            Tag::Strikethrough => self.push_style(Style::new().add_modifier(Modifier::CROSSED_OUT)),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.link = Some((dest_url.into_string(), self.pieces.len()));
                self.push_style(self.theme.link);
            }
            Tag::Table(alignments) => {
                self.gap();
                self.table = Some(Table { alignments, rows: Vec::new() });
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(Vec::new());
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_paragraph(),
            TagEnd::Heading(_) => {
                self.end_paragraph();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.end_paragraph();
                self.quotes = self.quotes.saturating_sub(1);
                self.styles.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.end_paragraph();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.end_paragraph();
                self.mark = None;
                self.indents.pop();
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.end_link(),
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(row) = self.table.as_mut().and_then(|table| table.rows.last_mut()) {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.end_table(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn push_style(&mut self, style: Style) {
        self.styles.push(self.style().patch(style));
    }

    fn text(&mut self, text: &str) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
        } else {
            let (text, style) = (text.replace('\n', " "), self.style());
            match self.pieces.last_mut().filter(|(_, last)| *last == style) {
                Some((last, _)) => last.push_str(&text),
                None => self.pieces.push((text, style)),
            }
        }
    }

    fn start_heading(&mut self, level: HeadingLevel) {
        self.gap();
        let style = match level {
            HeadingLevel::H1 => self.theme.heading.add_modifier(Modifier::UNDERLINED),
            _ => self.theme.heading,
        };
        self.push_style(style);
        if self.theme.marks_headings {
            self.pieces.push((format!("{} ", "#".repeat(level as usize)), self.style()));
        }
    }

    fn start_item(&mut self) {
        self.end_paragraph();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "- ".to_owned(),
        };
        self.indents.push(mark.width());
        self.mark = Some(mark);
    }

    fn end_link(&mut self) {
        self.styles.pop();
        let Some((url, from)) = self.link.take() else { return };
        let shown: String = self.pieces[from.min(self.pieces.len())..].iter().map(|(text, _)| text.as_str()).collect();
        if !url.is_empty() && shown != url && !url.ends_with(&shown) {
            self.pieces.push((format!(" ({url})"), self.theme.dim));
        }
    }

    /// A blank line before a block, except at the beginning and between the lines of a list.
    fn gap(&mut self) {
        self.end_paragraph();
        let needs = self.lines.last().is_some_and(|line| !line.spans.is_empty());
        if needs && self.lists.is_empty() && self.table.is_none() {
            self.lines.push(Line::default());
        }
    }

    /// Columns left of the text, and what stands in them for the first line.
    fn lead(&mut self) -> (usize, String) {
        let outer: usize = self.indents.iter().rev().skip(1).sum();
        let own = self.indents.last().copied().unwrap_or(0);
        let quote = "> ".repeat(self.quotes);
        let mark = self.mark.take().unwrap_or_else(|| " ".repeat(own));
        let first = format!("{quote}{}{mark}", " ".repeat(outer));
        (first.width().min(self.columns / 2), first)
    }

    fn break_line(&mut self) {
        if self.table.is_some() {
            self.pieces.push((" ".to_owned(), self.style()));
        } else {
            self.end_paragraph();
        }
    }

    fn end_paragraph(&mut self) {
        if self.pieces.is_empty() || self.table.is_some() {
            return;
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        if let Some((first, _)) = pieces.first_mut() {
            *first = first.trim_start().to_owned();
        }
        let (indent, first) = self.lead();
        let lines = wrap(&pieces, self.columns.saturating_sub(indent).max(4), 0);
        let blank = if self.quotes > 0 { "> ".repeat(self.quotes) } else { String::new() };
        for (n, mut line) in lines.into_iter().enumerate() {
            let lead = if n == 0 { first.clone() } else { pad(&blank, indent) };
            if !lead.is_empty() {
                line.spans.insert(0, Span::styled(lead, self.theme.dim));
            }
            self.lines.push(line);
        }
    }

    fn end_code(&mut self) {
        let Some(code) = self.code.take() else { return };
        let (indent, _) = self.lead();
        for line in code.trim_end_matches('\n').split('\n') {
            let line = line.replace('\t', "    ");
            self.lines.push(Line::styled(format!("{}  {line}", " ".repeat(indent)), self.theme.code));
        }
        self.lines.push(Line::default());
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        let widths = column_widths(&table, self.columns);
        for (n, row) in table.rows.iter().enumerate() {
            self.lines.extend(table_row(row, &widths, &table.alignments, n == 0));
            if n == 0 {
                let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
                self.lines.push(Line::styled(rule.join(&" ".repeat(CELL_GAP)), self.theme.dim));
            }
        }
        self.lines.push(Line::default());
    }
}

fn cell_width(cell: &[(String, Style)]) -> usize {
    cell.iter().map(|(text, _)| text.width()).sum()
}

/// What each column needs, less where the widest give way until the row fits.
fn column_widths(table: &Table, columns: usize) -> Vec<usize> {
    let count = table.rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count)
        .map(|n| table.rows.iter().filter_map(|row| row.get(n)).map(|cell| cell_width(cell)).max().unwrap_or(0).max(1))
        .collect();
    let room = columns.saturating_sub(CELL_GAP * count.saturating_sub(1));
    while widths.iter().sum::<usize>() > room {
        let Some(widest) = widths.iter_mut().max() else { break };
        if *widest <= MIN_CELL {
            break;
        }
        *widest -= 1;
    }
    widths
}

fn table_row(
    row: &[Vec<(String, Style)>],
    widths: &[usize],
    alignments: &[Alignment],
    is_head: bool,
) -> Vec<Line<'static>> {
    let cells: Vec<Vec<Line<'static>>> = widths
        .iter()
        .enumerate()
        .map(|(n, width)| row.get(n).map(|cell| wrap(cell, *width, 0)).unwrap_or_default())
        .collect();
    let height = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    (0..height)
        .map(|at| {
            let mut spans: Vec<Span<'static>> = Vec::new();
            for (n, width) in widths.iter().enumerate() {
                let line = cells[n].get(at).cloned().unwrap_or_default();
                let free = width.saturating_sub(line.width());
                let left = match alignments.get(n) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                spans.push(Span::raw(pad_left("", left)));
                spans.extend(line.spans.into_iter().map(|span| match is_head {
                    true => span.patch_style(Modifier::BOLD),
                    false => span,
                }));
                let gap = if n + 1 < widths.len() { CELL_GAP } else { 0 };
                spans.push(Span::raw(" ".repeat(free - left + gap)));
            }
            Line::from(spans)
        })
        .collect()
}

/// Marks the citations of a line.
fn cited(line: Line<'static>, theme: &Theme) -> MarkdownLine {
    let plain = text::plain(&line);
    let ranges = citations(&plain);
    if ranges.is_empty() {
        return MarkdownLine { line, cites: Vec::new() };
    }
    let mut cites: Vec<String> = Vec::new();
    let mut spans = Vec::new();
    let mut at = 0;
    for span in line.spans {
        let end = at + span.content.len();
        let mut from = at;
        for (start, stop, _) in ranges.iter().filter(|(start, stop, _)| *start < end && *stop > at) {
            let (start, stop) = ((*start).max(at), (*stop).min(end));
            for (a, b, style) in [(from, start, span.style), (start, stop, span.style.patch(theme.cite))] {
                if let Some(part) = span.content.get(a - at..b - at).filter(|part| !part.is_empty()) {
                    spans.push(Span::styled(part.to_owned(), style));
                }
            }
            from = stop;
        }
        if let Some(part) = span.content.get(from - at..).filter(|part| !part.is_empty()) {
            spans.push(Span::styled(part.to_owned(), span.style));
        }
        at = end;
    }
    for (_, _, ids) in ranges {
        cites.extend(ids);
    }
    MarkdownLine { line: Line::from(spans).style(line.style), cites }
}

/// Byte ranges of `[E3]`, `[E3, E7]` and, at the beginning of an item, `E3`, with the ids in them.
fn citations(line: &str) -> Vec<(usize, usize, Vec<String>)> {
    let mut found = Vec::new();
    if let Some(item) = line.trim_start().strip_prefix("- ") {
        let id = item.split(' ').next().unwrap_or_default();
        if is_id(id) {
            let start = line.len() - item.len();
            found.push((start, start + id.len(), vec![id.to_owned()]));
        }
    }
    let mut at = 0;
    while let Some(open) = line[at..].find('[').map(|open| at + open) {
        let Some(close) = line[open..].find(']').map(|close| open + close) else { break };
        let ids: Vec<&str> = line[open + 1..close].split([',', '，', '、', ' ']).filter(|id| !id.is_empty()).collect();
        if !ids.is_empty() && ids.iter().all(|id| is_id(id)) {
            found.push((open, close + 1, ids.into_iter().map(str::to_owned).collect()));
        }
        at = open + 1;
    }
    found
}

fn is_id(text: &str) -> bool {
    text.strip_prefix('E').is_some_and(|n| !n.is_empty() && n.len() <= 6 && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::tui::theme::ThemeName;

    fn shown(markdown: &str, columns: usize) -> String {
        let theme = Theme::of(ThemeName::None);
        let lines: Vec<String> = render(markdown, columns, &theme)
            .iter()
            .map(|line| text::plain(&line.line).trim_end().to_owned())
            .collect();
        lines.join("\n")
    }

    #[test]
    fn headings_lists_code_quotes_and_links_are_laid_out() {
        let markdown = "# Title\n\nOne *two* **three** `four`.\n\n- first item that is long\n  - inner\n1. a\n2. b\n\n```sh\nls  -l\n\tx\n```\n> quoted text goes on\n\n[docs](https://example.org/x) and <https://a.b>\n";
        insta::assert_snapshot!(shown(markdown, 20));
    }

    #[test]
    fn a_table_fits_by_wrapping_its_widest_cells() {
        let markdown = "| 服务 | state | n |\n|---|:---:|--:|\n| 订单服务 | the pool is exhausted since 14:30 | 7 |\n| cart | ok | 12 |\n";
        insta::assert_snapshot!(shown(markdown, 34));
    }

    #[test]
    fn lines_never_exceed_their_columns_but_for_code() {
        let markdown = "- 数据库连接池耗尽 [E3] 导致 order-service 超时，averyveryverylongwordwithoutanyblank 继续\n\n| a | b |\n|---|---|\n| 连接池 | 很长很长很长很长很长 |\n";
        for columns in 8..60 {
            for line in render(markdown, columns, &Theme::of(ThemeName::None)) {
                assert!(line.line.width() <= columns.max(2 * MIN_CELL + CELL_GAP), "{columns}: {:?}", line.line);
            }
        }
    }

    #[test]
    fn citations_are_marked_and_remembered() {
        let theme = Theme::of(ThemeName::Dark);
        let lines = render("Look [E2, E10] and [this](x) [E3]\n\n- E7 [log] text\n", 60, &theme);
        assert_eq!(lines[0].cites, ["E2", "E10", "E3"]);
        assert_eq!(lines[2].cites, ["E7"]);
        let marked: Vec<&str> =
            lines[0].line.spans.iter().filter(|s| s.style.fg == theme.cite.fg).map(|s| s.content.as_ref()).collect();
        assert_eq!(marked, ["[E2, E10]", "[E3]"]);
    }

    #[test]
    fn escape_sequences_do_not_pass_and_an_open_fence_is_shown() {
        assert_eq!(shown("a\u{1b}[31mb\n\n```\ncode", 20), "ab\n\n  code");
    }
}
