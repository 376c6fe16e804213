//! Segments written here: what is refused, what fills a column that a batch lacks, what the indexes save.
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

use arrow_array::builder::{Date32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int16Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray, TimestampNanosecondArray,
};
use arrow_schema::{Field, Fields};
use arrow_select::concat::concat_batches;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, Predicate, RowRanges, VerifyDepth, col, lit};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, FieldType, Release, SegmentReader, SegmentReaderOptions,
    SegmentWriteOptions, SegmentWriter, StorageFormat, VariantSubcolumn,
};
use support::{batches, memory};

fn schema(columns: &str) -> TabletSchema {
    TabletSchema::parse_json(format!(r#"{{"num_short_key_columns": 1, "columns": [{columns}]}}"#).as_bytes())
        .unwrap()
}

const KEY: &str = r#"{"unique_id": 0, "name": "k", "type": "INT", "is_key": true, "is_nullable": true}"#;

fn one(column: &str) -> TabletSchema {
    schema(&format!(r#"{KEY}, {{"unique_id": 1, "name": "v", {column}}}"#))
}

fn rows(keys: &[Option<i32>], values: ArrayRef) -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int32Array::from(keys.to_vec()));
    RecordBatch::try_from_iter_with_nullable([("k", keys, true), ("v", values, true)]).unwrap()
}

fn write_with(
    schema: &TabletSchema,
    options: &SegmentWriteOptions,
    batch: &RecordBatch,
) -> Result<Vec<u8>, String> {
    let mut writer =
        SegmentWriter::try_new(Vec::new(), schema, options).map_err(|error| error.to_string())?;
    let written = writer.write(batch);
    if let Err(error) = written {
        // What stopped half-way cannot become a file.
        assert!(writer.write(batch).is_err());
        assert!(writer.finish().is_err());
        return Err(error.to_string());
    }
    Ok(writer.finish().map_err(|error| error.to_string())?.0)
}

fn write(schema: &TabletSchema, batch: &RecordBatch) -> Result<Vec<u8>, String> {
    write_with(schema, &SegmentWriteOptions::default(), batch)
}

fn open(schema: &TabletSchema, file: Vec<u8>) -> SegmentReader {
    let options =
        SegmentReaderOptions::default().with_schema(Some(Arc::new(schema.clone()))).with_hidden(true);
    SegmentReader::open_with_options(memory("written", file), &options).unwrap()
}

fn read(reader: &SegmentReader) -> RecordBatch {
    concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap()
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn what_a_column_cannot_hold_is_refused() {
    let keys = [Some(1), Some(2)];
    let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
    let large: ArrayRef = Arc::new(Int64Array::from(vec![1 << 40, 1]));
    let nanos: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![1000, 1001]));
    let years: ArrayRef = Arc::new(Date32Array::from(vec![i32::MAX, 0]));
    for (column, values, expected) in [
        (r#""type": "BIGINT""#, numbers.clone(), "a null in a column that is not nullable"),
        (r#""type": "INT", "is_nullable": true"#, large, "value 1099511627776"),
        (
            r#""type": "VARCHAR", "length": 3"#,
            texts(&["abc", "abcd"]),
            "a string of 4 bytes in a column of at most 3",
        ),
        (r#""type": "CHAR", "length": 3"#, texts(&["abc", "a\0"]), "a CHAR that ends with a zero byte"),
        (r#""type": "IPV4""#, texts(&["1.2.3.4", "1.2.3"]), "\"1.2.3\" is no address"),
        (r#""type": "JSONB""#, texts(&["{}", "{"]), "row 1 of the batch"),
        (r#""type": "DATETIMEV2""#, nanos, "no whole"),
        (r#""type": "DATEV2""#, years, "has no place"),
        (
            r#""type": "STRUCT", "is_nullable": true, "children": [{"unique_id": 2, "name": "f", "type": "INT"}]"#,
            numbers,
            "expected a struct",
        ),
    ] {
        let error = write(&one(column), &rows(&keys, values)).unwrap_err();
        assert!(error.contains(expected), "{column}: {error}");
        assert!(error.contains("column \"v\""), "{error}");
    }
}

#[test]
fn rows_must_be_sorted() {
    let schema = one(r#""type": "STRING""#);
    let values = || texts(&["a", "b", "c"]);
    write(&schema, &rows(&[None, Some(-1), Some(-1)], values())).unwrap();
    for keys in [[Some(1), None, Some(2)], [Some(1), Some(3), Some(2)]] {
        let error = write(&schema, &rows(&keys, values())).unwrap_err();
        assert!(error.contains("rows must be sorted by key"), "{error}");
    }
    let mut unique = schema.clone();
    unique.keys_type = pilaster_doris::KeysType::Unique;
    unique.merge_on_write = true;
    let error = write(&unique, &rows(&[Some(1), Some(1), Some(2)], values())).unwrap_err();
    assert!(error.contains("repeats a key"), "{error}");
}

#[test]
fn options_must_fit_the_schema() {
    let schema = one(r#""type": "DOUBLE""#);
    let refused = |options: SegmentWriteOptions, expected: &str| {
        let error = SegmentWriter::try_new(Vec::new(), &schema, &options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let column = ColumnWriteOptions::default;
    let base = SegmentWriteOptions::default;
    refused(base().with_column("x", column()), "not there");
    refused(base().with_column("v", column().with_encoding(Encoding::Dict)), "DOUBLE has no encoding");
    refused(base().with_column("v", column().with_bloom_filter(true)), "DOUBLE has no bloom filters");
    refused(base().with_page_bytes(10), "a page size of 10 bytes");
    refused(base().with_bloom_rate(1.0), "between 0 and 1");
    refused(base().with_rows_per_short_key(0), "short keys");
    for length in [-1, 0, 1 << 30] {
        let char = one(&format!(r#""type": "CHAR", "length": {length}"#));
        assert!(SegmentWriter::try_new(Vec::new(), &char, &base()).is_err());
    }
    let mut other = schema.clone();
    other.num_short_key_columns = 2;
    assert!(SegmentWriter::try_new(Vec::new(), &other, &base()).is_err());
    other.columns.clear();
    assert!(SegmentWriter::try_new(Vec::new(), &other, &base()).is_err());
}

#[test]
fn an_old_release_gets_only_what_it_knows() {
    let old = SegmentWriteOptions::default().with_release(Release::V0_12);
    let refused = |schema: &TabletSchema, options: SegmentWriteOptions| {
        let written = SegmentWriter::try_new(Vec::new(), schema, &options);
        written.map(drop).map_err(|error| error.to_string()).unwrap_err()
    };
    let int = r#""type": "INT""#;
    let types = "BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, LARGEINT, FLOAT, DOUBLE, DECIMAL, CHAR, VARCHAR, DATE, DATETIME, HLL, BITMAP";
    for newer in ["STRING", "DATEV2", "DATETIMEV2", "DECIMAL64", "JSONB", "VARIANT", "IPV4", "QUANTILE_STATE"]
    {
        assert_eq!(
            refused(&one(&format!(r#""type": "{newer}", "precision": 9, "frac": 2"#)), old.clone()),
            format!("column \"v\": Doris 0.12 knows no {newer}, only {types}")
        );
    }
    let array = one(
        r#""type": "ARRAY", "children": [{"unique_id": 9, "name": "item", "type": "INT", "is_nullable": true}]"#,
    );
    assert!(
        refused(&array, old.clone()).starts_with("column \"v\": Doris 0.12 knows no ARRAY, only BOOLEAN")
    );
    for (options, message) in [
        (old.clone().with_format(StorageFormat::V3), "Doris 0.12 knows no storage format V3, only V2"),
        (
            old.clone().with_compression(Compression::Zstd),
            "column \"k\": Doris 0.12 knows no ZSTD, only NO_COMPRESSION, SNAPPY, LZ4, LZ4F, ZLIB",
        ),
        (
            old.clone().with_column("v", ColumnWriteOptions::default().with_compression(Compression::Lz4Hc)),
            "column \"v\": Doris 0.12 knows no LZ4HC, only NO_COMPRESSION, SNAPPY, LZ4, LZ4F, ZLIB",
        ),
    ] {
        assert_eq!(refused(&one(int), options), message);
    }
    let text = one(r#""type": "VARCHAR", "length": 20"#);
    for (encoding, message) in [
        (
            Encoding::PlainV2,
            "column \"v\": Doris 0.12 knows no PLAIN_ENCODING_V2, only PLAIN_ENCODING, PREFIX_ENCODING, RLE, DICT_ENCODING, BIT_SHUFFLE, FOR_ENCODING",
        ),
        (Encoding::Prefix, "column \"v\": Doris 0.12 misreads PREFIX_ENCODING in columns of values"),
    ] {
        let column = ColumnWriteOptions::default().with_encoding(encoding);
        assert_eq!(refused(&text, old.clone().with_column("v", column)), message);
    }
    let merging = r#"{"keys_type": "UNIQUE_KEYS", "merge_on_write": true, "num_short_key_columns": 1, "columns": [FIRST]}"#;
    let merging = TabletSchema::parse_json(merging.replace("FIRST", KEY).as_bytes()).unwrap();
    assert_eq!(
        refused(&merging, old.clone()),
        "Doris 0.12 knows no unique table that is merged when it is written, only merge on read"
    );
    let batch = rows(&[Some(1), Some(2)], texts(&["a", "b"]));
    let file = write_with(&text, &old, &batch).unwrap();
    assert_eq!(read(&open(&text, file)).num_rows(), 2);
}

#[test]
fn limits_of_a_segment() {
    let schema = one(r#""type": "DOUBLE""#);
    let batch = rows(&[Some(1), Some(2)], Arc::new(Float64Array::from(vec![0.5, 1.5])));
    let options = SegmentWriteOptions::default().with_max_rows(1);
    assert!(write_with(&schema, &options, &batch).unwrap_err().contains("more than 1 rows"));
    let writer = SegmentWriter::try_new(Vec::new(), &schema, &SegmentWriteOptions::default()).unwrap();
    assert!(writer.finish().unwrap_err().to_string().contains("without rows"));
    let mut unknown = batch.clone();
    unknown =
        RecordBatch::try_from_iter([("k", unknown.column(0).clone()), ("w", unknown.column(1).clone())])
            .unwrap();
    assert!(write(&schema, &unknown).unwrap_err().contains("no column \"w\""));
}

#[test]
fn columns_that_a_batch_lacks_have_their_default() {
    let schema = schema(&format!(
        r#"{KEY},
        {{"unique_id": 1, "name": "seven", "type": "BIGINT", "default_value": "7"}},
        {{"unique_id": 2, "name": "nothing", "type": "STRING", "is_nullable": true}},
        {{"unique_id": 3, "name": "__DORIS_DELETE_SIGN__", "type": "TINYINT", "visible": false}},
        {{"unique_id": 4, "name": "__DORIS_VERSION_COL__", "type": "BIGINT", "visible": false}},
        {{"unique_id": 5, "name": "__DORIS_ROW_STORE_COL__", "type": "STRING", "visible": false}}"#
    ));
    let batch =
        RecordBatch::try_from_iter([("k", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef)]).unwrap();
    let read = read(&open(&schema, write(&schema, &batch).unwrap()));
    assert_eq!(read.column(1).as_primitive::<Int64Type>().values(), &[7, 7]);
    assert_eq!(read.column(2).null_count(), 2);
    let cell = read.column(5).as_binary_view().value(1);
    let text = pilaster_doris::jsonb::to_text(cell, 8).unwrap();
    assert_eq!(text, r#"{"0":2,"1":7,"2":null,"3":0,"4":0}"#);
    let required = one(r#""type": "BIGINT""#);
    assert!(
        write(&required, &batch)
            .unwrap_err()
            .contains("is missing, may not be null and has no default value")
    );
}

#[test]
fn indexes_of_written_files_save_pages() {
    let schema = one(r#""type": "STRING", "is_bf_column": true"#);
    let count = 40_000;
    let keys: Vec<_> = (0..count).map(|key| Some(key * 2)).collect();
    let values: StringArray = (0..count).map(|row| Some(format!("value {}", row * 7919 % 40_009))).collect();
    let batch = rows(&keys, Arc::new(values));
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let options = SegmentWriteOptions::default()
            .with_format(format)
            .with_rows_per_short_key(100)
            .with_page_bytes(4096);
        let reader = open(&schema, write_with(&schema, &options, &batch).unwrap());
        let left = |predicate: Predicate| reader.prune(&predicate).unwrap().count();
        assert!(left(col("k").eq(lit(30_000))) <= 200);
        assert_eq!(reader.prune(&col("k").gt(lit(1_000_000))).unwrap(), RowRanges::none());
        assert_eq!(left(col("v").eq(lit("no such value"))), 0);
        let found = batches(reader.scan().filter(col("v").eq(lit("value 7919")))).unwrap();
        assert_eq!(found.iter().map(RecordBatch::num_rows).sum::<usize>(), 1);
        assert!(left(col("v").eq(lit("value 7919"))) < count as u64 / 2);
    }
}

#[test]
fn variants_are_read_back_whatever_their_paths() {
    let schema = one(r#""type": "VARIANT", "is_nullable": true, "variant_max_subcolumns_count": 2"#);
    let documents = [
        r#"{"a":1,"b":{"c":[1,2,null]},"rare":"x"}"#,
        r#"{"a":18446744073709551615,"b":{"c":[]},"d":{}}"#,
        r#"{"a":2.5,"b":{"e":null}}"#,
        "[1,2]",
        "null",
        r#""text""#,
        "{}",
        r#"{"a.b":{"c":1},"b":{"c":[3]}}"#,
    ];
    let keys: Vec<_> = (0..documents.len() as i32).map(Some).collect();
    let batch = rows(&keys, texts(&documents));
    for format in [StorageFormat::V2, StorageFormat::V3] {
        let options = SegmentWriteOptions::default().with_format(format);
        let reader = open(&schema, write_with(&schema, &options, &batch).unwrap());
        let found = read(&reader);
        let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        for (row, expected) in documents.iter().enumerate() {
            assert_eq!(json(found.column(1).as_string_view().value(row)), json(expected), "{format:?}");
        }
        let paths = reader.metadata().columns.iter().filter(|column| column.unique_id < 0);
        let names: Vec<_> = paths.map(|column| column.path.as_ref().unwrap().keys.join(".")).collect();
        assert!(names.contains(&"a".to_string()) && names.contains(&"b.c".to_string()), "{names:?}");
        assert!(!names.contains(&"rare".to_string()), "{names:?}");
    }
    // Paths can be chosen; what does not fit the type that was chosen is refused.
    let chosen = |field_type: FieldType| {
        let path = VariantSubcolumn { keys: vec!["rare".to_string()], field_type, item: None };
        SegmentWriteOptions::default()
            .with_column("v", ColumnWriteOptions::default().with_variant_subcolumns(vec![path]))
    };
    let file = write_with(&schema, &chosen(FieldType::String), &batch).unwrap();
    let typed = SegmentReaderOptions::default()
        .with_schema(Some(Arc::new(schema.clone())))
        .with_variant_path("v", "rare");
    let reader = SegmentReader::open_with_options(memory("v", file), &typed).unwrap();
    assert_eq!(read(&reader).column_by_name("v['rare']").unwrap().as_string_view().value(0), "x");
    assert!(write_with(&schema, &chosen(FieldType::BigInt), &batch).unwrap_err().contains("does not fit"));
}

#[test]
fn the_row_store_holds_nested_values_as_doris_has_them_in_memory() {
    let item = |kind: &str, more: &str| format!(r#"{{"unique_id": 9, "name": "f", "type": "{kind}"{more}}}"#);
    let schema = schema(&format!(
        r#"{KEY}, {{"unique_id": 1, "name": "list", "type": "ARRAY", "is_nullable": true, "children": [{}]}},
            {{"unique_id": 2, "name": "map", "type": "MAP", "children": [{}, {}]}},
            {{"unique_id": 3, "name": "group", "type": "STRUCT", "children": [
                {{"unique_id": 10, "name": "date", "type": "DATE"}},
                {{"unique_id": 11, "name": "texts", "type": "ARRAY", "is_nullable": true, "children": [
                    {{"unique_id": 12, "name": "f", "type": "CHAR", "length": 4, "is_nullable": true}}]}},
                {{"unique_id": 13, "name": "old", "type": "DECIMAL", "precision": 27, "frac": 9}}]}},
            {{"unique_id": 4, "name": "__DORIS_ROW_STORE_COL__", "type": "STRING", "visible": false}}"#,
        item("SMALLINT", r#", "is_nullable": true"#),
        item("VARCHAR", r#", "length": 10"#),
        item("DATEV2", r#", "is_nullable": true"#),
    ));
    let list = ListArray::from_iter_primitive::<Int16Type, _, _>([Some(vec![Some(7), None, Some(-1)]), None]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Date32Builder::new());
    map.keys().append_value("ab");
    // Days since 1970.
    map.values().append_value(19_756);
    map.keys().append_value("c");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(true).unwrap();
    let mut texts = ListBuilder::new(StringBuilder::new());
    texts.append_value([Some("x"), None]);
    texts.append_null();
    let old = Decimal128Array::from(vec![1_500_000_000, -500_000_000]).with_precision_and_scale(27, 9);
    let field = |name: &str, array: &dyn Array| Field::new(name, array.data_type().clone(), true);
    let parts: Vec<ArrayRef> = vec![
        Arc::new(Date32Array::from(vec![10_956, 10_957])),
        Arc::new(texts.finish()),
        Arc::new(old.unwrap()),
    ];
    let names = ["date", "texts", "old"];
    let fields: Fields = names.iter().zip(&parts).map(|(name, part)| field(name, part)).collect();
    let batch = RecordBatch::try_from_iter([
        ("k", Arc::new(Int32Array::from(vec![1, 2])) as ArrayRef),
        ("list", Arc::new(list)),
        ("map", Arc::new(map.finish())),
        ("group", Arc::new(StructArray::new(fields, parts, None))),
    ])
    .unwrap();
    let found = read(&open(&schema, write(&schema, &batch).unwrap()));
    let cells = found.column_by_name("__DORIS_ROW_STORE_COL__").unwrap().as_binary_view();
    let binary = |bytes: &[u8]| [&[9], &(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    let key = |id: u8| vec![0, id, 0];
    let document = |members: Vec<Vec<u8>>| {
        let members = members.concat();
        [&[1, 10], &(members.len() as u32).to_le_bytes()[..], &members].concat()
    };
    let count = |count: u64| count.to_le_bytes().to_vec();
    let day = |year: u32, month: u32, day: u32| (year << 9 | month << 5 | day).to_le_bytes().to_vec();
    let first = document(vec![
        key(0),
        vec![5, 1, 0, 0, 0],
        key(1),
        binary(&[count(3), vec![0, 7, 0], vec![1], vec![0, 0xff, 0xff]].concat()),
        key(2),
        // All keys, without a byte for nulls, and then all values.
        binary(&[count(2), b"\x02\0\0\0ab\x01\0\0\0c".to_vec(), vec![0], day(2024, 2, 3), vec![1]].concat()),
        key(3),
        binary(
            &[
                // Second, minute, hour, day, month, year of the first kind of dates.
                vec![4, 0, 0, 0, 31, 12, 0xcf, 7],
                vec![0],
                count(2),
                b"\0\x01\0\0\0x\x01".to_vec(),
                1_500_000_000i128.to_le_bytes().to_vec(),
            ]
            .concat(),
        ),
    ]);
    assert_eq!(cells.value(0), first);
    let second = document(vec![
        key(0),
        vec![5, 2, 0, 0, 0],
        key(1),
        vec![0],
        key(2),
        binary(&count(0)),
        key(3),
        binary(&[vec![4, 0, 0, 0, 1, 1, 0xd0, 7, 1], (-500_000_000i128).to_le_bytes().to_vec()].concat()),
    ]);
    assert_eq!(cells.value(1), second);
}

#[test]
fn every_codec_and_page_size_reads_back() {
    let schema = one(r#""type": "STRING""#);
    let keys: Vec<_> = (0..3000).map(Some).collect();
    let values: StringArray = (0..3000).map(|row| Some(format!("some text {}", row % 700))).collect();
    let batch = rows(&keys, Arc::new(values));
    let mut sizes = Vec::new();
    for codec in [
        Compression::None,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Lz4Frame,
        Compression::Zlib,
        Compression::Zstd,
        Compression::Lz4Hc,
    ] {
        for bytes in [64, 1000, 1 << 20] {
            let options = SegmentWriteOptions::default().with_compression(codec).with_page_bytes(bytes);
            let file = write_with(&schema, &options, &batch).unwrap();
            if bytes == 1 << 20 {
                sizes.push((codec, file.len()));
            }
            let found = read(&open(&schema, file));
            assert_eq!(found.num_rows(), 3000);
            assert_eq!(found.column(1).as_string_view().value(2999), "some text 199", "{codec} {bytes}");
        }
    }
    assert!(sizes.iter().skip(1).all(|(_, size)| size < &sizes[0].1), "{sizes:?}");
}

#[test]
fn a_description_counts_pages_by_what_they_are() {
    let schema = schema(&format!(
        r#"{KEY}, {{"unique_id": 1, "name": "v", "type": "DECIMAL64", "precision": 12, "frac": 3, "is_nullable": true, "is_bf_column": true}},
           {{"unique_id": 2, "name": "m", "type": "MAP", "is_nullable": true, "children": [
               {{"unique_id": 3, "name": "key", "type": "VARCHAR", "length": 9, "is_nullable": true}},
               {{"unique_id": 4, "name": "value", "type": "INT", "is_nullable": true}}]}}"#
    ));
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..3000));
    let values = Decimal128Array::from_iter_values(0..3000).with_precision_and_scale(12, 3).unwrap();
    let batch = RecordBatch::try_from_iter([("k", keys), ("v", Arc::new(values))]).unwrap();
    let options = SegmentWriteOptions::default()
        .with_page_bytes(4000)
        .with_compression(Compression::Zstd)
        .with_column("v", ColumnWriteOptions::default().with_encoding(Encoding::Plain));
    let reader = open(&schema, write_with(&schema, &options, &batch).unwrap());
    let (node, pages) = (reader.describe().unwrap(), reader.pages().unwrap());
    let column =
        |name: &str| node.children.iter().find(|node| node.name == format!("column {name}")).unwrap();
    let fact = |name: &str, fact: &str| {
        let facts = &column(name).facts;
        facts.iter().find(|(known, _)| known == fact).map(|(_, value)| value.clone()).unwrap()
    };
    assert_eq!(fact("v", "type"), "DECIMAL64(12, 3)");
    assert_eq!(fact("m", "type"), "MAP<VARCHAR(9), INT>");
    for (kind, children) in [
        ("data page", "data pages"),
        ("zone map page", "zone map pages"),
        ("bloom filter page", "bloom filter pages"),
    ] {
        let expected: Vec<_> = pages.iter().filter(|page| page.column == "v" && page.kind == kind).collect();
        let found = column("v").children.iter().find(|node| node.name == children).unwrap();
        assert!(!expected.is_empty());
        assert_eq!(found.facts, [("pages".to_string(), expected.len().to_string())]);
        assert_eq!(found.bytes, expected.iter().map(|page| page.bytes).sum::<u64>());
    }
    let bytes = |name: &str| fact("v", name).parse::<u64>().unwrap();
    assert_eq!(bytes("data_bytes") + bytes("index_bytes"), column("v").bytes);
    let statistics = reader.column_statistics().unwrap();
    assert_eq!(statistics[1].min.as_ref().unwrap().as_primitive::<Decimal128Type>().value(0), 0);
    assert_eq!((statistics[1].nulls, statistics[1].bytes), (Some(0), column("v").bytes));
    assert_eq!(
        statistics[1].uncompressed_bytes,
        Some(bytes("uncompressed_data_bytes") + bytes("index_bytes"))
    );
    assert!(statistics[1].uncompressed_bytes > Some(statistics[1].bytes));
}

#[test]
fn batches_of_long_arrays_and_documents_are_cut() {
    let columns = format!(
        r#"{KEY}, {{"unique_id": 1, "name": "list", "type": "ARRAY", "is_nullable": true, "children": [
            {{"unique_id": 2, "name": "item", "type": "BIGINT", "is_nullable": true}}]}},
           {{"unique_id": 3, "name": "doc", "type": "VARIANT", "is_nullable": true}}"#
    );
    let schema = schema(&columns);
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..500i64).map(|row| Some((0..100).map(move |item| Some(row * item)))),
    );
    let docs: StringArray = (0..500).map(|row| Some(format!(r#"{{"a": "{row:0100}"}}"#))).collect();
    let keys: ArrayRef = Arc::new(Int32Array::from_iter_values(0..500));
    let batch = RecordBatch::try_from_iter([
        ("k", keys),
        ("list", Arc::new(list) as ArrayRef),
        ("doc", Arc::new(docs)),
    ])
    .unwrap();
    let file = write(&schema, &batch).unwrap();
    let expected = read(&open(&schema, file.clone()));
    let limits = Limits { batch_bytes: 4000, ..Limits::default() };
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema))).with_limits(limits);
    let reader = SegmentReader::open_with_options(memory("written", file), &options).unwrap();
    let found = batches(reader.scan()).unwrap();
    assert!(found.len() > 50, "{} batches", found.len());
    assert_eq!(concat_batches(&reader.schema(), &found).unwrap(), expected);
    assert_eq!(reader.verify(VerifyDepth::Values, &Silent).unwrap().findings, []);
    let log = Arc::new(LossLog::new());
    let rows: usize =
        batches(reader.scan().skip_damage(Arc::clone(&log))).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!((rows, log.losses().len()), (500, 0));
}
