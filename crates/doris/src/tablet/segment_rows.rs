//! The rows of one segment of a tablet.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SchemaRef};
use arrow_select::filter::{filter, filter_record_batch};
use pilaster_core::merge::{KeyedRows, Keys, SomeRows};
use pilaster_core::{BatchReader, Dataset, LossLog, Result};

use super::addresses;
use super::delete_predicate::BoundKeeps;
use super::delete_values::is_address;
use super::doubts::Doubts;
use super::reader::{Tablet, TabletSegment};
use crate::schema::{SchemaColumn, VERSION_COLUMN};

/// Rows in the tablet's schema and with the version of their rowset.
pub(in crate::tablet) struct SegmentRows {
    pub reader: BatchReader,
    pub schema: SchemaRef,
    pub version: i64,
    /// What the segment has lost so far, if it goes on over damage.
    pub log: Option<Arc<LossLog>>,
    /// What must be true for rows to stay that the reader could not be asked for.
    pub keeps: Vec<BoundKeeps>,
    /// Columns whose lost cells are given as null: their rows are not lost.
    pub filled: HashSet<String>,
}

impl SegmentRows {
    /// The next rows, and their positions in the segment if the reader was asked for them.
    pub fn next(&mut self) -> Result<Option<(RecordBatch, Option<ArrayRef>)>> {
        let Some(batch) = self.reader.next().transpose()? else { return Ok(None) };
        let mut columns = batch.columns().to_vec();
        let positions = if columns.len() > self.schema.fields().len() { columns.pop() } else { None };
        for (field, column) in self.schema.fields().iter().zip(&mut columns) {
            if field.name() == VERSION_COLUMN && field.data_type() == &DataType::Int64 {
                *column = Arc::new(Int64Array::from(vec![self.version; batch.num_rows()]));
            }
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let mut batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)?;
        let mut positions = positions;
        for keeps in &self.keeps {
            let stays = keeps.evaluate(&batch)?;
            batch = filter_record_batch(&batch, &stays)?;
            positions = positions.map(|all| filter(&all, &stays)).transpose()?;
        }
        Ok(Some((batch, positions)))
    }

    /// Notes in `all` what was lost, with positions in the tablet if those are known before reading, else in the segment.
    pub fn report_losses(&self, tablet: &Tablet, segment: &TabletSegment, all: &LossLog) {
        for lost in self.log.iter().flat_map(|log| log.losses()) {
            all.add(tablet.placed(lost, segment.reader.name(), segment.first_row));
        }
    }
}

/// Where a segment says what it has lost.
pub(in crate::tablet) struct MergedLosses {
    /// The losses of the whole tablet.
    pub all: Arc<LossLog>,
    /// The keys that they leave uncertain.
    pub doubts: Arc<Doubts>,
    pub tablet: Arc<Tablet>,
    /// Which of its segments it is.
    pub number: usize,
}

/// The rows of a segment to be merged with those of others.
pub(in crate::tablet) struct MergedSegment {
    rows: SegmentRows,
    keys: KeyColumns,
    losses: Option<MergedLosses>,
    /// Position up to which everything is given or known to be lost, and the key of the last row given.
    next_position: u64,
    last_key: Option<Vec<u8>>,
}

/// Where the key columns stand, and how they become bytes.
#[derive(Clone)]
pub(in crate::tablet) struct KeyColumns {
    columns: Vec<KeyColumn>,
    converter: Arc<RowConverter>,
}

/// A key among the columns.
#[derive(Clone)]
struct KeyColumn {
    at: usize,
    /// Whether it is an address: given as text, but sorted as a number.
    is_address: bool,
}

impl KeyColumn {
    fn sorted_as(&self, schema: &SchemaRef) -> SortField {
        SortField::new(match schema.field(self.at).data_type() {
            DataType::Utf8View if self.is_address => DataType::BinaryView,
            other => other.clone(),
        })
    }

