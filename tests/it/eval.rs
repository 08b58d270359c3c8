//! `oncall eval`: the examples are all right, what is wrong is told, and the exit code says whether it was enough.

use std::path::Path;

use serde_json::Value;

use crate::program::{indexed_data_dir, oncall, root, said};

fn eval(args: &[&str]) -> (i32, String, String) {
    said(&oncall(&indexed_data_dir()).arg("eval").args(args).output().unwrap())
}

/// One of the examples with another right answer.
fn expecting(folder: &Path, expected: &str) {
    let from = root().join("examples/oom-rollout");
    for entry in ignore::WalkBuilder::new(&from).build().flatten() {
        let to = folder.join(entry.path().strip_prefix(&from).unwrap());
        if entry.path().is_dir() {
            std::fs::create_dir_all(to).unwrap();
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
    std::fs::write(folder.join("expected.toml"), expected).unwrap();
}

#[test]
fn the_examples_are_all_right() {
    let (code, out, err) = eval(&["examples", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["schema"], "oncall.eval/v1");
    let runs = document["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["incident"].as_str().unwrap()).collect();
    assert_eq!(names, ["expired-certificate", "oom-rollout", "order-service"]);
    assert_eq!((&document["right"], &document["reached"]), (&3.into(), &1.0.into()));
}

#[test]
fn a_wrong_run_is_told_counted_and_judged_by_the_threshold() {
    let dir = tempfile::tempdir().unwrap();
    expecting(&dir.path().join("right"), "category = \"oom_killed\"\nservice = \"catalog-service\"\n");
    let wrong =
        "category = \"disk_full\"\nmust_mention = [\"no report says this\"]\nmust_not_claim = [\"oom_killed\"]\n";
    expecting(&dir.path().join("wrong"), wrong);
    let folder = dir.path().to_str().unwrap();
    let junit = dir.path().join("results.xml");
    let (code, out, _) = eval(&[folder, "-n", "2", "--quiet", "--junit", junit.to_str().unwrap()]);
    assert_eq!(code, 3, "{out}");
    for line in [
        "category oom_killed, expected disk_full",
        "not mentioned: no report says this",
        "forbidden claim: oom_killed",
        "rules: 2 of 4 right",
    ] {
        assert!(out.contains(line), "{out}");
    }
    let xml = std::fs::read_to_string(junit).unwrap();
    assert!(xml.contains("tests=\"4\"") && xml.contains("failures=\"2\""), "{xml}");
    let (code, out, _) = eval(&[folder, "--threshold", "0.5"]);
    assert_eq!(code, 0, "{out}");
}

#[test]
fn a_folder_without_a_right_answer_and_a_broken_one_are_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().to_str().unwrap();
    let (code, out, err) = eval(&[folder]);
    let expected = "no expected.toml is in it: expected incident folders with one";
    assert_eq!((code, out.as_str(), err), (2, "", format!("error: {folder}: {expected}\n")));
    std::fs::write(dir.path().join("expected.toml"), "category = \"oom_kiled\"\n").unwrap();
    let (code, _, err) = eval(&[folder]);
    assert_eq!(code, 2);
    assert!(err.ends_with("there is no category `oom_kiled`: did you mean `oom_killed`?\n"), "{err}");
}
