//! A source that remembers what was asked of it.

use std::mem;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use pilaster_core::{Result, Source, SourceRef};

/// Passes reads on and notes each range: how tests show which pages are read.
#[derive(Debug)]
pub struct ReadRecorder {
    inner: SourceRef,
    ranges: Mutex<Vec<Range<u64>>>,
}

impl ReadRecorder {
    /// Notes the reads of `inner`.
    pub fn new(inner: SourceRef) -> Self {
        Self { inner, ranges: Mutex::default() }
    }

    /// The ranges since the start or the last call.
    pub fn take(&self) -> Vec<Range<u64>> {
        mem::take(&mut self.ranges.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Source for ReadRecorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.inner.size()
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).push(range.clone());
        self.inner.read_at(range)
    }

    /// Each range is noted as it was asked for, and not with what lies between them.
    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().map(|range| self.read_at(range.clone())).collect()
    }
}
