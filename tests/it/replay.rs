//! `oncall diagnose --record`: what was recorded gives the same diagnosis without its sources.

use serde_json::Value;

use crate::program::{indexed_data_dir, oncall, said};

fn diagnose(args: &[&str]) -> (i32, String, String) {
    said(&oncall(&indexed_data_dir()).args(["diagnose", "--quiet"]).args(args).output().unwrap())
}

/// A document without what differs from run to run.
fn stable(document: &str) -> Value {
    let mut document: Value = serde_json::from_str(document).unwrap();
    for varying in ["session_id", "timings"] {
        document.as_object_mut().unwrap().remove(varying);
    }
    document
}

#[test]
fn a_recorded_diagnosis_is_made_again_without_its_sources() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("recorded");
    let folder = folder.to_str().unwrap();
    let (code, first, err) = diagnose(&["--incident", "examples/oom-rollout", "--record", folder, "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let mut files: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort();
    assert_eq!(files, ["alert.json", "config.toml", "exchanges.jsonl", "incident.toml"]);
    let (code, again, err) = diagnose(&["--incident", folder, "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let (first, again) = (stable(&first), stable(&again));
    assert_eq!(first["root_cause"], again["root_cause"]);
    assert_eq!(first["evidence"], again["evidence"]);
    assert_eq!(first["hypotheses"], again["hypotheses"]);
    let (code, out, err) = diagnose(&["--incident", "examples/oom-rollout", "--record", folder]);
    let expected = "an incident is in it already: expected a new folder";
    assert_eq!((code, out.as_str(), err), (2, "", format!("error: --record {folder}: {expected}\n")));
}
