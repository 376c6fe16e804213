//! Arrow values in the JSON form of the golden rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use serde_json::{Value, json};

/// The value in `row`; `is_json` if its text is a JSON document.
pub fn cell(array: &ArrayRef, row: usize, is_json: bool) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int8 => json!(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => json!(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Float32 => json!(array.as_primitive::<Float32Type>().value(row)),
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(row)),
        DataType::Decimal128(..) => json!(array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Decimal256(..) => json!(array.as_primitive::<Decimal256Type>().value_as_string(row)),
        DataType::Utf8View => {
            let text = array.as_string_view().value(row);
            if is_json { serde_json::from_str(text).unwrap() } else { json!(text) }
        }
        DataType::BinaryView => {
            let hex: String =
                array.as_binary_view().value(row).iter().map(|byte| format!("{byte:02x}")).collect();
            json!({ "$hex": hex })
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            (0..items.len()).map(|item| cell(&items, item, false)).collect()
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            (0..entries.len())
                .map(|entry| {
                    json!([cell(entries.column(0), entry, false), cell(entries.column(1), entry, false)])
                })
                .collect()
        }
        DataType::Struct(_) => {
            array.as_struct().columns().iter().map(|column| cell(column, row, false)).collect()
        }
        other => {
            let format = match other {
                DataType::Timestamp(arrow_schema::TimeUnit::Second, _) => "%Y-%m-%d %H:%M:%S",
                _ => "%Y-%m-%d %H:%M:%S%.6f",
            };
            let options = FormatOptions::default()
                .with_timestamp_format(Some(format))
                .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.6f%:z"));
            json!(ArrayFormatter::try_new(array.as_ref(), &options).unwrap().value(row).to_string())
        }
    }
}

/// Whether a value is the expected one: floats of 32 bits may be printed in more digits.
pub fn is_same(found: &Value, expected: &Value, arrow: &DataType) -> bool {
    match (found.as_f64(), expected.as_f64(), arrow) {
        (Some(found), Some(expected), DataType::Float32) => found as f32 == expected as f32,
        (Some(found), Some(expected), DataType::Float64) => found == expected,
        _ => found == expected,
    }
}
