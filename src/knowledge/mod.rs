//! Runbooks: documents are split into passages, embedded, stored, and found again.
//!
//! In reading order, which is the order of the data flow: `collect` finds documents, `document` decodes them, `split`
//! cuts them, `embed` turns passages into vectors, `store` keeps them as `rows`, `index` does all this for what has
//! changed, and `retrieve` finds passages again by vectors and by `terms`, which `rerank` may order anew. `incidents` keeps
//! what was learnt beside them. `service` is how embeddings and reranking over HTTP are spoken to.

pub mod collect;
pub mod document;
pub mod embed;
mod incidents;
pub mod index;
mod rerank;
mod retrieve;
mod rows;
mod service;
pub mod split;
mod store;
mod terms;
#[cfg(test)]
mod tests;

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use crate::domain::{Found, Hit, Lang, Precedent};
pub use collect::{Origin, Trouble};
use embed::EmbeddedModel;
pub use embed::{RemoteEmbedder, RemoteSettings};
use incidents::Incidents;
pub use incidents::KnownIncident;
pub use index::{IndexEvent, IndexMode, IndexReport};
pub use rerank::{OnFailure, Reranker};
pub use service::{Outgoing, ServiceSettings};
pub use split::ChunkLimits;
use store::Store;
pub use store::{StoreError, Use};

/// What a text is to the embedding model: the two get different prefixes and means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextRole {
    Passage,
    Query,
}

/// A model that could not embed, or a service that could not help.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The embedded model.
    #[error("{0}")]
    Model(String),
    /// A service that cannot be reached, is overloaded, or answers nonsense.
    #[error("{0}")]
    Service(String),
    /// A service that would do with other settings; the user's to mend.
    #[error("{0}")]
    Settings(String),
}

/// The cosines of query and passage under which a passage is no match, unless it names an identifier of the query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatchFloor {
    /// For passages with a term of the query.
    pub with_terms: f64,
    /// Without a term in common, two texts of the same trade still have something of each other.
    pub without_terms: f64,
}

/// Turns texts into vectors of unit length.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Names model, revision and dimension; tables record it, and a mismatch asks for a rebuild.
    fn id(&self) -> &str;

    fn dimensions(&self) -> usize;

    /// Where its cosines stop to mean anything.
    fn match_floor(&self) -> MatchFloor;

    /// One vector per text, in the order of the texts, each of `dimensions()` values and unit length.
    async fn embed(&self, role: TextRole, texts: &[String]) -> Result<Vec<Vec<f32>>, EmbedError>;

    /// Moves a vector so that languages share one centre, and cosines mean the same across them. An embedder whose
    /// means are not known leaves it where it is.
    fn centre(&self, _vector: &mut [f32], _role: TextRole, _lang: Lang) {}
}

/// Which vector index is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IndexKind {
    /// None for small tables, which are scanned; `IvfFlat` from 50,000 rows up.
    #[default]
    Auto,
    None,
    IvfFlat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VectorIndex {
    pub kind: IndexKind,
    pub lists: usize,
}

impl Default for VectorIndex {
    fn default() -> Self {
        Self { kind: IndexKind::Auto, lists: 128 }
    }
}

/// What can be set about the knowledge base.
#[derive(Debug, Clone, PartialEq)]
pub struct KnowledgeSettings {
    /// Documents that are indexed when no path is given.
    pub paths: Vec<PathBuf>,
    /// A folder, or a URL such as `s3://bucket/prefix`.
    pub store: String,
    pub top_k: usize,
    pub chunk: ChunkLimits,
    pub index: VectorIndex,
}

/// Why the knowledge base cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KnowledgeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Embed(#[from] EmbedError),
    #[error("cannot lock {path}: {error}")]
    Lock { path: String, error: std::io::Error },
}

/// The knowledge base: documents go in, passages that answer a query come out. Handles may be shared.
pub struct Knowledge {
    settings: KnowledgeSettings,
    embedder: Arc<dyn Embedder>,
    reranker: Option<Reranker>,
    store: Store,
    stop: CancellationToken,
}

