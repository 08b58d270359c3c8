//! The table of passages: LanceDB, in a folder or at an object store's URL.
//!
//! In: rows and the keys of the documents they replace, each batch one commit. Out: candidates by vector and by full
//! text, and what is stored of which document. Nothing here knows files, splitting or ranking.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::TryStreamExt;
use lancedb::arrow::arrow_array::RecordBatch;
use lancedb::arrow::arrow_array::cast::AsArray;
use lancedb::arrow::arrow_schema::{Schema, SchemaRef};
use lancedb::arrow::{SendableRecordBatchStream, SimpleRecordBatchStream};
use lancedb::data::scannable::Scannable;
use lancedb::database::CreateTableMode;
use lancedb::expr::{DfExpr, col, is_in, lit};
use lancedb::index::Index;
use lancedb::index::scalar::{FtsIndexBuilder, FullTextSearchQuery};
use lancedb::index::vector::IvfFlatIndexBuilder;
use lancedb::query::{ExecutableQuery, QueryBase, Select};
use lancedb::table::{CompactionOptions, OptimizeAction};
use lancedb::{Connection, Table};
use tokio::sync::mpsc::Receiver;

use super::rows::{self, Candidate, EMBEDDER_KEY, Row};
use super::{IndexKind, VectorIndex};

const TABLE: &str = "chunks";
const TEXT_INDEX: &str = "text_idx";
/// Tables under this many rows are scanned: exact, and fast enough.
const MIN_ROWS_FOR_VECTOR_INDEX: usize = 50_000;
/// Another process's writes are seen after this time at the latest.
const FRESHNESS: Duration = Duration::from_secs(5);
/// Rows that full-text search may have to scan beside its index before the index is brought up to date.
const MAX_UNINDEXED_ROWS: usize = 500;
/// Files of the table at which it is compacted: each commit adds one, and each search opens all.
const MAX_FRAGMENTS: usize = 12;

/// What can go wrong with the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error(
        "the knowledge store {location} was made with the embedder {found}, and the present one is {expected}: run `oncall index --rebuild`"
    )]
    OtherEmbedder { location: String, found: String, expected: String },
    #[error(
        "the disk that holds the knowledge store {location} is full: what was indexed before is still there; free some space, then run `oncall index` again"
    )]
    DiskFull { location: String },
    #[error("the knowledge store {location} cannot be {action}: {why}")]
    Failed { location: String, action: &'static str, why: String },
}

/// An open store. Handles may be kept for long and used at the same time.
pub struct Store {
    connection: Connection,
    location: String,
    embedder: String,
    schema: SchemaRef,
    /// `None` until something was stored.
    table: Mutex<Option<Table>>,
}

/// What is stored of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    pub source: String,
    pub content_hash: String,
    pub chunks: usize,
}

impl Store {
    /// Opens the store at `location`, a folder or a URL; it is created at the first write.
    pub async fn open(location: &str) -> Result<OpenedStore, StoreError> {
        if !location.contains("://") {
            create_private_folder(Path::new(location)).map_err(|error| StoreError::Failed {
                location: location.to_string(),
                action: "created",
                why: error.to_string(),
            })?;
        }
        let failed = |error| failure(location, "opened", &error);
        let connection =
            lancedb::connect(location).read_consistency_interval(FRESHNESS).execute().await.map_err(failed)?;
        let table = open_table(&connection).await.map_err(failed)?;
        Ok(OpenedStore { connection, location: location.to_string(), table })
    }

    /// The database, for tables beside the passages.
    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Whether the stored vectors are this store's embedder's.
    fn check_embedder(&self, found: &Schema) -> Result<(), StoreError> {
        let same_columns = found.fields() == self.schema.fields();
        let recorded = found.metadata().get(EMBEDDER_KEY).map_or("unknown", String::as_str);
        if same_columns && recorded == self.embedder {
            return Ok(());
        }
        let found =
            if recorded == self.embedder { format!("{recorded} in an older layout") } else { recorded.to_string() };
        Err(StoreError::OtherEmbedder { location: self.location.clone(), found, expected: self.embedder.clone() })
    }

