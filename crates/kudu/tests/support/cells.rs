//! One text for a value, whether it comes out of a CFile or out of an expected row.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, TimeUnit};
use serde_json::Value;

/// The values of an array as texts; `scale` is that of a decimal column, which the file does not know.
pub fn texts(array: &ArrayRef, scale: usize) -> Vec<Option<String>> {
    (0..array.len()).map(|row| (!array.is_null(row)).then(|| text(array, row, scale))).collect()
}

fn text(array: &ArrayRef, row: usize, scale: usize) -> String {
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).to_string(),
        DataType::Int8 => array.as_primitive::<Int8Type>().value(row).to_string(),
        DataType::Int16 => array.as_primitive::<Int16Type>().value(row).to_string(),
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_string(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_string(),
        DataType::UInt8 => array.as_primitive::<UInt8Type>().value(row).to_string(),
        DataType::UInt16 => array.as_primitive::<UInt16Type>().value(row).to_string(),
        DataType::UInt32 => array.as_primitive::<UInt32Type>().value(row).to_string(),
        DataType::UInt64 => array.as_primitive::<UInt64Type>().value(row).to_string(),
        DataType::Date32 => array.as_primitive::<Date32Type>().value(row).to_string(),
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            array.as_primitive::<TimestampMicrosecondType>().value(row).to_string()
        }
        DataType::Float32 => format!("{:08x}", array.as_primitive::<Float32Type>().value(row).to_bits()),
        DataType::Float64 => format!("{:016x}", array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Decimal128(..) => {
            with_point(&array.as_primitive::<Decimal128Type>().value(row).to_string(), scale)
        }
        DataType::Decimal256(..) => array.as_primitive::<Decimal256Type>().value(row).to_string(),
        DataType::Utf8View => array.as_string_view().value(row).to_string(),
        DataType::BinaryView => hex(array.as_binary_view().value(row)),
        DataType::List(_) => {
            let elements = texts(&array.as_list::<i32>().value(row), scale);
            list_text(elements.into_iter())
        }
        other => panic!("no text for {other}"),
    }
}

/// A list of cell texts as one text.
pub fn list_text(elements: impl Iterator<Item = Option<String>>) -> String {
    elements.map(|element| format!("{element:?}")).collect::<Vec<_>>().join(",")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter(|b| b.is_ascii_hexdigit())
        .map(|b| (b as char).to_digit(16).unwrap() as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn with_point(unscaled: &str, scale: usize) -> String {
    if scale == 0 {
        return unscaled.to_string();
    }
    let (sign, digits) = unscaled.strip_prefix('-').map_or(("", unscaled), |digits| ("-", digits));
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, part) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{part}")
}

/// A value of an expected row as text. Floats are given by their bits, under another name.
pub fn expected(row: &Value, column: &str, is_float: bool) -> Option<String> {
    let bits = format!("{column}#bits");
    value_text(if is_float { row.get(&bits).or_else(|| row.get(column)) } else { row.get(column) }.unwrap())
}

fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(value) => Some(value.to_string()),
        Value::String(value) => Some(value.clone()),
        Value::Array(elements) => Some(list_text(elements.iter().map(value_text))),
        Value::Object(_) => panic!("an object as a value"),
    }
}
