//! Indexes save reads and never change an answer.
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
use arrow_array::types::UInt64Type;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use pilaster_core::source::CountingSource;
use pilaster_core::{CompareOp, Dataset, Literal, Predicate, RowRanges, SourceRef, col, lit};
use pilaster_doris::schema::{SchemaColumn, TabletSchema};
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions};
use pilaster_testing::needs;
use support::golden::Case;
use support::{batches, goldens, memory};

fn whole(segment: &SegmentReader) -> RecordBatch {
    let all = batches(segment.scan()).unwrap();
    concat_batches(&segment.schema(), &all).unwrap()
}

/// Positions of the rows a filtered scan gives.
fn filtered(segment: &SegmentReader, predicate: &Predicate) -> Vec<u64> {
    let scan = segment.scan().project(Vec::<String>::new()).filter(predicate.clone()).row_numbers("row");
    let found = batches(scan).unwrap_or_else(|error| panic!("{predicate}: {error}"));
    found.iter().flat_map(|batch| batch.column(0).as_primitive::<UInt64Type>().values().to_vec()).collect()
}

/// Positions of the rows that match, found by looking at all of them.
fn expected(rows: &RecordBatch, predicate: &Predicate) -> Vec<u64> {
    let selected = predicate.bind(&rows.schema()).unwrap().evaluate(rows).unwrap();
    (0..selected.len())
        .filter(|&row| selected.is_valid(row) && selected.value(row))
        .map(|row| row as u64)
        .collect()
}

fn is_comparable(data_type: &DataType) -> bool {
    !matches!(data_type, DataType::List(_) | DataType::Map(..) | DataType::Struct(_))
}

/// Predicates around values of a column: of its first, last and some middle rows.
fn predicates(rows: &RecordBatch, column: usize, samples: usize) -> Vec<Predicate> {
    let schema = rows.schema();
    let (name, array) = (schema.field(column).name().as_str(), rows.column(column));
    let mut predicates = vec![col(name).is_null(), col(name).is_not_null()];
    if !is_comparable(array.data_type()) {
        return predicates;
    }
    let picks: Vec<usize> = (0..samples).map(|n| n * (rows.num_rows() - 1) / (samples - 1).max(1)).collect();
    for &row in &picks {
        let value = Literal::from_array(array, row);
        for op in
            [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::LtEq, CompareOp::Gt, CompareOp::GtEq]
        {
            predicates.push(Predicate::Compare { column: name.to_string(), op, value: value.clone() });
        }
    }
    if let Some(texts) = array.as_string_view_opt() {
        for &row in picks.iter().filter(|&&row| texts.is_valid(row)) {
            let text: Vec<char> = texts.value(row).chars().collect();
            let part = |range: std::ops::Range<usize>| -> String {
                text.iter().skip(range.start).take(range.len()).collect()
            };
            for pattern in
                [part(0..3) + "%", format!("%{}%", part(1..9)), format!("%{}_", part(2..6)), part(0..9)]
            {
                predicates.push(col(name).like(lit(pattern.as_str())));
                predicates.push(Predicate::Not(Box::new(col(name).like(lit(pattern.as_str())))));
            }
        }
    }
    let values = picks.iter().map(|&row| Literal::from_array(array, row)).collect();
    predicates.push(col(name).is_in(values));
    predicates
}

#[needs(goldens = "doris")]
#[test]
fn pruning_never_changes_an_answer() {
    let root = goldens();
    let (mut asked, mut matched) = (0, 0);
    for case in Case::all(&root) {
        let segment = case.open().unwrap();
        let rows = whole(&segment);
        // Large files cost a pass over all rows for each predicate.
        let samples = if rows.num_rows() > 1000 { 2 } else { 3 };
        let mut all = Vec::new();
        for column in 0..rows.num_columns() {
            all.extend(predicates(&rows, column, samples));
        }
        let pairs: Vec<_> = all
            .iter()
            .zip(all.iter().skip(7))
            .step_by(23)
            .map(|(a, b)| [a.clone(), b.clone()].to_vec())
            .collect();
        if rows.num_rows() <= 1000 {
            all.extend(pairs.iter().cloned().map(Predicate::And));
            all.extend(pairs.into_iter().map(Predicate::Or));
        }
        for predicate in all {
            let found = filtered(&segment, &predicate);
            assert_eq!(found, expected(&rows, &predicate), "{}: {predicate}", case.name);
            asked += 1;
            matched += found.len();
        }
    }
    eprintln!("{asked} predicates, {matched} rows matched");
    assert!(asked > 5000 && matched > 10_000, "{asked} predicates, {matched} rows");
}

/// Bytes and reads of a scan after the segment was opened.
fn cost(case: &Case, predicate: &Predicate, columns: &[&str]) -> (u64, u64, usize) {
    let counting = Arc::new(CountingSource::new(memory(&case.name, case.bytes.clone())));
    let segment =
        SegmentReader::open_with_options(Arc::clone(&counting) as SourceRef, &case.options()).unwrap();
    counting.reset();
    let rows = batches(segment.scan().project(columns.iter().copied()).filter(predicate.clone())).unwrap();
    (counting.counts().bytes, counting.counts().reads, rows.iter().map(RecordBatch::num_rows).sum())
}

fn case(part: &str) -> Case {
    Case::some(&goldens(), part).into_iter().next().unwrap()
}

