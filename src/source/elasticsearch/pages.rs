//! A search in pages: counted first, read whole where it is bearable, else in parts of the time, each by its share.

use futures::{FutureExt, StreamExt};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::mapping::Mapping;
use super::{Inner, Product, explained};
use crate::domain::Window;
use crate::domain::text::clean_line;
use crate::source::stored::{Batches, EventMaker, Known, SLICES, note, quotas, sampled_note, slices};
use crate::source::{LogBatch, LogQuery, SourceError};

/// Events of one page.
const PAGE: usize = 1000;
/// How long the server keeps what a page stands on.
const KEEP_ALIVE: &str = "1m";
/// Parts that are counted at a time.
const PARALLEL: usize = 4;
const MAX_REASON_CHARS: usize = 200;

/// Reads what matches and sends it on. Ends early when nobody listens.
pub(super) async fn read(inner: &Inner, query: &LogQuery, batches: &Batches) -> Result<(), SourceError> {
    let (product, mapping) = inner.cluster().await?;
    let limit = inner.options.limit;
    let (all, batch) = count(inner, mapping, query).await?;
    let parts = match all <= limit as u64 {
        true => vec![(query.window, limit)],
        false => shares(inner, mapping, query, limit).await?,
    };
    let _ = batches.send(Ok(batch)).await;
    let point = open_point(inner, *product).await;
    let mut search = Search { inner, product: *product, mapping, query, point, batches, read: 0 };
    let mut ended = Ok(());
    for (window, quota) in parts {
        ended = search.part(window, quota).await;
        if ended.is_err() || batches.is_closed() {
            break;
        }
    }
    search.close().await;
    if all > limit as u64 && ended.is_ok() {
        let mut said = note(sampled_note(&inner.name, search.read, all));
        said.truncated = true;
        let _ = batches.send(Ok(said)).await;
    }
    ended
}

/// How many events match, with what the server says beside it.
async fn count(inner: &Inner, mapping: &Mapping, query: &LogQuery) -> Result<(u64, LogBatch), SourceError> {
    let body = json!({ "size": 0, "track_total_hits": true, "query": mapping.query(query) });
    let found: Value = inner.remote.post(&inner.path("_search"), &inner.lenient(), &body).await.map_err(explained)?;
    Ok((total(&found), shortfall(&found, &inner.name)))
}

/// `hits.total`, as an object or, from old servers, a number.
pub(super) fn total(found: &Value) -> u64 {
    let total = &found["hits"]["total"];
    total["value"].as_u64().or_else(|| total.as_u64()).unwrap_or(0)
}

/// What a search could not look at.
fn shortfall(found: &Value, name: &str) -> LogBatch {
    let mut batch = LogBatch::default();
    let failed = found["_shards"]["failed"].as_u64().unwrap_or(0);
    if failed > 0 {
        let all = found["_shards"]["total"].as_u64().unwrap_or(failed);
        let reason = found["_shards"]["failures"][0]["reason"]["reason"].as_str().unwrap_or("no reason given");
        let reason = clean_line(reason, MAX_REASON_CHARS);
        batch.notes.push(format!("{name}: {failed} of {all} shards did not answer ({reason}): events may be missing"));
        batch.truncated = true;
    }
    if found["timed_out"].as_bool() == Some(true) {
        batch.notes.push(format!("{name}: the search ran out of time at the server: events may be missing"));
        batch.truncated = true;
    }
    batch
}

/// The parts of the time with how many events of each are read.
async fn shares(
    inner: &Inner,
    mapping: &Mapping,
    query: &LogQuery,
    limit: usize,
) -> Result<Vec<(Window, usize)>, SourceError> {
    let windows = slices(query.window, SLICES);
    let parts: Vec<LogQuery> = windows.iter().map(|window| LogQuery { window: *window, ..query.clone() }).collect();
    let counting =
        parts.into_iter().map(|part| async move { count(inner, mapping, &part).await.map(|(count, _)| count) }.boxed());
    let counts: Vec<Result<u64, SourceError>> = futures::stream::iter(counting).buffered(PARALLEL).collect().await;
    let counts = counts.into_iter().collect::<Result<Vec<u64>, _>>()?;
    Ok(windows.into_iter().zip(quotas(&counts, limit)).filter(|(_, quota)| *quota > 0).collect())
}

/// A point in time, so that pages fit together while events arrive; without one (a server or user that may not), pages
/// are read from the index as it grows.
async fn open_point(inner: &Inner, product: Product) -> Option<String> {
    let (what, key) = match product {
        Product::Elasticsearch => ("_pit", "id"),
        Product::OpenSearch => ("_search/point_in_time", "pit_id"),
    };
    let mut query = vec![("keep_alive", KEEP_ALIVE.to_owned())];
    if product == Product::Elasticsearch {
        query.push(("ignore_unavailable", "true".to_owned()));
    }
    let opened: Value = inner.remote.post(&inner.path(what), &query, &json!({})).await.ok()?;
    opened[key].as_str().map(str::to_owned)
}

struct Search<'a> {
    inner: &'a Inner,
    product: Product,
    mapping: &'a Mapping,
    query: &'a LogQuery,
    point: Option<String>,
    batches: &'a Batches,
    read: usize,
}

