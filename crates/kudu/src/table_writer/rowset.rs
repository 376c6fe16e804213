//! Sorted rows → the blocks of a rowset.
//!
//! In the order in which a server creates them: the columns, the bloom filter, the index of a compound key, the UNDO deltas. Each
//! row has an UNDO that deletes it before the time of writing, as a row has that a client inserted then.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::builder::BinaryBuilder;
use arrow_schema::{DataType, Field};
use pilaster_core::Result;
use pilaster_core::dataset::DEFAULT_BATCH_SIZE;
use prost::Message;

use super::columns::TableColumns;
use super::run::SortedRun;
use crate::cfile::{
    BloomFileWriter, CFileWriter, CFileWriterOptions, Compression, DELTA_STATISTICS, Encoding,
};
use crate::fs::{BlockWriter, WrittenBlock};
use crate::key::encode_ordered_varint;
use crate::messages::{ColumnDataPb, DeltaDataPb, DeltaStatsPb, RowSetDataPb};
use crate::tablet::{ChangeBuilder, ChangeKind};

/// Bytes of a block of the index of a compound key (`default_composite_key_index_block_size_bytes`).
const KEY_INDEX_BLOCK_BYTES: usize = 4096;
/// Bytes of a block of a delta file (`deltafile_default_block_size`).
const DELTA_BLOCK_BYTES: usize = 32 << 10;

/// A rowset that was written.
#[derive(Debug)]
pub(super) struct WrittenRowSet {
    pub message: RowSetDataPb,
    /// The block in which its keys stand in order: the only key column's, or the index of a compound key.
    pub keys: WrittenBlock,
}

/// Writes `rows` of a run as the rowset `id`, inserted at `timestamp` or, without one, since ever.
pub(super) fn write_rowset(
    id: u64,
    run: &SortedRun,
    rows: Range<usize>,
    table: &TableColumns,
    timestamp: Option<u64>,
    blocks: &mut BlockWriter,
) -> Result<WrittenRowSet> {
    let is_single = table.key_count == 1;
    let mut columns = Vec::with_capacity(table.columns.len());
    let mut only_key = None;
    for (index, column) in table.columns.iter().enumerate() {
        let options = column.cfile_options(is_single && index == 0);
        let block = blocks.write_block(|sink| {
            let mut file = CFileWriter::try_new(sink, &column.field, options)?;
            for part in parts(&rows) {
                file.write_array(&run.values(index, part)?)?;
            }
            file.finish().map(drop)
        })?;
        columns.push(ColumnDataPb { block: Some(block.message()), column_id: column.column.id });
        if is_single && index == 0 {
            only_key = Some(block);
        }
    }
    let bloom = blocks.write_block(|sink| {
        let mut file = BloomFileWriter::try_new(sink)?;
        rows.clone().try_for_each(|row| file.add(run.key(row)))?;
        file.finish().map(drop)
    })?;
    let (keys, key_index) = match only_key {
        Some(column) => (column, None),
        None => {
            let index = write_key_index(run, &rows, blocks)?;
            (index.clone(), Some(index))
        }
    };
    let undo = timestamp.map(|timestamp| write_inserts(rows.len(), timestamp, blocks)).transpose()?;
    let message = RowSetDataPb {
        id: Some(id),
        last_durable_dms_id: Some(-1),
        columns,
        redo_deltas: Vec::new(),
        undo_deltas: undo.iter().map(|undo| DeltaDataPb { block: Some(undo.message()) }).collect(),
        bloom_block: Some(bloom.message()),
        adhoc_index_block: key_index.map(|block| block.message()),
        min_encoded_key: None,
        max_encoded_key: None,
        live_row_count: i64::try_from(rows.len()).ok(),
    };
    Ok(WrittenRowSet { message, keys })
}

/// `rows` in stretches of a batch.
fn parts(rows: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
    let end = rows.end;
    rows.clone()
        .step_by(DEFAULT_BATCH_SIZE)
        .map(move |start| start..start.saturating_add(DEFAULT_BATCH_SIZE).min(end))
}

fn write_key_index(run: &SortedRun, rows: &Range<usize>, blocks: &mut BlockWriter) -> Result<WrittenBlock> {
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Prefix)
        .with_compression(Compression::Lz4)
        .with_block_size_bytes(KEY_INDEX_BLOCK_BYTES)
        .with_positional_index(false)
        .with_value_index(true);
    write_bytes(options, rows, blocks, |row, key| key.extend_from_slice(run.key(row)))
}

/// An UNDO file that deletes each of `rows` rows before `timestamp`.
fn write_inserts(rows: usize, timestamp: u64, blocks: &mut BlockWriter) -> Result<WrittenBlock> {
    let statistics = DeltaStatsPb {
        delete_count: i64::try_from(rows).ok(),
        min_timestamp: Some(timestamp),
        max_timestamp: Some(timestamp),
        column_stats: Vec::new(),
        reinsert_count: Some(0),
    };
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_compression(Compression::Lz4)
        .with_block_size_bytes(DELTA_BLOCK_BYTES)
        .with_delta_index()
        .with_metadata(DELTA_STATISTICS, statistics.encode_to_vec());
    let mut deletion = Vec::new();
    encode_ordered_varint(timestamp, &mut deletion);
    deletion.extend(ChangeBuilder::new(ChangeKind::Delete).finish());
    write_bytes(options, &(0..rows), blocks, |row, change| {
        encode_ordered_varint(row as u64, change);
        change.extend_from_slice(&deletion);
    })
}

/// A CFile of bytes; `fill` appends those of a row.
fn write_bytes(
    options: CFileWriterOptions,
    rows: &Range<usize>,
    blocks: &mut BlockWriter,
    fill: impl Fn(usize, &mut Vec<u8>),
) -> Result<WrittenBlock> {
    let field = Field::new("value", DataType::Binary, false);
    blocks.write_block(|sink| {
        let mut file = CFileWriter::try_new(sink, &field, options)?;
        let mut value = Vec::new();
        for part in parts(rows) {
            let mut values = BinaryBuilder::with_capacity(part.len(), 0);
            for row in part {
                value.clear();
                fill(row, &mut value);
                values.append_value(&value);
            }
            file.write_array(&(Arc::new(values.finish()) as _))?;
        }
        file.finish().map(drop)
    })
}
