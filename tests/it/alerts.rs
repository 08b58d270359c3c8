//! `oncall alert show` on payloads that real systems sent, and on broken ones.

use std::path::PathBuf;

use crate::program::{oncall, root, said};

fn fixtures() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = ["alertmanager", "eval", "prometheus"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(root().join("tests/fixtures/alerts").join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}

fn show(args: &[&str], stdin: &str) -> (i32, String, String) {
    let dir = tempfile::tempdir().unwrap();
    said(&oncall(dir.path()).args(["alert", "show"]).args(args).write_stdin(stdin).output().unwrap())
}

#[test]
fn every_payload_is_understood() {
    let mut understood = String::new();
    for file in fixtures() {
        let dir = tempfile::tempdir().unwrap();
        let output = oncall(dir.path()).args(["alert", "show"]).arg(&file).output().unwrap();
        let (code, text, err) = said(&output);
        assert_eq!((code, err.as_str()), (0, ""), "{}", file.display());
        understood.push_str(&format!("== {}\n{text}\n", file.file_name().unwrap().to_string_lossy()));
    }
    insta::assert_snapshot!(understood);
}

#[test]
fn the_document_has_the_schema_and_its_fields() {
    let file = root().join("tests/fixtures/alerts/alertmanager/webhook_001.json");
    let (code, text, _) = show(&["--json", file.to_str().unwrap()], "");
    assert_eq!(code, 0);
    insta::assert_json_snapshot!(serde_json::from_str::<serde_json::Value>(&text).unwrap());
}

#[test]
fn broken_json_says_line_and_column() {
    let (code, out, err) = show(&["-"], "{\"labels\": {\n  \"alertname\": \"X\",,\n}}");
    assert_eq!(
        (code, out.as_str(), err.as_str()),
        (2, "", "error: cannot read standard input: line 2, column 20: key must be a string\n")
    );
}

#[test]
fn what_is_no_alert_is_refused_with_what_was_expected() {
    let refused = |input: &str| show(&["-"], input);
    assert_eq!(
        refused(" \n").2,
        "error: cannot read standard input: empty input: expected an alert payload (JSON or text)\n"
    );
    assert_eq!(
        refused("42").2,
        "error: cannot read standard input: 42: expected an alert (a JSON object or list, or text)\n"
    );
    for nothing in ["{}", "[{}]", "{\"alerts\": [{}]}"] {
        let (code, out, err) = refused(nothing);
        assert_eq!((code, out.as_str()), (2, ""), "{nothing}");
        assert!(
            err.contains("says nothing: expected an alert with labels, annotations or a title, such as {"),
            "{err}"
        );
    }
    let (code, _, err) = show(&["."], "");
    assert_eq!(code, 2);
    assert!(err.starts_with("error: cannot read .: it is a folder: expected an alert payload (JSON or text)"), "{err}");
    let (code, _, err) = show(&["no-such-file.json"], "");
    assert_eq!(
        (code, err.as_str()),
        (2, "error: cannot read no-such-file.json: No such file or directory (os error 2)\n")
    );
}

#[test]
fn what_cannot_be_read_is_said_and_what_is_clear_is_read() {
    let payload = serde_json::json!([{
        "labels": [{"name": "alertname", "value": "HighErrorRate"}, "service=cart", {"severity": "critical"}, 7],
        "annotations": "see runbook",
        "startsAt": "yesterday",
        "endsAt": {},
    }, {
        "labels": {"alertname": "Second", "port": 8080, "canary": true, "pod": null, "owner": {"team": "shop"}},
        "annotations": [{"key": "summary", "value": "slow"}],
        "startsAt": 1772605800,
    }]);
    let (code, text, _) = show(&["-"], &payload.to_string());
    assert_eq!(code, 0);
    insta::assert_snapshot!(text);
}

#[test]
fn plain_text_in_either_language_is_an_alert() {
    let (code, text, _) = show(
        &["-"],
        "[FIRING:1] High latency\nservice: checkout-api severity=critical since 2026-03-04T14:30:00+08:00",
    );
    assert_eq!(code, 0);
    insta::assert_snapshot!("text_en", text);
    let (code, text, _) = show(
        &["--lang", "zh", "-"],
        "【告警】订单服务错误率过高\n服务：order-service 级别：严重 时间 2026-03-04 14:30:00+08:00",
    );
    assert_eq!(code, 0);
    insta::assert_snapshot!("text_zh", text);
}

#[test]
fn escape_sequences_of_an_alert_do_not_reach_the_terminal() {
    let hostile = "{\"labels\":{\"alertname\":\"a\\u001b[31mb\\u0007\",\"service\":\"\\u001b]0;owned\\u0007x\"},\"annotations\":{\"summary\":\"\\u009b2J\\u202etxt\"}}";
    let (code, text, err) = show(&["-"], hostile);
    assert_eq!((code, err.as_str()), (0, ""));
    let bad: Vec<char> = text.chars().filter(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}').collect();
    assert_eq!(bad, Vec::<char>::new(), "{text:?}");
}

#[test]
fn a_utf_16_or_gbk_payload_is_decoded() {
    let text = "{\"labels\":{\"alertname\":\"磁盘写满\"}}";
    let utf16: Vec<u8> = [0xff, 0xfe].into_iter().chain(text.encode_utf16().flat_map(u16::to_le_bytes)).collect();
    let gbk = encoding_rs::GB18030.encode(text).0.into_owned();
    for bytes in [utf16, gbk] {
        let dir = tempfile::tempdir().unwrap();
        let output = oncall(dir.path()).args(["alert", "show", "-"]).write_stdin(bytes).output().unwrap();
        let (code, shown, _) = said(&output);
        assert_eq!(code, 0);
        assert!(shown.contains("磁盘写满"), "{shown}");
    }
}

/// A small generator of its own, so that a failure can be repeated by its number.
fn random(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 11).unwrap()
}

