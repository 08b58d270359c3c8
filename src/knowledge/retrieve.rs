//! Finds the passages that answer a query: by vectors and by full text at the same time, then ranked together.
//!
//! The rank is `cosine + 0.4 · text score / best text score`, and more for a document whose title names an identifier of
//! the query. The weight was chosen on 225 English, Chinese and mixed queries, the same on which the ways of joining the
//! two lists were compared, so that its figures there say nothing of other queries; `make eval` prints those of today.
//! Where a reranker is configured, it orders the best of these anew. Under the embedder's floor a passage is no match,
//! unless it names an identifier of the query.

use std::collections::{HashMap, HashSet};

use super::rerank::Reranker;
use super::rows::Candidate;
use super::store::Store;
use super::{Embedder, KnowledgeError, MatchFloor, TextRole, terms};
use crate::domain::text::{clean, clean_line};
use crate::domain::{Found, Hit, Lang, RetrievalQuality, RetrievalVerdict};

const TEXT_WEIGHT: f64 = 0.4;
/// The document is about what the query names: nothing else comes before it.
const NAMED_IN_TITLE: f64 = 1.0;
/// An identifier that more of the candidate documents name tells nothing about any of them.
const RARE_DOCUMENTS: usize = 5;
/// Candidates of each list: what is further down does not come up by the other's score.
const MIN_CANDIDATES: usize = 60;
/// Longer queries are whole payloads, whose end says nothing that their beginning did not.
const MAX_QUERY_CHARS: usize = 4000;
const MAX_QUERY_TERMS: usize = 80;

/// The passages that answer a query, best first. A question that finds nothing is searched for once more by its subject.
pub(super) async fn search(
    store: &Store,
    embedder: &dyn Embedder,
    reranker: Option<&Reranker>,
    query: &str,
    k: usize,
) -> Result<Found, KnowledgeError> {
    let found = search_as_it_is(store, embedder, reranker, query, k).await?;
    match subject(query).filter(|_| found.hits.is_empty()) {
        Some(subject) => search_as_it_is(store, embedder, reranker, subject, k).await,
        None => Ok(found),
    }
}

/// What a question is about, without the words that ask: they are in every question, and draw its vector away from
/// passages, which do not ask. `None` when there are none.
fn subject(query: &str) -> Option<&str> {
    let trimmed = query.trim().trim_end_matches(['?', '？', '.', '。', '!', '！']);
    let lower = trimmed.to_ascii_lowercase();
    let start = ASKING.iter().filter(|words| lower.starts_with(**words)).map(|words| words.len()).max().unwrap_or(0);
    let rest = &trimmed[start..];
    let end = ASKING_AT_THE_END.iter().find_map(|words| rest.strip_suffix(words)).unwrap_or(rest).trim();
    (end.len() < query.trim().len() && !end.is_empty()).then_some(end)
}

/// Words that begin a question, in lower case.
const ASKING: &[&str] = &[
    "how do i ",
    "how do we ",
    "how can i ",
    "how can we ",
    "how should i ",
    "how to ",
    "how does one ",
    "what is ",
    "what are ",
    "what do i do when ",
    "what do i do if ",
    "what should i do when ",
    "what should i do if ",
    "what to do when ",
    "what to do if ",
    "what does ",
    "why is ",
    "why are ",
    "why does ",
    "why do ",
    "where do i ",
    "where can i ",
    "which ",
    "when should i ",
    "can you tell me ",
    "tell me ",
    "please ",
    "help me ",
    "请问",
    "如何",
    "怎么",
    "怎样",
    "为什么",
    "什么是",
    "帮我",
    "告诉我",
];
const ASKING_AT_THE_END: &[&str] =
    &["该怎么办", "怎么办", "怎么处理", "如何处理", "怎么解决", "如何解决", "是什么", "吗"];

async fn search_as_it_is(
    store: &Store,
    embedder: &dyn Embedder,
    reranker: Option<&Reranker>,
    query: &str,
    k: usize,
) -> Result<Found, KnowledgeError> {
    let query = clean(query, MAX_QUERY_CHARS);
    if query.trim().is_empty() || k == 0 {
        return Ok(Found { hits: Vec::new(), quality: Recall::default().quality(&[], embedder.match_floor()) });
    }
    // A reranker sees more than is wanted: it may bring up what stands further down.
    let kept = reranker.map_or(k, |reranker| reranker.top_n().max(k));
    let limit = MIN_CANDIDATES.max(kept.saturating_mul(3));
    let query_terms = distinct(terms::terms(&query));
    let joined = query_terms.join(" ");
    let by_vector = async {
        let vector = query_vector(embedder, &query).await?;
        let found = store.nearest(&vector, limit).await?;
        Ok::<_, KnowledgeError>((vector, found))
    };
    let by_text = async { Ok::<_, KnowledgeError>(store.matching(&joined, limit).await?) };
    let ((vector, nearest), matching) = tokio::try_join!(by_vector, by_text)?;
    let (mut ranked, recall) = rank(&query, &vector, nearest, matching, embedder.match_floor());
    ranked.truncate(kept);
    if let Some(reranker) = reranker {
        rerank(reranker, &query, &mut ranked).await;
    }
    ranked.truncate(k);
    let quality = recall.quality(&ranked, embedder.match_floor());
    let hits = ranked.into_iter().enumerate().map(|(at, scored)| hit(at + 1, scored)).collect();
    Ok(Found { hits, quality })
}

