//! The terms by which full-text search knows passages and queries.
//!
//! In: any text. Out: lower-case word stems without stop words; identifiers count whole and in their parts, so that
//! `KubePodCrashLooping` meets "pod is crash looping". Runs of Chinese stay as they are: the index finds the words.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::domain::lang::is_han;

/// The terms of a text, in its order, as one string for the index and for queries against it.
pub fn joined_terms(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for term in terms(text) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(&term);
    }
    out
}

/// The terms of a text, in its order.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for word in words(text) {
        if word.starts_with(is_han) {
            terms.push(word.to_string());
            continue;
        }
        let parts = parts(word);
        if parts.len() > 1 {
            terms.push(whole(word));
        }
        for part in parts {
            let lower = part.to_lowercase();
            if !STOP_WORDS.contains(lower.as_str()) {
                terms.push(stem(lower));
            }
        }
    }
    terms
}

/// Names that stand for one thing: alert names, error codes, metric, file and option names. Whole, without stemming.
pub fn identifiers(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in words(text).filter(|word| is_identifier(word)) {
        let whole = whole(word);
        if !found.contains(&whole) {
            found.push(whole);
        }
    }
    found
}

/// An identifier as text of its parts: `KubePodCrashLooping` gives `Kube Pod Crash Looping`. Other text stays.
pub fn spelled_out(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text;
    for word in words(text).filter(|word| !word.starts_with(is_han)) {
        let Some(at) = rest.find(word) else { continue };
        out.push_str(&rest[..at]);
        out.push_str(&if is_identifier(word) { parts(word).join(" ") } else { word.to_string() });
        rest = &rest[at + word.len()..];
    }
    out.push_str(rest);
    out
}

/// One word, and no ordinary one: written in CamelCase, in capitals with digits, or with underscores and the like.
fn is_identifier(word: &str) -> bool {
    let has_letter = word.chars().any(|c| c.is_ascii_alphabetic());
    let has_digit = word.chars().any(|c| c.is_ascii_digit());
    let upper = word.chars().filter(char::is_ascii_uppercase).count();
    let is_code = has_digit && upper >= 2;
    has_letter
        && !word.starts_with(is_han)
        && word.len() >= 4
        && (is_code || word.contains('_') || camel_parts(word).len() > 1)
}

/// Runs of letters and digits with what joins them inside, and runs of Chinese.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(|c: char| c.is_alphanumeric())?;
        rest = &rest[start..];
        let han = rest.starts_with(is_han);
        let mut chars = rest.char_indices().peekable();
        let mut end = rest.len();
        while let Some((at, c)) = chars.next() {
            let joins = matches!(c, '_' | '-' | '.' | '/' | ':')
                && chars.peek().is_some_and(|(_, next)| next.is_alphanumeric() && !is_han(*next));
            if (c.is_alphanumeric() && is_han(c) == han) || (!han && joins) {
                continue;
            }
            end = at;
            break;
        }
        let word = &rest[..end];
        rest = &rest[end..];
        Some(word)
    })
}

fn whole(word: &str) -> String {
    word.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
}

/// The parts of a word: along joints, and along the humps of CamelCase.
fn parts(word: &str) -> Vec<&str> {
    word.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).flat_map(camel_parts).collect()
}

/// `HTTPServerDown` has three parts, `KubeAPIDown` too; digits stay with the letters before them.
fn camel_parts(word: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for i in 1..chars.len() {
        let (at, c) = chars[i];
        let before = chars[i - 1].1;
        let next_is_lower = chars.get(i + 1).is_some_and(|(_, next)| next.is_lowercase());
        let hump = (!before.is_uppercase() && c.is_uppercase())
            || (before.is_uppercase() && c.is_uppercase() && next_is_lower);
        if hump {
            parts.push(&word[start..at]);
            start = at;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Cuts the endings of English words: enough that `fails`, `failed` and `failing` meet.
fn stem(word: String) -> String {
    if word.len() <= 3 || !word.is_ascii() {
        return word;
    }
    let mut stem = word;
    for (ending, instead) in ENDINGS {
        let Some(base) = stem.strip_suffix(ending) else { continue };
        if ending == "s" && base.ends_with('s') {
            break;
        }
        if base.len() + instead.len() >= 3 {
            stem = format!("{base}{instead}");
            break;
        }
    }
    let bytes = stem.as_bytes();
    let doubled = bytes.len() > 3 && bytes[bytes.len() - 1] == bytes[bytes.len() - 2];
    if doubled && !matches!(bytes[bytes.len() - 1], b'a' | b'e' | b'i' | b'o' | b'u' | b'l' | b's') {
        stem.pop();
    }
    if stem.len() > 4 && stem.ends_with('e') {
        stem.pop();
    }
    stem
}

/// The longest first, with what takes their place.
const ENDINGS: [(&str, &str); 9] = [
    ("ational", "ate"),
    ("ization", "ize"),
    ("edly", ""),
    ("sses", "ss"),
    ("ies", "y"),
    ("ing", ""),
    ("ed", ""),
    ("es", "e"),
    ("s", ""),
];

static STOP_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    "a an the of is are was were be been has have had in on at to for from by with and or not no it its this that these \
     those as will than then if when which who what how why can could should would may might must do does did so such \
     into more most other some any each few own same too very just only also there their they them he she we you your i \
     my our us"
        .split_whitespace()
        .collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_count_whole_and_in_parts() {
        assert_eq!(terms("KubePodCrashLooping"), ["kubepodcrashlooping", "kube", "pod", "crash", "loop"]);
        assert_eq!(terms("kube-state-metrics"), ["kubestatemetrics", "kube", "stat", "metric"]);
        assert_eq!(terms("ORA-00257"), ["ora00257", "ora", "00257"]);
        assert_eq!(camel_parts("KubeAPIDown"), ["Kube", "API", "Down"]);
        assert_eq!(camel_parts("HTTPServer"), ["HTTP", "Server"]);
        assert_eq!(camel_parts("IPv4"), ["I", "Pv4"]);
    }

    #[test]
    fn endings_are_cut_and_stop_words_dropped() {
        assert_eq!(terms("The pods failed; it fails, failing queries"), ["pod", "fail", "fail", "fail", "query"]);
        assert_eq!(terms("access errors running"), ["access", "error", "run"]);
    }

    #[test]
    fn runs_of_chinese_stay_whole() {
        assert_eq!(terms("TiDB内存不足，重启Pod。"), ["tidb", "ti", "db", "内存不足", "重启", "pod"]);
    }

    #[test]
    fn only_names_are_identifiers() {
        assert_eq!(
            identifiers("Alert KubePodCrashLooping on order-service: CDC:ErrMySQL http_requests_total OOM 87.3% Pod"),
            ["kubepodcrashlooping", "cdcerrmysql", "httprequeststotal"]
        );
    }

    #[test]
    fn identifiers_are_spelled_out() {
        assert_eq!(spelled_out("KubePodCrashLooping 告警, see pod_cpu!"), "Kube Pod Crash Looping 告警, see pod cpu!");
    }

    #[test]
    fn punctuation_alone_has_no_terms() {
        assert_eq!(joined_terms("?! -- ... 。"), "");
    }
}
