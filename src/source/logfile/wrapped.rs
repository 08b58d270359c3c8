//! Lines that a container runtime wrote around the lines of a program (CRI: containerd, CRI-O).

use super::line::{Line, Role, parse_nested};
use super::stamp::{self, Clock};
use super::structured::wrap;

/// `2024-01-02T03:04:05.678901234Z stdout F message`; `P` in place of `F` marks a piece of a longer line.
pub fn parse_cri<'a>(text: &'a str, clock: &Clock, depth: usize) -> Option<Line<'a>> {
    // Runtimes write RFC 3339: most other lines are told by one byte.
    if text.as_bytes().get(10) != Some(&b'T') {
        return None;
    }
    let (time, rest) = text.split_once(' ')?;
    let rest = rest.strip_prefix("stdout ").or_else(|| rest.strip_prefix("stderr "))?;
    let (tag, message) = rest.split_once(' ').unwrap_or((rest, ""));
    let stamp = stamp::parse_text(time, clock)?;
    match tag {
        "P" => Some(Line { at: Some(stamp), role: Role::Partial, ..Line::bare(message) }),
        "F" => Some(wrap(parse_nested(message, clock, depth + 1), stamp)),
        _ => None,
    }
}