impl Search<'_> {
    /// Reads up to `quota` events of a part of the time, oldest first.
    async fn part(&mut self, window: Window, quota: usize) -> Result<(), SourceError> {
        let query = LogQuery { window, ..self.query.clone() };
        let filter = self.mapping.query(&query);
        let (mut left, mut after) = (quota, Value::Null);
        while left > 0 {
            let size = left.min(PAGE);
            let found = self.page(&filter, size, &after).await?;
            let hits = found["hits"]["hits"].as_array().map(Vec::as_slice).unwrap_or_default();
            let Some(last) = hits.last() else { break };
            let is_last = hits.len() < size || last["sort"].is_null() || last["sort"] == after;
            after = last["sort"].clone();
            left -= hits.len().min(left);
            self.read += hits.len();
            if let Some(id) = found["pit_id"].as_str() {
                self.point = Some(id.to_owned());
            }
            let maker = EventMaker::new(self.query);
            let events = hits.iter().filter_map(|hit| self.event(&maker, &hit["_source"])).collect();
            let batch = LogBatch { events, ..shortfall(&found, &self.inner.name) };
            if self.batches.send(Ok(batch)).await.is_err() || is_last {
                break;
            }
        }
        Ok(())
    }

    async fn page(&self, filter: &Value, size: usize, after: &Value) -> Result<Value, SourceError> {
        // Events of the same instant are told apart by a second key, else those at the seam of two pages were lost.
        let tie = match (self.product, &self.point) {
            (Product::Elasticsearch, Some(_)) => "_shard_doc",
            (Product::Elasticsearch, None) => "_doc",
            (Product::OpenSearch, _) => "_id",
        };
        let mut body = json!({
            "size": size,
            "track_total_hits": false,
            "query": filter,
            "sort": [{ &self.mapping.time: { "order": "asc" } }, { tie: { "order": "asc" } }],
        });
        if !after.is_null() {
            body["search_after"] = after.clone();
        }
        let remote = &self.inner.remote;
        let found = match &self.point {
            Some(id) => {
                body["pit"] = json!({ "id": id, "keep_alive": KEEP_ALIVE });
                remote.post("/_search", &[], &body).await
            }
            None => remote.post(&self.inner.path("_search"), &self.inner.lenient(), &body).await,
        };
        found.map_err(explained)
    }

    fn event(&self, maker: &EventMaker, source: &Value) -> Option<crate::domain::LogEvent> {
        let object = source.as_object()?;
        let fields = &self.inner.options.fields;
        let text = |name: &Option<String>| name.as_ref().and_then(|name| lookup(object, name)).and_then(Value::as_str);
        let known = Known {
            at: lookup(object, &self.mapping.time).and_then(time_of),
            level: text(&fields.level),
            service: text(&fields.service),
            instance: text(&fields.instance),
            message: text(&fields.message),
        };
        maker.event(&source.to_string(), known)
    }

    /// Gives back what the server holds; when it cannot, it lets go of it by itself a minute later.
    async fn close(&self) {
        let Some(id) = &self.point else { return };
        let (path, body) = match self.product {
            Product::Elasticsearch => ("/_pit", json!({ "id": id })),
            Product::OpenSearch => ("/_search/point_in_time", json!({ "pit_id": [id] })),
        };
        let _ = self.inner.remote.release(path, &body).await;
    }
}

/// The value of a field by its dotted name, whether objects are nested or keys hold the dots.
pub(super) fn lookup<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    if let Some(value) = object.get(name) {
        return Some(value);
    }
    name.match_indices('.').find_map(|(at, _)| lookup(object.get(&name[..at])?.as_object()?, &name[at + 1..]))
}

/// A date of the store: text, or milliseconds since 1970.
pub(super) fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(number) => Timestamp::from_millisecond(number.as_i64()?).ok(),
        Value::String(text) => text
            .parse()
            .ok()
            .or_else(|| Timestamp::from_millisecond(text.parse().ok()?).ok())
            // Without a zone it is UTC to the store.
            .or_else(|| format!("{text}Z").replace(' ', "T").parse().ok()),
        Value::Array(values) => values.first().and_then(time_of),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_nested_or_flat() {
        let value = json!({"a": {"b.c": 1, "d": {"e": 2}}, "f.g": 3});
        let object = value.as_object().unwrap();
        let found = |name: &str| lookup(object, name).and_then(Value::as_i64);
        assert_eq!([found("a.b.c"), found("a.d.e"), found("f.g"), found("a.x")], [Some(1), Some(2), Some(3), None]);
    }

    #[test]
    fn dates_are_read_as_stores_keep_them() {
        let want: Timestamp = "2026-03-04T06:30:00Z".parse().unwrap();
        for value in [
            json!("2026-03-04T06:30:00.000Z"),
            json!("2026-03-04T14:30:00+08:00"),
            json!("2026-03-04T06:30:00"),
            json!("2026-03-04 06:30:00"),
            json!(1_772_605_800_000_i64),
            json!("1772605800000"),
            json!(["2026-03-04T06:30:00Z"]),
        ] {
            assert_eq!(time_of(&value), Some(want), "{value}");
        }
        assert_eq!(time_of(&json!(null)), None);
    }

    #[test]
    fn shards_that_fail_and_searches_out_of_time_are_told() {
        let found = json!({"timed_out": true, "_shards": {"total": 5, "failed": 2, "failures": [{"reason": {"reason": "gone"}}]}});
        let batch = shortfall(&found, "es");
        assert!(batch.truncated);
        assert_eq!(batch.notes[0], "es: 2 of 5 shards did not answer (gone): events may be missing");
        assert_eq!((total(&json!({"hits": {"total": {"value": 7}}})), total(&json!({"hits": {"total": 8}}))), (7, 8));
    }
}
