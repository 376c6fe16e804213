//! Bytes that are fetched before they are asked for.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;

use super::Source;
use crate::error::Result;

/// Bytes of a column that are fetched in one go when it is known that all of them will be wanted: few enough that many columns
/// can do so at once.
pub const READ_AHEAD_BYTES: u64 = 1 << 20;

/// Blocks of a file that will be wanted one after the other, fetched in few reads.
///
/// ```
/// use pilaster_core::source::{MemorySource, ReadAhead};
///
/// let source = MemorySource::new("letters", "abcdef");
/// let mut ahead = ReadAhead::default();
/// ahead.fetch(&source, [0..2, 2..3, 4..6])?;
/// assert_eq!(ahead.take(&(2..3)).as_deref(), Some(b"c".as_slice()));
/// // What came before is dropped: blocks are asked for in their order.
/// assert_eq!(ahead.take(&(0..2)), None);
/// # Ok::<(), pilaster_core::Error>(())
/// ```
#[derive(Debug)]
pub struct ReadAhead {
    most_bytes: u64,
    fetched: VecDeque<(Range<u64>, Bytes)>,
}

impl Default for ReadAhead {
    fn default() -> Self {
        Self::new(READ_AHEAD_BYTES)
    }
}

impl ReadAhead {
    /// Fetches at most so many bytes in one go, but always a whole block.
    pub fn new(most_bytes: u64) -> Self {
        Self { most_bytes, fetched: VecDeque::new() }
    }

    /// Fetches the first of `blocks` and those after it that fit. One alone is left to whoever reads it.
    ///
    /// # Errors
    /// As [`Source::read_many`].
    pub fn fetch(&mut self, source: &dyn Source, blocks: impl IntoIterator<Item = Range<u64>>) -> Result<()> {
        self.fetched.clear();
        let (mut bytes, mut wanted) = (0u64, Vec::new());
        for block in blocks {
            // A damaged index may name any number of blocks without bytes.
            let least = size_of::<(Range<u64>, Bytes)>() as u64;
            bytes = bytes.saturating_add(block.end.saturating_sub(block.start).max(least));
            if !wanted.is_empty() && bytes > self.most_bytes {
                break;
            }
            wanted.push(block);
        }
        if wanted.len() > 1 {
            let fetched = source.read_many(&wanted)?;
            self.fetched = wanted.into_iter().zip(fetched).collect();
        }
        Ok(())
    }

    /// The bytes of `block`, if they were fetched; those before it are dropped.
    pub fn take(&mut self, block: &Range<u64>) -> Option<Bytes> {
        while let Some((range, bytes)) = self.fetched.pop_front() {
            if range == *block {
                return Some(bytes);
            }
        }
        None
    }

    /// Whether `block` was fetched, and not taken or dropped yet.
    pub fn has(&self, block: &Range<u64>) -> bool {
        self.fetched.iter().any(|(range, _)| range == block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{CountingSource, MemorySource};

    #[test]
    fn blocks_are_fetched_together_as_long_as_they_fit() {
        let source = CountingSource::new(std::sync::Arc::new(MemorySource::new("bytes", vec![7; 1000])));
        let blocks = || (0..10u64).map(|block| block * 100..block * 100 + 100);
        for (most_bytes, fetched) in [(0, 0), (199, 0), (200, 2), (250, 2), (10_000, 10)] {
            let mut ahead = ReadAhead::new(most_bytes);
            ahead.fetch(&source, blocks()).unwrap();
            assert_eq!(blocks().filter(|block| ahead.has(block)).count(), fetched, "{most_bytes}");
            let found =
                blocks().map_while(|block| ahead.take(&block)).map(|bytes| bytes.len()).sum::<usize>();
            assert_eq!(found, fetched * 100);
        }
        assert_eq!(source.counts().reads, 3);
    }

    #[test]
    fn blocks_without_bytes_have_an_end() {
        let source = MemorySource::new("bytes", vec![7; 10]);
        let mut ahead = ReadAhead::default();
        ahead.fetch(&source, std::iter::repeat(5..5)).unwrap();
        assert!(ahead.fetched.len() < 100_000);
    }
}
