//! Runs of several batches copied into one.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_select::concat::concat;
use arrow_select::interleave::interleave;

use super::{Run, SomeRows};
use crate::Result;

/// From so many rows in a row on, copying them at once is faster than one by one.
const LONG_RUN: usize = 16;

/// Batches that rows are taken from, each once.
#[derive(Debug, Default)]
pub struct Batches {
    batches: Vec<Arc<[ArrayRef]>>,
    /// Where the batch of each source stands.
    slots: Vec<usize>,
}

impl Batches {
    /// The number of the batch of a run among those taken from.
    pub fn number(&mut self, run: &Run<'_>) -> usize {
        if self.slots.len() <= run.source {
            self.slots.resize(run.source.saturating_add(1), usize::MAX);
        }
        let slot = self.slots.get(run.source).copied().unwrap_or(usize::MAX);
        if self.batches.get(slot).is_some_and(|known| Arc::ptr_eq(known, run.batch)) {
            return slot;
        }
        let number = self.batches.len();
        self.batches.push(Arc::clone(run.batch));
        if let Some(slot) = self.slots.get_mut(run.source) {
            *slot = number;
        }
        number
    }

    /// A column of all batches.
    pub fn column(&self, column: usize) -> Vec<&dyn Array> {
        self.batches.iter().filter_map(|batch| batch.get(column)).map(AsRef::as_ref).collect()
    }
}

/// Runs to be given as one batch.
#[derive(Debug, Default)]
pub struct Runs {
    batches: Batches,
    /// Number of a batch, and which of its rows.
    runs: Vec<(usize, Range<usize>)>,
    count: usize,
}

impl Runs {
    /// Adds what rows a run has.
    pub fn add(&mut self, run: &Run<'_>) {
        let rows = run.keys.rows(run.rows.clone());
        if rows.is_empty() {
            return;
        }
        let number = self.batches.number(run);
        self.count = self.count.saturating_add(rows.len());
        self.runs.push((number, rows));
    }

    /// Number of rows added.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The rows as columns; without a copy if they are one run, else copied run by run or row by row. `None` if there is
    /// none.
    ///
    /// # Errors
    /// If the batches differ in their types.
    pub fn gather(self) -> Result<Option<SomeRows>> {
        let Self { batches: Batches { batches, .. }, runs, count } = self;
        let width = batches.first().map_or(0, |batch| batch.len());
        let column_of =
            |number: usize, column: usize| batches.get(number).and_then(|batch| batch.get(column));
        let slice = |(number, rows): &(usize, Range<usize>), column: usize| {
            column_of(*number, column).map(|array| array.slice(rows.start, rows.len()))
        };
        let arrays = match runs.as_slice() {
            [] => return Ok(None),
            [run] => (0..width).filter_map(|column| slice(run, column)).collect(),
            runs if runs.len().saturating_mul(LONG_RUN) <= count => (0..width)
                .map(|column| {
                    let slices: Vec<_> = runs.iter().filter_map(|run| slice(run, column)).collect();
                    let slices: Vec<&dyn Array> = slices.iter().map(AsRef::as_ref).collect();
                    Ok(concat(&slices)?)
                })
                .collect::<Result<_>>()?,
            runs => {
                let rows = runs.iter().flat_map(|(number, rows)| rows.clone().map(move |row| (*number, row)));
                let rows: Vec<(usize, usize)> = rows.collect();
                let columns = (0..width).map(|column| {
                    let arrays = (0..batches.len()).filter_map(|number| column_of(number, column));
                    let arrays: Vec<&dyn Array> = arrays.map(AsRef::as_ref).collect();
                    Ok(interleave(&arrays, &rows)?)
                });
                columns.collect::<Result<_>>()?
            }
        };
        Ok(Some(SomeRows { arrays, count }))
    }
}
