//! Pruning saves reads and never changes an answer.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::PathBuf;

use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use pilaster_carbondata::table::CarbonTable;
use pilaster_core::{Dataset, Literal, Predicate, col, lit};
use pilaster_testing::needs;
use support::tables::{cases, open, whole};
use support::{Numbers, batches, goldens, testdata};

/// A comparison of a column with a value of some row, or a combination of such.
fn predicate(batch: &RecordBatch, numbers: &mut Numbers, depth: u64) -> Predicate {
    let choice = numbers.below(if depth == 0 { 8 } else { 12 });
    let mut inner = |count: u64| (0..count).map(|_| predicate(batch, numbers, depth - 1)).collect::<Vec<_>>();
    match choice {
        8 | 9 => return Predicate::And(inner(2)),
        10 => return Predicate::Or(inner(3)),
        11 => return Predicate::Not(Box::new(inner(1).pop().unwrap())),
        _ => {}
    }
    let schema = batch.schema();
    let plain: Vec<_> =
        (0..batch.num_columns()).filter(|c| !schema.field(*c).data_type().is_nested()).collect();
    let column = plain[numbers.below(plain.len() as u64) as usize];
    let mut value = || {
        let row = numbers.below(batch.num_rows() as u64) as usize;
        Literal::from_array(batch.column(column).as_ref(), row)
    };
    let name = || col(schema.field(column).name());
    match choice {
        0 => name().is_null(),
        1 => name().is_not_null(),
        2 => name().lt(value()),
        3 => name().gt_eq(value()),
        4 => name().not_eq(value()),
        5 => name().is_in((0..3).map(|_| value()).collect()),
        _ => name().eq(value()),
    }
}

fn check(cases: &[(String, PathBuf, PathBuf)], each: u64) {
    for (name, folder, _) in cases {
        let table = open(folder);
        let batch = whole(&table);
        if batch.num_rows() == 0 {
            continue;
        }
        let mut numbers = Numbers(name.len() as u64);
        for _ in 0..each {
            let predicate = predicate(&batch, &mut numbers, 2);
            let mask = predicate.bind(&batch.schema()).unwrap().evaluate(&batch).unwrap();
            let wanted = filter_record_batch(&batch, &mask).unwrap();
            let found = batches(table.scan().filter(predicate.clone())).unwrap();
            let found = concat_batches(&table.schema(), &found).unwrap();
            assert_eq!(found, wanted, "{name}: {predicate}");
        }
    }
}

#[test]
fn pruning_never_changes_an_answer() {
    check(&cases(&testdata().join("table")), 60);
    check(&cases(&testdata().join("stream")), 60);
}

#[needs(goldens = "carbondata")]
#[test]
fn pruning_never_changes_an_answer_of_the_golden_tables() {
    let root = goldens();
    for (folder, each) in [("table/v2.3", 40), ("table/v1.6", 80), ("table/v1.0", 80)] {
        let mut cases = cases(&root.join(folder));
        cases.retain(|(name, _, _)| name != "segs_added");
        assert!(cases.len() >= 7);
        check(&cases, each);
    }
}

/// Files and bytes that a filter reads.
fn cost(table: &CarbonTable, filter: Predicate) -> (u64, u64, usize) {
    let (files, bytes) = table.data_read();
    let rows = batches(table.scan().filter(filter)).unwrap().iter().map(RecordBatch::num_rows).sum();
    let (files_after, bytes_after) = table.data_read();
    (files_after - files, bytes_after - bytes, rows)
}

#[needs(goldens = "carbondata")]
#[test]
fn planning_reads_index_files_alone_and_scans_only_what_may_match() {
    let root = goldens();
    let table = open(&root.join("table/v2.3/part_loaded"));
    assert_eq!(table.data_read(), (0, 0));
    // Partition values answer this one.
    assert_eq!(cost(&table, col("country").eq(lit("nowhere"))), (0, 0, 0));
    let (files, _, rows) =
        cost(&table, Predicate::And(vec![col("country").eq(lit("de")), col("yr").eq(lit(2021))]));
    assert_eq!(files, 1);
    assert!(rows > 0);
    assert!(table.scan().plan().unwrap().tasks().unwrap().len() > 8);
    // Minima and maxima of blocklets answer these.
    let table = open(&root.join("table/v2.3/global_sort"));
    assert_eq!(table.column_statistics().unwrap().len(), table.schema().fields().len());
    assert_eq!(table.data_read(), (0, 0), "planned");
    assert_eq!(cost(&table, col("id").gt(lit(1_000_000))), (0, 0, 0));
    // Pages: of two, the one that may match is read.
    let table = open(&root.join("table/v2.3/iudpages"));
    let whole = {
        batches(table.scan()).unwrap();
        table.data_read().1
    };
    let (_, bytes, rows) = cost(&table, col("id").gt(lit(32_300)));
    assert!(rows >= 1 && bytes * 10 < whole, "{bytes} of {whole}");
}