#[test]
fn ten_thousand_mutated_payloads_never_panic() {
    let originals: Vec<Vec<u8>> = fixtures().iter().map(|file| std::fs::read(file).unwrap()).collect();
    let mut state = 0x9e37_79b9_7f4a_7c15;
    let (mut read, mut refused) = (0, 0);
    for _ in 0..10_000 {
        let mut bytes = originals[random(&mut state) % originals.len()].clone();
        for _ in 0..=random(&mut state) % 6 {
            mutate(&mut bytes, &mut state);
        }
        match oncall::alert::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(batch) => {
                let groups = oncall::alert::groups(&batch.alerts);
                assert_eq!(groups.iter().map(Vec::len).sum::<usize>(), batch.alerts.len());
                read += 1;
            }
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    assert!(read > 500 && refused > 500, "{read} read, {refused} refused");
}

fn mutate(bytes: &mut Vec<u8>, state: &mut u64) {
    if bytes.is_empty() {
        return;
    }
    let at = random(state) % bytes.len();
    match random(state) % 6 {
        0 => bytes[at] = u8::try_from(random(state) % 256).unwrap(),
        1 => bytes.truncate(at),
        2 => {
            let piece = bytes[at..(at + 20).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
        3 => {
            bytes.remove(at);
        }
        4 => {
            let words: [&[u8]; 6] = [b"null", b"[]", b"{}", b"-1e999", b"\"\"", b"true"];
            bytes.splice(at..at, words[random(state) % words.len()].iter().copied());
        }
        _ => {
            // Swap a value for null where one begins: the shape stays, a field changes its type.
            if let Some(colon) = bytes[at..].windows(2).position(|w| w == b":\"" || w == b": ") {
                bytes.splice(at + colon + 1..at + colon + 1, *b"null,\"x\":");
            }
        }
    }
}
