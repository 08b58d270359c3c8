//! Embeddings over HTTP: any service that speaks OpenAI's `/embeddings`.
//!
//! In: texts, which pass the filter for what leaves the machine. Out: one vector of unit length for each, in their order.
//! Requests are cut by count and size, and halved where a server finds them too large.

use std::collections::VecDeque;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use lancedb::arrow::arrow_cast::base64::{BASE64_STANDARD, Engine};
use serde_json::{Value, json};

use super::super::service::{Service, ServiceError, ServiceSettings};
use super::super::{EmbedError, Embedder, MatchFloor, TextRole};
use super::normalise;
use crate::domain::text::head;
use crate::http::HttpError;

/// Texts of a request: some services refuse more.
const MAX_TEXTS: usize = 64;
/// Bytes of the texts of a request; a server's own limit is found by halving.
const MAX_BYTES: usize = 256 << 10;
/// A single text that is too long is cut in half until it is no longer than this.
const MIN_CUT_CHARS: usize = 200;

/// How the service is asked.
#[derive(Clone)]
pub struct RemoteSettings {
    pub service: ServiceSettings,
    /// `None`: as the first answer has it.
    pub dimensions: Option<usize>,
    /// Says `passage` or `query` with each request, as NVIDIA NIM wants to know it.
    pub input_type: bool,
    /// The cosine under which a passage is no match.
    pub floor: f64,
}

/// An embedding service.
pub struct RemoteEmbedder {
    service: Service,
    wanted: Option<usize>,
    input_type: bool,
    floor: f64,
    /// The dimension and the name that tables know it by.
    found: OnceLock<(usize, String)>,
    /// Whether the service was found to know no `dimensions`.
    refuses_dimensions: AtomicBool,
    /// Texts that a request may have; less once the service found one too large.
    most_texts: AtomicUsize,
}

impl RemoteEmbedder {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(settings: RemoteSettings) -> Result<Self, EmbedError> {
        let embedder = Self {
            service: Service::new(settings.service, "/embeddings")?,
            wanted: settings.dimensions,
            input_type: settings.input_type,
            floor: settings.floor,
            found: OnceLock::new(),
            refuses_dimensions: AtomicBool::new(false),
            most_texts: AtomicUsize::new(MAX_TEXTS),
        };
        if let Some(dimensions) = settings.dimensions {
            embedder.settle(dimensions);
        }
        Ok(embedder)
    }

    /// Finds out the dimension, where it is not configured: from the name that a table recorded if this embedder made
    /// it, else by embedding one word.
    pub async fn find_dimensions(&self, recorded: Option<&str>) -> Result<(), EmbedError> {
        if self.found.get().is_some() {
            return Ok(());
        }
        let own = recorded.and_then(|name| name.strip_prefix(&self.stem()));
        match own.and_then(|dimensions| dimensions.parse().ok()) {
            Some(dimensions) => {
                self.settle(dimensions);
                Ok(())
            }
            None => self.embed(TextRole::Query, &["ping".to_string()]).await.map(|_| ()),
        }
    }

    fn settle(&self, dimensions: usize) -> usize {
        self.found.get_or_init(|| (dimensions, format!("{}{dimensions}", self.stem()))).0
    }

    /// What the vectors depend on but for the dimension. The address is no part of it: a model may move.
    fn stem(&self) -> String {
        let typed = if self.input_type { "typed/" } else { "" };
        format!("openai/{}/{typed}", self.service.settings.model)
    }

    async fn request(&self, role: TextRole, texts: &[&str]) -> Result<Vec<Vec<f32>>, ServiceError> {
        let sent: Vec<&str> = texts.iter().map(|text| if text.trim().is_empty() { "-" } else { *text }).collect();
        let mut body = json!({ "model": self.service.settings.model, "input": sent, "encoding_format": "float" });
        if self.input_type {
            body["input_type"] = json!(match role {
                TextRole::Passage => "passage",
                TextRole::Query => "query",
            });
            body["truncate"] = json!("END");
        }
        if let Some(dimensions) = self.wanted.filter(|_| !self.refuses_dimensions.load(Ordering::Relaxed)) {
            body["dimensions"] = json!(dimensions);
        }
        let answer = match self.service.post(&body).await {
            // A model that has one dimension only may refuse to be told even that one.
            Err(ServiceError::Http(HttpError::Status { status: 400 | 422, body: text, .. }))
                if body.get("dimensions").is_some() && text.contains("dimension") =>
            {
                self.refuses_dimensions.store(true, Ordering::Relaxed);
                body.as_object_mut().map(|body| body.remove("dimensions"));
                self.service.post(&body).await?
            }
            other => other?,
        };
        self.checked(vectors(&answer, texts.len()).map_err(ServiceError::Answer)?).map_err(ServiceError::Answer)
    }

