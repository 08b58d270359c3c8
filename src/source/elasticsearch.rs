//! Logs in Elasticsearch or OpenSearch: indices, data streams and patterns of either.
//!
//! In: a time, a service or instance, keywords. Out: events. Which fields are meant is found from the field capabilities;
//! pages are read from a point in time by `search_after`. Only searches are sent, and a `DELETE` of the point in time, which
//! gives back what the search held at the server.

mod mapping;
mod pages;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::rest::{Remote, RestError, encoded};
use super::stored::{FieldNames, StoreOptions, streamed};
use super::{LogBatch, LogQuery, LogSource, SourceError};
use crate::domain::FailureKind;
use crate::domain::text::clean_line;
use crate::http::{HttpError, RemoteSettings};
use mapping::{FieldCaps, Mapping};

/// Services that are listed.
const MAX_SERVICES: usize = 200;
/// Fields whose values are listed as services.
const SERVICE_FIELDS_LISTED: usize = 3;
const MAX_REASON_CHARS: usize = 300;
/// Servers refuse an address of over 4 KiB.
const FIELDS_AT_A_TIME: usize = 50;

/// A cluster.
#[derive(Clone)]
pub struct Elasticsearch {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    index: String,
    options: StoreOptions,
    remote: Remote,
    cluster: OnceCell<(Product, Mapping)>,
}

/// Whose dialect is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Product {
    Elasticsearch,
    OpenSearch,
}

/// How a cluster is.
#[derive(Debug, Clone, PartialEq)]
pub struct ElasticsearchState {
    /// `opensearch 3.8.0`.
    pub version: String,
    /// The field that holds the time.
    pub time_field: String,
    /// As the server writes it.
    pub newest: Option<jiff::Timestamp>,
    pub events: u64,
}

impl Elasticsearch {
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(name: &str, index: &str, options: StoreOptions, settings: RemoteSettings) -> Result<Self, HttpError> {
        let remote = Remote::new(settings)?;
        let (name, index, cluster) = (name.to_owned(), index.to_owned(), OnceCell::new());
        Ok(Self { inner: Arc::new(Inner { name, index, options, remote, cluster }) })
    }

    /// What a check of the server tells.
    ///
    /// # Errors
    /// When it does not answer a search.
    pub async fn state(&self) -> Result<ElasticsearchState, SourceError> {
        let inner = &self.inner;
        let about: Value = inner.remote.get("/", &[]).await.map_err(explained)?;
        let (_, mapping) = inner.cluster().await?;
        let body = json!({
            "size": 1, "track_total_hits": true, "sort": [{ &mapping.time: "desc" }], "query": { "match_all": {} },
        });
        let found: Value =
            inner.remote.post(&inner.path("_search"), &inner.lenient(), &body).await.map_err(explained)?;
        let newest = found["hits"]["hits"][0]["_source"].as_object().and_then(|source| {
            let value = pages::lookup(source, &mapping.time)?;
            pages::time_of(value)
        });
        let distribution = about["version"]["distribution"].as_str().unwrap_or("elasticsearch");
        let number = about["version"]["number"].as_str().unwrap_or_default();
        Ok(ElasticsearchState {
            version: clean_line(&format!("{distribution} {number}"), 60),
            time_field: mapping.time.clone(),
            newest,
            events: pages::total(&found),
        })
    }
}

impl Inner {
    fn path(&self, what: &str) -> String {
        // Commas, stars and date mathematics stay readable; a slash or a blank would change the path.
        let index = encoded(&self.index).replace("%2C", ",").replace("%2A", "*");
        format!("/{index}/{what}")
    }

    /// An index that is closed or gone does not fail the search of the others.
    fn lenient(&self) -> [(&'static str, String); 2] {
        [("ignore_unavailable", "true".to_owned()), ("allow_no_indices", "true".to_owned())]
    }

    /// The dialect and the fields, found once.
    async fn cluster(&self) -> Result<&(Product, Mapping), SourceError> {
        self.cluster.get_or_try_init(|| self.look()).await
    }

    async fn look(&self) -> Result<(Product, Mapping), SourceError> {
        // A user who may search an index need not be allowed to ask for the version.
        let about: Value = self.remote.get("/", &[]).await.unwrap_or_default();
        let product = match about["version"]["distribution"].as_str() {
            Some("opensearch") => Product::OpenSearch,
            _ => Product::Elasticsearch,
        };
        let names: &FieldNames = &self.options.fields;
        let path = self.path("_field_caps");
        let asking = mapping::asked(names).chunks(FIELDS_AT_A_TIME).map(|part| part.join(",")).collect::<Vec<_>>();
        let asking = asking.into_iter().map(|fields| {
            let mut query = self.lenient().to_vec();
            query.push(("fields", fields));
            let path = &path;
            async move { self.remote.get::<FieldCaps>(path, &query).await.map_err(explained) }
        });
        let mut caps = FieldCaps::default();
        for part in futures::future::try_join_all(asking).await? {
            caps.merge(part);
        }
        let mapping = Mapping::of(&caps, names, &self.index);
        Ok((product, mapping.map_err(|message| SourceError::new(FailureKind::SourceError, message))?))
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        let (_, mapping) = self.cluster().await?;
        let fields: Vec<&str> = mapping
            .services
            .iter()
            .filter(|field| field.aggregatable)
            .map(|field| field.name.as_str())
            .take(SERVICE_FIELDS_LISTED)
            .collect();
        let aggregations: serde_json::Map<String, Value> = fields
            .iter()
            .enumerate()
            .map(|(n, field)| (format!("f{n}"), json!({ "terms": { "field": field, "size": MAX_SERVICES } })))
            .collect();
        if aggregations.is_empty() {
            return Ok(Vec::new());
        }
        let body = json!({ "size": 0, "aggs": aggregations });
        let found: Value = self.remote.post(&self.path("_search"), &self.lenient(), &body).await.map_err(explained)?;
        let buckets = found["aggregations"].as_object().into_iter().flat_map(|all| all.values());
        let keys = buckets.flat_map(|one| one["buckets"].as_array().into_iter().flatten());
        let names: BTreeSet<String> = keys.filter_map(|bucket| bucket["key"].as_str()).map(str::to_owned).collect();
        Ok(names.into_iter().collect())
    }
}

#[async_trait]
impl LogSource for Elasticsearch {
    fn name(&self) -> &str {
        &self.inner.name
    }

    fn caveat(&self) -> Option<String> {
        self.inner.remote.clock_note()
    }

    fn search(&self, query: &LogQuery) -> BoxStream<'static, Result<LogBatch, SourceError>> {
        let (inner, query) = (Arc::clone(&self.inner), query.clone());
        streamed(move |batches| async move { pages::read(&inner, &query, &batches).await })
    }

    async fn services(&self) -> Result<Vec<String>, SourceError> {
        self.inner.services().await
    }
}

/// An error of the API in the server's own words.
fn explained(error: RestError) -> SourceError {
    let said = error.body().and_then(|body| serde_json::from_str::<Value>(body).ok());
    let reason = said.as_ref().map(|said| &said["error"]).and_then(|error| {
        let cause = &error["root_cause"][0]["reason"];
        cause.as_str().or_else(|| error["reason"].as_str()).or_else(|| error.as_str())
    });
    match (reason, error.status()) {
        (Some(reason), Some(status @ (400 | 404))) => {
            let reason = clean_line(reason, MAX_REASON_CHARS);
            SourceError::new(FailureKind::SourceError, format!("the server answered {status}: {reason}"))
        }
        _ => error.into(),
    }
}
