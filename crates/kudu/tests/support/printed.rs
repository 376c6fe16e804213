//! Values as Kudu's own tools print them, and how those tools are run.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::i256;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use pilaster_kudu::cfile::{KuduType, natural_type};
use pilaster_testing::real;

use super::columns::{Pattern, Recipe, as_bytes};

/// Runs a program of the real Kudu, which it keeps in a cache.
pub fn run_kudu<S: AsRef<OsStr>>(name: &str, arguments: impl IntoIterator<Item = S>) -> Output {
    let cache = PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/kudu");
    let mut program = Command::new(real::tools().join(name));
    real::run("kudu", program.arg("--cache").arg(cache).args(arguments)).unwrap()
}

/// The cells of a column.
pub fn column(data_type: KuduType, array: &ArrayRef) -> Vec<String> {
    match data_type {
        KuduType::String | KuduType::Varchar => bytes_printed(array, quoted_text),
        KuduType::Binary => bytes_printed(array, quoted_bytes),
        _ => (0..array.len()).map(|row| printed(data_type, array, row)).collect(),
    }
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
        KuduType::Decimal32 => format!("{}_D32", array.as_primitive::<Decimal128Type>().value(row)),
        KuduType::Decimal64 => format!("{}_D64", array.as_primitive::<Decimal128Type>().value(row)),
        KuduType::Decimal128 => format!("{}_D128", array.as_primitive::<Decimal128Type>().value(row)),
        KuduType::Int128 => array.as_primitive::<Decimal256Type>().value(row).to_string(),
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

/// Every type of a column.
pub const TYPES: [KuduType; 20] = [
    KuduType::Bool,
    KuduType::Int8,
    KuduType::Int16,
    KuduType::Int32,
    KuduType::Int64,
    KuduType::UInt8,
    KuduType::UInt16,
    KuduType::UInt32,
    KuduType::UInt64,
    KuduType::Int128,
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
pub fn values(data_type: KuduType, pattern: Pattern, rows: usize, nulls: u64) -> ArrayRef {
    let arrow = natural_type(data_type);
    let made = match data_type {
        // Eight digits are printed, dates have a range, times must have a text, and wide numbers lose zeros.
        KuduType::Float
        | KuduType::Double
        | KuduType::Date
        | KuduType::UnixtimeMicros
        | KuduType::Int128
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
                    let scaled =
                        wide.as_primitive::<Int32Type>().unary::<_, Decimal128Type>(with_many_digits);
                    Arc::new(scaled.with_precision_and_scale(38, 0).unwrap())
                }
                KuduType::Int128 => {
                    let scaled = wide
                        .as_primitive::<Int32Type>()
                        .unary::<_, Decimal256Type>(|v| i256::from_i128(with_many_digits(v)));
                    Arc::new(scaled.with_precision_and_scale(39, 0).unwrap())
                }
                _ => arrow_cast::cast(&wide, &arrow).unwrap(),
            }
        }
        _ => Recipe::new(pattern, rows, nulls).build(&arrow),
    };
    match made.data_type() {
        DataType::Decimal128(..) => made,
        _ => arrow_cast::cast(&made, &arrow).unwrap(),
    }
}

/// A number of more than 64 bits without zeros inside: the tool prints groups of digits and forgets those that each begins
/// with, so that 10^22 becomes 10000.
fn with_many_digits(value: i32) -> i128 {
    i128::from(value) * 1_111_111_111_111_111_111_111_111_111
}
