//! From a file or stream to lines of text: decompression and character sets. A reader comes in, capped lines come
//! out; nothing is ever held that grows with the input.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, GB18030, UTF_8, UTF_16BE, UTF_16LE};

/// How much of a stream is looked at to tell its encoding.
const SNIFF_BYTES: usize = 64 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// A text may hold this share of control characters (colours, for example) and still be a text.
const MAX_CONTROL_SHARE: f64 = 0.1;

/// A stream that is no text.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("it is binary, not text")]
    Binary,
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A text stream with the encoding that it was found to have.
pub struct Text {
    pub lines: Lines,
    /// `None` for UTF-8.
    pub encoding: Option<&'static str>,
}

/// Opens a stream: unpacks gzip and zstd by their magic numbers, tells the encoding, strips a byte-order mark.
pub fn open(raw: Box<dyn Read + Send>) -> Result<Text, DecodeError> {
    let mut reader = unpack(raw)?;
    let start = peek(&mut reader, SNIFF_BYTES)?;
    let encoding = detect(&start)?;
    let whole = io::Cursor::new(start).chain(reader);
    let (utf8, name): (Box<dyn Read + Send>, _) = if encoding == UTF_8 {
        (Box::new(whole), None)
    } else {
        (Box::new(Transcoder::new(Box::new(whole), encoding)), Some(encoding.name()))
    };
    Ok(Text { lines: Lines::new(utf8), encoding: name })
}

fn unpack(mut raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let magic = peek(&mut raw, 4)?;
    let whole = io::Cursor::new(magic.clone()).chain(raw);
    Ok(match magic.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(whole))),
        [0x28, 0xb5, 0x2f, 0xfd] => Box::new(zstd::stream::read::Decoder::new(whole)?),
        _ => Box::new(whole),
    })
}

/// Up to `limit` bytes; fewer at the end of the stream. What an error cuts off is kept when something was read,
/// so that a truncated archive still shows its beginning.
fn peek(reader: &mut dyn Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    match reader.take(limit as u64).read_to_end(&mut start) {
        Err(error) if start.is_empty() => Err(error),
        _ => Ok(start),
    }
}

fn detect(start: &[u8]) -> Result<&'static Encoding, DecodeError> {
    if let Some((encoding, _)) = Encoding::for_bom(start) {
        return Ok(encoding);
    }
    if let Some(encoding) = utf16_without_mark(start) {
        return Ok(encoding);
    }
    if start.contains(&0) || control_share(start) > MAX_CONTROL_SHARE {
        return Err(DecodeError::Binary);
    }
    let cut_short = match std::str::from_utf8(start) {
        Ok(_) => return Ok(UTF_8),
        // The sample may end inside a character.
        Err(error) => error.error_len().is_none(),
    };
    if cut_short {
        return Ok(UTF_8);
    }
    Ok(if is_gb18030(start) { GB18030 } else { UTF_8 })
}

/// Latin text in UTF-16 has a zero in every other byte.
fn utf16_without_mark(start: &[u8]) -> Option<&'static Encoding> {
    let pairs = start.len() / 2;
    if pairs < 4 {
        return None;
    }
    let zeros = |parity: usize| start.iter().skip(parity).step_by(2).filter(|b| **b == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match () {
        () if odd * 10 > pairs * 4 && even == 0 => Some(UTF_16LE),
        () if even * 10 > pairs * 4 && odd == 0 => Some(UTF_16BE),
        () => None,
    }
}

fn control_share(start: &[u8]) -> f64 {
    let control =
        start.iter().filter(|b| (**b < 0x20 && !matches!(**b, b'\n' | b'\r' | b'\t' | 0x1b | 0x0c)) || **b == 0x7f);
    control.count() as f64 / start.len().max(1) as f64
}

/// Whether the bytes read as GB18030 without an error and give mostly Han characters where they are not ASCII.
fn is_gb18030(start: &[u8]) -> bool {
    let mut text = String::with_capacity(start.len() * 2);
    let mut decoder = GB18030.new_decoder_without_bom_handling();
    let mut from = 0;
    loop {
        // Room for a whole character at the least: with less the decoder would stand still on a short sample.
        text.reserve(start.len() * 2 + 16);
        // Not the last chunk: the sample may end inside a character.
        match decoder.decode_to_string_without_replacement(&start[from..], &mut text, false) {
            (DecoderResult::InputEmpty, _) => break,
            (DecoderResult::OutputFull, read) => from += read,
            (DecoderResult::Malformed(..), _) => return false,
        }
    }
    let wide = text.chars().filter(|c| !c.is_ascii());
    let (mut total, mut han) = (0usize, 0usize);
    for c in wide {
        total += 1;
        han += usize::from(matches!(c, '\u{3000}'..='\u{303f}' | '\u{4e00}'..='\u{9fff}' | '\u{ff00}'..='\u{ffef}'));
    }
    total > 0 && han * 10 >= total * 8
}

/// Turns another encoding into UTF-8 as it is read.
struct Transcoder {
    source: Box<dyn Read + Send>,
    decoder: Decoder,
    input: Vec<u8>,
    input_at: usize,
    input_end: usize,
    output: Vec<u8>,
    output_at: usize,
    output_end: usize,
    ended: bool,
}

