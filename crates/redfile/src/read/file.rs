//! An open file: footer, schema, data files, and the way to each column chunk.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::DataType;
use pilaster_core::error::AtPosition;
use pilaster_core::source::TailSource;
use pilaster_core::{Error, Result, SourceRef};

use super::chunk::Chunk;
use super::options::{RedfileReaderOptions, beside};
use crate::metadata::{
    ColumnChunk, ColumnMetadata, FOOTER_PART, FileMetadata, RowGroup, check_head, checksums,
};
use crate::recover::RecoveryReport;
use crate::schema::{Leaf, RedfileSchema};

/// Footers of usual size are found by one read.
const TAIL_READ_BYTES: u64 = 64 << 10;
/// Bytes in which the metadata of a chunk usually fits.
const COLUMN_METADATA_BYTES: u64 = 1 << 10;

pub(crate) const COLUMN_PART: &str = "redfile column metadata";

/// What all readers of an open file share.
#[derive(Debug)]
pub(crate) struct RedFile {
    pub source: SourceRef,
    pub metadata: FileMetadata,
    pub schema: RedfileSchema,
    pub options: RedfileReaderOptions,
    /// The first row of each row group, and the number of all rows.
    pub first_rows: Vec<u64>,
    /// What each column becomes in Arrow.
    leaf_types: Vec<DataType>,
    /// Whether damage to what nobody needs is ignored.
    pub is_tolerant: bool,
    /// What a recovery found, if the file was opened by one.
    pub recovery: Option<RecoveryReport>,
    data_files: Mutex<HashMap<String, SourceRef>>,
}

impl RedFile {
    pub fn open(source: SourceRef, options: &RedfileReaderOptions) -> Result<Self> {
        let source: SourceRef = Arc::new(TailSource::read(source, TAIL_READ_BYTES)?);
        let metadata = FileMetadata::read(source.as_ref(), &options.limits)?;
        check_head(source.as_ref())?;
        Self::with_metadata(source, metadata, options)
    }

    pub fn with_metadata(
        source: SourceRef,
        metadata: FileMetadata,
        options: &RedfileReaderOptions,
    ) -> Result<Self> {
        let at = source.size();
        let schema = RedfileSchema::from_elements(metadata.schema.clone(), metadata.key_values.as_deref())
            .map_err(|error| Error::from(error).at(source.name(), at, FOOTER_PART))?;
        let columns = schema.leaves().len();
        if let Some(group) = metadata.row_groups.iter().find(|group| group.columns.len() != columns) {
            return Err(Error::corrupt(format!("row groups of {columns} columns"), group.columns.len()).at(
                source.name(),
                at,
                FOOTER_PART,
            ));
        }
        let mut leaf_types = Vec::with_capacity(columns);
        schema.shapes().iter().for_each(|shape| super::assemble::leaf_types(shape, &mut leaf_types));
        let mut first_rows = vec![0u64];
        let mut rows = 0u64;
        for group in &metadata.row_groups {
            rows = rows.saturating_add(group.rows());
            first_rows.push(rows);
        }
        Ok(Self {
            source,
            metadata,
            schema,
            options: options.clone(),
            first_rows,
            leaf_types,
            is_tolerant: false,
            recovery: None,
            data_files: Mutex::new(HashMap::new()),
        })
    }

    pub fn name(&self) -> &str {
        self.source.name()
    }

    pub fn rows(&self) -> u64 {
        self.first_rows.last().copied().unwrap_or_default()
    }

    pub fn group(&self, number: usize) -> Result<&RowGroup> {
        let groups = &self.metadata.row_groups;
        groups
            .get(number)
            .ok_or_else(|| Error::invalid(format!("no row group {number}: there are {}", groups.len())))
    }

    pub fn leaf(&self, number: usize) -> Result<&Leaf> {
        let leaves = self.schema.leaves();
        leaves
            .get(number)
            .ok_or_else(|| Error::invalid(format!("no column {number}: there are {}", leaves.len())))
    }

    /// What a column becomes in Arrow.
    pub fn leaf_type(&self, number: usize) -> Result<&DataType> {
        self.leaf_types.get(number).ok_or_else(|| Error::internal(format!("no column {number}")))
    }

    /// The rows of a row group among all rows.
    pub fn group_rows(&self, number: usize) -> Range<u64> {
        let at = |number: usize| self.first_rows.get(number).copied().unwrap_or(self.rows());
        at(number)..at(number.saturating_add(1))
    }

    /// The row group of a row.
    pub fn group_of(&self, row: u64) -> usize {
        self.first_rows.partition_point(|first| *first <= row).saturating_sub(1)
    }

    fn column(&self, group: usize, leaf: usize) -> Result<&ColumnChunk> {
        let columns = &self.group(group)?.columns;
        columns.get(leaf).ok_or_else(|| Error::invalid(format!("no column {leaf}")))
    }

    /// The file that holds a chunk.
    pub fn data_file(&self, column: &ColumnChunk) -> Result<SourceRef> {
        let Some(path) = &column.file_path else { return Ok(Arc::clone(&self.source)) };
        let mut files = self.data_files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = files.get(path) {
            return Ok(Arc::clone(known));
        }
        if !self.options.any_path {
            check_path(path).at(self.name(), self.source.size(), FOOTER_PART)?;
        }
        let opened = match &self.options.open_file {
            Some(open) => open(path),
            None => beside(self.name())(path),
        }?;
        if !self.is_tolerant {
            check_head(opened.as_ref())?;
        }
        files.insert(path.clone(), Arc::clone(&opened));
        Ok(opened)
    }

