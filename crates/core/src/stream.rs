//! One place that applies a [`ScanRequest`] to a stream of batches, for formats that can only be read front to back, and for
//! tables whose rows have positions that only counting tells: a position is the number of a row among those that a scan of
//! everything gives.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::FilterBuilder;

use crate::dataset::{BatchReader, Dataset, ScanRequest, Split, column_index};
use crate::error::{Error, Result};
use crate::predicate::BoundPredicate;
use crate::rows::RowRanges;

/// The columns of `schema` that a request needs decoded: those it gives and those it filters by, ascending.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] if the request names a column that is not there.
pub fn needed_columns(request: &ScanRequest, schema: &Schema) -> Result<Vec<usize>> {
    let mut needed = request.projected(schema)?;
    if let Some(predicate) = &request.predicate {
        for name in predicate.columns() {
            needed.push(column_index(schema, name)?);
        }
    }
    needed.sort_unstable();
    needed.dedup();
    Ok(needed)
}

/// Gives the rows a request asks for out of batches that hold all rows in order.
///
/// `input` gives the columns [`needed_columns`] of `schema`, and its first row is at position 0.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] if the request names what is not there.
pub fn apply<I>(input: I, schema: &Schema, request: &ScanRequest) -> Result<BatchReader>
where
    I: Iterator<Item = Result<RecordBatch>> + Send + 'static,
{
    let mut next = 0u64;
    let positioned = input.map(move |batch| {
        let batch = batch?;
        let first = next;
        next = first.saturating_add(batch.num_rows() as u64);
        Ok((first, batch))
    });
    apply_at(positioned, schema, request)
}

/// As [`apply`], for batches that come with the position of their first row, ascending; rows that are not wanted may be
/// missing between them.
///
/// # Errors
/// As [`apply`].
pub fn apply_at<I>(input: I, schema: &Schema, request: &ScanRequest) -> Result<BatchReader>
where
    I: Iterator<Item = Result<(u64, RecordBatch)>> + Send + 'static,
{
    Ok(Box::new(Applied::try_new(input, schema, request)?))
}

/// Reads rows by position from a dataset that does not know how many rows it has: everything is read, in order, and counted.
///
/// Of a split, the rows of those before it are counted first. `dataset` must answer requests that ask for neither positions nor
/// row numbers by itself.
///
/// # Errors
/// As [`apply`], and as reading the dataset.
pub fn read_by_counting(dataset: &dyn Dataset, request: &ScanRequest) -> Result<BatchReader> {
    let schema = dataset.schema();
    let everything = ScanRequest {
        projection: Some(needed_columns(request, &schema)?),
        batch_size: request.batch_size,
        on_damage: request.on_damage.clone(),
        ..ScanRequest::default()
    };
    let mut request = request.clone();
    if let Some(split) = request.split.take() {
        let splits = dataset.splits()?.len();
        if split >= splits {
            return Err(Error::invalid(format!("no split number {split}: there are {splits}")));
        }
        let (mut start, mut end) = (0, 0u64);
        for number in 0..=split {
            start = end;
            end = end.saturating_add(count(dataset, number, &request)?);
        }
        let inside = RowRanges::one(start..end);
        request.rows = Some(request.rows.map_or(inside.clone(), |rows| rows.intersect(&inside)));
    }
    let input = dataset.read(&everything)?.map(|batch| batch.map_err(Error::from));
    apply(input, &schema, &request)
}

/// How many rows a split gives.
fn count(dataset: &dyn Dataset, split: usize, request: &ScanRequest) -> Result<u64> {
    let request = ScanRequest {
        projection: Some(Vec::new()),
        split: Some(split),
        on_damage: request.on_damage.clone(),
        ..ScanRequest::default()
    };
    let mut rows = 0u64;
    for batch in dataset.read(&request)? {
        rows = rows.saturating_add(batch.map_err(Error::from)?.num_rows() as u64);
    }
    Ok(rows)
}

/// A stream has one split, and where its rows lie is not known before reading.
pub fn single_split(size_bytes: u64, row_count: Option<u64>) -> Vec<Split> {
    vec![Split { rows: row_count.map(|rows| 0..rows), bytes: size_bytes }]
}

/// Refuses a split number other than the only one.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] for any other.
pub fn check_single_split(request: &ScanRequest) -> Result<()> {
    match request.split {
        None | Some(0) => Ok(()),
        Some(index) => Err(Error::invalid(format!("no split number {index}: there are 1"))),
    }
}

