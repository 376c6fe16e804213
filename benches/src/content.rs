//! What rows hold, as one number, so that formats can be compared before they are timed.

use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{ArrowError, DataType};

use crate::Result;

/// Rows, a checksum of all values at their places, and the bytes the values take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Content {
    pub rows: usize,
    pub checksum: u64,
    /// Fixed-width values as wide as Arrow has them, text with a 4-byte offset: the same for every layout of text.
    pub bytes: u64,
}

impl Content {
    /// Reads everything.
    pub fn of(batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>) -> Result<Self> {
        let mut content = Self::default();
        for batch in batches {
            let batch = batch?;
            let first = content.rows as u64;
            let places: Vec<u64> = (first..).take(batch.num_rows()).collect();
            for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
                content.add(field.name(), column, &places)?;
            }
            content.rows = content.rows.saturating_add(batch.num_rows());
        }
        Ok(content)
    }

    /// Adds the values of a column; each has a place that is the same in whatever batch it comes.
    fn add(&mut self, name: &str, column: &ArrayRef, places: &[u64]) -> Result<()> {
        if let Some(list) = column.as_list_opt::<i32>() {
            return self.add_list(name, list, places);
        }
        if let Some(group) = column.as_struct_opt() {
            for (field, column) in group.fields().iter().zip(group.columns()) {
                self.add(&format!("{name}.{}", field.name()), column, places)?;
            }
            return Ok(());
        }
        let mut add = |row: usize, value: &[u8]| {
            let mut hasher = DefaultHasher::new();
            hasher.write(name.as_bytes());
            hasher.write_u64(places.get(row).copied().unwrap_or_default());
            hasher.write(value);
            self.checksum = self.checksum.wrapping_add(hasher.finish());
        };
        if let Some(width) = column.data_type().primitive_width() {
            let data = column.to_data();
            let values = data.buffers().first().ok_or("a column without values")?;
            let start = data.offset().saturating_mul(width);
            let end = start.saturating_add(data.len().saturating_mul(width));
            let values = values.get(start..end).ok_or("a column that is too short")?;
            values.chunks_exact(width).enumerate().for_each(|(row, value)| add(row, value));
            self.bytes = self.bytes.saturating_add(values.len() as u64);
        } else {
            let views = cast(column, &DataType::Utf8View)?;
            let mut bytes = 0u64;
            for (row, value) in views.as_string_view().iter().enumerate() {
                let value = value.unwrap_or_default();
                add(row, value.as_bytes());
                bytes = bytes.saturating_add(value.len() as u64).saturating_add(4);
            }
            self.bytes = self.bytes.saturating_add(bytes);
        }
        Ok(())
    }

    /// Lengths, and elements at the place of their list and their number in it.
    fn add_list(&mut self, name: &str, list: &ListArray, places: &[u64]) -> Result<()> {
        let lengths: ArrayRef =
            Arc::new(list.offsets().lengths().map(i64::try_from).collect::<Result<Int64Array, _>>()?);
        self.add(&format!("{name}.length"), &lengths, places)?;
        let offsets = list.value_offsets();
        let (start, end) = (offsets.first().ok_or("no offsets")?, offsets.last().ok_or("no offsets")?);
        let start = usize::try_from(*start)?;
        let values = list.values().slice(start, usize::try_from(*end)?.saturating_sub(start));
        let inside = list.offsets().lengths().zip(places);
        let places: Vec<u64> =
            inside.flat_map(|(length, place)| (place.wrapping_mul(1 << 20)..).take(length)).collect();
        self.add(name, &values, &places)
    }
}
