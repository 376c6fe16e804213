//! The scan of every format whose columns can be read by row position.
//!
//! Batch by batch: the columns of the predicate are read first; if no row of the batch remains, nothing else is read
//! (late materialisation); else the other columns are read from the first remaining row to the last and filtered. What was
//! read to be compared is not read again.
//! Batches end at multiples of the batch size, so that they seldom straddle blocks of a power of two; or where the blocks of
//! the columns do, if those are known and not smaller than a batch. A batch of which a column says that its values are too many
//! bytes ([`fitting`]) is read as two, and rows of very many columns are read in smaller batches ([`crate::memory`]).

mod filled;
mod filter;
mod in_memory;

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use arrow_select::filter::{FilterBuilder, filter_record_batch};

use crate::dataset::{BatchReader, OnDamage, ScanRequest, column_index};
use crate::error::{Error, Result};
use crate::fitting;
use crate::memory::ScanMemory;
use crate::rows::RowRanges;
use crate::salvage::LossLog;
use crate::stream::needed_columns;

pub use filled::FilledCursor;
use filter::{Filter, Selection};
pub use in_memory::InMemory;

/// One column, read at row positions; it keeps what the next read may need.
pub trait ColumnCursor: Send {
    /// The values of `rows`.
    ///
    /// # Errors
    /// If a block under them cannot be read or decoded.
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef>;

    /// The values of `rows` in whatever form is cheapest to compare: a dictionary column may stay one. An array of the type that
    /// [`ColumnCursor::read`] gives must be the one it gives, and so must the values of a dictionary of that type.
    ///
    /// # Errors
    /// As [`ColumnCursor::read`].
    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read(rows)
    }

    /// The rows that are decoded together with `row`, if they are the same for all columns.
    fn block(&self, _row: u64) -> Option<Range<u64>> {
        None
    }

    /// Which of `values`, which were read here, stand for cells that the column's type has no value for; `None` if none does. A row
    /// with one can be compared and left out, but not given.
    fn placeholders(&self, _values: &dyn Array) -> Option<BooleanArray> {
        None
    }

    /// Why `row` of a column of this name cannot be given, if a placeholder is in it.
    fn refuse_placeholder(&self, column: &str, row: u64) -> Error {
        Error::unsupported(format!("the value in row {row} of column \"{column}\""))
    }

    /// Covers `rows` with stretches that stand or fall together, and says which of them cannot be read.
    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)>;
}

/// The columns of a dataset.
pub trait Columns: Send + Sync {
    /// Opens column number `column` for a scan that will visit `wanted`, in ascending order.
    ///
    /// # Errors
    /// If what all its blocks share cannot be read.
    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>>;

    /// Whether null may stand for lost cells of a column that may be null: not where it would be an answer, and not where a row that
    /// cannot be read may have been deleted.
    fn may_fill(&self, _column: usize) -> bool {
        false
    }

    /// What its cursors share.
    fn memory(&self) -> ScanMemory {
        ScanMemory::default()
    }
}

/// Scans `wanted` rows of `columns`, which have `schema`, as `request` asks.
///
/// # Errors
/// [`crate::ErrorKind::InvalidInput`] if the request names columns that are not there.
pub fn scan(
    columns: &dyn Columns,
    schema: &Schema,
    request: &ScanRequest,
    wanted: &RowRanges,
) -> Result<BatchReader> {
    let projection = request.projected(schema)?;
    let output = request.output_schema(schema)?;
    let memory = columns.memory();
    let needed = schema.project(&needed_columns(request, schema)?)?;
    let batch_size = memory.fitting_rows(&needed, request.batch_size) as u64;
    let filter = match &request.predicate {
        None => None,
        Some(predicate) => {
            let indexes = predicate
                .columns()
                .into_iter()
                .map(|name| column_index(schema, name))
                .collect::<Result<Vec<_>>>()?;
            let narrow = schema.project(&indexes)?;
            let bound = predicate.bind(&narrow)?;
            let columns =
                indexes.iter().map(|&index| columns.open(index, wanted)).collect::<Result<Vec<_>>>()?;
            Some(Filter::new(bound, indexes, columns, field_names(&narrow)))
        }
    };
    let losses = match &request.on_damage {
        OnDamage::Stop => None,
        OnDamage::Skip(log) => Some(Arc::clone(log)),
    };
    // Only without a filter is it known that every wanted row will be read.
    let ahead = if filter.is_some() { RowRanges::none() } else { wanted.clone() };
    let project = |&index: &usize| match filter.as_ref().and_then(|filter| filter.position(index)) {
        Some(position) => Ok(Projected::Compared(position)),
        None => {
            let cursor = columns.open(index, &ahead)?;
            let filling = losses.as_ref().filter(|losses| losses.fills_cells() && columns.may_fill(index));
            let field = schema.fields().get(index).filter(|field| field.is_nullable());
            Ok(Projected::Other(match (filling, field) {
                (Some(losses), Some(field)) => {
                    let data_type = field.data_type().clone();
                    Box::new(FilledCursor::new(cursor, field.name(), data_type, Arc::clone(losses)))
                }
                _ => cursor,
            }))
        }
    };
    let projected = projection.iter().map(project).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(PositionalScan {
        output,
        projected,
        filter,
        with_row_numbers: request.row_numbers.is_some(),
        pending: wanted.as_slice().iter().rev().cloned().collect(),
        batch_size,
        at_once: batch_size,
        most_at_once: memory.rows_at_once(&needed),
        memory,
        ready: None,
        left: request.limit.unwrap_or(u64::MAX),
        losses,
    }))
}

