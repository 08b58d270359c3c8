//! Cuts text into the pieces that the model knows, and those into windows.

use tokenizers::Tokenizer;

use super::super::TextRole;
use super::EmbedError;
use super::bert::POSITIONS;

/// `<s>` opens a window and `</s>` closes it.
const OPEN: u32 = 0;
const CLOSE: u32 = 2;
/// Pieces to a window.
const WINDOW: usize = POSITIONS - 2;
/// Windows of a text that are embedded: what lies beyond some 100 KB no longer moves an average, and a text of
/// megabytes must not take minutes.
const WINDOWS: usize = 64;
/// Characters of the longest piece.
const LONGEST_PIECE: usize = 16;

/// Cuts texts into ids.
pub(super) struct Pieces {
    tokenizer: Tokenizer,
}

impl Pieces {
    pub(super) fn parse(json: &[u8]) -> Result<Self, EmbedError> {
        let tokenizer = Tokenizer::from_bytes(json)
            .map_err(|error| EmbedError(format!("the model's tokenizer cannot be read: {error}")))?;
        Ok(Self { tokenizer })
    }

    /// The windows of a text, each with its opening and closing id. There is at least one.
    pub(super) fn windows(&self, role: TextRole, text: &str) -> Result<Vec<Vec<u32>>, EmbedError> {
        let ids = self.ids(role, text)?;
        let window = |ids: &[u32]| [&[OPEN], ids, &[CLOSE]].concat();
        Ok(ids.chunks(WINDOW).take(WINDOWS).map(window).collect())
    }

    fn ids(&self, role: TextRole, text: &str) -> Result<Vec<u32>, EmbedError> {
        let prefix = match role {
            TextRole::Passage => "passage: ",
            TextRole::Query => "query: ",
        };
        let end = text.char_indices().nth(WINDOWS * WINDOW * LONGEST_PIECE).map_or(text.len(), |(end, _)| end);
        let encoding = self
            .tokenizer
            .encode_fast(format!("{prefix}{}", &text[..end]), false)
            .map_err(|error| EmbedError(format!("a text cannot be cut into pieces: {error}")))?;
        Ok(encoding.get_ids().to_vec())
    }
}
