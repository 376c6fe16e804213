//! The scan of a table: its units one after the other, filtered, numbered, and cut at the limit.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_buffer::BooleanBuffer;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pilaster_core::dataset::column_index;
use pilaster_core::merge::SomeRows;
use pilaster_core::positional::{self, ColumnCursor, Columns};
use pilaster_core::{
    BatchReader, Error, ErrorKind, Limits, OnDamage, Result, RowRanges, ScanMemory, ScanRequest,
};

use super::cells;
use super::key_range::KeyRange;
use super::row_filter::{RowFilter, keep_rows};
use super::rowset::{RowSet, Snapshot};
use super::schema::{KuduColumn, KuduSchema};
use super::tablet_rows::{Reading, RowStream};
use super::units::{Unit, UnitRows};
use crate::cfile::CellCursor;

/// The stream of batches of a table scan.
pub(super) struct TableScan {
    output: SchemaRef,
    read_schema: SchemaRef,
    /// Where each output column stands among those read.
    projection: Vec<usize>,
    reading: Reading,
    request: ScanRequest,
    /// What is left to do of the predicate when rows come.
    filter: Option<RowFilter>,
    /// Only rows with keys in these ranges can match.
    keys: Option<Vec<KeyRange>>,
    /// What is still to visit.
    units: std::vec::IntoIter<Unit>,
    current: Option<Current>,
    left: u64,
    /// Rows given by units so far.
    position: u64,
}

/// The unit being read.
enum Current {
    /// Columns read by position; what must be added to the row numbers they come with.
    Plain(BatchReader, u64),
    Rows(RowStream),
}

impl TableScan {
    /// Scans `units` of a table that has `schema`; of them, `keys` are enough.
    pub fn new(
        schema: &KuduSchema,
        snapshot: Snapshot,
        limits: &Limits,
        request: &ScanRequest,
        units: Vec<Unit>,
        keys: Option<Vec<KeyRange>>,
    ) -> Result<Self> {
        let arrow = schema.to_arrow();
        let projection = request.projected(&arrow)?;
        let filtered = request.predicate.iter().flat_map(|predicate| predicate.columns());
        let filtered = filtered.map(|name| column_index(&arrow, name)).collect::<Result<Vec<_>>>()?;
        // First what the predicate needs.
        let mut read: Vec<usize> = Vec::new();
        let mut add = |columns: &[usize]| {
            for column in columns {
                if !read.contains(column) {
                    read.push(*column);
                }
            }
            read.len()
        };
        let filter_width = add(&filtered);
        add(&projection);
        let losses = match &request.on_damage {
            OnDamage::Stop => None,
            OnDamage::Skip(losses) => Some(Arc::clone(losses)),
        };
        let columns: Vec<KuduColumn> =
            read.iter().filter_map(|index| schema.columns.get(*index).cloned()).collect();
        let read_schema = Schema::new(columns.iter().map(KuduColumn::field).collect::<Vec<_>>());
        let needed = columns.get(..filter_width).unwrap_or_default();
        let filter = request.predicate.as_ref().map(|predicate| RowFilter::new(predicate, needed));
        let filter = filter.transpose()?;
        // Where positions count, all rows do; where damage is passed over, all that is lost is noted.
        let is_late = request.rows.is_none() && request.row_numbers.is_none() && losses.is_none();
        let (pushed, filter) = if is_late { (filter, None) } else { (None, filter) };
        let place = |index: &usize| read.iter().position(|column| column == index);
        Ok(Self {
            output: request.output_schema(&arrow)?,
            read_schema: Arc::new(read_schema),
            projection: projection.iter().filter_map(place).collect(),
            reading: Reading {
                columns,
                keys: schema.keys().to_vec(),
                filter: pushed,
                snapshot,
                batch_size: request.batch_size.max(1),
                losses,
                memory: request.memory(limits),
            },
            request: request.clone(),
            filter,
            keys,
            units: units.into_iter(),
            current: None,
            left: request.limit.unwrap_or(u64::MAX),
            position: 0,
        })
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        while self.left > 0 {
            let next = match &mut self.current {
                None => {
                    let last = self.request.rows.as_ref().map(|rows| rows.as_slice().last());
                    let is_past = last.is_some_and(|last| last.is_none_or(|last| last.end <= self.position));
                    let Some(unit) = self.units.next().filter(|_| !is_past) else { return Ok(None) };
                    self.current = self.open(&unit)?;
                    continue;
                }
                Some(Current::Plain(reader, shift)) => {
                    let shift = *shift;
                    let batch = reader.next().transpose()?;
                    batch.map(|batch| self.numbered(batch, shift)).transpose()?
                }
                Some(Current::Rows(rows)) => rows.next()?.map(|rows| self.finish(rows)).transpose()?,
            };
            let Some(batch) = next else {
                self.current = None;
                continue;
            };
            if batch.num_rows() > 0 {
                let keep = usize::try_from(self.left).unwrap_or(usize::MAX).min(batch.num_rows());
                self.left = self.left.saturating_sub(keep as u64);
                return Ok(Some(batch.slice(0, keep)));
            }
        }
        Ok(None)
    }

    fn is_by_position(&self) -> bool {
        self.request.rows.is_some() || self.request.row_numbers.is_some()
    }

