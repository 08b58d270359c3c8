//! From the text of a query to its syntax tree, guarded against texts that the grammar's library does not bear:
//! it panics on durations out of range, and recursion over a tree of any depth overflows a stack.

use promql_parser::label::Matchers;
use promql_parser::parser::{Expr, VectorSelector};

use super::error::QueryError;

/// Longer than any query that a human or a rule writes, short enough that a tree of it can be dropped by recursion.
const MAX_QUERY_BYTES: usize = 8 * 1024;

/// Nesting that the evaluator follows by recursion.
const MAX_DEPTH: usize = 128;

/// Longest duration written as a plain number of seconds: 300 years.
const MAX_DURATION_SECONDS: f64 = 1e10;

/// Characters of a query that an error repeats.
const SHOWN_CHARS: usize = 200;

/// Parses a query.
pub(super) fn parse(query: &str) -> Result<Expr, QueryError> {
    let fail = |reason: String| QueryError::Parse {
        expr: crate::domain::text::clean_line(query, SHOWN_CHARS),
        reason: crate::domain::text::clean_line(&reason, SHOWN_CHARS),
    };
    if query.len() > MAX_QUERY_BYTES {
        return Err(QueryError::TooLarge(format!("it has {} bytes, at most {MAX_QUERY_BYTES} are read", query.len())));
    }
    if let Some(number) = impossible_duration(query) {
        return Err(fail(format!("expected a duration such as 5m, found `{number}`")));
    }
    let expr = promql_parser::parser::parse(query).map_err(|reason| match unknown_function(&reason) {
        Some(name) => QueryError::Unsupported(name.to_owned()),
        None => fail(reason),
    })?;
    if depth(&expr) > MAX_DEPTH {
        return Err(QueryError::TooLarge(format!("it nests more than {MAX_DEPTH} expressions; split it")));
    }
    Ok(expr)
}

/// Parses a plain series selector such as `{service="order-service"}`.
pub(super) fn parse_selector(selector: &str) -> Result<VectorSelector, QueryError> {
    match parse(selector)? {
        Expr::VectorSelector(found) if found.offset.is_none() && found.at.is_none() => Ok(found),
        _ => Err(QueryError::Parse {
            expr: crate::domain::text::clean_line(selector, SHOWN_CHARS),
            reason: "expected a series selector such as up{job=\"api\"}".to_owned(),
        }),
    }
}

/// Refuses the disjunction of matchers, which the library reads and Prometheus does not know.
pub(super) fn plain_matchers(matchers: &Matchers) -> Result<&[promql_parser::label::Matcher], QueryError> {
    match matchers.or_matchers.is_empty() {
        true => Ok(&matchers.matchers),
        false => Err(QueryError::Unsupported("or between matchers".to_owned())),
    }
}

fn unknown_function(reason: &str) -> Option<&str> {
    reason.strip_prefix("unknown function with name '")?.strip_suffix('\'')
}

/// A plain number out of range in the place of a duration (after `[`, `:` or `offset`), which the library would
/// panic on.
fn impossible_duration(query: &str) -> Option<&str> {
    let bytes = query.as_bytes();
    let mut at = 0;
    let mut in_brackets = false;
    let mut duration_may_follow = false;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' | b'\'' | b'`' => at = quote_end(bytes, at),
            b'#' => at += bytes[at..].iter().take_while(|&&byte| byte != b'\n').count(),
            b'[' | b']' => {
                in_brackets = byte == b'[';
                duration_may_follow = in_brackets;
                at += 1;
            }
            // Elsewhere a colon belongs to a metric name.
            b':' => {
                duration_may_follow = in_brackets;
                at += 1;
            }
            // Blanks and the sign of an offset stand between.
            b' ' | b'\t' | b'\n' | b'\r' | b'+' | b'-' => at += 1,
            _ if is_word_byte(byte) => {
                let end = at + bytes[at..].iter().take_while(|&&byte| is_word_byte(byte)).count();
                let end = exponent_end(bytes, at, end);
                // Every byte of the word is ASCII, so that both ends are character boundaries.
                let word = &query[at..end];
                if duration_may_follow && is_impossible(word) {
                    return Some(word);
                }
                duration_may_follow = word.eq_ignore_ascii_case("offset");
                at = end;
            }
            _ => {
                duration_may_follow = false;
                at += 1;
            }
        }
    }
    None
}

