//! LZ4 frames.
//!
//! ```text
//! 04 22 4d 18 | FLG | BD | [u64 content size] | [u32 dictionary] | header checksum | blocks | 00 00 00 00 | [u32 checksum]
//! ```

use super::{Codec, lz4, wrong_length};
use crate::{DecodeError, Result};
use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
use std::io::{Read, Write};

/// Magic, FLG, BD and header checksum.
const SHORTEST_HEADER: usize = 7;
const END_MARK_BYTES: usize = 4;
const FLAG_DICTIONARY: u8 = 0x01;
const FLAG_CHECKSUM: u8 = 0x04;
const FLAG_SIZE: u8 = 0x08;

/// Magic, linked blocks without checksums, blocks of 256 KiB, and the checksum of these two bytes.
const HEADER: [u8; SHORTEST_HEADER] = [0x04, 0x22, 0x4d, 0x18, 0x40, 0x50, 0x77];
/// Most bytes of one block.
const BLOCK_BYTES: usize = 256 << 10;
/// The bit of a block's length that says that it is not compressed.
const FLAG_PLAIN: u32 = 1 << 31;

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if src.len() <= BLOCK_BYTES {
        return compress_block(src, out);
    }
    let info = FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max256KB);
    let mut encoder = FrameEncoder::with_frame_info(info, out);
    encoder
        .write_all(src)
        .map_err(|error| error.to_string())
        .and_then(|()| encoder.finish().map(|_| ()).map_err(|error| error.to_string()))
        .map_err(|error| DecodeError::new(0, "a block that an LZ4 frame can hold", error))
}

/// A frame of at most one block, without the buffers a stream needs.
fn compress_block(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend(HEADER);
    if !src.is_empty() {
        let length_at = out.len();
        out.extend([0; 4]);
        let start = out.len();
        lz4::compress(src, out)?;
        let mut length = out.len().saturating_sub(start);
        let mut flag = 0;
        if length >= src.len() {
            out.truncate(start);
            out.extend_from_slice(src);
            (length, flag) = (src.len(), FLAG_PLAIN);
        }
        // A block has at most 256 KiB.
        let word = u32::try_from(length).unwrap_or(u32::MAX) | flag;
        if let Some(slot) = out.get_mut(length_at..).and_then(|rest| rest.first_chunk_mut()) {
            *slot = word.to_le_bytes();
        }
    }
    out.extend([0; END_MARK_BYTES]);
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As the library writes it, whatever the size.
    fn by_library(src: &[u8]) -> Vec<u8> {
        let info = FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max256KB);
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(src).unwrap();
        encoder.finish().unwrap()
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn a_block_is_what_the_library_reads(bytes in prop::collection::vec(any::<u8>(), 0..3000), repeat in 1usize..40) {
            let src = bytes.repeat(repeat);
            let mut ours = Vec::new();
            compress(&src, &mut ours).unwrap();
            let mut plain = Vec::new();
            FrameDecoder::new(ours.as_slice()).read_to_end(&mut plain).unwrap();
            prop_assert_eq!(&plain, &src);
            prop_assert_eq!(&ours[..SHORTEST_HEADER], &by_library(&src)[..SHORTEST_HEADER]);
        }
    }
}
