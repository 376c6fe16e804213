//! What the rows of a CFile are: cells of a column, changes of a delta file, or the blocks of a bloom file.

use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use pilaster_core::fitting::Held;
use pilaster_core::positional::{ColumnCursor, Columns};
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::bloom::BloomBlock;
use super::cursor::CellCursor;
use super::file::CFile;
use super::index::IndexEntry;
use super::metadata::CFileMetadata;
use crate::key::decode_ordered_varint;

/// What the rows of a CFile are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CFileKind {
    /// The cells of a column, or the keys of a compound-key index.
    Column,
    /// The changes of a delta file: row, timestamp, and the raw list of changes.
    Delta,
    /// The blocks of a bloom file: first key, number of hash functions, bits.
    Bloom,
}

impl CFileKind {
    pub(crate) fn of(metadata: &CFileMetadata) -> Self {
        if metadata.is_delta_file() {
            Self::Delta
        } else if metadata.is_bloom_file() {
            Self::Bloom
        } else {
            Self::Column
        }
    }

    /// The columns a file of this kind is read as.
    pub(crate) fn schema(self, file: &CFile) -> SchemaRef {
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        Arc::new(match self {
            Self::Column => Schema::new(vec![Arc::clone(&file.field)]),
            Self::Delta => Schema::new(vec![
                field("row", DataType::UInt64),
                field("timestamp", DataType::UInt64),
                field("changes", DataType::BinaryView),
            ]),
            Self::Bloom => Schema::new(vec![
                field("first_key", DataType::BinaryView),
                field("hash_functions", DataType::UInt32),
                field("bits", DataType::BinaryView),
            ]),
        })
    }
}

/// The columns of one CFile.
#[derive(Debug)]
pub(crate) struct CFileColumns {
    pub file: Arc<CFile>,
    pub kind: CFileKind,
    pub memory: ScanMemory,
}

impl Columns for CFileColumns {
    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let cells = || CellCursor::new(Arc::clone(&self.file), wanted.clone()).within(&self.memory);
        Ok(match self.kind {
            CFileKind::Column => Box::new(cells()),
            CFileKind::Delta => Box::new(DeltaCursor { cells: cells(), column }),
            CFileKind::Bloom => {
                Box::new(BloomCursor { file: Arc::clone(&self.file), column, entries: OnceCell::new() })
            }
        })
    }

    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }
}

/// One of the three columns of a delta file, cut out of its values: `ordered varint row | ordered varint timestamp |
/// list of changes`.
#[derive(Debug)]
struct DeltaCursor {
    cells: CellCursor,
    column: usize,
}

impl ColumnCursor for DeltaCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let values = self.cells.read(rows)?;
        let in_file = |error: Error| self.cells.in_block(error);
        let values = delta_values(&values).map_err(in_file)?;
        let mut numbers = Vec::with_capacity(values.len());
        let mut changes = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let value = values.value(row);
            let mut at = 0;
            let row = decode_ordered_varint(value, &mut at).map_err(in_file)?;
            let timestamp = decode_ordered_varint(value, &mut at).map_err(in_file)?;
            numbers.push(if self.column == 0 { row } else { timestamp });
            changes.push(value.get(at..).unwrap_or_default());
        }
        Ok(match self.column {
            0 | 1 => Arc::new(UInt64Array::from(numbers)),
            _ => Arc::new(BinaryViewArray::from_iter_values(changes)),
        })
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let mut probed = Vec::new();
        for (stretch, damage) in self.cells.probe(rows) {
            // A value that is no change is lost with the block it lies in, as one that cannot be decoded is.
            let damage = damage.or_else(|| self.read(stretch.clone()).err());
            probed.push((stretch, damage));
        }
        probed
    }
}

/// The values of a delta file: bytes, each of them there.
pub(crate) fn delta_values(values: &ArrayRef) -> Result<&BinaryViewArray> {
    values
        .as_binary_view_opt()
        .filter(|values| values.null_count() == 0)
        .ok_or_else(|| Error::corrupt("changes of rows", format!("{} values, some null", values.data_type())))
}

/// One of the three columns of a bloom file; its rows are its blocks.
#[derive(Debug)]
struct BloomCursor {
    file: Arc<CFile>,
    column: usize,
    /// Read when the first row is.
    entries: OnceCell<Vec<IndexEntry>>,
}

impl BloomCursor {
    fn blocks(&self, rows: &Range<u64>) -> Result<Vec<BloomBlock>> {
        let entries = match self.entries.get() {
            Some(entries) => entries,
            None => {
                let entries = bloom_entries(&self.file)?;
                self.entries.get_or_init(|| entries)
            }
        };
        let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
        let wanted = entries
            .get(index(rows.start)..index(rows.end))
            .ok_or_else(|| Error::internal(format!("blocks {rows:?} of {}", entries.len())))?;
        let mut held = Held::default();
        let read = |entry| {
            let block = BloomBlock::read(&self.file, entry)?;
            held.add(block.bits.len() as u64, &self.file.shape.limits)?;
            Ok(block)
        };
        wanted.iter().map(read).collect()
    }
}

/// The entries of the value index of a bloom file, one for each block.
pub(crate) fn bloom_entries(file: &CFile) -> Result<Vec<IndexEntry>> {
    match &file.by_value {
        Some(tree) => tree.entries(&file.store),
        None => Ok(Vec::new()),
    }
}

impl ColumnCursor for BloomCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let blocks = self.blocks(&rows)?;
        Ok(match self.column {
            0 => Arc::new(BinaryViewArray::from_iter_values(blocks.iter().map(|block| &block.first_key))),
            1 => Arc::new(UInt32Array::from_iter_values(blocks.iter().map(|block| block.hash_functions))),
            _ => Arc::new(BinaryViewArray::from_iter_values(blocks.iter().map(|block| &block.bits))),
        })
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        rows.map(|row| {
            let rows = row..row.saturating_add(1);
            let damage = self.blocks(&rows).err();
            (rows, damage)
        })
        .collect()
    }
}