#[needs(goldens = "doris")]
#[test]
fn a_key_is_found_in_few_pages() {
    let case = case("v012_all_types_20k");
    let key = case.rows[10_000]["k1"].as_i64().unwrap();
    let (bytes, reads, rows) = cost(&case, &col("k1").eq(lit(key)), &["v_big"]);
    assert!(rows >= 1);
    let size = case.bytes.len() as u64;
    assert!(bytes < size / 10 && reads <= 12, "{bytes} of {size} bytes in {reads} reads");
}

#[needs(goldens = "doris")]
#[test]
fn keys_outside_the_segment_cost_no_page() {
    let case = case("v012_all_types_20k");
    assert_eq!(cost(&case, &col("k1").gt(lit(i32::MAX - 1)), &["v_high"]), (0, 0, 0));
}

#[needs(goldens = "doris")]
#[test]
fn a_bitmap_index_leads_to_the_rows() {
    let case = case("v012_bitmap_index");
    let segment = case.open().unwrap();
    let rows = whole(&segment);
    let mut narrowed = 0;
    for column in 0..rows.num_columns() {
        let name = rows.schema().field(column).name().clone();
        let value = Literal::from_array(rows.column(column), rows.num_rows() / 2);
        if value.is_null() {
            continue;
        }
        let predicate = col(name).eq(value);
        let left = segment.prune(&predicate).unwrap().count();
        assert!(left >= expected(&rows, &predicate).len() as u64);
        narrowed += usize::from(left < rows.num_rows() as u64);
    }
    assert!(narrowed > 0, "no column was narrowed");
}

#[needs(goldens = "doris")]
#[test]
fn a_bloom_filter_drops_pages_without_the_value() {
    let root = goldens();
    let mut dropped = 0;
    for case in Case::some(&root, "embedded_bloom") {
        let segment = case.open().unwrap();
        let rows = whole(&segment);
        for (column, meta) in case.schema.columns.iter().enumerate() {
            let array = rows.column(column);
            if !is_comparable(array.data_type()) || array.is_null(3) {
                continue;
            }
            let predicate = col(meta.name.as_str()).eq(Literal::from_array(array, 3));
            dropped += usize::from(segment.prune(&predicate).unwrap().count() < rows.num_rows() as u64);
        }
    }
    assert!(dropped > 4, "{dropped} columns had pages dropped");
}

#[needs(goldens = "doris")]
#[test]
fn a_filter_of_parts_drops_pages_without_the_part() {
    let root = goldens();
    let mut asked = 0;
    for case in Case::some(&root, "embedded_bloom") {
        let segment = case.open().unwrap();
        let rows = whole(&segment);
        for index in case.schema.indexes.iter().filter(|index| index.index_type == "NGRAM_BF") {
            let is_it = |column: &&SchemaColumn| index.column_unique_ids.contains(&column.unique_id);
            let column = case.schema.columns.iter().find(is_it).unwrap();
            let left = |pattern: &str| segment.prune(&col(column.name.as_str()).like(lit(pattern))).unwrap();
            // No page has such a part, whatever its bounds; too short a part says nothing.
            assert!(left("%qzxqzxqzx%").is_empty(), "{}", case.name);
            assert_eq!(left("%qzx%").count(), rows.num_rows() as u64, "{}", case.name);
            let texts = rows.column_by_name(&column.name).unwrap().as_string_view();
            let text = texts.iter().flatten().max_by_key(|text| text.len()).unwrap();
            assert!(!left(&format!("%{}%", &text[1..])).is_empty(), "{}", case.name);
            // Of another length the grams are not in the filters, which is seen and not believed.
            let mut schema = TabletSchema::clone(&case.schema);
            for index in &mut schema.indexes {
                index.properties.insert("gram_size".to_string(), "4".to_string());
            }
            let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
            let other =
                SegmentReader::open_with_options(memory(&case.name, case.bytes.clone()), &options).unwrap();
            let left = other.prune(&col(column.name.as_str()).like(lit("%qzxqzxqzx%"))).unwrap();
            assert_eq!(left.count(), rows.num_rows() as u64, "{}", case.name);
            asked += 1;
        }
    }
    assert!(asked >= 3, "{asked} segments");
}

#[needs(goldens = "doris")]
#[test]
fn a_primary_key_leads_to_its_row() {
    let root = goldens();
    let mut narrowed = 0;
    for case in Case::some(&root, "unique_mow_v3") {
        let segment = case.open().unwrap();
        let rows = whole(&segment);
        let key = case.schema.columns.iter().find(|column| column.is_key).unwrap();
        let value = Literal::from_array(rows.column_by_name(&key.name).unwrap(), 1);
        let left = segment.prune(&col(key.name.as_str()).eq(value)).unwrap();
        assert_eq!(left, RowRanges::one(1..2), "{}", case.name);
        narrowed += 1;
    }
    assert!(narrowed > 0);
}

#[needs(goldens = "doris")]
#[test]
fn a_column_is_read_in_few_reads() {
    let case = case("v012_all_types_20k");
    let counting = Arc::new(CountingSource::new(memory(&case.name, case.bytes.clone())));
    let segment =
        SegmentReader::open_with_options(Arc::clone(&counting) as SourceRef, &case.options()).unwrap();
    counting.reset();
    let rows: usize =
        batches(segment.scan().project(["v_big"])).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, case.rows.len());
    let reads = counting.counts().reads;
    let pages = segment
        .pages()
        .unwrap()
        .iter()
        .filter(|page| page.column == "v_big" && page.kind == "data page")
        .count();
    // The index page, then all data pages at once.
    assert!(pages > 2 && reads <= 2, "{pages} pages in {reads} reads");
}
