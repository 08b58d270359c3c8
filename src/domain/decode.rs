//! From bytes of any usual encoding to text: alerts, runbooks and logs come as UTF-8, UTF-16, GB18030 (GBK) or a
//! Western 8-bit set, and sometimes with holes of NUL bytes.
//!
//! In: bytes, all of a text or its start. Out: the encoding that they are in, or nothing when they are no text.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, GB18030, UTF_8, UTF_16BE, UTF_16LE};

use super::lang::is_han;

/// A text may hold this share of control characters (a bell, a backspace); escape sequences are not counted.
const MAX_CONTROL_SHARE: f64 = 0.1;
/// The same for bytes that are not simply UTF-8: chance alone gives binary data more.
const MAX_CONTROL_SHARE_IN_DOUBT: f64 = 0.02;
/// A text in UTF-8 may hold this share of bytes that are not: a log was pasted into it, or it was cut.
const MAX_BROKEN_SHARE: f64 = 0.01;
/// Torn writes leave few holes; a binary format with texts in it has a NUL behind each. So many may be there
/// beside one for each line.
const MAX_HOLES: usize = 8;

/// How much of a text the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    Whole,
    /// The start, which may end within a character.
    Start,
}

/// A decoded text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Without byte-order mark and NULs; what the encoding does not have is U+FFFD.
    pub text: String,
    /// The name of the encoding; `None` for UTF-8.
    pub encoding: Option<&'static str>,
    /// How many NUL characters were dropped.
    pub nuls: usize,
}

/// Decodes a whole text; `None` when the bytes are binary.
pub fn decode(bytes: &[u8]) -> Option<Decoded> {
    let encoding = encoding_of(bytes, Extent::Whole)?;
    let text = encoding.decode_with_bom_removal(bytes).0;
    let nuls = text.matches('\0').count();
    let text = if nuls > 0 { text.replace('\0', "") } else { text.into_owned() };
    Some(Decoded { text, encoding: (encoding != UTF_8).then(|| encoding.name()), nuls })
}

/// The encoding of a text; `None` when the bytes are binary. NULs in a text are holes, not content.
pub fn encoding_of(bytes: &[u8], extent: Extent) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Some(encoding);
    }
    if let Some(encoding) = latin_utf16(bytes) {
        return Some(encoding);
    }
    let text = without_nuls(bytes);
    let control = control_share(&text);
    let holes = matches!(text, Cow::Owned(_));
    if control > MAX_CONTROL_SHARE || (holes && (control > MAX_CONTROL_SHARE_IN_DOUBT || has_many_holes(bytes))) {
        return han_utf16(bytes, extent);
    }
    match std::str::from_utf8(&text) {
        Ok(_) => return Some(UTF_8),
        Err(error) if error.error_len().is_none() && extent == Extent::Start => return Some(UTF_8),
        Err(_) => {}
    }
    if let Some(encoding) = han_utf16(bytes, extent) {
        return Some(encoding);
    }
    if is_gb18030(&text, extent) {
        return Some(GB18030);
    }
    if control > MAX_CONTROL_SHARE_IN_DOUBT {
        return None;
    }
    if is_mostly_utf8(&text) { Some(UTF_8) } else { eight_bit(&text, extent) }
}

fn without_nuls(bytes: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memchr(0, bytes).is_none() {
        return Cow::Borrowed(bytes);
    }
    Cow::Owned(bytes.iter().copied().filter(|byte| *byte != 0).collect())
}

fn control_share(text: &[u8]) -> f64 {
    let is_control = |byte: &&u8| matches!(**byte, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f | 0x7f);
    text.iter().filter(is_control).count() as f64 / text.len().max(1) as f64
}

fn has_many_holes(bytes: &[u8]) -> bool {
    let holes = bytes.windows(2).filter(|pair| pair[0] != 0 && pair[1] == 0).count();
    holes > MAX_HOLES + memchr::memchr_iter(b'\n', bytes).count()
}

