//! Cells of batches against the JSON that the goldens expect.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use serde_json::{Value, json};

/// Whether the cell is what the golden says.
pub fn matches(array: &ArrayRef, row: usize, expected: &Value) -> bool {
    match (array.data_type(), expected) {
        _ if array.is_null(row) => expected.is_null(),
        (DataType::Float32, Value::Number(number)) => {
            let text = number.to_string();
            text.parse::<f32>()
                .is_ok_and(|v| v.to_bits() == array.as_primitive::<Float32Type>().value(row).to_bits())
        }
        (DataType::Float64, Value::Number(number)) => {
            let text = number.to_string();
            text.parse::<f64>()
                .is_ok_and(|v| v.to_bits() == array.as_primitive::<Float64Type>().value(row).to_bits())
        }
        (DataType::Float32, Value::String(text)) => {
            *text == java(f64::from(array.as_primitive::<Float32Type>().value(row)))
        }
        (DataType::Float64, Value::String(text)) => {
            *text == java(array.as_primitive::<Float64Type>().value(row))
        }
        (DataType::List(_), Value::Array(items)) => {
            let list = array.as_list::<i32>().value(row);
            list.len() == items.len() && items.iter().enumerate().all(|(i, item)| matches(&list, i, item))
        }
        (DataType::Struct(_), Value::Array(items)) => {
            let columns = array.as_struct().columns();
            columns.len() == items.len()
                && columns.iter().zip(items).all(|(column, item)| matches(column, row, item))
        }
        (DataType::Map(..), Value::Array(parts)) => {
            let entries = array.as_map().value(row);
            let is_all = |column: &ArrayRef, items: &Value| {
                let items = items.as_array().unwrap();
                column.len() == items.len()
                    && items.iter().enumerate().all(|(i, item)| matches(column, i, item))
            };
            is_all(entries.column(0), &parts[0]) && is_all(entries.column(1), &parts[1])
        }
        _ => scalar(array, row) == *expected,
    }
}

/// A number that JSON has no form for, as Java prints it.
fn java(value: f64) -> String {
    value.to_string().replace("inf", "Infinity")
}

/// A cell as JSON, for types whose form is one text.
pub fn scalar(array: &ArrayRef, row: usize) -> Value {
    match array.data_type() {
        _ if array.is_null(row) => Value::Null,
        DataType::Utf8View => json!(array.as_string_view().value(row)),
        DataType::BinaryView => {
            let bytes = array.as_binary_view().value(row);
            json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        }
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Int8 => json!(array.as_primitive::<Int8Type>().value(row)),
        DataType::Int16 => json!(array.as_primitive::<Int16Type>().value(row)),
        DataType::Int32 => json!(array.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => json!(array.as_primitive::<Int64Type>().value(row)),
        DataType::Decimal128(..) => json!(array.as_primitive::<Decimal128Type>().value_as_string(row)),
        DataType::Date32 => json!(date(i64::from(array.as_primitive::<Date32Type>().value(row)))),
        DataType::Timestamp(..) => {
            let ms = array.as_primitive::<TimestampMillisecondType>().value(row);
            let (day, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
            let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
            json!(format!("{} {hours:02}:{minutes:02}:{:02}.{:03}", date(day), rest / 1000 % 60, rest % 1000))
        }
        other => panic!("no text for {other}"),
    }
}

/// A day as everybody but Java prints it: in the calendar of today, also before 1582-10-15.
pub fn date(days: i64) -> String {
    let julian_day = days + 2_440_588;
    let f = julian_day + 1401 + (4 * julian_day + 274_277).div_euclid(146_097) * 3 / 4 - 38;
    let e = 4 * f + 3;
    let h = 5 * (e.rem_euclid(1461) / 4) + 2;
    let day = h % 153 / 5 + 1;
    let month = (h / 153 + 2) % 12 + 1;
    let year = e.div_euclid(1461) - 4716 + (14 - month) / 12;
    format!("{year:04}-{month:02}-{day:02}")
}
