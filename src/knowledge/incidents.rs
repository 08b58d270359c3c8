//! Incidents whose cause is known, beside the passages: in go precedents that a person confirmed or corrected, out come
//! those whose alert reads like a new one.
//!
//! A table of its own (`incidents`) in the same store, so that a team that shares its runbooks shares what they learnt.
//! Rows carry the text that was embedded: a store that was made with another embedder embeds its few incidents anew
//! instead of losing them.

use std::collections::HashMap;
use std::sync::Arc;

use futures::TryStreamExt;
use lancedb::Table;
use lancedb::arrow::arrow_array::builder::{FixedSizeListBuilder, Float32Builder};
use lancedb::arrow::arrow_array::cast::AsArray;
use lancedb::arrow::arrow_array::types::Float32Type;
use lancedb::arrow::arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, StringArray};
use lancedb::arrow::arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use lancedb::database::CreateTableMode;
use lancedb::expr::{col, lit};
use lancedb::query::{ExecutableQuery, QueryBase, Select};

use super::retrieve::{cosine, query_vector};
use super::rows::EMBEDDER_KEY;
use super::store::Store;
use super::{Embedder, KnowledgeError};
use crate::domain::{Matched, Precedent};

const TABLE: &str = "incidents";
const ID: &str = "id";
const VECTOR: &str = "vector";
const SYMPTOM: &str = "symptom";
const RECORD: &str = "record";
/// Two alerts that read alike: under this cosine (of centred vectors) they share a trade, not a cause.
const LEAST_ALIKE: f64 = 0.55;
/// A team confirms a few incidents a week; all of them are compared.
const MAX_COMPARED: usize = 10_000;

/// An incident as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownIncident {
    /// What its alert said; see [`crate::domain::history::symptom_text`].
    pub symptom: String,
    pub precedent: Precedent,
}

/// The table in a store, for one embedder.
pub(super) struct Incidents<'a> {
    pub store: &'a Store,
    pub embedder: &'a dyn Embedder,
}

impl Incidents<'_> {
    /// Stores an incident in the place of what was stored of its session.
    pub async fn remember(&self, incident: &KnownIncident) -> Result<(), KnowledgeError> {
        let vector = query_vector(self.embedder, &incident.symptom).await?;
        let batch = self.batch(&[(incident, vector)])?;
        let Some(table) = self.table().await? else {
            return self.create(batch, CreateTableMode::Create).await;
        };
        let schema = batch.schema();
        let rows = RecordBatchIterator::new([Ok(batch)], schema);
        let mut merge = table.merge_insert(&[ID]);
        merge.when_matched_update_all(None).when_not_matched_insert_all();
        merge.execute(Box::new(rows)).await.map_err(|error| self.store.failed("written", &error))?;
        Ok(())
    }

    /// Forgets the incident of a session, if it is there.
    pub async fn forget(&self, session_id: &str) -> Result<(), KnowledgeError> {
        let Some(table) = self.table().await? else { return Ok(()) };
        let is_it = col(ID).eq(lit(session_id.to_string()));
        table.delete(&is_it).await.map_err(|error| self.store.failed("written", &error))?;
        Ok(())
    }

    /// The incidents whose alert reads most like this text, best first, at most `k`.
    pub async fn alike(&self, symptom: &str, k: usize) -> Result<Vec<Precedent>, KnowledgeError> {
        let Some(table) = self.table().await? else { return Ok(Vec::new()) };
        let stored = self.read(&table).await?;
        if stored.is_empty() {
            return Ok(Vec::new());
        }
        let wanted = query_vector(self.embedder, symptom).await?;
        let mut alike: Vec<Precedent> = stored
            .into_iter()
            .map(|(incident, vector)| {
                let similarity = cosine(&wanted, &vector);
                Precedent { matched: Matched::Similarity, similarity: Some(similarity), ..incident.precedent }
            })
            .filter(|precedent| precedent.similarity >= Some(LEAST_ALIKE))
            .collect();
        alike.sort_by(|a, b| {
            let nearer = b.similarity.unwrap_or(0.0).total_cmp(&a.similarity.unwrap_or(0.0));
            nearer.then_with(|| b.at.cmp(&a.at))
        });
        alike.truncate(k);
        Ok(alike)
    }

    /// The table, its vectors of this embedder; `None` until something was stored.
    async fn table(&self) -> Result<Option<Table>, KnowledgeError> {
        let opened = self.store.connection().open_table(TABLE).execute().await;
        let table = match opened {
            Ok(table) => table,
            Err(lancedb::Error::TableNotFound { .. }) => return Ok(None),
            Err(error) => return Err(self.store.failed("opened", &error).into()),
        };
        let schema = table.schema().await.map_err(|error| self.store.failed("read", &error))?;
        if schema.metadata().get(EMBEDDER_KEY).map(String::as_str) == Some(self.embedder.id()) {
            return Ok(Some(table));
        }
        self.embed_anew(&table).await?;
        let table = self.store.connection().open_table(TABLE).execute().await;
        Ok(Some(table.map_err(|error| self.store.failed("opened", &error))?))
    }

    async fn embed_anew(&self, table: &Table) -> Result<(), KnowledgeError> {
        let mut rows = self.read(table).await?;
        for (incident, vector) in &mut rows {
            *vector = query_vector(self.embedder, &incident.symptom).await?;
        }
        let rows: Vec<_> = rows.iter().map(|(incident, vector)| (incident, vector.clone())).collect();
        self.create(self.batch(&rows)?, CreateTableMode::Overwrite).await
    }

    async fn create(&self, batch: RecordBatch, mode: CreateTableMode) -> Result<(), KnowledgeError> {
        let created = self.store.connection().create_table(TABLE, batch).mode(mode).execute().await;
        created.map(|_| ()).map_err(|error| self.store.failed("written", &error).into())
    }

    async fn read(&self, table: &Table) -> Result<Vec<(KnownIncident, Vec<f32>)>, KnowledgeError> {
        let read = async {
            let query = table.query().select(Select::columns(&[VECTOR, SYMPTOM, RECORD])).limit(MAX_COMPARED);
            query.execute().await?.try_collect::<Vec<_>>().await
        };
        let batches = read.await.map_err(|error| self.store.failed("read", &error))?;
        Ok(batches.iter().flat_map(incidents).collect())
    }

    fn batch(&self, rows: &[(&KnownIncident, Vec<f32>)]) -> Result<RecordBatch, KnowledgeError> {
        batch(&schema(self.embedder), rows).map_err(|error| self.store.failed("written", &error.into()).into())
    }
}

