//! How rows of tablets come: in key order, in pieces, with paths of documents; and what is known of them without reading.
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

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, Scan, col, lit};
use pilaster_doris::segment::{Compression, SegmentWriteOptions};
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets};
use pilaster_doris::{TableModel, TabletSchema};
use pilaster_testing::{batches_by_task, needs};
use support::batches;

fn batch(keys: &[i64], values: &[i64]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("key", Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef, false),
        ("value", Arc::new(Int64Array::from(values.to_vec())), true),
    ])
    .unwrap()
}

fn write(
    target: &Path,
    schema: &TabletSchema,
    options: &TabletWriteOptions,
    loads: &[RecordBatch],
) -> TabletReader {
    let mut writer = TabletWriter::create(target, schema, options).unwrap();
    for load in loads {
        writer.write(load).unwrap();
        writer.finish_rowset().unwrap();
    }
    writer.finish().unwrap();
    open(target, &TabletOptions::default()).unwrap()
}

fn open(target: &Path, options: &TabletOptions) -> pilaster_core::Result<TabletReader> {
    TabletReader::open(&find_tablets(target, &Limits::default()).unwrap().tablets[0], options)
}

fn schema(model: &TableModel) -> TabletSchema {
    TabletSchema::from_arrow(&batch(&[], &[]).schema(), model).unwrap()
}

fn longs(all: &[RecordBatch], column: &str) -> Vec<i64> {
    all.iter()
        .flat_map(|batch| batch.column_by_name(column).unwrap().as_primitive::<Int64Type>().values().to_vec())
        .collect()
}

/// Loads whose keys overlap, follow each other, and replace each other.
fn loads() -> Vec<RecordBatch> {
    vec![
        batch(&[9, 1, 5, 3, 7], &[90, 10, 50, 30, 70]),
        batch(&[2, 3, 20, 21, 22], &[21, 31, 201, 211, 221]),
        batch(&[5, 40, 41, 21], &[52, 402, 412, 212]),
    ]
}

#[test]
fn rows_of_keyed_tables_come_in_key_order() {
    let expected_keys = [1, 2, 3, 5, 7, 9, 20, 21, 22, 40, 41];
    let newest = [10, 21, 31, 52, 70, 90, 201, 212, 221, 402, 412];
    let sums = [10, 21, 61, 102, 70, 90, 201, 423, 221, 402, 412];
    for (model, values) in [
        (TableModel::unique(["key"]), newest),
        (TableModel::unique(["key"]).with_merge_on_write(false), newest),
        (TableModel::aggregate(["key"]).with_aggregation("value", "SUM"), sums),
    ] {
        for rows_per_segment in [1, 2, 3, 100] {
            let folder = tempfile::tempdir().unwrap();
            let options = TabletWriteOptions::default()
                .with_rows_per_segment(rows_per_segment)
                .with_sorted_rowsets(false);
            let tablet = write(&folder.path().join("t"), &schema(&model), &options, &loads());
            for batch_size in [1, 2, 100] {
                let all = batches(tablet.scan().batch_size(batch_size)).unwrap();
                assert!(all.iter().all(|batch| batch.num_rows() <= batch_size));
                assert_eq!(longs(&all, "key"), expected_keys, "{model:?} {rows_per_segment}");
                assert_eq!(longs(&all, "value"), values, "{model:?} {rows_per_segment}");
            }
            // The order is that of keys nobody asked for, too.
            let only = batches(tablet.scan().project(["value"])).unwrap();
            assert_eq!(longs(&only, "value"), values);
            assert!(only.iter().all(|batch| batch.num_columns() == 1));
            let first = batches(tablet.scan().limit(4)).unwrap();
            assert_eq!(longs(&first, "key"), expected_keys[..4]);
            let some = batches(tablet.scan().filter(col("value").gt(lit(60_i64)))).unwrap();
            let wanted = expected_keys.iter().zip(values).filter(|(_, value)| *value > 60);
            assert_eq!(longs(&some, "key"), wanted.map(|(key, _)| *key).collect::<Vec<_>>());
            // Tasks follow each other.
            let tasks = batches_by_task(tablet.scan()).unwrap();
            assert_eq!(longs(&tasks.concat(), "key"), expected_keys);
            // Positions are those of the rows that a scan gives, whatever lies in the files.
            for (start, end) in [(0, 5), (4, 7), (10, 11), (11, 90)] {
                let some =
                    batches(tablet.scan().project(["value"]).rows(RowRanges::one(start..end))).unwrap();
                let place = |row: u64| (row as usize).min(values.len());
                assert_eq!(longs(&some, "value"), values[place(start)..place(end)], "{start}..{end}");
            }
            let numbers = |scan: Scan<'_>| -> Vec<u64> {
                let number = |batch: &RecordBatch| {
                    batch.column_by_name("#").unwrap().as_primitive::<UInt64Type>().values().to_vec()
                };
                batches(scan.row_numbers("#")).unwrap().iter().flat_map(number).collect()
            };
            assert_eq!(numbers(tablet.scan()), (0..11).collect::<Vec<_>>());
            // Where rows are counted to be numbered, no task can begin later.
            assert_eq!(batches_by_task(tablet.scan().row_numbers("#")).unwrap().len(), 1);
            let large = numbers(tablet.scan().filter(col("value").gt(lit(60_i64))));
            let expected = (0..11).filter(|row| values[*row as usize] > 60);
            assert_eq!(large, expected.collect::<Vec<u64>>());
            // Positions lead back to the rows.
            for batch in batches(tablet.scan().row_numbers("#")).unwrap() {
                let positions = batch.column_by_name("#").unwrap().as_primitive::<UInt64Type>().clone();
                for (row, position) in positions.values().iter().enumerate() {
                    let one = batches(tablet.scan().rows(RowRanges::one(*position..position + 1))).unwrap();
                    assert_eq!(longs(&one, "key"), [batch.column(0).as_primitive::<Int64Type>().value(row)]);
                }
            }
            // Where damage is passed over the rows are the same.
            let mut found =
                longs(&batches(tablet.scan().skip_damage(Arc::new(LossLog::new()))).unwrap(), "key");
            found.sort_unstable();
            assert_eq!(found, expected_keys);
        }
    }
}

