//! Splits a document into passages in three stages: along headings 1 and 2, then recursively to the size limit,
//! then small neighbours under the same heading are merged.
//!
//! In: the decoded text. Out: passages as byte ranges that together cover the text, each with the headings above
//! it. Nothing is lost, and nothing is longer than the limit.

mod blocks;
mod pack;
mod sentences;

use std::borrow::Cow;
use std::ops::Range;

pub use blocks::Syntax;
use blocks::{Block, BlockKind, blocks};
pub use sentences::sentences;

/// Sizes in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkLimits {
    /// No passage is longer.
    pub size: usize,
    /// How much of the end of a passage the next one repeats, at most, where a text had to be cut.
    pub overlap: usize,
    /// Passages under this are merged with a neighbour under the same heading.
    pub min: usize,
}

impl Default for ChunkLimits {
    fn default() -> Self {
        Self { size: 1600, overlap: 100, min: 300 }
    }
}

/// A passage, as a part of its document.
#[derive(Debug, Clone, PartialEq)]
pub struct Passage {
    pub range: Range<usize>,
    /// Header and separator of the table whose rows the passage starts with, when they stand in an earlier passage.
    pub table_header: Option<Range<usize>>,
    /// The headings of level 1 and 2 above the passage, outermost first.
    pub headings: Vec<String>,
}

impl Passage {
    /// The text of the passage, byte for byte; a table that was cut has its header again.
    pub fn content<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match &self.table_header {
            None => Cow::Borrowed(&text[self.range.clone()]),
            Some(header) => Cow::Owned(format!("{}{}", &text[header.clone()], &text[self.range.clone()])),
        }
    }
}

/// A document, split.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The first heading of level 1, else the first of any level.
    pub title: Option<String>,
    pub passages: Vec<Passage>,
}

/// Splits a text. A size of 0 counts as 1.
pub fn split(text: &str, syntax: Syntax, limits: ChunkLimits) -> Split {
    let blocks = blocks(text, syntax);
    let mut passages = Vec::new();
    for section in sections(&blocks) {
        for piece in pack::pack(text, section.blocks, limits) {
            passages.push(Passage {
                range: piece.range,
                table_header: piece.table_header,
                headings: section.headings.clone(),
            });
        }
    }
    Split { title: title(&blocks), passages }
}

fn title(blocks: &[Block]) -> Option<String> {
    let named = |wanted: Option<usize>| {
        blocks.iter().find_map(|block| match &block.kind {
            BlockKind::Heading { level, text } if !text.is_empty() && wanted.is_none_or(|wanted| *level == wanted) => {
                Some(text.clone())
            }
            _ => None,
        })
    };
    named(Some(1)).or_else(|| named(None))
}

/// What stands under one heading of level 1 or 2.
struct Section<'a> {
    headings: Vec<String>,
    blocks: &'a [Block],
}

fn sections(blocks: &[Block]) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    let mut path = HeadingPath::default();
    let mut start = 0;
    for (at, block) in blocks.iter().enumerate() {
        let BlockKind::Heading { level: level @ 1..=2, text } = &block.kind else { continue };
        // A heading with nothing but a deeper heading below it opens that one's passage: alone it says nothing.
        let only_outer_heading_so_far =
            at == start + 1 && *level == 2 && matches!(blocks[start].kind, BlockKind::Heading { level: 1, .. });
        if at > start && !only_outer_heading_so_far {
            sections.push(Section { headings: path.names(), blocks: &blocks[start..at] });
            start = at;
        }
        path.enter(*level, text);
    }
    if start < blocks.len() {
        sections.push(Section { headings: path.names(), blocks: &blocks[start..] });
    }
    sections
}

/// The headings of level 1 and 2 in force.
#[derive(Default)]
struct HeadingPath {
    levels: [Option<String>; 2],
}

impl HeadingPath {
    /// Enters a heading of level 1 or 2; the deeper level ends.
    fn enter(&mut self, level: usize, text: &str) {
        self.levels[level - 1] = Some(text.to_string());
        for deeper in &mut self.levels[level..] {
            *deeper = None;
        }
    }

