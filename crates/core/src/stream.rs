//! One place that applies a [`ScanRequest`] to a stream of batches, for formats that can only be read front to back, and for
//! tables whose rows have positions that only counting tells: a position is the number of a row among those that a scan of
//! everything gives.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    UInt64Array,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::{FilterBuilder, FilterPredicate};

use crate::dataset::{BatchReader, ScanRequest, column_index};
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
/// `read` must answer requests that ask for neither positions nor row numbers.
///
/// # Errors
/// As [`apply`], and as reading the dataset.
pub fn read_by_counting(
    schema: &Schema,
    request: &ScanRequest,
    read: impl FnOnce(&ScanRequest) -> Result<BatchReader>,
) -> Result<BatchReader> {
    let everything = ScanRequest {
        projection: Some(needed_columns(request, schema)?),
        batch_size: request.batch_size,
        on_damage: request.on_damage.clone(),
        ..ScanRequest::default()
    };
    let input = read(&everything)?.map(|batch| batch.map_err(Error::from));
    apply(input, schema, request)
}

/// Which rows of a batch are wanted.
pub type Condition = Box<dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send>;

/// What comes after decoding, whatever was decoded: rows that do not match go, columns get their order, and no more rows are
/// given than were asked for.
pub struct Tail {
    condition: Option<Condition>,
    /// The output columns, as positions in what was decoded.
    projection: Vec<usize>,
    output: SchemaRef,
    left: u64,
}

impl Tail {
    /// For batches that hold the columns `decoded` of `schema`.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if the request names a column that is not there.
    pub fn new(
        request: &ScanRequest,
        schema: &Schema,
        decoded: &[usize],
        condition: Option<Condition>,
    ) -> Result<Self> {
        let position = |column: &usize| {
            let place = decoded.iter().position(|known| known == column);
            place.ok_or_else(|| Error::internal(format!("column number {column} is not read")))
        };
        Ok(Self {
            condition,
            projection: request.projected(schema)?.iter().map(position).collect::<Result<_>>()?,
            output: request.output_schema(schema)?,
            left: request.limit.unwrap_or(u64::MAX),
        })
    }

    /// The schema of what is given.
    pub fn output(&self) -> SchemaRef {
        Arc::clone(&self.output)
    }

    /// Whether no more rows are wanted.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// What of a batch is given. `numbers` are the positions of its rows, if those are asked for.
    ///
    /// # Errors
    /// If the condition cannot be evaluated.
    pub fn give(&mut self, batch: &RecordBatch, numbers: Option<ArrayRef>) -> Result<RecordBatch> {
        let matches = self.condition.as_ref().map(|condition| condition(batch)).transpose()?;
        let filter = matches.filter(|matches| matches.true_count() < matches.len());
        let filter = filter.map(|matches| FilterBuilder::new(&matches).optimize().build());
        let count = filter.as_ref().map_or(batch.num_rows(), FilterPredicate::count);
        let kept = offset(self.left.min(count as u64));
        self.left = self.left.saturating_sub(kept as u64);
        let give = |column: &ArrayRef| -> Result<ArrayRef> {
            let column = match &filter {
                Some(filter) => filter.filter(column)?,
                None => Arc::clone(column),
            };
            Ok(if kept < count { column.slice(0, kept) } else { column })
        };
        let mut columns = Vec::with_capacity(self.projection.len().saturating_add(1));
        for &column in &self.projection {
            let column = batch.columns().get(column);
            columns.push(give(column.ok_or_else(|| Error::internal("a stream without a column it names"))?)?);
        }
        if let Some(numbers) = numbers {
            columns.push(give(&numbers)?);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(kept));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// What of a stream is given. Each of its batches comes with the positions of its rows, if those are asked for.
    pub fn read<I>(mut self, input: I) -> BatchReader
    where
        I: Iterator<Item = Result<(RecordBatch, Option<ArrayRef>)>> + Send + 'static,
    {
        let output = self.output();
        let mut input = input.fuse();
        let mut has_failed = false;
        let batches = std::iter::from_fn(move || {
            while !has_failed && !self.is_done() {
                match input.next()?.and_then(|(batch, numbers)| self.give(&batch, numbers)) {
                    Ok(batch) if batch.num_rows() == 0 => {}
                    given => {
                        has_failed = given.is_err();
                        return Some(given.map_err(ArrowError::from));
                    }
                }
            }
            None
        });
        Box::new(RecordBatchIterator::new(batches, output))
    }
}

struct Applied<I> {
    input: I,
    tail: Tail,
    rows: Option<VecDeque<Range<u64>>>,
    with_row_numbers: bool,
    batch_size: usize,
    ready: VecDeque<RecordBatch>,
    is_done: bool,
}

impl<I> Applied<I> {
    fn try_new(input: I, schema: &Schema, request: &ScanRequest) -> Result<Self> {
        let needed = needed_columns(request, schema)?;
        let narrow = schema.project(&needed)?;
        let bound = request.predicate.as_ref().map(|predicate| predicate.bind(&narrow)).transpose()?;
        Ok(Self {
            input,
            tail: Tail::new(request, schema, &needed, bound.map(BoundPredicate::into_condition))?,
            rows: request.rows.as_ref().map(|rows: &RowRanges| rows.as_slice().iter().cloned().collect()),
            with_row_numbers: request.row_numbers.is_some(),
            batch_size: request.batch_size.max(1),
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
        self.tail.is_done() || self.rows.as_ref().is_some_and(VecDeque::is_empty)
    }

    fn take_in(&mut self, first: u64, batch: &RecordBatch) -> Result<()> {
        for part in self.wanted_parts(first, batch.num_rows() as u64) {
            let (start, length) = (part.start, part.end.saturating_sub(part.start));
            self.give(&batch.slice(start, length), first.saturating_add(start as u64))?;
        }
        Ok(())
    }

    /// Filters, cuts and projects a stretch of rows that begins at position `first`.
    fn give(&mut self, batch: &RecordBatch, first: u64) -> Result<()> {
        let end = first.saturating_add(batch.num_rows() as u64);
        let numbers = || Arc::new(UInt64Array::from_iter_values(first..end)) as ArrayRef;
        let batch = self.tail.give(batch, self.with_row_numbers.then(numbers))?;
        let mut start = 0;
        while start < batch.num_rows() {
            let length = self.batch_size.min(batch.num_rows().saturating_sub(start));
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
        self.tail.output()
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
