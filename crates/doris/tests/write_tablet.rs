//! Tablets written here, of every key model: the rows they have, and what is left of a failure.
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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BinaryArray, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, VerifyDepth};
use pilaster_doris::segment::{SegmentWriteOptions, StorageFormat};
use pilaster_doris::tablet::{
    TabletLayout, TabletOptions, TabletReader, TabletSummary, TabletWriteOptions, TabletWriter, find_tablets,
};
use pilaster_doris::{TableModel, TabletSchema};
use pilaster_testing::needs;
use support::batches;

/// Loads of (key, value, text).
type Load = Vec<(i64, Option<i64>, &'static str)>;

fn batch(rows: &Load) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([
        ("value", Arc::new(rows.iter().map(|row| row.1).collect::<Int64Array>()) as ArrayRef, true),
        ("key", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()), false),
        ("text", Arc::new(rows.iter().map(|row| Some(row.2)).collect::<StringArray>()), true),
    ])
    .unwrap()
}

fn write(target: &Path, model: &TableModel, options: &TabletWriteOptions, loads: &[Load]) -> TabletSummary {
    let schema = TabletSchema::from_arrow(&batch(&Vec::new()).schema(), model).unwrap();
    let mut writer = TabletWriter::create(target, &schema, options).unwrap();
    for load in loads {
        writer.write(&batch(load)).unwrap();
        writer.finish_rowset().unwrap();
    }
    writer.finish().unwrap()
}

fn open(target: &Path, as_of: Option<i64>) -> TabletReader {
    let folders = find_tablets(target, &Limits::default()).unwrap().tablets;
    assert_eq!(folders.len(), 1);
    let reader = TabletReader::open(&folders[0], &TabletOptions::default().with_as_of(as_of)).unwrap();
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert_eq!(report.findings, []);
    reader
}

/// Rows by key.
fn rows(reader: &TabletReader) -> Vec<(i64, Option<i64>, String)> {
    let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
    let keys = all.column_by_name("key").unwrap().as_primitive::<Int64Type>();
    let values = all.column_by_name("value").unwrap().as_primitive::<Int64Type>();
    let texts = all.column_by_name("text").unwrap().as_string_view();
    let mut rows: Vec<_> = (0..all.num_rows())
        .map(|row| {
            let value = values.is_valid(row).then(|| values.value(row));
            (keys.value(row), value, texts.value(row).to_string())
        })
        .collect();
    rows.sort();
    rows
}

fn loads() -> Vec<Load> {
    vec![
        vec![(3, Some(30), "a"), (1, Some(10), "b"), (3, Some(5), "c"), (2, None, "d")],
        vec![(2, Some(7), "e"), (1, Some(-1), "f"), (1, None, "g"), (9, Some(9), "h")],
    ]
}

fn owned(rows: &[(i64, Option<i64>, &str)]) -> Vec<(i64, Option<i64>, String)> {
    rows.iter().map(|(key, value, text)| (*key, *value, text.to_string())).collect()
}

/// The tablet written with segments of any size, in both formats and layouts.
fn with_every_option(model: &TableModel, check: impl Fn(&TabletReader, &TabletReader)) {
    for (rows_per_segment, is_sorted) in
        [(1, false), (2, false), (2, true), (3, false), (3, true), (1000, true)]
    {
        for format in [StorageFormat::V2, StorageFormat::V3] {
            for layout in [TabletLayout::Snapshot, TabletLayout::StorageRoot { shard: 1023 }] {
                let folder = tempfile::tempdir().unwrap();
                let target = folder.path().join("tablet");
                let options = TabletWriteOptions::default()
                    .with_rows_per_segment(rows_per_segment)
                    .with_sorted_rowsets(is_sorted)
                    .with_layout(layout)
                    .with_tablet_id(77)
                    .with_table(5, 6)
                    .with_schema_hash(88)
                    .with_segment_options(SegmentWriteOptions::default().with_format(format));
                let summary = write(&target, model, &options, &loads());
                assert_eq!(summary.version, 3);
                let expected = match layout {
                    TabletLayout::Snapshot => target.join("77/88"),
                    TabletLayout::StorageRoot { .. } => target.join("data/1023/77/88"),
                };
                assert_eq!(summary.folder.path(), expected);
                check(&open(&target, None), &open(&target, Some(2)));
            }
        }
    }
}

