//! Payment card numbers: of a known issuer, of its length, and with the right check digit.

use std::sync::LazyLock;

use regex::Regex;

use super::detect::{Kind, Span, constant};

pub(super) fn find(text: &str, spans: &mut Vec<Span>) {
    static DIGITS: LazyLock<Regex> = LazyLock::new(|| {
        constant(concat!(
            r"(?-u:\b)(?:[0-9]{13,19}|[0-9]{4}(?: [0-9]{4}){3}(?: [0-9]{3})?|[0-9]{4}(?:-[0-9]{4}){3}(?:-[0-9]{3})?",
            r"|[0-9]{4} [0-9]{6} [0-9]{4,5}|[0-9]{4}-[0-9]{6}-[0-9]{4,5})(?-u:\b)",
        ))
    });
    let bytes = text.as_bytes();
    for found in DIGITS.find_iter(text) {
        // A part of something longer: a decimal fraction, an identifier of groups, an address.
        let before = |back: usize| found.start().checked_sub(back).and_then(|at| bytes.get(at));
        let after = |forth: usize| bytes.get(found.end() + forth);
        let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
        let is_name = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
        let is_part = match before(1) {
            Some(b'.' | b':') => is_digit(before(2)),
            Some(b'-') => is_name(before(2)),
            _ => false,
        } || match after(0) {
            Some(b'.') => is_digit(after(1)),
            Some(b'-') => is_name(after(1)),
            _ => false,
        };
        if !is_part && is_card(found.as_str()) {
            spans.push(Span::new(found.start(), found.end(), Kind::Card));
        }
    }
}

/// Whether a number, perhaps in groups, is a card's.
pub(super) fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let is_number = text.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '-'));
    is_number && is_issued(&digits) && luhn(&digits)
}

/// Prefixes and lengths of the issuers (ISO/IEC 7812): Visa, Mastercard, American Express, Discover, JCB, Diners Club,
/// UnionPay.
fn is_issued(digits: &[u32]) -> bool {
    let prefix = |length: usize| digits.iter().take(length).fold(0, |value, digit| value * 10 + digit);
    match digits.len() {
        13 => prefix(1) == 4,
        14 => matches!(prefix(3), 300..=305) || matches!(prefix(2), 36 | 38),
        15 => matches!(prefix(2), 34 | 37),
        16..=19 => {
            let long = prefix(1) == 4 && digits.len() != 17 && digits.len() != 18;
            let sixteen = matches!(prefix(2), 51..=55) || matches!(prefix(4), 2221..=2720);
            long || (digits.len() == 16 && sixteen)
                || matches!(prefix(4), 6011 | 3528..=3589)
                || matches!(prefix(3), 644..=649)
                || matches!(prefix(2), 62 | 65)
        }
        _ => false,
    }
}

/// The check digit of ISO/IEC 7812-1, annex B.
fn luhn(digits: &[u32]) -> bool {
    let weighted = digits.iter().rev().enumerate().map(|(place, digit)| match place % 2 {
        0 => *digit,
        _ if *digit > 4 => digit * 2 - 9,
        _ => digit * 2,
    });
    weighted.sum::<u32>() % 10 == 0
}
