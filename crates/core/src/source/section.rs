//! A part of another source.

use std::ops::Range;

use bytes::Bytes;

use super::{Source, SourceRef, check_range};
use crate::error::{Error, Result};

/// A stretch of a larger file that is a file of its own, such as a block in a container.
#[derive(Debug)]
pub struct SectionSource {
    name: String,
    whole: SourceRef,
    start: u64,
    size: u64,
}

impl SectionSource {
    /// The bytes `range` of `whole`, called `name` in messages.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Corrupt`] if the range reaches past the end of `whole`.
    pub fn new(name: impl Into<String>, whole: SourceRef, range: Range<u64>) -> Result<Self> {
        check_range(whole.name(), whole.size(), &range)?;
        Ok(Self { name: name.into(), whole, start: range.start, size: range.end.saturating_sub(range.start) })
    }

    /// Where `range` of this lies in the whole.
    fn in_whole(&self, range: &Range<u64>) -> Result<Range<u64>> {
        check_range(&self.name, self.size, range)?;
        let shift = |position: u64| {
            self.start
                .checked_add(position)
                .ok_or_else(|| Error::internal("a section past the end of its file"))
        };
        Ok(shift(range.start)?..shift(range.end)?)
    }
}

impl Source for SectionSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.whole.read_at(self.in_whole(&range)?)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let ranges = ranges.iter().map(|range| self.in_whole(range)).collect::<Result<Vec<_>>>()?;
        self.whole.read_many(&ranges)
    }
}
