//! How text comes out: every line is JSON that reads back to the values, and CSV reads back to the same texts.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::types::{Int16Type, Int32Type, IntervalDayTime, IntervalMonthDayNano};
use arrow_array::*;
use arrow_buffer::{OffsetBuffer, ScalarBuffer, i256};
use arrow_schema::{DataType, Field, Schema};
use pilaster::OutputFormat;
use pilaster::output::{WriteOptions, writer};
use pilaster::text::append_json_lines;
use proptest::prelude::*;
use serde_json::{Value, json};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

fn lines(array: impl Array + 'static) -> Vec<String> {
    let mut out = Vec::new();
    append_json_lines(&batch(vec![("c", Arc::new(array))]), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines()
        .map(|line| line.strip_prefix("{\"c\":").unwrap().strip_suffix('}').unwrap().to_string())
        .collect()
}

#[test]
fn every_type_has_its_text() {
    assert_eq!(lines(NullArray::new(1)), ["null"]);
    assert_eq!(lines(BooleanArray::from(vec![Some(true), None, Some(false)])), ["true", "null", "false"]);
    assert_eq!(lines(Int8Array::from(vec![-128, 127])), ["-128", "127"]);
    assert_eq!(lines(UInt64Array::from(vec![u64::MAX])), ["18446744073709551615"]);
    assert_eq!(lines(Int64Array::from(vec![i64::MIN])), ["-9223372036854775808"]);
    let floats = vec![0.1, -0.0, 1.0, 1e300, 5e-324, f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    assert_eq!(
        lines(Float64Array::from(floats)),
        ["0.1", "-0.0", "1.0", "1e+300", "5e-324", "\"NaN\"", "\"Infinity\"", "\"-Infinity\""]
    );
    assert_eq!(lines(Float32Array::from(vec![0.1f32, 16_777_216.0])), ["0.1", "16777216.0"]);
    let decimal =
        |scale| Decimal128Array::from(vec![150, -5, 0]).with_precision_and_scale(10, scale).unwrap();
    assert_eq!(lines(decimal(2)), ["\"1.50\"", "\"-0.05\"", "\"0.00\""]);
    assert_eq!(lines(decimal(0)), ["\"150\"", "\"-5\"", "\"0\""]);
    assert_eq!(lines(decimal(-2)), ["\"15000\"", "\"-500\"", "\"000\""]);
    let wide = Decimal256Array::from(vec![i256::MIN]).with_precision_and_scale(76, 1).unwrap();
    assert_eq!(lines(wide)[0].len(), 81);
    assert_eq!(lines(BinaryArray::from(vec![&b"\0\x1f\xff"[..], b""])), ["\"001fff\"", "\"\""]);
    assert_eq!(lines(BinaryViewArray::from(vec![&b"\xab"[..]])), ["\"ab\""]);
    assert_eq!(lines(Date32Array::from(vec![0, -1])), ["\"1970-01-01\"", "\"1969-12-31\""]);
    assert_eq!(lines(Date64Array::from(vec![86_400_000, -1])), ["\"1970-01-02\"", "\"1969-12-31\""]);
    let stamps = TimestampMicrosecondArray::from(vec![1_500_000]);
    assert_eq!(lines(stamps.clone()), ["\"1970-01-01T00:00:01.500000\""]);
    assert_eq!(lines(stamps.with_timezone("+02:00")), ["\"1970-01-01T00:00:01.500000Z\""]);
    assert_eq!(lines(TimestampNanosecondArray::from(vec![7])), ["\"1970-01-01T00:00:00.000000007\""]);
    assert_eq!(lines(Time32SecondArray::from(vec![3661])), ["\"01:01:01.000000\""]);
    assert_eq!(lines(Time64NanosecondArray::from(vec![1])), ["\"00:00:00.000000001\""]);
    assert_eq!(lines(DurationMillisecondArray::from(vec![-1500])), ["\"-PT1.500000S\""]);
    assert_eq!(lines(IntervalYearMonthArray::from(vec![14])), ["\"P14M\""]);
    assert_eq!(lines(IntervalDayTimeArray::from(vec![IntervalDayTime::new(2, 5)])), ["\"P2DT0.005000S\""]);
    let interval =
        IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, -2, 3), Default::default()]);
    assert_eq!(lines(interval), ["\"P1M-2DT0.000000003S\"", "\"PT0.000000000S\""]);
}

