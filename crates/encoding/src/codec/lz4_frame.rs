//! LZ4 frames.
//!
//! ```text
//! 04 22 4d 18 | FLG | BD | [u64 content size] | [u32 dictionary] | header checksum | blocks | 00 00 00 00 | [u32 checksum]
//! FLG:    01 in the highest two bits | 20 blocks stand alone | 10 blocks have checksums | 08 content size | 04 checksum | 01 dictionary
//! BD:     4 to 7, shifted by 4 bits: blocks of up to 64 KiB, 256 KiB, 1 MiB, 4 MiB
//! block:  u32 length, the highest bit set if the block is not compressed | bytes | [u32 checksum of these bytes]
//! ```
//!
//! Checksums are xxHash32; of the header's, over everything between it and the magic, the second byte is kept. Blocks that do
//! not stand alone repeat bytes of those before them.
//!
//! Frames are read and written here because a library for streams makes buffers of several blocks for each frame, which
//! costs more than the content where that is a page of some KiB: blocks go straight to where they are wanted. The library is
//! the oracle of the tests.

use super::{Codec, lz4, wrong_length};
use crate::{DecodeError, Result};
use twox_hash::XxHash32;

const MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const END_MARK_BYTES: usize = 4;
const VERSION_BITS: u8 = 0xc0;
const VERSION_1: u8 = 0x40;
const FLAG_ALONE: u8 = 0x20;
const FLAG_BLOCK_CHECKSUMS: u8 = 0x10;
const FLAG_SIZE: u8 = 0x08;
const FLAG_CHECKSUM: u8 = 0x04;
const FLAG_RESERVED: u8 = 0x02;
const FLAG_DICTIONARY: u8 = 0x01;
/// The bit of a block's length that says that it is not compressed.
const FLAG_PLAIN: u32 = 1 << 31;

/// What is written, as Doris does: magic, linked blocks without checksums, blocks of 256 KiB, and the checksum of these two
/// bytes. Blocks may repeat what is before them; ours do not, which only pages of more than 256 KiB could use.
const HEADER: [u8; 7] = [0x04, 0x22, 0x4d, 0x18, VERSION_1, 0x50, 0x77];
/// Most bytes of one block that is written.
const BLOCK_BYTES: usize = 256 << 10;

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.extend(HEADER);
    for block in src.chunks(BLOCK_BYTES) {
        compress_block(block, out)?;
    }
    out.extend([0; END_MARK_BYTES]);
    Ok(())
}

fn compress_block(block: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let length_at = out.len();
    out.extend([0; 4]);
    let start = out.len();
    lz4::compress(block, out)?;
    let mut length = out.len().saturating_sub(start);
    let mut flag = 0;
    if length >= block.len() {
        out.truncate(start);
        out.extend_from_slice(block);
        (length, flag) = (block.len(), FLAG_PLAIN);
    }
    // A block has at most 256 KiB.
    let word = u32::try_from(length).unwrap_or(u32::MAX) | flag;
    if let Some(slot) = out.get_mut(length_at..).and_then(|rest| rest.first_chunk_mut()) {
        *slot = word.to_le_bytes();
    }
    Ok(())
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let mut parts = Parts { bytes: src, at: 0 };
    let header = Header::parse(&mut parts)?;
    if header.content_bytes.is_some_and(|bytes| bytes != dst.len() as u64) {
        return Err(wrong_length(Codec::Lz4Frame, dst.len(), "another length in the header"));
    }
    let mut written = 0usize;
    loop {
        let word = parts.number("the length of an LZ4 block")?;
        if word == 0 {
            break;
        }
        let start = parts.at;
        let block = parts.take((word & !FLAG_PLAIN) as usize, "an LZ4 block")?;
        if block.len() > header.block_bytes {
            let expected = format!("an LZ4 block of at most {} bytes", header.block_bytes);
            return Err(DecodeError::new(start, expected, block.len().to_string()));
        }
        if header.has(FLAG_BLOCK_CHECKSUMS) {
            parts.checksum("block", block)?;
        }
        let end = written.saturating_add(header.block_bytes).min(dst.len());
        let room = dst.get_mut(..end).unwrap_or_default();
        written = if word & FLAG_PLAIN != 0 {
            copy_block(block, room, written)
        } else if header.has(FLAG_ALONE) {
            let room = room.get_mut(written..).unwrap_or_default();
            lz4::decompress_behind(block, room, 0).map(|length| written.saturating_add(length))
        } else {
            lz4::decompress_behind(block, room, written)
        }
        .map_err(|error| error.shifted(start))?;
    }
    if written != dst.len() {
        return Err(wrong_length(Codec::Lz4Frame, dst.len(), format_args!("{written} bytes")));
    }
    if header.has(FLAG_CHECKSUM) {
        parts.checksum("frame", dst)?;
    }
    if parts.at != src.len() {
        return Err(DecodeError::new(parts.at, "the end of the LZ4 frame", "more bytes"));
    }
    Ok(())
}

