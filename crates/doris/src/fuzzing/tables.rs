//! Tables of any schema, written with any options and read back.

use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::take::take_record_batch;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{CompareOp, Dataset, Limits, Literal, Predicate, VerifyDepth, col, lit};

use super::values::{array, assert_same};
use crate::schema::{
    DELETE_SIGN_COLUMN, KeysType, ROW_STORE_COLUMN, SEQUENCE_COLUMN, SchemaColumn, SchemaIndex, TabletSchema,
};
use crate::segment::{
    ColumnWriteOptions, Compression, Encoding, FieldType, SegmentReader, SegmentReaderOptions,
    SegmentWriteOptions, SegmentWriter, StorageFormat, row_keys,
};
use pilaster_core::fuzzing::Choices;

use crate::tablet::{
    TabletLayout, TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets,
};

const KEY_TYPES: [&str; 17] = [
    "INT",
    "BOOLEAN",
    "TINYINT",
    "SMALLINT",
    "BIGINT",
    "LARGEINT",
    "DATE",
    "DATETIME",
    "DATEV2",
    "DATETIMEV2",
    "TIMESTAMPTZ",
    "DECIMAL",
    "DECIMAL64",
    "IPV4",
    "IPV6",
    "CHAR",
    "VARCHAR",
];
const VALUE_TYPES: [&str; 11] = [
    "STRING",
    "FLOAT",
    "DOUBLE",
    "DECIMAL32",
    "DECIMAL128I",
    "DECIMAL256",
    "JSONB",
    "HLL",
    "BITMAP",
    "QUANTILE_STATE",
    "STRING",
];
const NESTED_TYPES: [&str; 3] = ["ARRAY", "MAP", "STRUCT"];

/// A table: its schema, and rows in the order of its keys.
#[derive(Debug)]
pub(super) struct Table {
    pub schema: TabletSchema,
    pub rows: RecordBatch,
}

fn column(type_name: &str, name: String, unique_id: i32, choices: &mut Choices<'_>) -> SchemaColumn {
    let (precision, frac) = match type_name {
        "DECIMAL" => (27, 9),
        "DECIMAL32" => (9, 2),
        "DECIMAL64" => (18, 4),
        "DECIMAL128I" => (38, 9),
        "DECIMAL256" => (76, 18),
        "DATETIMEV2" | "TIMESTAMPTZ" => (0, 6),
        _ => (0, 0),
    };
    SchemaColumn {
        unique_id,
        name,
        type_name: type_name.to_string(),
        is_nullable: choices.one_in(2),
        visible: true,
        precision,
        frac,
        length: match type_name {
            "CHAR" => 8,
            "VARCHAR" => 700,
            _ => 0,
        },
        index_length: if matches!(type_name, "CHAR" | "VARCHAR") { 6 } else { 0 },
        ..SchemaColumn::default()
    }
}

/// Whether a column holds values of which only Doris knows what they mean.
fn is_opaque(column: &SchemaColumn) -> bool {
    matches!(column.type_name.as_str(), "HLL" | "BITMAP" | "QUANTILE_STATE" | "AGG_STATE")
        || column.children.iter().any(is_opaque)
}

/// A column of any type, made of columns down to `depth`.
fn value_column(name: String, unique_id: i32, depth: usize, choices: &mut Choices<'_>) -> SchemaColumn {
    let kind = if depth == 0 { choices.below(5) } else { choices.below(8) };
    let type_name = match kind {
        0 | 1 => choices.of(&KEY_TYPES),
        2..5 => choices.of(&VALUE_TYPES),
        _ => choices.of(&NESTED_TYPES),
    };
    let mut made = column(type_name, name, unique_id, choices);
    let parts = match type_name {
        "ARRAY" => 1,
        "MAP" => 2,
        "STRUCT" => 1 + choices.below(3),
        _ => 0,
    };
    for part in 0..parts {
        let name = format!("f{part}");
        let child = unique_id * 10 + 100 + part as i32;
        made.children.push(value_column(name, child, depth.saturating_sub(1), choices));
    }
    made
}

