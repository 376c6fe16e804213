//! Maps of paths of a VARIANT. The writer makes sparse ones; files of the document mode are made of its files, by
//! describing their columns otherwise.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::DataType;
use pilaster_core::Dataset;
use pilaster_core::source::MemorySource;
use prost::Message;
use serde_json::{Value, json};

use super::footer::TAIL_BYTES;
use super::variant::SPARSE_KEY;
use super::write::{Sink, write_footer};
use super::{SegmentReader, SegmentReaderOptions, SegmentWriteOptions, SegmentWriter, StorageFormat};
use crate::TabletSchema;
use crate::messages::{ColumnMetaPb, PathPartPb, SegmentFooterPb};

const DOCUMENTS: [&str; 4] = [
    r#"{"a":1,"rare":"x","b":{"c":2.5,"d":[1,2]}}"#,
    r#"{"a":2,"a2":true}"#,
    r#"{"a":3,"deep":{"er":{"x":7}}}"#,
    r#"{}"#,
];

fn schema() -> TabletSchema {
    TabletSchema::parse_json(
        br#"{"columns": [{"unique_id": 0, "name": "k", "type": "INT", "is_key": true},
            {"unique_id": 1, "name": "v", "type": "VARIANT", "variant_max_subcolumns_count": 1}]}"#,
    )
    .unwrap()
}

/// A column for "a", all other paths in the sparse map.
fn sparse_file(format: StorageFormat) -> Vec<u8> {
    let options = SegmentWriteOptions::default().with_format(format);
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema(), &options).unwrap();
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![0, 1, 2, 3]));
    let documents: ArrayRef = Arc::new(StringArray::from(DOCUMENTS.to_vec()));
    writer.write(&RecordBatch::try_from_iter([("k", keys), ("v", documents)]).unwrap()).unwrap();
    writer.finish().unwrap().0
}

/// The file with every column, and every part of one, described as `edit` wants it.
fn edited(file: &[u8], edit: &dyn Fn(&mut ColumnMetaPb)) -> Vec<u8> {
    fn all(column: &mut ColumnMetaPb, edit: &dyn Fn(&mut ColumnMetaPb)) {
        edit(column);
        column.children_columns.iter_mut().for_each(|child| all(child, edit));
    }
    let tail = file.len() - usize::try_from(TAIL_BYTES).unwrap();
    let length = u32::from_le_bytes(*file[tail..].first_chunk().unwrap()) as usize;
    let mut footer = SegmentFooterPb::decode(&file[tail - length..tail]).unwrap();
    footer.columns.iter_mut().for_each(|column| all(column, edit));
    let start = footer.col_meta_region_start.map_or(tail - length, |start| usize::try_from(start).unwrap());
    let mut sink = Sink::at(file[..start].to_vec(), start as u64);
    let mut at = start;
    for entry in &mut footer.column_meta_entries {
        let end = at + entry.length.unwrap() as usize;
        let mut column = ColumnMetaPb::decode(&file[at..end]).unwrap();
        at = end;
        all(&mut column, edit);
        entry.length = Some(u32::try_from(column.encoded_len()).unwrap());
        sink.write(&column.encode_to_vec()).unwrap();
    }
    write_footer(&footer, &mut sink).unwrap();
    sink.finish().unwrap()
}

/// The keys of a column inside a VARIANT, if it is one.
fn keys(column: &ColumnMetaPb) -> Vec<String> {
    let parts = column.column_path_info.iter().flat_map(|path| path.parts.iter().skip(1));
    parts.map(|part| part.key.clone().unwrap()).collect()
}

fn rename(column: &mut ColumnMetaPb, keys: &[&str]) {
    let path = column.column_path_info.as_mut().unwrap();
    path.parts.truncate(1);
    let part = |key: &&str| PathPartPb { key: Some((*key).to_string()), ..PathPartPb::default() };
    path.parts.extend(keys.iter().map(part));
    path.path = Some(format!("v.{}", keys.join(".")));
}

