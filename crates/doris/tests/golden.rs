//! Every golden segment, value by value.
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

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_array::Array;
use arrow_schema::DataType;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, VerifyDepth, col, lit};
use pilaster_doris::TabletSchema;
use pilaster_doris::index_file::IndexFile;
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions, StorageFormat};
use pilaster_testing::needs;
use support::cells::{cell, is_same};
use support::golden::Case;
use support::{batches, goldens, memory};

/// Cells of `case` that differ from the expected rows, and how many were compared.
fn compare(case: &Case) -> (Vec<String>, usize) {
    let segment = case.open().unwrap_or_else(|error| panic!("{}: {error}", case.name));
    let (mut wrong, mut compared, mut first_row) = (Vec::new(), 0, 0);
    // A size that is no divisor of anything, so that batches straddle pages.
    for batch in
        batches(segment.scan().batch_size(1021)).unwrap_or_else(|error| panic!("{}: {error}", case.name))
    {
        for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
            let is_json = matches!(case.type_of(field.name()), "JSONB" | "VARIANT");
            for row in 0..batch.num_rows() {
                let found = cell(column, row, is_json);
                let expected = &case.rows[first_row + row][field.name()];
                compared += 1;
                if !is_same(&found, expected, field.data_type()) {
                    wrong.push(format!(
                        "{} row {} {}: expected {expected}, found {found}",
                        case.name,
                        first_row + row,
                        field.name()
                    ));
                }
            }
        }
        first_row += batch.num_rows();
    }
    if first_row != case.rows.len() {
        wrong.push(format!("{}: expected {} rows, found {first_row}", case.name, case.rows.len()));
    }
    let named: BTreeSet<_> = segment.schema().fields().iter().map(|field| field.name().clone()).collect();
    let expected: BTreeSet<_> = case.rows[0].as_object().unwrap().keys().cloned().collect();
    if named != expected {
        wrong.push(format!("{}: columns {named:?}, expected {expected:?}", case.name));
    }
    (wrong, compared)
}

#[needs(goldens = "doris")]
#[test]
fn every_golden_segment_holds_its_rows() {
    let root = goldens();
    let cases = Case::all(&root);
    let (mut wrong, mut cells) = (Vec::new(), 0);
    for case in &cases {
        let (differences, compared) = compare(case);
        wrong.extend(differences);
        cells += compared;
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong[..wrong.len().min(20)].join("\n"));
    eprintln!("{} segments, {cells} cells", cases.len());
    assert!(cases.len() >= 113 && cells > 400_000, "{} segments, {cells} cells", cases.len());
}

#[needs(goldens = "doris")]
#[test]
fn every_golden_segment_is_sound_at_every_depth() {
    let root = goldens();
    for case in Case::all(&root) {
        for depth in [VerifyDepth::Footer, VerifyDepth::Checksums, VerifyDepth::Values] {
            let report = case.open().unwrap().verify(depth, &Silent).unwrap();
            assert_eq!(report.findings, [], "{} at {depth:?}", case.name);
            if depth == VerifyDepth::Values {
                assert_eq!(report.rows as usize, case.rows.len(), "{}", case.name);
            }
        }
    }
}

#[needs(goldens = "doris")]
#[test]
fn both_storage_formats_are_among_them() {
    let root = goldens();
    let formats: Vec<_> =
        Case::all(&root).iter().map(|case| case.open().unwrap().metadata().format).collect();
    assert!(formats.contains(&StorageFormat::V2) && formats.contains(&StorageFormat::V3));
}

#[needs(goldens = "doris")]
#[test]
fn without_a_schema_columns_are_named_by_their_ids() {
    let root = goldens();
    for case in Case::all(&root) {
        let bare = SegmentReader::open(memory(&case.name, case.bytes.clone())).unwrap();
        let named = case.open().unwrap();
        let ids: Vec<_> = bare.schema().fields().iter().map(|field| field.name().clone()).collect();
        let expected: BTreeSet<_> =
            case.schema.columns.iter().map(|column| column.unique_id.to_string()).collect();
        assert_eq!(ids.iter().cloned().collect::<BTreeSet<_>>(), expected, "{}", case.name);
        let (bare, named) = (batches(bare.scan()).unwrap(), batches(named.scan()).unwrap());
        for column in &case.schema.columns {
            for (bare, named) in bare.iter().zip(&named) {
                let by_id = bare.column_by_name(&column.unique_id.to_string()).unwrap();
                let by_name = named.column_by_name(&column.name).unwrap();
                for row in 0..bare.num_rows() {
                    assert_eq!(
                        cell(by_id, row, false),
                        cell(by_name, row, false),
                        "{} {}",
                        case.name,
                        column.name
                    );
                }
            }
        }
    }
}

