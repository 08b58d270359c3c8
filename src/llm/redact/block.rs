//! Secrets of many lines: private keys in PEM, the data of Kubernetes secrets, the environment of containers.

use std::sync::LazyLock;

use memchr::memmem;
use regex::Regex;

use super::detect::{Kind, Span, constant};
use super::{key, value};

/// A private key and what a log may have put between its lines; more is no key.
const MAX_KEY: usize = 16 << 10;

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    private_keys(text, spans);
    if memmem::find(text.as_bytes(), b"Secret").is_some() {
        kubernetes_secrets(text, spans);
        kubernetes_secrets_json(text, spans);
    }
    environment(text, spans);
}

/// From the line that begins a private key to the one that ends it; without an end, as far as it looks like one.
fn private_keys(text: &str, spans: &mut Vec<Span>) {
    static BEGIN: LazyLock<Regex> =
        LazyLock::new(|| constant(r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"));
    static END: LazyLock<Regex> =
        LazyLock::new(|| constant(r"-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"));
    // Beginnings and ends are walked side by side: each end is found once.
    let mut ends = END.find_iter(text).map(|found| (found.start(), found.end())).peekable();
    let mut covered = 0;
    for begin in BEGIN.find_iter(text) {
        if begin.start() < covered {
            continue;
        }
        while ends.next_if(|(start, _)| *start < begin.end()).is_some() {}
        let end = match ends.peek() {
            Some((start, end)) if start - begin.end() <= MAX_KEY => *end,
            _ => begin.end() + key_like(&text[begin.end()..]),
        };
        spans.push(Span::new(begin.start(), end, Kind::PrivateKey));
        covered = end;
    }
}

/// Bytes that may belong to a key which was cut off: lines, escaped or not, of base64.
fn key_like(text: &str) -> usize {
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'\\' | b'\n' | b'\r');
    text.bytes().take(MAX_KEY).take_while(is_key).count()
}

/// The values below `data:` and `stringData:` of documents of `kind: Secret`.
fn kubernetes_secrets(text: &str, spans: &mut Vec<Span>) {
    static KIND: LazyLock<Regex> =
        LazyLock::new(|| constant(r#"(?m)^([ \t]*(?:- )?[ \t]*)kind:[ \t]*["']?Secret["']?[ \t\r]*$"#));
    let lines: Vec<(usize, &str)> = text
        .split_inclusive('\n')
        .scan(0, |at, line| {
            let start = *at;
            *at += line.len();
            Some((start, line.trim_end_matches(['\n', '\r'])))
        })
        .collect();
    let mut done = 0;
    for kind in KIND.captures_iter(text) {
        let indent = kind[1].len();
        let at = lines
            .partition_point(|(start, _)| *start <= kind.get(0).map_or(0, |found| found.start()))
            .saturating_sub(1);
        if at < done {
            continue;
        }
        let is_border = |line: &str| {
            line.starts_with("---") || (indent_of(line) + 2 == indent && line.trim_start().starts_with("- "))
        };
        let first = lines[done..=at].iter().rposition(|(_, line)| is_border(line)).map_or(done, |found| done + found);
        let last =
            lines[at + 1..].iter().position(|(_, line)| is_border(line)).map_or(lines.len(), |found| at + 1 + found);
        entries(&lines[first..last], indent, spans);
        done = last;
    }
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// The entries of the data blocks of one document, whose own members stand at `indent`.
fn entries(lines: &[(usize, &str)], indent: usize, spans: &mut Vec<Span>) {
    let mut is_data = false;
    for (start, line) in lines {
        let text = line.trim_start_matches([' ', '\t', '-']);
        let at = line.len() - text.len();
        if text.is_empty() {
            continue;
        }
        if at <= indent {
            is_data = matches!(text.trim_end(), "data:" | "stringData:");
            continue;
        }
        let is_entry =
            |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-\"'".contains(&b));
        let value = match text.split_once(':') {
            Some((name, value)) if is_entry(name) => value,
            // A line of a block scalar.
            _ => text,
        };
        let offset = line.len() - value.trim_start().len();
        let value = value.trim();
        if is_data && !value.is_empty() && !matches!(value, "|" | "|-" | ">" | ">-" | "|+") {
            spans.push(Span::new(start + offset, start + offset + value.len(), Kind::Secret));
        }
    }
}

fn kubernetes_secrets_json(text: &str, spans: &mut Vec<Span>) {
    static KIND: LazyLock<Regex> = LazyLock::new(|| constant(r#""kind"\s*:\s*"Secret""#));
    static DATA: LazyLock<Regex> = LazyLock::new(|| constant(r#""(?:data|stringData)"\s*:\s*\{([^{}]*)\}"#));
    static ENTRY: LazyLock<Regex> = LazyLock::new(|| constant(r#""[A-Za-z0-9._-]+"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)""#));
    if !KIND.is_match(text) {
        return;
    }
    for data in DATA.captures_iter(text).filter_map(|found| found.get(1)) {
        let values = ENTRY.captures_iter(data.as_str()).filter_map(|entry| entry.get(1).map(|value| value.range()));
        let full = values.filter(|range| !range.is_empty());
        spans.extend(full.map(|range| Span::new(data.start() + range.start, data.start() + range.end, Kind::Secret)));
    }
}

/// `name: DB_PASSWORD` with its `value:` on the next line, and the same in JSON.
fn environment(text: &str, spans: &mut Vec<Span>) {
    static YAML: LazyLock<Regex> = LazyLock::new(|| {
        constant(
            r#"(?m)^[ \t]*(?:- )?[ \t]*name:[ \t]*["']?([A-Za-z0-9_.-]+)["']?[ \t]*\r?\n[ \t]*value:[ \t]*["']?([^\r\n]*?)["']?[ \t]*\r?$"#,
        )
    });
    static JSON: LazyLock<Regex> = LazyLock::new(|| {
        constant(r#""name"\s*:\s*"([A-Za-z0-9_.-]+)"\s*,\s*"value"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)""#)
    });
    for found in YAML.captures_iter(text).chain(JSON.captures_iter(text)) {
        let (Some(name), Some(found)) = (found.get(1), found.get(2)) else { continue };
        if let Some(key) = key::of_name(name.as_str()).filter(|key| value::is_secret(found.as_str(), key)) {
            spans.push(Span::new(found.start(), found.end(), key.kind));
        }
    }
}