impl Transcoder {
    fn new(source: Box<dyn Read + Send>, encoding: &'static Encoding) -> Self {
        Self {
            source,
            decoder: encoding.new_decoder_with_bom_removal(),
            input: vec![0; BUFFER_BYTES],
            input_at: 0,
            input_end: 0,
            output: vec![0; BUFFER_BYTES],
            output_at: 0,
            output_end: 0,
            ended: false,
        }
    }
}

impl Read for Transcoder {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.output_at == self.output_end {
            if self.ended {
                return Ok(0);
            }
            if self.input_at == self.input_end {
                self.input_at = 0;
                self.input_end = self.source.read(&mut self.input)?;
            }
            let last = self.input_end == 0;
            let pending = &self.input[self.input_at..self.input_end];
            let (result, read, written, _) = self.decoder.decode_to_utf8(pending, &mut self.output, last);
            self.input_at += read;
            self.output_at = 0;
            self.output_end = written;
            self.ended = last && result == encoding_rs::CoderResult::InputEmpty;
        }
        let count = buffer.len().min(self.output_end - self.output_at);
        buffer[..count].copy_from_slice(&self.output[self.output_at..self.output_at + count]);
        self.output_at += count;
        Ok(count)
    }
}

/// Lines of at most [`Lines::MAX_LINE_BYTES`] bytes; what is longer is counted and passed over.
pub struct Lines {
    reader: BufReader<Box<dyn Read + Send>>,
    line: Vec<u8>,
    at_start: bool,
    /// How many lines were cut, and how many bytes that cost.
    pub cut_lines: u64,
    pub cut_bytes: u64,
}

impl Lines {
    pub const MAX_LINE_BYTES: usize = 64 * 1024;

    fn new(source: Box<dyn Read + Send>) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, source);
        Self { reader, line: Vec::new(), at_start: true, cut_lines: 0, cut_bytes: 0 }
    }

    /// The next line without its end (`\n` or `\r\n`); bytes that are no UTF-8 are replaced.
    pub fn next_line(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        self.line.clear();
        let mut cut = 0usize;
        let mut seen = false;
        loop {
            let buffer = match self.reader.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // A broken end gives its last words first; the error comes back on the next call.
                Err(_) if seen => break,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            seen = true;
            let end = memchr::memchr(b'\n', buffer);
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let kept = part.len().min(Self::MAX_LINE_BYTES - self.line.len());
            self.line.extend_from_slice(&part[..kept]);
            cut += part.len() - kept;
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !seen {
            return Ok(None);
        }
        if cut > 0 {
            self.cut_lines += 1;
            self.cut_bytes += cut as u64;
        } else if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        Ok(Some(self.text()))
    }

    fn text(&mut self) -> Cow<'_, str> {
        let mut line = self.line.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        // The check alone is much faster than the replacement, and mostly enough.
        std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn lines_of(bytes: Vec<u8>) -> Result<(Vec<String>, Option<&'static str>), DecodeError> {
        let mut text = open(Box::new(io::Cursor::new(bytes)))?;
        let mut lines = Vec::new();
        while let Some(line) = text.lines.next_line()? {
            lines.push(line.into_owned());
        }
        Ok((lines, text.encoding))
    }

    #[test]
    fn line_ends_and_marks_are_stripped_and_blank_lines_stay() {
        let (lines, encoding) = lines_of("\u{feff}a\r\n\nb".into()).unwrap();
        assert_eq!((lines, encoding), (vec!["a".to_owned(), String::new(), "b".into()], None));
    }

    #[test]
    fn chinese_text_is_read_in_every_usual_encoding() {
        let text = "2024-01-02 ERROR 连接池超时，请检查\n第二行";
        let expected = vec!["2024-01-02 ERROR 连接池超时，请检查".to_owned(), "第二行".to_owned()];
        let gbk = GB18030.encode(text).0.into_owned();
        assert_eq!(lines_of(gbk).unwrap(), (expected.clone(), Some("gb18030")));
        let utf16: Vec<u8> = [0xfeff].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(lines_of(utf16).unwrap(), (expected, Some("UTF-16LE")));
        let unmarked: Vec<u8> = "plain text".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(lines_of(unmarked).unwrap(), (vec!["plain text".to_owned()], Some("UTF-16BE")));
    }

    #[test]
    fn archives_are_told_by_their_magic_number() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(b"a\nb\n").unwrap();
        assert_eq!(lines_of(gz.finish().unwrap()).unwrap().0, ["a", "b"]);
        assert_eq!(lines_of(zstd::encode_all(&b"a\nb\n"[..], 1).unwrap()).unwrap().0, ["a", "b"]);
    }

    #[test]
    fn a_binary_file_is_refused() {
        assert!(matches!(lines_of(b"\x7fELF\0\0\x01\x02".to_vec()), Err(DecodeError::Binary)));
    }

    #[test]
    fn a_huge_line_is_cut_and_the_cut_is_counted() {
        let mut bytes = vec![b'x'; 3_000_000];
        bytes.extend_from_slice(b"\nnext");
        let mut text = open(Box::new(io::Cursor::new(bytes))).unwrap();
        assert_eq!(text.lines.next_line().unwrap().unwrap().len(), Lines::MAX_LINE_BYTES);
        assert_eq!(text.lines.next_line().unwrap().unwrap(), "next");
        assert_eq!((text.lines.cut_lines, text.lines.cut_bytes), (1, 3_000_000 - 65_536));
    }
}