/// What an index of versions 1 and 2 says is enough to plan: a data file is opened when something of it may match.
#[needs(goldens = "carbondata")]
#[test]
fn files_of_versions_1_and_2_are_planned_by_their_index() {
    let root = goldens();
    let mut left_out = 0;
    for (name, folder, _) in cases(&root.join("table/v1.0")) {
        let table = open(&folder);
        let files = table.scan().plan().unwrap().tasks().unwrap().len() as u64;
        assert!(table.row_count().unwrap() > 0);
        assert_eq!(table.column_statistics().unwrap().len(), table.schema().fields().len());
        assert_eq!(table.data_read(), (0, 0), "{name}: opened, counted and split");
        let batch = whole(&table);
        assert_eq!(table.data_read().0, files, "{name}: a scan opens each file once");
        // A word that no dictionary has opens nothing.
        let words = if table.schema().index_of("city").is_ok() { "city" } else { "a" };
        assert_eq!(cost(&open(&folder), col(words).eq(lit("nowhere"))), (0, 0, 0), "{name}");
        for column in 0..batch.num_columns() {
            for row in (0..batch.num_rows()).step_by(batch.num_rows().div_ceil(8)) {
                let value = Literal::from_array(batch.column(column).as_ref(), row);
                let filter = col(batch.schema().field(column).name()).eq(value);
                let mask = filter.bind(&batch.schema()).unwrap().evaluate(&batch).unwrap();
                let (opened, bytes, rows) = cost(&open(&folder), filter);
                assert_eq!(rows, mask.true_count());
                assert!(opened <= files && (opened > 0) == (bytes > 0));
                left_out += files - opened;
            }
        }
    }
    eprintln!("{left_out} files not opened");
    assert!(left_out >= 40, "{left_out}");
}

#[needs(goldens = "carbondata")]
#[test]
fn buckets_prune_by_the_hash_of_the_engine() {
    let root = goldens();
    let table = open(&root.join("table/v2.3/bucket"));
    let (columns, count) = table.table_schema().buckets.clone().unwrap();
    assert_eq!((columns.len(), count > 1), (1, true), "{columns:?}");
    let batch = whole(&table);
    let files = table.scan().plan().unwrap().tasks().unwrap().len() as u64;
    let column = batch.schema().index_of(&columns[0]).unwrap();
    let mut opened = Vec::new();
    for row in 0..batch.num_rows() {
        if batch.column(column).is_null(row) {
            continue;
        }
        let table = open(&root.join("table/v2.3/bucket"));
        let value = Literal::from_array(batch.column(column).as_ref(), row);
        let filter = col(&columns[0]).eq(value);
        let mask = filter.bind(&batch.schema()).unwrap().evaluate(&batch).unwrap();
        let (read, _, rows) = cost(&table, filter);
        assert_eq!(rows, mask.true_count());
        opened.push(read);
    }
    assert!(opened.iter().all(|read| *read < files), "{opened:?} of {files}");
}

#[needs(goldens = "carbondata")]
#[test]
fn dictionaries_turn_values_into_codes() {
    let root = goldens();
    for table in ["v1.6/d16_blocklets", "v1.0/v1_blocklets", "v1.0/v2_blocklets"] {
        let table = open(&root.join("table").join(table));
        let all = {
            batches(table.scan()).unwrap();
            table.data_read().1
        };
        let schema = table.schema();
        // A word that is in no dictionary is in no row.
        assert_eq!(cost(&table, col("id").eq(lit(-1))).1, 0, "{}", table.name());
        if table.name().contains("v1.0") {
            // Keys of blocklets know that no code is left between two others.
            let between = Predicate::And(vec![col("id").gt(lit(7)), col("id").lt(lit(8))]);
            assert_eq!(cost(&table, between).1, 0, "{}", table.name());
        }
        // The rows are sorted by id, whose codes rise with it.
        assert_eq!(schema.field(0).name(), "id");
        let (_, bytes, rows) = cost(&table, col("id").eq(lit(7)));
        assert!(rows >= 1 && bytes * 3 < all * 2, "{}: {bytes} of {all}", table.name());
    }
}