struct Applied<I> {
    input: I,
    schema: SchemaRef,
    predicate: Option<BoundPredicate>,
    rows: Option<VecDeque<Range<u64>>>,
    /// The output columns, as positions in the input.
    projection: Vec<usize>,
    with_row_numbers: bool,
    batch_size: usize,
    remaining: u64,
    ready: VecDeque<RecordBatch>,
    is_done: bool,
}

impl<I> Applied<I> {
    fn try_new(input: I, schema: &Schema, request: &ScanRequest) -> Result<Self> {
        let needed = needed_columns(request, schema)?;
        let input_schema = schema.project(&needed)?;
        let predicate =
            request.predicate.as_ref().map(|predicate| predicate.bind(&input_schema)).transpose()?;
        let position = |column: &usize| {
            needed
                .binary_search(column)
                .map_err(|_| Error::internal(format!("column number {column} is not read")))
        };
        let projection = request.projected(schema)?.iter().map(position).collect::<Result<_>>()?;
        Ok(Self {
            input,
            schema: request.output_schema(schema)?,
            predicate,
            rows: request.rows.as_ref().map(|rows: &RowRanges| rows.as_slice().iter().cloned().collect()),
            projection,
            with_row_numbers: request.row_numbers.is_some(),
            batch_size: request.batch_size.max(1),
            remaining: request.limit.unwrap_or(u64::MAX),
            ready: VecDeque::new(),
            is_done: false,
        })
    }

    /// The parts of a batch at positions `first..first + rows` that are wanted, as offsets into the batch.
    fn wanted_parts(&mut self, first: u64, rows: u64) -> Vec<Range<usize>> {
        let end = first.saturating_add(rows);
        let Some(wanted) = &mut self.rows else { return std::iter::once(0..offset(rows)).collect() };
        let mut parts = Vec::new();
        while let Some(range) = wanted.front() {
            let common = range.start.max(first)..range.end.min(end);
            if !common.is_empty() {
                parts.push(
                    offset(common.start.saturating_sub(first))..offset(common.end.saturating_sub(first)),
                );
            }
            if range.end > end {
                break;
            }
            wanted.pop_front();
        }
        parts
    }

    /// Whether no row to come can be wanted.
    fn is_past_the_end(&self) -> bool {
        self.remaining == 0 || self.rows.as_ref().is_some_and(VecDeque::is_empty)
    }

    fn take_in(&mut self, first: u64, batch: &RecordBatch) -> Result<()> {
        for part in self.wanted_parts(first, batch.num_rows() as u64) {
            let (start, length) = (part.start, part.end.saturating_sub(part.start));
            self.give(batch.slice(start, length), first.saturating_add(start as u64))?;
        }
        Ok(())
    }

    /// Filters, cuts and projects a stretch of rows that begins at position `first`.
    fn give(&mut self, batch: RecordBatch, first: u64) -> Result<()> {
        let rows = batch.num_rows() as u64;
        let numbers = || UInt64Array::from_iter_values(first..first.saturating_add(rows));
        let mut numbers: Option<ArrayRef> = self.with_row_numbers.then(|| Arc::new(numbers()) as ArrayRef);
        let mut batch = batch;
        if let Some(predicate) = &self.predicate {
            let matches = predicate.evaluate(&batch)?;
            let filter = FilterBuilder::new(&matches).optimize().build();
            batch = filter.filter_record_batch(&batch)?;
            numbers = numbers.map(|numbers| filter.filter(&numbers)).transpose()?;
        }
        let kept = offset(self.remaining.min(batch.num_rows() as u64));
        self.remaining = self.remaining.saturating_sub(kept as u64);
        let mut columns = Vec::with_capacity(self.projection.len().saturating_add(1));
        for &column in &self.projection {
            let column = batch.columns().get(column);
            columns.push(Arc::clone(
                column.ok_or_else(|| Error::internal("a stream without a column it names"))?,
            ));
        }
        columns.extend(numbers);
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let mut start = 0;
        while start < kept {
            let length = self.batch_size.min(kept.saturating_sub(start));
            self.ready.push_back(batch.slice(start, length));
            start = start.saturating_add(length);
        }
        Ok(())
    }
}

