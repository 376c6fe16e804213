//! Parquet files: every way to ask for rows gives the same rows, and damage is found and skipped.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

mod made;

use std::fs;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, RecordBatch, StringArray};
use made::{ROWS, all_rows, ids, parquet_bytes, sample};
use pilaster::core::progress::Silent;
use pilaster::core::source::{CountingSource, MemorySource};
use pilaster::{DatasetRef, LossLog, OpenOptions, Predicate, RowRanges, Severity, VerifyDepth, col, lit};
use proptest::prelude::*;

fn open(bytes: Vec<u8>) -> DatasetRef {
    OpenOptions::default().open_source(Arc::new(MemorySource::new("t.parquet", bytes))).unwrap()
}

#[test]
fn a_file_says_what_it_holds() {
    let dataset = open(parquet_bytes(&sample(ROWS), 1000));
    assert_eq!(dataset.format(), "parquet");
    assert_eq!(dataset.row_count(), Some(ROWS as u64));
    let tasks = dataset.scan().plan().unwrap().tasks().unwrap();
    assert_eq!(tasks.len(), 5);
    assert_eq!(tasks[1].span().rows, Some(1000..2000));
    let statistics = dataset.column_statistics().unwrap();
    assert_eq!(statistics[0].min.as_ref().unwrap().as_primitive::<Int64Type>().value(0), 0);
    assert_eq!(statistics[0].max.as_ref().unwrap().as_primitive::<Int64Type>().value(0), ROWS as i64 - 1);
    assert_eq!(statistics[0].nulls, Some(0));
    assert!(statistics[1].nulls.unwrap() > 0);
    let node = dataset.describe().unwrap();
    assert_eq!(node.children.len(), 6);
}

#[test]
fn pages_cover_every_row_of_every_column_once() {
    let dataset = open(parquet_bytes(&sample(ROWS), 1000));
    let pages = dataset.pages().unwrap();
    for column in ["id", "name", "price"] {
        let mut next = 0;
        for page in pages.iter().filter(|page| page.column == column && page.rows.is_some()) {
            let rows = page.rows.clone().unwrap();
            assert_eq!(rows.start, next);
            next = rows.end;
        }
        assert_eq!(next, ROWS as u64, "{column}");
    }
    // Pages lie beside each other without holes.
    let mut places: Vec<_> = pages.iter().map(|page| (page.offset, page.bytes)).collect();
    places.sort();
    assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
    assert_eq!(places[0].0, 4);
}

#[test]
fn pruned_row_groups_are_not_read() {
    let source =
        Arc::new(CountingSource::new(Arc::new(MemorySource::new("t", parquet_bytes(&sample(ROWS), 100)))));
    let dataset = OpenOptions::default().open_source(source.clone()).unwrap();
    let before = source.counts().bytes;
    let found = ids(dataset.scan().project(["id"]).filter(col("id").eq(lit(4321_i64))).read().unwrap());
    assert_eq!(found, [4321]);
    let one = source.counts().bytes - before;
    ids(dataset.scan().project(["id"]).read().unwrap());
    let all = source.counts().bytes - before - one;
    assert!(one * 10 < all, "{one} of {all}");
}

