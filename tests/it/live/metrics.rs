//! Prometheus: a real server with the example's history.

use serde_json::{Value, json};

use super::{POOL, Setting, alert, cause, prometheus, strip};
use crate::servers::http::{Reply, Served};

const RATE: &str = "sum by (service) (rate(http_requests_total{service=\"order-service\",status=~\"5..\"}[5m]))";

/// The time around the alert.
fn range() -> [String; 4] {
    let at = |minutes: i64| (super::fired_at() + jiff::SignedDuration::from_mins(minutes)).to_string();
    ["--start".into(), at(-30), "--end".into(), at(15)]
}

#[test]
fn a_real_prometheus_answers_as_the_files_do() {
    let server = prometheus();
    let setting = Setting::with(&format!("[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\n", server.url()));
    let range = range();
    let range: Vec<&str> = range.iter().map(String::as_str).collect();
    let live = setting.document(&[&["metrics", RATE, "--step", "60s"][..], &range].concat(), 0);
    let folder = super::example();
    let incident = ["--incident", folder.to_str().unwrap()];
    let files = setting.document(&[&["metrics", RATE, "--step", "60s"][..], &range, &incident].concat(), 0);
    assert_eq!(live["data"]["resultType"], "matrix");
    assert_eq!(live["data"]["result"][0]["metric"], json!({"service": "order-service"}));
    assert_eq!(live["summary"][0]["shape"], files["summary"][0]["shape"]);
    assert_eq!(live["summary"][0]["onset"], files["summary"][0]["onset"]);

    let (code, out, _) = setting.run(&["metrics", "nosuch_metric"]);
    assert_eq!((code, out.as_str()), (0, "no data for nosuch_metric\n"));
    let (code, _, err) = setting.run(&["metrics", "sum by (a) (x"]);
    assert_eq!(code, 2);
    assert!(err.contains("parse error"), "{err}");

    let (_folder, alert) = alert();
    let document = setting.document(&["diagnose", "--alert", &alert], 0);
    assert_eq!(cause(&document), POOL);
    assert_eq!(strip(&document), ["prod ok", "logs empty", "status empty", "changes empty", "runbook_url empty"]);

    let (code, out, err) = setting.run(&["doctor"]);
    let line = out.lines().find(|line| line.contains("sources.prod")).unwrap();
    assert!(line.starts_with("ok    sources.prod"), "{code} {out} {err}");
    assert!(line.contains("prometheus, 2.") || line.contains("prometheus, 3."), "{line}");
    assert!(line.contains(", newest 20"), "{line}");
}

#[test]
fn several_sources_of_a_kind_are_told_apart() {
    let server = prometheus();
    let url = server.url();
    let setting = Setting::with(&format!(
        "[sources.prod]\nkind = \"prometheus\"\nurl = \"{url}\"\nselect = {{ cluster = \"prod-sh\" }}\n\
         [sources.stage]\nkind = \"prometheus\"\nurl = \"{url}\"\nselect = {{ cluster = \"stage\" }}\n"
    ));
    let (code, _, err) = setting.run(&["metrics", "up"]);
    assert_eq!((code, err.as_str()), (2, "error: several sources of metrics: name one with --source: prod, stage\n"));
    assert_eq!(setting.run(&["metrics", "up", "--source", "stage"]).0, 0);
    let (_folder, alert) = alert();
    let document = setting.document(&["diagnose", "--alert", &alert], 0);
    assert_eq!(
        strip(&document),
        ["prod ok", "logs empty", "status empty", "changes empty", "stage empty", "runbook_url empty"]
    );
    let stage = document["sources"].as_array().unwrap().iter().find(|source| source["name"] == "stage").unwrap();
    assert_eq!(stage["detail"], "not asked: it is for alerts with cluster=stage");
}