/// A row count that is known to be at most the length of a batch.
fn offset(rows: u64) -> usize {
    usize::try_from(rows).unwrap_or(usize::MAX)
}

impl<I: Iterator<Item = Result<(u64, RecordBatch)>>> Iterator for Applied<I> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Some(Ok(batch));
            }
            if self.is_done || self.is_past_the_end() {
                return None;
            }
            let result = self.input.next()?.and_then(|(first, batch)| self.take_in(first, &batch));
            if let Err(error) = result {
                self.is_done = true;
                return Some(Err(error.into()));
            }
        }
    }
}

impl<I: Iterator<Item = Result<(u64, RecordBatch)>>> RecordBatchReader for Applied<I> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predicate::{col, lit};
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int32Type, UInt64Type};
    use arrow_array::{Array, Int32Array};
    use arrow_schema::{DataType, Field};
    use proptest::prelude::*;

    fn schema() -> Schema {
        Schema::new(vec![Field::new("a", DataType::Int32, true), Field::new("b", DataType::Int32, true)])
    }

    fn input(sizes: &[usize]) -> Vec<Result<RecordBatch>> {
        let mut next = 0;
        let mut batches = Vec::new();
        for &size in sizes {
            let a: ArrayRef = Arc::new(Int32Array::from_iter_values(next..next + size as i32));
            let b: ArrayRef = Arc::new(Int32Array::from_iter(
                (next..next + size as i32).map(|v| (v % 3 != 0).then_some(v % 7)),
            ));
            next += size as i32;
            batches.push(Ok(RecordBatch::try_new(Arc::new(schema()), vec![a, b]).unwrap()));
        }
        batches
    }

    proptest! {
        #[test]
        fn gives_exactly_the_rows_asked_for(
            sizes in prop::collection::vec(0usize..9, 0..8),
            pairs in prop::option::of(prop::collection::vec((0u64..50, 0u64..9), 0..4)),
            limit in prop::option::of(0u64..40),
            at_least in prop::option::of(0i32..7),
            batch_size in 1usize..6,
        ) {
            let rows: Option<RowRanges> =
                pairs.map(|pairs| pairs.into_iter().map(|(start, length)| start..start + length).collect());
            let request = ScanRequest {
                projection: Some(vec![1, 0]),
                predicate: at_least.map(|value| col("b").gt_eq(lit(value))),
                rows: rows.clone(),
                batch_size,
                limit,
                row_numbers: Some("n".into()),
                ..ScanRequest::default()
            };
            let total: usize = sizes.iter().sum();
            let mut expected = Vec::new();
            for row in 0..total as i32 {
                let inside = rows.as_ref().is_none_or(|rows| rows.as_slice().iter().any(|r| r.contains(&(row as u64))));
                let b = (row % 3 != 0).then_some(row % 7);
                let matches = at_least.is_none_or(|value| b.is_some_and(|b| b >= value));
                if inside && matches && (expected.len() as u64) < limit.unwrap_or(u64::MAX) {
                    expected.push((b, row, row as u64));
                }
            }
            let mut found = Vec::new();
            for batch in apply(input(&sizes).into_iter(), &schema(), &request).unwrap() {
                let batch = batch.unwrap();
                prop_assert!(batch.num_rows() <= batch_size && batch.num_rows() > 0);
                let b = batch.column(0).as_primitive::<Int32Type>();
                let a = batch.column(1).as_primitive::<Int32Type>();
                let n = batch.column(2).as_primitive::<UInt64Type>();
                for row in 0..batch.num_rows() {
                    found.push((b.is_valid(row).then(|| b.value(row)), a.value(row), n.value(row)));
                }
            }
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn a_request_without_columns_still_counts_rows() {
        let request = ScanRequest {
            projection: Some(vec![]),
            predicate: Some(col("a").lt(lit(5))),
            ..ScanRequest::default()
        };
        let batches =
            apply(input(&[4, 4]).into_iter().map(|batch| Ok(batch?.project(&[0])?)), &schema(), &request);
        let rows: usize = batches.unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 5);
    }

    #[test]
    fn an_error_ends_the_stream() {
        let mut batches = input(&[2, 2]);
        batches.insert(1, Err(Error::corrupt("a", "b")));
        let results: Vec<_> =
            apply(batches.into_iter(), &schema(), &ScanRequest::default()).unwrap().collect();
        assert_eq!(results.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false]);
    }
}
