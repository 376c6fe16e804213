//! zlib streams.
//!
//! ```text
//! stream:  0x78 | flags, so that both bytes as a big-endian u16 are a multiple of 31 | deflate | Adler-32, big-endian
//! ```
//!
//! Three bytes, which deflate stores as they are:
//!
//! ```
//! # use pilaster_encoding::codec::Codec;
//! // the head | last block, stored | its length and that inverted | the bytes | Adler-32
//! let stream = [0x78, 0x9c, 1, 3, 0, 0xfc, 0xff, b'a', b'b', b'c', 0x02, 0x4d, 0x01, 0x27];
//! let mut content = [0; 3];
//! Codec::Zlib.decompress(&stream, &mut content)?;
//! assert_eq!(&content, b"abc");
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::cell::RefCell;

const LEVEL: u32 = 6;

thread_local! {
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(true));
    static DEFLATE: RefCell<Compress> = RefCell::new(Compress::new(Compression::new(LEVEL), true));
}

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    DEFLATE.with_borrow_mut(|deflate| {
        deflate.reset();
        // The stored form is a little longer than the source; a second round covers anything else.
        out.reserve((src.len() / 1000).saturating_add(src.len()).saturating_add(64));
        loop {
            let used = usize::try_from(deflate.total_in()).unwrap_or(usize::MAX);
            let rest = src.get(used..).unwrap_or_default();
            match deflate.compress_vec(rest, out, FlushCompress::Finish) {
                Ok(Status::StreamEnd) => return Ok(()),
                Ok(_) => out.reserve(out.len().saturating_sub(start).max(64)),
                Err(error) => {
                    return Err(DecodeError::new(0, "a block that zlib can hold", error.to_string()));
                }
            }
        }
    })
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let used = inflate(src, dst)?;
    if used != src.len() {
        return Err(DecodeError::new(used, "the end of the zlib data", "more bytes"));
    }
    Ok(())
}

/// How many bytes at the start of `src` are a stream of `content` bytes.
pub(super) fn stored_length(src: &[u8], content: usize) -> Result<usize> {
    // The two header bytes are a multiple of 31: most bytes are no stream, and need no room.
    let is_stream =
        src.first_chunk().is_some_and(|two| u16::from_be_bytes(*two) % 31 == 0 && two[0] & 15 == 8);
    if !is_stream {
        return Err(wrong_length(Codec::Zlib, content, "no zlib header"));
    }
    inflate(src, &mut vec![0; content])
}

/// Decompresses the stream at the start of `src` into exactly `dst`; says how many bytes it took.
fn inflate(src: &[u8], dst: &mut [u8]) -> Result<usize> {
    INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(true);
        let wanted = dst.len();
        let fail = |error: flate2::DecompressError| wrong_length(Codec::Zlib, wanted, error);
        let mut status = inflate.decompress(src, dst, FlushDecompress::Finish).map_err(fail)?;
        let used = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
        if status != Status::StreamEnd {
            // The end mark may still stand there when the output is full already.
            let rest = src.get(used..).unwrap_or_default();
            status = inflate.decompress(rest, &mut [0], FlushDecompress::Finish).map_err(fail)?;
        }
        let (used, made) = (inflate.total_in(), inflate.total_out());
        if status != Status::StreamEnd {
            return Err(wrong_length(Codec::Zlib, dst.len(), "no end of the stream"));
        }
        if made != dst.len() as u64 {
            return Err(wrong_length(Codec::Zlib, dst.len(), format_args!("{made} bytes")));
        }
        Ok(usize::try_from(used).unwrap_or(usize::MAX))
    })
}
