//! Packs the blocks of one section into passages within the size limit.
//!
//! In: touching blocks. Out: pieces that together cover them. A block that does not fit is cut along lines, then
//! sentences, then words, then anywhere between two characters.

use std::ops::Range;

use super::ChunkLimits;
use super::blocks::{Block, BlockKind};

/// A passage without its headings.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub range: Range<usize>,
    pub table_header: Option<Range<usize>>,
    /// Length of the content, a repeated header included.
    chars: usize,
    /// Whether the next piece may repeat the end of this one: prose is repeated, code and tables are not.
    ends_in_prose: bool,
}

/// A part that is not cut any further. Atoms touch each other.
struct Atom {
    range: Range<usize>,
    chars: usize,
    prose: bool,
    /// Header of the table that this continues; such an atom always starts a passage.
    table_header: Option<(Range<usize>, usize)>,
}

pub(super) fn pack(text: &str, blocks: &[Block], limits: ChunkLimits) -> Vec<Piece> {
    let limits = ChunkLimits { size: limits.size.max(1), overlap: limits.overlap.min(limits.size / 2), ..limits };
    let mut atoms = Vec::new();
    for block in blocks {
        cut_block(text, block, limits, &mut atoms);
    }
    let pieces = fill(text, join_headings(blocks, atoms, limits.size), limits);
    merge_small(text, pieces, limits)
}

fn cut_block(text: &str, block: &Block, limits: ChunkLimits, atoms: &mut Vec<Atom>) {
    let chars = count(text, &block.range);
    let prose = matches!(block.kind, BlockKind::Text);
    if chars <= limits.size {
        atoms.push(Atom { range: block.range.clone(), chars, prose, table_header: None });
        return;
    }
    if let BlockKind::Table { header } = block.kind {
        let header = block.range.start..block.range.start + header;
        let header_chars = count(text, &header);
        if header_chars <= limits.size / 2 {
            cut_table(text, block, (header, header_chars), limits, atoms);
            return;
        }
    }
    // Atoms leave room for the overlap, or no cut text would ever have one.
    let room = limits.size - limits.overlap;
    cut(text, block.range.clone(), Boundary::Line, room, &mut |range| {
        atoms.push(Atom { chars: count(text, &range), range, prose, table_header: None });
    });
}

/// Rows are put together up to the limit; every part but the first will have the header repeated.
fn cut_table(
    text: &str,
    block: &Block,
    (header, header_chars): (Range<usize>, usize),
    limits: ChunkLimits,
    atoms: &mut Vec<Atom>,
) {
    let room = limits.size - header_chars;
    let mut part = Atom { range: header.clone(), chars: header_chars, prose: false, table_header: None };
    cut(text, header.end..block.range.end, Boundary::Line, room, &mut |row| {
        let chars = count(text, &row);
        let limit = if part.table_header.is_some() { room } else { limits.size };
        if part.chars + chars <= limit {
            part.range.end = row.end;
            part.chars += chars;
        } else {
            let table_header = Some((header.clone(), header_chars));
            atoms.push(std::mem::replace(&mut part, Atom { range: row, chars, prose: false, table_header }));
        }
    });
    atoms.push(part);
}

/// Where a text is cut, the best first.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Boundary {
    Line,
    Sentence,
    Word,
    Character,
}

/// Cuts `range` into touching parts of at most `room` characters, at the best boundaries that allow it.
fn cut(text: &str, range: Range<usize>, boundary: Boundary, room: usize, emit: &mut impl FnMut(Range<usize>)) {
    let mut part = range.start..range.start;
    let mut part_chars = 0;
    let mut from = range.start;
    while from < range.end {
        let end = match boundary {
            Boundary::Character => nth_char_end(text, from, room).min(range.end),
            _ => next_boundary(text, from, range.end, boundary),
        };
        let chars = count(text, &(from..end));
        // Lines stay apart, so that filling can choose among them; finer parts are joined here already.
        let fits = boundary != Boundary::Line && part_chars + chars <= room;
        if !fits && !part.is_empty() {
            emit(part.clone());
            part = from..from;
            part_chars = 0;
        }
        if chars <= room {
            part.end = end;
            part_chars += chars;
        } else {
            cut(text, from..end, boundary.finer(), room, emit);
            part = end..end;
        }
        from = end;
    }
    if !part.is_empty() {
        emit(part);
    }
}