fn schema(embedder: &dyn Embedder) -> SchemaRef {
    // As of passages: Arrow counts list items in i32.
    let dimensions = i32::try_from(embedder.dimensions()).unwrap_or(i32::MAX);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let vector = Field::new(VECTOR, DataType::FixedSizeList(item, dimensions), false);
    let fields = vec![text(ID), vector, text("fingerprint"), text(SYMPTOM), text(RECORD)];
    Arc::new(Schema::new_with_metadata(fields, HashMap::from([(EMBEDDER_KEY.into(), embedder.id().into())])))
}

fn batch(schema: &SchemaRef, rows: &[(&KnownIncident, Vec<f32>)]) -> Result<RecordBatch, ArrowError> {
    let dimensions = match schema.field_with_name(VECTOR)?.data_type() {
        DataType::FixedSizeList(_, dimensions) => *dimensions,
        other => return Err(ArrowError::SchemaError(format!("vectors stored as {other}"))),
    };
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), dimensions);
    let mut records = Vec::new();
    for (incident, vector) in rows {
        vectors.values().append_slice(vector);
        vectors.append(true);
        records.push(
            serde_json::to_string(&incident.precedent).map_err(|error| ArrowError::JsonError(error.to_string()))?,
        );
    }
    let texts = |of: &dyn Fn(&KnownIncident) -> &str| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(|(incident, _)| of(incident))))
    };
    RecordBatch::try_new(
        schema.clone(),
        vec![
            texts(&|incident| &incident.precedent.session_id),
            Arc::new(vectors.finish()),
            texts(&|incident| &incident.precedent.fingerprint),
            texts(&|incident| &incident.symptom),
            Arc::new(StringArray::from(records)),
        ],
    )
}

/// What a newer version wrote and this one cannot read is left out.
fn incidents(batch: &RecordBatch) -> Vec<(KnownIncident, Vec<f32>)> {
    let [symptoms, records] = [1, 2].map(|column| batch.column(column).as_string::<i32>());
    let vectors = batch.column(0).as_fixed_size_list();
    (0..batch.num_rows())
        .filter_map(|row| {
            let precedent: Precedent = serde_json::from_str(records.value(row)).ok()?;
            let vector = vectors.value(row).as_primitive::<Float32Type>().values().to_vec();
            Some((KnownIncident { symptom: symptoms.value(row).to_string(), precedent }, vector))
        })
        .collect()
}
