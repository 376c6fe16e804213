//! The way from an encoded key to a row of a rowset.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, Result, RowRanges};

use super::schema::KuduColumn;
use crate::cfile::{CFile, CellCursor, MAX_KEY, MIN_KEY, stored_form};
use crate::key::{self, KeyPart};

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
        // Made longer as rows are read: how many there are is a footer's word.
        let mut keys: Vec<Vec<u8>> = Vec::new();
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
                }
                for (index, key) in (0..values.len()).zip(keys.iter_mut().skip(first)) {
                    let stored = stored_form(&values.slice(index, 1), column.data_type.physical())
                        .ok_or_else(|| Error::corrupt("a key", "a null").at(file.name(), 0, "cfile"))?;
                    key::encode(column.data_type, &stored, part, key)?;
                }
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
                let mut cursor = CellCursor::new(Arc::clone(file), RowRanges::none()).over_damage();
                let values = cursor.read(rows)?;
                (0..values.len()).map(|index| file.encoded_value(&values, index)).collect()
            }
            Self::Keys(keys) => {
                let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX);
                let range = index(rows.start)..index(rows.end);
                let keys = keys.get(range).ok_or_else(|| Error::invalid("rows that are not there"))?;
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
                keys.pop().ok_or_else(|| Error::invalid("a row that is not there"))
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