impl Table {
    pub fn choose(choices: &mut Choices<'_>) -> Self {
        let keys = choices.below(4);
        let keys_type = match choices.below(5) {
            0 if keys > 0 => KeysType::Aggregate,
            1 | 2 if keys > 0 => KeysType::Unique,
            _ => KeysType::Duplicate,
        };
        let merge_on_write = keys_type == KeysType::Unique && choices.one_in(2);
        let mut columns = Vec::new();
        for number in 0..keys {
            let mut key = column(choices.of(&KEY_TYPES), format!("k{number}"), number as i32, choices);
            key.is_key = true;
            columns.push(key);
        }
        let mut has_opaque_parts = false;
        for number in 0..1 + choices.below(4) {
            let id = (keys + number) as i32;
            let mut made = if choices.one_in(8) {
                column("VARIANT", format!("v{number}"), id, choices)
            } else {
                value_column(format!("v{number}"), id, 2, choices)
            };
            has_opaque_parts |= made.children.iter().any(is_opaque);
            if made.type_name == "VARIANT" {
                made.variant_max_subcolumns_count = choices.of(&[None, Some(0), Some(1), Some(3)]);
            }
            columns.push(made);
        }
        let mut next = columns.len() as i32;
        let mut hidden = |type_name: &str, name: &str, nullable: bool, choices: &mut Choices<'_>| {
            let mut made = column(type_name, name.to_string(), next, choices);
            made.is_nullable = nullable;
            made.visible = false;
            next += 1;
            columns.push(made);
        };
        if keys_type == KeysType::Unique {
            hidden("TINYINT", DELETE_SIGN_COLUMN, false, choices);
            if choices.one_in(3) {
                hidden("BIGINT", SEQUENCE_COLUMN, true, choices);
            }
        }
        // Doris has no bytes for opaque values inside others.
        if !has_opaque_parts && choices.one_in(4) {
            hidden("STRING", ROW_STORE_COLUMN, false, choices);
        }
        // A string can only be the last of the short key.
        let is_string = |column: &SchemaColumn| matches!(column.type_name.as_str(), "CHAR" | "VARCHAR");
        let mut schema = TabletSchema {
            keys_type,
            num_short_key_columns: 0,
            merge_on_write,
            columns,
            ..TabletSchema::default()
        };
        if merge_on_write && keys > 1 && choices.one_in(3) {
            schema.cluster_key_uids = (0..keys as i32).rev().collect();
        }
        let sort = schema.sort_columns();
        let shortest = sort.iter().position(|column| is_string(column)).map_or(sort.len(), |at| at + 1);
        schema.num_short_key_columns = choices.below(shortest + 1);
        let text = schema.columns.iter().find(|column| matches!(column.type_name.as_str(), "STRING"));
        if let Some(text) = text.filter(|column| column.visible && choices.one_in(3)) {
            let property = |name: &str, value: &str| (name.to_string(), value.to_string());
            schema.indexes.push(SchemaIndex {
                index_type: "NGRAM_BF".to_string(),
                column_unique_ids: vec![text.unique_id],
                properties: [property("gram_size", "3"), property("bf_size", "64")].into(),
                ..SchemaIndex::default()
            });
        }
        let rows = choices.of(&[1, 2, 19, 20, 60, 300, 1500]);
        // A row of nested columns has tens of cells; the seconds are for many tables.
        let is_nested = schema.columns.iter().any(|column| !column.children.is_empty());
        let rows = if is_nested { rows.min(300) } else { rows };
        let arrays: Vec<(Field, ArrayRef)> = schema
            .columns
            .iter()
            .filter(|column| column.name != ROW_STORE_COLUMN)
            .map(|column| {
                let array = array(column, rows, choices);
                (Field::new(&column.name, array.data_type().clone(), column.is_nullable), array)
            })
            .collect();
        let (fields, arrays): (Vec<_>, Vec<_>) = arrays.into_iter().unzip();
        let rows =
            RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns of one length");
        Self { rows: sorted(&schema, &rows), schema }
    }
}