#[test]
fn segments_that_overlap_are_cut_into_pieces_by_key() {
    let count = 140_000;
    let even: Vec<i64> = (0..count).map(|key| key * 2).collect();
    let odd: Vec<i64> = (0..count).map(|key| key * 2 + 1).collect();
    let folder = tempfile::tempdir().unwrap();
    let model = TableModel::unique(["key"]);
    // The last load replaces some rows of the first two, and lies behind all others in part.
    let last: Vec<i64> = (0..1000).map(|key| key * 400).collect();
    let loads = [batch(&even, &even), batch(&odd, &odd), batch(&last, &vec![-1; last.len()])];
    let tablet = write(&folder.path().join("t"), &schema(&model), &TabletWriteOptions::default(), &loads);
    let whole = batches(tablet.scan()).unwrap();
    let keys = longs(&whole, "key");
    let mut expected: Vec<i64> =
        (0..count * 2).chain(last.iter().copied().filter(|key| *key >= count * 2)).collect();
    expected.sort_unstable();
    assert_eq!(keys, expected);
    let tasks = batches_by_task(tablet.scan()).unwrap();
    assert!(tasks.len() > 1, "{}", tasks.len());
    assert!(tasks.iter().all(|task| !task.is_empty()));
    let parts = tasks.concat();
    assert_eq!(longs(&parts, "key"), expected);
    assert_eq!(longs(&parts, "value"), longs(&whole, "value"));
    // Without keys nobody sees an order in a task; the rows are the same.
    let mut expected_values = longs(&whole, "value");
    assert_eq!(longs(&batches(tablet.scan().project(["value"])).unwrap(), "value"), expected_values);
    expected_values.sort_unstable();
    let parts = batches_by_task(tablet.scan().project(["value"])).unwrap().concat();
    let mut values = longs(&parts, "value");
    values.sort_unstable();
    assert_eq!(values, expected_values);
    let nothing = Vec::<String>::new();
    let counted = batches(tablet.scan().project(nothing)).unwrap();
    assert_eq!(counted.iter().map(RecordBatch::num_rows).sum::<usize>(), expected.len());
}

