//! The rows of a batch that a predicate selects.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};
use arrow_select::filter::prep_null_mask_filter;
use arrow_select::take::take;

use super::ColumnCursor;
use crate::error::{Error, Result};
use crate::predicate::BoundPredicate;

/// A predicate and the columns it compares.
pub(super) struct Filter {
    bound: BoundPredicate,
    /// Numbers of the columns in the dataset.
    indexes: Vec<usize>,
    pub(super) columns: Vec<Box<dyn ColumnCursor>>,
    pub(super) names: Vec<String>,
    compared: Compared,
}

/// What the filter read last.
#[derive(Default)]
struct Compared {
    first_row: u64,
    arrays: Vec<ArrayRef>,
}

pub(super) enum Selection {
    None,
    All,
    /// The rows from the first to the last selected one, and which of them are.
    Some(Range<u64>, BooleanArray),
}

impl Filter {
    /// Of `columns`, which are numbers `indexes` of the dataset.
    pub(super) fn new(
        bound: BoundPredicate,
        indexes: Vec<usize>,
        columns: Vec<Box<dyn ColumnCursor>>,
        names: Vec<String>,
    ) -> Self {
        Self { bound, indexes, columns, names, compared: Compared::default() }
    }

    /// Which of the compared columns is number `index` of the dataset.
    pub(super) fn position(&self, index: usize) -> Option<usize> {
        self.indexes.iter().position(|&compared| compared == index)
    }

    /// The values of `rows`, which lie among those that were compared last, as `data_type`.
    pub(super) fn read(
        &mut self,
        position: usize,
        rows: &Range<u64>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let missing = || Error::internal(format!("no compared column number {position}"));
        let array = self.compared.arrays.get(position).ok_or_else(missing)?;
        let index =
            |row: u64| usize::try_from(row.saturating_sub(self.compared.first_row)).unwrap_or(usize::MAX);
        let (start, end) = (index(rows.start), index(rows.end));
        let length = end.saturating_sub(start);
        if array.data_type() == data_type {
            return Ok(array.slice(start, length));
        }
        if let Some(words) =
            array.as_any_dictionary_opt().filter(|words| words.values().data_type() == data_type)
        {
            return Ok(take(words.values(), &words.keys().slice(start, length), None)?);
        }
        self.columns.get_mut(position).ok_or_else(missing)?.read(rows.clone())
    }

    /// Reads the compared columns of `rows` and compares them.
    pub(super) fn select(&mut self, rows: &Range<u64>) -> Result<Selection> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        let arrays =
            self.columns.iter_mut().map(|c| c.read_for_filter(rows.clone())).collect::<Result<Vec<_>>>()?;
        let fields: Vec<_> = self
            .names
            .iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(name, array.data_type().clone(), true))
            .collect();
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?;
        self.compared = Compared { first_row: rows.start, arrays: batch.columns().to_vec() };
        let mut selected = self.bound.evaluate(&batch)?;
        if selected.null_count() > 0 {
            selected = prep_null_mask_filter(&selected);
        }
        let values = selected.values();
        let hits = values.count_set_bits();
        if hits == 0 {
            return Ok(Selection::None);
        }
        if hits == count {
            return Ok(Selection::All);
        }
        let mut slices = values.set_slices();
        let first = slices.next().map_or(0, |(start, _)| start);
        let last = slices
            .last()
            .map_or_else(|| values.set_slices().next().map_or(count, |(_, end)| end), |(_, end)| end);
        let narrowed = rows.start.saturating_add(first as u64)..rows.start.saturating_add(last as u64);
        Ok(Selection::Some(narrowed, selected.slice(first, last.saturating_sub(first))))
    }
}
