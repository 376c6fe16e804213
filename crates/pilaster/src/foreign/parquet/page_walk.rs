//! The pages of a column chunk, one after another, with where they lie.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parquet::column::page::{Page, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;
use pilaster_core::Error;

use super::chunks::{ChunkRead, SourceChunks};
use crate::foreign::guard::guarded;

/// Notes where the page reader looks: it asks for a header with `get_read` and for what follows with `get_bytes`.
struct Watched {
    chunks: SourceChunks,
    header: AtomicU64,
    end: AtomicU64,
}

impl Length for Watched {
    fn len(&self) -> u64 {
        self.chunks.len()
    }
}

impl ChunkReader for Watched {
    type T = ChunkRead;

    fn get_read(&self, start: u64) -> Result<ChunkRead, ParquetError> {
        self.header.store(start, Ordering::Relaxed);
        self.end.store(start, Ordering::Relaxed);
        self.chunks.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.end.store(start.saturating_add(length as u64), Ordering::Relaxed);
        self.chunks.get_bytes(start, length)
    }
}

/// One step of a walk.
pub(super) struct Step {
    /// The bytes of the page, header included; empty if the header itself cannot be read.
    pub(super) bytes: Range<u64>,
    /// The page, decompressed, its checksum compared if it has one.
    pub(super) page: Result<Page, Error>,
}

/// Walks over the pages of a column chunk and goes on after a damaged page as long as headers lead on.
pub(super) struct PageWalk {
    watched: Arc<Watched>,
    reader: Option<SerializedPageReader<Watched>>,
    first_error: Option<Error>,
}

impl PageWalk {
    pub(super) fn new(chunks: SourceChunks, column: &ColumnChunkMetaData) -> Self {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset()).unsigned_abs();
        let watched = Watched { chunks, header: AtomicU64::new(start), end: AtomicU64::new(start) };
        let watched = Arc::new(watched);
        watched.chunks.sizes().clear();
        let rows = usize::try_from(column.num_values()).unwrap_or(0);
        match guarded(|| SerializedPageReader::new(Arc::clone(&watched), column, rows, None)) {
            Ok(reader) => Self { watched, reader: Some(reader), first_error: None },
            Err(error) => {
                let error = damaged(&watched, error);
                Self { watched, reader: None, first_error: Some(error) }
            }
        }
    }
}

fn damaged(watched: &Watched, text: String) -> Error {
    watched.chunks.take_failure().unwrap_or_else(|| Error::corrupt("a page that can be read", text))
}

impl Iterator for PageWalk {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let place =
            |watched: &Watched| watched.header.load(Ordering::Relaxed)..watched.end.load(Ordering::Relaxed);
        if let Some(error) = self.first_error.take() {
            return Some(Step { bytes: place(&self.watched), page: Err(error) });
        }
        let reader = self.reader.as_mut()?;
        self.watched.chunks.sizes().begin_batch();
        let page = guarded(|| reader.get_next_page()).transpose()?;
        let bytes = place(&self.watched);
        let page = page.map_err(|error| damaged(&self.watched, error));
        if page.is_err() && bytes.is_empty() {
            self.reader = None;
        }
        Some(Step { bytes, page })
    }
}
