//! The direction of knowledge between modules (DESIGN: `domain, event` ← … ← `main`), read off every `use crate::`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What each module may use, besides itself.
fn allowed() -> BTreeMap<&'static str, Vec<&'static str>> {
    let base = ["control", "domain", "event", "http"];
    let evidence = ["alert", "analysis", "knowledge", "llm", "source"];
    let with = |more: &[&'static [&'static str]]| -> Vec<&'static str> {
        base.iter().chain(more.iter().copied().flatten()).copied().collect()
    };
    BTreeMap::from([
        ("domain", vec![]),
        ("control", vec!["domain"]),
        ("event", vec!["control", "domain"]),
        ("http", vec!["domain"]),
        ("trace", vec!["control", "domain", "event"]),
        ("session", with(&[&["trace"]])),
        ("config", vec!["domain", "http"]),
        ("alert", with(&[])),
        ("analysis", with(&[])),
        ("knowledge", with(&[])),
        ("llm", with(&[])),
        ("source", with(&[])),
        ("tool", with(&[&["alert", "analysis", "knowledge", "source"]])),
        ("mcp", with(&[&["alert", "analysis", "knowledge", "source", "tool"]])),
        ("reason", with(&[&["alert", "analysis", "knowledge", "llm", "source", "tool"]])),
        ("agent", with(&[&["alert", "analysis", "knowledge", "llm", "source", "tool", "reason"]])),
        ("ui", with(&[&["reason", "trace"]])),
        ("command", {
            let mut all = with(&[&["config", "session", "trace", "tool", "mcp", "reason", "agent", "ui", "cli"]]);
            all.extend(evidence);
            all
        }),
        ("cli", vec!["command", "config", "domain"]),
    ])
}

fn rust_files(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|e| e == "rs") {
            files.push(path);
        }
    }
}

/// The modules named in `crate::…` paths of a file, with their line numbers; `crate::{a, b}` names both.
fn used_modules(text: &str) -> Vec<(usize, String)> {
    let mut used = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for rest in code.split("crate::").skip(1) {
            let names = match rest.strip_prefix('{') {
                Some(list) => list.split('}').next().unwrap_or("").split(',').map(str::trim).collect(),
                None => vec![rest],
            };
            for name in names {
                let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
                used.push((number + 1, name[..end].to_string()));
            }
        }
    }
    used
}

#[test]
fn no_module_knows_one_that_stands_above_it() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let allowed = allowed();
    let mut files = Vec::new();
    rust_files(&src, &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let relative = file.strip_prefix(&src).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        let Some(allowed) = allowed.get(module) else { continue };
        let text = std::fs::read_to_string(file).unwrap();
        for (line, used) in used_modules(&text) {
            if used != module && !allowed.contains(&used.as_str()) {
                wrong.push(format!("{}:{line} uses crate::{used}", relative.display()));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert!(files.len() > 50, "only {} files were read", files.len());
}
