//! Passages as rows of the table, and back.

use std::collections::HashMap;
use std::sync::Arc;

use lancedb::arrow::arrow_array::builder::{FixedSizeListBuilder, Float32Builder, ListBuilder, StringBuilder};
use lancedb::arrow::arrow_array::cast::AsArray;
use lancedb::arrow::arrow_array::types::{Float32Type, UInt64Type};
use lancedb::arrow::arrow_array::{ArrayRef, RecordBatch, StringArray, UInt64Array};
use lancedb::arrow::arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use uuid::Uuid;

use crate::domain::Chunk;

pub(super) const ID: &str = "id";
pub(super) const VECTOR: &str = "vector";
pub(super) const KEY: &str = "key";
pub(super) const SOURCE: &str = "source";
pub(super) const TEXT: &str = "text";
pub(super) const CONTENT_HASH: &str = "content_hash";
/// Names the embedder in the metadata of the schema.
pub(super) const EMBEDDER_KEY: &str = "oncall.embedder";

/// The space of our ids: the same passage has the same id in every store.
const ID_SPACE: Uuid = Uuid::from_u128(0x6f6e_6361_6c6c_4e6f_8000_6368_756e_6b73);

/// A passage with everything that is stored beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub chunk: Chunk,
    /// Names the document; see `collect::Found::key`.
    pub key: String,
    /// The terms that full-text search knows the passage by.
    pub text: String,
    /// Front matter, encoding and the like, as a JSON object.
    pub metadata: String,
    /// Of the whole document and what its passages depend on.
    pub content_hash: String,
    /// Of unit length.
    pub vector: Vec<f32>,
}

/// A row that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub id: String,
    pub chunk: Chunk,
    pub vector: Vec<f32>,
    /// The front matter's title and the like.
    pub metadata: String,
    /// Squared distance of the vectors, or the full-text score: whatever the search ranks by.
    pub measure: f32,
}

pub(super) fn schema(embedder: &str, dimensions: usize) -> SchemaRef {
    // An embedder of more than i32::MAX dimensions does not exist; Arrow counts list items in i32.
    let dimensions = i32::try_from(dimensions).unwrap_or(i32::MAX);
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let item = Arc::new(Field::new("item", DataType::Float32, true));
    let fields = vec![
        text(ID),
        Field::new(VECTOR, DataType::FixedSizeList(item, dimensions), false),
        text("content"),
        text(SOURCE),
        text("title"),
        Field::new("headings", DataType::List(Arc::new(Field::new("item", DataType::Utf8, true))), false),
        text("metadata"),
        text(CONTENT_HASH),
        text("embedder"),
        Field::new("start", DataType::UInt64, false),
        Field::new("end", DataType::UInt64, false),
        text(KEY),
        text(TEXT),
    ];
    let metadata = HashMap::from([(EMBEDDER_KEY.to_string(), embedder.to_string())]);
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// What a search reads of each row: the passage, its vector, and the column that the search ranks by.
pub(super) fn found_columns(measure: &'static str) -> [&'static str; 10] {
    [ID, VECTOR, "content", SOURCE, "title", "headings", "metadata", "start", "end", measure]
}

/// Rows as a batch; every vector must have the dimension of the schema.
pub(super) fn batch(schema: &SchemaRef, embedder: &str, rows: &[Row]) -> Result<RecordBatch, ArrowError> {
    let texts =
        |of: &dyn Fn(&Row) -> &str| -> ArrayRef { Arc::new(StringArray::from_iter_values(rows.iter().map(of))) };
    let numbers = |of: &dyn Fn(&Row) -> usize| -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(rows.iter().map(|row| of(row) as u64)))
    };
    let dimensions = match schema.field_with_name(VECTOR)?.data_type() {
        DataType::FixedSizeList(_, dimensions) => *dimensions,
        other => return Err(ArrowError::SchemaError(format!("vectors stored as {other}"))),
    };
    let mut vectors = FixedSizeListBuilder::new(Float32Builder::new(), dimensions);
    let mut headings = ListBuilder::new(StringBuilder::new());
    for row in rows {
        vectors.values().append_slice(&row.vector);
        vectors.append(true);
        row.chunk.headings.iter().for_each(|heading| headings.values().append_value(heading));
        headings.append(true);
    }
    let ids = StringArray::from_iter_values(rows.iter().map(|row| id(row).to_string()));
    RecordBatch::try_new(
        schema.clone(),
        vec![
            Arc::new(ids),
            Arc::new(vectors.finish()),
            texts(&|row| &row.chunk.content),
            texts(&|row| &row.chunk.source),
            texts(&|row| &row.chunk.title),
            Arc::new(headings.finish()),
            texts(&|row| &row.metadata),
            texts(&|row| &row.content_hash),
            Arc::new(StringArray::from_iter_values(rows.iter().map(|_| embedder))),
            numbers(&|row| row.chunk.start),
            numbers(&|row| row.chunk.end),
            texts(&|row| &row.key),
            texts(&|row| &row.text),
        ],
    )
}

/// A passage is named by its document and its place in it.
fn id(row: &Row) -> Uuid {
    Uuid::new_v5(&ID_SPACE, format!("{}\0{}\0{}", row.key, row.chunk.start, row.chunk.end).as_bytes())
}

/// The rows of a batch with the columns of [`found_columns`].
pub(super) fn candidates(batch: &RecordBatch) -> Vec<Candidate> {
    let text = |column: usize, row: usize| batch.column(column).as_string::<i32>().value(row).to_string();
    let number = |column: usize, row: usize| batch.column(column).as_primitive::<UInt64Type>().value(row) as usize;
    (0..batch.num_rows())
        .map(|row| {
            let vector = batch.column(1).as_fixed_size_list().value(row);
            let headings = batch.column(5).as_list::<i32>().value(row);
            Candidate {
                id: text(0, row),
                chunk: Chunk {
                    content: text(2, row),
                    source: text(3, row),
                    title: text(4, row),
                    headings: headings.as_string::<i32>().iter().flatten().map(str::to_string).collect(),
                    start: number(7, row),
                    end: number(8, row),
                },
                vector: vector.as_primitive::<Float32Type>().values().to_vec(),
                metadata: text(6, row),
                measure: batch.column(9).as_primitive::<Float32Type>().value(row),
            }
        })
        .collect()
}
