//! A CFile whose footer is lost.

use std::sync::Arc;

use pilaster_core::{Error, Result, SourceRef};

use super::file::{CFile, CFileReaderOptions};
use super::metadata::{CFileMetadata, CHECKSUM_BYTES, MAGIC_AND_LENGTH_BYTES, Version, parse_header_start};
use super::types::{Compression, Encoding, KuduType};
use super::walk::walk;

/// What the footer would have said: the caller must know it from the table's schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AssumedShape {
    /// Type of the values, or of the elements of an array column.
    pub data_type: KuduType,
    /// Layout of the values.
    pub encoding: Encoding,
    /// Codec of all blocks.
    pub compression: Compression,
    /// Whether cells may be null.
    pub is_nullable: bool,
    /// Whether a cell is an array.
    pub is_array: bool,
    /// Whether blocks carry checksums; without them only encodings that tell their length can be found.
    pub has_checksums: bool,
}

impl AssumedShape {
    /// A column of this type as Kudu writes it by default: default encoding, no codec, with checksums.
    pub fn new(data_type: KuduType) -> Self {
        Self {
            data_type,
            encoding: data_type.default_encoding(),
            compression: Compression::None,
            is_nullable: false,
            is_array: false,
            has_checksums: true,
        }
    }
}

/// Finds the blocks of a file without its footer.
pub(crate) fn recover(
    source: SourceRef,
    shape: &AssumedShape,
    options: &CFileReaderOptions,
) -> Result<CFile> {
    if !shape.data_type.encodings().contains(&shape.encoding) {
        return Err(Error::invalid(format!(
            "{} values have no encoding {}",
            shape.data_type, shape.encoding
        )));
    }
    let size = source.size();
    let checksum_bytes = if shape.has_checksums { CHECKSUM_BYTES } else { 0 };
    let head = source.read_at(0..MAGIC_AND_LENGTH_BYTES.min(size))?;
    let (version, start) = match parse_header_start(source.name(), &head) {
        Ok((version, length)) => {
            (version, MAGIC_AND_LENGTH_BYTES.saturating_add(u64::from(length)).saturating_add(checksum_bytes))
        }
        // The header is always the same; a damaged one tells nothing that matters.
        Err(_) => (Version::V2, MAGIC_AND_LENGTH_BYTES.saturating_add(checksum_bytes)),
    };
    let metadata = CFileMetadata::assumed(size, start.min(size), version, shape);
    let probe = CFile::with_metadata(Arc::clone(&source), metadata.clone(), options)?;
    let found = walk(&probe);
    let rows = found.data.iter().map(|block| block.rows.end).max().unwrap_or(0);
    let metadata = CFileMetadata { num_values: rows, dictionary: found.dictionary, ..metadata };
    let mut file = CFile::with_metadata(source, metadata, options)?;
    let mut blocks = found.data;
    blocks.sort_by_key(|block| block.rows.start);
    file.recovered = Some(blocks);
    Ok(file)
}
