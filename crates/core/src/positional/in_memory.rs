//! Rows that are in memory already, as columns to be scanned.

use std::ops::Range;

use arrow_array::{Array, ArrayRef, RecordBatch};

use super::{ColumnCursor, Columns};
use crate::error::{Error, Result};
use crate::rows::RowRanges;

/// The columns of a batch: directories and catalogs are small, and read whole.
#[derive(Debug, Clone)]
pub struct InMemory(pub RecordBatch);

impl Columns for InMemory {
    fn open(&self, column: usize, _wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let values = self.0.columns().get(column).cloned();
        Ok(Box::new(Values(values.ok_or_else(|| Error::internal(format!("no column number {column}")))?)))
    }
}

struct Values(ArrayRef);

impl ColumnCursor for Values {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let index = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(self.0.len());
        let (start, end) = (index(rows.start), index(rows.end));
        Ok(self.0.slice(start, end.saturating_sub(start)))
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        vec![(rows, None)]
    }
}
