//! From a file or stream to lines of text: decompression, character sets, holes of NUL bytes. A reader comes in,
//! capped lines come out; nothing is ever held that grows with the input.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, Read};

use encoding_rs::{Decoder, Encoding, UTF_8};

use crate::domain::decode::{Extent, encoding_of};
use crate::source::unpack::unpack;

/// How much of a stream is looked at to tell its encoding.
const SNIFF_BYTES: usize = 64 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;

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

/// Opens a stream: unpacks archives, tells the encoding, strips a byte-order mark.
pub fn open(raw: Box<dyn Read + Send>) -> Result<Text, DecodeError> {
    let (stream, hole) = Replay::after_hole(unpack(raw)?)?;
    let start = stream.start.get_ref();
    let extent = if start.len() < SNIFF_BYTES { Extent::Whole } else { Extent::Start };
    let encoding = encoding_of(start, extent).ok_or(DecodeError::Binary)?;
    let (utf8, name): (Box<dyn Read + Send>, _) = if encoding == UTF_8 {
        (Box::new(stream), None)
    } else {
        (Box::new(Transcoder::new(Box::new(stream), encoding)), Some(encoding.name()))
    };
    Ok(Text { lines: Lines::new(utf8, hole), encoding: name })
}

/// A stream whose start was looked at. An error that cut off the start comes up again behind it, so that a truncated
/// archive still shows its beginning.
struct Replay {
    start: io::Cursor<Vec<u8>>,
    error: Option<io::Error>,
    rest: Box<dyn Read + Send>,
}

impl Replay {
    /// The stream from the first part on that is not NUL throughout, and how many NULs stood before it: a log that
    /// was truncated while its writer went on begins with a hole of any length.
    fn after_hole(mut rest: Box<dyn Read + Send>) -> io::Result<(Self, u64)> {
        let mut hole = 0;
        loop {
            let mut start = Vec::new();
            let error = rest.by_ref().take(SNIFF_BYTES as u64).read_to_end(&mut start).err();
            match error {
                None if start.len() == SNIFF_BYTES && start.iter().all(|byte| *byte == 0) => hole += start.len() as u64,
                Some(error) if start.is_empty() && hole == 0 => return Err(error),
                error => return Ok((Self { start: io::Cursor::new(start), error, rest }, hole)),
            }
        }
    }
}

impl Read for Replay {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.start.read(buffer)?;
        if count > 0 || buffer.is_empty() {
            return Ok(count);
        }
        match self.error.take() {
            Some(error) => Err(error),
            None => self.rest.read(buffer),
        }
    }
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
    line: LineBytes,
    at_start: bool,
    /// How many lines were cut, and how many bytes that cost.
    pub cut_lines: u64,
    pub cut_bytes: u64,
    /// How many NUL bytes were dropped.
    pub nuls: u64,
}

impl Lines {
    pub const MAX_LINE_BYTES: usize = 64 * 1024;

    /// `nuls`: those that were passed over before the stream.
    fn new(source: Box<dyn Read + Send>, nuls: u64) -> Self {
        let reader = BufReader::with_capacity(BUFFER_BYTES, source);
        Self { reader, line: LineBytes::default(), at_start: true, cut_lines: 0, cut_bytes: 0, nuls }
    }

    /// The next line without its end (`\n` or `\r\n`); bytes that are no UTF-8 are replaced.
    pub fn next_line(&mut self) -> io::Result<Option<Cow<'_, str>>> {
        self.line.clear();
        let (mut seen, mut ended) = (false, false);
        while !ended {
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
            ended = end.is_some();
            let part = &buffer[..end.unwrap_or(buffer.len())];
            self.line.append(part);
            let used = part.len() + usize::from(ended);
            self.reader.consume(used);
        }
        self.nuls += self.line.nuls as u64;
        // A hole at the very end is no line.
        if !seen || (!ended && self.line.is_hole()) {
            return Ok(None);
        }
        if self.line.cut > 0 {
            self.cut_lines += 1;
            self.cut_bytes += self.line.cut as u64;
        } else if self.line.kept.last() == Some(&b'\r') {
            self.line.kept.pop();
        }
        Ok(Some(self.text()))
    }

    fn text(&mut self) -> Cow<'_, str> {
        let mut line = self.line.kept.as_slice();
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
        }
        // The check alone is much faster than the replacement, and mostly enough.
        std::str::from_utf8(line).map_or_else(|_| String::from_utf8_lossy(line), Cow::Borrowed)
    }
}

/// The bytes of one line, up to the cap, without NULs.
#[derive(Default)]
struct LineBytes {
    kept: Vec<u8>,
    /// Bytes beyond the cap.
    cut: usize,
    nuls: usize,
    /// How many NULs were passed over last.
    hole: usize,
}

impl LineBytes {
    fn clear(&mut self) {
        self.kept.clear();
        (self.cut, self.nuls, self.hole) = (0, 0, 0);
    }

    fn is_hole(&self) -> bool {
        self.nuls > 0 && self.kept.is_empty()
    }

    /// Takes the next part. A hole within the line becomes one blank, so that the words around it stay apart; a
    /// single NUL is a terminator that was written along.
    fn append(&mut self, mut part: &[u8]) {
        while !part.is_empty() {
            let end = memchr::memchr(0, part).unwrap_or(part.len());
            if end > 0 {
                if std::mem::take(&mut self.hole) > 1 && !self.kept.is_empty() {
                    self.keep(b" ");
                }
                self.keep(&part[..end]);
            }
            let nuls = part[end..].iter().take_while(|byte| **byte == 0).count();
            self.nuls += nuls;
            self.hole += nuls;
            part = &part[end + nuls..];
        }
    }

    fn keep(&mut self, text: &[u8]) {
        let kept = text.len().min(Lines::MAX_LINE_BYTES - self.kept.len());
        self.kept.extend_from_slice(&text[..kept]);
        self.cut += text.len() - kept;
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::GB18030;

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

    #[test]
    fn holes_of_nul_bytes_are_dropped_and_no_line_is_lost() {
        let hole = vec![0; 200_000];
        let bytes = [&hole[..], b"one\ntw", &hole, b"o\n", &hole, b"\nthr\0ee\r\n", &hole].concat();
        let mut text = open(Box::new(io::Cursor::new(bytes))).unwrap();
        let mut lines = Vec::new();
        while let Some(line) = text.lines.next_line().unwrap() {
            lines.push(line.into_owned());
        }
        assert_eq!((lines, text.lines.nuls), (["one", "tw o", "", "three"].map(str::to_owned).into(), 800_001));
        assert_eq!(lines_of(vec![0; 300_000]).unwrap(), (Vec::new(), None));
    }

    #[test]
    fn a_truncated_archive_gives_its_lines_and_then_the_error() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, "a line\n".repeat(1000).as_bytes()).unwrap();
        let mut archive = encoder.finish().unwrap();
        archive.truncate(archive.len() - 9);
        let mut text = open(Box::new(io::Cursor::new(archive))).unwrap();
        assert_eq!(text.lines.next_line().unwrap().unwrap(), "a line");
        let error = std::iter::repeat_with(|| text.lines.next_line().map(|line| line.is_some())).find(Result::is_err);
        assert!(error.unwrap().unwrap_err().to_string().starts_with("the gzip archive is damaged or cut off at byte "));
    }
}
