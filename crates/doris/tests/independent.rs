//! Segments written here, read by another reader: `independent/read_segment.py` knows the format from its description alone
//! and shares nothing with this library. It is checked on the files of Doris first.
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
use std::process::Command;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Date32Array, Int32Array, Int64Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster_core::Dataset;
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, SegmentWriteOptions, SegmentWriter, StorageFormat,
};
use pilaster_testing::needs;
use serde_json::json;
use support::golden::Case;
use support::{batches, goldens};

const CODECS: [&str; 4] = ["NO_COMPRESSION", "LZ4", "LZ4F", "ZLIB"];

/// How many cells the other reader found equal to the rows.
fn cells_read(segment: &Path, schema: &Path, rows: &Path) -> u64 {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/independent/read_segment.py");
    let output = Command::new("python3").arg(script).args([segment, schema, rows]).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", segment.display());
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

fn write(path: &Path, schema: &TabletSchema, options: &SegmentWriteOptions, rows: &RecordBatch) {
    let mut writer = SegmentWriter::try_new(Vec::new(), schema, options).unwrap();
    writer.write(rows).unwrap();
    std::fs::write(path, writer.finish().unwrap().0).unwrap();
}

#[needs(goldens = "doris", program = "python3")]
#[test]
fn golden_rows_written_again_are_read_by_another_reader() {
    let root = goldens();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("written.dat");
    let (mut files, mut of_doris, mut written) = (0, 0, 0);
    for (number, case) in Case::all(&root).iter().filter(|case| case.name.contains('/')).enumerate() {
        let golden = root.join("segment").join(&case.name);
        let (schema, rows) = (golden.with_file_name("schema.json"), golden.with_extension("rows.jsonl"));
        of_doris += cells_read(&golden, &schema, &rows);
        let reader = case.open().unwrap();
        let all = concat_batches(&reader.schema(), &batches(reader.scan()).unwrap()).unwrap();
        let options = SegmentWriteOptions::default()
            .with_format([StorageFormat::V2, StorageFormat::V3][number % 2])
            .with_compression(Compression::from_name(CODECS[number / 2 % 4]).unwrap())
            .with_page_bytes([4096, 65_536][number / 8 % 2]);
        write(&path, &case.schema, &options, &all);
        written += cells_read(&path, &schema, &rows);
        files += 1;
    }
    eprintln!("{files} files: {of_doris} cells of Doris, {written} cells written here");
    assert!(files >= 109 && written > 10_000 && of_doris == written, "{files}: {of_doris}, {written}");
}

#[needs(program = "python3")]
#[test]
fn every_encoding_is_read_by_another_reader() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let columns = [
        ("k", "INT", "BIT_SHUFFLE"),
        ("plain", "BIGINT", "PLAIN_ENCODING"),
        ("frames", "INT", "FOR_ENCODING"),
        ("days", "DATEV2", "FOR_ENCODING"),
        ("flags", "BOOLEAN", "RLE"),
        ("bits", "BOOLEAN", "BIT_SHUFFLE"),
        ("prefix", "STRING", "PREFIX_ENCODING"),
        ("lengths", "STRING", "PLAIN_ENCODING_V2"),
        ("ends", "STRING", "PLAIN_ENCODING_V3"),
        ("offsets", "STRING", "PLAIN_ENCODING"),
        ("words", "STRING", "DICT_ENCODING"),
    ];
    let described: Vec<_> = columns
        .iter()
        .enumerate()
        .map(|(id, (name, kind, _))| {
            json!({"unique_id": id, "name": name, "type": kind, "is_key": id == 0, "is_nullable": id > 0})
        })
        .collect();
    let schema = json!({"num_short_key_columns": 1, "columns": described}).to_string();
    std::fs::write(file("schema.json"), &schema).unwrap();
    let schema = TabletSchema::parse_json(schema.as_bytes()).unwrap();
    // Nulls alone, in runs and strewn about; texts that share beginnings, repeat and are empty.
    let count = 6000i32;
    let is_null = |row: i32, column: i32| row % (7 + column) == 0 || (900..1400).contains(&row);
    let number = |row: i32, column: i32| (!is_null(row, column)).then(|| (row * 37) % 1000 - row / 3);
    let text = |row: i32, column: i32| {
        (!is_null(row, column)).then(|| match row % 5 {
            0 => String::new(),
            part => format!("{}{}", "beginning ".repeat(part as usize), row / 9 % 400),
        })
    };
    let ints =
        |column| Arc::new((0..count).map(|row| number(row, column)).collect::<Int32Array>()) as ArrayRef;
    let flags = |column| {
        let flag = |row| number(row, column).map(|value| value > 0);
        Arc::new((0..count).map(flag).collect::<BooleanArray>()) as ArrayRef
    };
    let texts =
        |column| Arc::new((0..count).map(|row| text(row, column)).collect::<StringArray>()) as ArrayRef;
    let longs: Int64Array =
        (0..count).map(|row| number(row, 1).map(|value| i64::from(value) << 33)).collect();
    let days: Date32Array = (0..count).map(|row| (!is_null(row, 3)).then_some(row)).collect();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new((0..count).collect::<Int32Array>()),
        Arc::new(longs),
        ints(2),
        Arc::new(days),
        flags(4),
        flags(5),
        texts(6),
        texts(7),
        texts(8),
        texts(9),
        texts(10),
    ];
    let named = columns.iter().zip(arrays).map(|((name, ..), array)| (*name, array, true));
    let rows = RecordBatch::try_from_iter_with_nullable(named).unwrap();
    let expected: String = (0..count)
        .map(|row| {
            let day = (!is_null(row, 3)).then(|| civil(row));
            let mut object = serde_json::Map::new();
            let mut put = |column: usize, value| object.insert(columns[column].0.to_string(), value);
            put(0, json!(row));
            put(1, json!(number(row, 1).map(|value| i64::from(value) << 33)));
            put(2, json!(number(row, 2)));
            put(3, json!(day));
            put(4, json!(number(row, 4).map(|value| value > 0)));
            put(5, json!(number(row, 5).map(|value| value > 0)));
            for column in 6..11 {
                put(column, json!(text(row, column as i32)));
            }
            serde_json::Value::Object(object).to_string() + "\n"
        })
        .collect();
    std::fs::write(file("rows.jsonl"), expected).unwrap();
    for (number, codec) in CODECS.into_iter().enumerate() {
        let options = SegmentWriteOptions::default()
            .with_format([StorageFormat::V2, StorageFormat::V3][number % 2])
            .with_compression(Compression::from_name(codec).unwrap())
            .with_dictionary_page_bytes([4096, 262_144][number % 2])
            .with_page_bytes(4096);
        let options = columns.iter().fold(options, |options, (name, _, encoding)| {
            let encoding = Encoding::from_name(encoding).unwrap();
            options.with_column(*name, ColumnWriteOptions::default().with_encoding(encoding))
        });
        write(&file("written.dat"), &schema, &options, &rows);
        let cells = cells_read(&file("written.dat"), &file("schema.json"), &file("rows.jsonl"));
        assert_eq!(cells, columns.len() as u64 * count as u64, "{codec}");
    }
}

/// The date of a day since 1970, counted up month by month.
fn civil(mut day: i32) -> String {
    let (mut year, mut month) = (1970, 1);
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let length = match month {
            2 => 28 + i32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        if day < length {
            return format!("{year:04}-{month:02}-{:02}", day + 1);
        }
        day -= length;
        month = month % 12 + 1;
        year += i32::from(month == 1);
    }
}
