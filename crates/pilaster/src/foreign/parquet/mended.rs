//! A file whose last bytes are cut off or damaged, but not the metadata before them.
//!
//! ```text
//! | … | file metadata | length u32 | "PAR1" |     one flipped byte in the last eight keeps everybody from all rows
//! ```
//!
//! The metadata is looked for by its first bytes, and the end that leads to it is put behind the file again, in memory.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use parquet::file::metadata::ParquetMetaDataReader;
use pilaster_core::source::Source;
use pilaster_core::{Error, Limits, Result, SourceRef};

use super::metadata::MAGIC;
use crate::foreign::guard::guarded;

/// How many places that look like the beginning of metadata are tried, from the end on.
const MOST_TRIED: usize = 64;
/// What the metadata of the largest files takes.
const SEARCHED_BYTES: u64 = 64 << 20;

/// A source with other bytes behind its end.
#[derive(Debug)]
pub(super) struct Mended {
    source: SourceRef,
    end: Bytes,
}

impl Mended {
    /// The file with a new end; `None` if no whole metadata is in it.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Io`] if it cannot be read.
    pub(super) fn find(source: SourceRef, limits: &Limits) -> Result<Option<Self>> {
        let size = source.size();
        let searched = SEARCHED_BYTES.min(limits.metadata_bytes).min(size);
        let bytes = source.read_at(size.saturating_sub(searched)..size)?;
        let starts = bytes.windows(4).enumerate().rev().filter(|(_, window)| is_beginning(window));
        let whole = starts.take(MOST_TRIED).map(|(start, _)| bytes.get(start..).unwrap_or_default());
        let Some(metadata) = whole.into_iter().find(|bytes| is_metadata(bytes)) else { return Ok(None) };
        let Ok(length) = u32::try_from(metadata.len()) else { return Ok(None) };
        let mut end = BytesMut::from(length.to_le_bytes().as_slice());
        end.extend_from_slice(MAGIC);
        Ok(Some(Self { source, end: end.freeze() }))
    }
}

/// Whether these bytes are a version of 1 or 2 and a list of structs, as metadata begins.
fn is_beginning(bytes: &[u8]) -> bool {
    matches!(bytes, [0x15, 0x02 | 0x04, 0x19, list] if list & 0x0f == 0x0c)
}

/// Whether metadata that leads to row groups, or to none where there are no rows, begins here.
fn is_metadata(bytes: &[u8]) -> bool {
    let parsed = guarded(|| ParquetMetaDataReader::decode_metadata(bytes));
    parsed.is_ok_and(|metadata| {
        let rows: i64 =
            metadata.row_groups().iter().map(|group| group.num_rows().max(0)).fold(0, i64::saturating_add);
        metadata.file_metadata().num_rows() == rows
            && metadata.file_metadata().schema_descr().num_columns() > 0
    })
}

impl Source for Mended {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn size(&self) -> u64 {
        self.source.size().saturating_add(self.end.len() as u64)
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let size = self.source.size();
        if range.end <= size {
            return self.source.read_at(range);
        }
        let of_end = |at: u64| usize::try_from(at.saturating_sub(size)).unwrap_or(usize::MAX);
        let end = self.end.get(of_end(range.start)..of_end(range.end));
        let end = end.ok_or_else(|| Error::internal("bytes behind the end of a file"))?;
        if range.start >= size {
            return Ok(Bytes::copy_from_slice(end));
        }
        let mut bytes = BytesMut::from(self.source.read_at(range.start..size)?.as_ref());
        bytes.extend_from_slice(end);
        Ok(bytes.freeze())
    }
}
