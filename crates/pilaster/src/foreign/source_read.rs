//! A source read from front to back.

use std::io::{self, Read};

use bytes::{Buf, Bytes};
use pilaster_core::SourceRef;

/// Bytes fetched at a time.
const CHUNK_BYTES: u64 = 1 << 20;

/// Reads a source sequentially, in large pieces.
#[derive(Debug)]
pub(crate) struct SourceRead {
    source: SourceRef,
    position: u64,
    end: u64,
    chunk: Bytes,
}

impl SourceRead {
    /// Reads `source` from `position` on.
    pub(crate) fn starting_at(source: SourceRef, position: u64) -> Self {
        let end = source.size();
        Self { source, position, end, chunk: Bytes::new() }
    }
}

impl Read for SourceRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.is_empty() && self.position < self.end {
            let next = self.position.saturating_add(CHUNK_BYTES).min(self.end);
            self.chunk = self.source.read_at(self.position..next).map_err(io::Error::other)?;
            self.position = next;
        }
        let length = buffer.len().min(self.chunk.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), self.chunk.get(..length)) {
            to.copy_from_slice(from);
        }
        self.chunk.advance(length);
        Ok(length)
    }
}
