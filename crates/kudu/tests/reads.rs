//! How much of a file is read for what is asked.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::plan::TASK_ROWS;
use pilaster_core::source::{CountingSource, FileSource, ReadCounts};
use pilaster_core::{Dataset, Predicate, RowRanges, Scan, SourceRef, col, lit};
use pilaster_kudu::cfile::{CFileReader, CFileWriterOptions, Encoding};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};

use pilaster_testing::ReadRecorder;
use support::{batches, memory, write};

const ROWS: i32 = 50_000;

/// A file of many small blocks under an index of several levels.
fn many_blocks(encoding: Encoding, value_index: bool) -> (Arc<CountingSource>, CFileReader) {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values((0..ROWS).map(|row| row * 2)));
    let options = CFileWriterOptions::default()
        .with_encoding(encoding)
        .with_block_size_bytes(1024)
        .with_index_block_size_bytes(512)
        .with_value_index(value_index);
    let bytes = write(&Field::new("value", DataType::Int32, false), &[array], options).unwrap();
    let source = Arc::new(CountingSource::new(memory("counted", bytes)));
    let reader = CFileReader::open(Arc::clone(&source) as SourceRef).unwrap();
    (source, reader)
}

fn rows_read(reader: &CFileReader, rows: std::ops::Range<u64>) -> usize {
    batches(reader.scan().rows(RowRanges::one(rows))).unwrap().iter().map(RecordBatch::num_rows).sum()
}

#[test]
fn one_row_costs_one_data_block_once_the_index_is_known() {
    for encoding in [Encoding::Plain, Encoding::BitShuffle, Encoding::Rle] {
        let (source, reader) = many_blocks(encoding, false);
        let blocks: Vec<_> = reader.pages().unwrap().into_iter().filter(|page| page.rows.is_some()).collect();
        assert!(blocks.len() > 20, "{encoding}: {}", blocks.len());
        for page in [&blocks[0], &blocks[7]] {
            let row = page.rows.as_ref().unwrap().end - 1;
            source.reset();
            assert_eq!(rows_read(&reader, row..row + 1), 1);
            assert_eq!(source.counts(), ReadCounts { reads: 1, bytes: page.bytes }, "{encoding} row {row}");
        }
        // The end of the file was read when it was opened, and is kept.
        source.reset();
        assert_eq!(rows_read(&reader, ROWS as u64 - 1..ROWS as u64), 1);
        assert_eq!(source.counts(), ReadCounts { reads: 0, bytes: 0 }, "{encoding}, last row");
    }
}

#[test]
fn a_row_of_a_fresh_file_costs_one_block_of_each_level() {
    let (source, reader) = many_blocks(Encoding::Plain, false);
    let index_blocks = reader.pages().unwrap().iter().filter(|page| page.rows.is_none()).count();
    assert!(index_blocks > 4, "{index_blocks}");
    let source = Arc::new(CountingSource::new(Arc::clone(&source) as SourceRef));
    let reader = CFileReader::open(Arc::clone(&source) as SourceRef).unwrap();
    assert!(source.counts().reads <= 3, "{:?} to open", source.counts());
    source.reset();
    assert_eq!(rows_read(&reader, 30_000..30_001), 1);
    assert!(source.counts().reads <= 4, "{:?}", source.counts());
}

#[test]
fn a_second_scan_reads_data_blocks_only() {
    let (source, reader) = many_blocks(Encoding::Plain, false);
    assert_eq!(rows_read(&reader, 0..ROWS as u64), ROWS as usize);
    source.reset();
    assert_eq!(rows_read(&reader, 0..ROWS as u64), ROWS as usize);
    let pages = reader.pages().unwrap();
    let data: u64 = pages.iter().filter(|page| page.rows.is_some()).map(|page| page.bytes).sum();
    let index: u64 = pages.iter().filter(|page| page.rows.is_none()).map(|page| page.bytes).sum();
    // Neighbouring blocks are fetched together, with the index blocks that lie between them.
    let counts = source.counts();
    assert!(counts.bytes >= data && counts.bytes <= data + index, "{counts:?}, {data} bytes of data");
    assert!(counts.reads <= 2 + data / (1 << 20), "{counts:?}");
}

#[test]
fn a_range_of_keys_reads_its_own_blocks() {
    let (source, reader) = many_blocks(Encoding::Plain, true);
    let find = || {
        let wanted = Predicate::And(vec![col("value").gt_eq(lit(40_000)), col("value").lt(lit(40_200))]);
        batches(reader.scan().filter(wanted)).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>()
    };
    assert_eq!(find(), 100);
    source.reset();
    assert_eq!(find(), 100);
    let counts = source.counts();
    let block = reader.pages().unwrap()[0].bytes;
    // Both ends are looked up, the column is read to filter and once more to give: at most two blocks each.
    assert!(counts.bytes <= 6 * block, "{counts:?}, blocks of {block} bytes");
    // And these are the same two.
    let noted = Arc::new(ReadRecorder::new(source as SourceRef));
    let reader = CFileReader::open(Arc::clone(&noted) as SourceRef).unwrap();
    let pages = reader.pages().unwrap();
    noted.take();
    let wanted = Predicate::And(vec![col("value").gt_eq(lit(40_000)), col("value").lt(lit(40_200))]);
    assert_eq!(batches(reader.scan().filter(wanted)).unwrap().len(), 1);
    let rows = 20_000..20_100;
    for range in noted.take() {
        let page = pages.iter().find(|page| page.offset == range.start).unwrap();
        let held = page.rows.clone().unwrap_or_else(|| panic!("{range:?} is a {}", page.kind));
        assert_eq!(page.offset + page.bytes, range.end);
        assert!(held.start < rows.end && rows.start < held.end, "rows {held:?}");
    }
}

