//! Turns the bytes of a file into a document: decoded text, front matter, and how its headings are marked.
//!
//! In: bytes and the file's name. Out: a [`Document`], or why the file holds no text.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, GB18030, UTF_8, UTF_16BE, UTF_16LE};
use serde_json::{Map, Value};

use super::split::Syntax;

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Decoded, without byte-order mark, zero-width spaces and front matter.
    pub text: String,
    pub syntax: Syntax,
    /// Front matter by key, its values as texts or lists of texts; empty without one.
    pub front_matter: Map<String, Value>,
    /// The name of the encoding, where it is not UTF-8.
    pub encoding: Option<&'static str>,
}

/// Why a file gives no passages, though it could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoText {
    #[error("not a text file: binary content")]
    Binary,
    #[error("no text in it")]
    Empty,
}

/// File name endings of documents, in lower case; other files in a folder are passed over.
pub const EXTENSIONS: [&str; 9] = ["md", "markdown", "mdown", "mkd", "txt", "text", "rst", "adoc", "asciidoc"];

/// Reads a document from the content of the file `name`.
pub fn read(name: &str, bytes: &[u8]) -> Result<Document, NoText> {
    let (decoded, encoding) = decode(bytes).ok_or(NoText::Binary)?;
    let text: String = decoded.chars().filter(|c| !matches!(c, '\u{FEFF}' | '\u{200B}' | '\u{2060}')).collect();
    let syntax = syntax_of(name);
    let (front_matter, body) = match syntax {
        Syntax::Markdown => split_front_matter(&text),
        _ => (Map::new(), &text[..]),
    };
    if body.trim().is_empty() {
        return Err(NoText::Empty);
    }
    Ok(Document {
        text: body.to_string(),
        syntax,
        front_matter,
        encoding: (encoding != UTF_8).then(|| encoding.name()),
    })
}

fn syntax_of(name: &str) -> Syntax {
    match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("md" | "markdown" | "mdown" | "mkd") => Syntax::Markdown,
        Some("rst") => Syntax::Underlined,
        _ => Syntax::Plain,
    }
}

/// The text and its encoding; `None` when it is none.
fn decode(bytes: &[u8]) -> Option<(String, &'static Encoding)> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return decode_as(encoding, &bytes[mark..], MAX_LOST_SHARE);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        return looks_like_text(text).then(|| (text.to_string(), UTF_8));
    }
    if let Some(encoding) = utf16_without_mark(bytes) {
        return decode_as(encoding, bytes, 0.0);
    }
    if bytes.contains(&0) {
        return None;
    }
    // Chinese text that is not UTF-8 is GBK in all but name; the detector decides between it and the rest.
    decode_as(GB18030, bytes, 0.0)
        .filter(|(text, _)| text.chars().any(crate::domain::lang::is_han))
        .filter(|_| detect(bytes) == encoding_rs::GBK)
        .or_else(|| decode_as(UTF_8, bytes, MAX_LOST_SHARE))
        .or_else(|| decode_as(detect(bytes), bytes, 0.0))
}

/// A text may hold so many characters that its encoding does not have: a log was pasted into it, or it was cut.
const MAX_LOST_SHARE: f64 = 0.01;

fn decode_as(encoding: &'static Encoding, bytes: &[u8], lost: f64) -> Option<(String, &'static Encoding)> {
    let text = encoding.decode_without_bom_handling(bytes).0.into_owned();
    let replaced = text.matches('\u{FFFD}').count();
    (replaced as f64 <= lost * text.len() as f64 && looks_like_text(&text)).then_some((text, encoding))
}

fn detect(bytes: &[u8]) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, true);
    detector.guess(Some(b"cn"), Utf8Detection::Deny)
}

/// UTF-16 shows by zero bytes that all stand at odd, or all at even places.
fn utf16_without_mark(bytes: &[u8]) -> Option<&'static Encoding> {
    let mut zeros = [0usize; 2];
    for (at, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == 0) {
        zeros[at % 2] += 1;
    }
    match zeros {
        [0, odd] if odd > 0 && bytes.len().is_multiple_of(2) => Some(UTF_16LE),
        [even, 0] if even > 0 && bytes.len().is_multiple_of(2) => Some(UTF_16BE),
        _ => None,
    }
}

/// Whether at most one character in a hundred is a control character that texts do not have.
fn looks_like_text(text: &str) -> bool {
    let is_odd = |c: &char| c.is_control() && !matches!(c, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}');
    let (mut odd, mut all) = (0usize, 0usize);
    for c in text.chars() {
        odd += usize::from(is_odd(&c));
        all += 1;
    }
    odd * 100 <= all
}

/// Front matter between two lines `---`, by key, and the text after it. Without front matter: no keys, the text.
fn split_front_matter(text: &str) -> (Map<String, Value>, &str) {
    let none = || (Map::new(), text);
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return none() };
    let mut end = first.len();
    for line in lines {
        if matches!(line.trim_end(), "---" | "...") {
            let yaml = &text[first.len()..end];
            // A thematic break may open a document too: front matter has a key in its first line of content.
            let content = yaml.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
            return match content.is_none_or(|line| key_and_value(line).is_some()) {
                true => (parse_front_matter(yaml), &text[end + line.len()..]),
                false => none(),
            };
        }
        end += line.len();
    }
    none()
}