    /// The table, if something was stored already.
    async fn table(&self) -> Result<Option<Table>, StoreError> {
        if let Some(table) = self.known_table() {
            return Ok(Some(table));
        }
        let table = open_table(&self.connection).await.map_err(|error| self.failed("opened", &error))?;
        Ok(table.map(|table| self.remember(table)))
    }

    /// Sees what other processes have written.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        match self.table().await? {
            Some(table) => table.checkout_latest().await.map_err(|error| self.failed("read", &error)),
            None => Ok(()),
        }
    }

    fn known_table(&self) -> Option<Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, table: Table) -> Table {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).insert(table).clone()
    }

    /// Rows in the table.
    pub async fn count(&self) -> Result<usize, StoreError> {
        match self.table().await? {
            Some(table) => table.count_rows(None).await.map_err(|error| self.failed("read", &error)),
            None => Ok(0),
        }
    }

    /// What is stored, by document key.
    pub async fn stored(&self) -> Result<HashMap<String, Stored>, StoreError> {
        let mut stored: HashMap<String, Stored> = HashMap::new();
        let Some(table) = self.table().await? else { return Ok(stored) };
        let read = async {
            let query = table.query().select(Select::columns(&[rows::KEY, rows::CONTENT_HASH, rows::SOURCE]));
            query.execute().await?.try_collect::<Vec<_>>().await
        };
        for batch in read.await.map_err(|error| self.failed("read", &error))? {
            let [keys, hashes, sources] = [0, 1, 2].map(|column| batch.column(column).as_string::<i32>());
            for row in 0..batch.num_rows() {
                let entry = stored.entry(keys.value(row).to_string()).or_insert_with(|| Stored {
                    source: sources.value(row).to_string(),
                    content_hash: hashes.value(row).to_string(),
                    chunks: 0,
                });
                entry.chunks += 1;
            }
        }
        Ok(stored)
    }

    /// Puts the passages of documents in the place of what was stored under `keys`, in one commit: a crash leaves
    /// all of the old ones or all of the new ones.
    pub async fn replace(&self, rows: &[Row], keys: &[String]) -> Result<(), StoreError> {
        let batch = self.batch(rows)?;
        let Some(table) = self.table().await? else {
            return self.create(batch, CreateTableMode::Create).await;
        };
        let is_replaced = key_is_one_of(keys);
        let schema = batch.schema();
        let rows = lancedb::arrow::arrow_array::RecordBatchIterator::new([Ok(batch)], schema);
        let mut merge = table.merge_insert(&[rows::ID]);
        merge
            .when_matched_update_all(None)
            .when_not_matched_insert_all()
            .when_not_matched_by_source_delete_expr(is_replaced);
        merge.execute(Box::new(rows)).await.map_err(|error| self.failed("written", &error))?;
        Ok(())
    }

    /// Adds passages of documents of which nothing is stored, in one commit.
    pub async fn add(&self, rows: &[Row]) -> Result<(), StoreError> {
        let batch = self.batch(rows)?;
        let Some(table) = self.table().await? else {
            return self.create(batch, CreateTableMode::Create).await;
        };
        table.add(batch).execute().await.map_err(|error| self.failed("written", &error))?;
        Ok(())
    }

    /// Forgets documents, in one commit.
    pub async fn delete(&self, keys: &[String]) -> Result<(), StoreError> {
        let Some(table) = self.table().await?.filter(|_| !keys.is_empty()) else { return Ok(()) };
        table.delete(&key_is_one_of(keys)).await.map_err(|error| self.failed("written", &error))?;
        Ok(())
    }

    /// Replaces the whole table by the rows that are received, in one commit when they end; until then the old table
    /// stands, as it does when a `None` says that there will be no end.
    pub async fn rebuild(&self, rows: Receiver<Option<Vec<Row>>>) -> Result<(), StoreError> {
        let rows = RowStream { schema: self.schema.clone(), embedder: self.embedder.clone(), rows: Some(rows) };
        self.create(rows, CreateTableMode::Overwrite).await
    }

    fn batch(&self, rows: &[Row]) -> Result<RecordBatch, StoreError> {
        rows::batch(&self.schema, &self.embedder, rows).map_err(|error| self.failed("written", &error.into()))
    }

    async fn create(&self, rows: impl Scannable + 'static, mode: CreateTableMode) -> Result<(), StoreError> {
        let table = self.connection.create_table(TABLE, rows).mode(mode).execute().await;
        self.remember(table.map_err(|error| self.failed("written", &error))?);
        Ok(())
    }

    /// Brings indexes up to date and compacts files, where enough was written to make searches slower.
    pub async fn tidy(&self, index: VectorIndex) -> Result<(), StoreError> {
        let Some(table) = self.table().await? else { return Ok(()) };
        let tidy = async {
            let stats = table.index_stats(TEXT_INDEX).await?;
            match stats {
                None => {
                    table.optimize(compaction()).await?;
                    table.create_index(&[rows::TEXT], Index::FTS(text_index()?)).execute().await?;
                }
                Some(stats) => {
                    let fragments = table.stats().await?.fragment_stats.num_fragments;
                    if stats.num_unindexed_rows > MAX_UNINDEXED_ROWS || fragments > MAX_FRAGMENTS {
                        table.optimize(OptimizeAction::All).await?;
                    }
                }
            }
            create_vector_index(&table, index).await
        };
        tidy.await.map_err(|error| self.failed("optimised", &error))?;
        self.make_private();
        Ok(())
    }

    /// The passages whose vectors are nearest to `vector`.
    pub async fn nearest(&self, vector: &[f32], limit: usize) -> Result<Vec<Candidate>, StoreError> {
        let Some(table) = self.table().await? else { return Ok(Vec::new()) };
        let search = async {
            let query = table.query().nearest_to(vector)?.limit(limit);
            query
                .select(Select::columns(&rows::found_columns("_distance")))
                .execute()
                .await?
                .try_collect::<Vec<_>>()
                .await
        };
        self.candidates(search.await)
    }

    /// The passages with the best full-text score for these terms.
    pub async fn matching(&self, terms: &str, limit: usize) -> Result<Vec<Candidate>, StoreError> {
        let Some(table) = self.table().await?.filter(|_| !terms.is_empty()) else { return Ok(Vec::new()) };
        let query = FullTextSearchQuery::new(terms.to_string())
            .with_column(rows::TEXT.to_string())
            .map_err(|error| self.failed("searched", &error.into()))?;
        let search = async {
            let query = table.query().full_text_search(query).limit(limit);
            query.select(Select::columns(&rows::found_columns("_score"))).execute().await?.try_collect::<Vec<_>>().await
        };
        self.candidates(search.await)
    }

    fn candidates(&self, found: lancedb::Result<Vec<RecordBatch>>) -> Result<Vec<Candidate>, StoreError> {
        let batches = found.map_err(|error| self.failed("searched", &error))?;
        Ok(batches.iter().flat_map(rows::candidates).collect())
    }

    pub(super) fn failed(&self, action: &'static str, error: &lancedb::Error) -> StoreError {
        failure(&self.location, action, error)
    }

    /// The files of a local store are for their owner only, whatever the umask says.
    fn make_private(&self) {
        if !self.location.contains("://") {
            close_to_others(Path::new(&self.location));
        }
    }
}

