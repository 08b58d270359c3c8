//! Kubernetes: an API server written by hand that gives the lists of the example's files, since a real one takes half an hour
//! to build (`compiled.rs` asks it). What it gives is what `kubectl` printed of a cluster.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Setting;
use crate::servers::http::{Asked, Reply, Served};

/// What may be listed, and what may not.
#[derive(Clone, Copy, PartialEq)]
pub enum Rights {
    All,
    /// Neither nodes nor events, and nothing outside of the namespace `shop`.
    Namespace,
    None,
}

fn file_of(plural: &str) -> Option<Value> {
    let path = super::example().join(format!("status/{plural}.json"));
    Some(serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap())
}

fn forbidden(plural: &str) -> Reply {
    // As a real API server 1.20 says it.
    let message = format!(
        "{plural} is forbidden: User \"oncall-ro\" cannot list resource \"{plural}\" in API group \"\" at the cluster scope"
    );
    let body = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
                      "reason": "Forbidden", "details": {"kind": plural}, "code": 403});
    Reply::status(403, &body.to_string())
}

/// An API server. Lists come in pages of one object, as a server may choose.
pub fn cluster(rights: Rights) -> Served {
    Served::start(move |asked| {
        let path = asked.path();
        if path == "/version" {
            return Reply::json(r#"{"major":"1","minor":"31","gitVersion":"v1.31.0"}"#);
        }
        let plural = path.rsplit('/').next().unwrap_or("");
        if plural == "log" {
            return Reply { headers: Vec::new(), ..Reply::json(log_of(path, asked)) };
        }
        let is_allowed = match rights {
            Rights::All => true,
            Rights::Namespace => path.contains("/namespaces/shop/") && plural != "events",
            Rights::None => false,
        };
        if !is_allowed {
            return forbidden(plural);
        }
        let items =
            file_of(plural).map(|list| list["items"].as_array().cloned().unwrap_or_default()).unwrap_or_default();
        let at: usize =
            asked.target.split("continue=").nth(1).and_then(|rest| rest.split('&').next()?.parse().ok()).unwrap_or(0);
        let mut item = items.get(at).cloned();
        // A server does not say the kind of each item.
        if let Some(object) = item.as_mut().and_then(Value::as_object_mut) {
            object.remove("kind");
            object.remove("apiVersion");
        }
        let next = if at + 1 < items.len() { (at + 1).to_string() } else { String::new() };
        let list =
            json!({"kind": "List", "metadata": {"continue": next}, "items": item.into_iter().collect::<Vec<_>>()});
        Reply::json(list.to_string())
    })
}

fn log_of(path: &str, asked: &Asked) -> String {
    let previous = asked.target.contains("previous=true");
    let word = if previous { "before the restart" } else { "running" };
    format!(
        "2026-03-04T06:30:00.000000001Z ERROR pool of {path} is empty, {word}\n2026-03-04T06:30:00.000000002Z \tat a.B(C.java:1)\n"
    )
}

/// The table of a source that reaches the server.
pub fn table(folder: &std::path::Path, server: &Served, more: &str) -> String {
    table_of(folder, &server.url(), more)
}

/// The same, of a server that may not be there.
pub fn table_of(folder: &std::path::Path, url: &str, more: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "shop",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}],
        "contexts": [{"name": "shop", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
    });
    let path = folder.join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    table_with(&path, more)
}

/// The table of a source with this kubeconfig.
pub fn table_with(kubeconfig: &std::path::Path, more: &str) -> String {
    format!("[sources.cluster]\nkind = \"kubernetes\"\nkubeconfig = {}\n{more}\n", super::toml_path(kubeconfig))
}

fn setting(server: &Served, more: &str) -> Setting {
    let setting = Setting::with("");
    let table = table(setting.folder.path(), server, more);
    std::fs::write(setting.folder.path().join("oncall.toml"), table).unwrap();
    setting
}