    /// All of one dimension, which stays the same, and of unit length.
    fn checked(&self, mut vectors: Vec<Vec<f32>>) -> Result<Vec<Vec<f32>>, String> {
        for vector in &mut vectors {
            let expected = self.settle(vector.len());
            if vector.len() != expected {
                let found = vector.len();
                return Err(match self.wanted {
                    Some(_) => format!(
                        "vectors of {found} dimensions, and [embedder] dimensions is {expected}: set it to {found}, or choose another model"
                    ),
                    None => format!(
                        "vectors of {found} dimensions where it had {expected} before: if the model was changed, run `oncall index --rebuild`"
                    ),
                });
            }
            normalise(vector);
        }
        Ok(vectors)
    }
}

#[async_trait]
impl Embedder for RemoteEmbedder {
    fn id(&self) -> &str {
        self.found.get().map_or("openai/unknown", |(_, id)| id)
    }

    fn dimensions(&self) -> usize {
        self.found.get().map_or(0, |(dimensions, _)| *dimensions)
    }

    fn match_floor(&self) -> MatchFloor {
        // As far apart as the measured ones of the embedded model.
        MatchFloor { with_terms: self.floor.min(0.75 * self.floor), without_terms: self.floor }
    }

    async fn embed(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError> {
        let texts: Vec<String> = texts.iter().map(|text| (self.service.settings.outgoing)(text)).collect();
        let mut rest: VecDeque<&str> = texts.iter().map(String::as_str).collect();
        let mut all = Vec::with_capacity(texts.len());
        while !rest.is_empty() {
            let batch = next_batch(&mut rest, self.most_texts.load(Ordering::Relaxed));
            match self.request(role, &batch).await {
                Ok(vectors) => all.extend(vectors),
                Err(error) if is_too_large(&error) && batch.len() > 1 => {
                    self.most_texts.store(batch.len().div_ceil(2), Ordering::Relaxed);
                    batch.into_iter().rev().for_each(|text| rest.push_front(text));
                }
                Err(error) if is_too_large(&error) && batch[0].chars().count() > MIN_CUT_CHARS => {
                    let half = head(batch[0], batch[0].chars().count() / 2);
                    tracing::info!(
                        "a text of {} bytes is too long for the embedding service: its half is embedded",
                        batch[0].len()
                    );
                    rest.push_front(half);
                }
                Err(error) => {
                    return Err(match self.service.explain(error) {
                        EmbedError::Service(why) => {
                            EmbedError::Service(format!("{why}; with --offline the embedded model is used instead"))
                        }
                        other => other,
                    });
                }
            }
        }
        Ok(all)
    }
}

/// The next texts that go together; at least one.
fn next_batch<'a>(rest: &mut VecDeque<&'a str>, most: usize) -> Vec<&'a str> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while let Some(text) = rest.front() {
        bytes += text.len();
        if !batch.is_empty() && (batch.len() >= most || bytes > MAX_BYTES) {
            break;
        }
        batch.extend(rest.pop_front());
    }
    batch
}

/// Whether less text may be taken. Servers say it with 413, or with 400 and words.
fn is_too_large(error: &ServiceError) -> bool {
    const WORDS: [&str; 9] = [
        "too large",
        "too long",
        "too many",
        "exceed",
        "maximum",
        "max_tokens",
        "context length",
        "batch size",
        "limit",
    ];
    match error {
        ServiceError::Http(HttpError::Status { status: 413, .. }) => true,
        ServiceError::Http(HttpError::Status { status: 400 | 422, body, .. }) => {
            let body = body.to_ascii_lowercase();
            WORDS.iter().any(|word| body.contains(word))
        }
        _ => false,
    }
}