fn field_names(schema: &Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// A column of the answer.
enum Projected {
    /// Number so many of the columns that are compared.
    Compared(usize),
    Other(Box<dyn ColumnCursor>),
}

/// A column of the answer and the placeholders in it.
type Refused<'a> = (&'a str, &'a dyn ColumnCursor, BooleanArray);

struct PositionalScan {
    /// The projected columns, then their row numbers if those are wanted.
    output: SchemaRef,
    projected: Vec<Projected>,
    filter: Option<Filter>,
    with_row_numbers: bool,
    /// What is still to visit, the next at the end.
    pending: Vec<Range<u64>>,
    batch_size: u64,
    /// Rows that are read at once: more than a batch where blocks have to be unpacked again for each.
    at_once: u64,
    most_at_once: u64,
    memory: ScanMemory,
    /// What was read and not given yet.
    ready: Option<RecordBatch>,
    left: u64,
    losses: Option<Arc<LossLog>>,
}

impl PositionalScan {
    /// The next stretch of rows: up to a multiple of how many are read at once, counted from where their block begins.
    fn next_rows(&mut self) -> Option<Range<u64>> {
        let range = self.pending.pop()?;
        let others = self.projected.iter().filter_map(|projected| match projected {
            Projected::Other(column) => Some(column),
            Projected::Compared(_) => None,
        });
        let columns = self.filter.iter().flat_map(|filter| &filter.columns).chain(others);
        let is_large = |rows: &Range<u64>| {
            rows.contains(&range.start) && rows.end.saturating_sub(rows.start) >= self.batch_size
        };
        let block = columns.take(1).find_map(|column| column.block(range.start)).filter(is_large);
        let block = block.unwrap_or(0..u64::MAX);
        let batches = range.start.saturating_sub(block.start).checked_div(self.at_once)?.saturating_add(1);
        let boundary = block.start.saturating_add(batches.saturating_mul(self.at_once));
        let mut end = range.end.min(boundary).min(block.end);
        if self.filter.is_none() {
            end = end.min(range.start.saturating_add(self.left));
        }
        if end < range.end {
            self.pending.push(end..range.end);
        }
        Some(range.start..end)
    }

    /// As many of the rows that were read as a batch has.
    fn next_ready(&mut self) -> Option<RecordBatch> {
        let batch = self.ready.take()?;
        let most = usize::try_from(self.left.min(self.batch_size)).unwrap_or(usize::MAX);
        let count = most.min(batch.num_rows());
        self.left = self.left.saturating_sub(count as u64);
        if count == batch.num_rows() {
            return Some(batch);
        }
        let rest = batch.slice(count, batch.num_rows().saturating_sub(count));
        self.ready = Some(rest);
        Some(batch.slice(0, count))
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            if let Some(batch) = self.next_ready() {
                return Ok(Some(batch));
            }
            let Some(rows) = self.next_rows() else { return Ok(None) };
            if let Some(losses) = self.losses.clone() {
                let good = self.probe(&rows, &losses);
                if good.as_slice() != [rows.clone()] {
                    self.pending.extend(good.as_slice().iter().rev().cloned());
                    continue;
                }
            }
            let count = rows.end.saturating_sub(rows.start);
            self.memory.start(count);
            let batch = self.read(rows.clone());
            self.memory.start(0);
            let batch = match batch {
                Err(error) if fitting::is_too_large(&error) && count > 1 => {
                    self.at_once = (self.at_once / 2).max(self.batch_size);
                    let middle = rows.start.midpoint(rows.end);
                    self.pending.extend([middle..rows.end, rows.start..middle]);
                    continue;
                }
                batch => batch?,
            };
            if self.memory.was_short() && count >= self.at_once {
                self.at_once = self.at_once.saturating_mul(2).min(self.most_at_once).max(self.batch_size);
            }
            self.ready = (batch.num_rows() > 0).then_some(batch);
        }
        Ok(None)
    }

    fn read(&mut self, mut rows: Range<u64>) -> Result<RecordBatch> {
        let mut mask = None;
        if let Some(filter) = &mut self.filter {
            match filter.select(&rows)? {
                Selection::None => return Ok(RecordBatch::new_empty(Arc::clone(&self.output))),
                Selection::All => {}
                Selection::Some(narrowed, selected) => {
                    rows = narrowed;
                    mask = Some(FilterBuilder::new(&selected).optimize().build());
                }
            }
        }
        let apply = |array: ArrayRef| -> Result<ArrayRef> {
            Ok(match &mask {
                Some(mask) => mask.filter(&array)?,
                None => array,
            })
        };
        let mut arrays = Vec::with_capacity(self.output.fields().len());
        for (projected, field) in self.projected.iter_mut().zip(self.output.fields()) {
            let array = match (projected, &mut self.filter) {
                (Projected::Compared(position), Some(filter)) => {
                    filter.read(*position, &rows, field.data_type())?
                }
                (Projected::Compared(_), None) => {
                    return Err(Error::internal("no filter to take a column from"));
                }
                (Projected::Other(column), _) => column.read(rows.clone())?,
            };
            arrays.push(apply(array)?);
        }
        let placeholders = |(number, array): (usize, &ArrayRef)| {
            let (name, cursor) = self.column(number)?;
            Some((name, cursor, cursor.placeholders(array)?))
        };
        let refused: Vec<_> = arrays.iter().enumerate().filter_map(placeholders).collect();
        if self.with_row_numbers || !refused.is_empty() {
            arrays.push(apply(Arc::new(UInt64Array::from_iter_values(rows.clone())))?);
        }
        if !refused.is_empty() {
            return self.without_refused(arrays, &refused);
        }
        let count = match &mask {
            Some(mask) => mask.count(),
            None => usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX),
        };
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), arrays, &options)?)
    }

    /// Name and cursor of column number `number` of the answer.
    fn column(&self, number: usize) -> Option<(&str, &dyn ColumnCursor)> {
        let cursor = match (self.projected.get(number)?, &self.filter) {
            (Projected::Compared(position), Some(filter)) => filter.columns.get(*position)?,
            (Projected::Compared(_), None) => return None,
            (Projected::Other(cursor), _) => cursor,
        };
        Some((self.output.fields().get(number)?.name(), cursor.as_ref()))
    }

    /// Rows of which some cannot be given, by columns and their placeholders: an error, or a loss that is noted. Row numbers are the
    /// last of `arrays`.
    fn without_refused(&self, mut arrays: Vec<ArrayRef>, refused: &[Refused<'_>]) -> Result<RecordBatch> {
        let numbers = arrays.last().and_then(|last| last.as_primitive_opt::<UInt64Type>()).cloned();
        let numbers = numbers.ok_or_else(|| Error::internal("rows without their numbers"))?;
        let mut keep = vec![true; numbers.len()];
        for (name, cursor, found) in refused {
            for at in found.values().set_indices() {
                let (Some(keep), Some(&row)) = (keep.get_mut(at), numbers.values().get(at)) else { continue };
                let error = cursor.refuse_placeholder(name, row);
                match &self.losses {
                    Some(losses) => losses.record(row..row.saturating_add(1), Some(name), &error),
                    // Rows after the last that is wanted are not given.
                    None if at as u64 >= self.left => {}
                    None => return Err(error),
                }
                *keep = false;
            }
        }
        if !self.with_row_numbers {
            arrays.pop();
        }
        let keep = BooleanArray::from(keep);
        let options = RecordBatchOptions::new().with_row_count(Some(numbers.len()));
        let all = RecordBatch::try_new_with_options(Arc::clone(&self.output), arrays, &options)?;
        Ok(filter_record_batch(&all, &keep)?)
    }

    /// The parts of `rows` that every column can give; the others are noted.
    fn probe(&mut self, rows: &Range<u64>, losses: &LossLog) -> RowRanges {
        let mut good = RowRanges::one(rows.clone());
        let filter = self.filter.iter_mut().flat_map(|filter| filter.names.iter().zip(&mut filter.columns));
        let others = self.output.fields().iter().zip(&mut self.projected).filter_map(|(field, projected)| {
            match projected {
                Projected::Other(column) => Some((field.name(), column)),
                Projected::Compared(_) => None,
            }
        });
        for (name, column) in others.chain(filter) {
            let mut sound = Vec::new();
            for (stretch, damage) in column.probe(rows.clone()) {
                match damage {
                    None => sound.push(stretch),
                    Some(error) => losses.record(stretch, Some(name), &error),
                }
            }
            good = good.intersect(&sound.into_iter().collect());
        }
        good
    }
}

