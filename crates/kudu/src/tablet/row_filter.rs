//! A predicate on rows whose columns begin with those it speaks of.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{Schema, SchemaRef};
use arrow_select::filter::{FilterBuilder, prep_null_mask_filter};
use pilaster_core::predicate::BoundPredicate;
use pilaster_core::{Predicate, Result};

use super::schema::KuduColumn;

/// A predicate bound to the columns it reads.
#[derive(Debug, Clone)]
pub(crate) struct RowFilter {
    predicate: Predicate,
    bound: BoundPredicate,
    schema: SchemaRef,
}

impl RowFilter {
    /// For rows that begin with `columns`, which are all the predicate needs.
    pub fn new(predicate: &Predicate, columns: &[KuduColumn]) -> Result<Self> {
        let fields = columns.iter().map(|column| column.field().with_nullable(true));
        let schema = Schema::new(fields.collect::<Vec<_>>());
        Ok(Self { predicate: predicate.clone(), bound: predicate.bind(&schema)?, schema: Arc::new(schema) })
    }

    /// The same predicate for rows that begin with other columns.
    pub fn over(&self, columns: &[KuduColumn]) -> Result<Self> {
        Self::new(&self.predicate, columns)
    }

    /// How many columns rows must begin with.
    pub fn width(&self) -> usize {
        self.schema.fields().len()
    }

    /// Which of `count` rows the predicate is true for.
    pub fn matches(&self, arrays: &[ArrayRef], count: usize) -> Result<BooleanBuffer> {
        let arrays = arrays.iter().take(self.width()).cloned().collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        let matches = self.bound.evaluate(&batch)?;
        let matches = if matches.null_count() > 0 { prep_null_mask_filter(&matches) } else { matches };
        Ok(matches.values().clone())
    }
}

/// Those rows of `arrays` that `kept` has a one for.
pub(crate) fn keep_rows(arrays: Vec<ArrayRef>, kept: &BooleanBuffer) -> Result<Vec<ArrayRef>> {
    if kept.count_set_bits() == kept.len() {
        return Ok(arrays);
    }
    let filter = FilterBuilder::new(&BooleanArray::new(kept.clone(), None)).optimize().build();
    arrays.iter().map(|array| Ok(filter.filter(array)?)).collect()
}

/// The bits of `of` where `kept` has a one.
pub(crate) fn keep_bits(of: &BooleanBuffer, kept: &BooleanBuffer) -> BooleanBuffer {
    kept.set_indices().map(|bit| of.value(bit)).collect()
}

/// From the first one to behind the last one; `None` if there is none.
pub(crate) fn span(bits: &BooleanBuffer) -> Option<std::ops::Range<usize>> {
    let mut slices = bits.set_slices();
    let (start, end) = slices.next()?;
    Some(start..slices.last().map_or(end, |(_, end)| end))
}