#[test]
fn a_duplicate_table_keeps_every_row() {
    with_every_option(&TableModel::duplicate(["key"]), |newest, first| {
        let mut all: Vec<_> = loads().concat();
        all.sort();
        assert_eq!(rows(newest), owned(&all));
        let mut all = loads()[0].clone();
        all.sort();
        assert_eq!(rows(first), owned(&all));
    });
    with_every_option(&TableModel::duplicate(Vec::<String>::new()), |newest, _| {
        assert_eq!(rows(newest).len(), 8);
    });
}

#[test]
fn a_unique_table_keeps_the_newest_row_of_each_key() {
    for merge_on_write in [true, false] {
        let model = TableModel::unique(["key"]).with_merge_on_write(merge_on_write);
        with_every_option(&model, |newest, first| {
            let expected = [(1, None, "g"), (2, Some(7), "e"), (3, Some(5), "c"), (9, Some(9), "h")];
            assert_eq!(rows(newest), owned(&expected), "merge on write: {merge_on_write}");
            let expected = [(1, Some(10), "b"), (2, None, "d"), (3, Some(5), "c")];
            assert_eq!(rows(first), owned(&expected), "merge on write: {merge_on_write}");
        });
    }
}

#[test]
fn an_aggregating_table_aggregates() {
    let model =
        TableModel::aggregate(["key"]).with_aggregation("value", "sum").with_aggregation("text", "MIN");
    with_every_option(&model, |newest, first| {
        let expected = [(1, Some(9), "b"), (2, Some(7), "d"), (3, Some(35), "a"), (9, Some(9), "h")];
        assert_eq!(rows(newest), owned(&expected));
        assert_eq!(rows(first), owned(&[(1, Some(10), "b"), (2, None, "d"), (3, Some(35), "a")]));
    });
}

