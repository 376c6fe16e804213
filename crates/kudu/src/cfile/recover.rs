//! A CFile whose footer is lost.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use pilaster_core::source::TailSource;
use pilaster_core::{Error, ErrorKind, Result, SourceRef};

use super::arrow_types::kudu_type;
use super::file::{CFile, CFileReaderOptions, LocatedBlock};
use super::index::{IndexTree, KeyOrder};
use super::metadata::{
    BlockPointer, CFileMetadata, CHECKSUM_BYTES, MAGIC_AND_LENGTH_BYTES, TAIL_BYTES, Version,
    is_footer_start, parse_header_start,
};
use super::types::{Compression, Encoding, KuduType};
use super::walk::{Found, has_first_block, in_row_order, walk};

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
    /// Whether blocks carry checksums; without them a block is found by the length its bytes tell.
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

/// Finds the blocks of a file without its footer; one whose footer is sound after all is opened as it says.
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
    let source: SourceRef = Arc::new(TailSource::read(source, TAIL_BYTES)?);
    if let Some(metadata) = sound_footer(&source, options)? {
        return CFile::with_metadata(source, metadata, options);
    }
    let Some(probe) = assumed(&source, shape, options)? else {
        let expected = format!("a CFile header of {MAGIC_AND_LENGTH_BYTES} bytes");
        let found = format!("{} bytes", source.size());
        return Err(Error::corrupt(expected, found).at(source.name(), 0, "cfile"));
    };
    let found = walk(&probe);
    let lost = unproven(&probe, &found)?;
    let blocks = in_row_order(found.data, u64::from(u32::MAX));
    let rows = blocks.last().map_or(0, |block| block.rows.end);
    let metadata =
        CFileMetadata { num_values: rows, dictionary: found.dictionary, ..probe.metadata().clone() };
    let mut file = CFile::with_metadata(source, metadata, options)?;
    file.recovered = Some(Recovered { blocks, lost });
    Ok(file)
}

/// A file of this shape that says nothing of its blocks; `None` if there is no room for a header.
fn assumed(source: &SourceRef, shape: &AssumedShape, options: &CFileReaderOptions) -> Result<Option<CFile>> {
    let size = source.size();
    if size < MAGIC_AND_LENGTH_BYTES {
        return Ok(None);
    }
    let checksum_bytes = if shape.has_checksums { CHECKSUM_BYTES } else { 0 };
    let head = source.read_at(0..MAGIC_AND_LENGTH_BYTES)?;
    let (version, start) = match parse_header_start(source.name(), &head) {
        Ok((version, length)) => {
            (version, MAGIC_AND_LENGTH_BYTES.saturating_add(u64::from(length)).saturating_add(checksum_bytes))
        }
        // The header is always the same; a damaged one tells nothing that matters.
        Err(_) => (Version::V2, MAGIC_AND_LENGTH_BYTES.saturating_add(checksum_bytes)),
    };
    let metadata = CFileMetadata::assumed(size, start.min(size), version, shape);
    CFile::with_metadata(Arc::clone(source), metadata, options).map(Some)
}

/// What is left of the file of a column of which type and nullability are known, but neither encoding nor codec: those that the first
/// block fits. `None` if none does.
pub(crate) fn recover_column(
    source: SourceRef,
    field: &Field,
    options: &CFileReaderOptions,
) -> Result<Option<CFile>> {
    let is_array = matches!(field.data_type(), DataType::List(_) | DataType::LargeList(_));
    let data_type = kudu_type(field.data_type())?;
    let mut best: Option<(u64, CFile)> = None;
    for has_checksums in [true, false] {
        for &encoding in data_type.encodings() {
            for &compression in Compression::ALL {
                let is_nullable = field.is_nullable();
                let shape =
                    AssumedShape { data_type, encoding, compression, is_nullable, is_array, has_checksums };
                let Some(probe) = assumed(&source, &shape, options)? else { continue };
                if !has_first_block(&probe) {
                    continue;
                }
                let file = recover(Arc::clone(&source), &shape, options)?;
                // A first block that is stored raw fits every codec.
                let rows = file.metadata().num_values;
                if best.as_ref().is_none_or(|(most, _)| rows > *most) {
                    best = Some((rows, file));
                }
            }
        }
        // A checksum is never right by chance.
        if best.is_some() {
            break;
        }
    }
    Ok(best.map(|(_, file)| file))
}

