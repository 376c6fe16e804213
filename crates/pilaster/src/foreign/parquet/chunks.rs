//! Parquet's view of a source: pages out of a window that moves along each column chunk.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use pilaster_core::{Error, Limits, SourceRef};

use super::page_sizes::PageSizes;

/// Bytes fetched at a time from a column chunk. Page headers and pages lie one after another, so what follows a header
/// is wanted next; asking for each alone would cost two small reads per page.
const WINDOW_BYTES: u64 = 1 << 20;

/// Where an error waits that the parquet reader would flatten to text.
pub(super) type Failure = Arc<Mutex<Option<Error>>>;

/// A source as the parquet reader wants it. Clones share the windows.
#[derive(Debug, Clone)]
pub(super) struct SourceChunks {
    source: SourceRef,
    /// Column chunks that will be read front to back: end by start.
    chunks: Arc<BTreeMap<u64, u64>>,
    /// The last piece read of each column chunk, by the chunk's start.
    windows: Arc<Mutex<BTreeMap<u64, (u64, Bytes)>>>,
    failure: Failure,
    /// What the pages take that are open.
    sizes: Arc<Mutex<PageSizes>>,
}

impl SourceChunks {
    /// Reads `source`, with a window on each of `chunks`; pages in these are within the limits.
    pub(super) fn new(
        source: SourceRef,
        chunks: impl IntoIterator<Item = Range<u64>>,
        limits: &Limits,
    ) -> Self {
        let size = source.size();
        let chunks = chunks.into_iter().map(|range| (range.start, range.end.min(size))).collect();
        Self {
            source,
            chunks: Arc::new(chunks),
            windows: Arc::default(),
            failure: Failure::default(),
            sizes: Arc::new(Mutex::new(PageSizes::new(limits.clone()))),
        }
    }

    /// The pages that are open.
    pub(super) fn sizes(&self) -> MutexGuard<'_, PageSizes> {
        lock(&self.sizes)
    }

    /// The start of the column chunk that `at` lies in.
    fn chunk_of(&self, at: u64) -> Option<u64> {
        let (start, end) = self.chunks.range(..=at).next_back()?;
        (at < *end).then_some(*start)
    }

    fn failed(&self, error: Error) -> ParquetError {
        let text = error.to_string();
        *lock(&self.failure) = Some(error);
        ParquetError::General(text)
    }

    /// Where errors of the source wait.
    pub(super) fn failure(&self) -> &Failure {
        &self.failure
    }

    /// Takes the error that made the parquet reader fail, if it came from the source or a predicate.
    pub(super) fn take_failure(&self) -> Option<Error> {
        lock(&self.failure).take()
    }

    /// Forgets windows and pages, once a row group is done.
    pub(super) fn clear(&self) {
        lock(&self.windows).clear();
        self.sizes().clear();
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, ParquetError> {
        self.source.read_at(range).map_err(|error| self.failed(error))
    }

    /// At least one byte (unless the source ends) and at least `length` from `start` on.
    fn at_least(&self, start: u64, length: u64) -> Result<Bytes, ParquetError> {
        let end = start.saturating_add(length);
        let Some((&chunk, &chunk_end)) = self.chunks.range(..=start).next_back() else {
            return self.read(start..end);
        };
        if start >= chunk_end || end > chunk_end {
            return self.read(start..end);
        }
        let mut windows = lock(&self.windows);
        if let Some((at, bytes)) = windows.get(&chunk)
            && *at <= start
            && end <= at.saturating_add(bytes.len() as u64)
            && let Ok(skip) = usize::try_from(start.saturating_sub(*at))
            && skip < bytes.len()
        {
            return Ok(bytes.slice(skip..));
        }
        let window = start..end.max(start.saturating_add(WINDOW_BYTES).min(chunk_end));
        let bytes = self.read(window)?;
        windows.insert(chunk, (start, bytes.clone()));
        Ok(bytes)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Length for SourceChunks {
    fn len(&self) -> u64 {
        self.source.size()
    }
}

impl ChunkReader for SourceChunks {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Result<ChunkRead, ParquetError> {
        // The crate asks for a page header so, and only for that.
        if let Some(chunk) = self.chunk_of(start) {
            let bytes = self.at_least(start, 1)?;
            let counted = self.sizes().header(chunk, &bytes);
            counted.map_err(|error| self.failed(error))?;
        }
        Ok(ChunkRead { chunks: self.clone(), position: start, bytes: Bytes::new() })
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        if length == 0 {
            return Ok(Bytes::new());
        }
        let bytes = self.at_least(start, length as u64)?;
        if length > bytes.len() {
            return Err(ParquetError::EOF(format!(
                "{length} bytes wanted at {start}, {} there",
                bytes.len()
            )));
        }
        if let Some(chunk) = self.chunk_of(start) {
            let counted = self.sizes().page(chunk, length as u64, &bytes);
            counted.map_err(|error| self.failed(error))?;
        }
        Ok(bytes.slice(..length))
    }
}

/// A [`Read`] that moves along the source.
#[derive(Debug)]
pub(super) struct ChunkRead {
    chunks: SourceChunks,
    position: u64,
    bytes: Bytes,
}

impl Read for ChunkRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Headers are read byte by byte, so the window is looked up once and not for each of them.
        if self.bytes.is_empty() && self.position < self.chunks.len() {
            self.bytes = self.chunks.at_least(self.position, 1).map_err(io::Error::other)?;
            self.position = self.position.saturating_add(self.bytes.len() as u64);
        }
        let length = buffer.len().min(self.bytes.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..length), self.bytes.get(..length)) {
            to.copy_from_slice(from);
        }
        self.bytes.advance(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_core::source::{CountingSource, MemorySource};
    use proptest::prelude::*;

    #[test]
    fn neighbouring_pages_come_out_of_one_read() {
        let source = Arc::new(CountingSource::new(Arc::new(MemorySource::new("m", vec![1u8; 10_000]))));
        let chunks = SourceChunks::new(source.clone(), [0..5000, 5000..10_000], &Limits::default());
        for page in 0..50 {
            chunks.get_bytes(page * 100, 100).unwrap();
        }
        assert_eq!(source.counts().reads, 1);
    }

    proptest! {
        #[test]
        fn reads_are_those_of_the_source(
            cuts in prop::collection::vec(0u64..300, 0..6),
            wanted in prop::collection::vec((0u64..256, 0usize..60), 1..12),
        ) {
            let content: Vec<u8> = (0..=255).collect();
            let chunks = SourceChunks::new(
                Arc::new(MemorySource::new("m", content.clone())),
                cuts.windows(2).filter(|pair| pair[0] < pair[1]).map(|pair| pair[0]..pair[1]),
                &Limits::default(),
            );
            for (start, length) in wanted {
                let expected = content.get(start as usize..start as usize + length);
                let found = chunks.get_bytes(start, length).ok();
                if length > 0 {
                    prop_assert_eq!(found.as_deref(), expected);
                }
                let mut rest = Vec::new();
                chunks.get_read(start).unwrap().read_to_end(&mut rest).ok();
                prop_assert_eq!(&rest, &content[start as usize..]);
            }
        }
    }
}
