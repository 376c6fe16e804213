//! A bloom file being written: the keys of a rowset, in ascending order.

use std::io::Write;

use arrow_schema::{DataType, Field};
use pilaster_core::Result;
use prost::Message;

use super::index::IndexBuilder;
use super::options::{CFileWriterOptions, Resolved};
use super::sink::{Footer, Sink};
use super::writer::WriteSummary;
use crate::cfile::bloom::bits_of_key;
use crate::cfile::proto::BloomBlockHeaderPb;
use crate::cfile::types::Encoding;
use crate::key;

/// Bytes of the bits of a block (`tablet_bloom_block_size`).
const BLOCK_BYTES: usize = 4096;
/// Keys of a full block: as many as leave one in ten thousand other keys undecided (`tablet_bloom_target_fp_rate`), by
/// ⌈−bits · 0.69314² / ln 0.0001⌉.
const BLOCK_KEYS: usize = 1710;
/// Bits of a key: ⌊bits · 0.69314 / keys⌋.
const HASH_FUNCTIONS: u32 = 13;

/// Writes a bloom file. The sizes are those Kudu takes unless told otherwise.
#[derive(Debug)]
pub(crate) struct BloomFileWriter<W: Write> {
    sink: Sink<W>,
    shape: Resolved,
    tree: IndexBuilder,
    bits: Vec<u8>,
    keys: usize,
    first: Vec<u8>,
    last: Vec<u8>,
    /// Last key of the block before.
    before: Vec<u8>,
    blocks: u64,
}

impl<W: Write> BloomFileWriter<W> {
    pub fn try_new(sink: W) -> Result<Self> {
        let shape = CFileWriterOptions::default()
            .with_encoding(Encoding::Plain)
            .with_positional_index(false)
            .with_value_index(true)
            .resolve(&Field::new("bloom", DataType::Binary, false))?;
        Ok(Self {
            sink: Sink::start(sink, &shape)?,
            tree: IndexBuilder::new(shape.options.index_block_size_bytes),
            shape,
            bits: vec![0; BLOCK_BYTES],
            keys: 0,
            first: Vec::new(),
            last: Vec::new(),
            before: Vec::new(),
            blocks: 0,
        })
    }

    /// Adds an encoded key, greater than all before.
    pub fn add(&mut self, key: &[u8]) -> Result<()> {
        if self.keys == BLOCK_KEYS {
            self.finish_block()?;
        }
        if self.keys == 0 {
            self.first.clear();
            self.first.extend_from_slice(key);
        }
        for bit in bits_of_key(key, HASH_FUNCTIONS, BLOCK_BYTES) {
            if let Some(byte) = self.bits.get_mut(bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
        self.last.clear();
        self.last.extend_from_slice(key);
        self.keys = self.keys.saturating_add(1);
        Ok(())
    }

    fn finish_block(&mut self) -> Result<()> {
        let header =
            BloomBlockHeaderPb { num_hash_functions: i32::try_from(HASH_FUNCTIONS).ok() }.encode_to_vec();
        let mut payload = u32::try_from(header.len()).unwrap_or(u32::MAX).to_le_bytes().to_vec();
        payload.extend(header);
        payload.extend_from_slice(&self.bits);
        let Self { sink, shape, .. } = self;
        let pointer = sink.write_block(shape, &payload)?;
        let cut = key::separator(&self.before, &self.first);
        self.tree.add(cut, pointer, |block| sink.write_block(shape, &block))?;
        std::mem::swap(&mut self.before, &mut self.last);
        self.bits.fill(0);
        self.keys = 0;
        self.blocks = self.blocks.saturating_add(1);
        Ok(())
    }

    /// Writes what is left, the index and the footer, and gives the sink back. Bloom files say that they have no values.
    pub fn finish(mut self) -> Result<(W, WriteSummary)> {
        if self.keys > 0 {
            self.finish_block()?;
        }
        let Self { mut sink, shape, tree, blocks, .. } = self;
        let root = tree.finish(|block| sink.write_block(&shape, &block))?;
        let (inner, bytes) = sink.finish(&shape, Footer { validx: Some(root), ..Footer::default() })?;
        Ok((inner, WriteSummary { rows: 0, bytes, blocks }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cfile::{CFile, CFileReaderOptions};
    use pilaster_core::source::MemorySource;
    use std::sync::Arc;

    #[test]
    fn every_key_is_found_and_hardly_any_other() {
        let mut writer = BloomFileWriter::try_new(Vec::new()).unwrap();
        for key in (0u32..10_000).step_by(2) {
            writer.add(&key.to_be_bytes()).unwrap();
        }
        let (bytes, summary) = writer.finish().unwrap();
        assert_eq!(summary.blocks, 3);
        let source = Arc::new(MemorySource::new("bloom", bytes));
        let file = CFile::open(source, &CFileReaderOptions::default()).unwrap();
        assert!(file.metadata().is_bloom_file());
        let found = |key: u32| file.bloom_may_contain(&key.to_be_bytes()).unwrap();
        assert!((0..10_000).step_by(2).all(found));
        assert!((1..10_000).step_by(2).filter(|key| found(*key)).count() < 10);
    }
}
