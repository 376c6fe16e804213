//! Tables of the real engine, with the rows it returned.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;
use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions, find_tables, is_table};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, ErrorKind, Literal, Predicate, RowRanges, VerifyDepth, col, lit};
use pilaster_testing::{batches_by_task, needs};
use support::rows::{expected, rows};
use support::tables::{cases, copy_all, files_below, open, whole};
use support::{Numbers, batches, goldens, testdata};

fn check(cases: &[(String, PathBuf, PathBuf)]) -> usize {
    let mut count = 0;
    for (name, folder, file) in cases {
        let table = open(folder);
        let batch = whole(&table);
        assert_eq!(rows(&batch), expected(file), "{name}");
        assert_eq!(table.row_count(), Some(batch.num_rows() as u64), "{name}");
        let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
        assert_eq!(report.findings, [], "{name}");
        table.describe().unwrap();
        table.pages().unwrap();
        table.column_statistics().unwrap();
        positions_and_tasks(&table, &batch);
        pruning(&table, &batch);
        count += batch.num_rows();
    }
    count
}

/// Rows by position and by task are the rows of the whole.
fn positions_and_tasks(table: &CarbonTable, batch: &RecordBatch) {
    let rows = batch.num_rows();
    let (start, end) = (rows / 3, rows - rows / 4);
    let some = batches(table.scan().rows(RowRanges::one(start as u64..end as u64))).unwrap();
    assert_eq!(concat_batches(&table.schema(), &some).unwrap(), batch.slice(start, end - start));
    let tasks = batches_by_task(table.scan()).unwrap().concat();
    assert_eq!(&concat_batches(&table.schema(), &tasks).unwrap(), batch);
}

/// Filters give the rows that filtering the whole gives.
fn pruning(table: &CarbonTable, batch: &RecordBatch) {
    if batch.num_rows() == 0 {
        return;
    }
    let mut numbers = Numbers(3);
    for (index, field) in batch.schema().fields().iter().enumerate() {
        if field.data_type().is_nested() {
            continue;
        }
        for _ in 0..6 {
            let row = numbers.below(batch.num_rows() as u64) as usize;
            let value = Literal::from_array(batch.column(index).as_ref(), row);
            let column = col(field.name());
            let predicate: Predicate = match numbers.below(5) {
                0 => column.is_null(),
                _ if value.is_null() => column.is_not_null(),
                1 => column.lt(value),
                2 => column.gt_eq(value),
                3 => column.not_eq(value),
                _ => column.eq(value),
            };
            let mask = predicate.bind(&batch.schema()).unwrap().evaluate(batch).unwrap();
            let wanted = arrow_select::filter::filter_record_batch(batch, &mask).unwrap();
            let found = batches(table.scan().filter(predicate.clone())).unwrap();
            let found = concat_batches(&table.schema(), &found).unwrap();
            assert_eq!(found, wanted, "{}: {predicate}", table.name());
        }
    }
}

/// Streams of Spark 3.1 with CarbonData 2.3: every type, sort columns of every type, nested columns, a batch of one row. Maps are
/// written by that release but not selected: their rows are those that went in. One of release 1.6, with dictionaries.
#[test]
fn streams_give_the_rows_of_the_engine() {
    assert_eq!(check(&cases(&testdata().join("stream"))), 3 * 31 + 9);
}

#[test]
fn committed_tables_hold_the_rows_the_engine_selects() {
    let cases = cases(&testdata().join("table"));
    let names: Vec<_> = cases.iter().map(|(name, _, _)| name.as_str()).collect();
    for kind in
        ["bucket", "d16_columndict", "d16_complex", "d16_dict_one", "v1_complex", "v1_group", "v2_dict_one"]
    {
        assert!(names.contains(&kind), "{kind}");
    }
    assert_eq!(check(&cases), 592);
}

#[needs(goldens = "carbondata")]
#[test]
fn tables_of_2_3_hold_the_rows_the_engine_selects() {
    let root = goldens();
    let mut cases = cases(&root.join("table/v2.3"));
    // One of its segments is Parquet.
    cases.retain(|(name, _, _)| name != "segs_added");
    let rows = check(&cases);
    eprintln!("{} tables, {rows} rows", cases.len());
    assert!(cases.len() >= 38, "{}", cases.len());
}

#[needs(goldens = "carbondata")]
#[test]
fn tables_of_1_6_with_dictionaries_hold_the_rows_the_engine_selects() {
    let root = goldens();
    let cases = cases(&root.join("table/v1.6"));
    let rows = check(&cases);
    eprintln!("{} tables, {rows} rows", cases.len());
    assert_eq!(cases.len(), 7);
}

#[needs(goldens = "carbondata")]
#[test]
fn tables_of_1_0_with_files_of_versions_1_and_2_hold_the_rows_the_engine_selects() {
    let root = goldens();
    let root = root.join("table/v1.0");
    let mut cases = cases(&root);
    // The release cannot select these columns itself: the rows are those that were loaded.
    for name in ["v1_complex", "v2_complex"] {
        cases.push((name.into(), root.join(name), root.join(format!("{name}.from-input.jsonl"))));
    }
    let rows = check(&cases);
    eprintln!("{} tables, {rows} rows", cases.len());
    assert_eq!(cases.len(), 12);
}