/// What both searches brought up, before anything was judged.
#[derive(Debug, Clone, Copy, Default)]
struct Recall {
    candidates: usize,
    best_distance: Option<f64>,
    best_text_score: Option<f64>,
}

impl Recall {
    /// With what was kept of it, best first.
    fn quality(self, kept: &[Scored], floor: MatchFloor) -> RetrievalQuality {
        let value = |scored: &Scored| scored.relevance.unwrap_or_else(|| scored.score());
        RetrievalQuality {
            candidates: self.candidates,
            best_distance: self.best_distance,
            best_text_score: self.best_text_score,
            kept: kept.len(),
            best_score: kept.first().map(value),
            margin: kept.get(1).map(|second| value(&kept[0]) - value(second)),
            verdict: match kept.first() {
                None => RetrievalVerdict::None,
                Some(best) if best.named != Naming::Nowhere => RetrievalVerdict::Strong,
                // Twice the floor: far enough from what all texts of one trade have in common.
                Some(best) if best.cosine >= 2.0 * floor.with_terms => RetrievalVerdict::Strong,
                Some(_) => RetrievalVerdict::Weak,
            },
        }
    }
}

/// Orders candidates by the reranker's relevance, but for documents that the query names: those stay before the others.
/// What it leaves out comes last, in the order in which it was.
async fn rerank(reranker: &Reranker, query: &str, ranked: &mut [Scored]) {
    let passages: Vec<String> = ranked.iter().map(|scored| whole_passage(&scored.candidate)).collect();
    let Some(relevance) = reranker.relevance(query, &passages).await else { return };
    for (scored, relevance) in ranked.iter_mut().zip(relevance) {
        scored.relevance = relevance;
    }
    let key = |scored: &Scored| (scored.named == Naming::InTitle, scored.relevance.unwrap_or(f64::NEG_INFINITY));
    ranked.sort_by(|a, b| {
        let ((a_named, a), (b_named, b)) = (key(a), key(b));
        b_named.cmp(&a_named).then(b.total_cmp(&a))
    });
}

/// A passage with the names above it.
fn whole_passage(candidate: &Candidate) -> String {
    let chunk = &candidate.chunk;
    let names = std::iter::once(&chunk.title).chain(chunk.headings.iter().filter(|heading| **heading != chunk.title));
    format!("{}\n{}", names.map(String::as_str).collect::<Vec<_>>().join(" > "), chunk.content)
}

pub(super) async fn similarities(
    embedder: &dyn Embedder,
    question: &str,
    texts: &[String],
) -> Result<Vec<f64>, KnowledgeError> {
    let question = query_vector(embedder, question).await?;
    let mut vectors = embedder.embed(TextRole::Passage, texts).await?;
    for (vector, text) in vectors.iter_mut().zip(texts) {
        embedder.centre(vector, TextRole::Passage, Lang::of(text));
    }
    Ok(vectors.iter().map(|vector| cosine(&question, vector)).collect())
}

pub(super) async fn query_vector(embedder: &dyn Embedder, query: &str) -> Result<Vec<f32>, KnowledgeError> {
    let mut vectors = embedder.embed(TextRole::Query, &[query.to_string()]).await?;
    let mut vector = vectors.pop().unwrap_or_default();
    embedder.centre(&mut vector, TextRole::Query, Lang::of(query));
    Ok(vector)
}

/// The first of each term, up to the limit.
fn distinct(terms: Vec<String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for term in terms {
        if distinct.len() < MAX_QUERY_TERMS && !distinct.contains(&term) {
            distinct.push(term);
        }
    }
    distinct
}

/// A candidate with what speaks for it.
struct Scored {
    candidate: Candidate,
    cosine: f64,
    /// Relative to the best text score; `None` when full text did not find it.
    text: Option<f64>,
    is_near: bool,
    named: Naming,
    /// What the reranker says.
    relevance: Option<f64>,
}

/// Where a passage names an identifier of the query.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Naming {
    Nowhere,
    InPassage,
    InTitle,
}

impl Scored {
    fn score(&self) -> f64 {
        // A passage that merely mentions the identifier has its rare term counted in the text score already.
        let named = if self.named == Naming::InTitle { NAMED_IN_TITLE } else { 0.0 };
        self.cosine + TEXT_WEIGHT * self.text.unwrap_or(0.0) + named
    }

    fn is_match(&self, floor: MatchFloor) -> bool {
        let floor = if self.text.is_some() { floor.with_terms } else { floor.without_terms };
        self.named != Naming::Nowhere || self.cosine >= floor
    }

