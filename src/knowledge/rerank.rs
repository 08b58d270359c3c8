//! Orders passages anew by a service that reads query and passage together: `/rerank` as Cohere, Jina and vLLM have it.
//!
//! In: a query and passages, best first. Out: the relevance of each. A service that fails is not asked again by this
//! handle: the order stays as it was, and the caller's hook hears of it once.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::EmbedError;
use super::service::{Service, ServiceError, ServiceSettings};
use crate::domain::text::head;

/// Characters of a passage that are sent: more than one is split to.
const MAX_PASSAGE_CHARS: usize = 4000;

/// Hears of the failure that ends reranking.
pub type OnFailure = Box<dyn Fn(&str) + Send + Sync>;

/// The service.
pub struct Reranker {
    service: Service,
    top_n: usize,
    on_failure: OnFailure,
    has_failed: AtomicBool,
}

impl Reranker {
    /// `top_n` candidates are ordered anew.
    ///
    /// # Errors
    /// Settings that cannot be used.
    pub fn new(settings: ServiceSettings, top_n: usize, on_failure: OnFailure) -> Result<Self, EmbedError> {
        let service = Service::new(settings, "/rerank")?;
        Ok(Self { service, top_n, on_failure, has_failed: AtomicBool::new(false) })
    }

    pub(super) fn top_n(&self) -> usize {
        self.top_n
    }

    /// The relevance of each passage, higher is better; `None` for those that the service left out. Nothing when it
    /// fails or has failed.
    pub(super) async fn relevance(&self, query: &str, passages: &[String]) -> Option<Vec<Option<f64>>> {
        if passages.is_empty() || self.has_failed.load(Ordering::Relaxed) {
            return None;
        }
        match self.ask(query, passages).await {
            Ok(relevance) => Some(relevance),
            Err(error) => {
                if !self.has_failed.swap(true, Ordering::Relaxed) {
                    (self.on_failure)(&self.service.explain(error).to_string());
                }
                None
            }
        }
    }

    /// Asks about one passage.
    ///
    /// # Errors
    /// Why the service cannot be used.
    pub async fn check(&self) -> Result<(), EmbedError> {
        let passages = ["A full disk stops the database.".to_string()];
        self.ask("disk full", &passages).await.map(|_| ()).map_err(|error| self.service.explain(error))
    }

    async fn ask(&self, query: &str, passages: &[String]) -> Result<Vec<Option<f64>>, ServiceError> {
        let outgoing = |text: &str| (self.service.settings.outgoing)(text);
        let documents: Vec<String> =
            passages.iter().map(|passage| outgoing(head(passage, MAX_PASSAGE_CHARS))).collect();
        let body = json!({
            "model": self.service.settings.model,
            "query": outgoing(query),
            "documents": documents,
            "top_n": documents.len(),
        });
        let answer = self.service.post(&body).await?;
        relevance(&answer, passages.len()).map_err(ServiceError::Answer)
    }
}

/// `results` with `relevance_score`; `data` at Voyage, a bare list with `score` at text-embeddings-inference.
fn relevance(answer: &Value, passages: usize) -> Result<Vec<Option<f64>>, String> {
    let results = answer.get("results").or_else(|| answer.get("data")).unwrap_or(answer);
    let results = results.as_array().ok_or("no `results` with relevance scores")?;
    let mut relevance = vec![None; passages];
    for result in results {
        let index = result.get("index").and_then(Value::as_u64).and_then(|index| usize::try_from(index).ok());
        let score = result.get("relevance_score").or_else(|| result.get("score")).and_then(Value::as_f64);
        let (Some(index), Some(score)) = (index, score) else {
            return Err("a result without `index` and `relevance_score`".to_string());
        };
        match relevance.get_mut(index) {
            Some(slot @ None) => *slot = Some(score),
            Some(_) => return Err(format!("two results for passage {index}")),
            None => return Err(format!("a result for passage {index}, of {passages}")),
        }
    }
    match relevance.iter().any(Option::is_some) {
        true => Ok(relevance),
        false => Err("no result".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_in_every_shape() {
        let expected = Ok(vec![Some(0.1), None, Some(0.9)]);
        let cohere = json!({"results": [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]});
        let voyage = json!({"data": [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}]});
        let inference = json!([{"index": 2, "score": 0.9}, {"index": 0, "score": 0.1}]);
        for answer in [cohere, voyage, inference] {
            assert_eq!(relevance(&answer, 3), expected);
        }
    }

    #[test]
    fn results_that_are_none_say_why() {
        let error = |answer: Value| relevance(&answer, 2).unwrap_err();
        assert_eq!(error(json!({"id": 1})), "no `results` with relevance scores");
        assert_eq!(error(json!({"results": []})), "no result");
        assert_eq!(error(json!({"results": [{"index": 0}]})), "a result without `index` and `relevance_score`");
        assert_eq!(error(json!([{"index": 5, "score": 1}])), "a result for passage 5, of 2");
        assert_eq!(error(json!([{"index": 0, "score": 1}, {"index": 0, "score": 2}])), "two results for passage 0");
    }
}