fn copy_block(block: &[u8], dst: &mut [u8], start: usize) -> Result<usize> {
    let end = start.saturating_add(block.len());
    let Some(to) = dst.get_mut(start..end) else {
        return Err(wrong_length(Codec::Lz4Frame, dst.len(), format_args!("{end} bytes")));
    };
    to.copy_from_slice(block);
    Ok(end)
}

struct Header {
    flags: u8,
    /// Most bytes of a block, compressed or not.
    block_bytes: usize,
    content_bytes: Option<u64>,
}

impl Header {
    fn parse(parts: &mut Parts<'_>) -> Result<Self> {
        let magic = parts.take(MAGIC.len(), "an LZ4 frame")?;
        if magic != MAGIC {
            return Err(DecodeError::new(0, "the magic of an LZ4 frame", format!("{magic:02x?}")));
        }
        let start = parts.at;
        let (flags, size) = match parts.take(2, "the flags of an LZ4 frame")? {
            &[flags, size] => (flags, size),
            _ => (0, 0),
        };
        let block_bytes = match size {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => 0,
        };
        if flags & VERSION_BITS != VERSION_1
            || flags & (FLAG_RESERVED | FLAG_DICTIONARY) != 0
            || block_bytes == 0
        {
            let expected = "flags of an LZ4 frame of version 1 without a dictionary";
            return Err(DecodeError::new(start, expected, format!("{flags:02x} {size:02x}")));
        }
        let mut header = Self { flags, block_bytes, content_bytes: None };
        if header.has(FLAG_SIZE) {
            let bytes = parts.take(8, "the content size of an LZ4 frame")?;
            header.content_bytes = bytes.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        }
        let described = parts.bytes.get(start..parts.at).unwrap_or_default();
        let [_, expected, ..] = XxHash32::oneshot(0, described).to_le_bytes();
        match parts.take(1, "the checksum of an LZ4 frame's header")? {
            [found] if *found == expected => Ok(header),
            found => Err(DecodeError::new(
                parts.at.saturating_sub(1),
                format!("the checksum {expected:02x} of an LZ4 frame's header"),
                format!("{found:02x?}"),
            )),
        }
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What is left of a frame.
struct Parts<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Parts<'a> {
    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8]> {
        let end = self.at.saturating_add(count);
        let Some(part) = self.bytes.get(self.at..end) else {
            return Err(DecodeError::new(self.at, what, "the end of the bytes"));
        };
        self.at = end;
        Ok(part)
    }