#[test]
fn opaque_values_of_equal_keys_are_united() {
    let column = |id: i32, name: &str, kind: &str, union: &str| {
        format!(r#"{{"unique_id": {id}, "name": "{name}", "type": "{kind}", "aggregation": "{union}"}}"#)
    };
    let json = format!(
        r#"{{"keys_type": "AGG_KEYS", "num_short_key_columns": 1, "columns": [
            {{"unique_id": 0, "name": "key", "type": "BIGINT", "is_key": true, "length": 8, "index_length": 8}},
            {}, {}, {}]}}"#,
        column(1, "quantile", "QUANTILE_STATE", "QUANTILE_UNION"),
        column(2, "bitmap", "BITMAP", "BITMAP_UNION"),
        column(3, "hll", "HLL", "HLL_UNION"),
    );
    let schema = TabletSchema::parse_json(json.as_bytes()).unwrap();
    let single = |value: f64| [&b"\0\0\0\x45\x01"[..], &value.to_le_bytes()].concat();
    let listed = |values: &[f64]| {
        let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        [&b"\0\0\0\x45\x02"[..], &(values.len() as u16 / 8).to_le_bytes(), &values].concat()
    };
    let set = |members: &[u32]| {
        let count = (members.len() as u32).to_le_bytes();
        let members: Vec<u8> = members.iter().flat_map(|member| member.to_le_bytes()).collect();
        [&b"\x0c\x01"[..], &count, &members].concat()
    };
    let hash = |hash: u64| [&b"\x01\x01"[..], &hash.to_le_bytes()].concat();
    let register = |register: u8, value: u8| vec![2, 1, 0, 0, 0, register, 0, value];
    let loads = [
        (1i64, single(1.0), set(&[7, 9]), hash(0b100 << 14 | 3)),
        (2, single(2.5), set(&[1]), hash(5)),
        (1, listed(&[4.0, 3.0]), set(&[9, 11]), register(3, 2)),
        (1, single(9.0), vec![5, 1, 8, 0, 0, 0, 0, 0, 0, 0], register(4, 1)),
    ];
    let folder = tempfile::tempdir().unwrap();
    for together in [true, false] {
        let target = folder.path().join(together.to_string());
        let mut writer = TabletWriter::create(&target, &schema, &TabletWriteOptions::default()).unwrap();
        for (key, quantile, bitmap, hll) in &loads {
            let opaque = |bytes: &[u8]| Arc::new(BinaryArray::from(vec![bytes])) as ArrayRef;
            let batch = RecordBatch::try_from_iter([
                ("key", Arc::new(Int64Array::from(vec![*key])) as ArrayRef),
                ("quantile", opaque(quantile)),
                ("bitmap", opaque(bitmap)),
                ("hll", opaque(hll)),
            ]);
            writer.write(&batch.unwrap()).unwrap();
            if !together {
                writer.finish_rowset().unwrap();
            }
        }
        writer.finish().unwrap();
        let reader = open(&target, None);
        let rows = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
        assert_eq!(rows.num_rows(), 2);
        let cell =
            |name: &str, row: usize| rows.column_by_name(name).unwrap().as_binary_view().value(row).to_vec();
        // From the newest to the oldest.
        assert_eq!(cell("quantile", 0), listed(&[4.0, 3.0, 9.0, 1.0]));
        assert_eq!((cell("quantile", 1), cell("hll", 1)), (single(2.5), hash(5)));
        assert_eq!(cell("hll", 0), [2, 2, 0, 0, 0, 3, 0, 3, 4, 0, 1]);
        let members = &cell("bitmap", 0)[1..];
        let members = roaring::RoaringBitmap::deserialize_from(members).unwrap();
        assert_eq!(members.iter().collect::<Vec<_>>(), [7, 8, 9, 11]);
    }
}

#[test]
fn a_sequence_column_decides_among_equal_keys() {
    let json = r#"{"keys_type": "UNIQUE_KEYS", "merge_on_write": MOW, "num_short_key_columns": 1, "columns": [
        {"unique_id": 0, "name": "key", "type": "BIGINT", "is_key": true},
        {"unique_id": 1, "name": "text", "type": "STRING", "is_nullable": true},
        {"unique_id": 2, "name": "__DORIS_DELETE_SIGN__", "type": "TINYINT", "visible": false},
        {"unique_id": 3, "name": "__DORIS_SEQUENCE_COL__", "type": "BIGINT", "is_nullable": true, "visible": false}]}"#;
    for merge_on_write in ["true", "false"] {
        let schema = TabletSchema::parse_json(json.replace("MOW", merge_on_write).as_bytes()).unwrap();
        let load = |rows: &[(i64, &str, Option<i64>)]| {
            RecordBatch::try_from_iter_with_nullable([
                ("key", Arc::new(rows.iter().map(|row| row.0).collect::<Int64Array>()) as ArrayRef, false),
                ("text", Arc::new(rows.iter().map(|row| Some(row.1)).collect::<StringArray>()), true),
                (
                    "__DORIS_SEQUENCE_COL__",
                    Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>()),
                    true,
                ),
            ])
            .unwrap()
        };
        for (rows_per_segment, is_sorted) in [(1, false), (1, true), (100, true)] {
            let folder = tempfile::tempdir().unwrap();
            let target = folder.path().join("t");
            let options = TabletWriteOptions::default()
                .with_rows_per_segment(rows_per_segment)
                .with_sorted_rowsets(is_sorted);
            let mut writer = TabletWriter::create(&target, &schema, &options).unwrap();
            writer.write(&load(&[(1, "new", Some(5)), (1, "old", Some(2)), (2, "none", None)])).unwrap();
            writer.finish_rowset().unwrap();
            writer
                .write(&load(&[(1, "older", Some(4)), (2, "some", Some(-9)), (3, "same", Some(1))]))
                .unwrap();
            writer.write(&load(&[(3, "later", Some(1))])).unwrap();
            writer.finish().unwrap();
            let reader = open(&target, None);
            let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
            let found: BTreeMap<i64, &str> = all
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .iter()
                .copied()
                .zip(all.column(1).as_string_view().iter().flatten())
                .collect();
            assert_eq!(all.num_rows(), 3);
            assert_eq!(found, BTreeMap::from([(1, "new"), (2, "some"), (3, "later")]), "{merge_on_write}");
        }
    }
}

