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
//! some 64 passages at a time keep all cores busy. The model's arithmetic is the package `e5`; here it gets its file, its
//! prefixes, batches, and `centring`. `remote` is its stand-in over HTTP.

mod centring;
mod remote;

use std::cmp::Reverse;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use e5::{DIMENSIONS, Model, Window};
use rayon::prelude::*;

pub use self::centring::Centring;
pub use self::remote::{RemoteEmbedder, RemoteSettings};
use super::{EmbedError, Embedder, MatchFloor, TextRole};
use crate::domain::lang::Lang;

static MODEL: &[u8] = include_bytes!("../../../assets/embedding/multilingual-e5-small-en-zh-q4_0.gguf");
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
    model: Model<'static>,
    centring: Centring,
}

impl EmbeddedModel {
    /// Reads the model's vocabulary and small parameters; the weights stay as they are.
    pub fn load() -> Result<Self, EmbedError> {
        let model = Model::new(MODEL).map_err(|error| EmbedError::Model(error.to_string()))?;
        Ok(Self(Arc::new(Parts { model, centring: Centring::parse(MEANS, DIMENSIONS)? })))
    }

    /// The model of this process, read when first asked for.
    pub fn shared() -> Result<Self, EmbedError> {
        static SHARED: OnceLock<Result<EmbeddedModel, String>> = OnceLock::new();
        SHARED.get_or_init(|| Self::load().map_err(|error| error.to_string())).clone().map_err(EmbedError::Model)
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

    /// Measured with 225 English, Chinese and mixed queries, on centred vectors.
    fn match_floor(&self) -> MatchFloor {
        MatchFloor { with_terms: 0.18, without_terms: 0.24 }
    }

    async fn embed(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let (parts, texts) = (Arc::clone(&self.0), texts.to_vec());
        tokio::task::spawn_blocking(move || parts.vectors(role, &texts))
            .await
            .map_err(|error| EmbedError::Model(format!("the embedding was stopped: {error}")))?
    }

    fn centre(&self, vector: &mut [f32], role: TextRole, lang: Lang) {
        self.0.centring.centre(vector, role, lang);
    }
}

/// A part of a text, and the text's place among its fellows.
struct Part {
    text: usize,
    window: Window,
}

impl Parts {
    fn vectors<T: AsRef<str> + Sync>(&self, role: TextRole, texts: &[T]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let cut: Vec<_> = texts.par_iter().map(|text| self.model.windows(prefix(role), text.as_ref())).collect();
        let of_text =
            |(text, windows): (usize, Vec<Window>)| windows.into_iter().map(move |window| Part { text, window });
        let mut parts: Vec<Part> = cut.into_iter().enumerate().flat_map(of_text).collect();
        // The longest first, so that no long one is left for the end; the sort is stable.
        parts.sort_by_key(|part| Reverse(part.window.tokens()));
        let means: Vec<Vec<f32>> = packs(&parts).into_par_iter().flat_map(|pack| self.means(pack)).collect();
        let mut vectors = vec![vec![0.0; DIMENSIONS]; texts.len()];
        for (part, mean) in parts.iter().zip(means) {
            let pieces = part.window.pieces().len() as f32;
            for (sum, value) in vectors[part.text].iter_mut().zip(mean) {
                *sum += value * pieces;
            }
        }
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }

    fn means(&self, pack: &[Part]) -> Vec<Vec<f32>> {
        let windows: Vec<&Window> = pack.iter().map(|part| &part.window).collect();
        self.model.means(&windows)
    }
}

/// What the model was trained to find in front of a text.
fn prefix(role: TextRole) -> &'static str {
    match role {
        TextRole::Passage => "passage: ",
        TextRole::Query => "query: ",
    }
}

