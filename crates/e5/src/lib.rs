//! multilingual-e5-small (Wang et al. 2024, arXiv 2402.05672) from a GGUF file in memory: text → windows of piece
//! ids → mean token vectors. What the vectors are for is the caller's.
//!
//! A package of its own, because its inner loops need full optimisation even in debug builds: cargo sets that per
//! package, and without it a passage takes half a minute. In reading order: `gguf` (the file), `vocabulary` and
//! `pieces` (text → ids), `bert` (ids → vectors) over `tile` and `curve` (its arithmetic).

mod bert;
mod curve;
mod gguf;
mod pieces;
mod tile;
mod vocabulary;

use self::bert::Bert;
pub use self::bert::DIMENSIONS;
use self::gguf::Gguf;
use self::pieces::Pieces;

/// A model file that is broken or not this model's.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ModelError(String);

/// The model, its weights as they lie in the file.
pub struct Model<'a> {
    pieces: Pieces<'a>,
    bert: Bert<'a>,
}

/// A part of a text that the model reads at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window(Vec<u32>);

impl<'a> Model<'a> {
    /// Reads vocabulary and small parameters.
    pub fn new(file: &'a [u8]) -> Result<Self, ModelError> {
        let file = Gguf::parse(file)?;
        let (pieces, bert) = rayon::join(|| Pieces::new(&file), || Bert::new(&file));
        let (pieces, bert) = (pieces?, bert?);
        if pieces.count() > bert.words() {
            return Err(ModelError(format!(
                "the model has {} pieces, but {} word vectors",
                pieces.count(),
                bert.words()
            )));
        }
        Ok(Self { pieces, bert })
    }

    /// The windows of a text, the first of which begins with `prefix`. There is at least one.
    pub fn windows(&self, prefix: &str, text: &str) -> Vec<Window> {
        self.pieces.windows(prefix, text).into_iter().map(Window).collect()
    }

    /// The mean token vector of each window, of `DIMENSIONS` values. All cores that are idle in the current rayon pool
    /// take part.
    pub fn means(&self, windows: &[&Window]) -> Vec<Vec<f32>> {
        let ids: Vec<&[u32]> = windows.iter().map(|window| &window.0[..]).collect();
        self.bert.means(&ids)
    }
}

impl Window {
    /// Tokens, those that open and close the window included.
    pub fn tokens(&self) -> usize {
        self.0.len()
    }

    /// Pieces of the text.
    pub fn pieces(&self) -> &[u32] {
        // `Pieces::windows` puts a token at either end.
        &self.0[1..self.0.len() - 1]
    }
}
