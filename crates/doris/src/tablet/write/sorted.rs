//! The rows of a rowset in the order of its segments.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, UInt32Array};
use arrow_schema::SchemaRef;
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use pilaster_core::sort::{self, SortOptions, SortedRows, Sorter};
use pilaster_core::{Error, ErrorKind, Result};

use crate::schema::{KeysType, SchemaColumn, TabletSchema};
use crate::segment::row_keys;
use crate::tablet::doubts::Doubts;
use crate::tablet::merge::Merge;
use crate::tablet::segment_rows::{KeyColumns, MergedSegment, SegmentRows};

/// Rows of a batch that comes out.
const BATCH_ROWS: usize = 8192;

/// Sorts rows by what they are sorted by in a segment, or by the table's keys even where that are other columns.
pub(super) fn sorter(
    schema: &Arc<TabletSchema>,
    rows: SchemaRef,
    of_table: bool,
    memory_bytes: usize,
    folder: &Path,
) -> Sorter {
    let options = SortOptions::new(folder).with_memory_bytes(memory_bytes);
    let schema = Arc::clone(schema);
    Sorter::new(rows, options, move |batch, keys| {
        let found = row_keys(&schema, batch, of_table)?;
        (0..batch.num_rows()).for_each(|row| keys.push_bytes(found.key(row)));
        Ok(())
    })
}

/// What becomes of sorted rows.
pub(super) enum Ordered {
    /// They follow each other.
    Rows(Vec<RecordBatch>),
    /// Rows that only Doris can make one: those of equal keys go to segments of their own, and it will.
    Layers(Vec<Vec<RecordBatch>>),
}

/// One row for each key, out of rows in the order of the table's keys; all rows of a duplicate table.
pub(super) struct OneRowPerKey {
    schema: Arc<TabletSchema>,
    sorted: SortedRows,
    /// The row of the last key so far, which more rows may follow.
    carried: Option<RecordBatch>,
    /// Whether rows were found that only Doris can make one.
    is_layered: bool,
    /// So many rows are a segment then, and so many bytes.
    most: (u64, usize),
}

impl OneRowPerKey {
    pub fn new(schema: Arc<TabletSchema>, sorted: SortedRows, most: (u64, usize)) -> Self {
        Self { schema, sorted, carried: None, is_layered: false, most }
    }

    /// The next rows; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Ordered>> {
        if self.schema.keys_type == KeysType::Duplicate {
            return Ok(self.sorted.next().transpose()?.map(|batch| Ordered::Rows(vec![batch])));
        }
        if self.is_layered {
            return self.next_layers();
        }
        let Some(batch) = self.sorted.next().transpose()? else {
            return Ok(self.carried.take().map(|last| Ordered::Rows(vec![last])));
        };
        let arrow = batch.schema();
        let rows = match &self.carried {
            Some(last) => concat_batches(&arrow, [last, &batch])?,
            None => batch,
        };
        match merged(&self.schema, &rows) {
            Ok(mut batches) => {
                if let Some(end) = batches.pop() {
                    let before = end.num_rows().saturating_sub(1);
                    self.carried = Some(sort::with_own_values(&end.slice(before, 1))?);
                    batches.push(end.slice(0, before));
                }
                Ok(Some(Ordered::Rows(batches)))
            }
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
                self.carried = Some(rows);
                self.is_layered = true;
                self.next_layers()
            }
            Err(error) => Err(error),
        }
    }

    /// The rows of as many segments as the commonest key among the next has rows.
    fn next_layers(&mut self) -> Result<Option<Ordered>> {
        let (most_rows, most_bytes) = self.most;
        let mut parts: Vec<RecordBatch> = self.carried.take().into_iter().collect();
        let mut rows: u64 = parts.iter().map(|part| part.num_rows() as u64).sum();
        let mut bytes = 0usize;
        while rows < most_rows && bytes < most_bytes {
            let Some(batch) = self.sorted.next().transpose()? else { break };
            rows = rows.saturating_add(batch.num_rows() as u64);
            bytes = bytes.saturating_add(batch.get_array_memory_size());
            parts.push(batch);
        }
        let Some(first) = parts.first() else { return Ok(None) };
        let all = concat_batches(&first.schema(), &parts)?;
        let keys = row_keys(&self.schema, &all, true)?;
        let mut layers: Vec<Vec<u32>> = Vec::new();
        let (mut before, mut layer) = (None, 0usize);
        for (number, row) in (0..=u32::MAX).zip(0..all.num_rows()) {
            let key = keys.key(row);
            layer = if before == Some(key) { layer.saturating_add(1) } else { 0 };
            before = Some(key);
            match layers.get_mut(layer) {
                Some(rows) => rows.push(number),
                None => layers.push(vec![number]),
            }
        }
        let layers = layers.iter().map(|rows| taken(&all, rows)).collect::<Result<_>>()?;
        Ok(Some(Ordered::Layers(layers)))
    }
}

/// Some of the rows, in batches.
fn taken(all: &RecordBatch, rows: &[u32]) -> Result<Vec<RecordBatch>> {
    let parts = rows.chunks(BATCH_ROWS);
    parts.map(|rows| Ok(take_record_batch(all, &UInt32Array::from(rows.to_vec()))?)).collect()
}

/// One row for each key of sorted rows: of a unique table the one that wins, of an aggregating one what all make together.
fn merged(schema: &TabletSchema, sorted: &RecordBatch) -> Result<Vec<RecordBatch>> {
    let arrow = sorted.schema();
    let columns = arrow
        .fields()
        .iter()
        .map(|field| {
            let found = schema.columns.iter().find(|column| column.name == *field.name());
            found.ok_or_else(|| Error::invalid(format!("the schema has no column \"{}\"", field.name())))
        })
        .collect::<Result<Vec<&SchemaColumn>>>()?;
    let reader = Box::new(RecordBatchIterator::new([Ok(sorted.clone())], Arc::clone(&arrow)));
    let rows = SegmentRows {
        reader,
        schema: Arc::clone(&arrow),
        version: 0,
        log: None,
        keeps: Vec::new(),
        filled: HashSet::new(),
    };
    let source = MergedSegment::new(rows, KeyColumns::new(&columns, &arrow)?, None);
    let doubts = Arc::new(Doubts::default());
    let mut merge = Merge::new(vec![Box::new(source)], arrow, &columns, schema, BATCH_ROWS, doubts);
    let mut batches = Vec::new();
    while let Some(batch) = merge.next()? {
        batches.push(batch);
    }
    Ok(batches)
}
