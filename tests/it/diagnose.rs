//! Whole diagnoses through the binary: the examples, the generated variants, and alerts without evidence.

use serde_json::Value;

use crate::program::{indexed_data_dir, oncall, root, said};
use crate::variants::variants;

fn diagnose(args: &[&str]) -> (i32, String, String) {
    said(&oncall(&indexed_data_dir()).arg("diagnose").args(args).output().unwrap())
}

fn document(args: &[&str]) -> Value {
    let (code, out, err) = diagnose(&[args, &["--json", "--quiet"]].concat());
    assert_eq!(code, 0, "{err}");
    serde_json::from_str(&out).unwrap()
}

/// `[category, service]` of the root cause.
fn cause(document: &Value) -> [&str; 2] {
    let cause = &document["root_cause"];
    [cause["category"].as_str().unwrap_or("unknown"), cause["service"].as_str().unwrap_or("")]
}

const EXAMPLES: [(&str, [&str; 2]); 3] = [
    ("examples/order-service", ["db_connection_pool_exhausted", "order-service"]),
    ("examples/oom-rollout", ["oom_killed", "catalog-service"]),
    ("examples/expired-certificate", ["tls_certificate_expired", "pay-gateway"]),
];

#[test]
fn the_examples_give_the_right_category_and_service_in_both_languages() {
    for (folder, expected) in EXAMPLES {
        for lang in ["en", "zh"] {
            let document = document(&["--incident", folder, "--lang", lang]);
            assert_eq!(cause(&document), expected, "{folder} in {lang}");
            assert_eq!(document["hypotheses"][0]["category"], expected[0], "{folder} in {lang}");
            assert_eq!(document["status"], "complete");
        }
    }
}

#[test]
fn the_order_service_cites_metric_log_and_status_and_refutes_a_crash() {
    let document = document(&["--incident", "examples/order-service"]);
    let evidence = document["evidence"].as_array().unwrap();
    let kind = |id: &Value| evidence.iter().find(|e| &e["id"] == id).unwrap()["kind"].as_str().unwrap().to_string();
    let hypotheses = document["hypotheses"].as_array().unwrap();
    let first = &hypotheses[0];
    let mut kinds: Vec<String> = first["evidence_for"].as_array().unwrap().iter().map(kind).collect();
    kinds.sort();
    kinds.dedup();
    assert!(kinds.contains(&"metric".into()) && kinds.contains(&"log".into()), "{kinds:?}");
    let crash = hypotheses.iter().find(|h| h["category"] == "crash_loop").expect("a crash is considered");
    assert_eq!(crash["verdict"], "refuted");
    let against: Vec<String> = crash["evidence_against"].as_array().unwrap().iter().map(kind).collect();
    assert!(against.contains(&"status".into()), "{against:?}");
    assert!(first["confidence"].as_f64().unwrap() < 1.0);
}

#[test]
fn every_claim_cites_evidence_that_exists() {
    for (folder, _) in EXAMPLES {
        let document = document(&["--incident", folder]);
        let ids: Vec<&str> =
            document["evidence"].as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap()).collect();
        for hypothesis in document["hypotheses"].as_array().unwrap() {
            let cited =
                ["evidence_for", "evidence_against"].into_iter().flat_map(|k| hypothesis[k].as_array().unwrap());
            for id in cited {
                assert!(ids.contains(&id.as_str().unwrap()), "{folder}: {id}");
            }
        }
    }
}

/// Takes out what differs from run to run.
fn stable(report: &str) -> String {
    let session = report.rfind("Session ").or_else(|| report.rfind("会话 ")).unwrap_or(report.len());
    report[..session].to_string()
}

#[test]
fn the_reports_read_as_they_should() {
    for (folder, _) in EXAMPLES {
        for lang in ["en", "zh"] {
            let (code, report, err) = diagnose(&["--incident", folder, "--lang", lang, "--quiet"]);
            assert_eq!((code, err.as_str()), (0, ""), "{folder} in {lang}");
            let name = format!("report_{}_{lang}", folder.trim_start_matches("examples/").replace('-', "_"));
            insta::assert_snapshot!(name, stable(&report));
        }
    }
}