/// A row (a, c, d, e, s1, s2) of a table in which s1 decides on c and d, and s2 on e.
type Grouped = (i64, Option<i64>, Option<i64>, Option<i64>, Option<i64>, Option<i64>);

fn write_grouped(target: &Path, options: &TabletWriteOptions, loads: &[Vec<Grouped>]) {
    let column = |id: i32, name: &str, is_key: bool| {
        format!(
            r#"{{"unique_id": {id}, "name": "{name}", "type": "BIGINT", "is_key": {is_key}, "is_nullable": {},
                "length": 8, "index_length": 8, "aggregation": "REPLACE"}}"#,
            !is_key
        )
    };
    let columns = ["a", "c", "d", "e", "s1", "s2"];
    let columns: Vec<_> = (0..).zip(columns).map(|(id, name)| column(id, name, id == 0)).collect();
    let sign = r#"{"unique_id": 6, "name": "__DORIS_DELETE_SIGN__", "type": "TINYINT", "length": 1, "visible": false}"#;
    let json = format!(
        r#"{{"keys_type": "UNIQUE_KEYS", "num_short_key_columns": 1, "columns": [{}, {sign}], "seq_map": [
            {{"sequence_column": 4, "columns_in_group": [1, 2]}}, {{"sequence_column": 5, "columns_in_group": [3]}}]}}"#,
        columns.join(", ")
    );
    let schema = TabletSchema::parse_json(json.as_bytes()).unwrap();
    let mut writer = TabletWriter::create(target, &schema, options).unwrap();
    for load in loads {
        let numbers = |of: fn(&Grouped) -> Option<i64>| {
            Arc::new(load.iter().map(of).collect::<Int64Array>()) as ArrayRef
        };
        let batch = RecordBatch::try_from_iter_with_nullable([
            ("a", numbers(|row| Some(row.0)), false),
            ("c", numbers(|row| row.1), true),
            ("d", numbers(|row| row.2), true),
            ("e", numbers(|row| row.3), true),
            ("s1", numbers(|row| row.4), true),
            ("s2", numbers(|row| row.5), true),
        ]);
        writer.write(&batch.unwrap()).unwrap();
        writer.finish_rowset().unwrap();
    }
    writer.finish().unwrap();
}

fn grouped(reader: &TabletReader) -> Vec<Vec<Option<i64>>> {
    let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
    let cell = |column: &ArrayRef, row: usize| {
        column.is_valid(row).then(|| column.as_primitive::<Int64Type>().value(row))
    };
    (0..all.num_rows()).map(|row| all.columns().iter().map(|column| cell(column, row)).collect()).collect()
}

