//! An answer without a model: the sentences of the best passages that come nearest to the question, each with its
//! reference.

use std::collections::HashSet;
use std::fmt::Write as _;

use super::search;
use crate::domain::chunk::is_field;
use crate::domain::{Hit, Lang};
use crate::knowledge::Knowledge;
use crate::knowledge::split::sentences;

/// Sentences in an answer, at most.
const ANSWER_SENTENCES: usize = 6;
/// Sentences of a passage that are compared with the question; what stands further down is detail.
const COMPARED_SENTENCES: usize = 24;
/// Shorter lines are labels: they say something only with what they stand above.
const MIN_SENTENCE_CHARS: usize = 8;
const MAX_SENTENCE_CHARS: usize = 600;

/// The answer to a question from passages.
///
/// # Errors
/// An embedder that fails.
pub(super) async fn answer(knowledge: &Knowledge, question: &str, hits: &[Hit], lang: Lang) -> anyhow::Result<String> {
    let sentences = candidates(hits);
    let texts: Vec<String> = sentences.iter().map(|sentence| sentence.text.clone()).collect();
    let nearness = if texts.is_empty() { Vec::new() } else { knowledge.similarities(question, &texts).await? };
    Ok(extract(hits, choose(sentences, &nearness), lang))
}

/// A sentence or a block of code of a passage.
#[derive(Debug, Clone, PartialEq)]
struct Sentence {
    /// Index of its hit, and its place there.
    hit: usize,
    place: usize,
    text: String,
}

/// The sentences of the passages, none twice: copies of a page say the same.
fn candidates(hits: &[Hit]) -> Vec<Sentence> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (hit, passage) in hits.iter().enumerate() {
        let sentences = sentences(&passage.content).into_iter().map(|text| text.trim().to_string());
        let says_something = |text: &String| {
            (MIN_SENTENCE_CHARS..=MAX_SENTENCE_CHARS).contains(&text.chars().count()) && !is_label(text)
        };
        let new = sentences.filter(says_something).filter(|text| seen.insert(text.clone()));
        found.extend(new.take(COMPARED_SENTENCES).enumerate().map(|(place, text)| Sentence { hit, place, text }));
    }
    found
}

/// Headings, rules, and fields for machines.
fn is_label(text: &str) -> bool {
    text.lines().all(is_field)
        || (text.starts_with('#') && !text.contains('\n'))
        || text.chars().all(|c| !c.is_alphanumeric())
}

/// The nearest sentences, the first passage's preferred, in the order in which they stand.
fn choose(sentences: Vec<Sentence>, nearness: &[f64]) -> Vec<Sentence> {
    // Half a tenth for each rank: enough to decide between equals, not to bring up what says less.
    let value = |at: usize| nearness.get(at).copied().unwrap_or(0.0) - 0.05 * sentences[at].hit as f64;
    let mut order: Vec<usize> = (0..sentences.len()).collect();
    order.sort_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
    order.truncate(ANSWER_SENTENCES);
    order.sort_unstable();
    order.into_iter().map(|at| sentences[at].clone()).collect()
}

/// The answer: what is quoted, from where, and that nobody thought about it.
fn extract(hits: &[Hit], chosen: Vec<Sentence>, lang: Lang) -> String {
    if hits.is_empty() {
        return lang
            .pick(
                "Nothing in the knowledge base comes near to this question, and no model was used. Index documents about it with `oncall index PATH`.\n",
                "知识库中没有与该问题相近的内容，也未使用模型。可用 `oncall index PATH` 索引相关文档。\n",
            )
            .to_string();
    }
    let mut text = lang.pick("From the runbooks, word for word:\n", "以下摘自运维手册原文：\n").to_string();
    let mut last_hit = None;
    for sentence in &chosen {
        if last_hit != Some(sentence.hit) {
            let _ = writeln!(text, "\n{} [{}]\n", search::title_path(&hits[sentence.hit]), hits[sentence.hit].rank);
            last_hit = Some(sentence.hit);
        }
        let is_block = sentence.text.contains('\n');
        let cited = format!("[{}]", hits[sentence.hit].rank);
        match is_block {
            true => _ = writeln!(text, "{}\n", sentence.text),
            false => _ = writeln!(text, "- {} {cited}", bare(&sentence.text)),
        }
    }
    text.push_str(lang.pick(
        "\n(No model was used: these are the passages nearest to the question.)\n",
        "\n（未使用模型：以上为与问题最相近的原文片段。）\n",
    ));
    text
}

/// A sentence without the mark of the list item or quotation that it was.
fn bare(text: &str) -> &str {
    let text = text.trim_start_matches(['>', ' ']);
    ["- ", "* ", "+ "].iter().find_map(|mark| text.strip_prefix(mark)).unwrap_or(text).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(rank: usize, title: &str, content: &str) -> Hit {
        Hit {
            rank,
            score: 1.0,
            source: format!("{title}.md"),
            title: title.into(),
            headings: vec![title.into(), "Steps".into()],
            content: content.into(),
            via: vec!["vector".into()],
            cosine: 0.5,
        }
    }

    #[test]
    fn an_extract_quotes_the_nearest_sentences_with_their_references() {
        let hits = [
            hit(1, "Disk", "## Steps\n\nRun df -h first. Then look for large logs.\n"),
            hit(2, "Other", "Nothing of use here."),
        ];
        let sentences = candidates(&hits);
        let chosen = choose(sentences, &[0.9, 0.8, -1.0]);
        assert_eq!(
            extract(&hits, chosen[..2].to_vec(), Lang::En),
            "From the runbooks, word for word:\n\nDisk > Steps [1]\n\n- Run df -h first. [1]\n- Then look for large logs. [1]\n\n\
             (No model was used: these are the passages nearest to the question.)\n"
        );
    }

    #[test]
    fn copies_of_a_sentence_are_quoted_once() {
        let hits = [hit(1, "A", "先检查磁盘使用率。再清理日志文件。"), hit(2, "B", "先检查磁盘使用率。")];
        let texts: Vec<_> = candidates(&hits).into_iter().map(|sentence| sentence.text).collect();
        assert_eq!(texts, ["先检查磁盘使用率。", "再清理日志文件。"]);
    }

    #[test]
    fn fields_for_machines_are_not_quoted() {
        let hits = [hit(1, "A", "Alerts: `NodeDiskFull`\nCategory: `disk_full`\n\nRun df -h first.")];
        let texts: Vec<_> = candidates(&hits).into_iter().map(|sentence| sentence.text).collect();
        assert_eq!(texts, ["Run df -h first."]);
    }

    #[test]
    fn no_hits_are_said_to_be_none() {
        assert!(extract(&[], vec![], Lang::Zh).starts_with("知识库中没有与该问题相近的内容"));
    }
}
