//! Blocks at the edge of what a file may hold: endless runs, overlapping rows, long strings, more words than rows.
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

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int8Array, Int32Array, Int64Array, RecordBatch, StringArray,
};
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, VerifyDepth};
use pilaster_kudu::cfile::{
    AssumedShape, CFileReader, CFileReaderOptions, CFileWriterOptions, Compression, Encoding, KuduType,
};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};

use support::made::{MadeServer, Partition};
use support::{batches, column, memory, open_as, write};

fn open_with(bytes: Vec<u8>, limits: Limits) -> CFileReader {
    let options = CFileReaderOptions::default().with_limits(limits);
    CFileReader::open_with_options(memory("test.cfile", bytes), &options).unwrap()
}

/// A block of runs may stand for more bytes than could be unpacked at once.
#[test]
fn runs_are_unrolled_batch_by_batch() {
    const ROWS: i64 = 200_000;
    let values = (0..ROWS).map(|row| (row % 9 > 0).then_some(if row < 150_000 { 7 } else { row / 1000 }));
    let array: ArrayRef = Arc::new(values.collect::<Int64Array>());
    let field = Field::new("value", DataType::Int64, true);
    let options = CFileWriterOptions::default().with_encoding(Encoding::Rle);
    let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
    let reader = open_with(bytes, Limits { decoded_bytes: 64 << 10, ..Limits::default() });
    let blocks = reader.pages().unwrap().iter().filter(|page| page.rows.is_some()).count();
    assert_eq!(blocks, 1);
    assert_eq!(column(reader.scan()).unwrap().as_ref(), array.as_ref());
    assert_eq!(reader.verify(VerifyDepth::Values, &Silent).unwrap().rows, ROWS as u64);
    let one = column(reader.scan().rows(RowRanges::one(199_990..199_991))).unwrap();
    assert_eq!(one.as_primitive::<Int64Type>().value(0), 199);
}

/// Nulls, repeated values and empty arrays take no room, but a block of them ends all the same.
#[test]
fn blocks_that_are_never_full_end() {
    const ROWS: usize = (4 << 20) + 10;
    let arrays: [(ArrayRef, Encoding); 3] = [
        (Arc::new(Int8Array::new_null(ROWS)), Encoding::Plain),
        (Arc::new(Int8Array::from(vec![3; ROWS])), Encoding::Rle),
        (Arc::new(BooleanArray::from(vec![true; ROWS])), Encoding::Rle),
    ];
    for (array, encoding) in arrays {
        let field = Field::new("value", array.data_type().clone(), true);
        let options = CFileWriterOptions::default().with_encoding(encoding);
        let reader = open_as(&write(&field, &[Arc::clone(&array)], options).unwrap(), &field).unwrap();
        let rows: Vec<_> = reader.pages().unwrap().into_iter().filter_map(|page| page.rows).collect();
        assert_eq!(rows, [0..4 << 20, 4 << 20..ROWS as u64]);
        assert_eq!(
            column(reader.scan().rows(RowRanges::one(100..ROWS as u64))).unwrap().as_ref(),
            array.slice(100, ROWS - 100).as_ref()
        );
    }
}

/// Rows that two blocks claim to hold: what is given must not depend on where a scan began.
#[test]
fn blocks_that_overlap_are_refused() {
    let array: ArrayRef = Arc::new(Int32Array::from_iter_values(0..200));
    let field = Field::new("value", DataType::Int32, false);
    let options = CFileWriterOptions::default()
        .with_encoding(Encoding::Plain)
        .with_checksums(false)
        .with_block_size_bytes(512);
    let mut bytes = write(&field, &[array], options).unwrap();
    let pages = open_as(&bytes, &field).unwrap().pages().unwrap();
    let second = pages.iter().find(|page| page.rows.as_ref().is_some_and(|rows| rows.start > 0)).unwrap();
    let first_row = second.rows.clone().unwrap().start as u8;
    // The ordinal of the block, and that of its index entry.
    bytes[second.offset as usize + 4] = first_row / 2;
    let entry = bytes.windows(5).rposition(|window| window == [4, 0, 0, 0, first_row]).unwrap();
    bytes[entry + 4] = first_row / 2;
    let reader = open_as(&bytes, &field).unwrap();
    let expected = format!(
        "expected a block of the rows 0..{}, as index and neighbours say, found rows 0..{first_row}",
        first_row / 2
    );
    for rows in [0..200, 0..5, 0..u64::from(first_row)] {
        let error = column(reader.scan().rows(RowRanges::one(rows))).unwrap_err().to_string();
        assert!(error.contains(&expected), "{error}");
    }
    assert!(!reader.verify(VerifyDepth::Checksums, &Silent).unwrap().is_sound());
}