/// The loads and the answers of Doris's own test of sequence mapping, `unique_seq_map_p0`.
#[test]
fn columns_of_a_group_are_replaced_by_their_own_sequence() {
    let (n, s) = (None, Some);
    let loads = [
        vec![(1, s(4), s(4), n, s(4), n), (1, s(2), s(2), n, s(2), n), (1, s(3), s(3), n, s(3), n)],
        vec![(1, s(1), s(1), n, s(1), n)],
        vec![(1, n, n, s(2), n, s(2))],
        vec![(1, n, n, s(3), n, s(3))],
        vec![(2, s(2), s(2), s(2), s(4), s(4))],
        vec![(2, s(3), s(3), s(3), s(4), s(4))],
    ];
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("tablet");
    write_grouped(&target, &TabletWriteOptions::default(), &loads);
    let first = [s(1), s(4), s(4), n, s(4), n];
    let second = [s(2), s(3), s(3), s(3), s(4), s(4)];
    for (version, expected) in [
        (2, vec![first]),
        (3, vec![first]),
        (4, vec![[s(1), s(4), s(4), s(2), s(4), s(2)]]),
        (5, vec![[s(1), s(4), s(4), s(3), s(4), s(3)]]),
        (7, vec![[s(1), s(4), s(4), s(3), s(4), s(3)], second]),
    ] {
        assert_eq!(grouped(&open(&target, Some(version))), expected, "version {version}");
    }
    // A column is right whether or not its sequence is asked for.
    let reader = open(&target, None);
    for names in [&["c"][..], &["e", "d"], &["s2"], &["a"]] {
        let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
        for batch in batches(reader.scan().project(names.iter().copied())).unwrap() {
            for (name, column) in names.iter().zip(batch.columns()) {
                assert_eq!(column, all.column_by_name(name).unwrap(), "{names:?}");
            }
        }
    }
}

#[test]
fn of_the_segments_of_one_rowset_the_newest_decides_whatever_its_sequences() {
    let s = Some;
    let load = vec![(1, s(9), s(9), s(1), s(9), s(1)), (1, s(2), s(2), s(7), s(2), s(7))];
    let folder = tempfile::tempdir().unwrap();
    for (rows_per_segment, expected) in [
        // In one segment, as in the buffer of a server, rows are made one by their sequences.
        (2, [s(1), s(9), s(9), s(7), s(9), s(7)]),
        (1, [s(1), s(2), s(2), s(7), s(2), s(7)]),
    ] {
        let target = folder.path().join(rows_per_segment.to_string());
        let options =
            TabletWriteOptions::default().with_rows_per_segment(rows_per_segment).with_sorted_rowsets(false);
        write_grouped(&target, &options, std::slice::from_ref(&load));
        assert_eq!(grouped(&open(&target, None)), [expected]);
        // Against another rowset the sequences count.
        let target = folder.path().join(format!("{rows_per_segment} and more"));
        write_grouped(&target, &options, &[load.clone(), vec![(1, s(3), s(3), s(3), s(3), s(3))]]);
        let expected = if rows_per_segment == 1 { [s(1), s(3), s(3), s(7), s(3), s(7)] } else { expected };
        assert_eq!(grouped(&open(&target, None)), [expected]);
    }
}

/// All files below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let inner = files(&path).into_iter();
            found.extend(inner.map(|(name, bytes)| (Path::new(path.file_name().unwrap()).join(name), bytes)));
        } else {
            found.insert(path.file_name().unwrap().into(), std::fs::read(path).unwrap());
        }
    }
    found
}