#[needs(goldens = "doris")]
#[test]
fn golden_rows_of_keyed_tablets_are_in_order() {
    let root = support::goldens();
    for name in ["aggregate", "unique_mor", "unique_mor_sequence", "unique_mow"] {
        let case = root.join("tablet").join(name);
        let tablet = open(&case, &TabletOptions::default()).unwrap();
        let found = concat_batches(&tablet.schema(), &batches(tablet.scan()).unwrap()).unwrap();
        let text = std::fs::read_to_string(case.join("current.rows.jsonl")).unwrap();
        let rows: Vec<serde_json::Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found.num_rows(), rows.len());
        let keys = tablet.meta().schema.columns.iter().filter(|column| column.is_key);
        for key in keys {
            let column = found.column_by_name(&key.name).unwrap();
            let texts = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default()).unwrap();
            for (row, expected) in rows.iter().enumerate() {
                let expected = match &expected[&key.name] {
                    serde_json::Value::String(text) => text.clone(),
                    serde_json::Value::Null => String::new(),
                    other => other.to_string(),
                };
                assert_eq!(texts.value(row).to_string(), expected, "{name} row {row} {}", key.name);
            }
        }
    }
}

fn documents(keys: &[i64], texts: &[&str]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("k", Arc::new(Int64Array::from(keys.to_vec())) as ArrayRef, false),
        ("v", Arc::new(StringArray::from(texts.to_vec())), true),
    ])
    .unwrap()
}

