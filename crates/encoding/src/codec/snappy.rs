//! Raw Snappy blocks, without the frames of Snappy streams.
//!
//! ```text
//! block:    length of the content as a varint | elements
//! element:  tag | literal bytes, or an offset
//!           tag & 3 = 0: (tag >> 2) + 1 literal bytes follow; 60..=63 there: the count less one is in the next 1..=4 bytes
//!           tag & 3 = 1: copy 4 + (tag >> 2 & 7) bytes from (tag >> 5) << 8 | next byte back
//!           tag & 3 = 2, 3: copy (tag >> 2) + 1 bytes from as far back as the next u16, u32 says
//! ```
//!
//! Ten bytes, of which the last eight are two bytes again and again:
//!
//! ```
//! # use pilaster_encoding::codec::Codec;
//! // 10 | two literal bytes | eight bytes from two back
//! let block = [0x0a, 0x01 << 2, b'a', b'b', 4 << 2 | 1, 2];
//! let mut content = [0; 10];
//! Codec::Snappy.decompress(&block, &mut content)?;
//! assert_eq!(&content, b"ababababab");
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};
use std::cell::RefCell;

thread_local! {
    static ENCODER: RefCell<Encoder> = RefCell::new(Encoder::new());
}

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.resize(start.saturating_add(max_compress_len(src.len())), 0);
    let target = out.get_mut(start..).unwrap_or_default();
    let written = ENCODER.with_borrow_mut(|encoder| encoder.compress(src, target));
    out.truncate(start.saturating_add(*written.as_ref().unwrap_or(&0)));
    match written {
        Ok(_) => Ok(()),
        Err(error) => Err(DecodeError::new(0, "a block that snappy can hold", error.to_string())),
    }
}

/// The length the block begins with.
pub(super) fn content_length(src: &[u8]) -> Result<u64> {
    match decompress_len(src) {
        Ok(length) if !src.is_empty() => Ok(length as u64),
        Ok(_) => Err(DecodeError::new(0, "a snappy block", "no bytes at all")),
        Err(error) => Err(DecodeError::new(0, "a snappy block", error.to_string())),
    }
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let fail = |error: snap::Error| wrong_length(Codec::Snappy, dst.len(), error);
    let own_len = decompress_len(src).map_err(fail)?;
    if own_len != dst.len() {
        return Err(wrong_length(Codec::Snappy, dst.len(), format_args!("{own_len} bytes")));
    }
    if src.is_empty() {
        return Err(wrong_length(Codec::Snappy, dst.len(), "no bytes at all"));
    }
    match Decoder::new().decompress(src, dst) {
        Ok(len) if len == dst.len() => Ok(()),
        Ok(len) => Err(wrong_length(Codec::Snappy, dst.len(), format_args!("{len} bytes"))),
        Err(error) => Err(wrong_length(Codec::Snappy, dst.len(), error)),
    }
}
