//! What a server answered, as the outcome of a tool.
//!
//! In: the content of a result. Out: findings: what is structured, else each text (as JSON where it is JSON), with what
//! cannot be shown (images, sound, binary files) named; or the failure that the server says it is.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

use crate::domain::text::{clean, clean_line};
use crate::domain::{Failure, FailureKind, Finding, Outcome, Output, Served};

/// Characters of one text.
const MAX_TEXT_CHARS: usize = 100_000;
const MAX_ERROR_CHARS: usize = 2000;
const MAX_NAME_CHARS: usize = 300;

/// The outcome of a call; `source` is the name under which it is cited.
pub fn outcome(source: &str, result: CallToolResult) -> Outcome {
    if result.is_error == Some(true) {
        let message = texts(&result.content);
        let message = if message.is_empty() { "it failed without saying why".to_owned() } else { message };
        return Outcome::Failure(Failure::of_source(
            source,
            FailureKind::SourceError,
            clean_line(&message, MAX_ERROR_CHARS),
        ));
    }
    let mut notes = Vec::new();
    let values = match result.structured_content {
        // Beside what is structured the texts say the same once more.
        Some(value) => vec![value],
        None => result.content.iter().filter_map(|block| shown(block, &mut notes)).collect(),
    };
    let is_cut = |value: &Value| value.as_str().is_some_and(|text| text.chars().count() > MAX_TEXT_CHARS);
    let truncated = values.iter().any(is_cut);
    let mut findings: Vec<Finding> = values.into_iter().map(|value| Finding::Other { value: cleaned(value) }).collect();
    if findings.is_empty() {
        findings.push(Finding::Nothing { what: "an answer with any content".to_owned() });
    }
    Outcome::Output(Output {
        source: source.to_owned(),
        window: None,
        findings,
        notes,
        truncated,
        served: Served::Live,
        retrieval: None,
        asked: Vec::new(),
    })
}

/// The one value of an answer, for who knows its shape: what is structured, else the first text that is JSON.
///
/// # Errors
/// The failure that the server says it is, with the kind that oncall's own servers name.
pub fn value(result: CallToolResult) -> Result<Value, (FailureKind, String)> {
    if result.is_error == Some(true) {
        let named = result.structured_content.as_ref().map(|content| content["error"].clone());
        let kind = named.and_then(|kind| serde_json::from_value(kind).ok()).unwrap_or(FailureKind::SourceError);
        return Err((kind, clean_line(&texts(&result.content), MAX_ERROR_CHARS)));
    }
    let of_texts = || serde_json::from_str(&texts(&result.content)).ok();
    let value = result.structured_content.clone().or_else(of_texts);
    value.map(cleaned).ok_or_else(|| (FailureKind::SourceError, "it answered without structured content".to_owned()))
}

/// What of a block can be read; what cannot is a note.
fn shown(block: &ContentBlock, notes: &mut Vec<String>) -> Option<Value> {
    let line = |text: &str| clean_line(text, MAX_NAME_CHARS);
    match block {
        ContentBlock::Text(text) => Some(of_text(&text.text)),
        ContentBlock::Image(image) => {
            notes.push(format!("an image ({}, {}) is not shown", line(&image.mime_type), size_of(&image.data)));
            None
        }
        ContentBlock::Audio(audio) => {
            notes.push(format!("sound ({}, {}) is not played", line(&audio.mime_type), size_of(&audio.data)));
            None
        }
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                Some(json!({"uri": line(uri), "content": of_text(text)}))
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let kind = mime_type.as_deref().unwrap_or("binary");
                notes.push(format!("{} ({}, {}) is not shown", line(uri), line(kind), size_of(blob)));
                None
            }
            _ => unknown(notes),
        },
        ContentBlock::ResourceLink(link) => {
            Some(json!({"resource": line(&link.uri), "name": line(&link.name), "description": link.description}))
        }
        _ => unknown(notes),
    }
}

fn unknown(notes: &mut Vec<String>) -> Option<Value> {
    notes.push("content of a kind that this version does not know is not shown".to_owned());
    None
}

/// An object or a list where the text is one.
fn of_text(text: &str) -> Value {
    let trimmed = text.trim();
    let is_json = trimmed.starts_with(['{', '[']);
    let parsed = is_json.then(|| serde_json::from_str::<Value>(trimmed).ok()).flatten();
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Bytes of what base64 stands for.
fn size_of(base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    if bytes < 2048 { format!("{bytes} bytes") } else { format!("{} kB", bytes / 1024) }
}

/// Texts at any depth without control characters and escape sequences.
fn cleaned(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(&text, MAX_TEXT_CHARS)),
        Value::Array(items) => Value::Array(items.into_iter().map(cleaned).collect()),
        Value::Object(object) => Value::Object(
            object.into_iter().map(|(key, value)| (clean_line(&key, MAX_NAME_CHARS), cleaned(value))).collect(),
        ),
        other => other,
    }
}

fn texts(content: &[ContentBlock]) -> String {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    texts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(result: Value) -> Outcome {
        outcome("mcp/s", serde_json::from_value(result).unwrap())
    }

    fn output(result: Value) -> Output {
        match of(result) {
            Outcome::Output(output) => output,
            Outcome::Failure(failure) => panic!("{failure:?}"),
        }
    }

    fn other(value: Value) -> Finding {
        Finding::Other { value }
    }

    #[test]
    fn every_kind_of_content_is_read_or_named() {
        let output = output(json!({"content": [
            {"type": "text", "text": "plain \u{1b}[31mred"},
            {"type": "text", "text": " {\"a\": [1]} "},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}},
            {"type": "resource", "resource": {"uri": "file:///b", "mimeType": "x/y", "blob": "AAAA"}},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]}));
        let want = [
            other(json!("plain red")),
            other(json!({"a": [1]})),
            other(json!({"uri": "file:///a", "content": "inside"})),
            other(json!({"resource": "file:///c", "name": "c", "description": null})),
        ];
        assert_eq!(output.findings, want);
        assert_eq!(
            output.notes,
            [
                "an image (image/png, 3 bytes) is not shown",
                "sound (audio/wav, 3 bytes) is not played",
                "file:///b (x/y, 3 bytes) is not shown"
            ]
        );
    }

    #[test]
    fn structured_content_stands_for_the_texts() {
        let output = output(json!({"content": [{"type": "text", "text": "{}"}], "structuredContent": {"n": "\u{7}1"}}));
        assert_eq!(output.findings, [other(json!({"n": "1"}))]);
    }

    #[test]
    fn an_error_of_the_server_is_a_failure_and_silence_a_finding() {
        let failure = Failure::of_source("mcp/s", FailureKind::SourceError, "no such path");
        let error = json!({"content": [{"type": "text", "text": "no such\npath"}], "isError": true});
        assert_eq!(of(error), Outcome::Failure(failure));
        assert_eq!(
            output(json!({"content": []})).findings,
            [Finding::Nothing { what: "an answer with any content".into() }]
        );
    }

    #[test]
    fn a_long_text_is_cut_and_marked() {
        let output = output(json!({"content": [{"type": "text", "text": "x".repeat(10 << 20)}]}));
        assert!(output.truncated);
        let [Finding::Other { value: Value::String(text) }] = &output.findings[..] else { panic!() };
        assert_eq!(text.len(), MAX_TEXT_CHARS + 3);
    }
}
