//! A data file that is opened when its first byte is needed: planning needs only the index.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pilaster_core::{Error, Location, Result, Source, SourceRef};

use super::open::open_file;

/// What was read of the data files of a table, so far.
#[derive(Debug, Default)]
pub(crate) struct ReadCounts {
    pub files: AtomicU64,
    /// Data files that planning has looked at, as often as it did.
    pub planned: AtomicU64,
    pub bytes: AtomicU64,
}

impl ReadCounts {
    fn add_bytes(&self, range: &Range<u64>) {
        self.bytes.fetch_add(range.end.saturating_sub(range.start), Ordering::Relaxed);
    }
}

/// A file whose size is known from its index.
#[derive(Debug)]
pub(crate) struct LazySource {
    place: Location,
    name: String,
    size: u64,
    opened: OnceLock<SourceRef>,
    read: Arc<ReadCounts>,
}

impl LazySource {
    pub fn new(place: &Location, size: u64, read: Arc<ReadCounts>) -> Self {
        let name = place.to_string();
        Self { place: place.clone(), name, size, opened: OnceLock::new(), read }
    }

    fn open(&self) -> Result<&SourceRef> {
        if let Some(source) = self.opened.get() {
            return Ok(source);
        }
        let source = open_file(&self.place)?;
        if source.size() < self.size {
            let expected = format!("{} bytes, as the index says", self.size);
            return Err(Error::corrupt(expected, source.size()).at(
                &self.name,
                source.size(),
                "carbondata file",
            ));
        }
        self.read.files.fetch_add(1, Ordering::Relaxed);
        Ok(self.opened.get_or_init(|| source))
    }
}

impl Source for LazySource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        self.read.add_bytes(&range);
        self.open()?.read_at(range)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        ranges.iter().for_each(|range| self.read.add_bytes(range));
        self.open()?.read_many(ranges)
    }
}
