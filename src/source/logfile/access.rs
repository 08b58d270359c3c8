//! Access logs in the common and combined formats of Apache and nginx.

use super::level;
use super::line::Line;
use super::stamp::{self, Clock};

/// The client and two fields stand before the stamp; names of virtual hosts may add one more.
const STAMP_WITHIN_BYTES: usize = 160;

/// `203.0.113.9 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 …`. The message keeps the client and
/// what follows the stamp; the level is the status's.
pub fn parse<'a>(text: &'a str, clock: &Clock) -> Option<Line<'a>> {
    let bytes = text.as_bytes();
    let head = &bytes[..bytes.len().min(STAMP_WITHIN_BYTES)];
    let open = memchr::memmem::find(head, b" [")?;
    // A day, a month's name, a year.
    if head.get(open + 4) != Some(&b'/') && head.get(open + 3) != Some(&b'/') {
        return None;
    }
    let (stamp, end) = stamp::parse_at(bytes, open + 2, clock)?;
    let rest = text.get(end..)?.strip_prefix(']')?.trim_start();
    let request = rest.strip_prefix('"')?;
    let client = text.split(' ').next()?;
    let after_request = &request[closing_quote(request)? + 1..];
    let status = after_request.split_ascii_whitespace().next()?.parse::<i64>().ok()?;
    let level = level::from_http_status(status);
    Some(Line { at: Some(stamp), level, ..Line::begins(format!("{client} {}", rest.trim_end())) })
}

/// Where the quote that is not behind a backslash stands.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'"', bytes).find(|at| *at == 0 || bytes[at - 1] != b'\\')
}
