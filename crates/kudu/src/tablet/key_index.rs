//! The way from an encoded key to a row of a rowset.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, Result, RowRanges};

use super::schema::KuduColumn;
use crate::cfile::{CFile, CellCursor, MAX_KEY, MIN_KEY, stored_form};
use crate::key::{self, KeyPart};

/// What a key takes besides its bytes.
const KEY_BYTES: u64 = size_of::<Vec<u8>>() as u64;
/// Rows read at once where keys are made again.
const STRETCH_ROWS: u64 = 8192;

/// Finds rows by key.
#[derive(Debug)]
pub(crate) enum KeyIndex {
    /// The file of the only key column, or the index of a compound key.
    File(Arc<CFile>),
    /// All keys in order, made again from the key columns because the index of the compound key is lost.
    Keys(Vec<Vec<u8>>),
}

impl KeyIndex {
    /// Makes the keys again from the columns, which have as many rows each.
    pub fn from_columns(columns: &[(KuduColumn, Arc<CFile>)]) -> Result<Self> {
        let rows = columns.first().map_or(0, |(_, file)| file.metadata().num_values);
        // Made longer as rows are read: how many there are is a footer's word. And even rows that are there may be more than fit: a few bytes
        // of runs are millions.
        let mut keys: Vec<Vec<u8>> = Vec::new();
        let mut held = 0u64;
        for (number, (column, file)) in columns.iter().enumerate() {
            let is_last = number.saturating_add(1) == columns.len();
            let part = if is_last { KeyPart::Last } else { KeyPart::NotLast };
            let mut cursor = CellCursor::new(Arc::clone(file), RowRanges::one(0..rows)).over_damage();
            let mut start = 0;
            while start < rows {
                let end = start.saturating_add(STRETCH_ROWS).min(rows);
                let values = cursor.read(start..end)?;
                let first = usize::try_from(start).unwrap_or(usize::MAX);
                if number == 0 {
                    keys.resize_with(first.saturating_add(values.len()), Vec::new);
                    held = held.saturating_add((values.len() as u64).saturating_mul(KEY_BYTES));
                }
                for (index, key) in (0..values.len()).zip(keys.iter_mut().skip(first)) {
                    let stored = stored_form(&values.slice(index, 1), column.data_type.physical())
                        .ok_or_else(|| Error::corrupt("a key", "a null").at(file.name(), 0, "cfile"))?;
                    key::encode(column.data_type, &stored, part, key)?;
                    held = held.saturating_add(stored.len() as u64);
                }
                file.store.limits.record_file(held).at(file.name(), 0, "keys of a rowset")?;
                start = end;
            }
        }
        if keys.is_sorted() {
            Ok(Self::Keys(keys))
        } else {
            Err(Error::corrupt("rows in key order", "others"))
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> u64 {
        match self {
            Self::File(file) => file.metadata().num_values,
            Self::Keys(keys) => keys.len() as u64,
        }
    }

    /// Encoded keys of the first and the last row.
    pub fn key_range(&self) -> Option<(Bytes, Bytes)> {
        match self {
            Self::File(file) => {
                let metadata = file.metadata();
                Some((metadata.pair(MIN_KEY)?.clone(), metadata.pair(MAX_KEY)?.clone()))
            }
            Self::Keys(keys) => {
                Some((Bytes::copy_from_slice(keys.first()?), Bytes::copy_from_slice(keys.last()?)))
            }
        }
    }

    /// The encoded keys of `rows`.
    pub fn keys_of(&self, rows: Range<u64>) -> Result<Vec<Vec<u8>>> {
        match self {
            Self::File(file) => {
                let cursor = CellCursor::new(Arc::clone(file), RowRanges::none());
                let values = cursor.over_damage().unbounded().read(rows)?;
                (0..values.len()).map(|index| file.encoded_value(&values, index)).collect()
            }
            Self::Keys(keys) => {
                let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
                let range = index(rows.start)..index(rows.end);
                let keys = keys.get(range).ok_or_else(|| Error::internal("rows that are not there"))?;
                Ok(keys.to_vec())
            }
        }
    }

    /// The encoded key of a row.
    pub fn key_of(&self, row: u64) -> Result<Vec<u8>> {
        match self {
            Self::File(file) => {
                let mut cursor = CellCursor::new(Arc::clone(file), RowRanges::none());
                file.encoded_value(&cursor.read(row..row.saturating_add(1))?, 0)
            }
            Self::Keys(_) => {
                let mut keys = self.keys_of(row..row.saturating_add(1))?;
                keys.pop().ok_or_else(|| Error::internal("a row that is not there"))
            }
        }
    }

    /// The first row whose key is at least `key`, and whether it is that key.
    pub fn row_of_key(&self, key: &[u8]) -> Result<(u64, bool)> {
        match self {
            Self::File(file) => file.row_of_key(key),
            Self::Keys(keys) => Ok(match keys.binary_search_by(|known| known.as_slice().cmp(key)) {
                Ok(row) => (row as u64, true),
                Err(row) => (row as u64, false),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int32Array};
    use arrow_schema::{DataType, Field};
    use pilaster_core::Limits;
    use pilaster_core::source::MemorySource;

    use super::*;
    use crate::cfile::{CFileReaderOptions, CFileWriter, CFileWriterOptions, KuduType};

    fn key_column(limits: Limits) -> (KuduColumn, Arc<CFile>) {
        let field = Field::new("k", DataType::Int32, false);
        let mut writer = CFileWriter::try_new(Vec::new(), &field, CFileWriterOptions::default()).unwrap();
        let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..20_000));
        writer.write_array(&array).unwrap();
        let (bytes, _) = writer.finish().unwrap();
        let options = CFileReaderOptions::default().with_field(field).with_limits(limits);
        let file = CFile::open(Arc::new(MemorySource::new("k", bytes)), &options).unwrap();
        let column = KuduColumn { is_key: true, ..KuduColumn::nameless(0, KuduType::Int32) };
        (column, Arc::new(file))
    }

    #[test]
    fn keys_are_made_again_within_limits() {
        let keys = KeyIndex::from_columns(&[key_column(Limits::default())]).unwrap();
        assert_eq!(
            (keys.rows(), keys.row_of_key(&keys.key_of(12_345).unwrap()).unwrap()),
            (20_000, (12_345, true))
        );
        let small = Limits { record_file_bytes: 100_000, ..Limits::default() };
        let error = KeyIndex::from_columns(&[key_column(small)]).unwrap_err().to_string();
        assert!(error.contains("record_file_bytes"), "{error}");
    }
}
