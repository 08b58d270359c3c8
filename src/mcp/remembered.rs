//! What servers offered in the last run, so that a tool which changed in between is told: its description is what a
//! model, and the person who allowed it, judged it by.
//!
//! In: a file of fingerprints by server and tool, and what is offered now. Out: the changes, and the file brought up to
//! date. A server that is seen for the first time has no changes.

use std::collections::BTreeMap;
use std::path::Path;

use super::client::Server;

/// Fingerprints by server and tool.
type Known = BTreeMap<String, BTreeMap<String, String>>;

/// What changed of one server's tools.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    pub server: String,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub altered: Vec<String>,
}

/// Compares with the file and writes it anew.
///
/// # Errors
/// The file cannot be written.
pub fn compare<'a>(path: &Path, servers: impl IntoIterator<Item = &'a Server>) -> std::io::Result<Vec<Changes>> {
    let now: Known = servers
        .into_iter()
        .map(|server| {
            let tools = server.offers().iter().map(|offer| (offer.tool.clone(), offer.fingerprint.clone()));
            (server.name().to_owned(), tools.collect())
        })
        .collect();
    // A damaged file is as good as none: it is written anew.
    let before: Known =
        std::fs::read_to_string(path).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let changes = now.iter().filter_map(|(server, tools)| changes(server, before.get(server)?, tools)).collect();
    let mut merged = before.clone();
    merged.extend(now);
    if merged != before {
        write(path, &merged)?;
    }
    Ok(changes)
}

fn changes(server: &str, before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<Changes> {
    let shown = |tool: &String| crate::domain::text::clean_line(tool, 80);
    let changes = Changes {
        server: server.to_owned(),
        added: now.keys().filter(|tool| !before.contains_key(*tool)).map(shown).collect(),
        removed: before.keys().filter(|tool| !now.contains_key(*tool)).map(shown).collect(),
        altered: now
            .iter()
            .filter(|(tool, print)| before.get(*tool).is_some_and(|old| old != *print))
            .map(|(tool, _)| shown(tool))
            .collect(),
    };
    let is_same = changes.added.is_empty() && changes.removed.is_empty() && changes.altered.is_empty();
    (!is_same).then_some(changes)
}

/// Beside the old file first, so that one that breaks off leaves the old.
fn write(path: &Path, known: &Known) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&beside, serde_json::to_vec(known)?)?;
    std::fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(all: &[(&str, &str)]) -> BTreeMap<String, String> {
        all.iter().map(|(tool, print)| ((*tool).to_owned(), (*print).to_owned())).collect()
    }

    #[test]
    fn what_was_added_removed_and_altered_is_told() {
        let before = tools(&[("a", "1"), ("b", "1"), ("c", "1")]);
        let now = tools(&[("a", "1"), ("b", "2"), ("d", "1")]);
        let want = Changes {
            server: "s".into(),
            added: vec!["d".into()],
            removed: vec!["c".into()],
            altered: vec!["b".into()],
        };
        assert_eq!(changes("s", &before, &now), Some(want));
        assert_eq!(changes("s", &before, &before), None);
    }
}