fn predicate() -> impl Strategy<Value = Predicate> {
    let leaf = prop_oneof![
        (0i64..ROWS as i64).prop_map(|v| col("id").lt(lit(v))),
        (0i64..ROWS as i64).prop_map(|v| col("id").gt_eq(lit(v))),
        "[a-j]".prop_map(|v| col("name").eq(lit(v.as_str()))),
        "[a-j]".prop_map(|v| col("name").gt(lit(v.as_str()))),
        Just(col("name").is_null()),
        Just(col("price").is_not_null()),
        (0f64..50.0).prop_map(|v| col("price").lt(lit(v))),
    ];
    leaf.prop_recursive(2, 6, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::And),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Predicate::Or),
            inner.prop_map(|p| Predicate::Not(Box::new(p))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_request_gives_the_rows_of_a_plain_filter(
        predicate in prop::option::of(predicate()),
        pairs in prop::option::of(prop::collection::vec((0u64..6000, 0u64..1500), 0..5)),
        limit in prop::option::of(0u64..3000),
        batch_size in 1usize..2000,
        group in prop_oneof![Just(100usize), Just(777), Just(10_000)],
        with_index in any::<bool>(),
    ) {
        let batch = sample(ROWS);
        let dataset = open(made::parquet_bytes_with(&batch, group, with_index));
        let rows: Option<RowRanges> = pairs.map(|p| p.into_iter().map(|(start, n)| start..start + n).collect());
        let matches: Vec<bool> = match &predicate {
            None => vec![true; ROWS],
            Some(predicate) => {
                let bound = predicate.bind(batch.schema_ref()).unwrap();
                bound.evaluate(&batch).unwrap().iter().map(|row| row == Some(true)).collect()
            }
        };
        let expected: Vec<u64> = (0..ROWS as u64)
            .filter(|row| matches[*row as usize])
            .filter(|row| rows.as_ref().is_none_or(|rows| rows.as_slice().iter().any(|r| r.contains(row))))
            .take(limit.unwrap_or(u64::MAX) as usize)
            .collect();
        let scan = || {
            let mut scan = dataset.scan().project(["name", "id"]).batch_size(batch_size);
            if let Some(predicate) = &predicate {
                scan = scan.filter(predicate.clone());
            }
            if let Some(rows) = &rows {
                scan = scan.rows(rows.clone());
            }
            if let Some(limit) = limit {
                scan = scan.limit(limit);
            }
            scan
        };
        for reader in [
            scan().row_numbers("n").read().unwrap(),
            scan().row_numbers("n").skip_damage(Arc::new(LossLog::new())).read().unwrap(),
        ] {
            let mut found = Vec::new();
            for part in reader {
                let part = part.unwrap();
                prop_assert!(part.num_rows() <= batch_size);
                prop_assert_eq!(part.num_columns(), 3);
                let numbers = part.column(2).as_primitive::<UInt64Type>();
                let id = part.column(1).as_primitive::<Int64Type>();
                for row in 0..part.num_rows() {
                    prop_assert_eq!(id.value(row) as u64, numbers.value(row));
                    found.push(numbers.value(row));
                }
            }
            prop_assert_eq!(&found, &expected);
        }
        let plain: Vec<u64> = scan().read().unwrap().flat_map(|part| {
            part.unwrap().column(1).as_primitive::<Int64Type>().values().iter().map(|v| *v as u64).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(plain, expected);
    }
}

#[test]
fn tasks_together_are_the_whole() {
    let dataset = open(parquet_bytes(&sample(ROWS), 700));
    let tasks = dataset.scan().project(["id"]).plan().unwrap().tasks().unwrap();
    assert_eq!(tasks.len(), 8);
    let found: Vec<_> = tasks.iter().flat_map(|task| ids(task.read().unwrap())).collect();
    assert_eq!(found, (0..ROWS as i64).collect::<Vec<_>>());
    // Row groups that cannot match are not planned.
    let starts = |predicate: Predicate| -> Vec<u64> {
        let tasks = dataset.scan().filter(predicate).plan().unwrap().tasks().unwrap();
        tasks.iter().map(|task| task.span().rows.clone().unwrap().start).collect()
    };
    assert_eq!(starts(col("id").eq(lit(1500_i64))), [1400]);
    assert_eq!(starts(col("id").lt(lit(1400_i64))), [0, 700]);
    assert!(starts(col("id").lt(lit(0_i64))).is_empty());
    assert!(dataset.scan().filter(col("nothing").is_null()).plan().is_err());
}

/// A file whose page at some place of row group 2 is broken.
fn damaged() -> (Vec<u8>, pilaster::core::describe::Page) {
    let mut bytes = parquet_bytes(&sample(ROWS), 1000);
    let pages = open(bytes.clone()).pages().unwrap();
    let page = pages.iter().filter(|page| page.column == "name" && page.kind.starts_with("data"));
    let page = page.filter(|page| page.rows.as_ref().unwrap().start >= 2000).nth(1).unwrap().clone();
    let middle = (page.offset + page.bytes / 2) as usize;
    for byte in &mut bytes[middle..middle + 8] {
        *byte = !*byte;
    }
    (bytes, page)
}

#[test]
fn damage_is_found_with_its_rows() {
    let (bytes, page) = damaged();
    let dataset = open(bytes);
    assert!(dataset.verify(VerifyDepth::Footer, &Silent).unwrap().is_sound());
    for depth in [VerifyDepth::Checksums, VerifyDepth::Values] {
        let report = dataset.verify(depth, &Silent).unwrap();
        assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
        let finding = &report.findings[0];
        assert_eq!((finding.severity, finding.offset), (Severity::Error, page.offset));
        assert_eq!(finding.rows, Some(2000..3000));
        assert!(finding.message.contains("column name"), "{}", finding.message);
    }
    let sound = open(parquet_bytes(&sample(ROWS), 1000)).verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(sound.findings.is_empty() && sound.rows == ROWS as u64 && sound.blocks > 15, "{sound:?}");
}

#[test]
fn a_strict_scan_stops_at_damage_and_a_tolerant_one_loses_only_its_page() {
    let (bytes, page) = damaged();
    let dataset = open(bytes);
    let error = dataset.scan().read().unwrap().find_map(Result::err).unwrap();
    let error = pilaster::Error::from(error);
    assert!(
        error.is_damage() && error.to_string().starts_with("t.parquet: parquet row group at byte "),
        "{error}"
    );
    // Other columns are not touched.
    assert_eq!(ids(dataset.scan().project(["id"]).read().unwrap()).len(), ROWS);
    let losses = Arc::new(LossLog::new());
    let found = ids(dataset.scan().skip_damage(losses.clone()).read().unwrap());
    let lost = page.rows.clone().unwrap();
    let expected: Vec<_> = (0..ROWS as i64).filter(|id| !lost.contains(&(*id as u64))).collect();
    assert_eq!(found, expected);
    let losses = losses.losses();
    assert!(losses.iter().all(|loss| loss.column.as_deref() == Some("name")), "{losses:?}");
    let ranges: RowRanges = losses.iter().filter_map(|loss| loss.positions()).collect();
    assert_eq!(ranges, RowRanges::one(lost));
}

#[test]
fn no_flipped_byte_and_no_cut_makes_a_panic() {
    let whole = parquet_bytes(&sample(24), 10);
    let check = |bytes: Vec<u8>| {
        let source = Arc::new(MemorySource::new("t", bytes));
        let Ok(dataset) = OpenOptions::default().open_source(source) else { return };
        let _ = dataset.verify(VerifyDepth::Values, &Silent);
        let _ = dataset.describe();
        let _ = dataset.pages();
        let _ = dataset.column_statistics();
        if let Ok(reader) = dataset.scan().filter(col("id").gt(lit(3_i64))).read() {
            let _ = reader.take(100).count();
        }
        if let Ok(reader) = dataset.scan().skip_damage(Arc::new(LossLog::new())).read() {
            let _ = reader.take(100).count();
        }
    };
    for position in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[position] ^= 0x40;
        check(bytes);
        check(whole[..position].to_vec());
    }
}

#[test]
fn a_file_on_disk_reads_as_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.bin");
    let batch = sample(ROWS);
    fs::write(&path, parquet_bytes(&batch, 1000)).unwrap();
    let dataset = pilaster::open(path.to_str().unwrap()).unwrap();
    assert_eq!(all_rows(dataset.as_ref()), batch);
}

#[test]
fn a_cut_text_is_no_smallest_value_but_still_prunes() {
    let long = |letter: char| letter.to_string().repeat(200);
    let names: ArrayRef = Arc::new(StringArray::from(vec![long('a'), long('b'), long('c'), long('d')]));
    let batch = RecordBatch::try_from_iter([("name", names)]).unwrap();
    let dataset = open(parquet_bytes(&batch, 2));
    assert!(dataset.column_statistics().unwrap()[0].max.is_none());
    let found =
        dataset.scan().filter(col("name").eq(lit(long('b').as_str()))).row_numbers("n").read().unwrap();
    let rows: Vec<_> =
        found.map(|part| part.unwrap().column(1).as_primitive::<UInt64Type>().values().to_vec()).collect();
    assert_eq!(rows.concat(), [1]);
}