impl Knowledge {
    /// Opens the store with this embedder. A store of another embedder is refused, unless it is to be rebuilt.
    pub async fn open(
        settings: KnowledgeSettings,
        embedder: Arc<dyn Embedder>,
        use_as: Use,
    ) -> Result<Self, KnowledgeError> {
        let opened = Store::open(&settings.store).await?;
        let store = opened.for_embedder(embedder.id(), embedder.dimensions(), use_as).await?;
        Ok(Self { settings, embedder, reranker: None, store, stop: CancellationToken::new() })
    }

    /// As [`Self::open`] with the model that is compiled in, which loads while the store opens.
    pub async fn open_embedded(settings: KnowledgeSettings, use_as: Use) -> Result<Self, KnowledgeError> {
        let loading = tokio::task::spawn_blocking(EmbeddedModel::shared);
        let opened = Store::open(&settings.store).await;
        let model =
            loading.await.map_err(|error| EmbedError::Model(format!("the model's loading was stopped: {error}")))??;
        let store = opened?.for_embedder(model.id(), model.dimensions(), use_as).await?;
        Ok(Self { settings, embedder: Arc::new(model), reranker: None, store, stop: CancellationToken::new() })
    }

    /// As [`Self::open`] with a service, which is asked for its dimension where neither the configuration nor the store
    /// tells it.
    pub async fn open_remote(
        settings: KnowledgeSettings,
        embedder: RemoteEmbedder,
        use_as: Use,
    ) -> Result<Self, KnowledgeError> {
        let opened = Store::open(&settings.store).await?;
        let recorded = if use_as == Use::Rebuild { None } else { opened.recorded_embedder().await? };
        embedder.find_dimensions(recorded.as_deref()).await?;
        let store = opened.for_embedder(embedder.id(), embedder.dimensions(), use_as).await?;
        Ok(Self { settings, embedder: Arc::new(embedder), reranker: None, store, stop: CancellationToken::new() })
    }

    /// Has candidates ordered anew before the best are chosen.
    pub fn with_reranker(mut self, reranker: Reranker) -> Self {
        self.reranker = Some(reranker);
        self
    }