/// The rows in the order of their keys, and where these must not repeat, without repeats.
fn sorted(schema: &TabletSchema, rows: &RecordBatch) -> RecordBatch {
    let keys = row_keys(schema, rows, false).expect("keys of the schema");
    let mut order: Vec<u32> = (0..rows.num_rows() as u32).collect();
    order.sort_by(|a, b| keys.key(*a as usize).cmp(keys.key(*b as usize)));
    if schema.keys_type == KeysType::Unique && schema.merge_on_write {
        // Whatever the rows are sorted by, the keys are what must not repeat.
        let keys = row_keys(schema, rows, true).expect("keys of the schema");
        let mut seen = std::collections::HashSet::new();
        order.retain(|row| seen.insert(keys.key(*row as usize).to_vec()));
    }
    take_record_batch(rows, &UInt32Array::from(order)).expect("rows that are there")
}

pub(super) fn options(schema: &TabletSchema, choices: &mut Choices<'_>) -> SegmentWriteOptions {
    let codecs = [
        Compression::None,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Lz4Frame,
        Compression::Zlib,
        Compression::Zstd,
        Compression::Lz4Hc,
    ];
    let mut options = SegmentWriteOptions::default()
        .with_format(choices.of(&[StorageFormat::V2, StorageFormat::V3]))
        .with_compression(choices.of(&codecs))
        .with_page_bytes(choices.of(&[64, 100, 1000, 65_536]))
        .with_dictionary_page_bytes(choices.of(&[64, 300, 5000, 262_144]))
        .with_row_store_page_bytes(choices.of(&[64, 16_384]))
        .with_rows_per_short_key(choices.of(&[1, 2, 7, 1024]))
        .with_bloom_rate(choices.of(&[0.5, 0.05, 0.001]))
        .with_segment_id(choices.below(3) as u32)
        .with_subcolumns_last(choices.one_in(2));
    if choices.one_in(3) {
        options = options.with_column_order(schema.columns.iter().rev().map(|c| c.unique_id).collect());
    }
    for column in &schema.columns {
        options = column_options(column, column.name.clone(), true, options, &codecs, choices);
    }
    options
}

fn column_options(
    column: &SchemaColumn,
    path: String,
    is_top: bool,
    mut options: SegmentWriteOptions,
    codecs: &[Compression],
    choices: &mut Choices<'_>,
) -> SegmentWriteOptions {
    let field_type = FieldType::from_name(&column.type_name).expect("a type of the list");
    let is_row_store = column.name == ROW_STORE_COLUMN;
    let encodings: Vec<Encoding> = [
        Encoding::Plain,
        Encoding::Prefix,
        Encoding::Rle,
        Encoding::Dict,
        Encoding::BitShuffle,
        Encoding::Frames,
        Encoding::PlainV2,
        Encoding::PlainV3,
    ]
    .into_iter()
    .filter(|encoding| crate::segment::write::is_readable(field_type, is_row_store, *encoding))
    .collect();
    let mut chosen = ColumnWriteOptions::default();
    if column.children.is_empty() && choices.one_in(2) {
        chosen = chosen.with_encoding(choices.of(&encodings));
    }
    if choices.one_in(4) {
        chosen = chosen.with_compression(choices.of(codecs));
    }
    if choices.one_in(4) {
        chosen = chosen.with_page_bytes(choices.of(&[64, 400]));
    }
    if is_top && crate::segment::write::filters_fit(field_type) && choices.one_in(2) {
        chosen = chosen.with_bloom_filter(true);
    }
    if is_top && choices.one_in(5) {
        chosen = chosen.with_zone_map(choices.one_in(2));
    }
    let names = match column.type_name.as_str() {
        "ARRAY" => vec!["item".to_string()],
        "MAP" => vec!["key".to_string(), "value".to_string()],
        _ => column.children.iter().map(|child| child.name.clone()).collect(),
    };
    options = options.with_column(&path, chosen);
    for (child, name) in column.children.iter().zip(names) {
        options = column_options(child, format!("{path}.{name}"), false, options, codecs, choices);
    }
    options
}

/// Rows of `batch` in a few batches.
fn pieces(batch: &RecordBatch, choices: &mut Choices<'_>) -> Vec<RecordBatch> {
    let size = choices.of(&[1, 7, 100, 5000]).max(batch.num_rows() / 50);
    (0..batch.num_rows())
        .step_by(size)
        .map(|start| batch.slice(start, size.min(batch.num_rows() - start)))
        .collect()
}