impl Boundary {
    fn finer(self) -> Self {
        match self {
            Self::Line => Self::Sentence,
            Self::Sentence => Self::Word,
            Self::Word | Self::Character => Self::Character,
        }
    }
}

/// The end of the first line, sentence or word after `from`, its trailing blanks included.
pub(super) fn next_boundary(text: &str, from: usize, end: usize, boundary: Boundary) -> usize {
    let mut chars = text[from..end].char_indices().peekable();
    let mut stopped = false;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, next)| next);
        let before_text = !next.is_some_and(char::is_whitespace);
        let ends = match boundary {
            Boundary::Line => c == '\n',
            Boundary::Sentence => {
                stopped = stops_sentence(c, next) || (stopped && (c.is_whitespace() || closes_quotation(c)));
                stopped && before_text && !next.is_some_and(|next| stops_sentence(next, None) || closes_quotation(next))
            }
            _ => before_text && (c.is_whitespace() || matches!(c, '，' | '、' | '：')),
        };
        if ends {
            return from + at + c.len_utf8();
        }
    }
    end
}

/// A full stop before a blank, or a Chinese one anywhere.
fn stops_sentence(c: char, next: Option<char>) -> bool {
    match c {
        '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
        _ => matches!(c, '。' | '！' | '？' | '；'),
    }
}

fn closes_quotation(c: char) -> bool {
    matches!(c, '”' | '’' | '」' | '』' | '）')
}

/// A heading of level 3 and deeper stays with what it announces, where both fit.
fn join_headings(blocks: &[Block], atoms: Vec<Atom>, size: usize) -> Vec<Atom> {
    let is_heading = |atom: &Atom| {
        let block = blocks.partition_point(|block| block.range.start < atom.range.start);
        blocks.get(block).is_some_and(|b| b.range == atom.range && matches!(b.kind, BlockKind::Heading { .. }))
    };
    let mut joined: Vec<Atom> = Vec::with_capacity(atoms.len());
    let mut last_is_heading = false;
    for atom in atoms {
        let heading = is_heading(&atom);
        match joined.last_mut() {
            Some(last) if last_is_heading && atom.table_header.is_none() && last.chars + atom.chars <= size => {
                last.range.end = atom.range.end;
                last.chars += atom.chars;
                last.prose = atom.prose;
            }
            _ => joined.push(atom),
        }
        last_is_heading = heading;
    }
    joined
}

/// Puts atoms together up to the limit. A new piece repeats the end of the one before, as far as there is room.
fn fill(text: &str, atoms: Vec<Atom>, limits: ChunkLimits) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for atom in atoms {
        let starts_anew = atom.table_header.is_some();
        if let Some(last) = pieces.last_mut()
            && !starts_anew
            && last.chars + atom.chars <= limits.size
        {
            last.range.end = atom.range.end;
            last.chars += atom.chars;
            last.ends_in_prose = atom.prose;
            continue;
        }
        let repeated = match pieces.last() {
            Some(last) if last.ends_in_prose && !starts_anew => {
                // Of its own text, without a header that it repeats: less than all, or the piece would be there twice.
                let room = limits.overlap.min(limits.size - atom.chars).min(count(text, &last.range) / 2);
                tail(text, &last.range, room)
            }
            _ => 0..0,
        };
        let chars = atom.chars + count(text, &repeated);
        let start = if repeated.is_empty() { atom.range.start } else { repeated.start };
        let (table_header, header_chars) = atom.table_header.map_or((None, 0), |(range, chars)| (Some(range), chars));
        pieces.push(Piece {
            range: start..atom.range.end,
            table_header,
            chars: chars + header_chars,
            ends_in_prose: atom.prose,
        });
    }
    pieces
}

/// The last whole sentence or words of a range, at most `room` characters; cut anywhere when it is one word.
fn tail(text: &str, range: &Range<usize>, room: usize) -> Range<usize> {
    if room == 0 {
        return range.end..range.end;
    }
    let earliest =
        text[range.clone()].char_indices().rev().nth(room - 1).map_or(range.start, |(at, _)| range.start + at);
    for boundary in [Boundary::Sentence, Boundary::Word] {
        let mut start = range.start;
        while start < earliest {
            start = next_boundary(text, start, range.end, boundary);
        }
        if !text[start..range.end].trim().is_empty() {
            return start..range.end;
        }
    }
    earliest..range.end
}

