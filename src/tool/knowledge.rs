//! `retrieve_knowledge`: passages of the runbooks that answer a question.
//!
//! In: a query. Out: hits, best first; where nothing is close enough, that is said.

use std::sync::Arc;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{bad_arguments, input_schema, outcome, parse_arguments};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Failure, FailureKind, Finding, Found, Hit, Outcome, Output, Served, ToolSpec};
use crate::knowledge::Knowledge;

pub const NAME: &str = "retrieve_knowledge";
/// The source, as the source strip and the evidence show it.
pub const SOURCE: &str = "knowledge";

/// Passages that a call may ask for.
const MAX_HITS: usize = 20;
/// A longer query is cut; the embedding sees no more of it anyway.
const MAX_QUERY_CHARS: usize = 2000;
/// Characters of a passage, several times what one is split to.
const MAX_PASSAGE_CHARS: usize = 8000;
const MAX_TITLE_CHARS: usize = 300;

/// Searches for a query, with how many hits are wanted at most. The error says what to do.
type Search = Box<dyn Fn(String, usize) -> BoxFuture<'static, Result<Found, String>> + Send + Sync>;

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {
    /// What to look for: a question, symptoms, an alert's name, an error code. English or Chinese.
    query: String,
    /// How many passages at most, 1 to 20.
    k: Option<usize>,
}

/// The tool.
pub struct RetrieveKnowledge {
    spec: ToolSpec,
    search: Search,
    default_k: usize,
    /// Documents that a wrong diagnosis of this alert drew on: their passages come after others.
    distrusted: Vec<String>,
    /// The document that the alert links to: its passages come first.
    linked: Option<String>,
    /// The page that it links to, where that is no indexed document.
    page: Option<Hit>,
}

impl RetrieveKnowledge {
    /// `default_k` passages are given when a call does not say how many.
    pub fn new(knowledge: Arc<Knowledge>, default_k: usize) -> Self {
        let search: Search = Box::new(move |query, k| {
            let knowledge = Arc::clone(&knowledge);
            async move { knowledge.find(&query, k).await.map_err(|error| error.to_string()) }.boxed()
        });
        Self::over(search, default_k)
    }

    fn over(search: Search, default_k: usize) -> Self {
        Self {
            spec: spec(),
            search,
            default_k: default_k.clamp(1, MAX_HITS),
            distrusted: Vec::new(),
            linked: None,
            page: None,
        }
    }

    /// Puts passages of the document that the alert links to, or the page itself, before others.
    pub fn with_runbook(mut self, document: Option<String>, page: Option<Hit>) -> Self {
        (self.linked, self.page) = (document, page);
        self
    }

    /// Puts passages of these documents behind others: a diagnosis that drew on them was wrong.
    pub fn with_distrusted(mut self, sources: Vec<String>) -> Self {
        self.distrusted = sources;
        self
    }

    /// As many hits as are wanted, those that are trusted first.
    fn chosen(&self, hits: Vec<Hit>, k: usize) -> Vec<Hit> {
        if !self.prefers() {
            return hits;
        }
        let is_linked = |hit: &Hit| self.linked.as_ref() == Some(&hit.source);
        let (linked, others): (Vec<Hit>, Vec<Hit>) = hits.into_iter().partition(is_linked);
        let (trusted, others): (Vec<Hit>, Vec<Hit>) =
            others.into_iter().partition(|hit| !self.distrusted.contains(&hit.source));
        let first = self.page.iter().cloned().chain(linked);
        let chosen = first.chain(trusted).chain(others).take(k).enumerate();
        chosen.map(|(index, hit)| Hit { rank: index + 1, ..hit }).collect()
    }

    /// Passages of the linked document, when the words of the query found none: by its own name it is found.
    async fn linked_unless_among(&self, hits: &[Hit]) -> Vec<Hit> {
        let Some(linked) = self.linked.as_ref().filter(|linked| !hits.iter().any(|hit| &hit.source == *linked)) else {
            return Vec::new();
        };
        let stem = std::path::Path::new(linked).file_stem().unwrap_or_default().to_string_lossy();
        let name = stem.replace(|c: char| !c.is_alphanumeric(), " ");
        let found = (self.search)(name, MAX_HITS).await;
        let of_it = |hit: &Hit| &hit.source == linked;
        found.map(|found| found.hits.into_iter().filter(of_it).collect()).unwrap_or_default()
    }

    /// Whether the order of a search is not the last word.
    fn prefers(&self) -> bool {
        !self.distrusted.is_empty() || self.linked.is_some() || self.page.is_some()
    }

    async fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let arguments: Arguments = parse_arguments(arguments)?;
        let query = clean(arguments.query.trim(), MAX_QUERY_CHARS);
        if query.is_empty() {
            return Err(bad_arguments("`query` is empty: expected a question, symptoms or an alert's name"));
        }
        let k = match arguments.k {
            None => self.default_k,
            Some(k) if (1..=MAX_HITS).contains(&k) => k,
            Some(k) => return Err(bad_arguments(format!("`k` is {k}: expected 1 to {MAX_HITS}"))),
        };
        // What is put back is replaced by what comes next.
        let asked = match (&self.linked, self.prefers()) {
            // Its passages may come late by their words alone.
            (Some(_), _) => MAX_HITS,
            (None, true) => (2 * k).min(MAX_HITS),
            (None, false) => k,
        };
        let found = (self.search)(query.clone(), asked)
            .await
            .map_err(|message| Failure::of_source(SOURCE, FailureKind::Unavailable, clean_line(&message, 500)))?;
        let mut hits = found.hits;
        hits.extend(self.linked_unless_among(&hits).await);
        let mut findings: Vec<_> = self.chosen(hits, k).into_iter().map(|hit| Finding::Hit(cleaned(hit))).collect();
        if findings.is_empty() {
            findings.push(Finding::Nothing { what: format!("runbook passage on: {}", clean_line(&query, 200)) });
        }
        Ok(Output {
            source: SOURCE.to_owned(),
            window: None,
            findings,
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: Some(found.quality),
        })
    }
}

