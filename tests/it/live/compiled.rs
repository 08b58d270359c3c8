//! A real Kubernetes API server and a real VictoriaLogs, which have to be compiled first: not part of `make test`.
//!
//! What is written by hand elsewhere is held against these: rights, credentials, pages, events, logs of pods, the words of
//! refusals; and the order-service incident.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::kubernetes::{STATUS, kinds, table_with};
use super::logs::{example_query, search, search_files, volume};
use super::together::{Watching, search_table};
use super::{Setting, example, fired_at, log_documents};
use crate::servers::http::{Asked, Reply, Served};
use crate::servers::kubernetes::{ApiServer, User};
use crate::servers::search::{Search, SearchServer};
use crate::servers::victorialogs::VictoriaLogs;

/// A folder in which the cluster is reached with `credentials`.
fn setting(server: &ApiServer, credentials: Value, more: &str) -> Setting {
    let setting = Setting::with("");
    let table = table_with(&server.kubeconfig(setting.folder.path(), credentials), more);
    std::fs::write(setting.folder.path().join("oncall.toml"), table).unwrap();
    setting
}

fn of_user(server: &ApiServer, user: User) -> Setting {
    setting(server, json!({"token": user.token()}), "")
}

fn findings(answer: &Value) -> &Value {
    &answer["output"]["findings"]
}

fn notes(answer: &Value) -> BTreeSet<String> {
    let notes = answer["output"]["notes"].as_array().unwrap().iter();
    notes.map(|note| note.as_str().unwrap().to_owned()).collect()
}

/// What is asked of a cluster for one question about its state.
const LISTED: [&str; 8] = [
    "list daemonsets",
    "list deployments",
    "list events",
    "list jobs",
    "list nodes",
    "list pods",
    "list replicasets",
    "list statefulsets",
];

#[test]
#[ignore = "needs a compiled Kubernetes: make test-servers"]
fn a_reader_gets_of_a_real_cluster_what_the_files_give() {
    let server = ApiServer::with_example(example());
    let files =
        |args: &[&str]| Setting::with("").document(&[args, &["--incident", example().to_str().unwrap()]].concat(), 0);
    let by_token = of_user(&server, User::Reader);
    for service in ["order-service", "user-service", "api-gateway"] {
        let args = ["tools", "call", "workload_status", &json!({"service": service}).to_string()].map(str::to_owned);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let live = by_token.document(&args, 0);
        assert_eq!(findings(&live), findings(&files(&args)), "{service}");
        assert_eq!(notes(&live), BTreeSet::new());
    }
    assert_eq!(server.audited(User::Reader), LISTED.map(str::to_owned).into());

    let (code, out, _) = by_token.run(&["doctor"]);
    assert_eq!(code, 0, "{out}");
    let line = out.lines().find(|line| line.contains("sources.cluster")).unwrap();
    assert!(line.trim_start().starts_with("ok") && line.contains("v1.20.2"), "{out}");

    // Whatever the user shows of himself, the same is answered.
    let want = by_token.document(&STATUS, 0);
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let own = server.certificate_of("ann");
    let certificate =
        json!({"client-certificate": file("tls.crt", &own.certificate), "client-key": file("tls.key", &own.key)});
    let plugin = file(
        "plugin",
        &format!(
            "#!/bin/sh\necho '{}'\n",
            json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": User::Reader.token()}})
        ),
    );
    let exec = json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": [plugin], "interactiveMode": "Never"}});
    let token_file = json!({"tokenFile": file("token", &User::Reader.token())});
    for credentials in [certificate, exec, token_file] {
        let answer = setting(&server, credentials.clone(), "").document(&STATUS, 0);
        assert_eq!(findings(&answer), findings(&want), "{credentials}");
    }
}