#[test]
fn tablets_are_the_same_bytes_however_little_memory_the_sort_has() {
    let mix = |n: i64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64.cast_signed()) >> 40) & 0xffff;
    // Keys come more than once, in one load and in both.
    let text = "x".repeat(200);
    let load = |first: i64| -> Load {
        let row =
            |n: i64| (mix(n) % 4000, (n % 9 > 0).then_some(n), &text.as_str()[..(mix(n + 1) % 200) as usize]);
        // Leaked, as rows borrow their texts for good.
        (first..first + 6000)
            .map(row)
            .map(|(key, value, text)| (key, value, &*text.to_string().leak()))
            .collect()
    };
    let loads = [load(0), load(9000)];
    for model in [
        TableModel::duplicate(["key"]),
        TableModel::unique(["key"]),
        TableModel::unique(["key"]).with_merge_on_write(false),
        TableModel::aggregate(["key"]).with_aggregation("value", "SUM").with_aggregation("text", "MAX"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let schema = TabletSchema::from_arrow(&batch(&Vec::new()).schema(), &model).unwrap();
        let written = |memory: usize, part: usize| {
            let options = TabletWriteOptions::default()
                .with_creation_time(1_700_000_000)
                .with_segment_bytes(60_000)
                .with_sort_memory_bytes(memory);
            let target = folder.path().join(memory.to_string());
            let mut writer = TabletWriter::create(&target, &schema, &options).unwrap();
            for load in &loads {
                load.chunks(part).for_each(|rows| writer.write(&batch(&rows.to_vec())).unwrap());
                writer.finish_rowset().unwrap();
            }
            writer.finish().unwrap();
            (files(&target), rows(&open(&target, None)))
        };
        let (expected, expected_rows) = written(1 << 30, 6000);
        assert!(expected.len() > 5, "{:?}", expected.keys());
        for (memory, part) in [(1, 25), (30_000, 7), (200_000, 1000)] {
            let (found, found_rows) = written(memory, part);
            assert_eq!(found_rows, expected_rows, "{model:?} {memory}");
            assert!(found == expected, "{model:?} {memory}");
        }
    }
}

#[test]
fn a_single_load_has_each_key_once_and_no_second_load_follows() {
    let folder = tempfile::tempdir().unwrap();
    let model = TableModel::unique(["key"]);
    let schema = TabletSchema::from_arrow(&batch(&Vec::new()).schema(), &model).unwrap();
    for (rows_per_segment, segments) in [(1, 3), (100, 1)] {
        let target = folder.path().join(rows_per_segment.to_string());
        let options =
            TabletWriteOptions::default().with_single_rowset(true).with_rows_per_segment(rows_per_segment);
        let mut writer = TabletWriter::create(&target, &schema, &options).unwrap();
        writer.write(&batch(&loads()[0])).unwrap();
        writer.finish_rowset().unwrap();
        writer.write(&batch(&Vec::new())).unwrap();
        let summary = writer.finish().unwrap();
        assert_eq!((summary.rows, summary.segments), (3, segments));
        assert_eq!(
            rows(&open(&target, None)),
            owned(&[(1, Some(10), "b"), (2, None, "d"), (3, Some(5), "c")])
        );
    }
    let options = TabletWriteOptions::default().with_single_rowset(true);
    let mut writer = TabletWriter::create(folder.path().join("two"), &schema, &options).unwrap();
    writer.write(&batch(&loads()[0])).unwrap();
    writer.finish_rowset().unwrap();
    let error = writer.write(&batch(&loads()[1])).unwrap_err();
    assert!(error.to_string().contains("second load"), "{error}");
}

#[test]
fn sorted_rows_go_straight_to_segments() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let sorted: Load = (0..1000).map(|key| (key, Some(key * 2), "x")).collect();
    let options = TabletWriteOptions::default().with_sorted_input(true).with_rows_per_segment(300);
    let summary = write(&target, &TableModel::duplicate(["key"]), &options, std::slice::from_ref(&sorted));
    assert_eq!((summary.segments, summary.rows), (4, 1000));
    assert_eq!(rows(&open(&target, None)), owned(&sorted));
    // Rows that are not sorted after all are refused.
    let schema =
        TabletSchema::from_arrow(&batch(&Vec::new()).schema(), &TableModel::duplicate(["key"])).unwrap();
    let mut writer = TabletWriter::create(folder.path().join("u"), &schema, &options).unwrap();
    let error = writer.write(&batch(&vec![(2, None, "a"), (1, None, "b")])).unwrap_err();
    assert!(error.to_string().contains("sorted by key"), "{error}");
    // Nor is there a tablet without them.
    assert!(writer.write(&batch(&vec![(3, None, "c")])).is_err());
    assert!(writer.finish().is_err());
    assert!(!folder.path().join("u").exists());
}

