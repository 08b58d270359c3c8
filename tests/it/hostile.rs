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

/// The document of `oncall logs --json` over one file, with the exit code and stderr.
fn logs(name: &str, bytes: &[u8]) -> (i32, Value, String) {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join(name);
    std::fs::write(&log, bytes).unwrap();
    let (code, out, err) = run(dir.path(), &["logs", "--json", "--zone", "UTC", log.to_str().unwrap()]);
    (code, serde_json::from_str(&out).unwrap(), err.replace(dir.path().to_str().unwrap(), "DIR"))
}

#[test]
fn a_log_with_holes_of_nul_bytes_is_no_binary() {
    let text = [
        &[0; 100_000],
        b"2026-03-04T14:00:00Z ERROR a\n2026-03".as_slice(),
        &[0; 4096],
        b"\n2026-03-04T14:00:02Z ERROR b\n",
    ];
    let (code, document, err) = logs("torn.log", &text.concat());
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!((&document["events"], &document["levels"]["error"]), (&Value::from(2), &Value::from(2)));
    let note = "NUL bytes dropped (a torn write, or a hole in a sparse file): 104096";
    assert_eq!(document["files"][0]["notes"], serde_json::json!([note]));
}

#[test]
fn a_date_that_does_not_exist_is_an_event_without_a_time() {
    let text = b"2026-03-04T14:00:00Z ERROR a\n2026-02-30T14:00:01Z ERROR b\n2026-13-01 14:00:01 ERROR c\n\
                 9999-12-31T14:00:01Z ERROR d\n0000-00-00 00:00:00 ERROR e\n2026-03-04 25:00:00 ERROR f\n";
    let (code, document, _) = logs("dates.log", text);
    assert_eq!((code, &document["events"], &document["levels"]["error"]), (0, &Value::from(6), &Value::from(6)));
    assert_eq!(
        (&document["first"], &document["last"]),
        (&"2026-03-04T14:00:00Z".into(), &"2026-03-04T14:00:00Z".into())
    );
    assert_eq!(
        document["files"][0]["notes"],
        serde_json::json!([
            "events without a time: 5 of 6",
            "events of a date or time that does not exist, kept without a time: 5"
        ])
    );
}

#[test]
fn a_damaged_archive_is_used_up_to_the_damage_and_the_exit_code_says_so() {
    let lines: String = (0..20_000u32)
        .map(|i| format!("2026-03-04T14:00:00Z ERROR failed {}\n", i.wrapping_mul(2_654_435_761)))
        .collect();
    let packed = zstd::encode_all(lines.as_bytes(), 1).unwrap();
    let (code, document, err) = logs("cut.log.zst", &packed[..packed.len() / 2]);
    assert_eq!(code, 3);
    assert!(document["events"].as_u64().unwrap() > 1000, "{}", document["events"]);
    assert!(err.starts_with("warning: DIR/cut.log.zst: reading broke off after line "), "{err}");
    assert!(err.contains("the zstd archive is damaged or cut off at byte ") && !err.contains("permissions"), "{err}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_index_says_what_is_stored_and_how_to_go_on() {
    use std::io::{BufRead, Read};
    let dir = tempfile::tempdir().unwrap();
    let docs = dir.path().join("docs");
    std::fs::create_dir(&docs).unwrap();
    for n in 0..200 {
        std::fs::write(docs.join(format!("{n}.md")), "# Disk full\n\nDelete old logs. ".repeat(30)).unwrap();
    }
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("oncall"))
        .args(["index", docs.to_str().unwrap()])
        .env("ONCALL_DATA_DIR", dir.path().join("data"))
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "indexing 200 of 200 documents\n");
    let kill = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{rest}");
    assert!(rest.contains("interrupted: ") && rest.contains("run the same command again to continue"), "{rest}");
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
    std::fs::write(empty.join("incident.toml"), "now = \"2026-03-04T14:45:00+08:00\"\n").unwrap();
    let (code, _, err) = run(dir.path(), &["diagnose", "--incident", empty.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(err.contains("holds no alert.json: put the alert there, or give it with --alert"), "{err}");
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

/// 200 MB of ordinary lines, read as a stream: every line is counted, in the memory of a small one.
#[cfg(target_os = "linux")]
#[test]
fn a_log_of_200_megabytes_is_read_in_bounded_memory() {
    use std::io::{BufWriter, Write};
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("big.log");
    let mut file = BufWriter::new(std::fs::File::create(&path).unwrap());
    let (mut bytes, mut lines) = (0, 0_u64);
    while bytes < 200_000_000 {
        let (minute, second) = (lines / 60 % 60, lines % 60);
        let level = if lines.is_multiple_of(1000) { "ERROR" } else { "INFO" };
        let line = format!(
            "2026-03-04T06:{minute:02}:{second:02}Z {level} order-service handled request {lines} of customer \
             {} in {} ms: ok, cached, from the usual place\n",
            lines % 977,
            lines % 89
        );
        file.write_all(line.as_bytes()).unwrap();
        (bytes, lines) = (bytes + line.len(), lines + 1);
    }
    file.flush().unwrap();
    let out = dir.path().join("out.json");
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("oncall"))
        .args(["logs", path.to_str().unwrap(), "--json"])
        .env("ONCALL_DATA_DIR", dir.path())
        .stdout(std::fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak_kb = 0_u64;
    let code = loop {
        let peak = std::fs::read_to_string(&status).unwrap_or_default();
        let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        peak_kb = peak_kb.max(peak.unwrap_or(0));
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    };
    assert_eq!(code, Some(0));
    assert!(peak_kb < 150_000, "{peak_kb} kB at most");
    let document: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    assert_eq!(document["events"], lines);
    assert_eq!(document["levels"]["error"], lines.div_ceil(1000));
}
