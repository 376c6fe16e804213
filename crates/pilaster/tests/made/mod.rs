//! Data for the tests: rows made by a rule, and files made of them.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use pilaster::{BatchReader, Dataset};

/// Rows in a sample, unless a test wants fewer.
pub const ROWS: usize = 5000;

/// Rows by a rule: `id` counts, `name` is a letter or null, `price` a number or null.
pub fn sample(rows: usize) -> RecordBatch {
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows as i64));
    let name: ArrayRef = Arc::new(StringArray::from_iter((0..rows).map(|row| {
        (row % 7 != 3).then(|| format!("{}{}", char::from(b'a' + (row / 13 % 10) as u8), row * 7919 % 1000))
    })));
    let price: ArrayRef = Arc::new(Float64Array::from_iter(
        (0..rows).map(|row| (row % 11 != 0).then(|| (row * 31 % 977) as f64 / 16.0)),
    ));
    RecordBatch::try_from_iter_with_nullable([
        ("id", id, false),
        ("name", name, true),
        ("price", price, true),
    ])
    .unwrap()
}

/// A Parquet file with small pages and, unless told otherwise, a page index.
pub fn parquet_bytes(batch: &RecordBatch, group_rows: usize) -> Vec<u8> {
    parquet_bytes_with(batch, group_rows, true)
}

pub fn parquet_bytes_with(batch: &RecordBatch, group_rows: usize, with_index: bool) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(group_rows))
        .set_data_page_row_count_limit(200)
        .set_write_batch_size(50)
        .set_dictionary_enabled(false)
        .set_compression(parquet::basic::Compression::SNAPPY)
        .set_statistics_enabled(if with_index { EnabledStatistics::Page } else { EnabledStatistics::Chunk })
        .set_offset_index_disabled(!with_index)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

/// The `id` column of everything a reader gives.
pub fn ids(reader: BatchReader) -> Vec<i64> {
    let mut ids = Vec::new();
    for batch in reader {
        let batch = batch.unwrap();
        ids.extend(batch.column_by_name("id").unwrap().as_primitive::<Int64Type>().values());
    }
    ids
}

/// Everything in one batch.
pub fn all_rows(dataset: &dyn Dataset) -> RecordBatch {
    let batches: Vec<_> = dataset.scan().read().unwrap().collect::<Result<_, _>>().unwrap();
    arrow_select::concat::concat_batches(&dataset.schema(), &batches).unwrap()
}
