//! Encoded keys of many rows, end to end.

use arrow_array::ArrayRef;
use pilaster_core::{Error, Result};

use crate::cfile::{KuduType, Stored};
use crate::key::{self, KeyPart};

/// The encoded keys of some rows in one buffer.
#[derive(Debug, Default)]
pub(super) struct KeyRows {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// A column of a key, as a CFile stores its values.
#[derive(Debug)]
pub(super) struct KeyColumn {
    data_type: KuduType,
    stored: Stored,
}

impl KeyColumn {
    pub fn new(data_type: KuduType, array: &ArrayRef) -> Result<Self> {
        Ok(Self { data_type, stored: Stored::new(array, data_type.physical())? })
    }

    /// The stored form of a value.
    pub fn cell(&self, row: usize) -> Option<&[u8]> {
        self.stored.value(row)
    }
}

impl KeyRows {
    /// The keys of `rows` rows over these columns, which have no nulls.
    pub fn encode(columns: &[&KeyColumn], rows: usize) -> Result<Self> {
        let mut keys = Self { bytes: Vec::new(), ends: Vec::with_capacity(rows) };
        for row in 0..rows {
            for (index, column) in columns.iter().enumerate() {
                let is_last = index.saturating_add(1) == columns.len();
                let part = if is_last { KeyPart::Last } else { KeyPart::NotLast };
                let value =
                    column.stored.value(row).ok_or_else(|| Error::internal("a key without a value"))?;
                key::encode(column.data_type, value, part, &mut keys.bytes)?;
            }
            keys.ends.push(keys.bytes.len());
        }
        Ok(keys)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key of a row; empty if there is no such row.
    pub fn get(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(row).copied().unwrap_or(start);
        self.bytes.get(start..end).unwrap_or_default()
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }
}