#[test]
#[ignore = "needs a compiled Kubernetes: make test-servers"]
fn what_a_real_cluster_refuses_is_told_and_the_rest_is_used() {
    let server = ApiServer::with_example(example());
    let part = of_user(&server, User::PartOfShop).document(&STATUS, 0);
    assert_eq!(kinds(&part).get("pod"), Some(&3), "{part}");
    let refused = |plural: &str, group: &str| {
        format!(
            "{plural}: forbidden: {plural}{} is forbidden: User \"part-of-shop\" cannot list resource \"{plural}\" in API group \"{group}\" at the cluster scope",
            if group.is_empty() { String::new() } else { format!(".{group}") }
        )
    };
    let mut want = BTreeSet::from(
        [
            ("daemonsets", "apps"),
            ("deployments", "apps"),
            ("jobs", "batch"),
            ("nodes", ""),
            ("replicasets", "apps"),
            ("statefulsets", "apps"),
        ]
        .map(|(plural, group)| refused(plural, group)),
    );
    want.insert("only namespace shop was looked at: listing all is forbidden for pods, events".to_owned());
    assert_eq!(notes(&part), want);
    // The events came by the newer API, whose objects have another form.
    let of_user_service = ["tools", "call", "workload_status", r#"{"service": "user-service"}"#];
    let events = |user: User| -> Vec<Value> {
        let answer = of_user(&server, user).document(&of_user_service, 0);
        let all = findings(&answer).as_array().unwrap().iter();
        all.filter(|finding| finding["type"] == "event").cloned().collect()
    };
    assert_eq!(events(User::PartOfShop), events(User::Reader));
    assert!(!events(User::Reader).is_empty());

    let (code, out, err) = of_user(&server, User::Nobody).run(&STATUS);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert_eq!(
        err,
        "error: cluster: forbidden: deployments.apps is forbidden: User \"nobody\" cannot list resource \"deployments\" in API group \"apps\" at the cluster scope\n"
    );
    let (code, out, err) = setting(&server, json!({"token": "of-nobody"}), "").run(&STATUS);
    assert_eq!((code, out.as_str()), (4, ""), "{err}");
    assert_eq!(err, "error: cluster: unauthorized: Unauthorized: check the user of the kubeconfig and its rights\n");

    // A certificate that nobody vouches for is told, not trusted.
    let unknown = Setting::with("");
    let config =
        std::fs::read_to_string(server.kubeconfig(unknown.folder.path(), json!({"token": User::Reader.token()})))
            .unwrap();
    let mut config: Value = serde_json::from_str(&config).unwrap();
    config["clusters"][0]["cluster"].as_object_mut().unwrap().remove("certificate-authority");
    let path = unknown.folder.path().join("kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    std::fs::write(unknown.folder.path().join("oncall.toml"), table_with(&path, "")).unwrap();
    let (code, _, err) = unknown.run(&STATUS);
    assert_eq!(code, 4);
    assert!(err.contains("certificate"), "{err}");
}

/// More pods than one page holds; the last is in trouble.
#[test]
#[ignore = "needs a compiled Kubernetes: make test-servers"]
fn all_pages_of_a_real_cluster_are_read() {
    let server = ApiServer::with_example(example());
    let mut pod: Value = serde_json::from_slice(&std::fs::read(example().join("status/pods.json")).unwrap()).unwrap();
    let mut pod = pod["items"][0].take();
    pod["metadata"].as_object_mut().unwrap().remove("ownerReferences");
    pod["metadata"]["labels"] = json!({"app": "many"});
    for number in 0..1100 {
        pod["metadata"]["name"] = json!(format!("many-{number}"));
        server.create("/api/v1/namespaces/shop/pods", &pod);
    }
    pod["metadata"]["name"] = json!("zuletzt");
    pod["status"]["containerStatuses"][0] = json!({
        "name": "order-service", "image": "x", "imageID": "x", "ready": false, "restartCount": 7,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": fired_at().to_string()}},
    });
    server.create_with_status("/api/v1", "pods", &pod);
    let setting = of_user(&server, User::Reader);
    let answer = setting.document(&["tools", "call", "workload_status", r#"{"service": "many"}"#], 0);
    let pods = findings(&answer).as_array().unwrap().iter().filter(|finding| finding["type"] == "pod");
    let first = pods.clone().next().unwrap();
    assert_eq!(
        (first["name"].as_str(), first["containers"][0]["last_termination"].as_str()),
        (Some("zuletzt"), Some("OOMKilled (exit 137)")),
        "{first}"
    );
    // All of them were read.
    assert_eq!(notes(&answer), ["30 of 1101 pods are shown".to_owned()].into());
}

/// A kubelet, as far as the API server asks it for logs.
fn kubelet() -> Served {
    let answer = |asked: &Asked| {
        let Some(container) = asked.path().strip_prefix("/containerLogs/shop/") else { return Reply::status(404, "") };
        let word = if asked.target.contains("previous=true") { "before the restart" } else { "running" };
        let at = fired_at();
        Reply {
            headers: Vec::new(),
            ..Reply::json(format!("{at} ERROR pool of {container} is empty, {word}\n{at} \tat a.B(C.java:1)\n"))
        }
    };
    Served::start_self_signed(answer).0
}

#[test]
#[ignore = "needs a compiled Kubernetes: make test-servers"]
fn the_logs_of_pods_come_through_a_real_cluster() {
    let (server, kubelet) = (ApiServer::with_example(example()), kubelet());
    for node in ["node-a", "node-b", "node-c"] {
        let status = json!({"status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": kubelet.address.port()}},
        }});
        let path = format!("/api/v1/nodes/{node}/status");
        server.admin(reqwest::Method::PATCH, &path, "application/merge-patch+json", &status.to_string());
    }
    let setting = of_user(&server, User::Reader);
    let output = search(&setting, &example_query());
    assert_eq!(
        (&output["source"], &volume(&output)["levels"]["error"]),
        (&json!("cluster/logs"), &json!(3)),
        "{output}"
    );
    assert!(output["findings"][1]["sample"].as_str().unwrap().contains("\tat a.B(C.java:1)"), "{output}");
    let asked: BTreeSet<String> = server.audited(User::Reader);
    assert!(asked.contains("get pods/log"), "{asked:?}");
    let reads = |entry: &String| entry.starts_with("get ") || entry.starts_with("list ");
    assert!(asked.iter().all(reads), "{asked:?}");
    assert!(kubelet.asked().iter().all(|asked| asked.target.contains("timestamps=true")), "{:?}", kubelet.asked());
}

#[test]
#[ignore = "needs a compiled Kubernetes and VictoriaLogs: make test-servers"]
fn the_order_service_is_diagnosed_with_a_real_cluster_and_each_store_of_logs() {
    let (watching, server) = (Watching::start(), ApiServer::with_example(example()));
    let documents = log_documents();
    // First of all, so that what it takes in is old enough to be found.
    let victorialogs = VictoriaLogs::start();
    victorialogs.store(&flat(&documents));
    let diagnose = |table: String, logs: &str| {
        let setting = Setting::with("");
        let kubeconfig = server.kubeconfig(setting.folder.path(), json!({"token": User::Reader.token()}));
        watching.diagnose(&setting, &(table + &table_with(&kubeconfig, "")), logs);
    };
    for which in [Search::OpenSearch, Search::Elasticsearch] {
        let logs = SearchServer::start(which);
        logs.store("logs-shop", &documents);
        diagnose(search_table(&logs), "es");
    }
    diagnose(victorialogs_table(&victorialogs, "limit = 200000\n"), "vl");
    let asked = server.audited(User::Reader);
    assert_eq!(asked, LISTED.map(str::to_owned).into());
}

fn victorialogs_table(logs: &VictoriaLogs, more: &str) -> String {
    format!("[sources.vl]\nkind = \"victorialogs\"\nurl = \"{}\"\n{more}", logs.url())
}

/// Documents of the Elastic Common Schema as events of VictoriaLogs.
fn flat(documents: &[Value]) -> Vec<Value> {
    let event = |document: &Value| {
        json!({
            "_time": document["@timestamp"], "_msg": document["message"], "level": document["log"]["level"],
            "service": document["service"]["name"], "pod": document["kubernetes"]["pod"]["name"],
        })
    };
    documents.iter().map(event).collect()
}

#[test]
#[ignore = "needs a compiled VictoriaLogs: make test-servers"]
fn a_real_victorialogs_gives_what_the_files_give() {
    let logs = VictoriaLogs::start();
    logs.store(&flat(&log_documents()));
    let query = example_query();
    let all = Setting::with(&victorialogs_table(&logs, "limit = 200000\n"));
    // The files first: what was just taken in is found some seconds later.
    let files = search_files(&query);
    let live = search(&all, &query);
    for part in ["events", "levels"] {
        assert_eq!(volume(&live)[part], volume(&files)[part], "{live}");
    }
    assert_eq!(live["findings"][1]["template"], files["findings"][1]["template"]);

    for words in [json!(["HIKARIPOOL-1"]), json!(["order", "(total=20"]), json!(["a.b\"c\\"]), json!(["_msg:*"])] {
        let mut asked: Value = serde_json::from_str(&query).unwrap();
        asked["keywords"] = words;
        let asked = asked.to_string();
        let want = search_files(&asked);
        assert_eq!(volume(&search(&all, &asked))["events"], volume(&want)["events"], "{asked}");
    }

    let limited = search(&Setting::with(&victorialogs_table(&logs, "limit = 600\n")), &query);
    assert_eq!(limited["truncated"], true, "{limited}");
    assert!(limited["notes"][0].as_str().unwrap().contains(" events match; "), "{limited}");

    let nobody = search(&all, &query.replace("order-service", "nobody"));
    assert_eq!(nobody["findings"][0]["type"], "nothing");
    assert!(nobody["notes"][0].as_str().unwrap().contains("order-service"), "{nobody}");
    let (code, out, _) = all.run(&["doctor"]);
    assert_eq!(code, 0, "{out}");
}
