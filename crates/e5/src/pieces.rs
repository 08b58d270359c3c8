//! Cuts text into the pieces that the model knows, and those into windows.
//!
//! A text is cleaned (characters mapped, runs of spaces made one, a space written `▁`) and split before each `▁`; a word
//! then takes the split whose scores add up to the most (Unigram: Kudo 2018, arXiv 1804.10959). Ids are those of
//! the model's published tokenizer, except that `<s>` and its like in a text are text.

use super::ModelError;
use super::bert::POSITIONS;
use super::gguf::Gguf;
use super::vocabulary::Vocabulary;

/// `<s>` opens a window, `</s>` closes it, `<unk>` stands for what the vocabulary cannot spell.
const OPEN: u32 = 0;
const CLOSE: u32 = 2;
const UNKNOWN: u32 = 3;
/// How much less likely than the least likely piece an unknown character is.
const UNKNOWN_PENALTY: f64 = 10.0;
const SPACE: char = '\u{2581}';
/// Pieces to a window.
const WINDOW: usize = POSITIONS - 2;
/// Windows of a text that are embedded: what lies beyond some 100 KB no longer moves an average, and a text of
/// megabytes must not take minutes.
const WINDOWS: usize = 64;
/// Characters of the longest piece: no more than this many times the pieces can be used of a text.
const LONGEST_PIECE: usize = 16;

/// Cuts texts into ids.
pub(super) struct Pieces<'a> {
    vocabulary: Vocabulary<'a>,
    unknown_score: f64,
}

/// The best way to spell a word up to some byte: its score, and where its last piece begins and which one that is.
#[derive(Clone, Copy)]
struct Step {
    score: f64,
    start: usize,
    id: u32,
}

impl<'a> Pieces<'a> {
    pub(super) fn new(file: &Gguf<'a>) -> Result<Self, ModelError> {
        let vocabulary = Vocabulary::new(file)?;
        let unknown_score = vocabulary.lowest_score() - UNKNOWN_PENALTY;
        Ok(Self { vocabulary, unknown_score })
    }

    /// Ids are below this.
    pub(super) fn count(&self) -> usize {
        self.vocabulary.count()
    }

    /// The windows of a text, each with its opening and closing id. There is at least one.
    pub(super) fn windows(&self, prefix: &str, text: &str) -> Vec<Vec<u32>> {
        let ids = self.ids(prefix, text);
        ids.chunks(WINDOW).take(WINDOWS).map(|ids| [&[OPEN], ids, &[CLOSE]].concat()).collect()
    }

    fn ids(&self, prefix: &str, text: &str) -> Vec<u32> {
        let clean = self.clean(prefix.chars().chain(text.chars()));
        let mut ids = Vec::new();
        let mut steps = Vec::new();
        let mut start = 0;
        while start < clean.len() && ids.len() < WINDOWS * WINDOW {
            let after = clean[start..].char_indices().skip(1).find(|(_, character)| *character == SPACE);
            let end = after.map_or(clean.len(), |(at, _)| start + at);
            self.spell(&clean[start..end], &mut steps, &mut ids);
            start = end;
        }
        ids
    }

    /// The text as the vocabulary writes it, with a space in front; as much of it as can be embedded.
    fn clean(&self, text: impl Iterator<Item = char>) -> String {
        let mut clean = String::from(SPACE);
        let mut after_space = false;
        let mut push = |character| {
            if character != ' ' {
                clean.push(character);
            } else if !after_space {
                clean.push(SPACE);
            }
            after_space = character == ' ';
        };
        for character in text.take(WINDOWS * WINDOW * LONGEST_PIECE) {
            match character {
                ' '..='~' => push(character),
                _ => match self.vocabulary.replacement(character) {
                    Some(text) => text.chars().for_each(&mut push),
                    None => push(character),
                },
            }
        }
        clean
    }

    /// Appends the ids of the best split of a word. Neighbouring unknown characters become one.
    fn spell(&self, word: &str, steps: &mut Vec<Step>, ids: &mut Vec<u32>) {
        const UNREACHED: Step = Step { score: f64::NEG_INFINITY, start: 0, id: UNKNOWN };
        steps.clear();
        steps.resize(word.len() + 1, UNREACHED);
        steps[0].score = 0.0;
        for (start, character) in word.char_indices() {
            let score = steps[start].score;
            let mut improve = |size: usize, id: u32, score: f64| {
                let step = &mut steps[start + size];
                if score > step.score {
                    *step = Step { score, start, id };
                }
            };
            let mut spelt = false;
            for (size, id, piece_score) in self.vocabulary.prefixes(&word.as_bytes()[start..]) {
                improve(size, id, score + piece_score);
                spelt |= size == character.len_utf8();
            }
            if !spelt {
                improve(character.len_utf8(), UNKNOWN, score + self.unknown_score);
            }
        }
        let first = ids.len();
        let mut end = word.len();
        while end > 0 {
            let step = steps[end];
            if step.id != UNKNOWN || ids[first..].last() != Some(&UNKNOWN) {
                ids.push(step.id);
            }
            end = step.start;
        }
        ids[first..].reverse();
    }
}
