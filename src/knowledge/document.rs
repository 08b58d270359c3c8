//! Turns the bytes of a file into a document: decoded text, front matter, and how its headings are marked.
//!
//! In: bytes and the file's name. Out: a [`Document`], or why the file holds no text.

use serde_json::{Map, Value};

use super::split::Syntax;
use crate::domain::decode::decode;

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
    let decoded = decode(bytes).ok_or(NoText::Binary)?;
    let text: String = decoded.text.chars().filter(|c| !matches!(c, '\u{FEFF}' | '\u{200B}' | '\u{2060}')).collect();
    let syntax = syntax_of(name);
    let (front_matter, body) = match syntax {
        Syntax::Markdown => split_front_matter(&text),
        _ => (Map::new(), &text[..]),
    };
    if body.trim().is_empty() {
        return Err(NoText::Empty);
    }
    Ok(Document { text: body.to_string(), syntax, front_matter, encoding: decoded.encoding })
}

fn syntax_of(name: &str) -> Syntax {
    match name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).as_deref() {
        Some("md" | "markdown" | "mdown" | "mkd") => Syntax::Markdown,
        Some("rst") => Syntax::Underlined,
        _ => Syntax::Plain,
    }
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

    #[test]
    fn a_byte_order_mark_and_zero_width_spaces_are_dropped() {
        let expected = Ok(("# Foo\nbar\n".to_string(), None));
        assert_eq!(text_of("\u{feff}# Foo\nbar\n".as_bytes()), expected);
        assert_eq!(text_of("\u{200b}# Foo\n\u{2060}bar\n".as_bytes()), expected);
    }

    #[test]
    fn text_that_is_not_utf_8_is_decoded_and_its_encoding_named() {
        let chinese = "# 数据库连接池耗尽\n\n先看慢查询，再看连接数。\n";
        let gbk = encoding_rs::GB18030.encode(chinese).0;
        assert_eq!(text_of(&gbk), Ok((chinese.to_string(), Some("gb18030"))));
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