/// A store that was opened and not checked yet: opening it does not need the embedding model, which takes its time
/// to load.
pub struct OpenedStore {
    connection: Connection,
    location: String,
    table: Option<Table>,
}

impl OpenedStore {
    /// The embedder that made what is stored.
    pub async fn recorded_embedder(&self) -> Result<Option<String>, StoreError> {
        let Some(table) = &self.table else { return Ok(None) };
        let schema = table.schema().await.map_err(|error| failure(&self.location, "read", &error))?;
        Ok(schema.metadata().get(EMBEDDER_KEY).cloned())
    }

    /// The store for vectors of this embedder. One of another embedder is refused, unless it is to be rebuilt.
    pub async fn for_embedder(self, embedder: &str, dimensions: usize, use_as: Use) -> Result<Store, StoreError> {
        let store = Store {
            connection: self.connection,
            location: self.location,
            embedder: embedder.to_string(),
            schema: rows::schema(embedder, dimensions),
            table: Mutex::new(self.table),
        };
        if let (Use::AsItIs, Some(table)) = (use_as, store.known_table()) {
            let schema = table.schema().await.map_err(|error| store.failed("read", &error))?;
            store.check_embedder(&schema)?;
        }
        Ok(store)
    }
}

async fn open_table(connection: &Connection) -> lancedb::Result<Option<Table>> {
    match connection.open_table(TABLE).execute().await {
        Ok(table) => Ok(Some(table)),
        Err(lancedb::Error::TableNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Rows as they come.
struct RowStream {
    schema: SchemaRef,
    embedder: String,
    /// `None` once the stream was taken.
    rows: Option<Receiver<Option<Vec<Row>>>>,
}

impl Scannable for RowStream {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn scan_as_stream(&mut self) -> SendableRecordBatchStream {
        let (schema, embedder) = (self.schema.clone(), self.embedder.clone());
        let cut_short = || lancedb::Error::Runtime { message: "the rows were cut short".to_string() };
        let stream = futures::stream::unfold(self.rows.take(), move |rows| {
            let (schema, embedder) = (schema.clone(), embedder.clone());
            async move {
                let mut rows = rows?;
                match rows.recv().await? {
                    Some(batch) => Some((rows::batch(&schema, &embedder, &batch).map_err(Into::into), Some(rows))),
                    None => Some((Err(cut_short()), None)),
                }
            }
        });
        Box::pin(SimpleRecordBatchStream { schema: self.schema.clone(), stream: Box::pin(stream) })
    }
}

/// What a store is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    AsItIs,
    /// Everything in it will be replaced.
    Rebuild,
}

/// Terms were prepared by `terms`; the index only has to find the words in runs of Chinese.
fn text_index() -> lancedb::Result<FtsIndexBuilder> {
    Ok(FtsIndexBuilder::default()
        .base_tokenizer("icu".to_string())
        .stem(false)
        .remove_stop_words(false)
        .max_token_length(Some(64)))
}

fn compaction() -> OptimizeAction {
    OptimizeAction::Compact { options: CompactionOptions::default(), remap_options: None }
}

async fn create_vector_index(table: &Table, index: VectorIndex) -> lancedb::Result<()> {
    let rows = table.count_rows(None).await?;
    let wanted = match index.kind {
        IndexKind::None => false,
        IndexKind::Auto => rows >= MIN_ROWS_FOR_VECTOR_INDEX,
        // A list needs some members to be trained on.
        IndexKind::IvfFlat => rows >= index.lists,
    };
    let exists = table.list_indices().await?.iter().any(|index| index.columns == [rows::VECTOR]);
    if !wanted || exists {
        return Ok(());
    }
    let lists = u32::try_from(index.lists.max(1)).unwrap_or(u32::MAX);
    let builder = IvfFlatIndexBuilder::default().num_partitions(lists);
    table.create_index(&[rows::VECTOR], Index::IvfFlat(builder)).execute().await
}

fn key_is_one_of(keys: &[String]) -> DfExpr {
    is_in(col(rows::KEY), keys.iter().map(|key| lit(key.clone())).collect())
}

/// The innermost cause says what happened; the layers around it repeat it with places in their sources.
fn failure(location: &str, action: &'static str, error: &lancedb::Error) -> StoreError {
    let location = location.to_string();
    let chain: Vec<&dyn std::error::Error> =
        std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source()).collect();
    let is_full = |error: &&dyn std::error::Error| {
        let text = error.to_string();
        text.contains("No space left on device") || text.contains("os error 28") || text.contains("StorageFull")
    };
    if chain.iter().any(is_full) {
        return StoreError::DiskFull { location };
    }
    let last = chain.last().map_or_else(String::new, |cause| cause.to_string());
    let why = if location.contains("://") { remote_words(&last).unwrap_or(last) } else { last };
    StoreError::Failed { location, action, why: crate::domain::text::clean_line(&why, 400) }
}

/// What an object store said. Its client hands its answer on as the debug text of structures, `Status { status: 404, body:
/// "<Error><Code>NoSuchBucket…" }` within.
fn remote_words(text: &str) -> Option<String> {
    const RIGHTS: &str = "check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of this key";
    let after = |mark: &str| text.split_once(mark).map(|(_, rest)| rest);
    if let Some(status) = after("Status { status: ") {
        let digits = status.split(|c: char| !c.is_ascii_digit()).next()?;
        let code = after("<Code>").and_then(|rest| rest.split_once("</Code>")).map_or("", |(code, _)| code);
        let remedy = match digits {
            "401" | "403" => RIGHTS,
            "404" => "make the bucket first, or name another one in [knowledge] store",
            _ => "check [knowledge] store, AWS_ENDPOINT and AWS_REGION",
        };
        return Some(format!("the object store answered {digits} {code}").trim_end().to_owned() + ": " + remedy);
    }
    text.contains("kind: Connect")
        .then(|| "the object store cannot be reached: check AWS_ENDPOINT, AWS_REGION and the network".to_owned())
}

#[cfg(unix)]
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create_private_folder(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// Files 0600, folders 0700. What cannot be changed belongs to somebody else, whose business it is.
#[cfg(unix)]
fn close_to_others(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    let Ok(found) = std::fs::symlink_metadata(path) else { return };
    let wanted = if found.is_dir() { 0o700 } else { 0o600 };
    if !found.is_symlink() && found.permissions().mode() & 0o777 != wanted {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(wanted));
    }
    if found.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            close_to_others(&entry.path());
        }
    }
}

