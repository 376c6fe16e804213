//! An index tree being built: leaves are written as they fill, their parents after them.

use pilaster_core::Result;
use pilaster_encoding::varint;
use prost::Message;

use crate::cfile::metadata::BlockPointer;
use crate::cfile::proto::IndexBlockTrailerPb;

/// What Kudu counts for the end of an index block.
const TRAILER_ESTIMATE_BYTES: usize = 16;

/// Builds an index tree from the bottom up.
#[derive(Debug)]
pub(super) struct IndexBuilder {
    block_size_bytes: usize,
    /// The node being filled on each level, leaves first.
    levels: Vec<Node>,
}

#[derive(Debug, Default)]
struct Node {
    entries: Vec<u8>,
    positions: Vec<u32>,
    first_key: Vec<u8>,
}

impl IndexBuilder {
    pub fn new(block_size_bytes: usize) -> Self {
        Self { block_size_bytes, levels: vec![Node::default()] }
    }

    /// Adds a data block; `write` puts an index block into the file and says where.
    pub fn add(
        &mut self,
        key: &[u8],
        pointer: BlockPointer,
        mut write: impl FnMut(Vec<u8>) -> Result<BlockPointer>,
    ) -> Result<()> {
        self.add_at(0, key.to_vec(), pointer, &mut write)
    }

    fn add_at(
        &mut self,
        level: usize,
        key: Vec<u8>,
        pointer: BlockPointer,
        write: &mut dyn FnMut(Vec<u8>) -> Result<BlockPointer>,
    ) -> Result<()> {
        if self.levels.len() <= level {
            self.levels.resize_with(level.saturating_add(1), Node::default);
        }
        let Some(node) = self.levels.get_mut(level) else { return Ok(()) };
        node.push(key, pointer);
        if node.positions.len() >= 2 && node.size() > self.block_size_bytes {
            self.spill(level, write)?;
        }
        Ok(())
    }

    /// Writes the node of a level and names it in the level above.
    fn spill(&mut self, level: usize, write: &mut dyn FnMut(Vec<u8>) -> Result<BlockPointer>) -> Result<()> {
        let Some(node) = self.levels.get_mut(level).map(std::mem::take) else { return Ok(()) };
        let first_key = node.first_key.clone();
        let pointer = write(node.finish(level == 0))?;
        self.add_at(level.saturating_add(1), first_key, pointer, write)
    }

    /// Writes what is left, up to the root; gives the root.
    pub fn finish(mut self, mut write: impl FnMut(Vec<u8>) -> Result<BlockPointer>) -> Result<BlockPointer> {
        let mut level = 0usize;
        while level.saturating_add(1) < self.levels.len() {
            if self.levels.get(level).is_some_and(|node| !node.positions.is_empty()) {
                self.spill(level, &mut write)?;
            }
            level = level.saturating_add(1);
        }
        let root = self.levels.pop().unwrap_or_default();
        write(root.finish(level == 0))
    }
}

impl Node {
    fn push(&mut self, key: Vec<u8>, pointer: BlockPointer) {
        self.positions.push(u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
        varint::write_u64(&mut self.entries, key.len() as u64);
        self.entries.extend_from_slice(&key);
        varint::write_u64(&mut self.entries, pointer.offset);
        varint::write_u32(&mut self.entries, pointer.size);
        if self.positions.len() == 1 {
            self.first_key = key;
        }
    }

    fn size(&self) -> usize {
        self.entries
            .len()
            .saturating_add(self.positions.len().saturating_mul(4))
            .saturating_add(TRAILER_ESTIMATE_BYTES)
    }

    fn finish(self, is_leaf: bool) -> Vec<u8> {
        let mut block = self.entries;
        for position in &self.positions {
            block.extend(position.to_le_bytes());
        }
        let trailer = IndexBlockTrailerPb {
            num_entries: i32::try_from(self.positions.len()).ok(),
            kind: Some(i32::from(!is_leaf)),
        }
        .encode_to_vec();
        block.extend_from_slice(&trailer);
        block.extend(u32::try_from(trailer.len()).unwrap_or(u32::MAX).to_le_bytes());
        block
    }
}