/// A batch of views keeps the blocks under it: not more of them than the limits allow.
#[test]
fn views_hold_few_blocks() {
    let texts: Vec<String> = (0..100).map(|row| row.to_string().repeat(20_000)).collect();
    for is_nullable in [false, true] {
        let values =
            texts.iter().enumerate().map(|(row, text)| (!is_nullable || row % 7 > 0).then_some(text));
        let array: ArrayRef = Arc::new(values.collect::<StringArray>());
        let field = Field::new("value", DataType::Utf8, is_nullable);
        for encoding in [Encoding::Plain, Encoding::Prefix] {
            let options =
                CFileWriterOptions::default().with_encoding(encoding).with_compression(Compression::Lz4);
            let bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
            let reader = open_with(bytes, Limits { batch_bytes: 1 << 20, ..Limits::default() });
            let found = batches(reader.scan()).unwrap();
            for batch in &found {
                let views = batch.column(0).as_string_view();
                let held: usize = views.data_buffers().iter().map(|buffer| buffer.len()).sum();
                assert!(held <= 1 << 20 || views.data_buffers().len() == 1, "{held} bytes");
            }
            let rows: usize = found.iter().map(|batch| batch.num_rows()).sum();
            assert!(found.len() > 3 && rows == 100, "{} batches of {rows} rows", found.len());
        }
    }
}

/// Rows that are merged are read in fewer at once too.
#[test]
fn merged_rows_hold_few_blocks() {
    let fields = vec![Field::new("k", DataType::Int64, false), Field::new("text", DataType::Utf8, false)];
    let options = CFileWriterOptions::default().with_encoding(Encoding::Plain).with_block_size_bytes(8192);
    let mut server = MadeServer::new(fields.clone(), 1).with_options(options);
    let rowsets = [0, 1].map(|first| {
        let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..400).map(|row| row * 2 + first)));
        let texts = (0..400).map(|row| (row * 2 + first).to_string().repeat(400));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let rows = RecordBatch::try_new(Arc::new(Schema::new(fields.clone())), vec![keys, texts]).unwrap();
        server.rowset(&rows, &[])
    });
    server.tablet(rowsets.into(), Partition::default());
    let limits = Limits { batch_bytes: 32 << 10, ..Limits::default() };
    let table = server.open_with(CFileReaderOptions::default().with_limits(limits));
    let mut next = 0;
    for batch in batches(table.scan()).unwrap() {
        let keys = batch.column(0).as_primitive::<Int64Type>().values();
        for (key, text) in keys.iter().zip(batch.column(1).as_string_view()) {
            assert_eq!((*key, text), (next, Some(next.to_string().repeat(400).as_str())));
            next += 1;
        }
    }
    assert_eq!(next, 800);
}

/// A dictionary has more words than the rows that are left.
#[test]
fn words_are_read_where_blocks_are_lost_with_the_footer() {
    let words = (0..25_000).map(|row| Some(format!("{row:05}")));
    let array: ArrayRef = Arc::new(words.collect::<StringArray>());
    let field = Field::new("value", DataType::Utf8, false);
    let options = CFileWriterOptions::default().with_encoding(Encoding::Dict).with_block_size_bytes(64 << 10);
    let mut bytes = write(&field, &[Arc::clone(&array)], options).unwrap();
    let reader = open_as(&bytes, &field).unwrap();
    let pages: Vec<_> = reader.pages().unwrap().into_iter().filter(|page| page.rows.is_some()).collect();
    let (last, before) = pages.split_last().unwrap();
    let left = before.last().unwrap().rows.clone().unwrap().end as usize;
    assert!(left > 10_000 && left < 20_000, "{left}");
    bytes[last.offset as usize..][..last.bytes as usize].fill(0xaa);
    bytes.truncate(reader.metadata().blocks_end as usize);
    let shape = AssumedShape { encoding: Encoding::Dict, ..AssumedShape::new(KuduType::String) };
    let options = CFileReaderOptions::default().with_field(field);
    let recovered = CFileReader::recover(memory("bad", bytes), &shape, &options).unwrap();
    let found = column(recovered.scan().skip_damage(Arc::new(LossLog::new()))).unwrap();
    assert_eq!(found.as_ref(), array.slice(0, left).as_ref());
}

/// A column that cannot be read is not a damaged one, and is counted.
#[cfg(unix)]
#[test]
fn verifying_a_set_counts_what_could_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("set");
    let fields = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int32, false));
    let schema = Arc::new(Schema::new(fields.to_vec()));
    let options = CFileSetWriterOptions::default();
    CFileSetWriter::create(&target, schema, &options).unwrap().finish().unwrap();
    std::fs::remove_file(target.join("0000-a.cfile")).unwrap();
    let endless = target.join("0001-b.cfile");
    std::fs::remove_file(&endless).unwrap();
    std::os::unix::fs::symlink(&endless, &endless).unwrap();
    let set = CFileSet::open(target, CFileSetOptions::default()).unwrap();
    let report = set.verify(VerifyDepth::Checksums, &Silent).unwrap();
    assert_eq!((report.files, report.unread, report.findings.len()), (3, 1, 2), "{:?}", report.findings);
}