/// Writes a table as a segment, reads it back, looks for damage, and asks for rows by value.
pub fn segment_round_trip(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let table = Table::choose(&mut choices);
    let options = options(&table.schema, &mut choices);
    let mut writer = SegmentWriter::try_new(Vec::new(), &table.schema, &options)
        .unwrap_or_else(|error| panic!("{error}: {:?} {options:?}", table.schema));
    for piece in pieces(&table.rows, &mut choices) {
        writer.write(&piece).unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    }
    let (file, summary) = writer.finish().unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    assert_eq!(summary.rows, table.rows.num_rows() as u64);
    assert_eq!(summary.bytes, file.len() as u64);
    let reading =
        SegmentReaderOptions::default().with_schema(Some(Arc::new(table.schema.clone()))).with_hidden(true);
    let reader = SegmentReader::open_with_options(Arc::new(MemorySource::new("made", file)), &reading)
        .unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking does not fail");
    assert_eq!(report.findings, [], "{:?}", table.schema);
    let found = read(&reader, None);
    for column in &table.schema.columns {
        if let Some(expected) = table.rows.column_by_name(&column.name) {
            assert_same(
                column,
                found.column_by_name(&column.name).expect("a column of the schema"),
                expected,
            );
        }
    }
    for predicate in predicates(&found, &mut choices) {
        let selected = predicate.bind(&found.schema()).and_then(|bound| bound.evaluate(&found));
        let Ok(selected) = selected else { continue };
        let expected =
            arrow_select::filter::filter_record_batch(&found, &selected).expect("one flag per row");
        assert_eq!(read(&reader, Some(predicate.clone())), expected, "{predicate} on {:?}", table.schema);
    }
}