    fn via(&self) -> Vec<String> {
        let ways = [
            ("vector", self.is_near),
            ("text", self.text.is_some()),
            ("identifier", self.named != Naming::Nowhere),
            ("rerank", self.relevance.is_some()),
        ];
        ways.iter().filter(|(_, found)| *found).map(|(way, _)| (*way).to_string()).collect()
    }
}

/// The matches, best first.
fn rank(
    query: &str,
    vector: &[f32],
    nearest: Vec<Candidate>,
    matching: Vec<Candidate>,
    floor: MatchFloor,
) -> (Vec<Scored>, Recall) {
    let identifiers = rare_identifiers(query, nearest.iter().chain(&matching));
    let best_distance = nearest.iter().map(|candidate| f64::from(candidate.measure)).reduce(f64::min);
    let best_text_score = matching.iter().map(|candidate| f64::from(candidate.measure)).reduce(f64::max);
    let best_text = matching.iter().map(|candidate| f64::from(candidate.measure)).fold(f64::MIN_POSITIVE, f64::max);
    let mut scored: HashMap<String, Scored> = HashMap::new();
    let add = |candidate: Candidate| {
        let cosine = cosine(vector, &candidate.vector);
        let named = naming(&candidate, &identifiers);
        Scored { candidate, cosine, text: None, is_near: false, named, relevance: None }
    };
    for candidate in nearest {
        let id = candidate.id.clone();
        scored.entry(id).or_insert_with(|| add(candidate)).is_near = true;
    }
    for candidate in matching {
        let text = f64::from(candidate.measure) / best_text;
        let id = candidate.id.clone();
        scored.entry(id).or_insert_with(|| add(candidate)).text = Some(text);
    }
    let candidates = scored.len();
    let mut matches: Vec<Scored> = scored.into_values().filter(|scored| scored.is_match(floor)).collect();
    // Equal scores stand in the order of their places, so that the same query gives the same answer.
    let place = |scored: &Scored| (scored.candidate.chunk.source.clone(), scored.candidate.chunk.start);
    matches.sort_by(|a, b| b.score().total_cmp(&a.score()).then_with(|| place(a).cmp(&place(b))));
    // The same document indexed from two folders says nothing twice.
    let mut said = HashSet::new();
    matches
        .retain(|scored| said.insert((scored.candidate.chunk.title.clone(), scored.candidate.chunk.content.clone())));
    (matches, Recall { candidates, best_distance, best_text_score })
}

/// The identifiers of the query that only a few documents name: an alert's, not the product's.
fn rare_identifiers<'a>(query: &str, candidates: impl Iterator<Item = &'a Candidate>) -> Vec<String> {
    let mut naming: Vec<(String, HashSet<&str>)> =
        terms::identifiers(query).into_iter().map(|identifier| (identifier, HashSet::new())).collect();
    if naming.is_empty() {
        return Vec::new();
    }
    for candidate in candidates {
        let named = identifiers_of(candidate);
        for (identifier, sources) in &mut naming {
            if named.contains(identifier) {
                sources.insert(&candidate.chunk.source);
            }
        }
    }
    naming.retain(|(_, sources)| sources.len() <= RARE_DOCUMENTS);
    naming.into_iter().map(|(identifier, _)| identifier).collect()
}

fn identifiers_of(candidate: &Candidate) -> HashSet<String> {
    let chunk = &candidate.chunk;
    let texts = std::iter::once(&chunk.content).chain(&chunk.headings).chain(std::iter::once(&chunk.title));
    texts.flat_map(|text| terms::identifiers(text)).collect()
}

fn hit(rank: usize, scored: Scored) -> Hit {
    let (score, cosine, via) = (scored.relevance.unwrap_or_else(|| scored.score()), scored.cosine, scored.via());
    let chunk = scored.candidate.chunk;
    let line = |text: &str| clean_line(text, 300);
    Hit {
        rank,
        score,
        source: line(&chunk.source),
        title: line(&chunk.title),
        headings: chunk.headings.iter().map(|heading| line(heading)).collect(),
        content: clean(&chunk.content, usize::MAX),
        via,
        cosine,
    }
}

/// Both have unit length.
pub(super) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    f64::from(a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>())
}

fn naming(candidate: &Candidate, identifiers: &[String]) -> Naming {
    if identifiers.is_empty() {
        return Naming::Nowhere;
    }
    if terms::identifiers(&candidate.chunk.title).iter().any(|name| identifiers.contains(name)) {
        return Naming::InTitle;
    }
    let named = identifiers_of(candidate);
    if identifiers.iter().any(|name| named.contains(name)) { Naming::InPassage } else { Naming::Nowhere }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_without_the_words_that_ask_is_its_subject() {
        assert_eq!(subject("How do I find what fills the disk?"), Some("find what fills the disk"));
        assert_eq!(subject("连接池耗尽怎么处理？"), Some("连接池耗尽"));
        assert_eq!(subject("请问磁盘满了怎么办"), Some("磁盘满了"));
        assert_eq!(subject("disk full"), None);
        assert_eq!(subject("how to"), None);
        assert_eq!(subject("？"), None);
    }
}
