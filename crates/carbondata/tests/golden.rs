//! Files of the real SDK, value by value.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests compute with known values"
)]

mod support;

use pilaster_carbondata::file::{CarbonFileReader, IndexFile};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, VerifyDepth};
use pilaster_testing::needs;
use support::{GoldenFile, batches, cells, goldens, source, testdata};

/// Compares every value of a file; gives rows and values.
fn compare(golden: &GoldenFile) -> (usize, usize) {
    let file = CarbonFileReader::open(source(&golden.data)).unwrap();
    let expected = golden.rows();
    assert_eq!(file.row_count(), Some(expected.len() as u64), "{}", golden.case);
    let mut row = 0;
    let mut values = 0;
    for batch in batches(file.scan()).unwrap() {
        for in_batch in 0..batch.num_rows() {
            let cells = expected[row].as_array().unwrap();
            assert_eq!(cells.len(), batch.num_columns(), "{}", golden.case);
            for (column, cell) in batch.columns().iter().zip(cells) {
                assert!(
                    cells::matches(column, in_batch, cell),
                    "{} row {row}, {:?}: expected {cell}, found {:?}",
                    golden.case,
                    file.schema().field(values % cells.len()),
                    column.slice(in_batch, 1)
                );
                values += 1;
            }
            row += 1;
        }
    }
    assert_eq!(row, expected.len(), "{}", golden.case);
    (row, values)
}

/// Everything is as the SDK reads it, and nothing is found wrong.
fn check(files: &[GoldenFile]) -> (usize, usize) {
    let (mut rows, mut values) = (0, 0);
    for golden in files {
        let (file_rows, file_values) = compare(golden);
        rows += file_rows;
        values += file_values;
        let file = CarbonFileReader::open(source(&golden.data)).unwrap();
        let report = file.verify(VerifyDepth::Values, &Silent).unwrap();
        assert_eq!(report.findings, [], "{}", golden.case);
        assert_eq!(report.rows, file_rows as u64);
        file.describe().unwrap();
        let (planned, asked) =
            (file.column_statistics().unwrap(), file.column_statistics_with_sizes().unwrap());
        assert_eq!(planned.len(), file.schema().fields().len());
        for (planned, asked) in planned.iter().zip(&asked) {
            assert_eq!((planned.bytes, &planned.min, &planned.max), (asked.bytes, &asked.min, &asked.max));
            assert!(planned.encodings.is_empty());
            assert_eq!(asked.encodings.is_empty(), file_rows == 0, "{}", golden.case);
        }
        let recovered = CarbonFileReader::recover(source(&golden.data), &Default::default()).unwrap();
        assert_eq!(recovered.row_count(), file.row_count(), "{}", golden.case);
        assert_eq!(batches(recovered.scan()).unwrap(), batches(file.scan()).unwrap(), "{}", golden.case);
    }
    (rows, values)
}

#[test]
fn committed_files_hold_the_rows_the_sdk_reads() {
    let files = GoldenFile::all(&testdata());
    assert!(files.len() >= 10);
    check(&files);
}

#[needs(goldens = "carbondata")]
#[test]
fn every_file_of_the_sdk_holds_the_rows_the_sdk_reads() {
    let root = goldens();
    let files = GoldenFile::all(&root.join("sdk"));
    let (rows, values) = check(&files);
    eprintln!("{} files, {rows} rows, {values} values", files.len());
    assert_eq!((files.len(), rows), (67, 333_920));
}

#[needs(goldens = "carbondata")]
#[test]
fn index_files_say_what_the_footers_say() {
    let root = goldens();
    let mut blocklets = 0;
    for golden in GoldenFile::all(&root.join("sdk")) {
        let folder = golden.data.parent().unwrap();
        let name = golden.data.file_name().unwrap().to_str().unwrap();
        let file = CarbonFileReader::open(source(&golden.data)).unwrap();
        let mut rows = 0;
        for index in support::sorted(folder) {
            if index.extension().is_none_or(|extension| extension != "carbonindex") {
                continue;
            }
            let index = IndexFile::open(&source(&index), &Limits::default()).unwrap();
            for block in index.blocklets.iter().filter(|block| block.file_name == name) {
                assert_eq!(index.header.columns, file.header().columns);
                assert_eq!(u64::try_from(block.rows).ok(), file.row_count());
                assert_eq!(block.file_size, Some(i64::try_from(file.size_bytes()).unwrap()));
                rows += u64::try_from(block.blocklet.as_ref().unwrap().rows).unwrap();
                blocklets += 1;
            }
        }
        assert_eq!(Some(rows), file.row_count(), "{}", golden.case);
    }
    eprintln!("{blocklets} blocklets in index files");
    assert!(blocklets >= 67);
}