#[test]
fn strings_are_escaped_only_where_json_asks() {
    let text = "a\"b\\c\n\r\t\u{1}\u{7f}/é😀";
    assert_eq!(lines(StringArray::from(vec![text])), ["\"a\\\"b\\\\c\\n\\r\\t\\u0001\u{7f}/é😀\""]);
    assert_eq!(lines(StringViewArray::from(vec![text])), lines(LargeStringArray::from(vec![text])));
    let words: DictionaryArray<Int16Type> = vec![Some("x"), None, Some("x")].into_iter().collect();
    assert_eq!(lines(words), ["\"x\"", "null", "\"x\""]);
    let runs: RunArray<Int32Type> = vec![Some("x"), Some("x"), None, Some("y")].into_iter().collect();
    assert_eq!(lines(runs.slice(1, 3)), ["\"x\"", "null", "\"y\""]);
}

#[test]
fn nested_values_are_json_inside_json() {
    let list = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
        Some(vec![Some(1), None]),
        None,
        Some(vec![]),
        Some(vec![Some(2)]),
    ]);
    assert_eq!(lines(list.clone()), ["[1,null]", "null", "[]", "[2]"]);
    assert_eq!(lines(list.slice(2, 2)), ["[]", "[2]"]);
    let fixed = FixedSizeListArray::from_iter_primitive::<Int32Type, _, _>(
        vec![Some(vec![Some(1), Some(2)]), None, Some(vec![Some(5), Some(6)])],
        2,
    );
    assert_eq!(lines(fixed.slice(1, 2)), ["null", "[5,6]"]);
    let views = ListViewArray::new(
        Arc::new(Field::new("item", DataType::Int32, true)),
        ScalarBuffer::from(vec![1, 0]),
        ScalarBuffer::from(vec![2, 1]),
        Arc::new(Int32Array::from(vec![1, 2, 3])),
        None,
    );
    assert_eq!(lines(views), ["[2,3]", "[1]"]);
    let inside = StructArray::from(vec![
        (
            Arc::new(Field::new("x", DataType::Int32, true)),
            Arc::new(Int32Array::from(vec![Some(1), None])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("y \"z\"", DataType::Utf8, true)),
            Arc::new(StringArray::from(vec!["a", "b"])) as ArrayRef,
        ),
    ]);
    assert_eq!(lines(inside), ["{\"x\":1,\"y \\\"z\\\"\":\"a\"}", "{\"x\":null,\"y \\\"z\\\"\":\"b\"}"]);
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    map.keys().append_value("k");
    map.values().append_value(1);
    map.keys().append_value("l");
    map.values().append_null();
    map.append(true).unwrap();
    map.append(false).unwrap();
    map.append(true).unwrap();
    let map = map.finish();
    let expected = ["[{\"key\":\"k\",\"value\":1},{\"key\":\"l\",\"value\":null}]", "null", "[]"];
    assert_eq!(lines(map), expected);
    let empty = StructArray::new_empty_fields(1, None);
    assert_eq!(lines(empty), ["{}"]);
    let deep = ListArray::new(
        Arc::new(Field::new("item", list.data_type().clone(), true)),
        OffsetBuffer::from_lengths([2, 2]),
        Arc::new(list),
        None,
    );
    assert_eq!(lines(deep), ["[[1,null],null]", "[[],[2]]"]);
}

/// A sink that can be looked at afterwards.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn written(format: OutputFormat, batches: &[RecordBatch], schema: Arc<Schema>) -> String {
    let sink = Shared::default();
    let mut writer = writer(format, Box::new(sink.clone()), schema, &WriteOptions::default()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.finish().unwrap();
    String::from_utf8(sink.0.lock().unwrap().clone()).unwrap()
}

fn small() -> RecordBatch {
    batch(vec![
        ("id", Arc::new(Int32Array::from(vec![1, 22])) as ArrayRef),
        ("name, full", Arc::new(StringArray::from(vec![Some("a \"b\",\nc"), Some("")])) as ArrayRef),
        ("at", Arc::new(TimestampMillisecondArray::from(vec![Some(1), None])) as ArrayRef),
        ("nan", Arc::new(Float64Array::from(vec![f64::NAN, 2.5])) as ArrayRef),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(vec![
                Some(vec![Some(1), Some(2)]),
                None,
            ])),
        ),
    ])
}

#[test]
fn csv_quotes_what_needs_it_and_tells_empty_from_null() {
    let small = small();
    assert_eq!(
        written(OutputFormat::Csv, std::slice::from_ref(&small), small.schema()),
        "id,\"name, full\",at,nan,list\n\
         1,\"a \"\"b\"\",\nc\",1970-01-01T00:00:00.001000,NaN,\"[1,2]\"\n\
         22,\"\",,2.5,\n"
    );
    assert_eq!(written(OutputFormat::Csv, &[], small.schema()), "id,\"name, full\",at,nan,list\n");
    let one = batch(vec![("a", Arc::new(Int32Array::from(vec![None, Some(1)])) as ArrayRef)]);
    assert_eq!(
        written(OutputFormat::Tsv, &[one.clone(), one.clone()], one.schema()),
        "a\n\"\"\n1\n\"\"\n1\n"
    );
}