pub fn kinds(answer: &Value) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for finding in answer["output"]["findings"].as_array().unwrap() {
        *kinds.entry(finding["type"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    kinds
}

pub const STATUS: [&str; 4] = ["tools", "call", "workload_status", "{\"service\": \"order-service\"}"];

#[test]
fn a_cluster_gives_the_same_facts_as_files_of_kubectl_by_get_alone() {
    let server = cluster(Rights::All);
    let setting = setting(&server, "");
    let live = setting.document(&STATUS, 0);
    let folder = super::example();
    let files = setting.document(&[&STATUS[..], &["--incident", folder.to_str().unwrap()]].concat(), 0);
    let of = |answer: &Value, kind: &str| -> Vec<Value> {
        let all = answer["output"]["findings"].as_array().unwrap().iter();
        all.filter(|finding| finding["type"] == kind).cloned().collect()
    };
    for kind in ["workload", "pod"] {
        assert_eq!(of(&live, kind), of(&files, kind), "{kind}");
        assert!(!of(&live, kind).is_empty());
    }
    assert_eq!(live["output"]["source"], "cluster");
    let asked = server.asked();
    assert!(
        asked.iter().all(|one| one.method == "GET"),
        "{:?}",
        asked.iter().map(|one| &one.method).collect::<Vec<_>>()
    );
    assert!(asked.iter().all(|one| one.headers.get("authorization").map(String::as_str) == Some("Bearer t0ken")));
    assert!(asked.iter().any(|one| one.target.contains("continue=1")));
}

#[test]
fn what_may_not_be_listed_is_said_and_the_rest_is_used() {
    let server = cluster(Rights::Namespace);
    let setting = setting(&server, "");
    let answer = setting.document(&STATUS, 0);
    assert_eq!(kinds(&answer)["pod"], 3, "{answer}");
    let notes: Vec<&str> =
        answer["output"]["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap()).collect();
    assert!(
        notes.contains(&"only namespace shop was looked at: listing all is forbidden for deployments, replicasets, statefulsets, daemonsets, jobs, pods"),
        "{notes:#?}"
    );
    assert!(notes.iter().any(|note| note.starts_with("nodes: forbidden: nodes is forbidden: User")), "{notes:#?}");
    assert!(notes.iter().any(|note| note.starts_with("events: forbidden: ")), "{notes:#?}");
    assert!(server.asked().iter().all(|one| one.method == "GET"));

    let (code, out, _) = setting.run(&["doctor"]);
    assert_eq!(code, 0, "{out}");
    assert!(
        out.contains("note  sources.cluster") && out.contains("v1.31.0") && out.contains("nodes: forbidden"),
        "{out}"
    );
}

#[test]
fn a_user_without_rights_is_unauthorised() {
    let server = cluster(Rights::None);
    let (code, _, err) = setting(&server, "").run(&STATUS);
    assert_eq!(code, 4);
    assert!(err.starts_with("error: cluster: forbidden: deployments is forbidden"), "{err}");
}

#[test]
fn the_logs_of_pods_are_read_where_there_are_no_others() {
    let server = cluster(Rights::All);
    let setting = setting(&server, "");
    let query =
        "{\"service\": \"order-service\", \"start\": \"2026-03-04T06:00:00Z\", \"end\": \"2026-03-04T06:45:00Z\"}";
    let answer = setting.document(&["tools", "call", "search_logs", query], 0);
    assert_eq!(answer["output"]["source"], "cluster/logs");
    let volume = &answer["output"]["findings"][0];
    assert_eq!(
        (volume["type"].as_str(), volume["levels"]["error"].as_u64()),
        (Some("log_volume"), Some(3)),
        "{answer}"
    );
    assert!(answer["output"]["findings"][1]["sample"].as_str().unwrap().contains("\tat a.B(C.java:1)"), "{answer}");
    assert!(server.asked().iter().all(|one| one.method == "GET"));
}

/// Lists without an end: a server that always names the same next page, and one that always names another.
#[test]
fn a_list_without_an_end_ends() {
    let endless = |next: fn(usize) -> String| {
        let count = std::sync::atomic::AtomicUsize::new(0);
        Served::start(move |asked| {
            if asked.path() == "/version" {
                return Reply::json(r#"{"gitVersion":"v1.31.0"}"#);
            }
            let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let pod = json!({"metadata": {"name": format!("order-service-{number}"), "namespace": "shop"}, "status": {"phase": "Running"}});
            let items = if asked.path().ends_with("/pods") { vec![pod; 500] } else { Vec::new() };
            Reply::json(json!({"kind": "List", "metadata": {"continue": next(number)}, "items": items}).to_string())
        })
    };
    let notes = |server: &Served| -> Vec<String> {
        let answer = setting(server, "").document(&STATUS, 0);
        let notes = answer["output"]["notes"].as_array().unwrap().iter();
        let notes = notes.map(|note| note.as_str().unwrap().to_owned());
        notes.filter(|note| !note.ends_with(" pods are shown")).collect()
    };
    let plurals = ["deployments", "replicasets", "statefulsets", "daemonsets", "jobs", "pods", "nodes", "events"];
    let same = endless(|_| "same".to_owned());
    let want =
        plurals.map(|plural| format!("{plural}: a part may be missing: the server names the same next page again"));
    assert_eq!(notes(&same), want);
    let other = endless(|number| number.to_string());
    let told = notes(&other);
    assert_eq!(told.len(), plurals.len(), "{told:?}");
    for (note, plural) in told.iter().zip(plurals) {
        assert!(note.starts_with(&format!("{plural}: only the first ")), "{note}");
        assert!(note.ends_with(" were read in time: name namespaces in the configuration"), "{note}");
    }

    // A check asks for one object of each, whatever comes after it.
    let asked = same.asked().len();
    let (code, out, _) = setting(&same, "").run(&["doctor"]);
    assert_eq!(code, 0, "{out}");
    let targets: Vec<String> = same.asked()[asked..].iter().map(|one| one.target.clone()).collect();
    assert_eq!(targets.len(), plurals.len() + 1, "{targets:?}");
    assert!(targets.iter().all(|target| target == "/version?" || target.contains("limit=1")), "{targets:?}");
}
