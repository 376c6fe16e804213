//! The `.hdr` file: a header with lengths and a checksum, and the message behind it.
//!
//! ```text
//! .hdr = u64 0 | u32 version 1 | u64 file length | u32 0 | u64 message length | u32 Adler-32 of the message | u32 0 | TabletMetaPB
//! old  = u32 file length | u32 checksum | u32 message length | u32 Adler-32 | u32 0 | TabletMetaPB
//! ```

use bytes::Bytes;
use pilaster_core::source::Source;
use pilaster_core::{Error, Limits, Result};

pub(super) const NEW_HEADER_BYTES: usize = 40;
const OLD_HEADER_BYTES: usize = 20;

/// What stands before the message.
struct Head {
    file_length: u64,
    /// Where the message begins.
    start: usize,
    length: u64,
    checksum: u32,
}

impl Head {
    fn parse(head: &[u8]) -> Result<Self> {
        let cut = || Error::corrupt("a tablet header", format!("a file of {} bytes", head.len()));
        let word = |at: usize| {
            head.get(at..)
                .and_then(|rest| rest.first_chunk::<4>())
                .map(|four| u32::from_le_bytes(*four))
                .ok_or_else(cut)
        };
        let long = |at: usize| {
            head.get(at..)
                .and_then(|rest| rest.first_chunk::<8>())
                .map(|eight| u64::from_le_bytes(*eight))
                .ok_or_else(cut)
        };
        let (file_length, length, checksum, start) = if long(0)? == 0 {
            (long(12)?, long(24)?, word(32)?, NEW_HEADER_BYTES)
        } else {
            (u64::from(word(0)?), u64::from(word(8)?), word(12)?, OLD_HEADER_BYTES)
        };
        Ok(Self { file_length, start, length, checksum })
    }

    fn check_size(&self, size: u64) -> Result<()> {
        if self.file_length == size {
            return Ok(());
        }
        Err(Error::corrupt(format!("a file of {} bytes", self.file_length), format!("{size} bytes")))
    }
}

/// The bytes of a `.hdr` file, read if it is as long as it says and within the limits: a file with a hole has any size.
pub(super) fn read_header(source: &dyn Source, limits: &Limits) -> Result<Bytes> {
    let size = source.size();
    Head::parse(&source.read_at(0..size.min(NEW_HEADER_BYTES as u64))?)?.check_size(size)?;
    limits.metadata(size)?;
    source.read_at(0..size)
}

/// The message of a `.hdr` file, its length and checksum compared.
pub(super) fn open_header(hdr: &[u8]) -> Result<&[u8]> {
    let head = Head::parse(hdr)?;
    head.check_size(hdr.len() as u64)?;
    let message = hdr.get(head.start..).unwrap_or_default();
    if message.len() as u64 != head.length {
        return Err(Error::corrupt(
            format!("a message of {} bytes", head.length),
            format!("{} bytes", message.len()),
        ));
    }
    let computed = adler32(message);
    if computed != head.checksum {
        return Err(Error::corrupt(format!("checksum {:#010x}", head.checksum), format!("{computed:#010x}")));
    }
    Ok(message)
}

/// The checksum of zlib: two sums modulo the largest prime below 2^16.
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    /// So many bytes can be added before the larger sum overflows.
    const STRIDE: usize = 5552;
    let (mut a, mut b) = (1u32, 0u32);
    for chunk in bytes.chunks(STRIDE) {
        for byte in chunk {
            a = a.wrapping_add(u32::from(*byte));
            b = b.wrapping_add(a);
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::sync::Arc;

    use pilaster_core::source::{CountingSource, FileSource};

    use super::*;

    #[test]
    fn a_file_with_a_hole_is_refused_by_its_first_bytes() {
        const SIZE: u64 = 3 << 30;
        let folder = tempfile::tempdir().unwrap();
        let head =
            |length: u64| [&[0; 8], 1u32.to_le_bytes().as_slice(), &length.to_le_bytes(), &[0; 20]].concat();
        let expected = [
            (Vec::new(), "expected a file of 0 bytes, found 3221225472 bytes"),
            (head(SIZE), "3221225472 is over the limit metadata_bytes = 67108864"),
        ];
        for (head, expected) in expected {
            let path = folder.path().join("7.hdr");
            let mut file = File::create(&path).unwrap();
            file.write_all(&head).unwrap();
            file.set_len(SIZE).unwrap();
            let source = CountingSource::new(Arc::new(FileSource::open(&path).unwrap()));
            let error = read_header(&source, &Limits::default()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(source.counts().bytes <= NEW_HEADER_BYTES as u64);
        }
    }

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }
}