    /// Cancelled, it ends indexing soon, with what is embedded stored, and no more is indexed through this handle.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    pub fn settings(&self) -> &KnowledgeSettings {
        &self.settings
    }

    /// Where documents come from when nobody says: the configured paths, else `docs-kb` below the working folder, else
    /// the runbooks that are compiled in.
    pub fn default_origin(&self) -> Origin {
        let local = Path::new("docs-kb");
        match &self.settings.paths {
            paths if !paths.is_empty() => Origin::Paths(paths.clone()),
            _ if local.is_dir() => Origin::Paths(vec![local.to_path_buf()]),
            _ => Origin::BuiltIn,
        }
    }

    /// Brings the store up to date with the documents. Waits while another process does so.
    pub async fn index(
        &self,
        origin: &Origin,
        mode: IndexMode,
        on_event: &mut (dyn FnMut(IndexEvent) + Send),
    ) -> Result<IndexReport, KnowledgeError> {
        let _lock = match self.try_lock()? {
            Locking::Free(lock) => lock,
            Locking::Busy(file, path) => {
                on_event(IndexEvent::Waiting);
                let locked = tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await;
                let lock_error = |error| KnowledgeError::Lock { path, error };
                Some(locked.map_err(std::io::Error::other).flatten().map_err(lock_error)?)
            }
        };
        self.index_locked(origin, mode, on_event).await
    }

    /// Takes in what is new at the default place and whatever was changed of what is stored: before a search, so that it
    /// sees today's documents.
    /// `None`: another process is at it, and what is stored so far is used.
    pub async fn refresh(
        &self,
        on_event: &mut (dyn FnMut(IndexEvent) + Send),
    ) -> Result<Option<IndexReport>, KnowledgeError> {
        match self.try_lock()? {
            Locking::Free(_lock) => {
                self.index_locked(&self.default_origin(), IndexMode::Refresh, on_event).await.map(Some)
            }
            Locking::Busy(..) if !self.is_empty().await? => Ok(None),
            Locking::Busy(..) => self.index(&self.default_origin(), IndexMode::Refresh, on_event).await.map(Some),
        }
    }

    async fn index_locked(
        &self,
        origin: &Origin,
        mode: IndexMode,
        on_event: &mut (dyn FnMut(IndexEvent) + Send),
    ) -> Result<IndexReport, KnowledgeError> {
        self.store.refresh().await?;
        let (store, embedder) = (&self.store, &*self.embedder);
        let (limits, stop) = (self.settings.chunk, &self.stop);
        let indexer = index::Indexer { store, embedder, limits, stop, on_event, report: IndexReport::default() };
        let report = indexer.run(origin, mode).await?;
        // Tidying takes its time and may as well be done by the next run.
        if !report.interrupted {
            self.store.tidy(self.settings.index).await?;
        }
        Ok(report)
    }

    /// The passages that answer a query, best first, at most `k`; none where nothing is close enough.
    pub async fn search(&self, query: &str, k: usize) -> Result<Vec<Hit>, KnowledgeError> {
        Ok(self.find(query, k).await?.hits)
    }

    /// The same, with how good the search was.
    pub async fn find(&self, query: &str, k: usize) -> Result<Found, KnowledgeError> {
        retrieve::search(&self.store, &*self.embedder, self.reranker.as_ref(), query, k).await
    }

    pub async fn is_empty(&self) -> Result<bool, KnowledgeError> {
        Ok(self.store.count().await? == 0)
    }

    /// How near each text is to a question: cosines, in their order.
    pub async fn similarities(&self, question: &str, texts: &[String]) -> Result<Vec<f64>, KnowledgeError> {
        retrieve::similarities(&*self.embedder, question, texts).await
    }

    /// Keeps an incident whose cause is known, in the place of what was kept of its session.
    pub async fn remember(&self, incident: &KnownIncident) -> Result<(), KnowledgeError> {
        self.incidents().remember(incident).await
    }

    /// Forgets what was kept of a session's incident.
    pub async fn forget(&self, session_id: &str) -> Result<(), KnowledgeError> {
        self.incidents().forget(session_id).await
    }

    /// Known incidents whose alert reads like this text, the most alike first, at most `k`.
    pub async fn alike(&self, symptom: &str, k: usize) -> Result<Vec<Precedent>, KnowledgeError> {
        self.incidents().alike(symptom, k).await
    }

    fn incidents(&self) -> Incidents<'_> {
        Incidents { store: &self.store, embedder: &*self.embedder }
    }

    /// The number of documents.
    pub async fn documents(&self) -> Result<usize, KnowledgeError> {
        Ok(self.store.stored().await?.len())
    }

    /// The documents by path, with the number of passages of each, sorted.
    pub async fn document_list(&self) -> Result<Vec<(String, usize)>, KnowledgeError> {
        let stored = self.store.stored().await?;
        let mut list: Vec<_> = stored.into_values().map(|document| (document.source, document.chunks)).collect();
        list.sort();
        Ok(list)
    }

    /// The number of passages.
    pub async fn passages(&self) -> Result<usize, KnowledgeError> {
        Ok(self.store.count().await?)
    }

    /// One process at a time writes to a local store; the system releases the lock of one that dies. Object stores
    /// order their commits themselves.
    fn try_lock(&self) -> Result<Locking, KnowledgeError> {
        if self.settings.store.contains("://") {
            return Ok(Locking::Free(None));
        }
        let path = Path::new(&self.settings.store).join("index.lock");
        let lock_error = |error| KnowledgeError::Lock { path: path.display().to_string(), error };
        let file = File::options().create(true).append(true).open(&path).map_err(lock_error)?;
        match file.try_lock() {
            Ok(()) => Ok(Locking::Free(Some(file))),
            Err(TryLockError::WouldBlock) => Ok(Locking::Busy(file, path.display().to_string())),
            // A file system without locks, as some network ones are.
            Err(TryLockError::Error(error)) if error.kind() == std::io::ErrorKind::Unsupported => {
                Ok(Locking::Free(None))
            }
            Err(TryLockError::Error(error)) => Err(lock_error(error)),
        }
    }
}

/// The lock of a store, held until dropped; or the file to wait on, with its path.
enum Locking {
    Free(Option<File>),
    Busy(File, String),
}
