//! A tablet of a thousand rowsets, in more files than a process may have open.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::Dataset;
use pilaster_kudu::cfile::{CFileWriterOptions, Encoding};
use support::made::{MadeServer, Partition};

const ROWSETS: usize = 1000;
const ROWS: usize = 250;
const TEXT_BYTES: usize = 2048;
/// What this process may have open; there are twice as many files as rowsets.
const MOST_FILES: usize = 100;

fn fields() -> Vec<Field> {
    vec![Field::new("k", DataType::Int64, false), Field::new("text", DataType::Utf8, false)]
}

fn batch(keys: impl Iterator<Item = i64>) -> RecordBatch {
    let keys = Int64Array::from_iter_values(keys);
    let texts = (0..keys.len()).map(|row| format!("{row:08}").repeat(TEXT_BYTES / 8));
    let columns: Vec<ArrayRef> = vec![Arc::new(keys), Arc::new(StringArray::from_iter_values(texts))];
    RecordBatch::try_new(Arc::new(Schema::new(fields())), columns).unwrap()
}

/// A table whose rowset number n has the keys `key_of(n, 0..ROWS)`; all have the same texts, half a gigabyte in all.
fn made(key_of: impl Fn(usize, usize) -> i64) -> MadeServer {
    let options =
        CFileWriterOptions::default().with_encoding(Encoding::Plain).with_block_size_bytes(32 << 10);
    let mut server = MadeServer::new(fields(), 1).with_options(options);
    let mut rowsets = Vec::new();
    let mut texts: Option<u64> = None;
    for number in 0..ROWSETS {
        let rows = batch((0..ROWS).map(|row| key_of(number, row)));
        let same: Vec<_> = texts.iter().map(|block| (1, *block)).collect();
        let rowset = server.rowset(&rows, &same);
        texts.get_or_insert(rowset.columns[1].block.clone().unwrap().id.unwrap());
        rowsets.push(rowset);
    }
    server.tablet(rowsets, Partition::default());
    server
}

/// Bytes of memory, or open files, of this process; `None` where the system does not say.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? << 10)
}

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Scans all and checks keys and texts: keys ascend, and the text follows from the row of its rowset.
fn check(server: &MadeServer, row_of: impl Fn(usize) -> usize) {
    let table = server.open();
    let before = memory_peak();
    let (mut last, mut count, mut most_files) = (-1, 0, 0);
    for batch in table.scan().read().unwrap() {
        let batch = batch.unwrap();
        assert!(batch.num_rows() <= 8192);
        let keys = batch.column(0).as_primitive::<Int64Type>().values();
        for (key, text) in keys.iter().zip(batch.column(1).as_string_view()) {
            assert!(*key > last, "{key} after {last}");
            last = *key;
            let expected = format!("{:08}", row_of(*key as usize));
            let text = text.unwrap();
            assert!(text.len() == TEXT_BYTES && text.starts_with(&expected) && text.ends_with(&expected));
        }
        count += batch.num_rows();
        most_files = most_files.max(open_files());
    }
    assert_eq!(count, ROWSETS * ROWS);
    assert!(most_files <= MOST_FILES, "{most_files} open files");
    if let (Some(before), Some(after)) = (before, memory_peak()) {
        let grown = after.saturating_sub(before) >> 20;
        assert!(grown < 200, "{grown} MiB more for a table of {} MiB", (ROWSETS * ROWS * TEXT_BYTES) >> 20);
    }
}

#[cfg(unix)]
fn limit_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = Rlimit { current: Some(MOST_FILES as u64), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[cfg(not(unix))]
fn limit_open_files() {}

#[test]
fn a_thousand_rowsets_are_merged_in_little_memory_and_few_files() {
    limit_open_files();
    // Each after the other: one is read at a time.
    check(&made(|number, row| (number * ROWS + row) as i64), |key| key % ROWS);
    // Each overlaps the next two: three are held.
    let place = |number: usize, row: usize| number * ROWS + row * 3;
    check(&made(|number, row| (place(number, row) * ROWSETS + number) as i64), |key| {
        (key / ROWSETS - place(key % ROWSETS, 0)) / 3
    });
    // All through each other: a little of each is held.
    check(&made(|number, row| (row * ROWSETS + number) as i64), |key| key / ROWSETS);
}