/// Neighbours in the sort, up to `PACK` tokens or a core's share of all.
fn packs(parts: &[Part]) -> Vec<&[Part]> {
    let total: usize = parts.iter().map(|part| part.window.tokens()).sum();
    let share = total.div_ceil(rayon::current_num_threads()).min(PACK);
    let mut packs = Vec::new();
    let mut rest = parts;
    while !rest.is_empty() {
        let mut tokens = 0;
        let fits = rest.iter().take_while(|part| {
            tokens += part.window.tokens();
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

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    /// Texts with the ids and vectors that the source's own engine gives them.
    const REFERENCE: &str = include_str!("../../../tests/fixtures/embedding/reference.jsonl");

    #[derive(Deserialize)]
    struct Sample {
        mode: String,
        text: String,
        ids: Vec<u32>,
        vector: Vec<f32>,
    }

    fn samples() -> Vec<(TextRole, Sample)> {
        let role = |sample: &Sample| if sample.mode == "query" { TextRole::Query } else { TextRole::Passage };
        REFERENCE
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .map(|sample| (role(&sample), sample))
            .collect()
    }

    fn model() -> EmbeddedModel {
        EmbeddedModel::shared().unwrap()
    }

    fn cosine(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn is_unit(vector: &[f32]) -> bool {
        vector.len() == DIMENSIONS && (cosine(vector, vector) - 1.0).abs() < 1e-4
    }

    fn windows(role: TextRole, text: &str) -> Vec<Window> {
        model().0.model.windows(prefix(role), text)
    }

    #[test]
    fn ids_are_those_of_the_published_tokenizer() {
        for (role, sample) in samples() {
            let found: Vec<u32> = windows(role, &sample.text).iter().flat_map(Window::pieces).copied().collect();
            assert_eq!(found, sample.ids[1..sample.ids.len() - 1], "{}", sample.text);
        }
    }

    #[test]
    fn vectors_are_those_of_the_source_engine() {
        for (role, sample) in samples() {
            let vectors = model().vectors(role, &[&sample.text]).unwrap();
            let cosine = cosine(&vectors[0], &sample.vector);
            assert!(cosine >= 0.9995, "{cosine} for {}", sample.text);
        }
    }

    #[test]
    fn a_text_has_the_same_vector_alone_and_in_any_batch() {
        let texts: Vec<String> = samples().into_iter().map(|(_, sample)| sample.text).take(8).collect();
        let together = model().vectors(TextRole::Passage, &texts).unwrap();
        for (text, vector) in texts.iter().zip(together) {
            assert_eq!(model().vectors(TextRole::Passage, &[text]).unwrap(), [vector], "{text}");
        }
    }

    #[test]
    fn strange_texts_get_finite_vectors_of_unit_length() {
        let texts = [
            "",
            " \t\r\n\u{3000}",
            "\0\u{1}\u{1b}[31m\u{7f}",
            "<s></s><pad><unk>",
            "привет かな 한국어",
            "👩\u{200d}💻🚀",
            "\u{2581}\u{2581}",
        ];
        let vectors = model().vectors(TextRole::Query, &texts).unwrap();
        assert!(vectors.iter().all(|vector| is_unit(vector)));
        assert!(vectors.iter().flatten().all(|value| value.is_finite()));
    }

    #[test]
    fn no_texts_give_no_vectors() {
        assert_eq!(model().vectors::<&str>(TextRole::Query, &[]).unwrap(), Vec::<Vec<f32>>::new());
    }

    #[test]
    fn a_long_text_is_cut_into_windows_and_their_number_is_bounded() {
        let sizes =
            |text: &str| -> Vec<usize> { windows(TextRole::Passage, text).iter().map(Window::tokens).collect() };
        assert_eq!(sizes(&"磁盘 ".repeat(300)), [512, 395]);
        for text in ["a b ".repeat(250_000), "磁".repeat(350_000), "-".repeat(1_000_000), " ".repeat(1_000_000)] {
            assert!(sizes(&text).len() <= 64, "{}", &text[..3]);
        }
    }

    #[test]
    fn what_a_special_token_is_called_is_plain_text() {
        let found = windows(TextRole::Query, "</s> <unk>");
        assert!(found[0].pieces().iter().all(|id| *id > 3), "{found:?}");
    }

    #[tokio::test]
    async fn centred_vectors_tell_what_is_alike_across_languages() {
        let texts = ["磁盘空间不足", "The disk of the node is full.", "How do I bake bread?"].map(String::from);
        let vectors = model().embed_centred(TextRole::Passage, &texts).await.unwrap();
        assert!(vectors.iter().all(|vector| is_unit(vector)));
        assert!(cosine(&vectors[0], &vectors[1]) > cosine(&vectors[0], &vectors[2]));
    }

    #[test]
    fn packs_hold_neighbours_up_to_their_limit_and_lose_none() {
        let part = |repeats: usize| Part { text: 0, window: windows(TextRole::Query, &" a".repeat(repeats)).remove(0) };
        let parts = [500, 400, 200, 100, 3].map(part);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let sizes: Vec<usize> = pool.install(|| packs(&parts)).iter().map(|pack| pack.len()).collect();
        assert_eq!(sizes, [1, 1, 3]);
    }
}