#[test]
fn ranges_of_keys_inside_a_block_are_exact() {
    let field = Field::new("value", DataType::Int64, false);
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values((0..40_000).map(|row| row * 3)));
    for encoding in [Encoding::Plain, Encoding::BitShuffle] {
        let options = CFileWriterOptions::default()
            .with_encoding(encoding)
            .with_block_size_bytes(256 << 10)
            .with_value_index(true);
        let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
        let reader = CFileReader::open(memory("blocks", bytes)).unwrap();
        let first = reader.pages().unwrap()[0].rows.clone().unwrap().end as i64;
        assert!((8_000..35_000).contains(&first), "{encoding}: {first} rows in a block");
        let starts = [
            -1,
            0,
            1,
            3,
            29,
            7_000,
            3 * first - 3_100,
            3 * first - 3,
            3 * first,
            3 * first + 1,
            119_997,
            119_999,
        ];
        let lengths = [-50, 0, 1, 3, 3 * 1_023, 3 * 1_024, 3 * 1_025, 3 * 2_049, 3 * 9_000, 200_000];
        for (from, length) in starts.iter().flat_map(|from| lengths.map(|length| (*from, length))) {
            let to = from + length;
            for (lower, upper, end) in [
                (col("value").gt_eq(lit(from)), col("value").lt(lit(to)), from..to),
                (col("value").gt(lit(from)), col("value").lt_eq(lit(to)), from + 1..to + 1),
            ] {
                let wanted = Predicate::And(vec![lower, upper]);
                let expected: Vec<i64> =
                    (0..40_000).map(|row| row * 3).filter(|value| end.contains(value)).collect();
                let found: Vec<i64> = batches(reader.scan().filter(wanted.clone()))
                    .unwrap()
                    .iter()
                    .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec())
                    .collect();
                assert!(
                    found == expected,
                    "{encoding}, {wanted}: {} rows of {}",
                    found.len(),
                    expected.len()
                );
            }
        }
    }
}

#[test]
fn tasks_without_a_wanted_key_are_left_out() {
    let field = Field::new("value", DataType::Int64, false);
    let array: ArrayRef = Arc::new(Int64Array::from_iter_values(0..400_000));
    let bytes = write(&field, &[array], CFileWriterOptions::default().with_value_index(true)).unwrap();
    let reader = CFileReader::open(memory("tasks", bytes)).unwrap();
    let starts = |scan: Scan<'_>| -> Vec<u64> {
        let tasks = scan.plan().unwrap().tasks().unwrap();
        tasks.iter().map(|task| task.span().rows.clone().unwrap().start / TASK_ROWS).collect()
    };
    assert_eq!(starts(reader.scan()), [0, 1, 2, 3]);
    for (predicate, expected) in [
        (col("value").eq(lit(200_000_i64)), vec![1]),
        (col("value").lt(lit(131_072_i64)), vec![0]),
        (col("value").lt_eq(lit(131_072_i64)), vec![0, 1]),
        (col("value").gt(lit(399_998_i64)), vec![3]),
        (col("value").gt(lit(400_000_i64)), vec![]),
        (col("value").not_eq(lit(0_i64)), vec![0, 1, 2, 3]),
    ] {
        let scan = reader.scan().filter(predicate.clone());
        assert_eq!(starts(scan), expected, "{predicate}");
    }
    assert!(reader.scan().filter(col("other").eq(lit(1_i64))).plan().is_err());
}

#[test]
fn a_key_that_is_not_there_reads_one_block() {
    let (source, reader) = many_blocks(Encoding::Plain, true);
    let find = |value: i32| batches(reader.scan().filter(col("value").eq(lit(value)))).unwrap();
    assert!(find(40_001).is_empty());
    source.reset();
    assert!(find(40_001).is_empty());
    assert!(source.counts().reads <= 2, "{:?}", source.counts());
}