#[test]
fn a_tablet_appears_complete_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let schema =
        TabletSchema::from_arrow(&batch(&Vec::new()).schema(), &TableModel::unique(["key"])).unwrap();
    let mut writer = TabletWriter::create(&target, &schema, &TabletWriteOptions::default()).unwrap();
    writer.write(&batch(&loads()[0])).unwrap();
    writer.finish_rowset().unwrap();
    assert!(!target.exists());
    drop(writer);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // A folder with something in it is left alone.
    std::fs::create_dir(&target).unwrap();
    std::fs::write(target.join("mine"), b"x").unwrap();
    assert!(TabletWriter::create(&target, &schema, &TabletWriteOptions::default()).is_err());
    assert_eq!(std::fs::read(target.join("mine")).unwrap(), b"x");
}

#[test]
fn a_tablet_without_rows_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("t");
    let summary =
        write(&target, &TableModel::duplicate(["key"]), &TabletWriteOptions::default(), &[Vec::new()]);
    assert_eq!((summary.rows, summary.segments), (0, 0));
    assert_eq!(rows(&open(&target, None)), []);
}

#[test]
fn the_same_rows_make_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let options = TabletWriteOptions::default().with_creation_time(1_700_000_000);
    let files = |name: &str| {
        let target = folder.path().join(name);
        let summary = write(&target, &TableModel::unique(["key"]), &options, &loads());
        let mut files: Vec<_> = std::fs::read_dir(summary.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name(), std::fs::read(entry.path()).unwrap()))
            .collect();
        files.sort();
        files
    };
    assert_eq!(files("a"), files("b"));
    assert_eq!(files("c").len(), 3);
}

#[needs(goldens = "doris")]
#[test]
fn golden_tablets_are_written_again() {
    let root = support::goldens();
    let mut written = 0;
    for case in std::fs::read_dir(root.join("tablet")).unwrap().map(|entry| entry.unwrap().path()) {
        let folders = find_tablets(&case, &Limits::default()).unwrap().tablets;
        let options = TabletOptions::default().with_hidden(true);
        let original = TabletReader::open(&folders[0], &options).unwrap();
        let schema = original.meta().schema.clone();
        let temporary = tempfile::tempdir().unwrap();
        let target = temporary.path().join("t");
        let mut writer = TabletWriter::create(&target, &schema, &TabletWriteOptions::default()).unwrap();
        for batch in batches(original.scan()).unwrap() {
            writer.write(&batch).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
        }
        writer.finish().unwrap();
        let copy =
            TabletReader::open(&find_tablets(&target, &Limits::default()).unwrap().tablets[0], &options)
                .unwrap();
        let all = |reader: &TabletReader| {
            let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
            let format = arrow_cast::display::FormatOptions::default();
            let columns: Vec<_> = all
                .schema()
                .fields()
                .iter()
                .zip(all.columns())
                // The version of a row is that of its rowset, which is another one now.
                .filter(|(field, _)| field.name() != "__DORIS_VERSION_COL__")
                .map(|(_, column)| {
                    let text =
                        arrow_cast::display::ArrayFormatter::try_new(column.as_ref(), &format).unwrap();
                    (0..all.num_rows()).map(|row| text.value(row).to_string()).collect::<Vec<_>>()
                })
                .collect();
            let mut lines: Vec<String> = (0..all.num_rows())
                .map(|row| columns.iter().map(|c| c[row].clone()).collect::<Vec<_>>().join("|"))
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(all(&copy), all(&original), "{}", case.display());
        assert_eq!(copy.meta().schema, schema, "{}", case.display());
        written += 1;
    }
    eprintln!("{written} tablets");
    assert!(written >= 5);
}
