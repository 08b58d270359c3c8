//! `oncall search`: the passages that answer a query, with their scores.

use std::io::{BufRead, BufReader};

use serde_json::json;

use super::{BadInput, Context, Exit, index};
use crate::domain::text::head;
use crate::domain::{Hit, Lang};
use crate::knowledge::{Knowledge, Use};

/// Characters of a passage that are shown; `--json` has all.
const EXCERPT_CHARS: usize = 480;

#[derive(Debug, clap::Args)]
pub struct SearchArgs {
    /// What to look for; "-" reads one query a line from standard input
    pub query: String,
    /// At most so many passages; without it, as configured (knowledge.top_k)
    #[arg(short = 'k', value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub k: Option<u32>,
}

pub async fn run(args: SearchArgs, context: &Context) -> anyhow::Result<Exit> {
    let k = args.k.map_or(context.config.knowledge.top_k, |k| k as usize);
    if args.query.trim().is_empty() {
        return Err(BadInput("the query is empty: expected words to look for, or - for standard input".into()).into());
    }
    let knowledge = index::open(context, Use::AsItIs).await?;
    if knowledge.is_empty().await? {
        index::refresh(&knowledge, context).await?;
    }
    if args.query != "-" {
        return answer(&knowledge, &args.query, k, None, context).await;
    }
    let mut lines = BufReader::new(std::io::stdin());
    let mut number = 0;
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        // A query that is not UTF-8 still has its number, and its readable part is searched for.
        let query = String::from_utf8_lossy(&line).into_owned();
        answer(&knowledge, query.trim(), k, Some(number), context).await?;
        number += 1;
        line.clear();
    }
    Ok(Exit::Success)
}

/// Prints the hits of one query; `number` counts the queries of standard input.
async fn answer(
    knowledge: &Knowledge,
    query: &str,
    k: usize,
    number: Option<usize>,
    context: &Context,
) -> anyhow::Result<Exit> {
    let hits = knowledge.search(query, k).await?;
    let lang = context.lang.unwrap_or_else(|| Lang::of(query));
    if context.is_json() {
        let lines: String = hits.iter().map(|hit| format!("{}\n", hit_json(hit, number))).collect();
        context.print(&lines)?;
    } else if hits.is_empty() {
        context.note(lang.pick("nothing in the knowledge base comes near to it", "知识库中没有相近的内容"));
    } else {
        let blocks: Vec<String> = hits.iter().map(|hit| block(hit, context.columns())).collect();
        context.print(&format!("{}\n", blocks.join("\n")))?;
    }
    Ok(Exit::Success)
}

fn hit_json(hit: &Hit, number: Option<usize>) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    if let Some(number) = number {
        object.insert("query".into(), json!(number));
    }
    if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(hit) {
        object.extend(fields);
    }
    serde_json::Value::Object(object)
}

/// A numbered reference: where it stands, how sure it is, and the beginning of what it says.
fn block(hit: &Hit, columns: usize) -> String {
    let path = title_path(hit);
    let excerpt = head(hit.content.trim(), EXCERPT_CHARS);
    let mark = if excerpt.len() < hit.content.trim().len() { " ..." } else { "" };
    let options = textwrap::Options::new(columns.clamp(40, 110)).initial_indent("    ").subsequent_indent("    ");
    let body = textwrap::fill(&format!("{excerpt}{mark}"), options);
    format!(
        "[{}] {path}\n    {}  score {:.2}, cosine {:.2}, via {}\n{body}\n",
        hit.rank,
        hit.source,
        hit.score,
        hit.cosine,
        hit.via.join(" + ")
    )
}

/// Title and headings, outermost first, without saying anything twice.
pub(super) fn title_path(hit: &Hit) -> String {
    match hit.heading_path() {
        path if path.is_empty() => hit.title.clone(),
        path => format!("{} > {path}", hit.title),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit() -> Hit {
        Hit {
            rank: 1,
            score: 0.91234,
            source: "en/disk.md".into(),
            title: "Disk full".into(),
            headings: vec!["Disk full".into(), "Diagnosis".into()],
            content: "Run df -h first.\n".into(),
            via: vec!["vector".into(), "text".into()],
            cosine: 0.5,
        }
    }

    #[test]
    fn a_reference_names_its_place_and_says_how_it_was_found() {
        assert_eq!(
            block(&hit(), 80),
            "[1] Disk full > Diagnosis\n    en/disk.md  score 0.91, cosine 0.50, via vector + text\n    Run df -h first.\n"
        );
    }

    #[test]
    fn a_line_of_json_numbers_its_query() {
        let keys = |number| match hit_json(&hit(), number) {
            serde_json::Value::Object(object) => object.keys().cloned().collect::<Vec<_>>().join(" "),
            other => panic!("{other}"),
        };
        assert_eq!(keys(Some(4)), "query rank score source title headings content via cosine");
        assert_eq!(keys(None), "rank score source title headings content via cosine");
    }
}