    /// The values in a form that is in the order of the rows.
    fn sortable(&self, batch: &RecordBatch) -> Result<ArrayRef> {
        let array = batch.column(self.at);
        match array.data_type() {
            DataType::Utf8View if self.is_address => addresses::octets(array),
            _ => Ok(Arc::clone(array)),
        }
    }
}

impl KeyColumns {
    /// The keys among `columns`, whose values have the types of `schema`.
    pub fn new(columns: &[&SchemaColumn], schema: &SchemaRef) -> Result<Self> {
        let keys = columns.iter().enumerate().filter(|(_, column)| column.is_key);
        let columns: Vec<_> =
            keys.map(|(at, column)| KeyColumn { at, is_address: is_address(column) }).collect();
        let fields = columns.iter().map(|key| key.sorted_as(schema)).collect();
        Ok(Self { columns, converter: Arc::new(RowConverter::new(fields)?) })
    }

    pub fn encode(&self, batch: &RecordBatch, keys: &mut Keys) -> Result<()> {
        let columns = self.columns.iter().map(|key| key.sortable(batch)).collect::<Result<Vec<_>>>()?;
        let rows = self.converter.convert_columns(&columns)?;
        keys.clear(rows.num_rows());
        for row in &rows {
            keys.push(|bytes| {
                bytes.extend_from_slice(row.as_ref());
                Ok(())
            })?;
        }
        Ok(())
    }
}

impl MergedSegment {
    pub fn new(rows: SegmentRows, keys: KeyColumns, losses: Option<MergedLosses>) -> Self {
        Self { rows, keys, losses, next_position: 0, last_key: None }
    }

    /// Adds the keys that rows lost before or between these may have.
    fn note_doubts(&mut self, positions: Option<&ArrayRef>, keys: &Keys) {
        let (Some(MergedLosses { doubts, .. }), Some(log)) = (&self.losses, &self.rows.log) else { return };
        let positions = positions.and_then(|positions| positions.as_primitive_opt::<UInt64Type>());
        let positions = positions.map(|positions| positions.values().as_ref()).unwrap_or_default();
        let end = positions.last().map_or(u64::MAX, |last| last.saturating_add(1));
        let is_filled = |column: &String| self.rows.filled.contains(column);
        for lost in log.losses().into_iter().filter(|lost| !lost.column.as_ref().is_some_and(is_filled)) {
            let Some(rows) = lost.positions() else {
                // They may lie anywhere.
                doubts.add(None, None);
                continue;
            };
            if rows.start < self.next_position || rows.start >= end {
                continue;
            }
            let row = positions.partition_point(|position| *position < rows.start);
            let before = (row < keys.len()).then(|| keys.get(row).to_vec());
            let after = match row.checked_sub(1) {
                Some(row) => Some(keys.get(row).to_vec()),
                None => self.last_key.clone(),
            };
            doubts.add(after, before);
        }
        self.next_position = end;
        if let Some(last) = keys.len().checked_sub(1) {
            self.last_key = Some(keys.get(last).to_vec());
        }
    }
}

impl KeyedRows for MergedSegment {
    fn first_key(&self) -> &[u8] {
        &[]
    }

    fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        let mut own = Keys::default();
        let keys = keys.unwrap_or(&mut own);
        keys.clear(0);
        loop {
            let Some((batch, positions)) = self.rows.next()? else {
                self.note_doubts(None, keys);
                if let Some(MergedLosses { all, tablet, number, .. }) = &self.losses
                    && let Some(segment) = tablet.segments.get(*number)
                {
                    self.rows.report_losses(tablet, segment, all);
                }
                return Ok(None);
            };
            if batch.num_rows() > 0 {
                self.keys.encode(&batch, keys)?;
                self.note_doubts(positions.as_ref(), keys);
                return Ok(Some(SomeRows { count: batch.num_rows(), arrays: batch.columns().to_vec() }));
            }
        }
    }
}
