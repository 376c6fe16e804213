//! Rows of tables as the JSON that the goldens of tables have.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;
use serde_json::{Map, Value, json};

use super::cells;

/// A cell as the goldens of tables write it.
pub fn cell(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(row))),
        DataType::Timestamp(..) => {
            let ms = array.as_primitive::<TimestampMillisecondType>().value(row);
            let (day, rest) = (ms.div_euclid(86_400_000), ms.rem_euclid(86_400_000));
            let fraction = format!("{:03}", rest % 1000);
            let fraction = match fraction.trim_end_matches('0') {
                "" => "0",
                other => other,
            };
            let (hours, minutes, seconds) = (rest / 3_600_000, rest / 60_000 % 60, rest / 1000 % 60);
            json!(format!("{} {hours:02}:{minutes:02}:{seconds:02}.{fraction}", cells::date(day)))
        }
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|item| cell(&items, item)).collect())
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let pairs =
                fields.iter().zip(columns).map(|(field, column)| (field.name().clone(), cell(column, row)));
            Value::Object(pairs.collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let mut pairs: Vec<_> = (0..entries.len())
                .map(|entry| json!([cell(entries.column(0), entry), cell(entries.column(1), entry)]))
                .collect();
            pairs.sort_by_key(ToString::to_string);
            Value::Array(pairs)
        }
        _ => cells::scalar(array, row),
    }
}

fn float(value: f64) -> Value {
    if value.is_finite() { json!(value) } else { json!(value.to_string().replace("inf", "Infinity")) }
}

/// The rows of a batch as the goldens of tables have them, in the order of their texts.
pub fn rows(batch: &RecordBatch) -> Vec<String> {
    let schema = batch.schema();
    let row = |row: usize| {
        let pairs = schema.fields().iter().zip(batch.columns());
        let map: Map<_, _> = pairs.map(|(field, column)| (field.name().clone(), cell(column, row))).collect();
        Value::Object(map).to_string()
    };
    let mut rows: Vec<_> = (0..batch.num_rows()).map(row).collect();
    rows.sort();
    rows
}

/// The rows that a golden expects, in the order of their texts.
pub fn expected(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut rows: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap().to_string()).collect();
    rows.sort();
    rows
}