/// Latin text in UTF-16 has a zero in every other byte.
fn latin_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let pairs = bytes.len() / 2;
    let (even, odd) = zeros(bytes);
    match () {
        () if pairs < 4 => None,
        () if odd * 10 > pairs * 4 && even == 0 => Some(UTF_16LE),
        () if even * 10 > pairs * 4 && odd == 0 => Some(UTF_16BE),
        () => None,
    }
}

/// Chinese text in UTF-16 has few zeros, but all of them at odd or all at even places.
fn han_utf16(bytes: &[u8], extent: Extent) -> Option<&'static Encoding> {
    let encoding = match zeros(bytes) {
        (0, odd) if odd > 0 => UTF_16LE,
        (even, 0) if even > 0 => UTF_16BE,
        _ => return None,
    };
    let text = strictly(encoding, bytes, extent)?;
    let (mut wide, mut han, mut control) = (0usize, 0usize, 0usize);
    for c in text.chars() {
        wide += usize::from(!c.is_ascii());
        han += usize::from(is_han(c) || is_wide_punctuation(c));
        control += usize::from(c.is_control() && !c.is_ascii_whitespace());
    }
    (control == 0 && wide > 0 && han * 10 >= wide * 8).then_some(encoding)
}

/// How many zero bytes stand at even and at odd places.
fn zeros(bytes: &[u8]) -> (usize, usize) {
    let count = |from: usize| bytes.iter().skip(from).step_by(2).filter(|byte| **byte == 0).count();
    (count(0), count(1))
}

/// Whether the bytes read as GB18030 without an error and give mostly Han characters where they are not ASCII. The
/// second byte of a usual one is not ASCII either, while an accented letter of a Western text stands alone.
fn is_gb18030(bytes: &[u8], extent: Extent) -> bool {
    let Some(text) = strictly(GB18030, bytes, extent) else { return false };
    let (mut wide, mut han) = (0usize, 0usize);
    for c in text.chars().filter(|c| !c.is_ascii()) {
        wide += 1;
        han += usize::from(is_han(c) || is_wide_punctuation(c));
    }
    let high = bytes.iter().filter(|byte| !byte.is_ascii()).count();
    wide > 0 && han * 10 >= wide * 8 && high * 10 >= wide * 17
}

fn is_wide_punctuation(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2026}' | '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ffef}')
}

/// The text, unless a byte of it is not of this encoding.
fn strictly(encoding: &'static Encoding, bytes: &[u8], extent: Extent) -> Option<String> {
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length_without_replacement(bytes.len())?);
    match decoder.decode_to_string_without_replacement(bytes, &mut text, extent == Extent::Whole).0 {
        DecoderResult::InputEmpty => Some(text),
        // The capacity is the greatest that it can need.
        DecoderResult::OutputFull | DecoderResult::Malformed(..) => None,
    }
}

/// Whether a text with broken bytes is UTF-8 all the same: they are few, or fewer than its characters beyond ASCII.
fn is_mostly_utf8(bytes: &[u8]) -> bool {
    let (mut wide, mut broken) = (0usize, 0usize);
    for chunk in bytes.utf8_chunks() {
        wide += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        broken += usize::from(!chunk.invalid().is_empty());
    }
    broken <= wide || broken as f64 <= MAX_BROKEN_SHARE * bytes.len() as f64
}

