//! Input that breaks tools of this kind: none may crash it, hide what it hides, or be lost without a word.

use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::program::{oncall, said};

fn run(dir: &Path, args: &[&str]) -> (i32, String, String) {
    said(&oncall(dir).args(args).output().unwrap())
}

/// Control characters other than the line feed.
fn control(text: &str) -> Vec<char> {
    text.chars().filter(|c| c.is_control() && *c != '\n').collect()
}

#[test]
fn escape_sequences_in_logs_do_not_reach_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("app.log");
    std::fs::write(&log, "2026-03-04T14:00:00Z ERROR \u{1b}[2J\u{1b}]0;owned\u{7}failed\u{9b}31m x\u{8}\n".repeat(3))
        .unwrap();
    for view in [&[][..], &["--json"][..]] {
        let (code, out, err) = run(dir.path(), &[&["logs", log.to_str().unwrap()], view].concat());
        assert_eq!((code, control(&out), control(&err)), (0, Vec::new(), Vec::new()), "{out:?}");
    }
}

#[test]
fn a_single_line_of_50_megabytes_is_one_event() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("long.log");
    let mut file = std::io::BufWriter::new(std::fs::File::create(&log).unwrap());
    file.write_all(b"2026-03-04T14:00:00Z ERROR ").unwrap();
    for _ in 0..50 {
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
    }
    file.write_all(b"\n2026-03-04T14:00:01Z ERROR short\n").unwrap();
    drop(file);
    let (code, out, err) = run(dir.path(), &["logs", "--json", log.to_str().unwrap()]);
    assert_eq!(code, 0, "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&document["events"], &document["levels"]["error"]), (&Value::from(2), &Value::from(2)));
    assert!(out.len() < 200_000, "{} bytes", out.len());
}

#[test]
fn binary_and_unreadable_files_are_named_and_the_rest_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let (good, binary) = (dir.path().join("good.log"), dir.path().join("core.log"));
    std::fs::write(&good, "2026-03-04T14:00:00Z ERROR failed to connect\n").unwrap();
    std::fs::write(&binary, [0u8, 1, 2, 3, 0, 0, 255, 254, 0, 7].repeat(1000)).unwrap();
    let missing = dir.path().join("missing.log");
    let files = [good.to_str().unwrap(), binary.to_str().unwrap(), missing.to_str().unwrap()];
    let (code, out, err) = run(dir.path(), &[&["logs"], &files[..]].concat());
    assert_eq!(code, 3, "{err}");
    assert!(out.contains("failed to connect"), "{out}");
    assert!(err.contains("core.log") && err.contains("missing.log"), "{err}");
}

#[test]
fn logs_in_gbk_and_utf_16_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let text = "2026-03-04 14:00:00 ERROR 连接池耗尽，获取连接超时\n".repeat(5);
    let gbk = encoding_rs::GB18030.encode(&text).0.into_owned();
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    for (name, bytes) in [("gbk.log", gbk), ("utf16.log", utf16)] {
        let log = dir.path().join(name);
        std::fs::write(&log, bytes).unwrap();
        let (code, out, err) = run(dir.path(), &["logs", "--json", log.to_str().unwrap()]);
        assert_eq!(code, 0, "{name}: {err}");
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["levels"]["error"], 5, "{name}: {out}");
        assert!(document["patterns"][0]["template"].as_str().unwrap().contains("连接池耗尽"), "{name}: {out}");
    }
}

#[test]
fn an_incident_that_is_none_is_bad_input() {
    let dir = tempfile::tempdir().unwrap();
    let (code, out, err) = run(dir.path(), &["diagnose", "--incident", dir.path().join("none").to_str().unwrap()]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert!(err.contains("there is no such folder"), "{err}");
    let empty = dir.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let (code, _, err) = run(dir.path(), &["diagnose", "--incident", empty.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("neither incident.toml nor alert.json"), "{err}");
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("app.log");
    let lines: String = (0..20_000).map(|i| format!("2026-03-04T14:00:00Z INFO word{i} happened\n")).collect();
    std::fs::write(&log, lines).unwrap();
    let command =
        format!("{} logs --per-line {} | head -n 1", assert_cmd::cargo::cargo_bin("oncall").display(), log.display());
    let output = std::process::Command::new("bash")
        .args(["-c", &format!("set -o pipefail; {command}")])
        .env("ONCALL_DATA_DIR", dir.path())
        .output()
        .unwrap();
    let (code, out, err) = said(&output);
    assert_eq!((code, out.lines().count(), err.as_str()), (0, 1, ""));
}
