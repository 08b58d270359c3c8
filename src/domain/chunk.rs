//! Indexed passages and what a search found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A passage of a document, as indexed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Chunk {
    /// The passage, byte for byte as it stands in the document (a split table repeats its header).
    pub content: String,
    /// The document: path relative to the indexed root, with `/`.
    pub source: String,
    /// The document's title: its first heading, else its file name.
    pub title: String,
    /// The headings above the passage, outermost first.
    pub headings: Vec<String>,
    /// Byte range in the decoded document.
    pub start: usize,
    pub end: usize,
}

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Hit {
    /// From 1.
    pub rank: usize,
    /// After reranking, higher is better; comparable within one answer.
    pub score: f64,
    pub source: String,
    pub title: String,
    pub headings: Vec<String>,
    pub content: String,
    /// What found it, `vector`, `text`, `identifier`; and `rerank` where that gave the score.
    pub via: Vec<String>,
    /// Cosine of query and passage, -1 to 1; centred by language for the embedded model, where under .18 is no match.
    pub cosine: f64,
}

impl Hit {
    /// The headings below the title, outermost first: a document's first heading is mostly its title.
    pub fn heading_path(&self) -> String {
        let below: Vec<&str> =
            self.headings.iter().filter(|heading| **heading != self.title).map(String::as_str).collect();
        below.join(" > ")
    }
}

/// Whether what a search found can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RetrievalVerdict {
    /// The best passage names an identifier of the query, or is clearly near to it.
    Strong,
    Weak,
    /// Nothing was kept.
    None,
}

/// How good a search was on both of its levels: L0, what recall brought up; L1, what reranking kept.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RetrievalQuality {
    /// Distinct passages that either search brought up.
    pub candidates: usize,
    /// Smallest squared distance of the vectors, 0 to 4.
    pub best_distance: Option<f64>,
    /// Best full-text score.
    pub best_text_score: Option<f64>,
    /// Passages in the answer.
    pub kept: usize,
    /// Score of the first passage after reranking.
    pub best_score: Option<f64>,
    /// Its distance from the second one, where there is one.
    pub margin: Option<f64>,
    pub verdict: RetrievalVerdict,
}

/// What a search found, and how good it is.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Best first.
    pub hits: Vec<Hit>,
    pub quality: RetrievalQuality,
}

/// Whether a line of a runbook is a field such as `Alerts: ...`, by which machines find it and which tells people nothing.
pub fn is_field(line: &str) -> bool {
    let line = line.trim().to_lowercase();
    ["alerts:", "category:", "相关告警", "类别"].iter().any(|name| line.starts_with(name))
}