#[async_trait]
impl Tool for RetrieveKnowledge {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments).await)
    }
}

/// How the tool presents itself, for listings that need not open the knowledge base.
pub fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Passages of the team's runbooks that fit a question or symptoms, best first, with their document \
                      and headings."
                .to_owned(),
        input_schema: input_schema::<Arguments>(),
        server: "builtin".to_owned(),
        read_only: true,
    }
}

fn cleaned(hit: Hit) -> Hit {
    Hit {
        title: clean_line(&hit.title, MAX_TITLE_CHARS),
        source: clean_line(&hit.source, MAX_TITLE_CHARS),
        headings: hit.headings.iter().map(|heading| clean_line(heading, MAX_TITLE_CHARS)).collect(),
        content: clean(&hit.content, MAX_PASSAGE_CHARS),
        ..hit
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::{RetrievalQuality, RetrievalVerdict};

    fn hit(content: &str) -> Hit {
        Hit {
            rank: 1,
            score: 0.5,
            source: "pool.md".into(),
            title: "Pool".into(),
            headings: vec!["Pool".into(), "Fix".into()],
            content: content.into(),
            via: vec!["vector".into()],
            cosine: 0.4,
        }
    }

    fn found(hits: Vec<Hit>) -> Found {
        let quality = RetrievalQuality {
            candidates: 9,
            best_distance: Some(0.5),
            best_text_score: None,
            kept: hits.len(),
            best_score: Some(0.5),
            margin: None,
            verdict: RetrievalVerdict::Strong,
        };
        Found { hits, quality }
    }

    async fn call(arguments: Value) -> Outcome {
        let search: Search = Box::new(|query, k| {
            let answer = match query.as_str() {
                "down" => Err("the store is gone: run `oncall index`".to_owned()),
                "off topic" => Ok(found(Vec::new())),
                _ => Ok(found(vec![hit("grow\u{1b}[31m the pool"); k])),
            };
            async move { answer }.boxed()
        });
        RetrieveKnowledge::over(search, 3).call(arguments, &CancellationToken::new()).await
    }

    #[tokio::test]
    async fn hits_are_findings_and_cleaned() {
        let Outcome::Output(output) = call(json!({"query": "pool exhausted"})).await else { panic!("no output") };
        assert_eq!(output.findings, vec![Finding::Hit(hit("grow the pool")); 3]);
        assert_eq!(output.retrieval.map(|quality| (quality.candidates, quality.kept)), Some((9, 3)));
        let Outcome::Output(output) = call(json!({"query": "pool exhausted", "k": 1})).await else {
            panic!("no output")
        };
        assert_eq!(output.findings.len(), 1);
    }

    #[test]
    fn passages_of_distrusted_documents_come_after_others_and_are_counted_anew() {
        let of = |source: &str| Hit { source: source.into(), ..hit("x") };
        let tool = RetrieveKnowledge::over(Box::new(|_, _| unreachable!()), 3).with_distrusted(vec!["a.md".into()]);
        let chosen = tool.chosen(vec![of("a.md"), of("b.md"), of("c.md")], 2);
        let places: Vec<_> = chosen.iter().map(|hit| (hit.rank, hit.source.as_str())).collect();
        assert_eq!(places, [(1, "b.md"), (2, "c.md")]);
        assert_eq!(tool.chosen(vec![of("a.md")], 2)[0].source, "a.md");
    }

    #[tokio::test]
    async fn a_linked_document_is_found_by_its_name_where_the_words_of_the_alert_do_not_find_it() {
        let search: Search = Box::new(|query, _| {
            let source = if query == "cart store" { "en/cart-store.md" } else { "pool.md" };
            async move { Ok(found(vec![Hit { source: source.into(), ..hit("x") }])) }.boxed()
        });
        let tool = RetrieveKnowledge::over(search, 3).with_runbook(Some("en/cart-store.md".into()), None);
        let outcome = tool.call(json!({"query": "something is wrong"}), &CancellationToken::new()).await;
        let Outcome::Output(output) = outcome else { panic!("no output") };
        let Finding::Hit(first) = &output.findings[0] else { panic!("no hit") };
        assert_eq!((first.rank, first.source.as_str(), output.findings.len()), (1, "en/cart-store.md", 2));
    }

    #[tokio::test]
    async fn no_hit_is_a_finding_and_a_lost_store_a_failure() {
        let Outcome::Output(output) = call(json!({"query": "off topic"})).await else { panic!("no output") };
        assert_eq!(output.findings, [Finding::Nothing { what: "runbook passage on: off topic".into() }]);
        let failure =
            Failure::of_source("knowledge", FailureKind::Unavailable, "the store is gone: run `oncall index`");
        assert_eq!(call(json!({"query": "down"})).await, Outcome::Failure(failure));
    }

    #[tokio::test]
    async fn a_query_without_words_and_an_odd_number_are_refused() {
        for arguments in
            [json!({"query": " "}), json!({"query": "a", "k": 0}), json!({"query": "a", "k": 21}), json!({})]
        {
            let Outcome::Failure(failure) = call(arguments).await else { panic!("no failure") };
            assert_eq!(failure.kind, FailureKind::BadArguments);
        }
    }
}
