//! Files of this writer, read by the real Kudu.
//!
//! Kudu's own tool (`kudu fs dump cfile`) reads header, footer, indexes and every row of each file and prints the rows;
//! they must be the rows that were written.
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
use std::process::Command;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type,
    Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, BinaryArray, Float64Array, Int64Array, StringArray};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, Field};
use pilaster_kudu::cfile::{CFileWriterOptions, Compression, Encoding, KuduType, Version, natural_type};

use support::columns::{Pattern, Recipe, as_bytes, ascending};
use support::{workspace, write};

/// Where the program that runs Kudu's tool is.
fn tools() -> PathBuf {
    std::env::var_os("PILASTER_TOOLS").map_or_else(|| workspace().join("../shared/tools"), PathBuf::from)
}

/// A file and the rows it must hold.
struct Written {
    path: PathBuf,
    rows: Vec<String>,
}

/// The files of one test, in a folder of their own.
struct Matrix {
    folder: tempfile::TempDir,
    files: Vec<Written>,
}

impl Matrix {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), files: Vec::new() }
    }

    fn add(
        &mut self,
        name: &str,
        data_type: KuduType,
        array: &ArrayRef,
        nullable: bool,
        options: CFileWriterOptions,
    ) {
        let path = self.folder.path().join(format!("{:04}-{name}.cfile", self.files.len()));
        let field = Field::new("value", array.data_type().clone(), nullable);
        let bytes = write(&field, &[Arc::clone(array)], options.with_data_type(data_type)).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let rows = match data_type {
            KuduType::String | KuduType::Varchar => bytes_printed(array, quoted_text),
            KuduType::Binary => bytes_printed(array, quoted_bytes),
            _ => (0..array.len()).map(|row| printed(data_type, array, row)).collect(),
        };
        self.files.push(Written { path, rows });
    }

    /// Lets Kudu read every file and compares what it prints.
    fn check(&self) {
        let cache = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/kudu");
        let output = Command::new(tools().join("kudu-accepts-cfile"))
            .arg("--cache")
            .arg(cache)
            .args(self.files.iter().map(|file| &file.path))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_some_and(|code| code < 2), "the tool did not run: {errors}");
        let mut rest = text.as_ref();
        let mut failures = Vec::new();
        for file in &self.files {
            match rest.split_once(&format!("ACCEPTED {}\n", file.path.display())) {
                Some((printed, after)) => {
                    rest = after;
                    failures.extend(difference(&file.path, printed, &file.rows));
                }
                None => {
                    let line = text.lines().find(|line| line.contains(&*file.path.to_string_lossy()));
                    failures.push(line.unwrap_or("a file the tool says nothing about").to_string());
                }
            }
        }
        assert!(
            failures.is_empty(),
            "{} of {} files:\n{}",
            failures.len(),
            self.files.len(),
            failures.join("\n")
        );
        eprintln!("{} files accepted by Kudu", self.files.len());
    }
}

/// What differs between the printed rows and the expected ones.
fn difference(path: &Path, printed: &str, rows: &[String]) -> Option<String> {
    let lines: Vec<_> = printed.lines().collect();
    let start = lines.len().checked_sub(rows.len() + 1)?;
    let found = &lines[start + 1..];
    if !lines[start].is_empty() {
        return Some(format!("{}: more rows than {}", path.display(), rows.len()));
    }
    let row = found.iter().zip(rows).position(|(found, wanted)| found != wanted)?;
    Some(format!("{}: row {row}: expected {:?}, found {:?}", path.display(), rows[row], found[row]))
}

fn bytes_printed(array: &ArrayRef, quoted: fn(&[u8]) -> String) -> Vec<String> {
    as_bytes(array).iter().map(|value| value.map_or("NULL".into(), quoted)).collect()
}

/// A cell that is not bytes, as Kudu's tool prints it.
fn printed(data_type: KuduType, array: &ArrayRef, row: usize) -> String {
    if array.is_null(row) {
        return "NULL".into();
    }
    match data_type {
        KuduType::Bool => array.as_boolean().value(row).to_string(),
        KuduType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        KuduType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        KuduType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        KuduType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        KuduType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
        KuduType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
        KuduType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        KuduType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        KuduType::Float => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        KuduType::Double => float(array.as_primitive::<Float64Type>().value(row)),
        KuduType::Decimal32 => format!("{}_D32", array.as_primitive::<Decimal32Type>().value(row)),
        KuduType::Decimal64 => format!("{}_D64", array.as_primitive::<Decimal64Type>().value(row)),
        KuduType::Decimal128 => format!("{}_D128", array.as_primitive::<Decimal128Type>().value(row)),
        KuduType::Date => {
            let date = array.as_primitive::<Date32Type>();
            ArrayFormatter::try_new(date, &FormatOptions::default()).unwrap().value(row).to_string()
        }
        KuduType::UnixtimeMicros => {
            let time =
                array.as_primitive::<TimestampMicrosecondType>().clone().with_timezone_opt::<&str>(None);
            let options = FormatOptions::default().with_timestamp_format(Some("%Y-%m-%dT%H:%M:%S%.6fZ"));
            ArrayFormatter::try_new(&time, &options).unwrap().value(row).to_string()
        }
        other => panic!("no text for {other}"),
    }
}

