//! Where the bytes of a file go: header, blocks, footer.

use std::io::Write;

use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::crc32c;
use prost::Message;

use super::options::Resolved;
use crate::cfile::block::MAX_UNCOMPRESSED_BYTES;
use crate::cfile::metadata::{
    BlockPointer, FEATURE_ARRAY, FEATURE_CHECKSUM, MAX_KEY, MAX_MESSAGE_BYTES, MIN_KEY, Version,
};
use crate::cfile::proto::{BTreeInfoPb, BlockPointerPb, FooterPb, MetadataPairPb};

/// Where bytes go, and how many went.
#[derive(Debug)]
pub(super) struct Sink<W> {
    inner: W,
    at: u64,
}

/// What a footer says beyond the shape of the file.
#[derive(Debug, Default)]
pub(super) struct Footer {
    pub rows: u64,
    pub posidx: Option<BlockPointer>,
    pub validx: Option<BlockPointer>,
    pub dictionary: Option<BlockPointer>,
    /// The smallest and the largest key.
    pub edges: Option<(Vec<u8>, Vec<u8>)>,
}

impl<W: Write> Sink<W> {
    /// Writes the header.
    pub fn start(inner: W, shape: &Resolved) -> Result<Self> {
        let mut sink = Self { inner, at: 0 };
        let mut header = shape.options.version.magic().to_vec();
        header.extend(0u32.to_le_bytes());
        if shape.checksums {
            header.extend(crc32c(&header).to_le_bytes());
        }
        sink.write(&header)?;
        Ok(sink)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.inner.write_all(bytes)?;
        self.at = self.at.saturating_add(bytes.len() as u64);
        Ok(())
    }

    /// Writes the footer; gives back where the bytes went, and how many. One that no reader takes is refused.
    pub fn finish(mut self, shape: &Resolved, footer: Footer) -> Result<(W, u64)> {
        let footer = footer_message(shape, footer).encode_to_vec();
        if footer.len() > MAX_MESSAGE_BYTES as usize {
            return Err(Error::invalid(format!(
                "a footer of {} bytes, with metadata and the smallest and largest key: readers take at most {MAX_MESSAGE_BYTES}",
                footer.len()
            )));
        }
        let mut tail = footer.clone();
        tail.extend_from_slice(shape.options.version.magic());
        tail.extend(u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes());
        if shape.checksums {
            self.write(&crc32c(&tail).to_le_bytes())?;
        }
        self.write(&tail)?;
        self.inner.flush()?;
        Ok((self.inner, self.at))
    }

    /// Compresses a payload, adds its checksum and writes it.
    pub fn write_block(&mut self, shape: &Resolved, payload: &[u8]) -> Result<BlockPointer> {
        let mut stored = Vec::with_capacity(payload.len().saturating_add(12));
        match shape.options.compression.codec() {
            None => stored.extend_from_slice(payload),
            Some(codec) => {
                if payload.len() as u64 > MAX_UNCOMPRESSED_BYTES {
                    return Err(Error::invalid("a compressed block of more than 16 MiB, which Kudu refuses"));
                }
                let size = u32::try_from(payload.len()).unwrap_or(u32::MAX);
                let mut compressed = Vec::new();
                codec.compress(payload, &mut compressed)?;
                match shape.options.version {
                    Version::V1 => {
                        stored.extend(u32::try_from(compressed.len()).unwrap_or(u32::MAX).to_le_bytes());
                        stored.extend(size.to_le_bytes());
                        stored.extend(compressed);
                    }
                    Version::V2 => {
                        stored.extend(size.to_le_bytes());
                        // What does not shrink by a tenth is stored raw.
                        let pays = compressed.len().saturating_mul(10) <= payload.len().saturating_mul(9);
                        stored.extend_from_slice(if pays { &compressed } else { payload });
                    }
                }
            }
        }
        if shape.checksums {
            stored.extend(crc32c(&stored).to_le_bytes());
        }
        let size = i32::try_from(stored.len()).map_err(|_| Error::invalid("a block of more than 2 GiB"))?;
        let pointer = BlockPointer { offset: self.at, size: u32::try_from(size).unwrap_or_default() };
        self.write(&stored)?;
        Ok(pointer)
    }
}

fn footer_message(shape: &Resolved, footer: Footer) -> FooterPb {
    let pointer = |pointer: BlockPointer| BlockPointerPb {
        offset: i64::try_from(pointer.offset).ok(),
        size: i32::try_from(pointer.size).ok(),
    };
    let tree = |root: Option<BlockPointer>| root.map(|root| BTreeInfoPb { root_block: Some(pointer(root)) });
    let pair = |key: &str, value: Vec<u8>| MetadataPairPb { key: Some(key.into()), value: Some(value) };
    let mut metadata: Vec<_> =
        shape.options.pairs.iter().map(|(key, value)| pair(key, value.clone())).collect();
    if let Some((smallest, largest)) = footer.edges {
        metadata.push(pair(MIN_KEY, smallest));
        metadata.push(pair(MAX_KEY, largest));
    }
    let checksum_bit = if shape.checksums { FEATURE_CHECKSUM } else { 0 };
    let array_bit = if shape.is_array { FEATURE_ARRAY } else { 0 };
    FooterPb {
        data_type: Some(shape.data_type.number()),
        encoding: Some(shape.encoding.number()),
        num_values: i64::try_from(footer.rows).ok(),
        posidx_info: tree(footer.posidx),
        validx_info: tree(footer.validx),
        compression: Some(shape.options.compression.number()),
        metadata,
        is_type_nullable: Some(shape.is_nullable),
        dict_block_ptr: footer.dictionary.map(pointer),
        incompatible_features: Some(checksum_bit | array_bit),
        compatible_features: None,
        is_type_array: shape.is_array.then_some(true),
    }
}
