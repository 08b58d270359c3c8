//! Incident memory: what people say of a diagnosis comes back with the same alert, and with one that reads alike.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::program::{indexed_data_dir, oncall, said};

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    said(&oncall(dir).args(args).output().unwrap())
}

/// An alert on standard input, diagnosed without any source.
fn diagnose_alert(dir: &Path, alert: &Value, args: &[&str]) -> (i32, String, String) {
    let mut command = oncall(dir);
    command.args(["diagnose", "--alert", "-", "--quiet"]).args(args).write_stdin(alert.to_string());
    said(&command.output().unwrap())
}

/// A data folder with a copy of the indexed runbooks, to which incidents may be added.
fn folder_with_runbooks() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let copied = Command::new("cp").arg("-r").arg(indexed_data_dir().join("knowledge")).arg(dir.path()).status();
    assert!(copied.unwrap().success());
    dir
}

fn shop_alert(name: &str, summary: &str, starts_at: &str) -> Value {
    json!({
        "status": "firing", "startsAt": starts_at,
        "labels": {"alertname": name, "service": "order-service"}, "annotations": {"summary": summary},
    })
}

#[test]
fn what_people_said_comes_back_with_the_same_alert_and_with_one_that_reads_alike() {
    let folder = folder_with_runbooks();
    let dir = folder.path();
    let alert = |at: &str| {
        json!([shop_alert("OrderErrorRateHigh", "order-service answers 23% of its requests with an error", at)])
    };
    let history = |out: &str| -> Value { serde_json::from_str::<Value>(out).unwrap()["history"].clone() };
    let (code, out, err) = diagnose_alert(dir, &alert("2026-03-04T06:30:00Z"), &["--json"]);
    assert_eq!((code, err.as_str(), history(&out)), (0, "", Value::Null));
    // The same firing again is no second time.
    let (_, out, _) = diagnose_alert(dir, &alert("2026-03-04T06:30:00Z"), &["--json"]);
    assert_eq!(history(&out), Value::Null);
    let feedback = [
        "session",
        "feedback",
        "last",
        "--wrong",
        "--cause",
        "db_connection_pool_exhausted",
        "--note",
        "raised the pool to 40",
    ];
    let (code, _, err) = run(dir, &feedback);
    assert_eq!(code, 0);
    assert!(err.contains("kept as a known incident: alerts like it will be shown its cause"), "{err}");
    for lang in ["en", "zh"] {
        let (code, out, _) = diagnose_alert(dir, &alert("2026-03-05T09:10:00Z"), &["--lang", lang]);
        assert_eq!(code, 0);
        let from = out.find(if lang == "en" { "## Seen before" } else { "## 历史情况" }).unwrap();
        insta::assert_snapshot!(
            format!("seen_before_{lang}"),
            out[from..].split("\n\n").take(2).collect::<Vec<_>>().join("\n\n")
        );
    }
    // Another alert, of the same meaning, in another data folder that shares the knowledge base.
    let other = tempfile::tempdir().unwrap();
    let alike =
        json!([shop_alert("ApiErrorsHigh", "order-service fails 20% of requests with errors", "2026-03-06T01:00:00Z")]);
    let mut command = oncall(other.path());
    command.env("ONCALL_KNOWLEDGE_STORE", dir.join("knowledge"));
    command.args(["diagnose", "--alert", "-", "--quiet", "--json"]).write_stdin(alike.to_string());
    let (code, out, _) = said(&command.output().unwrap());
    let known = &history(&out)["precedents"][0];
    assert_eq!(
        (code, &known["matched"], &known["category"]),
        (0, &json!("similarity"), &json!("db_connection_pool_exhausted"))
    );
    assert_eq!(known["note"], "raised the pool to 40");
    // And one of another trade is not.
    let apart = json!([shop_alert(
        "CertificateExpiresSoon",
        "TLS certificate of the gateway expires in 3 days",
        "2026-03-06T01:00:00Z"
    )]);
    let mut command = oncall(other.path());
    command.env("ONCALL_KNOWLEDGE_STORE", dir.join("knowledge"));
    command.args(["diagnose", "--alert", "-", "--quiet", "--json"]).write_stdin(apart.to_string());
    assert_eq!(history(&said(&command.output().unwrap()).1), Value::Null);
}

#[test]
fn an_alert_that_comes_and_goes_is_said_to_be_flapping() {
    let dir = folder_with_runbooks();
    for minute in [0, 20, 40, 59] {
        let alert = json!([shop_alert("PodFlaps", "pod is not ready", &format!("2026-03-04T06:{minute:02}:00Z"))]);
        let (code, out, _) = diagnose_alert(dir.path(), &alert, &[]);
        assert_eq!((code, out.contains("(flapping)")), (0, minute == 59), "{out}");
    }
}
