//! What is read, pruned and skipped.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use pilaster_carbondata::file::CarbonFileReader;
use pilaster_core::source::CountingSource;
use pilaster_core::{Dataset, Literal, Predicate, RowRanges, SourceRef, col, lit};
use pilaster_testing::{batches_by_task, needs};
use support::{GoldenFile, Numbers, batches, goldens, source, testdata};

fn whole(file: &CarbonFileReader) -> RecordBatch {
    concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap()
}

/// The rows of `whole` for which `predicate` holds, found without any pruning.
fn filtered(whole: &RecordBatch, predicate: &Predicate) -> RecordBatch {
    let mask = predicate.bind(&whole.schema()).unwrap().evaluate(whole).unwrap();
    arrow_select::filter::filter_record_batch(whole, &mask).unwrap()
}

/// A predicate out of values of the file, or near them.
fn any_predicate(whole: &RecordBatch, numbers: &mut Numbers, depth: u32) -> Predicate {
    if depth > 0 && numbers.below(2) == 0 {
        let parts = (0..2).map(|_| any_predicate(whole, numbers, depth - 1)).collect();
        return if numbers.below(2) == 0 { Predicate::And(parts) } else { Predicate::Or(parts) };
    }
    let schema = whole.schema();
    let simple: Vec<_> =
        schema.fields().iter().enumerate().filter(|(_, field)| !field.data_type().is_nested()).collect();
    let (index, field) = simple[numbers.below(simple.len() as u64) as usize];
    let column = col(field.name());
    let values = whole.column(index);
    let value = Literal::from_array(values.as_ref(), numbers.below(values.len() as u64) as usize);
    match numbers.below(8) {
        0 => column.is_null(),
        1 => column.is_not_null(),
        _ if value.is_null() => column.is_not_null(),
        2 => column.lt(value),
        3 => column.gt(value),
        4 => column.lt_eq(value),
        5 => column.gt_eq(value),
        6 => column.not_eq(value),
        _ => column.eq(value),
    }
}

fn pruning_changes_nothing(files: &[GoldenFile], rounds: u32) {
    for golden in files {
        let file = CarbonFileReader::open(source(&golden.data)).unwrap();
        let all = whole(&file);
        let mut numbers = Numbers(7);
        for _ in 0..rounds {
            let predicate = any_predicate(&all, &mut numbers, 2);
            let scan = file.scan().filter(predicate.clone()).batch_size(1000);
            let found = concat_batches(&file.schema(), &batches(scan).unwrap()).unwrap();
            assert_eq!(found, filtered(&all, &predicate), "{}: {predicate}", golden.case);
        }
    }
}

#[test]
fn pruned_scans_of_committed_files_give_the_same_rows() {
    pruning_changes_nothing(&GoldenFile::all(&testdata()), 40);
}

#[needs(goldens = "carbondata")]
#[test]
fn pruned_scans_of_all_files_give_the_same_rows() {
    let root = goldens();
    let files: Vec<_> =
        GoldenFile::all(&root.join("sdk")).into_iter().filter(|golden| golden.rows().len() <= 5000).collect();
    pruning_changes_nothing(&files, 25);
}

fn large(case: &str) -> (Arc<CountingSource>, CarbonFileReader) {
    let root = goldens();
    let golden = GoldenFile::all(&root.join("sdk")).into_iter().find(|golden| golden.case == case).unwrap();
    let counting = Arc::new(CountingSource::new(source(&golden.data)));
    let file = CarbonFileReader::open(Arc::clone(&counting) as SourceRef).unwrap();
    (counting, file)
}

/// The first column of integers.
fn first_integer(file: &CarbonFileReader) -> String {
    let schema = file.schema();
    let is_integer = |data_type: &DataType| matches!(data_type, DataType::Int32 | DataType::Int64);
    schema.fields().iter().find(|field| is_integer(field.data_type())).unwrap().name().clone()
}

#[needs(goldens = "carbondata")]
#[test]
fn a_projection_reads_the_chunks_of_its_columns_alone() {
    let (counting, file) = large("multi_blocklet");
    let name = first_integer(&file);
    let index = file.schema().index_of(&name).unwrap();
    let bytes = file.column_statistics().unwrap()[index].bytes;
    counting.reset();
    let rows: usize = batches(file.scan().project([name])).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows as u64, file.row_count().unwrap());
    assert_eq!(counting.counts().bytes, bytes);
    assert!(bytes < file.size_bytes());
}

#[needs(goldens = "carbondata")]
#[test]
fn blocklets_are_tasks_and_cover_all_rows() {
    let (_, file) = large("multi_blocklet");
    let tasks = batches_by_task(file.scan()).unwrap();
    assert!(tasks.len() > 1);
    assert_eq!(concat_batches(&file.schema(), &tasks.concat()).unwrap(), whole(&file));
}

#[needs(goldens = "carbondata")]
#[test]
fn filters_on_a_key_open_few_pages() {
    let (counting, file) = large("multi_page");
    counting.reset();
    let all = whole(&file);
    let full = counting.counts().bytes;
    // A value that lies outside of every page reads no page at all.
    let name = first_integer(&file);
    counting.reset();
    let none = batches(file.scan().filter(col(&name).lt(lit(i64::from(i32::MIN))))).unwrap();
    assert_eq!(none.len(), 0);
    assert_eq!(counting.counts().bytes, 0);
    // Rows at known positions read the pages that hold them.
    counting.reset();
    let some = batches(file.scan().rows(RowRanges::one(40_000..40_010))).unwrap();
    assert_eq!(concat_batches(&file.schema(), &some).unwrap(), all.slice(40_000, 10));
    assert!(counting.counts().bytes * 2 < full, "{} of {full}", counting.counts().bytes);
}

#[needs(goldens = "carbondata")]
#[test]
fn words_are_compared_once_and_given_as_text() {
    let (_, file) = large("localdict_sorted_rle");
    let all = whole(&file);
    let index = all.schema().index_of("low").unwrap();
    let word = all.column(index).as_string_view().value(17).to_string();
    let found = batches(file.scan().filter(col("low").eq(lit(word.as_str())))).unwrap();
    let found = concat_batches(&file.schema(), &found).unwrap();
    assert_eq!(found, filtered(&all, &col("low").eq(lit(word.as_str()))));
    assert!(found.num_rows() > 0 && found.num_rows() < all.num_rows());
    assert_eq!(found.column(index).null_count(), 0);
}