fn float(value: f64) -> String {
    value.to_string()
}

/// Text between quotes, escaped as Kudu does: octal, and what is not ASCII stays as it is.
fn quoted_text(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    for &byte in bytes {
        match escape(byte) {
            Some(escaped) => out.extend(escaped.bytes()),
            None if byte < 0x20 || byte == 0x7f => out.extend(format!("\\{byte:03o}").bytes()),
            None => out.push(byte),
        }
    }
    format!("\"{}\"", String::from_utf8(out).unwrap())
}

/// Bytes between quotes, escaped as Kudu does: hexadecimal, digits too where they would seem to belong to an escape.
fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut after_escape = false;
    for &byte in bytes {
        let is_plain = (0x20..0x7f).contains(&byte) && !(after_escape && byte.is_ascii_hexdigit());
        after_escape = false;
        match escape(byte) {
            Some(escaped) => out.push_str(escaped),
            None if is_plain => out.push(char::from(byte)),
            None => {
                out.push_str(&format!("\\x{byte:02x}"));
                after_escape = true;
            }
        }
    }
    format!("\"{out}\"")
}

fn escape(byte: u8) -> Option<&'static str> {
    Some(match byte {
        b'\n' => "\\n",
        b'\r' => "\\r",
        b'\t' => "\\t",
        b'"' => "\\\"",
        b'\'' => "\\'",
        b'\\' => "\\\\",
        _ => return None,
    })
}

/// The types Kudu's tool can print; 128-bit decimals only as long as it does not lose their zeros.
const TYPES: [KuduType; 19] = [
    KuduType::Bool,
    KuduType::Int8,
    KuduType::Int16,
    KuduType::Int32,
    KuduType::Int64,
    KuduType::UInt8,
    KuduType::UInt16,
    KuduType::UInt32,
    KuduType::UInt64,
    KuduType::Float,
    KuduType::Double,
    KuduType::Decimal32,
    KuduType::Decimal64,
    KuduType::Decimal128,
    KuduType::String,
    KuduType::Binary,
    KuduType::Varchar,
    KuduType::Date,
    KuduType::UnixtimeMicros,
];

/// Values of a type that its text tells apart.
fn values(data_type: KuduType, pattern: Pattern, rows: usize, nulls: u64) -> ArrayRef {
    let arrow = match data_type {
        KuduType::Decimal128 => DataType::Decimal128(17, 0),
        other => natural_type(other),
    };
    let made = match data_type {
        // Eight digits are printed, dates have a range, and times must have a text.
        KuduType::Float
        | KuduType::Double
        | KuduType::Date
        | KuduType::UnixtimeMicros
        | KuduType::Decimal128 => {
            let whole = Recipe::new(pattern, rows, nulls).build(&DataType::Int16);
            let wide = arrow_cast::cast(&whole, &DataType::Int32).unwrap();
            match data_type {
                KuduType::UnixtimeMicros => {
                    let scaled = wide
                        .as_primitive::<Int32Type>()
                        .unary::<_, Int64Type>(|v| i64::from(v) * 86_399_999_983);
                    arrow_cast::cast(&(Arc::new(scaled) as ArrayRef), &arrow).unwrap()
                }
                KuduType::Decimal128 => {
                    let scaled = wide
                        .as_primitive::<Int32Type>()
                        .unary::<_, Decimal128Type>(|v| i128::from(v) * 111_111_111_111);
                    Arc::new(scaled.with_precision_and_scale(38, 0).unwrap())
                }
                _ => arrow_cast::cast(&wide, &arrow).unwrap(),
            }
        }
        _ => Recipe::new(pattern, rows, nulls).build(&arrow),
    };
    match made.data_type() {
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) => made,
        _ => arrow_cast::cast(&made, &arrow).unwrap(),
    }
}

#[test]
#[ignore = "runs the real Kudu tool, which is downloaded once (kudu-accepts-cfile in PILASTER_TOOLS)"]
fn kudu_reads_every_type_encoding_and_codec() {
    let mut matrix = Matrix::new();
    for data_type in TYPES {
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for &compression in Compression::ALL {
                for nulls in [0, 30] {
                    let pattern = if nulls == 0 { Pattern::Random } else { Pattern::Runs };
                    let array = values(data_type, pattern, 300, nulls);
                    let options = CFileWriterOptions::default()
                        .with_encoding(encoding)
                        .with_compression(compression)
                        .with_block_size_bytes(512);
                    let name = format!("{data_type}-{encoding}-{compression}-{nulls}");
                    matrix.add(&name, data_type, &array, nulls > 0, options);
                }
            }
        }
    }
    assert!(matrix.files.len() > 350, "{}", matrix.files.len());
    matrix.check();
}