/// The sparse map as a bucket of the document mode.
fn to_documents(column: &mut ColumnMetaPb) {
    if keys(column) == [SPARSE_KEY] {
        rename(column, &["__DORIS_VARIANT_DOC_VALUE__", "b3"]);
        let counts = column.variant_statistics.as_mut().unwrap();
        std::mem::swap(&mut counts.sparse_column_non_null_size, &mut counts.doc_value_column_non_null_size);
    }
}

fn open(file: Vec<u8>, paths: &[&str]) -> SegmentReader {
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema())));
    let options = paths.iter().fold(options, |options, path| options.with_variant_path("v", *path));
    SegmentReader::open_with_options(Arc::new(MemorySource::new("v", file)), &options).unwrap()
}

fn column(reader: &SegmentReader, name: &str) -> ArrayRef {
    let batches: Vec<_> = reader.scan().read().unwrap().map(|batch| batch.unwrap()).collect();
    assert_eq!(batches.len(), 1);
    Arc::clone(batches[0].column_by_name(name).unwrap())
}

fn values(column: &ArrayRef) -> Vec<Value> {
    let texts = column.as_string_view();
    texts.iter().map(|text| text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())).collect()
}

fn documents() -> Vec<Value> {
    DOCUMENTS.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

#[test]
fn entries_of_either_map_are_parts_of_the_value() {
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let file = sparse_file(format);
        assert_eq!(values(&column(&open(file.clone(), &[]), "v")), documents(), "{format:?}");
        let file = edited(&file, &to_documents);
        let reader = open(file, &["b", "deep.er", "none"]);
        assert_eq!(values(&column(&reader, "v")), documents(), "{format:?}");
        let null = Value::Null;
        let expected = [json!({"c": 2.5, "d": [1, 2]}), null.clone(), null.clone(), null.clone()];
        assert_eq!(values(&column(&reader, "v['b']")), expected);
        assert_eq!(
            values(&column(&reader, "v['deep.er']")),
            [null.clone(), null.clone(), json!({"x": 7}), null.clone()]
        );
        assert_eq!(column(&reader, "v['none']").null_count(), 4);
    }
}

#[test]
fn what_was_loaded_counts_where_a_subcolumn_repeats_it() {
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let file = edited(&sparse_file(format), &|column| {
            to_documents(column);
            if keys(column) == ["a"] {
                rename(column, &["rare"]);
            }
        });
        let found = values(&column(&open(file, &[]), "v"));
        assert_eq!(found[0]["rare"], json!("x"), "{format:?}");
        assert_eq!(found[1]["rare"], json!(2), "{format:?}");
    }
}

#[test]
fn a_path_has_its_own_type_only_if_nothing_else_is_there() {
    // "a" is a column of numbers; "a2" in the map is not below it.
    let file = sparse_file(StorageFormat::V2);
    let typed = column(&open(file.clone(), &["a"]), "v['a']");
    assert_eq!(typed.as_primitive::<Int64Type>().values()[..3], [1, 2, 3]);
    for (to, is_typed_in_documents) in [(&["deep", "er"][..], false), (&["b"], false), (&["rare"], true)] {
        for in_documents in [false, true] {
            let file = edited(&file, &|column| {
                if in_documents {
                    to_documents(column);
                }
                if keys(column) == ["a"] {
                    rename(column, to);
                }
            });
            let path = to.join(".");
            let found = column(&open(file, &[&path]), &format!("v['{path}']"));
            let is_typed = found.data_type() == &DataType::Int64;
            assert_eq!(is_typed, in_documents && is_typed_in_documents, "{path} {in_documents}");
            if path == "deep.er" {
                // The value of the map takes the place of the subcolumn's.
                assert_eq!(values(&found)[2], json!({"x": 7}));
            }
        }
    }
    // Where the file does not count all paths, anything may be in the map.
    let file = edited(&file, &|column| column.variant_statistics = None);
    assert_eq!(column(&open(file, &["a"]), "v['a']").data_type(), &DataType::Utf8View);
}
