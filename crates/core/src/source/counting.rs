//! Counts what is read.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use super::{Source, SourceRef};
use crate::error::Result;

/// How often and how much was read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Number of reads.
    pub reads: u64,
    /// Bytes of all reads together.
    pub bytes: u64,
}

/// Passes reads on and counts them: how tests show that pruning saves I/O.
#[derive(Debug)]
pub struct CountingSource {
    inner: SourceRef,
    reads: AtomicU64,
    bytes: AtomicU64,
}

impl CountingSource {
    /// Counts the reads of `inner`.
    pub fn new(inner: SourceRef) -> Self {
        Self { inner, reads: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// What was read since the start or the last [`CountingSource::reset`].
    pub fn counts(&self) -> ReadCounts {
        ReadCounts { reads: self.reads.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }

    /// Starts again from zero.
    pub fn reset(&self) {
        self.reads.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }
}

impl Source for CountingSource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(range.end.saturating_sub(range.start), Ordering::Relaxed);
        self.inner.read_at(range)
    }
}