    /// Begins to read a unit, unless there is nothing in it. One that nothing changes is read like any other columns by
    /// position, with all that saves.
    fn open(&mut self, unit: &Unit) -> Result<Option<Current>> {
        let found = unit.find(self.keys.as_deref())?;
        let Some((rowset, rows, shift)) = self.plain(&found) else {
            return Ok(found.read(&self.reading)?.map(Current::Rows));
        };
        if rows.is_empty() {
            return Ok(None);
        }
        let (columns, memory) = (self.reading.columns.clone(), self.reading.memory.clone());
        let columns = RowSetColumns { rowset, columns, memory };
        let request = ScanRequest {
            projection: Some(self.projection.clone()),
            limit: Some(self.left),
            ..self.request.clone()
        };
        let reader = positional::scan(&columns, &self.read_schema, &request, &rows)?;
        Ok(Some(Current::Plain(reader, shift)))
    }

    /// The rowset and the rows to read, if they can be read by position; and how far their positions in the table lie from
    /// those in the rowset.
    fn plain(&mut self, found: &UnitRows) -> Option<(Arc<RowSet>, RowRanges, u64)> {
        let (rowset, rows) = found.plain(&self.reading.columns, self.reading.snapshot)?;
        if !self.is_by_position() {
            return Some((Arc::clone(rowset), rows.clone(), 0));
        }
        // Where rows may turn out to be lost, those after them have no known position.
        let ([range], None) = (rows.as_slice(), &self.reading.losses) else { return None };
        let first = self.position;
        self.position = first.saturating_add(rows.count());
        let wanted = match &self.request.rows {
            Some(wanted) => wanted.within(&(first..self.position)).moved(range.start),
            None => rows.clone(),
        };
        Some((Arc::clone(rowset), wanted, first.wrapping_sub(range.start)))
    }

    /// With row numbers that count from the start of the table.
    fn numbered(&self, batch: RecordBatch, shift: u64) -> Result<RecordBatch> {
        let mut columns = batch.columns().to_vec();
        if self.request.row_numbers.is_some()
            && let Some(numbers) = columns.last_mut()
        {
            let moved =
                numbers.as_primitive::<UInt64Type>().unary::<_, UInt64Type>(|row| row.wrapping_add(shift));
            *numbers = Arc::new(moved);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }

    /// Numbers, filters and projects rows.
    fn finish(&mut self, rows: SomeRows) -> Result<RecordBatch> {
        let SomeRows { arrays, count } = rows;
        let first = self.position;
        self.position = first.saturating_add(count as u64);
        let matches = self.filter.as_ref().map(|filter| filter.matches(&arrays, count)).transpose()?;
        let positions = self.request.rows.as_ref();
        let wanted = positions.map(|rows| rows.within(&(first..self.position)).to_mask(count));
        let kept: Option<BooleanBuffer> = match (matches, wanted) {
            (Some(matches), Some(wanted)) => Some(&matches & &wanted),
            (one, other) => one.or(other),
        };
        let mut columns: Vec<ArrayRef> =
            self.projection.iter().filter_map(|index| arrays.get(*index).cloned()).collect();
        if self.request.row_numbers.is_some() {
            columns.push(Arc::new(UInt64Array::from_iter_values(first..self.position)));
        }
        let mut left = count;
        if let Some(kept) = kept {
            columns = keep_rows(columns, &kept)?;
            left = kept.count_set_bits();
        }
        let options = RecordBatchOptions::new().with_row_count(Some(left));
        Ok(RecordBatch::try_new_with_options(Arc::clone(&self.output), columns, &options)?)
    }
}

impl Iterator for TableScan {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.next_batch();
        if next.is_err() {
            self.left = 0;
        }
        next.map_err(|error| ArrowError::from(with_hint(error))).transpose()
    }
}

impl RecordBatchReader for TableScan {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.output)
    }
}

/// Says where the way out of damage is.
fn with_hint(error: Error) -> Error {
    let ErrorKind::Corrupt { expected, found } = error.kind() else { return error };
    let hinted = Error::corrupt(expected.clone(), format!("{found}; `salvage` gives what is left"));
    match error.position() {
        Some(position) => hinted.at(&position.path, position.offset, position.part),
        None => hinted,
    }
}

/// The columns of a rowset that nothing changes.
struct RowSetColumns {
    rowset: Arc<RowSet>,
    columns: Vec<KuduColumn>,
    memory: ScanMemory,
}

impl Columns for RowSetColumns {
    fn memory(&self) -> ScanMemory {
        self.memory.clone()
    }

    fn open(&self, column: usize, wanted: &RowRanges) -> Result<Box<dyn ColumnCursor>> {
        let column =
            self.columns.get(column).ok_or_else(|| Error::internal(format!("no column number {column}")))?;
        Ok(match self.rowset.column(column)? {
            Some(file) => Box::new(CellCursor::new(file, wanted.clone()).within(&self.memory)),
            None => Box::new(DefaultCursor(column.clone())),
        })
    }
}

/// A column that a rowset lacks: its default for every row.
struct DefaultCursor(KuduColumn);

impl ColumnCursor for DefaultCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        cells::default_array(&self.0, count)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        vec![(rows, None)]
    }
}