#[test]
fn json_is_one_array_and_a_table_lines_up() {
    let small = small();
    let text = written(OutputFormat::Json, &[small.slice(0, 1), small.slice(1, 1)], small.schema());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value[1], json!({"id": 22, "name, full": "", "at": null, "nan": 2.5, "list": null}));
    assert_eq!(written(OutputFormat::Json, &[], small.schema()), "[]\n");
    let columns = small.project(&[0, 3]).unwrap();
    let table = written(OutputFormat::Table, std::slice::from_ref(&columns), columns.schema());
    let widths: Vec<_> = table.lines().map(|line| line.chars().count()).collect();
    assert!(widths.iter().all(|width| *width <= widths[0]) && table.contains("22"), "{table}");
}

proptest! {
    #[test]
    fn json_lines_read_back_to_the_same_values(
        ints in prop::collection::vec(prop::option::of(any::<i64>()), 1..20),
        floats in prop::collection::vec(any::<f64>(), 20),
        singles in prop::collection::vec(any::<f32>(), 20),
        texts in prop::collection::vec(prop::option::of(any::<String>()), 20),
        bytes in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..9), 20),
        stamps in prop::collection::vec(-60_000_000_000_000_000i64..200_000_000_000_000_000, 20),
        days in prop::collection::vec(-700_000i32..2_900_000, 20),
        decimals in prop::collection::vec(-10i128.pow(30)..10i128.pow(30), 20),
    ) {
        let rows = ints.len();
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("i", Arc::new(Int64Array::from(ints))),
            ("f", Arc::new(Float64Array::from(floats[..rows].to_vec()))),
            ("s", Arc::new(Float32Array::from(singles[..rows].to_vec()))),
            ("t", Arc::new(StringArray::from(texts[..rows].to_vec()))),
            ("b", Arc::new(BinaryArray::from_iter_values(&bytes[..rows]))),
            ("w", Arc::new(TimestampMicrosecondArray::from(stamps[..rows].to_vec()))),
            ("z", Arc::new(TimestampMicrosecondArray::from(stamps[..rows].to_vec()).with_timezone("UTC"))),
            ("d", Arc::new(Date32Array::from(days[..rows].to_vec()))),
            ("n", Arc::new(Decimal128Array::from(decimals[..rows].to_vec()).with_precision_and_scale(38, 5).unwrap())),
        ];
        let batch = batch(columns);
        let mut out = Vec::new();
        append_json_lines(&batch, &mut out).unwrap();
        let mut reader = arrow_json::ReaderBuilder::new(batch.schema()).build(out.as_slice()).unwrap();
        let back = reader.next().unwrap().unwrap();
        for (index, field) in batch.schema().fields().iter().enumerate() {
            // NaN equals nothing, but its text does.
            match field.name().as_str() {
                "f" | "s" => {
                    let text = |batch: &RecordBatch| {
                        let mut out = Vec::new();
                        append_json_lines(&batch.project(&[index]).unwrap(), &mut out).unwrap();
                        out
                    };
                    prop_assert_eq!(text(&back), text(&batch));
                }
                _ => prop_assert_eq!(back.column(index), batch.column(index), "{}", field.name()),
            }
        }
        let f = batch.column(1).as_any().downcast_ref::<Float64Array>().unwrap();
        for (row, line) in out.split(|b| *b == b'\n').take(rows).enumerate() {
            let line = std::str::from_utf8(line).unwrap();
            serde_json::from_str::<Value>(line).unwrap();
            if f.value(row).is_finite() {
                let text = line.split_once("\"f\":").unwrap().1.split_once(",\"s\":").unwrap().0;
                prop_assert_eq!(text.parse::<f64>().unwrap().to_bits(), f.value(row).to_bits());
            }
        }
    }
}

#[test]
fn a_type_without_text_is_refused() {
    let union = UnionArray::try_new(
        [(0, Arc::new(Field::new("a", DataType::Int32, false)))].into_iter().collect(),
        ScalarBuffer::from(vec![0i8]),
        None,
        vec![Arc::new(Int32Array::from(vec![1]))],
    )
    .unwrap();
    let error = append_json_lines(&batch(vec![("c", Arc::new(union))]), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read this: text of type Union"), "{error}");
}
