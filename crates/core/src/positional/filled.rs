//! A column whose lost cells are null.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, new_null_array};
use arrow_schema::DataType;
use arrow_select::concat::concat;

use super::ColumnCursor;
use crate::error::{Error, Result};
use crate::rows::RowRanges;
use crate::salvage::LossLog;

/// Gives null for the cells that `inner` cannot read, and notes them: rows of which only these are lost are kept.
pub struct FilledCursor {
    inner: Box<dyn ColumnCursor>,
    column: String,
    data_type: DataType,
    losses: Arc<LossLog>,
    /// Of the rows that were probed last, those whose cells are lost.
    lost: RowRanges,
}

impl FilledCursor {
    /// `inner` reads a column of this name and type, which may be null.
    pub fn new(
        inner: Box<dyn ColumnCursor>,
        column: impl Into<String>,
        data_type: DataType,
        losses: Arc<LossLog>,
    ) -> Self {
        Self { inner, column: column.into(), data_type, losses, lost: RowRanges::none() }
    }

    fn lost_of(&self, rows: &Range<u64>) -> RowRanges {
        self.lost.intersect(&RowRanges::one(rows.clone()))
    }

    fn nulls(&self, rows: &Range<u64>) -> ArrayRef {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or_default();
        new_null_array(&self.data_type, count)
    }
}

impl ColumnCursor for FilledCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let lost = self.lost_of(&rows);
        if lost.is_empty() {
            return self.inner.read(rows);
        }
        let mut pieces = Vec::new();
        let mut at = rows.start;
        for range in lost.as_slice() {
            if at < range.start {
                pieces.push(self.inner.read(at..range.start)?);
            }
            pieces.push(self.nulls(range));
            at = range.end;
        }
        if at < rows.end {
            pieces.push(self.inner.read(at..rows.end)?);
        }
        let pieces: Vec<&dyn Array> = pieces.iter().map(AsRef::as_ref).collect();
        Ok(concat(&pieces)?)
    }

    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        match self.lost_of(&rows).is_empty() {
            true => self.inner.read_for_filter(rows),
            false => self.read(rows),
        }
    }

    fn block(&self, row: u64) -> Option<Range<u64>> {
        self.inner.block(row)
    }

    fn placeholders(&self, values: &dyn Array) -> Option<BooleanArray> {
        self.inner.placeholders(values)
    }

    fn refuse_placeholder(&self, column: &str, row: u64) -> Error {
        self.inner.refuse_placeholder(column, row)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let mut lost = Vec::new();
        for (stretch, damage) in self.inner.probe(rows.clone()) {
            let stretch = stretch.start.max(rows.start)..stretch.end.min(rows.end);
            if let Some(error) = damage.filter(|_| stretch.start < stretch.end) {
                self.losses.record(stretch.clone(), Some(&self.column), &error);
                lost.push(stretch);
            }
        }
        self.lost = lost.into_iter().collect();
        vec![(rows, None)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    /// Row numbers, of which those from 10 on up to 20 are lost.
    struct Holed;

    impl ColumnCursor for Holed {
        fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
            if rows.start < 20 && rows.end > 10 {
                return Err(Error::corrupt("values", "a hole"));
            }
            Ok(Arc::new(rows.map(|row| row as i64).collect::<Int64Array>()))
        }

        fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
            let parts = [(0..10, false), (10..20, true), (20..u64::MAX, false)];
            let cut = |part: &Range<u64>| part.start.max(rows.start)..part.end.min(rows.end);
            let error = |is_lost: bool| is_lost.then(|| Error::corrupt("values", "a hole"));
            let parts = parts.iter().map(|(part, is_lost)| (cut(part), error(*is_lost)));
            parts.filter(|(part, _)| part.start < part.end).collect()
        }
    }

    #[test]
    fn lost_cells_are_null_and_noted() {
        let losses = Arc::new(LossLog::new());
        let mut cursor = FilledCursor::new(Box::new(Holed), "n", DataType::Int64, Arc::clone(&losses));
        for rows in [0..8, 8..16, 16..24, 24..30] {
            assert!(cursor.probe(rows.clone()).iter().all(|(_, damage)| damage.is_none()));
            let values = cursor.read(rows.clone()).unwrap();
            let found: Vec<_> = values.as_primitive::<Int64Type>().iter().collect();
            let expected = rows.map(|row| (!(10..20).contains(&row)).then_some(row as i64));
            assert_eq!(found, expected.collect::<Vec<_>>());
        }
        assert_eq!(losses.losses().len(), 1);
    }
}
