//! Brings the store up to date with the documents: reads, splits, embeds and stores what is new or was changed.
//!
//! In: where the documents are, and how thorough to be. Out: a report; happenings on the way go to the caller. A
//! document that fails is listed and does not stop the others. Each batch of documents is one commit, so that a
//! crash leaves every document as it was or as it is now.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::collect::{Collection, Found, Origin, Trouble, collect, is_built_in};
use super::document::{self, Document};
use super::rows::Row;
use super::split::{ChunkLimits, split};
use super::store::{Store, Stored};
use super::{Embedder, KnowledgeError, TextRole, terms};
use crate::domain::{Chunk, Lang};

/// Changes when the same documents would give other rows: everything is then indexed again.
const LAYOUT: &str = "1";
/// Passages that are embedded at a time: enough to keep all cores busy.
const EMBED_AT_ONCE: usize = 64;
/// How often the terms of the title count.
const TITLE_WEIGHT: usize = 3;
/// Passages after which a batch is committed. Each commit costs a file; what was not committed is lost in a crash.
const COMMIT_AFTER: usize = 128;

/// What to do about documents that are stored already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    /// Take in what is new or was changed.
    Update,
    /// As `Update`, and see whether anything else that is stored was changed.
    Refresh,
    /// As `Update`, and forget what has vanished.
    Prune,
    /// Replace everything that is stored.
    Rebuild,
}

/// Happenings while indexing, for a progress bar.
#[derive(Debug, Clone, PartialEq)]
pub enum IndexEvent {
    /// Another process is indexing; this one waits for it.
    Waiting,
    /// So many documents were found, and so many of them are to be read again.
    Found {
        documents: usize,
        changed: usize,
    },
    /// So many passages were embedded so far, the last of them of this document.
    Embedded {
        source: String,
        chunks: usize,
    },
    Failed(Trouble),
    Skipped(Trouble),
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexReport {
    pub added: usize,
    pub replaced: usize,
    pub unchanged: usize,
    pub pruned: usize,
    pub failed: Vec<Trouble>,
    /// Passed over, and no failure: no text in it, binary, a link back.
    pub skipped: Vec<Trouble>,
    /// Passages embedded in this run.
    pub chunks: usize,
    /// The run was stopped before all was taken in; what was embedded by then is stored, and the next run continues.
    /// A rebuild leaves everything as it was.
    pub interrupted: bool,
}

/// A run of the indexer.
pub(super) struct Indexer<'a> {
    pub store: &'a Store,
    pub embedder: &'a dyn Embedder,
    pub limits: ChunkLimits,
    /// Cancelled: the run ends with a commit of what is embedded.
    pub stop: &'a CancellationToken,
    pub on_event: &'a mut (dyn FnMut(IndexEvent) + Send),
    pub report: IndexReport,
}

/// Whole documents as rows, to be stored in one commit.
#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    /// Keys of the documents that are stored already, in an older form.
    replaced: Vec<String>,
    /// How many of the documents are new.
    added: usize,
}