#[test]
fn paths_of_a_variant_are_columns_of_a_tablet() {
    for keys_type in ["DUP_KEYS", "UNIQUE_KEYS"] {
        let json = format!(
            r#"{{"keys_type": "{keys_type}", "num_short_key_columns": 1, "columns": [
                {{"unique_id": 0, "name": "k", "type": "BIGINT", "is_key": true}},
                {{"unique_id": 1, "name": "v", "type": "VARIANT", "is_nullable": true}}]}}"#
        );
        let schema = TabletSchema::parse_json(json.as_bytes()).unwrap();
        let loads = [
            documents(
                &[1, 2],
                &[r#"{"n": 1, "mixed": 5, "some": "a"}"#, r#"{"n": 2, "mixed": 6, "some": "b"}"#],
            ),
            documents(&[3, 2], &[r#"{"n": 3, "mixed": "x"}"#, r#"{"n": 4, "mixed": "y"}"#]),
        ];
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("t");
        write(&target, &schema, &TabletWriteOptions::default(), &loads);
        let options = ["n", "mixed", "some"]
            .into_iter()
            .fold(TabletOptions::default(), |options, path| options.with_variant_path("v", path));
        let tablet = open(&target, &options).unwrap();
        let all = concat_batches(&tablet.schema(), &batches(tablet.scan()).unwrap()).unwrap();
        let names: Vec<_> = all.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["k", "v", "v['n']", "v['mixed']", "v['some']"]);
        let texts = |name: &str| {
            let column = all.column_by_name(name).unwrap();
            let texts = ArrayFormatter::try_new(column.as_ref(), &FormatOptions::default().with_null("null"))
                .unwrap();
            let mut rows: Vec<_> = (0..all.num_rows()).map(|row| texts.value(row).to_string()).collect();
            rows.sort();
            rows
        };
        // One of several rows of a key is left where keys are unique.
        let is_unique = keys_type == "UNIQUE_KEYS";
        let expected = |all: &[&str], unique: &[&str]| {
            let rows = if is_unique { unique } else { all };
            rows.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(texts("v['n']"), expected(&["1", "2", "3", "4"], &["1", "3", "4"]));
        assert_eq!(texts("v['mixed']"), expected(&["\"x\"", "\"y\"", "5", "6"], &["\"x\"", "\"y\"", "5"]));
        assert_eq!(
            texts("v['some']"),
            expected(&["\"a\"", "\"b\"", "null", "null"], &["\"a\"", "null", "null"])
        );
        assert_eq!(tablet.schema().field(3).data_type(), &DataType::Utf8View);
        if !is_unique {
            assert!(tablet.schema().field(2).data_type().is_integer(), "{:?}", tablet.schema());
            let found = batches(tablet.scan().project(["k"]).filter(col("v['n']").gt(lit(2_i64)))).unwrap();
            assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        }
        for (column, path) in [("w", "n"), ("k", "n")] {
            let error = open(&target, &TabletOptions::default().with_variant_path(column, path)).unwrap_err();
            assert!(error.to_string().contains("there is no VARIANT column"), "{error}");
        }
    }
}

#[test]
fn bounds_are_known_where_nothing_can_change_them() {
    let bounds = |model: &TableModel, loads: &[RecordBatch]| {
        let folder = tempfile::tempdir().unwrap();
        let tablet = write(&folder.path().join("t"), &schema(model), &TabletWriteOptions::default(), loads);
        let known = tablet.column_statistics().unwrap();
        let value =
            |array: &Option<ArrayRef>| array.as_ref().map(|array| array.as_primitive::<Int64Type>().value(0));
        known.iter().map(|one| (value(&one.min), value(&one.max), one.nulls)).collect::<Vec<_>>()
    };
    let apart = [batch(&[1, 2], &[10, 20]), batch(&[5, 6], &[-5, 60])];
    let replacing = [batch(&[1, 2], &[10, 20]), batch(&[2, 3], &[0, 1])];
    let none = (None, None, None);
    let duplicate = TableModel::duplicate(["key"]);
    assert_eq!(bounds(&duplicate, &replacing), [(Some(1), Some(3), Some(0)), (Some(0), Some(20), Some(0))]);
    // Replaced rows have values that no row has any more.
    let on_write = TableModel::unique(["key"]);
    assert_eq!(bounds(&on_write, &apart), [(Some(1), Some(6), Some(0)), (Some(-5), Some(60), Some(0))]);
    assert_eq!(bounds(&on_write, &replacing), [none, none]);
    for (model, of_one) in [
        (TableModel::unique(["key"]).with_merge_on_write(false), (Some(10), Some(20), Some(0))),
        // Doris keeps no bounds of values that are aggregated.
        (TableModel::aggregate(["key"]).with_aggregation("value", "SUM"), none),
    ] {
        assert_eq!(bounds(&model, &apart), [(Some(1), Some(6), Some(0)), none]);
        assert_eq!(bounds(&model, &replacing), [(Some(1), Some(3), Some(0)), none]);
        assert_eq!(bounds(&model, &apart[..1]), [(Some(1), Some(2), Some(0)), of_one]);
    }
}

#[test]
fn a_tablet_describes_its_rowsets() {
    let folder = tempfile::tempdir().unwrap();
    let options = TabletWriteOptions::default().with_creation_time(1_700_000_000);
    let tablet = write(&folder.path().join("t"), &schema(&TableModel::unique(["key"])), &options, &loads());
    let node = tablet.describe().unwrap();
    let fact = |facts: &[(String, String)], name: &str| {
        facts.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    assert_eq!(fact(&node.facts, "state"), "RUNNING");
    assert_eq!(fact(&node.facts, "deleted_rows"), "3");
    assert_eq!(node.children.len(), 4);
    assert_eq!(node.bytes, node.children.iter().map(|child| child.bytes).sum::<u64>());
    let last = node.children.last().unwrap();
    assert_eq!(fact(&last.facts, "versions"), "4..=4");
    assert_eq!(fact(&last.facts, "rows"), "4");
    assert_eq!(fact(&last.facts, "created"), "2023-11-14T22:13:20Z");
    assert!(last.children[0].name.starts_with("segment "), "{}", last.children[0].name);
}

#[test]
fn small_segments_are_left_uncompressed_as_doris_leaves_them() {
    let codecs = |rows: i64, options: &TabletWriteOptions| {
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<i64> = (0..rows).collect();
        // Values that are worth compressing.
        let load = batch(&keys, &vec![7; keys.len()]);
        let tablet =
            write(&folder.path().join("t"), &schema(&TableModel::duplicate(["key"])), options, &[load]);
        assert_eq!(
            batches(tablet.scan()).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(),
            rows as usize
        );
        tablet.column_statistics().unwrap()[0].codecs.clone()
    };
    for is_sorted in [true, false] {
        let options = TabletWriteOptions::default().with_sorted_input(is_sorted);
        assert_eq!(codecs(100, &options), ["NO_COMPRESSION"]);
        // Two numbers and one mark of nulls, for each row.
        assert_eq!(codecs((256 << 10) / 17, &options), ["NO_COMPRESSION"]);
        assert_eq!(codecs((256 << 10) / 17 + 1, &options), ["LZ4F"]);
        let segment = SegmentWriteOptions::default().with_compression(Compression::Zstd);
        assert_eq!(codecs(100, &options.with_segment_options(segment)), ["ZSTD"]);
    }
}