#[needs(goldens = "doris")]
#[test]
fn hidden_columns_are_shown_on_request_only() {
    let root = goldens();
    for case in Case::all(&root) {
        let options = SegmentReaderOptions::default().with_schema(Some(case.schema.clone()));
        let visible =
            SegmentReader::open_with_options(memory(&case.name, case.bytes.clone()), &options).unwrap();
        let expected: Vec<_> = case
            .schema
            .columns
            .iter()
            .filter(|column| column.visible)
            .map(|column| column.name.clone())
            .collect();
        let found: Vec<_> = visible.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(found, expected, "{}", case.name);
    }
}

#[needs(goldens = "doris")]
#[test]
fn index_files_are_containers_whose_parts_lie_inside() {
    let root = goldens();
    let mut versions = BTreeSet::new();
    for path in std::fs::read_dir(root.join("inverted_index")).unwrap().map(|entry| entry.unwrap().path()) {
        let bytes = std::fs::read(&path).unwrap();
        let size = bytes.len() as u64;
        let name = path.display().to_string();
        let file = IndexFile::read(memory(&name, bytes.clone()).as_ref(), &Limits::default()).unwrap();
        let ends = file.indexes.iter().flat_map(|index| &index.files).map(|(_, place)| place.end);
        assert_eq!(ends.max(), Some(size), "{name}");
        assert_eq!(file.unclaimed, [], "{name}");
        assert!(file.indexes.iter().all(|index| !index.files.is_empty()), "{name}");
        let cut = bytes[..bytes.len() - 1].to_vec();
        assert!(IndexFile::read(memory(&name, cut).as_ref(), &Limits::default()).is_err(), "{name}");
        versions.insert(file.version);
    }
    assert_eq!(versions, BTreeSet::from([1, 2]));
}

#[needs(goldens = "doris")]
#[test]
fn paths_of_a_variant_are_columns_on_request() {
    let root = goldens();
    let mut seen = BTreeSet::new();
    for case in
        Case::all(&root).into_iter().filter(|case| case.schema.columns.iter().any(|c| c.name == "v_variant"))
    {
        let paths = ["a", "nested", "nested.x", "nested.y", "array", "different", "absent"];
        let options =
            paths.iter().fold(case.options(), |options, path| options.with_variant_path("v_variant", *path));
        let segment =
            SegmentReader::open_with_options(memory(&case.name, case.bytes.clone()), &options).unwrap();
        let batch = &batches(segment.scan()).unwrap()[0];
        for path in paths {
            let name = format!("v_variant['{path}']");
            let column = batch.column_by_name(&name).unwrap();
            let is_text = segment.schema().field_with_name(&name).unwrap().data_type() == &DataType::Utf8View;
            for row in 0..batch.num_rows() {
                let expected = path.split('.').fold(&case.rows[row]["v_variant"], |value, key| &value[key]);
                // A column of strings is text, everything else without a column of its own is JSON.
                let found = cell(column, row, is_text && !expected.is_string());
                assert!(
                    is_same(&found, expected, column.data_type()),
                    "{} row {row} {name}: expected {expected}, found {found}",
                    case.name
                );
            }
            seen.insert(format!("{path} {}", column.data_type()));
        }
        assert!(
            SegmentReader::open_with_options(
                memory(&case.name, case.bytes.clone()),
                &case.options().with_variant_path("k", "a")
            )
            .is_err()
        );
    }
    assert!(
        seen.contains("a Int64") && seen.contains("nested.y Float64") && seen.contains("nested Utf8View"),
        "{seen:?}"
    );
}

#[needs(goldens = "doris")]
#[test]
fn columns_added_dropped_and_changed_since_are_joined_by_id() {
    let root = goldens();
    let case = &Case::some(&root, "all_scalar_values_v3_nullable")[0];
    let json = r#"{"columns": [
        {"unique_id": 900, "name": "added", "type": "BIGINT", "default_value": "17"},
        {"unique_id": 901, "name": "absent", "type": "DATEV2", "is_nullable": true},
        {"unique_id": 902, "name": "broken", "type": "INT", "default_value": "many"},
        {"unique_id": KEY, "name": "renamed", "type": "BIGINT"}]}"#;
    let key = case.schema.columns.iter().find(|column| column.name == "k").unwrap().unique_id;
    let schema = TabletSchema::parse_json(json.replace("KEY", &key.to_string()).as_bytes()).unwrap();
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema)));
    let segment = SegmentReader::open_with_options(memory("s", case.bytes.clone()), &options).unwrap();
    let batch = &batches(segment.scan().project(["added", "absent", "renamed"])).unwrap()[0];
    for row in 0..batch.num_rows() {
        assert_eq!(cell(batch.column(0), row, false), 17);
        assert!(batch.column(1).is_null(row));
        assert_eq!(cell(batch.column(2), row, false), case.rows[row]["k"]);
    }
    assert_eq!(batch.schema().field(2).data_type(), &DataType::Int64);
    let filtered = segment.scan().project(["renamed"]).filter(col("renamed").eq(lit(2i64)).clone());
    assert_eq!(batches(filtered).unwrap()[0].num_rows(), 1);
    let error = batches(segment.scan().project(["broken"])).unwrap_err().to_string();
    assert!(error.contains("the default value \"many\" of column \"broken\""), "{error}");
}