impl Indexer<'_> {
    pub async fn run(mut self, origin: &Origin, mode: IndexMode) -> Result<IndexReport, KnowledgeError> {
        let stored = if mode == IndexMode::Rebuild { HashMap::new() } else { self.store.stored().await? };
        let mut collection = collect(origin);
        if mode == IndexMode::Refresh {
            add_stored(&mut collection, origin, &stored);
        }
        collection.failed.iter().for_each(|trouble| self.fail(trouble.clone()));
        collection.skipped.iter().for_each(|trouble| self.skip(trouble.clone()));
        let changed = self.changed(&collection, &stored);
        (self.on_event)(IndexEvent::Found { documents: collection.files.len(), changed: changed.len() });
        match mode {
            // A rebuild from nothing would only destroy.
            IndexMode::Rebuild if changed.is_empty() => {}
            IndexMode::Rebuild => self.rebuild(changed).await?,
            IndexMode::Update | IndexMode::Refresh | IndexMode::Prune => self.update(changed, &stored).await?,
        }
        if mode == IndexMode::Prune && !self.report.interrupted {
            let gone = gone(&collection, &stored);
            self.store.delete(&gone).await?;
            self.report.pruned = gone.len();
        }
        Ok(self.report)
    }

    /// The documents that are new or were changed. What cannot be read keeps its old passages.
    fn changed(&mut self, collection: &Collection, stored: &HashMap<String, Stored>) -> Vec<Found> {
        let mut changed = Vec::new();
        for found in &collection.files {
            match found.read() {
                Err(why) => self.fail(Trouble { path: found.source.clone(), why }),
                Ok(bytes) => {
                    let hash = self.content_hash(found, &bytes);
                    match stored.get(&found.key) {
                        Some(stored) if stored.content_hash == hash => self.report.unchanged += 1,
                        _ => changed.push(found.clone()),
                    }
                }
            }
        }
        changed
    }

    async fn update(&mut self, changed: Vec<Found>, stored: &HashMap<String, Stored>) -> Result<(), KnowledgeError> {
        let (mut waiting, mut embedded) = (Batch::default(), Batch::default());
        for found in &changed {
            let is_stored = stored.contains_key(&found.key);
            let Some(mut rows) = self.rows(found) else {
                // What has lost its text, though it can be read, has no passages any more.
                if is_stored {
                    embedded.replaced.push(found.key.clone());
                }
                continue;
            };
            waiting.rows.append(&mut rows);
            if is_stored {
                waiting.replaced.push(found.key.clone());
            } else {
                waiting.added += 1;
            }
            if waiting.rows.len() >= EMBED_AT_ONCE {
                self.embed_batch(&mut waiting, &mut embedded).await?;
            }
            if self.report.interrupted {
                break;
            }
            if embedded.rows.len() >= COMMIT_AFTER {
                self.commit(std::mem::take(&mut embedded)).await?;
            }
        }
        self.embed_batch(&mut waiting, &mut embedded).await?;
        self.commit(embedded).await
    }

    /// Moves whole documents from those that wait to those that are embedded; none of them when the run is stopped.
    async fn embed_batch(&mut self, waiting: &mut Batch, embedded: &mut Batch) -> Result<(), KnowledgeError> {
        let mut batch = std::mem::take(waiting);
        self.embed(&mut batch.rows).await?;
        if self.report.interrupted {
            return Ok(());
        }
        self.report.added += batch.added;
        self.report.replaced += batch.replaced.len();
        embedded.rows.append(&mut batch.rows);
        embedded.replaced.append(&mut batch.replaced);
        Ok(())
    }

    async fn commit(&mut self, batch: Batch) -> Result<(), KnowledgeError> {
        match (batch.rows.is_empty(), batch.replaced.is_empty()) {
            (true, _) => self.store.delete(&batch.replaced).await?,
            (false, true) => self.store.add(&batch.rows).await?,
            (false, false) => self.store.replace(&batch.rows, &batch.replaced).await?,
        }
        Ok(())
    }

    /// Everything goes into one commit, which happens only when all is embedded: until then the old table stands.
    async fn rebuild(&mut self, documents: Vec<Found>) -> Result<(), KnowledgeError> {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let store = self.store;
        let embed_all = async {
            let sent = self.embed_into(documents, &sender).await;
            if sent.is_err() || self.report.interrupted {
                // The stream must not end well, or half a table would be committed.
                let _ = sender.send(None).await;
            }
            drop(sender);
            sent
        };
        let (embedded, written) = tokio::join!(embed_all, store.rebuild(receiver));
        if self.report.interrupted {
            // That nothing was written is what was wanted.
            self.report.added = 0;
            return embedded;
        }
        embedded.and(written.map_err(KnowledgeError::from))
    }

    async fn embed_into(
        &mut self,
        documents: Vec<Found>,
        sender: &tokio::sync::mpsc::Sender<Option<Vec<Row>>>,
    ) -> Result<(), KnowledgeError> {
        let mut waiting = Vec::new();
        for (at, found) in documents.iter().enumerate() {
            if let Some(rows) = self.rows(found) {
                self.report.added += 1;
                waiting.extend(rows);
            }
            if waiting.len() >= EMBED_AT_ONCE || at + 1 == documents.len() {
                self.embed(&mut waiting).await?;
                if self.report.interrupted {
                    return Ok(());
                }
                // A receiver that is gone has an error of its own, which is reported.
                let _ = sender.send(Some(std::mem::take(&mut waiting))).await;
            }
        }
        Ok(())
    }

    /// Reads and splits a document; its rows have no vectors yet. `None` when it has no text or cannot be read.
    fn rows(&mut self, found: &Found) -> Option<Vec<Row>> {
        let bytes = match found.read() {
            Ok(bytes) => bytes,
            Err(why) => {
                self.fail(Trouble { path: found.source.clone(), why });
                return None;
            }
        };
        match document::read(&found.source, &bytes) {
            Ok(document) => Some(rows_of(found, &document, self.content_hash(found, &bytes), self.limits)),
            Err(no_text) => {
                self.skip(Trouble { path: found.source.clone(), why: no_text.to_string() });
                None
            }
        }
    }

    /// Gives rows their vectors, a part at a time, so that progress shows. Stopped, it leaves them without and says so in
    /// the report.
    async fn embed(&mut self, rows: &mut [Row]) -> Result<(), KnowledgeError> {
        for part in rows.chunks_mut(EMBED_AT_ONCE) {
            let texts: Vec<String> = part.iter().map(|row| passage_text(&row.chunk)).collect();
            let vectors = tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    self.report.interrupted = true;
                    return Ok(());
                }
                vectors = self.embedder.embed(TextRole::Passage, &texts) => vectors?,
            };
            for (row, mut vector) in part.iter_mut().zip(vectors) {
                self.embedder.centre(&mut vector, TextRole::Passage, Lang::of(&row.chunk.content));
                row.vector = vector;
            }
            self.report.chunks += part.len();
            let source = part.last().map(|row| row.chunk.source.clone()).unwrap_or_default();
            (self.on_event)(IndexEvent::Embedded { source, chunks: self.report.chunks });
        }
        Ok(())
    }

    /// Of all that the rows of a document depend on.
    fn content_hash(&self, found: &Found, bytes: &[u8]) -> String {
        let ChunkLimits { size, overlap, min } = self.limits;
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{LAYOUT}\0{size}\0{overlap}\0{min}\0{}\0", found.source).as_bytes());
        hasher.update(bytes);
        hasher.finalize().to_hex().to_string()
    }

    fn fail(&mut self, trouble: Trouble) {
        (self.on_event)(IndexEvent::Failed(trouble.clone()));
        self.report.failed.push(trouble);
    }

    fn skip(&mut self, trouble: Trouble) {
        (self.on_event)(IndexEvent::Skipped(trouble.clone()));
        self.report.skipped.push(trouble);
    }
}

