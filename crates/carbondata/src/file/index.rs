//! Index files: what the footers of several data files say, so that a scan can be planned without opening them.
//!
//! ```text
//! IndexHeader | BlockIndex | BlockIndex | …      one BlockIndex per blocklet, to the end of the file
//! ```

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};

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
        let index = Self::parse(&bytes).at(source.name(), 0, PART)?;
        index.refuse_empty(source)?;
        Ok(index)
    }

    /// A task that wrote no data file wrote no index either: one without records has lost them.
    fn refuse_empty(&self, source: &SourceRef) -> Result<()> {
        if self.blocklets.is_empty() {
            return Err(Error::corrupt("records of data files", "none").at(
                source.name(),
                source.size(),
                PART,
            ));
        }
        Ok(())
    }

    /// Reads the index files that a merged one (`.carbonindexmerge`) was made of, all of `source`.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`] if it is no merged index file.
    pub fn open_merged(source: &SourceRef, limits: &Limits) -> Result<Vec<Self>> {
        limits.metadata(source.size()).at(source.name(), 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        let files = parse_merged(&bytes).at(source.name(), 0, PART)?;
        if files.is_empty() {
            return Err(Error::corrupt("index files inside of a merged one", "none").at(
                source.name(),
                0,
                PART,
            ));
        }
        let indexes = files.iter().map(|(_, bytes)| {
            let index = Self::parse(bytes).at(source.name(), 0, PART)?;
            index.refuse_empty(source)?;
            Ok(index)
        });
        indexes.collect()
    }

    fn parse(bytes: &Bytes) -> Parsed<Self> {
        let (header, blocklets) = IndexHeader::parse_file(bytes)?;
        Ok(Self { header, blocklets })
    }
}

const PART: &str = "carbondata index";
