//! Segments of an older schema, read with the one of today.
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

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Float32Array, Int16Array, Int32Array, RecordBatch, StructArray};
use arrow_schema::{DataType, Field, Fields};
use arrow_select::concat::concat_batches;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, ErrorKind, Limits, VerifyDepth};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions, SegmentWriteOptions, SegmentWriter};
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets};
use support::{batches, memory};

const KEY: &str = r#"{"unique_id": 0, "name": "k", "type": "INT", "is_key": true}"#;

fn schema(columns: &str) -> TabletSchema {
    let json = format!(r#"{{"num_short_key_columns": 1, "columns": [{KEY}{columns}]}}"#);
    TabletSchema::parse_json(json.as_bytes()).unwrap()
}

/// A struct of these parts, and an array of texts.
fn nested(fields: &str, item: &str) -> TabletSchema {
    schema(&format!(
        r#", {{"unique_id": 1, "name": "s", "type": "STRUCT", "is_nullable": true, "children": [{fields}]}},
            {{"unique_id": 10, "name": "a", "type": "ARRAY", "is_nullable": true, "children": [
                {{"unique_id": 11, "name": "item", "is_nullable": true, {item}}}]}}"#
    ))
}

fn part(id: i32, name: &str, type_name: &str) -> String {
    format!(r#"{{"unique_id": {id}, "name": "{name}", "type": "{type_name}", "is_nullable": true}}"#)
}

fn old() -> TabletSchema {
    let fields = [part(2, "n", "SMALLINT"), part(3, "f", "FLOAT")].join(",");
    nested(&fields, r#""type": "VARCHAR", "length": 10"#)
}

/// Wider parts, a longer text, and two more fields.
fn new() -> TabletSchema {
    let added = r#"{"unique_id": 5, "name": "d", "type": "INT", "is_nullable": true, "default_value": "7"}"#;
    let fields =
        [part(2, "n", "BIGINT"), part(3, "f", "DOUBLE"), part(4, "t", "STRING"), added.to_string()].join(",");
    nested(&fields, r#""type": "VARCHAR", "length": 100"#)
}

fn rows(schema: &TabletSchema, first: i32) -> RecordBatch {
    let struct_type = if schema == &old() {
        vec![Field::new("n", DataType::Int16, true), Field::new("f", DataType::Float32, true)]
    } else {
        vec![
            Field::new("n", DataType::Int16, true),
            Field::new("f", DataType::Float32, true),
            Field::new("t", DataType::Utf8, true),
            Field::new("d", DataType::Int32, true),
        ]
    };
    let mut parts: Vec<ArrayRef> = vec![
        Arc::new(Int16Array::from(vec![Some(-1), None, Some(3)])),
        Arc::new(Float32Array::from(vec![Some(0.5), Some(1.5), None])),
    ];
    if struct_type.len() > 2 {
        parts.push(Arc::new(arrow_array::StringArray::from(vec![Some("x"), None, None])));
        parts.push(Arc::new(Int32Array::from(vec![Some(1), Some(2), None])));
    }
    let nulls = Some(vec![true, true, false].into());
    let mut texts = ListBuilder::new(StringBuilder::new());
    texts.append_value([Some("one"), None]);
    texts.append_null();
    texts.append_value(Vec::<Option<&str>>::new());
    RecordBatch::try_from_iter([
        ("k", Arc::new(Int32Array::from(vec![first, first + 1, first + 2])) as ArrayRef),
        ("s", Arc::new(StructArray::new(Fields::from(struct_type), parts, nulls))),
        ("a", Arc::new(texts.finish())),
    ])
    .unwrap()
}

fn write(schema: &TabletSchema, batch: &RecordBatch) -> Vec<u8> {
    let options = SegmentWriteOptions::default();
    let mut writer = SegmentWriter::try_new(Vec::new(), schema, &options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap().0
}

fn open(file: &[u8], schema: &TabletSchema) -> pilaster_core::Result<SegmentReader> {
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema.clone())));
    SegmentReader::open_with_options(memory("old", file.to_vec()), &options)
}

fn read(reader: &dyn Dataset) -> RecordBatch {
    concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap()
}

#[test]
fn structs_grow_and_their_parts_become_wider() {
    let reader = open(&write(&old(), &rows(&old(), 0)), &new()).unwrap();
    let found = read(&reader);
    let group = found.column_by_name("s").unwrap().as_struct();
    assert_eq!(group.column_names(), ["n", "f", "t", "d"]);
    assert_eq!(
        group.column(0).as_primitive::<Int64Type>().iter().take(2).collect::<Vec<_>>(),
        [Some(-1), None]
    );
    assert_eq!(group.column(1).data_type(), &DataType::Float64);
    assert_eq!(group.column(2).null_count(), 3);
    assert_eq!(group.column(3).as_primitive::<Int32Type>().values(), &[7, 7, 7]);
    assert!(group.is_null(2));
    let list = found.column_by_name("a").unwrap().as_list::<i32>();
    assert_eq!(list.value(0).as_string_view().iter().collect::<Vec<_>>(), [Some("one"), None]);
    assert_eq!(reader.verify(VerifyDepth::Values, &Silent).unwrap().findings, []);
    // As it was, it reads as before.
    assert_eq!(read(&open(&write(&old(), &rows(&old(), 0)), &old()).unwrap()).num_rows(), 3);
}

#[test]
fn what_no_schema_change_makes_is_refused_by_name() {
    let file = write(&old(), &rows(&old(), 0));
    let text = r#""type": "VARCHAR", "length": 10"#;
    let with = |fields: &[String]| nested(&fields.join(","), text);
    for (schema, expected) in [
        (
            with(&[part(2, "n", "SMALLINT")]),
            "\"s\" is a STRUCT of 2 fields in the file and of 1 in the schema",
        ),
        (
            with(&[part(2, "n", "TINYINT"), part(3, "f", "FLOAT")]),
            "\"n\" is SMALLINT in the file and TINYINT",
        ),
        (with(&[part(2, "n", "DOUBLE"), part(3, "f", "FLOAT")]), "\"n\" is SMALLINT in the file and DOUBLE"),
        (with(&[part(2, "n", "SMALLINT"), part(3, "f", "STRING")]), "\"f\" is FLOAT in the file and STRING"),
        (nested(&part(2, "n", "SMALLINT"), r#""type": "INT""#), "\"s\" is a STRUCT"),
        (
            schema(r#", {"unique_id": 10, "name": "a", "type": "STRING"}"#),
            "\"a\" is ARRAY in the file and STRING in the schema",
        ),
        (
            schema(
                r#", {"unique_id": 10, "name": "a", "type": "ARRAY", "children": [
                    {"unique_id": 11, "name": "item", "type": "DATEV2", "is_nullable": true}]}"#,
            ),
            "\"item\" is VARCHAR in the file and DATEV2 in the schema",
        ),
    ] {
        let error = open(&file, &schema).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidInput(_)), "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
}

#[test]
fn added_columns_have_their_defaults() {
    let file = write(&old(), &rows(&old(), 0));
    let today = schema(
        r#", {"unique_id": 20, "name": "list", "type": "ARRAY", "is_nullable": true, "default_value": "[]", "children": [
                {"unique_id": 21, "name": "item", "type": "STRING", "is_nullable": true}]},
            {"unique_id": 22, "name": "bits", "type": "BITMAP", "default_value": "\u0000"},
            {"unique_id": 23, "name": "none", "type": "INT", "is_nullable": true, "default_value": "NULL"},
            {"unique_id": 24, "name": "day", "type": "DATEV2", "default_value": "2024-05-06"}"#,
    );
    let found = read(&open(&file, &today).unwrap());
    let list = found.column_by_name("list").unwrap().as_list::<i32>();
    assert_eq!((list.len(), list.null_count(), list.values().len()), (3, 0, 0));
    assert_eq!(found.column_by_name("bits").unwrap().as_binary_view().value(2), [0]);
    assert_eq!(found.column_by_name("none").unwrap().null_count(), 3);
    assert_eq!(found.column_by_name("day").unwrap().null_count(), 0);
    // A column that has none is an error where it is asked for, and nowhere else.
    let without = schema(r#", {"unique_id": 30, "name": "must", "type": "INT"}"#);
    let reader = open(&file, &without).unwrap();
    assert_eq!(batches(reader.scan().project(["k"])).unwrap().len(), 1);
    let error = batches(reader.scan()).unwrap_err().to_string();
    assert!(
        error.contains("column \"must\" is missing, may not be null and has no default value"),
        "{error}"
    );
}

fn segments(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "dat") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_tablet_of_old_and_new_segments_is_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tablet");
    let mut writer = TabletWriter::create(&root, &new(), &TabletWriteOptions::default()).unwrap();
    for first in [0, 10] {
        writer.write(&rows(&new(), first)).unwrap();
        writer.finish_rowset().unwrap();
    }
    writer.finish().unwrap();
    // The first load was before the change.
    let paths = segments(&root);
    assert_eq!(paths.len(), 2);
    std::fs::write(&paths[0], write(&old(), &rows(&old(), 0))).unwrap();
    let tablets = find_tablets(&root, &Limits::default()).unwrap().tablets;
    let reader = TabletReader::open(&tablets[0], &TabletOptions::default()).unwrap();
    let found = read(&reader);
    assert_eq!(found.num_rows(), 6);
    let group = found.column_by_name("s").unwrap().as_struct();
    let texts: Vec<_> = group.column(2).as_string_view().iter().flatten().collect();
    assert_eq!(texts, ["x"]);
}
