//! Files of a few KiB that unpack to many times what a scan may hold: all rows come, within the budget.
#![cfg(target_os = "linux")]
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

use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, ListArray, RecordBatch, StringArray};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, LossLog, VerifyDepth, col, lit};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, SegmentReader, SegmentReaderOptions, SegmentWriteOptions,
    SegmentWriter,
};
use support::memory;

const ROWS: i64 = 16_000;
const NUMBERS: usize = 8;
const TEXTS: usize = 20;
const LISTS: usize = 4;
const BUDGET: u64 = 4 << 20;
/// Over what was in use before: the budget, a page that is being unpacked and decoded, and what the allocator and the
/// buffers that are kept for later blocks take.
const MOST: u64 = 24 << 20;
/// Where the child of this test finds the file and its schema.
const FILE: &str = "PILASTER_TEST_BOMB";

fn columns() -> Vec<(String, &'static str)> {
    let numbers = (0..NUMBERS).map(|n| (format!("n{n}"), r#""type": "BIGINT""#));
    let texts = (0..TEXTS).map(|n| (format!("t{n}"), r#""type": "VARCHAR", "length": 200"#));
    let lists = (0..LISTS).map(|n| {
        let list = r#""type": "ARRAY", "children": [{"unique_id": 900, "name": "item", "type": "BIGINT", "is_nullable": true}]"#;
        (format!("l{n}"), list)
    });
    numbers.chain(texts).chain(lists).collect()
}

/// Runs of one value in each column, in pages that hold all rows.
fn bomb() -> (TabletSchema, Vec<u8>) {
    let text: ArrayRef = Arc::new(StringArray::from_iter_values((0..ROWS).map(|_| "a".repeat(150))));
    let number: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| row / 1000)));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
        (0..ROWS).map(|row| Some([Some(row / 1000), None, Some(7), Some(7)])),
    ));
    let (mut declared, mut arrays) = (Vec::new(), Vec::new());
    let mut options = SegmentWriteOptions::default()
        .with_compression(Compression::Zstd)
        .with_page_bytes(10 << 20)
        .with_dictionary_page_bytes(10 << 20);
    for (id, (name, kind)) in columns().into_iter().enumerate() {
        let is_key = id == 0;
        declared.push(format!(
            r#"{{"unique_id": {id}, "name": "{name}", {kind}, "is_key": {is_key}, "is_nullable": false}}"#
        ));
        let array = match name.as_bytes()[0] {
            b'n' => &number,
            b't' => &text,
            _ => &lists,
        };
        if name.starts_with('n') {
            options =
                options.with_column(&name, ColumnWriteOptions::default().with_encoding(Encoding::Plain));
        }
        if name.starts_with('t') && id % 2 == 0 {
            let plain = ColumnWriteOptions::default().with_encoding(Encoding::Plain);
            options = options.with_column(&name, plain);
        }
        arrays.push((name, Arc::clone(array)));
    }
    let json = format!(r#"{{"num_short_key_columns": 1, "columns": [{}]}}"#, declared.join(", "));
    let schema = TabletSchema::parse_json(json.as_bytes()).unwrap();
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema, &options).unwrap();
    writer.write(&RecordBatch::try_from_iter(arrays).unwrap()).unwrap();
    (schema, writer.finish().unwrap().0)
}

/// Memory that this process has in use, or had at most, in bytes.
fn memory_of(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn check(batch: &RecordBatch, rows: Range<i64>) {
    let schema = batch.schema();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let count = usize::try_from(rows.end - rows.start).unwrap();
        assert_eq!((column.len(), column.null_count()), (count, 0), "{}", field.name());
        let expected: ArrayRef = match field.name().as_bytes()[0] {
            b'n' => Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row / 1000))),
            b't' => Arc::new(arrow_array::StringViewArray::from(vec!["a".repeat(150); count])),
            _ => Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(
                rows.clone().map(|row| Some([Some(row / 1000), None, Some(7), Some(7)])),
            )),
        };
        assert_eq!(arrow_cast::cast(column, expected.data_type()).unwrap().as_ref(), expected.as_ref());
    }
}

/// The memory that a process takes is never given back to the last byte: a fresh one reads.
#[test]
fn many_columns_of_large_pages_are_read_within_the_budget() {
    if let Some(folder) = env::var_os(FILE) {
        return read(Path::new(&folder));
    }
    let (schema, file) = bomb();
    assert!(file.len() < 1 << 20, "{} bytes", file.len());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bomb.dat"), file).unwrap();
    fs::write(folder.path().join("schema.json"), schema.to_json().unwrap()).unwrap();
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "many_columns_of_large_pages_are_read_within_the_budget", "--nocapture"])
        .env(FILE, folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stderr);
    eprintln!("{said}");
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
}

fn read(folder: &Path) {
    let schema = TabletSchema::parse_json(&fs::read(folder.join("schema.json")).unwrap()).unwrap();
    let limits = Limits { scan_bytes: BUDGET, ..Limits::default() };
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema))).with_limits(limits);
    let file = memory("bomb", fs::read(folder.join("bomb.dat")).unwrap());
    let reader = SegmentReader::open_with_options(file, &options).unwrap();
    let losses = Arc::new(LossLog::new());
    let scans = [
        ("all", reader.scan(), 0),
        ("salvage", reader.scan().skip_damage(Arc::clone(&losses)), 0),
        ("filtered", reader.scan().filter(col("n1").gt_eq(lit(9i64))), 9_000),
    ];
    let before = memory_of("VmHWM");
    for (name, scan, first) in scans {
        let mut next = first;
        for batch in scan.read().unwrap() {
            let batch = batch.unwrap();
            let end = next + i64::try_from(batch.num_rows()).unwrap();
            check(&batch, next..end);
            next = end;
        }
        assert_eq!(next, ROWS, "{name}");
        let taken = memory_of("VmHWM") - before;
        assert!(taken < MOST, "{name}: {} KiB", taken >> 10);
        eprintln!("{name}: {} KiB", taken >> 10);
    }
    assert_eq!(losses.losses(), []);
    // Column by column, large pages are unpacked once.
    assert_eq!(reader.verify(VerifyDepth::Values, &Silent).unwrap().findings, []);
}
