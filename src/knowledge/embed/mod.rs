//! The embedding model that is compiled into the binary: multilingual-e5-small, cut to English and Chinese, 4 bits.
//! Texts go in, vectors of 384 values and unit length come out, on all cores and without a service.
//!
//! ```ignore
//! let model = EmbeddedModel::shared()?;                    // read at the first call, then the same for all; cheap to clone
//! let raw = model.embed(TextRole::Query, &texts).await?;   // the `Embedder` trait; runs beside the async runtime
//! let raw = model.vectors(TextRole::Passage, &["…"])?;     // the same, blocking
//! model.centring().centre(&mut raw[0], role, Lang::of(text));
//! let centred = model.embed_centred(TextRole::Query, &texts).await?;
//! ```
//!
//! A text has the same vector alone and in any batch, so a caller that wants to show progress embeds part by part:
//! some 64 passages at a time keep all cores busy. In reading order: `pieces` (text → ids), `gguf` (the file of
//! weights), `bert` (ids → vectors) over `tile` and `curve` (its arithmetic), `centring`.

mod bert;
mod centring;
mod curve;
mod gguf;
mod pieces;
mod tile;

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use rayon::prelude::*;

use self::bert::{Bert, DIMENSIONS};
pub use self::centring::Centring;
use self::gguf::Gguf;
use self::pieces::Pieces;
use super::{EmbedError, Embedder, TextRole};
use crate::domain::lang::Lang;

static MODEL: &[u8] = include_bytes!("../../../assets/embedding/multilingual-e5-small-en-zh-q4_0.gguf");
static TOKENIZER: &[u8] = include_bytes!("../../../assets/embedding/tokenizer.json");
static MEANS: &str = include_str!("../../../assets/embedding/language_means.json");

/// Model, cut and packing; a table made with another cannot be searched with this one.
const ID: &str = "multilingual-e5-small-en-zh-q4_0/1/384";
/// Tokens that run as one pack at most: enough to make unpacking the weights a small part of the work, and few
/// enough that activations stay in the second-level cache.
const PACK: usize = 512;

/// The embedded model. A clone shares everything.
#[derive(Clone)]
pub struct EmbeddedModel(Arc<Parts>);

struct Parts {
    pieces: Pieces,
    bert: Bert<'static>,
    centring: Centring,
}

impl EmbeddedModel {
    /// Reads model and tokenizer, at the same time.
    pub fn load() -> Result<Self, EmbedError> {
        let (pieces, bert) =
            rayon::join(|| Pieces::parse(TOKENIZER), || Gguf::parse(MODEL).and_then(|file| Bert::new(&file)));
        Ok(Self(Arc::new(Parts { pieces: pieces?, bert: bert?, centring: Centring::parse(MEANS, DIMENSIONS)? })))
    }

    /// The model of this process, read when first asked for.
    pub fn shared() -> Result<Self, EmbedError> {
        static SHARED: OnceLock<Result<EmbeddedModel, String>> = OnceLock::new();
        SHARED.get_or_init(|| Self::load().map_err(|error| error.0)).clone().map_err(EmbedError)
    }

    pub fn centring(&self) -> &Centring {
        &self.0.centring
    }

    /// One raw vector per text, in their order. Blocks until all are done.
    pub fn vectors<T: AsRef<str> + Sync>(&self, role: TextRole, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.vectors(role, texts)
    }

    /// One vector per text, centred by role and by the language of each text.
    pub async fn embed_centred(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = self.embed(role, texts).await?;
        for (vector, text) in vectors.iter_mut().zip(texts) {
            self.0.centring.centre(vector, role, Lang::of(text));
        }
        Ok(vectors)
    }
}

#[async_trait]
impl Embedder for EmbeddedModel {
    fn id(&self) -> &str {
        ID
    }

    fn dimensions(&self) -> usize {
        DIMENSIONS
    }

    async fn embed(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (parts, texts) = (Arc::clone(&self.0), texts.to_vec());
        tokio::task::spawn_blocking(move || parts.vectors(role, &texts))
            .await
            .map_err(|error| EmbedError(format!("the embedding was stopped: {error}")))?
    }

    fn centre(&self, vector: &mut [f32], role: TextRole, lang: Lang) {
        self.0.centring.centre(vector, role, lang);
    }
}

/// A part of a text, and the text's place among its fellows.
struct Window {
    text: usize,
    ids: Vec<u32>,
}

impl Parts {
    fn vectors<T: AsRef<str> + Sync>(&self, role: TextRole, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let cut = |text: &T| self.pieces.windows(role, text.as_ref());
        let cut: Vec<Vec<Vec<u32>>> = texts.par_iter().map(cut).collect::<Result<_, _>>()?;
        let of_text =
            |(text, windows): (usize, Vec<Vec<u32>>)| windows.into_iter().map(move |ids| Window { text, ids });
        let mut windows: Vec<Window> = cut.into_iter().enumerate().flat_map(of_text).collect();
        if let Some(id) = windows.iter().flat_map(|window| &window.ids).find(|id| **id as usize >= self.bert.pieces()) {
            return Err(EmbedError(format!("the tokenizer gave piece {id}, which the model does not have")));
        }
        // The longest first, so that no long one is left for the end; the sort is stable.
        windows.sort_by_key(|window| Reverse(window.ids.len()));
        let means: Vec<Vec<f32>> = packs(&windows).into_par_iter().flat_map(|pack| self.means(pack)).collect();
        let mut vectors = vec![vec![0.0; DIMENSIONS]; texts.len()];
        // Windows of one text are summed in the order of the sort: all but its last are of the same length.
        for (window, mean) in windows.iter().zip(means) {
            let pieces = window.ids.len() as f32 - 2.0;
            for (sum, value) in vectors[window.text].iter_mut().zip(mean) {
                *sum += value * pieces;
            }
        }
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }

    fn means(&self, pack: &[Window]) -> Vec<Vec<f32>> {
        let ids: Vec<&[u32]> = pack.iter().map(|window| &window.ids[..]).collect();
        self.bert.means(&ids)
    }
}

/// Neighbours in the sort, up to `PACK` tokens or a core's share of all.
fn packs(windows: &[Window]) -> Vec<&[Window]> {
    let total: usize = windows.iter().map(|window| window.ids.len()).sum();
    let share = total.div_ceil(rayon::current_num_threads()).min(PACK);
    let mut packs = Vec::new();
    let mut rest = windows;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = rest.iter().take_while(|window| {
            tokens += window.ids.len();
            tokens <= share
        });
        let (pack, after) = rest.split_at(fits.count().max(1));
        packs.push(pack);
        rest = after;
    }
    packs
}

/// Gives a vector unit length; one that has no direction gets the first axis.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length.is_normal() {
        vector.iter_mut().for_each(|value| *value /= length);
    } else {
        vector.fill(0.0);
        vector[..1].fill(1.0);
    }
}