    /// The bytes of all files that belong to it, as far as they can be opened.
    pub fn size_bytes(&self) -> u64 {
        let mut paths = hashbrown::HashSet::new();
        let elsewhere = self.metadata.row_groups.iter().flat_map(|group| &group.columns);
        let others: u64 = elsewhere
            .filter(|column| column.file_path.as_ref().is_some_and(|path| paths.insert(path.clone())))
            .filter_map(|column| self.data_file(column).ok())
            .map(|file| file.size())
            .sum();
        self.source.size().saturating_add(others)
    }

    /// A chunk, through the replica of its metadata if there is one.
    pub fn chunk(&self, group: usize, leaf: usize) -> Result<Chunk> {
        let column = self.column(group, leaf)?;
        let metadata = match &column.metadata {
            Some(replica) => replica.clone(),
            None => self.metadata_behind(group, leaf)?,
        };
        self.chunk_of(group, leaf, metadata)
    }

    /// A chunk whose metadata is known.
    pub fn chunk_of(&self, group: usize, leaf: usize, metadata: ColumnMetadata) -> Result<Chunk> {
        let column = self.column(group, leaf)?;
        let source = self.data_file(column)?;
        let rows = self.group(group)?.rows();
        let described = self.leaf(leaf)?;
        let at = u64::try_from(column.file_offset).unwrap_or_default();
        check_column(&metadata, column, described, &source).at(source.name(), at, COLUMN_PART)?;
        let start = u64::try_from(metadata.start()).unwrap_or_default();
        Ok(Chunk {
            source,
            start,
            end: at,
            metadata,
            group,
            leaf,
            rows,
            has_page_crc: self.metadata.promises(checksums::PAGE),
            has_header_crc: self.metadata.promises(checksums::PAGE_HEADER),
            verify_checksums: self.options.verify_checksums,
            limits: self.options.limits.clone(),
        })
    }

    /// The metadata that stands behind a chunk.
    pub fn metadata_behind(&self, group: usize, leaf: usize) -> Result<ColumnMetadata> {
        let column = self.column(group, leaf)?;
        let source = self.data_file(column)?;
        let at = u64::try_from(column.file_offset).unwrap_or_default();
        let left = source.size().saturating_sub(at);
        let most = left.min(self.options.limits.metadata_bytes);
        let mut length = COLUMN_METADATA_BYTES.min(most);
        loop {
            let bytes = source.read_at(at..at.saturating_add(length))?;
            match ColumnMetadata::parse_at_start(&bytes) {
                Ok((metadata, _)) if metadata.has_crc || !self.metadata.promises(checksums::COLUMN) => {
                    return Ok(metadata);
                }
                Ok(_) => {
                    return Err(Error::corrupt("a checksum, as the file metadata promises", "none").at(
                        source.name(),
                        at,
                        COLUMN_PART,
                    ));
                }
                // It may be longer than what was read.
                Err(_) if length < most => length = length.saturating_mul(16).min(most),
                Err(error) => return Err::<ColumnMetadata, _>(error).at(source.name(), at, COLUMN_PART),
            }
        }
    }
}

/// Refuses a path that could lead out of the folder.
fn check_path(path: &str) -> Result<()> {
    let is_bad = |part: &str| matches!(part, "" | "." | "..");
    if path.contains(['\\', ':', '\0']) || path.split('/').any(is_bad) {
        let expected = "the path of a data file beside or below this one";
        return Err(Error::corrupt(expected, format!("\"{}\"", path.escape_debug())));
    }
    Ok(())
}

fn check_column(
    metadata: &ColumnMetadata,
    column: &ColumnChunk,
    leaf: &Leaf,
    source: &SourceRef,
) -> Result<()> {
    if metadata.physical_type != leaf.physical_type {
        return Err(Error::corrupt(
            format!("{}, as the schema says", leaf.physical_type),
            metadata.physical_type,
        ));
    }
    if metadata.path != leaf.path {
        let expected = format!("column \"{}\", as the schema says", leaf.name());
        return Err(Error::corrupt(expected, format!("\"{}\"", metadata.path.join("."))));
    }
    let start = metadata.start();
    if start < 4 {
        return Err(Error::corrupt("a chunk from byte 4 on", start));
    }
    let end = start.checked_add(metadata.total_compressed_size);
    if end != Some(column.file_offset) {
        let found = end.map_or("a larger number".to_string(), |end| end.to_string());
        return Err(Error::corrupt(format!("a chunk that ends at byte {}", column.file_offset), found));
    }
    if end.is_none_or(|end| end.cast_unsigned() > source.size()) {
        return Err(Error::corrupt("a chunk inside the file", format!("a file of {} bytes", source.size())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for path in ["a", "a/b.reddata", "..a/b", "é"] {
            assert!(check_path(path).is_ok(), "{path}");
        }
        for path in ["", "/a", "a//b", "../a", "a/..", "a/./b", "a\\b", "c:a", "a\0", "a/"] {
            assert!(check_path(path).is_err(), "{path}");
        }
    }
}
