//! What is read, and what is not.
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

use arrow_array::builder::{Int32Builder, ListBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray, StringViewArray};
use arrow_select::concat::concat_batches;
use pilaster_core::predicate::Predicate;
use pilaster_core::source::CountingSource;
use pilaster_core::{Dataset, LossLog, RowRanges, SourceRef, col, lit};
use pilaster_redfile::{LostCells, RedfileReader, RedfileReaderOptions, RedfileWriterOptions};
use pilaster_testing::batches_by_task;
use proptest::prelude::*;

use support::{memory, one_batch, open, row_groups, write};

const ROWS: i64 = 40_000;

/// Sorted keys, sorted words, floats with some NaN, and lists.
fn table() -> RecordBatch {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for row in 0..ROWS {
        for item in 0..row % 3 {
            lists.values().append_value((row + item) as i32);
        }
        lists.append(row % 7 != 0);
    }
    let word = |row: i64| format!("word {row:06}");
    let columns: Vec<(&str, ArrayRef, bool)> = vec![
        ("key", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row * 2))), false),
        (
            "word",
            Arc::new(StringViewArray::from_iter((0..ROWS).map(|row| (row % 11 != 0).then(|| word(row))))),
            true,
        ),
        (
            "float",
            Arc::new(Float64Array::from_iter_values(
                (0..ROWS).map(|row| if row == 77 { f64::NAN } else { row as f64 }),
            )),
            false,
        ),
        ("list", Arc::new(lists.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn counted(bytes: Vec<u8>) -> (Arc<CountingSource>, RedfileReader) {
    let source = Arc::new(CountingSource::new(memory("counted.red", bytes)));
    let reader = RedfileReader::open(Arc::clone(&source) as SourceRef).unwrap();
    source.reset();
    (source, reader)
}

#[test]
fn one_row_costs_one_page_and_the_index_of_each_column() {
    let batch = table();
    let bytes = write(&batch, RedfileWriterOptions::default().with_row_group_rows(20_000)).unwrap();
    let pages = open(&bytes).unwrap().pages().unwrap();
    let is_later = |rows: &std::ops::Range<u64>| rows.start >= 20_000;
    let later = pages.iter().filter(|page| page.rows.as_ref().is_some_and(is_later));
    let second_group = later.map(|page| page.offset).min().unwrap();
    // A row of the first group: the end of the file is read when it is opened.
    let row = 3_333u64;
    let needed: Vec<u64> = pages
        .iter()
        .filter(|page| match &page.rows {
            Some(rows) => rows.contains(&row),
            None => page.offset < second_group,
        })
        .map(|page| page.bytes)
        .collect();
    assert_eq!(needed.len(), 8, "an index page and a data page for each of four columns");
    let (source, reader) = counted(bytes);
    let found = one_batch(reader.scan().rows(RowRanges::one(row..row + 1))).unwrap();
    assert_eq!(found, batch.slice(row as usize, 1));
    let counts = source.counts();
    assert_eq!((counts.reads, counts.bytes), (8, needed.iter().sum()));
}

#[test]
fn a_filter_on_a_sorted_column_reads_the_pages_it_needs() {
    let batch = table();
    let bytes = write(&batch, RedfileWriterOptions::default().with_row_group_rows(10_000)).unwrap();
    let size = bytes.len() as u64;
    let (source, reader) = counted(bytes);
    let filter = Predicate::And(vec![col("key").gt_eq(lit(60_000_i64)), col("key").lt(lit(60_020_i64))]);
    let found = one_batch(reader.scan().filter(filter).project(["key", "list"])).unwrap();
    assert_eq!(
        found.column(0).as_primitive::<Int64Type>().values().to_vec(),
        (30_000..30_010).map(|n| n * 2).collect::<Vec<_>>()
    );
    assert_eq!(found.column(1).as_ref(), batch.column(3).slice(30_000, 10).as_ref());
    assert!(source.counts().bytes < size / 8, "{:?} of {size}", source.counts());
    // Outside all bounds nothing is read at all.
    source.reset();
    assert_eq!(one_batch(reader.scan().filter(col("key").gt(lit(10_000_000_i64)))).unwrap().num_rows(), 0);
    assert_eq!(source.counts().bytes, 0);
    // Bounds of floats count where there is no NaN.
    source.reset();
    let found = one_batch(reader.scan().filter(col("float").gt(lit(39_990.5))).project(["float"])).unwrap();
    assert_eq!(found.num_rows(), 10, "nine numbers and the NaN, which is greater than all");
    assert!(source.counts().bytes < size / 8, "{:?} of {size}", source.counts());
}

#[test]
fn pages_are_left_out_by_their_headers_where_there_is_no_index() {
    let batch = table();
    let scan = |statistics: bool| {
        let options = RedfileWriterOptions::default().with_index_pages(false).with_statistics(statistics);
        let mut bytes = write(&batch, options).unwrap();
        // Who reads a page that is not needed stumbles.
        for page in open(&bytes).unwrap().pages().unwrap() {
            if page.rows.is_some_and(|rows| rows.end <= 25_000) {
                bytes[(page.offset + page.bytes - 1) as usize] ^= 1;
            }
        }
        let filter = Predicate::And(vec![col("key").gt_eq(lit(60_000_i64)), col("key").lt(lit(60_020_i64))]);
        one_batch(open(&bytes).unwrap().scan().filter(filter).project(["word", "list"]))
    };
    let found = scan(true).unwrap();
    assert_eq!(found.column(0).as_ref(), batch.column(1).slice(30_000, 10).as_ref());
    assert_eq!(found.column(1).as_ref(), batch.column(3).slice(30_000, 10).as_ref());
    assert!(scan(false).is_err());
}

#[test]
fn only_the_columns_asked_for_are_read() {
    let bytes = write(&table(), RedfileWriterOptions::default()).unwrap();
    let size = bytes.len() as u64;
    let (source, reader) = counted(bytes);
    one_batch(reader.scan().project(["float"])).unwrap();
    let alone = source.counts().bytes;
    let statistics = reader.column_statistics().unwrap();
    assert!(alone <= statistics[2].bytes + 1024, "{alone} for a column of {} bytes", statistics[2].bytes);
    assert!(alone < size / 2);
}

#[test]
fn row_groups_are_tasks() {
    let batch = table();
    let reader =
        open(&write(&batch, RedfileWriterOptions::default().with_row_group_rows(15_000)).unwrap()).unwrap();
    let groups = row_groups(&reader);
    assert_eq!(groups, [0..15_000, 15_000..30_000, 30_000..40_000]);
    for (rows, task) in groups.iter().zip(batches_by_task(reader.scan()).unwrap()) {
        let found = concat_batches(&batch.schema(), &task).unwrap();
        assert_eq!(found, batch.slice(rows.start as usize, (rows.end - rows.start) as usize));
    }
}

#[test]
fn statistics_are_those_of_the_values() {
    let reader = open(&write(&table(), RedfileWriterOptions::default()).unwrap()).unwrap();
    let statistics = reader.column_statistics().unwrap();
    let key = &statistics[0];
    assert_eq!(key.min.as_ref().unwrap().as_primitive::<Int64Type>().value(0), 0);
    assert_eq!(key.max.as_ref().unwrap().as_primitive::<Int64Type>().value(0), 79_998);
    assert_eq!((key.nulls, statistics[1].nulls), (Some(0), Some(3637)));
    assert_eq!(statistics[1].min.as_ref().unwrap().as_string_view().value(0), "word 000001");
    assert!(statistics[2].min.is_none(), "a NaN is above every bound");
    assert!(statistics[3].nulls.is_none(), "nulls of lists are not those of their elements");
}

#[test]
fn lost_cells_may_be_null_instead_of_losing_the_row() {
    let batch = table().slice(0, 3000);
    let bytes = write(&batch, RedfileWriterOptions::default()).unwrap();
    let reader = open(&bytes).unwrap();
    let page = reader.pages().unwrap().into_iter().find(|page| page.column == "word").unwrap();
    let mut damaged = bytes.clone();
    damaged[(page.offset + page.bytes - 1) as usize] ^= 1;
    let lost = page.rows.unwrap();
    let count = (lost.end - lost.start) as usize;
    let scan = |cells: LostCells| {
        let options = RedfileReaderOptions::default().with_lost_cells(cells);
        let reader =
            RedfileReader::open_with_options(memory("damaged.red", damaged.clone()), &options).unwrap();
        let log = Arc::new(LossLog::new());
        let batch = one_batch(reader.scan().skip_damage(Arc::clone(&log))).unwrap();
        (batch, log.losses())
    };
    let (dropped, losses) = scan(LostCells::DropRow);
    assert_eq!(dropped.num_rows(), 3000 - count);
    assert_eq!(
        (losses.len(), losses[0].positions().unwrap(), losses[0].column.as_deref()),
        (1, lost.clone(), Some("word"))
    );
    let (filled, losses) = scan(LostCells::Null);
    assert_eq!(filled.num_rows(), 3000);
    assert_eq!(filled.column(0), batch.column(0));
    assert_eq!(filled.column(1).slice(lost.start as usize, count).null_count(), count);
    assert_eq!(
        filled.column(1).slice(lost.end as usize, 3000 - lost.end as usize).as_ref(),
        batch.column(1).slice(lost.end as usize, 3000 - lost.end as usize).as_ref()
    );
    assert_eq!(losses[0].positions(), Some(lost));
}

fn any_predicate() -> impl Strategy<Value = Predicate> {
    let number = || -5i64..130;
    let leaf = prop_oneof![
        number().prop_map(|n| col("a").lt(lit(n))),
        number().prop_map(|n| col("a").gt_eq(lit(n))),
        number().prop_map(|n| col("a").eq(lit(n))),
        number().prop_map(|n| col("a").not_eq(lit(n))),
        number().prop_map(|n| col("b").gt(lit(format!("{n:03}").as_str()))),
        number().prop_map(|n| col("b").lt_eq(lit(format!("{n:03}").as_str()))),
        number().prop_map(|n| col("c").gt(lit(n as f64 / 2.0))),
        number().prop_map(|n| col("c").lt_eq(lit(n as f64 / 2.0))),
        number().prop_map(|n| col("c").eq(lit(n as f64))),
        Just(col("a").is_null()),
        Just(col("b").is_not_null()),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Predicate::And),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Predicate::Or),
            inner.prop_map(|part| Predicate::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn pruning_loses_no_row(
        values in prop::collection::vec((prop::option::of(0i64..120), prop::option::of(0i64..120), prop::option::of(0i64..120)), 1..200),
        sorted in any::<bool>(),
        index in any::<bool>(),
        predicate in any_predicate(),
    ) {
        let mut values = values;
        if sorted {
            values.sort();
        }
        let float = |n: &i64| if n % 31 == 0 { f64::NAN } else if *n == 1 { -0.0 } else if *n == 2 { 0.0 } else { *n as f64 };
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("a", Arc::new(Int64Array::from_iter(values.iter().map(|(a, _, _)| *a)))),
            ("b", Arc::new(StringArray::from_iter(values.iter().map(|(_, b, _)| b.map(|b| format!("{b:03}{}", "é".repeat(40))))))),
            ("c", Arc::new(Float64Array::from_iter(values.iter().map(|(_, _, c)| c.as_ref().map(float))))),
        ];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let options = RedfileWriterOptions::default().with_page_bytes(64).with_row_group_rows(50).with_index_pages(index);
        let reader = open(&write(&batch, options).unwrap()).unwrap();
        let bound = predicate.bind(&batch.schema()).unwrap();
        let wanted = arrow_select::filter::filter_record_batch(&batch, &bound.evaluate(&batch).unwrap()).unwrap();
        let found = one_batch(reader.scan().filter(predicate.clone())).unwrap();
        prop_assert_eq!(found.columns(), wanted.columns(), "{}", predicate);
    }
}
