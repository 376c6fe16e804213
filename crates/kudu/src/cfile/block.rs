//! From a block pointer to the payload of a block: bounds, checksum, decompression.
//!
//! ```text
//! stored block = | u32 U, if compressed (v1: u32 C, u32 U) | bytes | CRC-32C of all before, if checksums |
//! ```
//!
//! In version 2 a "compressed" block whose bytes are exactly U long is stored raw.

use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::buffers::BlockBuffer;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::checksum::check_crc32c;

use super::metadata::{BlockPointer, CFileMetadata, CHECKSUM_BYTES, Version};

/// Kudu refuses a compressed block that grows larger.
pub(crate) const MAX_UNCOMPRESSED_BYTES: u64 = 16 << 20;

/// Reads and opens the blocks of one file.
#[derive(Debug, Clone)]
pub(crate) struct BlockStore {
    pub source: SourceRef,
    pub metadata: Arc<CFileMetadata>,
    pub limits: Limits,
    pub verify_checksums: bool,
}

/// A block ready for decoding.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub pointer: BlockPointer,
    pub payload: Bytes,
}

impl BlockStore {
    /// Refuses a pointer outside the part of the file where blocks may lie.
    pub fn check_pointer(&self, pointer: BlockPointer, part: &'static str) -> Result<()> {
        let (start, end) = (self.metadata.blocks_start, self.metadata.blocks_end);
        let smallest = if self.metadata.has_checksums() { CHECKSUM_BYTES } else { 0 };
        if pointer.offset < start || pointer.end() > end || u64::from(pointer.size) < smallest {
            return Err(Error::corrupt(
                format!("a block inside bytes {start}..{end}"),
                format!("bytes {}..{}", pointer.offset, pointer.end()),
            )
            .at(self.source.name(), pointer.offset, part));
        }
        self.limits.block(u64::from(pointer.size)).at(self.source.name(), pointer.offset, part)?;
        Ok(())
    }

    /// Reads one block.
    pub fn read(&self, pointer: BlockPointer, part: &'static str) -> Result<Block> {
        self.check_pointer(pointer, part)?;
        let stored = self.source.read_at(pointer.range())?;
        self.open(pointer, stored, part)
    }

    /// Checks and decompresses the stored bytes of a block.
    pub fn open(&self, pointer: BlockPointer, stored: Bytes, part: &'static str) -> Result<Block> {
        let payload = self.open_stored(stored).at(self.source.name(), pointer.offset, part)?;
        Ok(Block { pointer, payload })
    }

    fn open_stored(&self, stored: Bytes) -> Result<Bytes> {
        let mut body = stored;
        if self.metadata.has_checksums() {
            let at = body.len().saturating_sub(4);
            let tail = body.split_off(at);
            if self.verify_checksums {
                let stored = tail.first_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four));
                check_crc32c(&body, stored)?;
            }
        }
        match self.metadata.compression.codec() {
            None => Ok(body),
            Some(codec) => {
                let Some(compressed) = self.split_compression_header(&body)? else {
                    return Ok(body.slice(4..));
                };
                let (uncompressed_bytes, compressed) = compressed;
                let mut payload = BlockBuffer::with_length(uncompressed_bytes);
                codec.decompress(&compressed, &mut payload)?;
                Ok(payload.into_bytes())
            }
        }
    }

    /// The uncompressed size and the compressed bytes; `None` if the rest after four bytes is stored raw.
    fn split_compression_header(&self, body: &Bytes) -> Result<Option<(usize, Bytes)>> {
        let word = |at: usize| {
            body.get(at..)
                .and_then(|rest| rest.first_chunk::<4>())
                .map(|four| u64::from(u32::from_le_bytes(*four)))
                .ok_or_else(|| {
                    Error::corrupt("a compression header", format!("a block of {} bytes", body.len()))
                })
        };
        let (header_bytes, uncompressed) = match self.metadata.version {
            Version::V2 => (4, word(0)?),
            Version::V1 => (8, word(4)?),
        };
        let compressed = body.slice(header_bytes..);
        let found = compressed.len() as u64;
        if uncompressed > MAX_UNCOMPRESSED_BYTES {
            return Err(Error::corrupt(
                format!("at most {MAX_UNCOMPRESSED_BYTES} uncompressed bytes"),
                uncompressed,
            ));
        }
        match self.metadata.version {
            Version::V2 if found == uncompressed => return Ok(None),
            Version::V2 if found > uncompressed => {
                return Err(Error::corrupt(
                    format!("at most {uncompressed} compressed bytes"),
                    format!("{found} compressed bytes"),
                ));
            }
            Version::V1 if word(0)? != found => {
                return Err(Error::corrupt(
                    format!("{} compressed bytes", word(0)?),
                    format!("{found} bytes"),
                ));
            }
            _ => {}
        }
        Ok(Some((self.limits.decoded(uncompressed)?, compressed)))
    }
}
