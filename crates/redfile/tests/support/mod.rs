//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub mod golden;
pub mod physical;
pub mod random;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use pilaster_core::{Dataset, Result, Scan};
use pilaster_redfile::{RedfileReader, RedfileWriter, RedfileWriterOptions};
#[allow(unused_imports, reason = "every test program uses its own part of this")]
pub use pilaster_testing::{batches, memory, workspace};

/// The files that are committed with the tests.
pub fn testdata() -> PathBuf {
    pilaster_testing::testdata("redfile")
}

/// The golden files of the real system, which are not committed.
pub fn goldens() -> PathBuf {
    pilaster_testing::goldens("redfile")
}

/// Opens bytes as a file.
pub fn open(bytes: &[u8]) -> Result<RedfileReader> {
    RedfileReader::open(memory("test.red", bytes.to_vec()))
}

/// The rows of each row group, which are the tasks of a scan of everything.
pub fn row_groups(reader: &RedfileReader) -> Vec<Range<u64>> {
    let tasks = reader.scan().plan().unwrap().tasks().unwrap();
    tasks.iter().map(|task| task.span().rows.clone().unwrap()).collect()
}

/// All rows of a scan in one batch.
pub fn one_batch(scan: Scan<'_>) -> Result<RecordBatch> {
    let reader = scan.read()?;
    let schema = reader.schema();
    let batches = reader.map(|batch| batch.map_err(Into::into)).collect::<Result<Vec<_>>>()?;
    if let [only] = batches.as_slice() {
        return Ok(only.clone());
    }
    Ok(arrow_select::concat::concat_batches(&schema, &batches)?)
}

/// Everything in a file.
pub fn read_all(bytes: &[u8]) -> Result<RecordBatch> {
    one_batch(open(bytes)?.scan().batch_size(1 << 20))
}

/// A file of one batch.
pub fn write(batch: &RecordBatch, options: RedfileWriterOptions) -> Result<Vec<u8>> {
    let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), options)?;
    writer.write(batch)?;
    Ok(writer.finish()?.0)
}

/// A small file with lists, several row groups and pages, made by this crate.
pub fn small_file(checkpoint_interval: u32) -> Vec<u8> {
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut words = StringBuilder::new();
    for row in 0..12 {
        for item in 0..row % 4 {
            lists.values().append_option((item % 3 != 1).then_some(row * 100 + item));
        }
        lists.append(row % 5 != 2);
        words.append_option((row % 3 != 0).then(|| format!("word {row}")));
    }
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..12)), false),
        ("list", Arc::new(lists.finish()), true),
        ("word", Arc::new(words.finish()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
    let options = RedfileWriterOptions::default()
        .with_page_bytes(16)
        .with_row_group_rows(3)
        .with_created_by(None)
        .with_sync_marker([7; 16])
        .with_checkpoint_interval(checkpoint_interval);
    write(&batch, options).unwrap()
}

/// Numbers that look random and are the same in every run.
#[derive(Debug, Clone)]
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}
