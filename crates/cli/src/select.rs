//! Rows chosen by their number among the rows wanted: the last ones, or some by chance.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use pilaster::core::dataset::BatchReader;
use pilaster::{Dataset, Error, Result, RowRanges, ScanRequest};
use pilaster_datafusion::arrow::array::{RecordBatch, RecordBatchReader};
use pilaster_datafusion::arrow::datatypes::SchemaRef;
use pilaster_datafusion::arrow::error::ArrowError;

/// How many rows a dataset gives: as it says itself, or else by reading it without any column.
pub(crate) fn count(dataset: &dyn Dataset) -> Result<u64> {
    if let Some(rows) = dataset.row_count() {
        return Ok(rows);
    }
    let request = ScanRequest { projection: Some(Vec::new()), ..ScanRequest::default() };
    let mut rows = 0u64;
    for batch in dataset.read(&request)? {
        rows = rows.saturating_add(length(&batch.map_err(Error::from)?));
    }
    Ok(rows)
}

/// The rows with these numbers. Where numbers are positions the scan goes there; where they are not, because a
/// condition takes rows away, it reads on and picks.
pub(crate) fn pick(dataset: &dyn Dataset, request: &ScanRequest, wanted: RowRanges) -> Result<BatchReader> {
    if dataset.row_count().is_some() {
        return dataset.read(&ScanRequest { rows: Some(wanted), ..request.clone() });
    }
    let input = dataset.read(request)?;
    let schema = input.schema();
    let wanted = wanted.as_slice().iter().cloned().collect();
    Ok(Box::new(Picked { input, schema, wanted, next_row: 0, ready: VecDeque::new() }))
}

/// `count` different numbers below `total` by chance, the same for the same seed.
pub(crate) fn sample(total: u64, count: u64, seed: u64) -> RowRanges {
    if count >= total {
        return RowRanges::one(0..total);
    }
    // Floyd's way: one draw per number, and no list of all numbers.
    let mut random = fastrand::Rng::with_seed(seed);
    let mut chosen = std::collections::BTreeSet::new();
    for last in total.saturating_sub(count)..total {
        let drawn = random.u64(0..=last);
        if !chosen.insert(drawn) {
            chosen.insert(last);
        }
    }
    chosen.into_iter().map(|row| row..row.saturating_add(1)).collect()
}

struct Picked {
    input: BatchReader,
    schema: SchemaRef,
    wanted: VecDeque<Range<u64>>,
    next_row: u64,
    ready: VecDeque<RecordBatch>,
}

impl Picked {
    fn take_in(&mut self, batch: &RecordBatch) {
        let first = self.next_row;
        let end = first.saturating_add(length(batch));
        self.next_row = end;
        while let Some(range) = self.wanted.front() {
            let (start, stop) = (range.start.max(first), range.end.min(end));
            if start < stop {
                let offset = usize::try_from(start.saturating_sub(first)).unwrap_or(usize::MAX);
                let rows = usize::try_from(stop.saturating_sub(start)).unwrap_or(usize::MAX);
                self.ready.push_back(batch.slice(offset, rows));
            }
            if range.end > end {
                break;
            }
            self.wanted.pop_front();
        }
    }
}

fn length(batch: &RecordBatch) -> u64 {
    u64::try_from(batch.num_rows()).unwrap_or(u64::MAX)
}

impl Iterator for Picked {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            if self.wanted.is_empty() {
                return None;
            }
            match self.input.next()? {
                Ok(batch) => self.take_in(&batch),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RecordBatchReader for Picked {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_as_many_rows_as_asked_for_and_repeats() {
        for (total, wanted) in [(0, 5), (5, 0), (5, 5), (100, 7), (3, 9)] {
            let rows = sample(total, wanted, 1);
            assert_eq!(rows.count(), wanted.min(total));
            assert!(rows.as_slice().last().is_none_or(|range| range.end <= total));
            assert_eq!(rows, sample(total, wanted, 1));
        }
        assert_ne!(sample(1000, 9, 1), sample(1000, 9, 2));
    }
}
