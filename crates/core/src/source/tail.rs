//! A source whose end is read at once and kept.

use std::ops::Range;

use bytes::Bytes;

use super::{Source, SourceRef, check_range};
use crate::error::Result;

/// A file whose last bytes are in memory: formats with a footer keep there what leads to everything else, so that opening
/// one costs one read instead of one for each structure.
#[derive(Debug)]
pub struct TailSource {
    whole: SourceRef,
    start: u64,
    tail: Bytes,
}

/// What systems keep of files, and copy from: half a page costs about as much as a whole one. Of a section, whose pages begin elsewhere,
/// a little more is read, which does no harm.
const PAGE_BYTES: u64 = 4 << 10;

impl TailSource {
    /// Reads the last `bytes` bytes of `whole`, from the start of a page of the system's memory on; all of it if it is shorter.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn read(whole: SourceRef, bytes: u64) -> Result<Self> {
        let start = whole.size().saturating_sub(bytes);
        let start = start.saturating_sub(start % PAGE_BYTES);
        let tail = whole.read_at(start..whole.size())?;
        Ok(Self { whole, start, tail })
    }
}

impl Source for TailSource {
    fn name(&self) -> &str {
        self.whole.name()
    }

    fn size(&self) -> u64 {
        self.whole.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let length = check_range(self.name(), self.size(), &range)?;
        let kept = range.start.checked_sub(self.start).and_then(|start| usize::try_from(start).ok());
        match kept.and_then(|start| Some(start..start.checked_add(length)?)) {
            Some(kept) if kept.end <= self.tail.len() => Ok(self.tail.slice(kept)),
            _ => self.whole.read_at(range),
        }
    }

    /// The whole knows best how to read many at once; it is asked unless the tail has them all.
    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        if ranges.iter().all(|range| range.start >= self.start) {
            return ranges.iter().map(|range| self.read_at(range.clone())).collect();
        }
        self.whole.read_many(ranges)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::{CountingSource, MemorySource};

    #[test]
    fn the_tail_is_read_once() {
        let whole: Vec<u8> = (0..10_000u16).map(|at| at.to_le_bytes()[0]).collect();
        let counting = Arc::new(CountingSource::new(Arc::new(MemorySource::new("m", whole.clone()))));
        let source = TailSource::read(Arc::clone(&counting) as SourceRef, 1000).unwrap();
        assert_eq!(counting.counts().bytes, 10_000 - 8192);
        for (range, reads) in
            [(8192..10_000, 1), (9999..10_000, 1), (10_000..10_000, 1), (8191..8193, 2), (0..0, 3)]
        {
            let expected = whole[range.start as usize..range.end as usize].to_vec();
            assert_eq!(source.read_at(range).unwrap(), expected);
            assert_eq!(counting.counts().reads, reads);
        }
        assert!(source.read_at(9999..10_001).is_err());
        // Many at once: from the tail, or with one read of what holds them all.
        counting.reset();
        assert_eq!(source.read_many(&[9000..9001, 9500..9600]).unwrap()[1], whole[9500..9600]);
        assert_eq!(counting.counts().reads, 0);
        assert_eq!(source.read_many(&[10..20, 9500..9600]).unwrap()[0], whole[10..20]);
        assert_eq!(counting.counts().reads, 1);
        let small = TailSource::read(Arc::new(MemorySource::new("m", whole)), 20_000).unwrap();
        assert_eq!(small.read_at(0..2).unwrap(), [0, 1].as_slice());
    }
}