/// The part of YAML that front matter is written in: `key: value`, lists in brackets or under the key, and blocks
/// of text. What is nested deeper stays as it is written.
fn parse_front_matter(yaml: &str) -> Map<String, Value> {
    let mut map = Map::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((key, value)) = key_and_value(line) else { continue };
        let mut below = Vec::new();
        while let Some(line) = lines.next_if(|line| key_and_value(line).is_none() && !line.starts_with('#')) {
            below.push(line);
        }
        let items: Vec<Value> =
            below.iter().filter_map(|line| line.trim_start().strip_prefix("- ")).map(scalar).collect();
        let value = match value.strip_prefix('[').and_then(|value| value.strip_suffix(']')) {
            Some(list) => list.split(',').map(scalar).filter(|item| item != "").collect(),
            None if !items.is_empty() => Value::Array(items),
            None if below.is_empty() => scalar(value),
            None => {
                let marker = value.trim_start_matches(['|', '>', '-', '+']);
                let lines = std::iter::once(marker).chain(below.iter().map(|line| line.trim()));
                Value::String(lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n"))
            }
        };
        map.insert(key.to_string(), value);
    }
    map
}

/// `key: value` at the start of a line.
fn key_and_value(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end().trim_matches(['"', '\'']);
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_separate = value.is_empty() || value.starts_with([' ', '\t', '\r']);
    (is_key && !key.starts_with('-') && is_separate).then(|| (key, value.trim()))
}

fn scalar(text: &str) -> Value {
    let text = text.trim();
    let quoted = |mark| text.strip_prefix(mark).and_then(|text: &str| text.strip_suffix(mark));
    Value::String(quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text_of(bytes: &[u8]) -> Result<(String, Option<&'static str>), NoText> {
        read("a.md", bytes).map(|document| (document.text, document.encoding))
    }

    const CHINESE: &str = "# 数据库连接池耗尽\n\n先看慢查询，再看连接数。\n";

    #[test]
    fn a_byte_order_mark_and_zero_width_spaces_are_dropped() {
        let expected = Ok(("# Foo\nbar\n".to_string(), None));
        assert_eq!(text_of("\u{feff}# Foo\nbar\n".as_bytes()), expected);
        assert_eq!(text_of("\u{200b}# Foo\n\u{2060}bar\n".as_bytes()), expected);
    }

    #[test]
    fn gbk_is_decoded() {
        let (bytes, _, _) = GB18030.encode(CHINESE);
        assert_eq!(text_of(&bytes), Ok((CHINESE.to_string(), Some("gb18030"))));
    }

    #[test]
    fn utf_16_is_decoded_with_and_without_a_mark() {
        let little: Vec<u8> = CHINESE.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = CHINESE.encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(text_of(&[&[0xff, 0xfe], &little[..]].concat()), Ok((CHINESE.to_string(), Some("UTF-16LE"))));
        assert_eq!(text_of(&little), Ok((CHINESE.to_string(), Some("UTF-16LE"))));
        assert_eq!(text_of(&big), Ok((CHINESE.to_string(), Some("UTF-16BE"))));
    }

    #[test]
    fn western_text_is_decoded() {
        let text = "D\u{e9}marrer le service apr\u{e8}s la panne, c'est \u{e0} vous";
        let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(text_of(&bytes), Ok((text.to_string(), Some("windows-1252"))));
    }

    #[test]
    fn a_few_broken_bytes_do_not_make_a_text_binary() {
        let mut bytes = "连接池".repeat(60).into_bytes();
        bytes.truncate(bytes.len() - 1);
        let (text, encoding) = text_of(&bytes).unwrap();
        assert!(text.starts_with("连接池连接池") && text.ends_with('\u{fffd}'));
        assert_eq!(encoding, None);
    }

    #[test]
    fn binary_and_empty_files_are_told_apart() {
        assert_eq!(text_of(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x02"), Err(NoText::Binary));
        assert_eq!(text_of(&[1, 2, 3, 4, 5]), Err(NoText::Binary));
        assert_eq!(text_of(b""), Err(NoText::Empty));
        assert_eq!(text_of(b"\xef\xbb\xbf \n\n"), Err(NoText::Empty));
        assert_eq!(text_of(b"---\ntitle: x\n---\n"), Err(NoText::Empty));
    }

    #[test]
    fn front_matter_is_metadata() {
        let text = "---\ntitle: \"Kube API Down\"\nweight: 20\ntags: [a, 'b']\nowners:\n  - sre\n  - dba\nnote: |\n  one\n  two\n---\n\n# Body\n";
        let document = read("a.md", text.as_bytes()).unwrap();
        assert_eq!(document.text, "\n# Body\n");
        assert_eq!(
            Value::Object(document.front_matter),
            json!({"title": "Kube API Down", "weight": "20", "tags": ["a", "b"], "owners": ["sre", "dba"], "note": "one\ntwo"})
        );
    }

    #[test]
    fn a_rule_on_top_is_no_front_matter() {
        for text in ["---\nJust a rule above\n---\ntext\n", "---\ntitle: never closed\n", "----\na: b\n---\n"] {
            assert_eq!(read("a.md", text.as_bytes()).unwrap().text, text);
        }
    }

    #[test]
    fn the_name_tells_the_syntax() {
        assert_eq!(
            ["a.MD", "b.rst", "c.txt", "README"].map(syntax_of),
            [Syntax::Markdown, Syntax::Underlined, Syntax::Plain, Syntax::Plain]
        );
    }
}
