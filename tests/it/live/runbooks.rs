//! The runbook that an alert links to.

use serde_json::{Value, json};

use super::Setting;
use crate::program::root;
use crate::servers::http::{Reply, Served};

fn diagnose(url: &str, config: &str) -> Value {
    let setting = Setting::with(config);
    let alert = json!({
        "labels": {"alertname": "Anything", "service": "cart"},
        "annotations": {"summary": "something is wrong with carts", "runbook_url": url},
        "startsAt": "2026-03-04T06:30:00Z",
    });
    std::fs::write(setting.folder.path().join("alert.json"), alert.to_string()).unwrap();
    setting.document(&["diagnose", "--alert", "alert.json", "--lang", "en"], 0)
}

fn link(document: &Value) -> (String, String) {
    let source = document["sources"].as_array().unwrap().iter().find(|source| source["name"] == "runbook_url").unwrap();
    (source["status"].as_str().unwrap().to_owned(), source["detail"].as_str().unwrap().to_owned())
}

#[test]
fn a_link_leads_to_the_indexed_document_of_its_name_or_is_told() {
    let mut names: Vec<String> = std::fs::read_dir(root().join("docs-kb/en"))
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md") && !name.starts_with("README"))
        .collect();
    names.sort();
    let name = &names[names.len() / 2];
    let document = diagnose(&format!("https://wiki.example/runbooks/{}", name.trim_end_matches(".md")), "");
    let (status, detail) = link(&document);
    assert_eq!(status, "ok");
    assert!(detail.ends_with(name.as_str()), "{detail}");
    assert!(
        document["references"][0]["source"].as_str().unwrap().ends_with(name.as_str()),
        "{}",
        document["references"]
    );

    let (status, detail) = link(&diagnose("https://wiki.example/gone", ""));
    let want = "https://wiki.example/gone is none of the indexed documents: index it (oncall index), or allow \
                knowledge.fetch_runbooks";
    assert_eq!((status.as_str(), detail.as_str()), ("empty", want));
}

#[test]
fn a_link_is_fetched_only_where_that_is_allowed() {
    let server = Served::start(|asked| match asked.path() {
        "/cart.md" => Reply::json("# Carts\n\n## Steps\n\n1. Look at the cart store.\n"),
        _ => Reply::status(404, "gone"),
    });
    let url = format!("{}/cart.md", server.url());
    diagnose(&url, "");
    assert!(server.asked().is_empty());
    let allowed = "[knowledge]\nfetch_runbooks = true\n";
    let document = diagnose(&url, allowed);
    assert_eq!(link(&document), ("ok".to_owned(), url.clone()));
    assert_eq!(
        (&document["references"][0]["title"], &document["references"][0]["source"]),
        (&json!("Carts"), &json!(url))
    );
    let (status, detail) = link(&diagnose(&format!("{}/old.md", server.url()), allowed));
    assert_eq!(status, "error");
    assert!(detail.contains("cannot be read (404 Not Found): mend the link"), "{detail}");
}