#[test]
fn the_language_of_the_alert_decides() {
    let (_, report, _) = diagnose(&["--incident", "examples/expired-certificate", "--quiet"]);
    assert!(report.starts_with("# 诊断"), "{report}");
}

#[test]
fn an_alert_without_evidence_gives_the_runbook_and_no_cause() {
    let alert = root().join("tests/fixtures/alerts/alertmanager/webhook_002.json");
    let document = document(&["--alert", alert.to_str().unwrap()]);
    assert_eq!(document["root_cause"], Value::Null);
    assert_eq!(document["status"], "complete");
    assert!(!document["next_steps"].as_array().unwrap().is_empty());
    assert!(!document["references"].as_array().unwrap().is_empty());
    let strip: Vec<(&str, &str)> = document["sources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| (s["name"].as_str().unwrap(), s["status"].as_str().unwrap()))
        .filter(|(name, _)| !name.contains("knowledge"))
        .collect();
    // The link of this alert leads to no document that is indexed.
    assert_eq!(strip, ["metrics", "logs", "status", "changes", "runbook_url"].map(|name| (name, "empty")));
}

#[test]
fn resolved_alerts_are_said_to_be_resolved() {
    let alert = root().join("tests/fixtures/alerts/alertmanager/webhook_007.json");
    let (code, report, _) = diagnose(&["--alert", alert.to_str().unwrap(), "--lang", "en"]);
    assert_eq!(code, 0);
    assert!(report.contains("**resolved**"), "{report}");
}

#[test]
fn one_alert_can_be_selected_and_a_wrong_number_is_bad_input() {
    let alert = root().join("tests/fixtures/alerts/alertmanager/api_v2_alerts.json");
    let alert = alert.to_str().unwrap();
    let document = document(&["--alert", alert, "--select", "2"]);
    assert_eq!(document["alert"]["name"], "DbPoolExhausted");
    assert_eq!(document["related_alerts"], Value::Array(Vec::new()));
    let (code, _, err) = diagnose(&["--alert", alert, "--select", "9"]);
    assert_eq!((code, err.as_str()), (2, "error: --select 9: the payload holds 3 alerts\n"));
    let (code, _, err) = diagnose(&["--alert", alert, "--select", "0"]);
    assert_eq!(code, 2);
    assert!(err.contains("expected a number from 1 up, as `oncall alert show` lists the alerts"), "{err}");
}

#[test]
fn alerts_of_one_service_are_diagnosed_together() {
    let alert = root().join("tests/fixtures/alerts/alertmanager/api_v2_alerts.json");
    let document = document(&["--alert", alert.to_str().unwrap()]);
    assert_eq!(document["related_alerts"].as_array().unwrap().len(), 2);
}

#[test]
fn events_are_numbered_json_lines_that_end_with_the_diagnosis() {
    let (code, out, _) = diagnose(&["--incident", "examples/oom-rollout", "--json", "--events", "--quiet"]);
    assert_eq!(code, 0);
    let events: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    let last = events.last().unwrap();
    assert_eq!(last["event"], "run_ended");
    assert_eq!(cause(&last["diagnosis"]), ["oom_killed", "catalog-service"]);
}

/// What a variant's diagnosis gave, where it is not what was expected.
fn judge(variant: &crate::variants::Variant, document: &Value) -> Option<String> {
    let [category, service] = cause(document);
    let is_right = category == variant.category
        && (variant.category == "unknown" || service == variant.service || variant.also.contains(&service));
    let confidence = &document["root_cause"]["confidence"];
    (!is_right).then(|| {
        let (expected, held_by) = (variant.category, variant.service);
        format!("{}: expected {expected} at {held_by}, got {category} at {service} ({confidence})", variant.name)
    })
}

#[test]
fn generated_incidents_of_every_category_are_diagnosed() {
    let dir = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for variant in &variants() {
        let folder = dir.path().join(variant.name);
        variant.write(&folder).unwrap();
        let document = document(&["--incident", folder.to_str().unwrap()]);
        wrong.extend(judge(variant, &document));
    }
    assert_eq!(wrong, Vec::<String>::new());
}