#[cfg(not(unix))]
fn close_to_others(_: &Path) {}

#[cfg(test)]
mod tests {
    use super::remote_words;

    #[test]
    fn an_object_store_is_told_in_words() {
        let answered = |status: u16, body: &str| {
            let text = format!(
                "Failed to connect to namespace: IO {{ source: Generic {{ store: \"S3\", source: ListRequest {{ source: \
                 RetryError(RetryErrorImpl {{ method: GET, inner: Status {{ status: {status}, body: Some({body:?}) }} }}) }} }} }}"
            );
            remote_words(&text).unwrap()
        };
        assert_eq!(
            answered(404, "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>…</Message></Error>"),
            "the object store answered 404 NoSuchBucket: make the bucket first, or name another one in [knowledge] store"
        );
        assert_eq!(
            answered(403, "<Error><Code>SignatureDoesNotMatch</Code></Error>"),
            "the object store answered 403 SignatureDoesNotMatch: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of this key"
        );
        assert_eq!(
            answered(500, ""),
            "the object store answered 500: check [knowledge] store, AWS_ENDPOINT and AWS_REGION"
        );
        let unreachable = "RetryError(RetryErrorImpl { inner: Http(HttpError { kind: Connect, source: reqwest::Error { kind: Request } }) })";
        assert_eq!(
            remote_words(unreachable).as_deref(),
            Some("the object store cannot be reached: check AWS_ENDPOINT, AWS_REGION and the network")
        );
        assert_eq!(remote_words("the manifest is torn"), None);
    }
}