/// Answers written by hand, in the form of a Prometheus API.
fn answered_by_hand() -> Served {
    Served::start(|asked| match asked.path() {
        "/api/v1/rules" => Reply::json(
            r#"{"status":"success","data":{"groups":[{"rules":[
                {"name":"Slow","query":"cart_latency_seconds > 2","labels":{"severity":"page"},"type":"alerting"}]}]}}"#,
        ),
        "/api/v1/query_range" => Reply::json(
            r#"{"status":"success","data":{"resultType":"matrix","result":[]},"warnings":["a store is down"]}"#,
        ),
        "/api/v1/series" | "/api/v1/labels" => Reply::json(r#"{"status":"success","data":[]}"#),
        _ => Reply::json(r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#),
    })
}

#[test]
fn the_rule_of_an_alert_says_what_it_watches_and_who_asks_is_said() {
    let server = answered_by_hand();
    let setting = Setting::with(&format!(
        "[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\ntenant = \"shop\"\nheaders = {{ x-team = \"cart\" }}\n\
         auth = {{ token_file = \"token\" }}\n",
        server.url()
    ));
    std::fs::write(setting.folder.path().join("token"), "t0ken\n").unwrap();
    let alert = json!({"labels": {"alertname": "Slow", "service": "cart", "severity": "page"}, "startsAt": "2026-03-04T06:30:00Z"});
    std::fs::write(setting.folder.path().join("alert.json"), alert.to_string()).unwrap();
    let document = setting.document(&["diagnose", "--alert", "alert.json"], 0);
    assert_eq!(document["facts"]["metric"], "cart_latency_seconds");
    assert_eq!(document["facts"]["threshold"], 2.0);
    let asked = server.asked();
    let header = |name: &str| asked.iter().map(|one| one.headers.get(name).cloned()).collect::<Vec<_>>();
    assert!(header("authorization").iter().all(|value| value.as_deref() == Some("Bearer t0ken")));
    assert!(header("x-scope-orgid").iter().all(|value| value.as_deref() == Some("shop")));
    assert!(header("x-team").iter().all(|value| value.as_deref() == Some("cart")));
    assert!(asked.iter().all(|one| one.method == "GET" || one.method == "POST"));
    let (_, _, err) = setting.run(&["metrics", "x", "--start", "-1h"]);
    assert_eq!(err, "warning: a store is down\n");
}

#[test]
fn without_a_cluster_the_state_of_workloads_is_read_from_kube_state_metrics() {
    let server = Served::start(|asked| {
        let series = |name: &str, labels: Value, value: f64| {
            let mut metric = labels;
            metric["__name__"] = json!(name);
            json!({"metric": metric, "value": [1_772_606_700, value.to_string()]})
        };
        let pod = json!({"namespace": "shop", "pod": "cart-7d9f8b6c5d-x2x4q", "container": "cart"});
        let result =
            match asked.target.contains("count%28kube_pod_info%29") || asked.target.contains("count(kube_pod_info)") {
                true => vec![json!({"metric": {}, "value": [1_772_606_700, "1"]})],
                false if asked.target.contains("kube_deployment") => vec![
                    series("kube_deployment_spec_replicas", json!({"namespace": "shop", "deployment": "cart"}), 1.0),
                    series(
                        "kube_deployment_status_replicas_ready",
                        json!({"namespace": "shop", "deployment": "cart"}),
                        0.0,
                    ),
                    series("kube_pod_container_status_restarts_total", pod, 9.0),
                ],
                false => Vec::new(),
            };
        Reply::json(json!({"status": "success", "data": {"resultType": "vector", "result": result}}).to_string())
    });
    let setting = Setting::with(&format!("[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\n", server.url()));
    let answer = setting.document(&["tools", "call", "workload_status", "{\"service\": \"cart\"}"], 0);
    assert_eq!(answer["output"]["source"], "prod/kube-state-metrics");
    let found: Vec<&str> =
        answer["output"]["findings"].as_array().unwrap().iter().map(|f| f["type"].as_str().unwrap()).collect();
    assert_eq!(found, ["workload", "pod"]);
}
