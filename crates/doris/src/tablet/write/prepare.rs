//! The rows of one segment, out of rows in any order.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchIterator, UInt32Array};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use pilaster_core::{Error, ErrorKind, Result};

use crate::schema::{KeysType, SchemaColumn, TabletSchema};
use crate::segment::row_keys;
use crate::tablet::doubts::Doubts;
use crate::tablet::merge::Merge;
use crate::tablet::segment_rows::{KeyColumns, MergedSegment, SegmentRows};

/// Rows of a batch that comes out.
const BATCH_ROWS: usize = 8192;

/// Rows for the segments to write: usually one.
pub(super) fn prepare(schema: &TabletSchema, batches: &[RecordBatch]) -> Result<Vec<Vec<RecordBatch>>> {
    let Some(first) = batches.first() else { return Ok(Vec::new()) };
    let all = concat_batches(&first.schema(), batches)?;
    if schema.keys_type == KeysType::Duplicate {
        let order = row_keys(schema, &all, false)?.order();
        return Ok(vec![taken(&all, &order)?]);
    }
    let keys = row_keys(schema, &all, true)?;
    let order = keys.order();
    match merged(schema, &all, &order) {
        Ok(merged) if schema.cluster_key_uids.is_empty() => Ok(vec![merged]),
        Ok(merged) => {
            let merged = concat_batches(&first.schema(), &merged)?;
            let order = row_keys(schema, &merged, false)?.order();
            Ok(vec![taken(&merged, &order)?])
        }
        // States that only Doris can merge: equal keys go to segments of their own, and it will.
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => {
            let mut layers: Vec<Vec<u32>> = Vec::new();
            let (mut before, mut layer) = (None, 0usize);
            for row in order {
                let key = keys.key(row as usize);
                layer = if before == Some(key) { layer.saturating_add(1) } else { 0 };
                before = Some(key);
                match layers.get_mut(layer) {
                    Some(rows) => rows.push(row),
                    None => layers.push(vec![row]),
                }
            }
            layers.iter().map(|rows| taken(&all, rows)).collect()
        }
        Err(error) => Err(error),
    }
}

/// Rows in an order, in batches.
fn taken(all: &RecordBatch, order: &[u32]) -> Result<Vec<RecordBatch>> {
    let is_in_order = order.iter().enumerate().all(|(at, row)| at == *row as usize);
    if is_in_order && order.len() == all.num_rows() {
        return Ok(vec![all.clone()]);
    }
    let parts = order.chunks(BATCH_ROWS);
    parts.map(|rows| Ok(take_record_batch(all, &UInt32Array::from(rows.to_vec()))?)).collect()
}

/// One row for each key: of a unique table the one that wins, of an aggregating one what all make together.
fn merged(schema: &TabletSchema, all: &RecordBatch, order: &[u32]) -> Result<Vec<RecordBatch>> {
    let arrow = all.schema();
    let columns = arrow
        .fields()
        .iter()
        .map(|field| {
            let found = schema.columns.iter().find(|column| column.name == *field.name());
            found.ok_or_else(|| Error::invalid(format!("the schema has no column \"{}\"", field.name())))
        })
        .collect::<Result<Vec<&SchemaColumn>>>()?;
    let sorted = taken(all, order)?.into_iter().map(Ok);
    let reader = Box::new(RecordBatchIterator::new(sorted.collect::<Vec<_>>(), Arc::clone(&arrow)));
    let rows = SegmentRows {
        reader,
        schema: Arc::clone(&arrow),
        version: 0,
        first_row: 0,
        log: None,
        keeps: Vec::new(),
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