    fn number(&mut self, what: &'static str) -> Result<u32> {
        Ok(self.take(4, what)?.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes)))
    }

    /// Compares the checksum that comes next with that of `bytes`.
    fn checksum(&mut self, of: &str, bytes: &[u8]) -> Result<()> {
        let start = self.at;
        let (found, expected) = (self.number("a checksum of an LZ4 frame")?, XxHash32::oneshot(0, bytes));
        if found == expected {
            return Ok(());
        }
        let expected = format!("the checksum {expected:08x} of an LZ4 {of}");
        Err(DecodeError::new(start, expected, format!("{found:08x}")))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;
    use lz4_flex::frame::{BlockMode, BlockSize, FrameDecoder, FrameEncoder, FrameInfo};
    use proptest::prelude::*;

    fn by_library(src: &[u8], info: FrameInfo) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(src).unwrap();
        encoder.finish().unwrap()
    }

    fn infos(content: usize) -> impl Iterator<Item = FrameInfo> {
        let bits = 0..64u32;
        bits.map(move |bits| {
            let is_set = |bit: u32| bits >> bit & 1 == 1;
            let sizes = [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB];
            FrameInfo::new()
                .block_size(sizes[(bits & 3) as usize])
                .block_mode(if is_set(2) { BlockMode::Linked } else { BlockMode::Independent })
                .block_checksums(is_set(3))
                .content_checksum(is_set(4))
                .content_size(is_set(5).then_some(content as u64))
        })
    }

    /// Bytes that compress, in several blocks that repeat what was in others.
    fn content() -> Vec<u8> {
        let random: Vec<u8> = (0..40_000u32).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 13) as u8).collect();
        let words = b"one word and another one ".repeat(2000);
        [random.as_slice(), &words, &random, &words].concat()
    }

    #[test]
    #[cfg_attr(miri, ignore = "the library takes long")]
    fn every_kind_of_frame_is_read() {
        let content = content();
        for length in [0, 1, 65_536, 65_537, content.len()] {
            let content = &content[..length];
            for info in infos(length) {
                let frame = by_library(content, info.clone());
                let mut found = vec![0; length];
                decompress(&frame, &mut found).unwrap();
                assert!(found == content, "{info:?} of {length} bytes");
                for wrong in [length.wrapping_sub(1), length + 1] {
                    assert!(length == 0 && wrong > 1 || decompress(&frame, &mut vec![0; wrong]).is_err());
                }
            }
        }
    }

    #[test]
    fn a_frame_cut_or_changed_anywhere_is_an_error_or_does_not_matter() {
        let content = b"repeat repeat repeat repeat and something else".repeat(3);
        for info in infos(content.len()).skip(4).step_by(8).chain(infos(content.len()).skip(56).take(1)) {
            let frame = by_library(&content, info);
            let (flags, header_end) = (frame[4], 7 + usize::from(frame[4] & FLAG_SIZE));
            let checked = flags & FLAG_CHECKSUM != 0;
            for at in 0..frame.len() {
                let mut found = vec![0; content.len()];
                assert!(decompress(&frame[..at], &mut found).is_err(), "cut at {at}");
                // What a checksum is over, and the checksum itself.
                let must_be_noticed = at < header_end
                    || flags & FLAG_BLOCK_CHECKSUMS != 0 && at < frame.len() - 4
                    || checked && at >= frame.len() - 4;
                for bit in 0..8 {
                    let mut changed = frame.clone();
                    changed[at] ^= 1 << bit;
                    let is_read = decompress(&changed, &mut found).is_ok();
                    assert!(!is_read || !must_be_noticed, "bit {bit} of byte {at} of {frame:02x?}");
                    assert!(
                        !is_read || !checked || found == content,
                        "bit {bit} of byte {at} of {frame:02x?}"
                    );
                }
            }
            let longer = [frame.as_slice(), &[0]].concat();
            assert!(decompress(&longer, &mut vec![0; content.len()]).is_err());
        }
    }

    #[test]
    fn blocks_that_stand_alone_repeat_nothing_of_others() {
        // Four bytes as they are; then a block that repeats all four, and one byte of its own.
        let blocks = [4, 0, 0, 0x80, b'a', b'b', b'c', b'd', 5, 0, 0, 0, 0, 4, 0, 0x10, b'e', 0, 0, 0, 0];
        let frame = |flags: u8| {
            let [_, checksum, ..] = XxHash32::oneshot(0, &[flags, 0x40]).to_le_bytes();
            [MAGIC.as_slice(), &[flags, 0x40, checksum], &blocks].concat()
        };
        let mut found = [0; 9];
        decompress(&frame(VERSION_1), &mut found).unwrap();
        assert_eq!(&found, b"abcdabcde");
        let error = decompress(&frame(VERSION_1 | FLAG_ALONE), &mut found).unwrap_err().to_string();
        assert!(error.starts_with("at byte 20: expected an lz4 offset"), "{error}");
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn frames_are_what_the_library_reads(bytes in prop::collection::vec(any::<u8>(), 0..3000), repeat in 1usize..200) {
            let src = bytes.repeat(if cfg!(miri) { 2 } else { repeat });
            let mut ours = Vec::new();
            compress(&src, &mut ours).unwrap();
            let mut plain = Vec::new();
            FrameDecoder::new(ours.as_slice()).read_to_end(&mut plain).unwrap();
            prop_assert_eq!(&plain, &src);
            let info = FrameInfo::new().block_mode(BlockMode::Linked).block_size(BlockSize::Max256KB);
            prop_assert_eq!(&ours[..HEADER.len()], &by_library(&src, info)[..HEADER.len()]);
            plain.fill(0);
            prop_assert_eq!(decompress(&ours, &mut plain), Ok(()));
            prop_assert_eq!(&plain, &src);
        }
    }
}