#[test]
fn a_set_opens_the_files_of_the_columns_it_needs() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("name", DataType::Utf8, true),
        Field::new("amount", DataType::Int32, false),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..20_000)),
        Arc::new(StringArray::from_iter((0..20_000).map(|row| (row % 3 > 0).then(|| format!("name {row}"))))),
        Arc::new(Int32Array::from_iter_values(0..20_000)),
    ];
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let options = CFileSetWriterOptions::default()
        .with_key("id")
        .with_column_options(CFileWriterOptions::default().with_block_size_bytes(4096));
    let mut writer = CFileSetWriter::create(&target, Arc::clone(&schema), &options).unwrap();
    writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    writer.finish().unwrap();

    let opened: Arc<Mutex<HashMap<String, Arc<CountingSource>>>> = Arc::default();
    let log = Arc::clone(&opened);
    let set = CFileSet::open_with("set", CFileSetOptions::default(), move |file| {
        let source = Arc::new(CountingSource::new(Arc::new(FileSource::open(target.join(file))?)));
        log.lock().unwrap().insert(file.to_string(), Arc::clone(&source));
        Ok(source)
    })
    .unwrap();
    let files = || {
        let mut names: Vec<_> = opened.lock().unwrap().keys().cloned().collect();
        names.sort();
        names
    };
    assert_eq!(files(), ["cfile-set.json"]);
    let amounts = batches(set.scan().project(["amount"])).unwrap();
    assert_eq!(amounts.iter().map(RecordBatch::num_rows).sum::<usize>(), 20_000);
    assert_eq!(files(), ["0002-amount.cfile", "cfile-set.json"]);
    let found = batches(set.scan().project(["amount"]).filter(col("id").eq(lit(15_000_i64)))).unwrap();
    assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
    assert_eq!(files(), ["0000-id.cfile", "0002-amount.cfile", "cfile-set.json"]);
    let counts = opened.lock().unwrap()["0000-id.cfile"].counts();
    let size =
        set.pages().unwrap().iter().filter(|page| page.column == "id").map(|page| page.bytes).sum::<u64>();
    assert!(counts.bytes < size / 2 + 8192, "{counts:?} of {size} bytes for one key");
}

#[test]
fn one_row_of_a_set_costs_one_block_of_each_column() {
    let rows = i64::from(ROWS);
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("word", DataType::Utf8, false),
        Field::new("note", DataType::Utf8, true),
    ]));
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..rows)),
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("word {}", row * row % 97 % 60)))),
        Arc::new(StringArray::from_iter(
            (0..rows).map(|row| (row % 3 > 0).then(|| format!("note {row:06}"))),
        )),
    ];
    let blocks = CFileWriterOptions::default().with_block_size_bytes(1024).with_index_block_size_bytes(512);
    let options = CFileSetWriterOptions::default()
        .with_key("id")
        .with_column_options(blocks.with_dictionary_size_bytes(4096))
        .with_encoding("id", Encoding::Plain)
        .with_encoding("word", Encoding::Dict)
        .with_encoding("note", Encoding::Prefix);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let mut writer = CFileSetWriter::create(&target, Arc::clone(&schema), &options).unwrap();
    writer.write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap()).unwrap();
    writer.finish().unwrap();

    let opened: Arc<Mutex<Vec<Arc<ReadRecorder>>>> = Arc::default();
    let log = Arc::clone(&opened);
    let set = CFileSet::open_with("set", CFileSetOptions::default(), move |file| {
        let source = Arc::new(ReadRecorder::new(Arc::new(FileSource::open(target.join(file))?)));
        log.lock().unwrap().push(Arc::clone(&source));
        Ok(source)
    })
    .unwrap();
    let read = || opened.lock().unwrap().iter().flat_map(|source| source.take()).collect::<Vec<_>>();
    // Once everything was read, indexes and the dictionary are known.
    assert_eq!(batches(set.scan()).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS as usize);
    let pages: Vec<_> = set.pages().unwrap().into_iter().filter(|page| page.rows.is_some()).collect();
    for row in [0, 11_111, 25_000] {
        read();
        let found = batches(set.scan().rows(RowRanges::one(row..row + 1))).unwrap();
        assert_eq!(found[0].column(0).as_primitive::<Int64Type>().values(), &[row as i64]);
        let mut blocks = read();
        let mut expected: Vec<_> = pages
            .iter()
            .filter(|page| page.rows.as_ref().unwrap().contains(&row))
            .map(|page| page.offset..page.offset + page.bytes)
            .collect();
        assert_eq!(expected.len(), 3, "one block of each column holds row {row}");
        blocks.sort_by_key(|range| (range.start, range.end));
        expected.sort_by_key(|range| (range.start, range.end));
        assert_eq!(blocks, expected, "row {row}");
    }
}

#[test]
fn a_dictionary_may_be_larger_than_a_block() {
    let words: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..4000).map(|row| format!("{:08}", row % 400))));
    let field = Field::new("word", DataType::Utf8, false);
    let options = CFileWriterOptions::default().with_block_size_bytes(1024);
    let small = write(&field, &[Arc::clone(&words)], options.clone()).unwrap();
    let large = write(&field, &[Arc::clone(&words)], options.with_dictionary_size_bytes(16 << 10)).unwrap();
    // Codewords take two bytes at most, the words themselves eight.
    assert!(large.len() * 2 < small.len(), "{} and {} bytes", large.len(), small.len());
    for bytes in [small, large] {
        let reader = CFileReader::open(memory("words", bytes)).unwrap();
        let read: Vec<String> = batches(reader.scan())
            .unwrap()
            .iter()
            .flat_map(|batch| {
                batch.column(0).as_string_view().iter().flatten().map(String::from).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(read, words.as_string::<i32>().iter().flatten().collect::<Vec<_>>());
    }
}
