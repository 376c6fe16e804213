//! LZ4 frames.
//!
//! ```text
//! 04 22 4d 18 | FLG | BD | [u64 content size] | [u32 dictionary] | header checksum | blocks | 00 00 00 00 | [u32 checksum]
//! ```

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{Read, Write};

/// Magic, FLG, BD and header checksum.
const SHORTEST_HEADER: usize = 7;
const END_MARK_BYTES: usize = 4;
const FLAG_DICTIONARY: u8 = 0x01;
const FLAG_CHECKSUM: u8 = 0x04;
const FLAG_SIZE: u8 = 0x08;

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let info = FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max256KB);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder
        .write_all(src)
        .map_err(|error| error.to_string())
        .and_then(|()| encoder.finish().map(|_| ()).map_err(|error| error.to_string()))
        .map_err(|error| DecodeError::new(0, "a block that an LZ4 frame can hold", error))
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let malformed = |error: std::io::Error| DecodeError::new(0, "an LZ4 frame", error.to_string());
    let flags = src.get(4).copied().unwrap_or_default();
    let is_set = |flag: u8| flags & flag != 0;
    let tail = END_MARK_BYTES.saturating_add(if is_set(FLAG_CHECKSUM) { 4 } else { 0 });
    let mut decoder = FrameDecoder::new(src);
    // The decoder takes a stream that ends before its end mark for a whole one, so what is left is counted here.
    let left = if dst.is_empty() {
        let optional = if is_set(FLAG_SIZE) { 8 } else { 0usize }
            .saturating_add(if is_set(FLAG_DICTIONARY) { 4 } else { 0 });
        src.len().saturating_sub(SHORTEST_HEADER.saturating_add(optional))
    } else {
        decoder.read_exact(dst).map_err(malformed)?;
        decoder.get_ref().len()
    };
    let more = decoder.read(&mut [0]).map_err(malformed)?;
    if more != 0 || left != tail || !decoder.get_ref().is_empty() {
        return Err(wrong_length(Codec::Lz4Frame, dst.len(), "another length"));
    }
    Ok(())
}