fn is_impossible(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let hexadecimal = word.strip_prefix("0x").and_then(|digits| i64::from_str_radix(digits, 16).ok());
    let seconds = hexadecimal.map(|number| number as f64).or_else(|| word.parse::<f64>().ok());
    seconds.is_some_and(|seconds| !(0.0..=MAX_DURATION_SECONDS).contains(&seconds))
}

/// A number such as `1e+300` goes on after its sign.
fn exponent_end(bytes: &[u8], start: usize, end: usize) -> usize {
    let number = bytes[start].is_ascii_digit() || bytes[start] == b'.';
    if number && matches!(bytes[end - 1], b'e' | b'E') && matches!(bytes.get(end), Some(b'+' | b'-')) {
        return end + 1 + bytes[end + 1..].iter().take_while(|&&byte| is_word_byte(byte)).count();
    }
    end
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.'
}

fn quote_end(bytes: &[u8], open: usize) -> usize {
    let quote = bytes[open];
    let mut at = open + 1;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quote != b'`' => at += 2,
            _ if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    at
}

/// Depth of a tree, counted without recursion.
fn depth(expr: &Expr) -> usize {
    let mut deepest = 0;
    let mut open = vec![(expr, 1)];
    while let Some((expr, level)) = open.pop() {
        deepest = deepest.max(level);
        let mut descend = |child| open.push((child, level + 1));
        match expr {
            Expr::Aggregate(aggregate) => {
                descend(&aggregate.expr);
                if let Some(param) = &aggregate.param {
                    descend(param);
                }
            }
            Expr::Unary(unary) => descend(&unary.expr),
            Expr::Binary(binary) => {
                descend(&binary.lhs);
                descend(&binary.rhs);
            }
            Expr::Paren(paren) => descend(&paren.expr),
            Expr::Subquery(subquery) => descend(&subquery.expr),
            Expr::Call(call) => call.args.args.iter().for_each(|arg| descend(arg)),
            Expr::NumberLiteral(_)
            | Expr::StringLiteral(_)
            | Expr::VectorSelector(_)
            | Expr::MatrixSelector(_)
            | Expr::Extension(_) => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_the_library_panics_on_are_refused() {
        for query in [
            "up[Inf]",
            "up[1e300]",
            "up[1e+300]",
            "up[5m:NaN]",
            "up offset inf",
            "up offset -1e99",
            "up[0x7fffffffffffffff]",
        ] {
            assert!(matches!(parse(query), Err(QueryError::Parse { .. })), "{query}");
        }
        for query in ["up[300]", "up{a=\"[inf\"}", "job:inf:sum", "up[5m:] offset -5", "sum(up) > inf", "up # [inf"] {
            assert!(parse(query).is_ok(), "{query}");
        }
    }

    #[test]
    fn a_query_nested_without_end_is_refused_and_does_not_overflow_the_stack() {
        let nested = [
            format!("{}up{}", "(".repeat(2000), ")".repeat(2000)),
            format!("{}up", "-".repeat(4000)),
            format!("up{}", "+up".repeat(2000)),
            format!("up{}", "^up".repeat(2000)),
            format!("{}up{}", "abs(".repeat(1000), ")".repeat(1000)),
        ];
        for query in nested {
            assert!(matches!(parse(&query), Err(QueryError::TooLarge(_))), "{query:.20}");
        }
        assert!(matches!(parse(&"(".repeat(10_000)), Err(QueryError::TooLarge(_))));
    }

    #[test]
    fn an_unknown_function_is_said_not_to_be_supported() {
        assert_eq!(parse("holt_winters(up[5m], 0.1, 0.1)"), Err(QueryError::Unsupported("holt_winters".to_owned())));
    }

    #[test]
    fn only_a_plain_selector_is_a_selector() {
        assert!(parse_selector("{a=\"b\"}").is_ok());
        assert!(parse_selector("up offset 5m").is_err());
        assert!(parse_selector("rate(up[5m])").is_err());
    }
}
