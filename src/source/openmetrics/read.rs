//! Files as a stream of lines: opens plain, gzip and zstd files by their first bytes and hands out one line at a
//! time, so that memory does not grow with the file.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::source::unpack::unpack;

/// Longest line that is read; what is longer is passed over and reported.
const MAX_LINE_BYTES: usize = 1 << 20;

const BUFFER_BYTES: usize = 256 << 10;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The decompressed content of a file.
pub(super) fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, unpack(file)?)))
}

/// The next line of a stream.
#[derive(Debug, PartialEq)]
pub(super) enum NextLine<'a> {
    /// Without its line feed.
    Line(&'a [u8]),
    /// A line over the limit was passed over.
    TooLong,
    End,
}

/// Cuts a stream into lines.
pub(super) struct Lines<R> {
    input: R,
    line: Vec<u8>,
    /// Number of the line last handed out, from 1.
    pub number: usize,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Self {
        Self { input, line: Vec::new(), number: 0 }
    }

    pub fn next(&mut self) -> io::Result<NextLine<'_>> {
        self.line.clear();
        let mut length = 0;
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                break;
            }
            let (part, consumed) = match memchr::memchr(b'\n', buffer) {
                Some(end) => (&buffer[..end], end + 1),
                None => (buffer, buffer.len()),
            };
            let ended = consumed > part.len();
            length += part.len();
            if length <= MAX_LINE_BYTES {
                self.line.extend_from_slice(part);
            }
            self.input.consume(consumed);
            if ended {
                self.number += 1;
                return Ok(self.hand_out(length));
            }
        }
        if length == 0 {
            return Ok(NextLine::End);
        }
        self.number += 1;
        Ok(self.hand_out(length))
    }

    fn hand_out(&self, length: usize) -> NextLine<'_> {
        if length > MAX_LINE_BYTES {
            return NextLine::TooLong;
        }
        let line = &self.line[..];
        NextLine::Line(if self.number == 1 { line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line) } else { line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(content: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(BufReader::with_capacity(7, content));
        let mut out = Vec::new();
        loop {
            out.push(match lines.next().unwrap() {
                NextLine::Line(line) => String::from_utf8(line.to_vec()).unwrap(),
                NextLine::TooLong => "too long".to_owned(),
                NextLine::End => return out,
            });
        }
    }

    #[test]
    fn lines_are_cut_at_line_feeds_and_the_last_needs_none() {
        assert_eq!(
            all(b"\xef\xbb\xbfone\n\nthree, longer than the buffer\nlast"),
            ["one", "", "three, longer than the buffer", "last"]
        );
        assert!(all(b"").is_empty());
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_is_read() {
        let mut content = vec![b'x'; MAX_LINE_BYTES + 1];
        content.extend_from_slice(b"\nnext\n");
        assert_eq!(all(&content), ["too long", "next"]);
    }
}