/// Who indexed documents of their own gets the changes in those, and not the runbooks of the program beside them.
fn add_stored(collection: &mut Collection, origin: &Origin, stored: &HashMap<String, Stored>) {
    if *origin == Origin::BuiltIn && !stored.is_empty() && !stored.keys().any(|key| is_built_in(key)) {
        collection.files.clear();
    }
    let found: HashSet<String> = collection.files.iter().map(|file| file.key.clone()).collect();
    let mut others: Vec<_> = stored.iter().filter(|(key, _)| !found.contains(*key)).collect();
    others.sort_by_key(|(key, _)| *key);
    others.into_iter().for_each(|(key, stored)| collection.add_stored(key, &stored.source));
}

/// What is stored from below the roots that were read, and was not found there.
fn gone(collection: &Collection, stored: &HashMap<String, Stored>) -> Vec<String> {
    let found: HashSet<&str> = collection.files.iter().map(|file| file.key.as_str()).collect();
    stored.keys().filter(|key| collection.covers(key) && !found.contains(key.as_str())).cloned().collect()
}

fn rows_of(found: &Found, document: &Document, content_hash: String, limits: ChunkLimits) -> Vec<Row> {
    let split = split(&document.text, document.syntax, limits);
    let other_title = document.front_matter.get("title").and_then(Value::as_str);
    let file_name = file_stem(&found.source);
    let named = split.title.as_deref().or(other_title);
    let title = named.unwrap_or(file_name);
    let mut metadata = document.front_matter.clone();
    if let Some(encoding) = document.encoding {
        metadata.insert("encoding".to_string(), json!(encoding));
    }
    let metadata = Value::Object(metadata).to_string();
    let names = Names { title: named, file: file_name, other: other_title };
    let passages = split.passages.into_iter().filter(|passage| !document.text[passage.range.clone()].trim().is_empty());
    passages
        .map(|passage| {
            let chunk = Chunk {
                content: passage.content(&document.text).into_owned(),
                source: found.source.clone(),
                title: title.to_string(),
                headings: passage.headings,
                start: passage.range.start,
                end: passage.range.end,
            };
            Row {
                text: search_text(&chunk, &names),
                key: found.key.clone(),
                metadata: metadata.clone(),
                content_hash: content_hash.clone(),
                vector: Vec::new(),
                chunk,
            }
        })
        .collect()
}

/// What a document is called.
struct Names<'a> {
    /// Its own title; `None` when only the file's name is known, which may say nothing.
    title: Option<&'a str>,
    file: &'a str,
    /// In the front matter.
    other: Option<&'a str>,
}

/// The terms of a passage. Its title counts more than its text: it says what the whole document is about.
fn search_text(chunk: &Chunk, names: &Names) -> String {
    let title = std::iter::repeat_n(names.title, TITLE_WEIGHT).flatten();
    let headings = own_headings(chunk);
    let others = [Some(names.file), names.other].into_iter().flatten().filter(|name| Some(*name) != names.title);
    let parts = std::iter::once(&*chunk.content).chain(title).chain(headings).chain(others);
    parts.map(terms::joined_terms).collect::<Vec<_>>().join(" ")
}

/// What the model reads: the names above a passage, spelled out, then the passage. A mere file name is no such name.
fn passage_text(chunk: &Chunk) -> String {
    let is_file_name = chunk.title == file_stem(&chunk.source) && !chunk.headings.contains(&chunk.title);
    let title = Some(chunk.title.as_str()).filter(|_| !is_file_name);
    let names: Vec<String> = title.into_iter().chain(own_headings(chunk)).map(terms::spelled_out).collect();
    if names.is_empty() { chunk.content.clone() } else { format!("{}\n{}", names.join(" > "), chunk.content) }
}

fn file_stem(source: &str) -> &str {
    Path::new(source).file_stem().and_then(|name| name.to_str()).unwrap_or(source)
}

/// The headings above a passage but for the document's title.
fn own_headings(chunk: &Chunk) -> impl Iterator<Item = &str> {
    chunk.headings.iter().map(String::as_str).filter(|heading| *heading != chunk.title)
}
