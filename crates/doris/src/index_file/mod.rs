//! Inverted and ANN index files (`.idx`): containers of the files of a search index, beside a segment.
//!
//! ```text
//! V2, V3   i32 version (1, 2) | i32 indexes | each: i64 id, i32 length, suffix, i32 files | each: i32 length, name, i64 offset, i64 length
//! V1       varint files | each: varint length, name, i64 offset, i64 length, and if the offset is -1 the bytes themselves
//! ```
//!
//! Numbers are big-endian. Only the container is read: a segment is complete without its indexes. Every byte
//! belongs to the directory or to a file.

mod reader;

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::varint;

pub use reader::IndexFileReader;

const PART: &str = "index file directory";
/// Directories are small; old ones hold small files too, up to 128 KiB of them.
const MAX_DIRECTORY_BYTES: u64 = 4 << 20;

/// What an index file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexFile {
    /// Generation of the container: 1, 2 or 3.
    pub version: u32,
    /// The indexes in it; a container of version 1 has one, whose id is in the file's name.
    pub indexes: Vec<IndexEntry>,
    /// Bytes that neither the directory nor a file claims; Doris leaves none.
    pub unclaimed: Vec<Range<u64>>,
}

/// One index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Its id, where the container says it.
    pub id: Option<i64>,
    /// What follows the id, for paths of a VARIANT.
    pub suffix: String,
    /// Its files: name and place.
    pub files: Vec<(String, Range<u64>)>,
}

impl IndexFile {
    /// Reads the directory of a container; every file of it must lie inside, and none over another.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if the bytes are no container.
    pub fn read(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let length = source.size().min(MAX_DIRECTORY_BYTES).min(limits.metadata_bytes);
        let head = source.read_at(0..length)?;
        Self::parse(&head, source.size()).at(source.name(), 0, PART)
    }

    /// As [`IndexFile::read`], out of the first bytes of a file of `size` bytes.
    pub(crate) fn parse(head: &Bytes, size: u64) -> Result<Self> {
        let mut input = Input { bytes: head, at: 0 };
        let (version, indexes) = match head.first_chunk::<4>().map(|four| u32::from_be_bytes(*four)) {
            Some(version @ (1 | 2)) => {
                input.at = 4;
                (version.saturating_add(1), input.indexes()?)
            }
            _ => (1, vec![input.old_index()?]),
        };
        let unclaimed = unclaimed(&indexes, input.at as u64, size, version)?;
        Ok(Self { version, indexes, unclaimed })
    }
}

struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Input<'_> {
    fn take(&mut self, count: usize) -> Result<&[u8]> {
        let end = self.at.saturating_add(count);
        let taken = self.bytes.get(self.at..end).ok_or_else(|| {
            Error::corrupt(format!("{count} bytes at {} of the directory", self.at), "its end")
        })?;
        self.at = end;
        Ok(taken)
    }

    fn long(&mut self) -> Result<i64> {
        Ok(self.take(8)?.first_chunk().map_or(0, |eight| i64::from_be_bytes(*eight)))
    }

    /// A count or a length, each unit of which takes a byte or more.
    fn count(&mut self) -> Result<usize> {
        let count = self.take(4)?.first_chunk().map_or(0, |four| i32::from_be_bytes(*four));
        let left = self.bytes.len().saturating_sub(self.at);
        usize::try_from(count)
            .ok()
            .filter(|count| *count <= left)
            .ok_or_else(|| Error::corrupt(format!("a count of at most {left}"), count))
    }

    fn text(&mut self, length: usize) -> Result<String> {
        let bytes = self.take(length)?;
        std::str::from_utf8(bytes)
            .map(str::to_string)
            .map_err(|_| Error::corrupt("a name in UTF-8", bytes.escape_ascii()))
    }

    fn indexes(&mut self) -> Result<Vec<IndexEntry>> {
        let count = self.count()?;
        let mut indexes = Vec::new();
        for _ in 0..count {
            let id = self.long()?;
            let length = self.count()?;
            let suffix = self.text(length)?;
            let mut files = Vec::new();
            for _ in 0..self.count()? {
                let length = self.count()?;
                let name = self.text(length)?;
                files.push((name, place(self.long()?, self.long()?)?));
            }
            indexes.push(IndexEntry { id: Some(id), suffix, files });
        }
        Ok(indexes)
    }

    fn old_index(&mut self) -> Result<IndexEntry> {
        let count = varint::read_u32(self.bytes, &mut self.at)?;
        if count == 0 || count as usize > self.bytes.len() {
            return Err(Error::corrupt("a container of index files", format!("{count} files")));
        }
        let mut files = Vec::new();
        for _ in 0..count {
            let length = varint::read_u32(self.bytes, &mut self.at)? as usize;
            let name = self.text(length)?;
            let (offset, length) = (self.long()?, self.long()?);
            if offset == -1 {
                let start = i64::try_from(self.at).unwrap_or(i64::MAX);
                files.push((name, place(start, length)?));
                self.take(usize::try_from(length).unwrap_or(usize::MAX))?;
            } else {
                files.push((name, place(offset, length)?));
            }
        }
        Ok(IndexEntry { id: None, suffix: String::new(), files })
    }
}

fn place(offset: i64, length: i64) -> Result<Range<u64>> {
    match (u64::try_from(offset), u64::try_from(length)) {
        (Ok(start), Ok(length)) => Ok(start..start.saturating_add(length)),
        _ => Err(Error::corrupt("an offset and a length", format!("{offset} and {length}"))),
    }
}

/// What lies between the files, after making sure that they lie inside the container and not over each other; those of newer
/// containers lie behind the directory, old ones hold small files in it.
fn unclaimed(indexes: &[IndexEntry], directory: u64, size: u64, version: u32) -> Result<Vec<Range<u64>>> {
    let mut places: Vec<_> =
        indexes.iter().flat_map(|index| &index.files).map(|(_, place)| place.clone()).collect();
    places.sort_by_key(|place| (place.start, place.end));
    let mut unclaimed = Vec::new();
    let mut at = if version == 1 { 0 } else { directory };
    for place in places {
        if place.start < at || place.end > size {
            return Err(Error::corrupt(format!("a file inside bytes {at}..{size}"), format!("{place:?}")));
        }
        unclaimed.push(at.max(directory)..place.start);
        at = place.end;
    }
    unclaimed.push(at.max(directory)..size);
    unclaimed.retain(|gap| !gap.is_empty());
    Ok(unclaimed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_container_of_one_file() {
        let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 1];
        bytes.extend(7i64.to_be_bytes());
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3]);
        bytes.extend(b"bkd");
        bytes.extend(47i64.to_be_bytes());
        bytes.extend(2i64.to_be_bytes());
        bytes.extend(b"xx");
        let size = bytes.len() as u64;
        let parsed = IndexFile::parse(&bytes.clone().into(), size).unwrap();
        assert_eq!((parsed.version, parsed.indexes[0].id), (2, Some(7)));
        assert_eq!(parsed.indexes[0].files, [("bkd".to_string(), 47..49)]);
        assert_eq!(parsed.unclaimed, []);
        let longer = IndexFile::parse(&bytes.clone().into(), size + 3).unwrap();
        assert_eq!(longer.unclaimed.first(), Some(&(49..52)));
        assert!(IndexFile::parse(&bytes.into(), size - 1).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_container_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120), is_new: bool) {
            let bytes = if is_new { [&[0, 0, 0, 2][..], &bytes].concat() } else { bytes };
            let size = bytes.len() as u64;
            let _ = IndexFile::parse(&bytes.into(), size);
        }
    }
}