/// One vector per text, in the order of the texts. The error says what is wrong with the answer.
fn vectors(answer: &Value, texts: usize) -> Result<Vec<Vec<f32>>, String> {
    let data = answer.get("data").and_then(Value::as_array).ok_or("no `data` with embeddings")?;
    if data.len() != texts {
        return Err(format!("{} embeddings for {texts} texts", data.len()));
    }
    let mut ordered: Vec<Option<Vec<f32>>> = vec![None; texts];
    for (place, item) in data.iter().enumerate() {
        let index = match item.get("index") {
            None | Some(Value::Null) => place,
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()).unwrap_or(usize::MAX),
        };
        let slot = ordered.get_mut(index).ok_or_else(|| format!("an embedding of text {index}, of {texts}"))?;
        let embedding = item.get("embedding").ok_or_else(|| format!("no `embedding` of text {index}"))?;
        let vector = vector(embedding).map_err(|what| format!("an embedding of text {index} {what}"))?;
        if slot.replace(vector).is_some() {
            return Err(format!("two embeddings of text {index}"));
        }
    }
    // As many as texts, each in its place and none twice: all places are taken.
    Ok(ordered.into_iter().flatten().collect())
}

/// Numbers, or their bytes in base64 (little-endian, as OpenAI has them).
fn vector(embedding: &Value) -> Result<Vec<f32>, String> {
    let vector: Vec<f32> = match embedding {
        Value::Array(values) => values
            .iter()
            .map(|value| {
                value.as_f64().map(|value| value as f32).ok_or_else(|| format!("that holds {value}, no number"))
            })
            .collect::<Result<_, _>>()?,
        Value::String(text) => {
            let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|error| format!("in broken base64: {error}"))?;
            if bytes.len() % 4 != 0 {
                return Err(format!("of {} bytes, which are no 32-bit numbers", bytes.len()));
            }
            bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
        }
        _ => return Err("that is neither a list of numbers nor base64".to_string()),
    };
    if vector.is_empty() {
        return Err("without numbers".to_string());
    }
    match vector.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(format!("whose number {at} is not finite")),
        None => Ok(vector),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_put_into_the_order_of_the_texts() {
        let data = |items: Value| vectors(&json!({ "data": items }), 2);
        let swapped = json!([{"index": 1, "embedding": [0.0, 2.0]}, {"index": 0, "embedding": [1, 0]}]);
        assert_eq!(data(swapped), Ok(vec![vec![1.0, 0.0], vec![0.0, 2.0]]));
        let unnumbered = json!([{"embedding": [1.0]}, {"embedding": "AAAAQA=="}]);
        assert_eq!(data(unnumbered), Ok(vec![vec![1.0], vec![2.0]]));
    }

    #[test]
    fn answers_that_are_none_say_why() {
        let error = |items: Value| vectors(&json!({ "data": items }), 2).unwrap_err();
        let with = |first: Value| error(json!([{"index": 0, "embedding": first}, {"index": 1, "embedding": [1.0]}]));
        assert_eq!(vectors(&json!({}), 2).unwrap_err(), "no `data` with embeddings");
        assert_eq!(error(json!([{"embedding": [1.0]}])), "1 embeddings for 2 texts");
        assert_eq!(
            error(json!([{"index": 0, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}])),
            "two embeddings of text 0"
        );
        assert_eq!(
            error(json!([{"index": 7, "embedding": [1.0]}, {"index": 0, "embedding": [1.0]}])),
            "an embedding of text 7, of 2"
        );
        assert_eq!(with(json!([1.0, null])), "an embedding of text 0 that holds null, no number");
        assert_eq!(with(json!([1.0, 1e300])), "an embedding of text 0 whose number 1 is not finite");
        assert_eq!(with(json!([])), "an embedding of text 0 without numbers");
        assert_eq!(with(json!("AAAA")), "an embedding of text 0 of 3 bytes, which are no 32-bit numbers");
        assert_eq!(with(json!("AADAfw==")), "an embedding of text 0 whose number 0 is not finite");
        assert_eq!(with(json!(7)), "an embedding of text 0 that is neither a list of numbers nor base64");
        assert!(with(json!("~")).starts_with("an embedding of text 0 in broken base64: "));
    }

    #[test]
    fn batches_are_cut_by_count_and_by_size() {
        let long = "x".repeat(MAX_BYTES);
        let mut rest: VecDeque<&str> = VecDeque::from(["a", "b", "c", &long, "d", "e"]);
        let mut sizes = Vec::new();
        while !rest.is_empty() {
            sizes.push(next_batch(&mut rest, 2).len());
        }
        assert_eq!(sizes, [2, 1, 1, 2]);
    }
}