    fn names(&self) -> Vec<String> {
        self.levels.iter().flatten().filter(|name| !name.is_empty()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: ChunkLimits = ChunkLimits { size: 40, overlap: 10, min: 12 };

    /// Headings and content of each passage.
    fn passages(text: &str, limits: ChunkLimits) -> Vec<(String, String)> {
        split(text, Syntax::Markdown, limits)
            .passages
            .iter()
            .map(|p| (p.headings.join(" > "), p.content(text).into_owned()))
            .collect()
    }

    fn passage(headings: &str, content: &str) -> (String, String) {
        (headings.to_string(), content.to_string())
    }

    #[test]
    fn passages_keep_the_path_of_headings_1_and_2() {
        let text = "before\n# A\nintro\n## B\nb\n### C\nc\n# D\nd\n";
        assert_eq!(
            passages(text, ChunkLimits::default()),
            [
                passage("", "before\n"),
                passage("A", "# A\nintro\n"),
                passage("A > B", "## B\nb\n### C\nc\n"),
                passage("D", "# D\nd\n"),
            ]
        );
    }

    #[test]
    fn a_title_without_text_joins_its_first_section() {
        assert_eq!(
            passages("# A\n\n## B\nb\n## C\nc\n", ChunkLimits::default()),
            [passage("A > B", "# A\n\n## B\nb\n"), passage("A > C", "## C\nc\n"),]
        );
    }

    #[test]
    fn a_deeper_heading_before_its_parent_does_not_stay_in_the_path() {
        assert_eq!(
            passages("## B\nb\n# A\na\n## C\nc\n# D\nd\n", ChunkLimits::default()),
            [
                passage("B", "## B\nb\n"),
                passage("A", "# A\na\n"),
                passage("A > C", "## C\nc\n"),
                passage("D", "# D\nd\n"),
            ]
        );
    }

    #[test]
    fn the_title_is_the_first_heading() {
        let title = |text| split(text, Syntax::Markdown, SMALL).title;
        assert_eq!(title("intro\n## Sub\n# Top\n"), Some("Top".to_string()));
        assert_eq!(title("text\n### Only\n"), Some("Only".to_string()));
        assert_eq!(title("no heading"), None);
    }

    #[test]
    fn tabs_and_no_break_spaces_stay() {
        let text = "# A\n\tindented\u{a0}text\n\n\n";
        assert_eq!(passages(text, SMALL), [passage("A", text)]);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        assert_eq!(passages("", SMALL), []);
    }

    /// Pieces of documents in any order: what a splitter stumbles over.
    fn documents() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            Just("# 标题 one\n".to_string()),
            Just("## Two ##\n".to_string()),
            Just("### Three\n".to_string()),
            Just("Underlined\n---\n".to_string()),
            Just("```sh\n".to_string()),
            Just("~~~~\n".to_string()),
            Just("<!-- \n".to_string()),
            Just("-->\n".to_string()),
            Just("| a | b |\n|---|---|\n".to_string()),
            Just("| 1 | 二 |\n".to_string()),
            Just("\r\n".to_string()),
            Just("\n\n".to_string()),
            Just("连接池耗尽。请检查；然后重启！".to_string()),
            Just("A sentence of words. ".to_string()),
            "[a-z一-龥🔥\t |#-]{0,90}",
            ".{0,20}",
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_and_no_passage_is_too_long(
            text in documents(), size in 1usize..90, overlap in 0usize..40, min in 0usize..50,
        ) {
            let limits = ChunkLimits { size, overlap, min };
            for syntax in [Syntax::Markdown, Syntax::Underlined, Syntax::Plain] {
                let mut covered = 0;
                let mut last_start = None;
                for passage in split(&text, syntax, limits).passages {
                    prop_assert!(passage.range.start <= covered, "gap at {covered}: {passage:?}");
                    prop_assert!(passage.range.end > covered);
                    prop_assert!(last_start.is_none_or(|start| start < passage.range.start));
                    prop_assert!(text[passage.range.start..covered].chars().count() <= overlap);
                    prop_assert!(passage.content(&text).chars().count() <= size);
                    prop_assert!(passage.content(&text).ends_with(&text[passage.range.clone()]));
                    covered = passage.range.end;
                    last_start = Some(passage.range.start);
                }
                prop_assert_eq!(covered, text.len());
            }
        }
    }
}