#[test]
fn damaged_metadata_is_refused_or_survived() {
    let copy = std::env::temp_dir().join(format!("pilaster-carbondata-damage-{}", std::process::id()));
    copy_all(&testdata().join("table/iud_update2"), &copy);
    let mut files = Vec::new();
    files_below(&copy, &mut files);
    let mut numbers = Numbers(11);
    for path in files {
        let bytes = std::fs::read(&path).unwrap();
        for round in 0..12 {
            if bytes.is_empty() {
                continue;
            }
            let at = numbers.below(bytes.len() as u64) as usize;
            let mut bad = bytes.clone();
            if round % 3 == 0 {
                bad.truncate(at);
            } else {
                bad[at] ^= 1 << numbers.below(8);
            }
            std::fs::write(&path, bad).unwrap();
            if let Ok(table) = CarbonTable::open(&copy, &CarbonTableOptions::default()) {
                let _ = batches(table.scan());
                let _ = table.verify(VerifyDepth::Values, &Silent);
            }
        }
        std::fs::write(&path, bytes).unwrap();
    }
    assert_eq!(rows(&whole(&open(&copy))), expected(&testdata().join("table/iud_update2.jsonl")));
    std::fs::remove_dir_all(&copy).unwrap();
}

#[needs(goldens = "carbondata")]
#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let root = goldens();
    let folder = root.join("table/v2.3/segs_added");
    let error = CarbonTable::open(&folder, &CarbonTableOptions::default()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
    assert!(error.to_string().contains("segment 5 is parquet in /carbon-store/pq"), "{error}");
    // A data file of 1.6 by itself has no dictionary.
    let folder = root.join("table/v1.6/d16_dict_one/Fact/Part0/Segment_0");
    let error = CarbonTable::open(&folder, &CarbonTableOptions::default()).unwrap_err();
    assert!(error.to_string().contains("holds codes of its table's dictionary"), "{error}");
}

#[needs(goldens = "carbondata")]
#[test]
fn single_segments_are_read() {
    let root = goldens();
    let root = root.join("table/v2.3");
    for (table, segment, file) in [
        ("compact_minor", "0.2", "compact_minor_seg_0_2.jsonl"),
        ("compact_minor", "4", "compact_minor_seg_4.jsonl"),
        ("segs_deleted", "2", "segs_only_2.jsonl"),
    ] {
        let options = CarbonTableOptions::default().with_segments(Some(vec![segment.into()]));
        let table = CarbonTable::open(root.join(table), &options).unwrap();
        assert_eq!(rows(&whole(&table)), expected(&root.join(file)), "{segment}");
    }
    let options = CarbonTableOptions::default().with_segments(Some(vec!["1".into()]));
    let error = CarbonTable::open(root.join("segs_deleted"), &options).unwrap_err();
    assert!(error.to_string().contains("there are: 0, 2"), "{error}");
}

#[needs(goldens = "carbondata")]
#[test]
fn planning_opens_no_data_file() {
    let root = goldens();
    let source = root.join("table/v2.3/part_loaded");
    let copy = std::env::temp_dir().join(format!("pilaster-carbondata-{}", std::process::id()));
    copy_with_empty_data(&source, &copy);
    let table = open(&copy);
    assert_eq!(table.row_count(), Some(expected(&root.join("table/v2.3/part_loaded.jsonl")).len() as u64));
    let none = batches(table.scan().filter(col("country").eq(lit("nowhere")))).unwrap();
    assert_eq!(none.len(), 0);
    assert!(batches(table.scan()).is_err());
    std::fs::remove_dir_all(&copy).unwrap();
}

/// A copy whose data files are as long as they were and hold nothing.
fn copy_with_empty_data(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in support::sorted(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_with_empty_data(&path, &target);
        } else {
            let mut bytes = std::fs::read(&path).unwrap();
            if path.extension().is_some_and(|extension| extension == "carbondata") {
                bytes.fill(0);
            }
            std::fs::write(target, bytes).unwrap();
        }
    }
}

#[test]
fn a_folder_of_the_sdk_is_a_table_and_a_store_has_tables() {
    let folder = testdata().join("sdk/bool_byte/data");
    assert!(is_table(&folder).unwrap());
    let table = open(&folder);
    assert_eq!(table.format(), "carbondata folder");
    assert_eq!(table.row_count(), Some(500));
    let names: Vec<_> =
        find_tables(testdata().join("table")).unwrap().tables.into_iter().map(|(name, _)| name).collect();
    assert!(names.len() >= 3, "{names:?}");
}

#[needs(goldens = "carbondata")]
#[test]
fn secondary_indexes_and_columns_are_named() {
    let root = goldens();
    let root = root.join("table/v2.3");
    let names = |table: &str| -> Vec<String> {
        open(&root.join(table)).secondary_indexes().unwrap().iter().map(ToString::to_string).collect()
    };
    assert_eq!(names("bloom"), ["bl (bloom)"]);
    assert_eq!(names("si"), ["index tables beside this one"]);
    assert_eq!(names("si_city"), ["this table is an index of another one"]);
    assert_eq!(names("types"), [""; 0]);
    let bucket = open(&root.join("bucket")).describe().unwrap();
    let facts = format!("{bucket:?}");
    for word in ["buckets", "column ", "encodings", "sort_columns", "segment 0"] {
        assert!(facts.contains(word), "{word} in {facts}");
    }
}