fn merge_small(text: &str, pieces: Vec<Piece>, limits: ChunkLimits) -> Vec<Piece> {
    let mut merged: Vec<Piece> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if let Some(last) = merged.last_mut()
            && piece.table_header.is_none()
            && last.chars.min(piece.chars) < limits.min
        {
            let added = count(text, &(last.range.end..piece.range.end));
            if last.chars + added <= limits.size {
                last.range.end = piece.range.end;
                last.chars += added;
                last.ends_in_prose = piece.ends_in_prose;
                continue;
            }
        }
        merged.push(piece);
    }
    merged
}

fn count(text: &str, range: &Range<usize>) -> usize {
    text[range.clone()].chars().count()
}

/// The byte offset after `n` characters from `from`.
fn nth_char_end(text: &str, from: usize, n: usize) -> usize {
    text[from..].char_indices().nth(n).map_or(text.len(), |(at, _)| from + at)
}

#[cfg(test)]
mod tests {
    use super::super::{ChunkLimits, Syntax, split};

    fn contents(text: &str, limits: ChunkLimits) -> Vec<String> {
        split(text, Syntax::Markdown, limits).passages.iter().map(|p| p.content(text).into_owned()).collect()
    }

    #[test]
    fn paragraphs_are_kept_whole_where_they_fit() {
        let limits = ChunkLimits { size: 30, overlap: 0, min: 5 };
        assert_eq!(
            contents("first paragraph here\n\nsecond paragraph here\n", limits),
            ["first paragraph here\n\n", "second paragraph here\n"]
        );
    }

    #[test]
    fn a_long_paragraph_is_cut_after_sentences_and_repeats_the_last_one() {
        let limits = ChunkLimits { size: 40, overlap: 20, min: 5 };
        assert_eq!(
            contents("One is here. Two is here. Three is here. Four.", limits),
            ["One is here. Two is here. ", "Two is here. Three is here. Four."]
        );
    }

    #[test]
    fn chinese_sentences_are_boundaries() {
        let limits = ChunkLimits { size: 12, overlap: 0, min: 2 };
        assert_eq!(
            contents("连接池已经耗尽。请先检查慢查询；然后扩容！好吗？", limits),
            ["连接池已经耗尽。", "请先检查慢查询；", "然后扩容！好吗？"]
        );
    }

    #[test]
    fn one_long_word_is_cut_anywhere() {
        let limits = ChunkLimits { size: 4, overlap: 0, min: 0 };
        assert_eq!(contents("池池池池池池🔥池池", limits), ["池池池池", "池池🔥池", "池"]);
    }

    #[test]
    fn a_fence_that_fits_stays_whole() {
        let limits = ChunkLimits { size: 60, overlap: 0, min: 5 };
        let fence = "```sh\nkubectl get pods\n\nkubectl describe pod\n```\n";
        assert_eq!(
            contents(&format!("Look at the pods and their events.\n\n{fence}"), limits),
            ["Look at the pods and their events.\n\n", fence]
        );
    }

    #[test]
    fn a_table_that_was_cut_repeats_its_header() {
        let limits = ChunkLimits { size: 44, overlap: 10, min: 5 };
        let text = "| a | b |\n|---|---|\n| 1 | x |\n| 2 | y |\n| 3 | z |\n";
        assert_eq!(
            contents(text, limits),
            ["| a | b |\n|---|---|\n| 1 | x |\n| 2 | y |\n", "| a | b |\n|---|---|\n| 3 | z |\n",]
        );
    }

    #[test]
    fn small_neighbours_are_merged() {
        let limits = ChunkLimits { size: 30, overlap: 0, min: 8 };
        assert_eq!(contents("# A\n\nshort\n\nalso short\n", limits), ["# A\n\nshort\n\nalso short\n"]);
    }

    #[test]
    fn a_minor_heading_stays_with_its_text() {
        let limits = ChunkLimits { size: 40, overlap: 0, min: 2 };
        assert_eq!(
            contents("text that fills a passage up\n\n### Head\n\nwhat it announces\n", limits),
            ["text that fills a passage up\n\n", "### Head\n\nwhat it announces\n"]
        );
    }
}
