//! The pieces that the model knows, read from its file: a trie over their bytes with each piece's id and score, and
//! the map that makes characters alike (full-width letters, ligatures, control characters) before texts are cut.

use super::ModelError;
use super::gguf::{Gguf, Reader};

/// Stands for "no piece ends here" and for a free slot.
const NONE: u32 = u32::MAX;
/// Slots of the trie's table, as a power of two: about twice the prefixes of 35,000 pieces.
const SLOTS_LOG2: u32 = 18;
/// Token types of GGUF: an ordinary piece, which may be found in a text.
const NORMAL: u32 = 1;

pub(super) struct Vocabulary<'a> {
    trie: Trie,
    scores: Vec<f64>,
    characters: CharacterMap<'a>,
}

impl<'a> Vocabulary<'a> {
    pub(super) fn new(file: &Gguf<'a>) -> Result<Self, ModelError> {
        let scores: Vec<f64> = floats(file.array("tokenizer.ggml.scores")?)?.into_iter().map(as_written).collect();
        let (mut tokens, count) = file.array("tokenizer.ggml.tokens")?;
        let (mut kinds, kind_count) = file.array("tokenizer.ggml.token_type")?;
        if scores.len() != count || kind_count != count {
            return Err(ModelError(format!("the model has {count} pieces, but {} scores", scores.len())));
        }
        let mut trie = Trie::new();
        for id in (0..).take(count) {
            let piece = tokens.text()?;
            // `<s>` and its like in a text are text.
            if kinds.u32()? == NORMAL {
                trie.insert(piece.as_bytes(), id)?;
            }
        }
        let (mut map, size) = file.array("tokenizer.ggml.precompiled_charsmap")?;
        Ok(Self { trie, scores, characters: CharacterMap::parse(map.take(size)?)? })
    }

    pub(super) fn count(&self) -> usize {
        self.scores.len()
    }

    /// The score of the least likely piece.
    pub(super) fn lowest_score(&self) -> f64 {
        self.scores.iter().copied().fold(0.0, f64::min)
    }

    /// The pieces that `text` begins with, the shortest first: length in bytes, id, score.
    pub(super) fn prefixes(&self, text: &[u8]) -> impl Iterator<Item = (usize, u32, f64)> {
        let mut node = Trie::ROOT;
        let ends = text.iter().enumerate().map_while(move |(at, byte)| {
            node = self.trie.child(node, *byte)?;
            Some((at + 1, self.trie.pieces[node as usize]))
        });
        ends.filter(|(_, id)| *id != NONE).map(|(size, id)| (size, id, self.scores[id as usize]))
    }

    /// What a character is replaced with, if it is; possibly nothing.
    pub(super) fn replacement(&self, character: char) -> Option<&str> {
        self.characters.get(character)
    }
}

fn floats((mut reader, count): (Reader<'_>, usize)) -> Result<Vec<f32>, ModelError> {
    let bytes = reader.take(count.saturating_mul(4))?;
    Ok(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

/// The double nearest to the shortest decimal that reads back as the same `score`: so the published tokenizer has it, and
/// sums that would tie otherwise (runs of `=`) fall to the same side.
fn as_written(score: f32) -> f64 {
    let rounded = |digits| (f64::from(score) * 10f64.powi(digits)).round() / 10f64.powi(digits);
    (0..9).map(rounded).find(|decimal| *decimal as f32 == score).unwrap_or(f64::from(score))
}

/// A trie whose edges lie in one open hash table: quick to build at every start, quick to walk.
struct Trie {
    /// Node and byte of an edge, and the node that it leads to.
    edges: Vec<(u32, u32)>,
    /// The piece that ends at a node.
    pieces: Vec<u32>,
}

impl Trie {
    const ROOT: u32 = 0;

    fn new() -> Self {
        Self { edges: vec![(NONE, NONE); 1 << SLOTS_LOG2], pieces: vec![NONE] }
    }

    fn insert(&mut self, piece: &[u8], id: u32) -> Result<(), ModelError> {
        let mut node = Self::ROOT;
        for byte in piece {
            let slot = self.slot(node, *byte);
            if self.edges[slot].0 == NONE {
                // A quarter stays free, so that a search always ends soon; a key has 24 bits for its node.
                if self.pieces.len() >= (1 << SLOTS_LOG2) / 4 * 3 {
                    return Err(ModelError("the model has too many pieces".into()));
                }
                self.edges[slot] = (key(node, *byte), self.pieces.len() as u32);
                self.pieces.push(NONE);
            }
            node = self.edges[slot].1;
        }
        self.pieces[node as usize] = id;
        Ok(())
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let (found, child) = self.edges[self.slot(node, byte)];
        (found != NONE).then_some(child)
    }

    /// Where the edge is, or would be.
    fn slot(&self, node: u32, byte: u8) -> usize {
        let key = key(node, byte);
        // Fibonacci hashing: the top bits of a product with 2^32 / φ.
        let mut slot = (key.wrapping_mul(0x9E37_79B9) >> (32 - SLOTS_LOG2)) as usize;
        while self.edges[slot].0 != NONE && self.edges[slot].0 != key {
            slot = (slot + 1) % self.edges.len();
        }
        slot
    }
}

fn key(node: u32, byte: u8) -> u32 {
    node << 8 | u32::from(byte)
}

/// SentencePiece's map of characters: a double array (Darts) over UTF-8 bytes, then the replacements, each ended by
/// a zero byte.
struct CharacterMap<'a> {
    units: Vec<u32>,
    texts: &'a str,
}

impl<'a> CharacterMap<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ModelError> {
        let broken = || ModelError("the model's character map is cut off".into());
        let (size, rest) = bytes.split_first_chunk().ok_or_else(broken)?;
        let (units, texts) = rest.split_at_checked(u32::from_le_bytes(*size) as usize).ok_or_else(broken)?;
        let units = units.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        Ok(Self { units, texts: std::str::from_utf8(texts).map_err(|_| broken())? })
    }

    fn get(&self, character: char) -> Option<&str> {
        let mut buffer = [0; 4];
        let mut unit = *self.units.first()?;
        let mut node = distance(unit);
        for byte in character.encode_utf8(&mut buffer).bytes() {
            node ^= usize::from(byte);
            unit = *self.units.get(node)?;
            // A unit's label is its low byte; one that holds a value has the top bit set and matches none.
            if unit & 0x8000_00FF != u32::from(byte) {
                return None;
            }
            node ^= distance(unit);
        }
        if unit >> 8 & 1 == 0 {
            return None;
        }
        let start = *self.units.get(node)? & 0x7FFF_FFFF;
        self.texts.get(start as usize..)?.split('\0').next()
    }
}

/// The xor distance from a unit to its children.
fn distance(unit: u32) -> usize {
    ((unit >> 10) << ((unit & 1 << 9) >> 6)) as usize
}
