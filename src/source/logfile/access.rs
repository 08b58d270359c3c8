//! Access logs in the common and combined formats of Apache and nginx.

use super::level;
use super::line::Line;
use super::stamp::Stamp;

/// `203.0.113.9 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 …`, with a bracketed stamp that ends at
/// `end`. The message keeps the client and what follows the stamp; the level is the status's.
pub fn parse_after_stamp(text: &str, end: usize, stamp: Stamp) -> Option<Line<'_>> {
    let rest = text.get(end..)?.strip_prefix("] \"")?;
    let client = text.split(' ').next()?;
    let after_request = &rest[closing_quote(rest)? + 1..];
    let status = after_request.split_ascii_whitespace().next()?.parse::<i64>().ok()?;
    let level = level::from_http_status(status);
    Some(Line { at: Some(stamp), level, ..Line::begins(format!("{client} \"{}", rest.trim_end())) })
}

/// Where the quote that is not behind a backslash stands.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'"', bytes).find(|at| *at == 0 || bytes[at - 1] != b'\\')
}