impl Iterator for PositionalScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.left = 0;
        }
        next.map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for PositionalScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_cast::cast;
    use arrow_schema::{DataType, Field};

    use crate::predicate::{Predicate, col, lit};

    /// A column whose values are the row numbers, in blocks of so many rows if it tells.
    struct Numbers(Option<u64>);

    impl ColumnCursor for Numbers {
        fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
            Ok(Arc::new(rows.map(|row| row as i64).collect::<Int64Array>()))
        }

        fn block(&self, row: u64) -> Option<Range<u64>> {
            let start = row - row % self.0?;
            Some(start..start + self.0?)
        }

        fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
            vec![(rows, None)]
        }
    }

    impl Columns for Numbers {
        fn open(&self, _: usize, _: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
            Ok(Box::new(Self(self.0)))
        }
    }

    /// How many rows each batch of 8 has.
    fn batches(block: Option<u64>, wanted: Range<u64>) -> Vec<usize> {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let request = ScanRequest { batch_size: 8, ..ScanRequest::default() };
        let scan = scan(&Numbers(block), &schema, &request, &RowRanges::one(wanted.clone())).unwrap();
        let batches: Vec<RecordBatch> = scan.collect::<std::result::Result<_, _>>().unwrap();
        let rows: Vec<u64> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
            .map(|row| row as u64)
            .collect();
        assert!(rows.into_iter().eq(wanted));
        batches.iter().map(RecordBatch::num_rows).collect()
    }

    #[test]
    fn batches_end_where_blocks_end() {
        assert_eq!(batches(None, 0..20), [8, 8, 4]);
        assert_eq!(batches(Some(10), 0..20), [8, 2, 8, 2]);
        assert_eq!(batches(Some(10), 5..20), [3, 2, 8, 2]);
        assert_eq!(batches(Some(8), 0..20), [8, 8, 4]);
        // Blocks smaller than a batch would make batches small.
        assert_eq!(batches(Some(5), 3..20), [5, 8, 4]);
    }

    /// Columns of row numbers that count how often they are opened and read, compared as codes of a dictionary or as they are.
    struct Counted {
        opened: AtomicUsize,
        reads: Arc<AtomicUsize>,
        as_codes: bool,
    }

    struct CountedCursor {
        reads: Arc<AtomicUsize>,
        as_codes: bool,
    }

    impl ColumnCursor for CountedCursor {
        fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            Numbers(None).read(rows)
        }

        fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
            let values = self.read(rows)?;
            let codes = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Int64));
            Ok(if self.as_codes { cast(&values, &codes)? } else { values })
        }

        fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
            vec![(rows, None)]
        }
    }

    impl Columns for Counted {
        fn open(&self, _: usize, _: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
            self.opened.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(CountedCursor { reads: Arc::clone(&self.reads), as_codes: self.as_codes }))
        }
    }

    #[test]
    fn what_was_compared_is_not_read_again() {
        let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int64, false));
        let schema = Schema::new(fields.to_vec());
        // Ten batches are compared; two hold rows that remain, of which column `c` is read.
        for as_codes in [false, true] {
            let columns = Counted { opened: AtomicUsize::new(0), reads: Arc::default(), as_codes };
            let predicate = Predicate::And(vec![col("b").gt_eq(lit(15i64)), col("b").lt(lit(25i64))]);
            let request = ScanRequest {
                batch_size: 10,
                projection: Some(vec![1, 2, 1]),
                predicate: Some(predicate),
                ..ScanRequest::default()
            };
            let scan = scan(&columns, &schema, &request, &RowRanges::one(0..100)).unwrap();
            let batches: Vec<RecordBatch> = scan.collect::<std::result::Result<_, _>>().unwrap();
            for column in 0..3 {
                let values: Vec<i64> = batches
                    .iter()
                    .flat_map(|batch| batch.column(column).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert!(values.into_iter().eq(15..25), "column {column}");
            }
            assert_eq!(columns.opened.load(Ordering::Relaxed), 2);
            assert_eq!(columns.reads.load(Ordering::Relaxed), 10 + 2);
        }
    }
}