/// What a footer says that is there all the same, and sound: it knows better than any caller. A damaged header takes
/// nothing away from it.
fn sound_footer(source: &SourceRef, options: &CFileReaderOptions) -> Result<Option<CFileMetadata>> {
    let strict = options.clone().with_verify_checksums(true);
    for options in [strict.clone(), strict.without_header()] {
        match CFileMetadata::read(source.as_ref(), &options) {
            Ok(metadata) => return Ok(Some(metadata)),
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => {}
        }
    }
    Ok(None)
}

/// The data blocks of a file whose footer is lost.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// By row.
    pub blocks: Vec<LocatedBlock>,
    /// Where rows may have been that no block gives and no neighbour tells of.
    pub lost: Vec<LostBytes>,
}

/// Bytes that may have held rows, nobody knows how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostBytes {
    offset: u64,
    expected: String,
    found: String,
}

impl LostBytes {
    /// As an error of the file `name`.
    pub fn error(&self, name: &str) -> Error {
        Error::corrupt(self.expected.clone(), &self.found).at(name, self.offset, "cfile blocks")
    }
}

/// What speaks against all rows having been found. Rows missing between two blocks are told by these; behind the last one only an
/// index can tell that there were no more, because its root is written after all blocks.
fn unproven(file: &CFile, found: &Found) -> Result<Vec<LostBytes>> {
    let metadata = file.metadata();
    let last = found.data.iter().map(|block| block.pointer.end()).max().unwrap_or(metadata.blocks_start);
    let named = found.indexes.iter().rev().find_map(|root| named_blocks(file, found, *root));
    let shape = format!("{} {} {}", metadata.data_type, metadata.encoding, metadata.compression);
    let mut lost = Vec::new();
    for bytes in found.unclaimed.iter().filter(|bytes| bytes.end > last) {
        let is_end = bytes.end == metadata.blocks_end;
        if is_end
            && is_footer_start(
                metadata,
                &file.store.source.read_at(bytes.start..bytes.end.min(bytes.start.saturating_add(64)))?,
            )
        {
            continue;
        }
        // Bytes that the index of all blocks does not name are no data.
        let holds_rows = |named: &Vec<BlockPointer>| {
            named.iter().any(|block| block.offset < bytes.end && block.end() > bytes.start)
        };
        if !is_end && !named.as_ref().is_none_or(holds_rows) {
            continue;
        }
        let hint = if found.data.is_empty() { ": is that what the file holds?" } else { "" };
        lost.push(LostBytes {
            offset: bytes.start,
            expected: format!("blocks of {shape}{hint}"),
            found: format!(
                "{} bytes that are none; how many rows they held is not known",
                bytes.end.saturating_sub(bytes.start)
            ),
        });
    }
    if lost.is_empty() && named.is_none() {
        lost.push(LostBytes {
            offset: last,
            expected: "an index that names all blocks".into(),
            found: "none; whether rows followed the last block is not known".into(),
        });
    }
    Ok(lost)
}

/// The data blocks that the tree under `root` names, if it names all that were found.
fn named_blocks(file: &CFile, found: &Found, root: BlockPointer) -> Option<Vec<BlockPointer>> {
    let entries = IndexTree::new(root, KeyOrder::Any).entries(&file.store).ok()?;
    let named: Vec<_> = entries.into_iter().map(|entry| entry.pointer).collect();
    let places: HashSet<_> = named.iter().copied().collect();
    found.data.iter().all(|block| places.contains(&block.pointer)).then_some(named)
}
