//! The runbook that an alert links to: found among the indexed documents first, by its path or name, then by the alert's
//! name; fetched only where the configuration allows it. A link that leads nowhere is told.

use std::time::Duration;

use reqwest::Url;

use super::Context;
use crate::domain::text::{clean, clean_line};
use crate::domain::{Hit, Lang, SourceReport, SourceStatus};
use crate::http::{self, HttpSettings};
use crate::knowledge::{Knowledge, document};

/// A page that takes longer is not waited for.
const DEADLINE: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1 << 20;
const MAX_PASSAGE_CHARS: usize = 6000;
const MAX_URL_CHARS: usize = 200;
/// How the link stands in the source strip.
const NAME: &str = "runbook_url";

/// What became of the link.
#[derive(Debug, Default)]
pub struct Runbook {
    /// The indexed document that is meant.
    pub document: Option<String>,
    /// The page, fetched.
    pub page: Option<Hit>,
    /// For the source strip.
    pub report: Option<SourceReport>,
}

/// Resolves the link of an alert.
pub async fn resolve(url: &str, alert: &str, knowledge: &Knowledge, lang: Lang, context: &Context) -> Runbook {
    let known = knowledge.document_list().await.unwrap_or_default();
    let known: Vec<&str> = known.iter().map(|(source, _)| source.as_str()).collect();
    let shown = clean_line(url, MAX_URL_CHARS);
    let report = |status, detail| Some(SourceReport { name: NAME.to_owned(), status, detail });
    if let Some(source) = meant(url, alert, &known) {
        let report = report(SourceStatus::Ok, format!("{shown} = {source}"));
        return Runbook { document: Some(source.to_owned()), page: None, report };
    }
    if !context.config.knowledge.fetch_runbooks {
        let detail = lang.pick(
            format!(
                "{shown} is none of the indexed documents: index it (oncall index), or allow knowledge.fetch_runbooks"
            ),
            format!("{shown} 不在已索引的文档中：请用 oncall index 建立索引，或启用 knowledge.fetch_runbooks"),
        );
        return Runbook { report: report(SourceStatus::Empty, detail), ..Runbook::default() };
    }
    match fetch(url).await {
        Ok(page) => Runbook { report: report(SourceStatus::Ok, shown), page: Some(page), document: None },
        Err(error) => {
            let detail = lang.pick(
                format!("{shown} cannot be read ({error}): mend the link in the alert's rule"),
                format!("无法读取 {shown}（{error}）：请修正告警规则中的链接"),
            );
            Runbook { report: report(SourceStatus::Error, detail), ..Runbook::default() }
        }
    }
}

/// The document that a link means: the one of its path, of its last part, or of the alert's name.
fn meant<'d>(url: &str, alert: &str, known: &[&'d str]) -> Option<&'d str> {
    let parsed = Url::parse(url).ok()?;
    let path = parsed.path().trim_matches('/');
    let by_path = || known.iter().find(|source| !path.is_empty() && is_below(source, path));
    let last = path.rsplit('/').next().unwrap_or("");
    // A page of a wiki has its place within the page.
    let fragment = parsed.fragment().unwrap_or("");
    let by_name = |name: &str| {
        let name = plain(name);
        known.iter().find(|source| !name.is_empty() && plain(source.rsplit('/').next().unwrap_or(source)) == name)
    };
    by_path().or_else(|| by_name(last)).or_else(|| by_name(fragment)).or_else(|| by_name(alert)).copied()
}

/// Whether a document is the one of a path, wherever its root lies.
fn is_below(source: &str, path: &str) -> bool {
    let end =
        |text: &str| text.strip_suffix(".md").or_else(|| text.strip_suffix(".html")).unwrap_or(text).to_lowercase();
    let (source, path) = (end(source), end(path));
    // One part alone is a name, which is compared more loosely.
    path.contains('/')
        && (source == path || source.ends_with(&format!("/{path}")) || path.ends_with(&format!("/{source}")))
}

/// A name without its ending, case and separators: `DbPoolExhausted`, `db-pool-exhausted.md`.
fn plain(name: &str) -> String {
    let stem = match name.rsplit_once('.') {
        Some((stem, "md" | "markdown" | "html" | "htm" | "txt" | "rst" | "adoc")) => stem,
        _ => name,
    };
    stem.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

async fn fetch(url: &str) -> Result<Hit, String> {
    let settings = HttpSettings { connect_timeout: DEADLINE, read_timeout: DEADLINE, ..HttpSettings::default() };
    let client = http::client(url, &settings).map_err(|error| error.to_string())?;
    let getting = client.get(url).timeout(DEADLINE).send();
    let mut answer = getting.await.map_err(|error| http::transport_error(&error).to_string())?;
    if !answer.status().is_success() {
        return Err(answer.status().to_string());
    }
    let mut bytes = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| http::transport_error(&error).to_string())? {
        bytes.extend_from_slice(&part);
        if bytes.len() > MAX_BYTES {
            return Err(format!("over {} KiB", MAX_BYTES >> 10));
        }
    }
    let name = url.split(['?', '#']).next().and_then(|url| url.rsplit('/').next()).unwrap_or("runbook.md");
    let document = document::read(name, &bytes).map_err(|error| error.to_string())?;
    if document.text.trim_start().starts_with('<') {
        return Err("a page of HTML: link to its Markdown".to_owned());
    }
    let title = document.text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(name);
    Ok(Hit {
        rank: 1,
        score: 1.0,
        source: clean_line(url, MAX_URL_CHARS),
        title: clean_line(title, MAX_URL_CHARS),
        headings: Vec::new(),
        content: clean(&document.text, MAX_PASSAGE_CHARS),
        via: vec![NAME.to_owned()],
        cosine: 1.0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_means_a_document_by_path_name_or_alert() {
        let known = ["en/database/connection-pool.md", "zh/disk-full.md", "en/high_error_rate.md"];
        let found = |url: &str, alert: &str| meant(url, alert, &known);
        assert_eq!(found("https://w.example/docs/database/connection-pool.md", "x"), Some(known[0]));
        assert_eq!(found("https://w.example/blob/main/en/database/connection-pool.md?plain=1", "x"), Some(known[0]));
        assert_eq!(found("https://w.example/runbooks/ConnectionPool/", "x"), Some(known[0]));
        assert_eq!(found("https://w.example/wiki#disk-full", "x"), Some(known[1]));
        assert_eq!(found("https://w.example/gone", "HighErrorRate"), Some(known[2]));
        assert_eq!(found("https://w.example/gone", "Other"), None);
        assert_eq!(found("https://w.example/", ""), None);
        assert_eq!(found("not a link", "HighErrorRate"), None);
    }
}
