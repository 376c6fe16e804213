//! Where bytes come from.

mod ahead;
mod counting;
mod file;
mod handles;
mod memory;
#[cfg(feature = "object_store")]
mod object;
mod open;
mod section;
mod tail;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

pub use ahead::{READ_AHEAD_BYTES, ReadAhead};
pub use counting::{CountingSource, ReadCounts};
pub use file::FileSource;
pub use handles::{FileHandles, PooledSource, is_out_of_handles};
pub use memory::MemorySource;
#[cfg(feature = "object_store")]
pub use object::ObjectSource;
#[cfg(feature = "object_store")]
pub(crate) use object::{object_store_of, wait};
pub use open::open_source;
pub use section::SectionSource;
pub use tail::TailSource;

use crate::error::{Error, Result};

/// A source shared by readers and threads.
pub type SourceRef = Arc<dyn Source>;

/// Two wanted ranges with a hole of at most this many bytes between them are fetched in one read: on a disk as on a
/// network, reading 16 KiB too much costs less than asking twice.
pub const MERGE_HOLE_BYTES: u64 = 16 * 1024;

/// A read that would be longer than this is not made longer by what lies in a hole: what nobody asked for must not decide how much memory is
/// taken.
const MERGED_BYTES: u64 = 4 << 20;

/// A file, a buffer or an object that can be read at any position, by several threads at once.
pub trait Source: Send + Sync + Debug {
    /// Path or address, for messages.
    fn name(&self) -> &str;

    /// Size in bytes, as it was when the source was opened.
    fn size(&self) -> u64;

    /// The bytes of `range`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if the range reaches past the end, [`crate::ErrorKind::Io`] if reading fails.
    fn read_at(&self, range: Range<u64>) -> Result<Bytes>;

    /// The bytes of each range, in their order; neighbouring ranges are fetched together.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let merged = merge_ranges(ranges, MERGE_HOLE_BYTES);
        let fetched = merged.iter().map(|range| self.read_at(range.clone())).collect::<Result<Vec<_>>>()?;
        cut(ranges, &merged, &fetched)
    }
}

/// Ranges sorted and joined where the hole between them is at most `hole` bytes, unless that makes more than [`MERGED_BYTES`].
fn merge_ranges(ranges: &[Range<u64>], hole: u64) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_by_key(|range| range.start);
    let is_near = |last: &Range<u64>, next: &Range<u64>| {
        next.start <= last.end.saturating_add(hole) && next.end.saturating_sub(last.start) <= MERGED_BYTES
    };
    let mut merged: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match merged.last_mut() {
            Some(last) if range.start <= last.end || is_near(last, &range) => {
                last.end = last.end.max(range.end)
            }
            _ => merged.push(range),
        }
    }
    merged
}

/// Cuts each wanted range out of the merged read that covers it.
fn cut(wanted: &[Range<u64>], merged: &[Range<u64>], fetched: &[Bytes]) -> Result<Vec<Bytes>> {
    wanted
        .iter()
        .map(|range| {
            if range.is_empty() {
                return Ok(Bytes::new());
            }
            let index = merged.partition_point(|whole| whole.start <= range.start).saturating_sub(1);
            let (Some(whole), Some(bytes)) = (merged.get(index), fetched.get(index)) else {
                return Err(Error::internal("a merged read lost one of its ranges"));
            };
            let start = usize::try_from(range.start.saturating_sub(whole.start)).unwrap_or(usize::MAX);
            let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
            match start.checked_add(length) {
                Some(end) if end <= bytes.len() => Ok(bytes.slice(start..end)),
                _ => Err(Error::internal("a merged read is shorter than its ranges")),
            }
        })
        .collect()
}

/// Refuses a range that is reversed or reaches past the end; gives its length.
fn check_range(name: &str, size: u64, range: &Range<u64>) -> Result<usize> {
    if range.start > range.end || range.end > size {
        return Err(Error::corrupt(
            format!("bytes {}..{}", range.start, range.end),
            format!("a file of {size} bytes"),
        )
        .at(name, range.start.min(size), "read"));
    }
    usize::try_from(range.end.saturating_sub(range.start))
        .map_err(|_| Error::invalid("a read longer than the address space"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbouring_ranges_are_read_once() {
        let source = CountingSource::new(Arc::new(MemorySource::new("m", vec![7u8; 100_000])));
        let ranges = [90_000..90_010, 0..10, 20..30, 10_000..10_001, 5..25];
        let parts = source.read_many(&ranges).unwrap();
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [10, 10, 10, 1, 20]);
        assert_eq!(source.counts().reads, 2);
    }

    #[test]
    fn holes_do_not_add_up() {
        // Four bytes of every 16 KiB, and two ranges that touch.
        let sparse: Vec<_> = (0..1024u64).map(|number| number << 14..(number << 14) + 4).collect();
        let merged = merge_ranges(&sparse, MERGE_HOLE_BYTES);
        assert_eq!(merged.len(), 4);
        assert!(merged.iter().all(|range| range.end - range.start <= MERGED_BYTES), "{merged:?}");
        let large = [0..MERGED_BYTES, MERGED_BYTES..2 * MERGED_BYTES];
        assert_eq!(merge_ranges(&large, MERGE_HOLE_BYTES), std::slice::from_ref(&(0..2 * MERGED_BYTES)));
    }

    proptest! {
        #[test]
        fn read_many_is_read_at_many_times(pairs in prop::collection::vec((0u64..200, 0u64..56), 0..12)) {
            let source = MemorySource::new("m", (0..=255u8).collect::<Vec<_>>());
            let ranges: Vec<_> = pairs.into_iter().map(|(start, length)| start..start + length).collect();
            let many = source.read_many(&ranges).unwrap();
            for (range, bytes) in ranges.into_iter().zip(many) {
                prop_assert_eq!(source.read_at(range).unwrap(), bytes);
            }
        }
    }
}
