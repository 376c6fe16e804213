//! Index files: what the footers of several data files say, so that a scan can be planned without opening them.
//!
//! ```text
//! IndexHeader | BlockIndex | BlockIndex | …      one BlockIndex per blocklet, to the end of the file
//! ```

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Limits, Result, SourceRef};

use crate::messages::{BlockIndex, IndexHeader, Parsed, parse_merged};

/// A parsed `.carbonindex` file.
#[derive(Debug, Clone)]
pub struct IndexFile {
    /// Columns and version of the data files.
    pub header: IndexHeader,
    /// The blocklets of all data files, in file order.
    pub blocklets: Vec<BlockIndex>,
}

impl IndexFile {
    /// Reads all of `source`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if it is no index file.
    pub fn open(source: &SourceRef, limits: &Limits) -> Result<Self> {
        limits.metadata(source.size()).at(source.name(), 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        Self::parse(&bytes).at(source.name(), 0, PART)
    }

    /// Reads the index files that a merged one (`.carbonindexmerge`) was made of, all of `source`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if it is no merged index file.
    pub fn open_merged(source: &SourceRef, limits: &Limits) -> Result<Vec<Self>> {
        limits.metadata(source.size()).at(source.name(), 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        let files = parse_merged(&bytes).at(source.name(), 0, PART)?;
        files.iter().map(|(_, bytes)| Self::parse(bytes).at(source.name(), 0, PART)).collect()
    }

    fn parse(bytes: &Bytes) -> Parsed<Self> {
        let (header, blocklets) = IndexHeader::parse_file(bytes)?;
        Ok(Self { header, blocklets })
    }
}

const PART: &str = "carbondata index";