/// Writes a table as a tablet of one or more rowsets into `parent`, and compares what is read back with what the table's
/// model makes of its rows.
pub fn tablet_round_trip(bytes: &[u8], parent: &Path) {
    let mut choices = Choices::new(bytes);
    let table = Table::choose(&mut choices);
    // Rows come in any order.
    let mut order: Vec<u32> = (0..table.rows.num_rows() as u32).collect();
    order.sort_by_key(|row| u64::from(*row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let rows = take_record_batch(&table.rows, &UInt32Array::from(order)).expect("rows that are there");
    let options = TabletWriteOptions::default()
        .with_layout(choices.of(&[TabletLayout::Snapshot, TabletLayout::StorageRoot { shard: 7 }]))
        .with_rows_per_segment(choices.of(&[1, 13, 100, 100_000]).max(rows.num_rows() as u32 / 40))
        .with_segment_bytes(choices.of(&[2000, 1 << 20]))
        .with_sort_memory_bytes(choices.of(&[1, 3000, 1 << 20]))
        .with_sorted_rowsets(choices.below(2) == 0)
        .with_creation_time(1_700_000_000)
        .with_segment_options(options(&table.schema, &mut choices));
    let target = parent.join("tablet");
    let mut writer = TabletWriter::create(&target, &table.schema, &options)
        .unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    // The same rows again in later versions replace, or add to, those of the first.
    let loads = 1 + choices.below(3);
    for _ in 0..loads {
        for piece in pieces(&rows, &mut choices) {
            writer.write(&piece).unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
        }
        writer.finish_rowset().unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    }
    let summary = writer.finish().unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    assert_eq!(summary.version, 1 + loads as i64);
    let folders = find_tablets(&target, &Limits::default()).expect("a folder").tablets;
    assert_eq!(folders.len(), 1);
    assert_eq!(folders[0].location.path(), summary.folder.path());
    let reader = TabletReader::open(&folders[0], &TabletOptions::default().with_hidden(true))
        .unwrap_or_else(|error| panic!("{error}: {:?}", table.schema));
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking does not fail");
    assert_eq!(report.findings, [], "{:?}", table.schema);
    compare_rows(&table, &rows, loads, &read(&reader, None));
}

/// Rows as text, in any order.
fn lines(rows: &RecordBatch, columns: &[&SchemaColumn]) -> Vec<String> {
    let options = arrow_cast::display::FormatOptions::default().with_null("(null)");
    let texts: Vec<_> = columns
        .iter()
        .map(|column| {
            let array = rows.column_by_name(&column.name).expect("a column of the schema");
            arrow_cast::display::ArrayFormatter::try_new(array.as_ref(), &options)
                .expect("a type with a text")
        })
        .collect();
    let mut lines: Vec<String> = (0..rows.num_rows())
        .map(|row| texts.iter().map(|text| text.value(row).to_string()).collect::<Vec<_>>().join("|"))
        .collect();
    lines.sort();
    lines
}

fn compare_rows(table: &Table, rows: &RecordBatch, loads: usize, found: &RecordBatch) {
    // JSON comes back in another form, and rows are compared as text here; segments have compared it.
    let is_text = |column: &&SchemaColumn| {
        !matches!(column.type_name.as_str(), "JSONB" | "VARIANT") && column.name != ROW_STORE_COLUMN
    };
    if table.schema.keys_type == KeysType::Duplicate {
        let columns: Vec<&SchemaColumn> = table.schema.columns.iter().filter(is_text).collect();
        let once = lines(rows, &columns);
        let mut expected: Vec<String> = (0..loads).flat_map(|_| once.clone()).collect();
        expected.sort();
        assert_eq!(lines(found, &columns), expected, "{:?}", table.schema);
        return;
    }
    // One row for each key, unless it says that it is deleted.
    let keys: Vec<&SchemaColumn> = table.schema.columns.iter().filter(|column| column.is_key).collect();
    let mut expected = lines(rows, &keys);
    expected.dedup();
    let found_keys = lines(found, &keys);
    let mut unique = found_keys.clone();
    unique.dedup();
    assert_eq!(found_keys, unique, "{:?}", table.schema);
    let signs = table.schema.columns.iter().any(|column| column.name == DELETE_SIGN_COLUMN);
    if signs {
        assert!(found_keys.iter().all(|key| expected.contains(key)), "{:?}", table.schema);
    } else {
        assert_eq!(found_keys, expected, "{:?}", table.schema);
    }
}

fn read(dataset: &dyn Dataset, predicate: Option<Predicate>) -> RecordBatch {
    let mut scan = dataset.scan().batch_size(173);
    if let Some(predicate) = predicate {
        scan = scan.filter(predicate);
    }
    let batches: Vec<RecordBatch> =
        scan.read().expect("a scan").map(|batch| batch.unwrap_or_else(|error| panic!("{error}"))).collect();
    concat_batches(&dataset.schema(), &batches).expect("batches of one schema")
}

/// A LIKE with part of a text in it.
fn pattern(column: String, text: &str, choices: &mut Choices<'_>) -> Predicate {
    let part: String = text.chars().skip(choices.below(4)).take(1 + choices.below(8)).collect();
    let (before, after) = (choices.of(&["", "%", "_"]), choices.of(&["", "%", "_%"]));
    let like = col(column).like(lit(format!("{before}{part}{after}").as_str()));
    if choices.one_in(4) { Predicate::Not(Box::new(like)) } else { like }
}

/// Conditions around values that are there.
fn predicates(rows: &RecordBatch, choices: &mut Choices<'_>) -> Vec<Predicate> {
    let mut all = Vec::new();
    for _ in 0..6 {
        let number = choices.below(rows.num_columns());
        let (schema, array) = (rows.schema(), rows.column(number));
        let name = schema.field(number).name().clone();
        if array.data_type().is_nested() || choices.one_in(6) {
            all.push(if choices.one_in(2) { col(&name).is_null() } else { col(&name).is_not_null() });
            continue;
        }
        let row = (choices.random() % rows.num_rows() as u64) as usize;
        if let Some(texts) = array.as_string_view_opt().filter(|_| choices.one_in(3)) {
            all.push(pattern(name, texts.value(row), choices));
            continue;
        }
        let value = Literal::from_array(array, row);
        let op = choices.of(&[
            CompareOp::Eq,
            CompareOp::Eq,
            CompareOp::NotEq,
            CompareOp::Lt,
            CompareOp::LtEq,
            CompareOp::Gt,
            CompareOp::GtEq,
        ]);
        all.push(Predicate::Compare { column: name, op, value });
    }
    if let [a, b, ..] = all.as_slice() {
        all.push(Predicate::And(vec![a.clone(), b.clone()]));
    }
    all
}