#[test]
#[ignore = "runs the real Kudu tool, which is downloaded once (kudu-accepts-cfile in PILASTER_TOOLS)"]
fn kudu_reads_keys_deep_indexes_old_versions_and_odd_values() {
    let mut matrix = Matrix::new();
    let small = || CFileWriterOptions::default().with_block_size_bytes(512);

    for data_type in TYPES.into_iter().filter(|data_type| data_type.can_be_key()) {
        let rows = match data_type.physical() {
            pilaster_kudu::cfile::Physical::Fixed(1) => 200,
            _ => 3000,
        };
        let array = ascending(&values(data_type, Pattern::Random, rows, 0));
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for index_bytes in [200, 32_768] {
                let options = small()
                    .with_encoding(encoding)
                    .with_value_index(true)
                    .with_index_block_size_bytes(index_bytes);
                matrix.add(&format!("key-{data_type}-{encoding}"), data_type, &array, false, options);
            }
        }
    }

    for (data_type, encoding) in [
        (KuduType::Int32, Encoding::BitShuffle),
        (KuduType::Int64, Encoding::Rle),
        (KuduType::Bool, Encoding::Plain),
        (KuduType::String, Encoding::Dict),
        (KuduType::Binary, Encoding::Prefix),
        (KuduType::Double, Encoding::Plain),
    ] {
        for nulls in [0, 40] {
            let array = values(data_type, Pattern::Ascending, 2000, nulls);
            for &compression in Compression::ALL {
                let options = small().with_encoding(encoding).with_compression(compression);
                for (name, options) in [
                    ("version-1", options.clone().with_version(Version::V1)),
                    ("no-checksums", options.clone().with_checksums(false)),
                    ("deep", options.with_index_block_size_bytes(60)),
                ] {
                    matrix.add(&format!("{name}-{data_type}"), data_type, &array, nulls > 0, options);
                }
            }
        }
    }

    for data_type in TYPES {
        let is_ranged = matches!(data_type, KuduType::Date | KuduType::UnixtimeMicros);
        let pattern = if is_ranged { Pattern::Constant } else { Pattern::Extremes };
        for &encoding in data_type.encodings().iter().filter(|encoding| **encoding != Encoding::GroupVarint) {
            for (name, rows, nulls) in [("extremes", 2500, 10), ("one-row", 1, 0), ("all-null", 5000, 100)] {
                let array = values(data_type, pattern, rows, nulls);
                let options = CFileWriterOptions::default().with_encoding(encoding);
                matrix.add(&format!("{name}-{data_type}-{encoding}"), data_type, &array, true, options);
            }
        }
    }

    let words = |count: usize, rows: usize| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("w{}", row * 7919 % count))))
    };
    let dict = || CFileWriterOptions::default().with_encoding(Encoding::Dict);
    matrix.add("dictionary-1-byte", KuduType::String, &words(256, 3000), false, dict());
    matrix.add("dictionary-2-bytes", KuduType::String, &words(257, 3000), false, dict());
    let large = dict().with_block_size_bytes(4 << 20);
    matrix.add("dictionary-4-bytes", KuduType::String, &words(70_000, 140_000), false, large);
    matrix.add(
        "dictionary-overflow",
        KuduType::String,
        &words(900, 5000),
        false,
        dict().with_block_size_bytes(2048),
    );

    let odd: ArrayRef = Arc::new(BinaryArray::from_iter_values([
        &b""[..],
        b"\0",
        b"\0\0\x01",
        b"",
        b"\xff\xfe",
        b"tab\tnewline\nquote\"'\\",
        &[b'x'; 5000],
        b"a",
        b"ab",
    ]));
    let text: ArrayRef =
        Arc::new(StringArray::from_iter_values(["", "\0", "\0\0a", "", "größe", "\t\n\"'\\", "日本"]));
    for &encoding in KuduType::Binary.encodings() {
        matrix.add("odd-bytes", KuduType::Binary, &odd, false, small().with_encoding(encoding));
        matrix.add("odd-text", KuduType::String, &text, false, small().with_encoding(encoding));
    }

    let many: ArrayRef = Arc::new(Int64Array::from_iter_values((0..200_000).map(|row| row * 3 - 1000)));
    for &encoding in KuduType::Int64.encodings() {
        let options =
            small().with_encoding(encoding).with_value_index(true).with_index_block_size_bytes(4096);
        matrix.add("many-rows", KuduType::Int64, &many, false, options);
    }
    let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.5, -0.25, 1024.0, -3.0, 0.0]));
    matrix.add("floats", KuduType::Double, &floats, false, CFileWriterOptions::default());
    matrix.check();
}