/// What a detector takes the bytes for: a Western, Cyrillic or other 8-bit set, or an older Asian one.
fn eight_bit(bytes: &[u8], extent: Extent) -> Option<&'static Encoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(bytes, extent == Extent::Whole);
    let encoding = detector.guess(Some(b"cn"), Utf8Detection::Deny);
    // Bytes in which every second one is beyond ASCII and no encoding fits are data.
    strictly(encoding, bytes, extent)
        .filter(|text| !text.chars().any(|c| c.is_control() && !c.is_ascii()))
        .map(|_| encoding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Option<(String, Option<&'static str>, usize)> {
        decode(bytes).map(|decoded| (decoded.text, decoded.encoding, decoded.nuls))
    }

    fn little(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn big(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    }

    const CHINESE: &str = "# 数据库连接池耗尽\n\n先看慢查询，再看连接数。\n";

    #[test]
    fn chinese_text_is_decoded_from_every_usual_encoding() {
        let text = |encoding| Some((CHINESE.to_owned(), encoding, 0));
        assert_eq!(read(CHINESE.as_bytes()), text(None));
        assert_eq!(read(&GB18030.encode(CHINESE).0), text(Some("gb18030")));
        assert_eq!(read(&little(CHINESE)), text(Some("UTF-16LE")));
        assert_eq!(read(&big(CHINESE)), text(Some("UTF-16BE")));
        assert_eq!(read(&[&[0xff, 0xfe], &little(CHINESE)[..]].concat()), text(Some("UTF-16LE")));
        assert_eq!(read("磁盘".as_bytes()), Some(("磁盘".to_owned(), None, 0)));
        assert_eq!(read(&GB18030.encode("磁盘").0), Some(("磁盘".to_owned(), Some("gb18030"), 0)));
    }

    #[test]
    fn latin_text_in_utf_16_and_western_text_are_decoded() {
        assert_eq!(read(&big("plain text")), Some(("plain text".to_owned(), Some("UTF-16BE"), 0)));
        let text = "D\u{e9}marrer le service apr\u{e8}s la panne, c'est \u{e0} vous";
        let bytes: Vec<u8> = text.chars().map(|c| c as u8).collect();
        assert_eq!(read(&bytes), Some((text.to_owned(), Some("windows-1252"), 0)));
    }

    #[test]
    fn broken_bytes_do_not_make_a_text_binary() {
        let mut bytes = "连接池".repeat(60).into_bytes();
        bytes.truncate(bytes.len() - 1);
        assert_eq!(encoding_of(&bytes, Extent::Start), Some(UTF_8));
        assert_eq!(encoding_of(&bytes, Extent::Whole), Some(UTF_8));
        assert_eq!(read(b"caf\xc3\xa9 \xff x"), Some(("café \u{fffd} x".to_owned(), None, 0)));
    }

    #[test]
    fn holes_of_nul_bytes_are_dropped() {
        let torn = [b"2026-03-04 ERROR a\n2026-".as_slice(), &[0; 4096], b"2026-03-04 ERROR b\n"].concat();
        assert_eq!(read(&torn), Some(("2026-03-04 ERROR a\n2026-2026-03-04 ERROR b\n".to_owned(), None, 4096)));
        assert_eq!(read(b"one\0\ntwo\0\n"), Some(("one\ntwo\n".to_owned(), None, 2)));
        assert_eq!(read("a\0 连接\n".as_bytes()), Some(("a 连接\n".to_owned(), None, 1)));
        assert_eq!(read(&[0; 100]), Some((String::new(), None, 100)));
    }

    #[test]
    fn binary_data_is_no_text() {
        let accounting = b"\x07\0\0\0\x51\x02\0\0pts/0\0\0\0root\0\0\0\0ts/0root\0\0\0\0host\0\0\0".repeat(20);
        let names = b"name\0value\0other\0text\0".repeat(20);
        let mut state = 1u32;
        let noise: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(4000)
        .collect();
        let compressed: Vec<u8> = noise.iter().copied().filter(|byte| *byte != 0).collect();
        for bytes in [
            b"\x7fELF\0\0\x01\x02".as_slice(),
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x02",
            &[1, 2, 3, 4, 5],
            &accounting,
            &names,
            &noise,
            &compressed,
        ] {
            assert_eq!(read(bytes), None, "{:?}", &bytes[..bytes.len().min(40)]);
        }
    }
}
