//! Finished pages that wait for the end of their row group.

/// Bytes of the first block.
const FIRST_BLOCK_BYTES: usize = 16 << 10;
/// Bytes of a block, at most, unless one page takes more.
const BLOCK_BYTES: usize = 1 << 20;

/// Bytes that grow without being moved: in blocks, the next as large as all before it.
#[derive(Debug, Default)]
pub(super) struct Stored {
    blocks: Vec<Vec<u8>>,
    len: usize,
}

impl Stored {
    pub fn len(&self) -> usize {
        self.len
    }

    /// Appends header and body of a page.
    pub fn append(&mut self, header: &[u8], body: &[u8]) {
        let bytes = header.len().saturating_add(body.len());
        let has_room = |block: &Vec<u8>| block.capacity().saturating_sub(block.len()) >= bytes;
        if !self.blocks.last().is_some_and(has_room) {
            let capacity = self.len.clamp(FIRST_BLOCK_BYTES, BLOCK_BYTES).max(bytes);
            self.blocks.push(Vec::with_capacity(capacity));
        }
        if let Some(block) = self.blocks.last_mut() {
            block.extend_from_slice(header);
            block.extend_from_slice(body);
        }
        self.len = self.len.saturating_add(bytes);
    }

    /// Everything that was appended, in order.
    pub fn blocks(&self) -> impl Iterator<Item = &[u8]> {
        self.blocks.iter().map(Vec::as_slice)
    }
}
