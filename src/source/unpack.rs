//! Unpacks gzip and zstd, told by their first bytes, for every kind of file that a source reads.
//!
//! In: a stream. Out: its content; where the archive is damaged, an error that says so and how far it was read.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;

const BUFFER_BYTES: usize = 64 * 1024;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// What stands in the error of a stream whose archive cannot be unpacked further.
#[derive(Debug, thiserror::Error)]
#[error("the {format} archive is damaged or cut off at byte {offset} ({reason})")]
pub struct DamagedArchive {
    format: &'static str,
    /// Bytes of the archive that were used up.
    offset: u64,
    reason: io::Error,
}

impl DamagedArchive {
    /// Whether an error of reading is one of the archive.
    pub fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

/// The content of a stream, unpacked when it is an archive.
pub fn unpack(mut raw: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::with_capacity(ZSTD.len());
    raw.by_ref().take(ZSTD.len() as u64).read_to_end(&mut magic)?;
    let (is_gzip, is_zstd) = (magic.starts_with(GZIP), magic.starts_with(ZSTD));
    let whole = io::Cursor::new(magic).chain(BufReader::with_capacity(BUFFER_BYTES, raw));
    let archive = Counted { reader: whole, used: 0 };
    Ok(if is_gzip {
        Box::new(Gzip(MultiGzDecoder::new(archive)))
    } else if is_zstd {
        Box::new(Zstd(zstd::stream::read::Decoder::with_buffer(archive)?))
    } else {
        Box::new(archive.reader)
    })
}

/// Counts the bytes that were used up.
struct Counted<R> {
    reader: R,
    used: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.used += count as u64;
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.used += count as u64;
        self.reader.consume(count);
    }
}

struct Gzip<R>(MultiGzDecoder<Counted<R>>);

impl<R: BufRead> Read for Gzip<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| explained(error, "gzip", self.0.get_ref().used))
    }
}

struct Zstd<R: BufRead>(zstd::stream::read::Decoder<'static, Counted<R>>);

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(|error| explained(error, "zstd", self.0.get_ref().used))
    }
}

/// What the system says of the file below stays as it is; all else is the archive's.
fn explained(error: io::Error, format: &'static str, offset: u64) -> io::Error {
    if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
        return error;
    }
    io::Error::new(io::ErrorKind::InvalidData, DamagedArchive { format, offset, reason: error })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// What was read, and how it ended.
    fn read(bytes: Vec<u8>) -> (Vec<u8>, Option<String>) {
        let mut text = Vec::new();
        let mut content = unpack(io::Cursor::new(bytes)).unwrap();
        let end = content.read_to_end(&mut text);
        (
            text,
            end.err().map(|error| {
                assert!(DamagedArchive::is_cause_of(&error), "{error}");
                error.to_string()
            }),
        )
    }

    #[test]
    fn archives_are_told_by_their_first_bytes() {
        assert_eq!(read(gzip(b"a\nb\n")), (b"a\nb\n".to_vec(), None));
        assert_eq!(read([gzip(b"a\n"), gzip(b"b\n")].concat()), (b"a\nb\n".to_vec(), None));
        assert_eq!(read(zstd::encode_all(&b"a\nb\n"[..], 1).unwrap()), (b"a\nb\n".to_vec(), None));
        assert_eq!(read(b"a\nb".to_vec()), (b"a\nb".to_vec(), None));
        assert_eq!(read(Vec::new()), (Vec::new(), None));
    }

    #[test]
    fn a_damaged_archive_gives_its_beginning_and_the_place_of_the_damage() {
        let text: Vec<u8> =
            (0..50_000u32).flat_map(|i| format!("line {}\n", i.wrapping_mul(2_654_435_761)).into_bytes()).collect();
        for (format, archive) in [("gzip", gzip(&text)), ("zstd", zstd::encode_all(&text[..], 1).unwrap())] {
            let half = archive.len() / 2;
            let (start, error) = read(archive[..half].to_vec());
            assert!(!start.is_empty() && text.starts_with(&start), "{format}: {} bytes", start.len());
            let error = error.unwrap();
            assert!(
                error.starts_with(&format!("the {format} archive is damaged or cut off at byte {half} (")),
                "{error}"
            );
        }
    }

    #[test]
    fn bytes_that_were_overwritten_are_found() {
        let mut archive = gzip("a line\n".repeat(1000).as_bytes());
        let half = archive.len() / 2;
        archive[half..].fill(0xff);
        assert!(read(archive).1.unwrap().starts_with("the gzip archive is damaged or cut off at byte "));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_no_damaged_archive() {
        let folder = tempfile::tempdir().unwrap();
        if let Ok(file) = std::fs::File::open(folder.path()) {
            let error = unpack(file).err().unwrap();
            assert!(!DamagedArchive::is_cause_of(&error), "{error}");
        }
    }
}
