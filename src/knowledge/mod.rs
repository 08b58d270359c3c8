//! Runbooks: documents are split into passages, embedded, stored, and found again.

use async_trait::async_trait;

/// What a text is to the embedding model: the two get different prefixes and means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextRole {
    Passage,
    Query,
}

/// A model that could not embed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EmbedError(pub String);

/// Turns texts into vectors of unit length.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names model, revision and dimension; tables record it, and a mismatch asks for a rebuild.
    fn id(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// One vector per text, in the order of the texts, each of `dimensions()` values and unit length.
    async fn embed(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;
}
