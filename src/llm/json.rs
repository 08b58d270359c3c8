//! JSON out of what models write: behind thoughts, in fences, encoded twice, with a comma too many.

use serde_json::Value;

/// The first JSON object or array of a text.
pub fn find(text: &str) -> Option<Value> {
    let (_, text) = split_thoughts(text);
    let text = text.as_str();
    if let Some(value) = parse(text) {
        return Some(value);
    }
    let mut from = 0;
    while let Some(offset) = text[from..].find(['{', '[']) {
        let start = from + offset;
        if let Some(end) = balanced_end(&text[start..]) {
            let piece = &text[start..start + end];
            if let Some(value) = parse(piece).or_else(|| parse(&without_trailing_commas(piece))) {
                return Some(value);
            }
        }
        from = start + 1;
    }
    None
}

/// A container, encoded once or twice. A bare word or number is no answer.
fn parse(text: &str) -> Option<Value> {
    match serde_json::from_str::<Value>(text).ok()? {
        Value::String(inner) => {
            serde_json::from_str::<Value>(&inner).ok().filter(|value| value.is_object() || value.is_array())
        }
        value @ (Value::Object(_) | Value::Array(_)) => Some(value),
        _ => None,
    }
}

/// Thoughts (`<think>…</think>`) and answer of a text that holds both; an unclosed thought runs to the end, and one
/// whose opening tag was left to the template runs from the beginning.
pub fn split_thoughts(text: &str) -> (String, String) {
    let (mut thoughts, mut answer) = (String::new(), String::new());
    let mut rest = text;
    if let Some(end) = rest.find("</think>")
        && !rest[..end].contains("<think>")
    {
        thoughts.push_str(&rest[..end]);
        rest = &rest[end + "</think>".len()..];
    }
    while let Some(start) = rest.find("<think>") {
        answer.push_str(&rest[..start]);
        let inside = &rest[start + "<think>".len()..];
        match inside.find("</think>") {
            Some(end) => {
                thoughts.push_str(&inside[..end]);
                rest = &inside[end + "</think>".len()..];
            }
            None => {
                thoughts.push_str(inside);
                rest = "";
            }
        }
    }
    answer.push_str(rest);
    (thoughts.trim().to_string(), answer.trim().to_string())
}

/// Where the container that starts the text ends, in bytes.
fn balanced_end(text: &str) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn without_trailing_commas(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            ',' if !in_string && text[at + 1..].trim_start().starts_with(['}', ']']) => continue,
            _ => {}
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_found_wherever_a_model_puts_it() {
        let want = Some(json!({"a": [1, {"b": "}"}]}));
        for text in [
            r#"{"a":[1,{"b":"}"}]}"#,
            "Sure! Here it is:\n```json\n{\"a\": [1, {\"b\": \"}\"}]}\n```\nAnything else?",
            "<think>maybe {\"x\": 1}?</think>\n{\"a\": [1, {\"b\": \"}\"}]}",
            "perhaps {\"x\": 1}</think>{\"a\": [1, {\"b\": \"}\"}]}",
            r#""{\"a\":[1,{\"b\":\"}\"}]}""#,
            r#"{"a": [1, {"b": "}",},],}"#,
            r#"{not json} {"a":[1,{"b":"}"}]}"#,
        ] {
            assert_eq!(find(text), want, "{text}");
        }
    }

    #[test]
    fn what_holds_no_container_gives_nothing() {
        for text in ["", "no", "42", "\"{\"", "{", "{\"a\":", "<think>{\"a\":1}", "}{"] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn thoughts_are_kept_apart() {
        let split = |text: &str| split_thoughts(text);
        assert_eq!(split("<think> a </think> b"), ("a".into(), "b".into()));
        assert_eq!(split("a</think>b"), ("a".into(), "b".into()));
        assert_eq!(split("b <think>a"), ("a".into(), "b".into()));
        assert_eq!(split("plain"), (String::new(), "plain".into()));
    }
}
