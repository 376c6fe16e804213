//! Rows to write as a table, and how to compare them with rows that were read.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Date64Type, Int32Type, Int64Type, TimestampNanosecondType};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_cast::cast;
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use arrow_select::filter::filter_record_batch;

use super::columns::Recipe;

/// Values of a type that Kudu can hold: dates have a range, times must be whole microseconds.
pub fn values(data_type: &DataType, recipe: Recipe) -> ArrayRef {
    let days = || recipe.build(&DataType::Int32).as_primitive::<Int32Type>().clone();
    match data_type {
        DataType::Date32 => Arc::new(days().unary::<_, Date32Type>(|day| day % 719_162)),
        DataType::Date64 => {
            Arc::new(days().unary::<_, Date64Type>(|day| i64::from(day % 719_162) * 86_400_000))
        }
        DataType::Timestamp(TimeUnit::Nanosecond, zone) => {
            let numbers = recipe.build(&DataType::Int64);
            let numbers = numbers.as_primitive::<Int64Type>();
            let times = numbers.unary::<_, TimestampNanosecondType>(|time| time / 1000 * 1000);
            Arc::new(times.with_timezone_opt(zone.clone()))
        }
        DataType::Timestamp(unit, _) if *unit != TimeUnit::Microsecond => {
            let numbers = recipe.build(&DataType::Int64);
            let small =
                numbers.as_primitive::<Int64Type>().unary::<_, Int64Type>(|time| time % 1_000_000_000);
            cast(&(Arc::new(small) as ArrayRef), data_type).unwrap()
        }
        DataType::List(element) if *element.data_type() == DataType::Date32 => {
            let days = recipe.build(&DataType::new_list(DataType::Int16, true));
            cast(&cast(&days, &DataType::new_list(DataType::Int32, true)).unwrap(), data_type).unwrap()
        }
        DataType::Float16 => {
            let small = recipe.build(&DataType::Int8);
            cast(&cast(&small, &DataType::Float32).unwrap(), data_type).unwrap()
        }
        other => recipe.build(other),
    }
}

/// Rows as bytes that are equal if the rows are, columns in the order of `schema` and as its types.
pub fn as_bytes(batch: &RecordBatch, schema: &SchemaRef) -> Vec<Vec<u8>> {
    let columns: Vec<ArrayRef> = schema
        .fields()
        .iter()
        .map(|field| comparable(batch.column_by_name(field.name()).unwrap(), field.data_type()))
        .collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let converter = RowConverter::new(fields).unwrap();
    let rows = converter.convert_columns(&columns).unwrap();
    rows.iter().map(|row| row.as_ref().to_vec()).collect()
}

/// Values as another type; times as numbers, because not every time has a text in its zone.
fn comparable(array: &ArrayRef, wanted: &DataType) -> ArrayRef {
    match array.data_type() {
        DataType::Timestamp(_, zone) => {
            let micros = cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone.clone())).unwrap();
            cast(&micros, &DataType::Int64).unwrap()
        }
        _ => cast(array, wanted).unwrap(),
    }
}

/// The first row of each key.
pub fn with_unique_keys(batch: &RecordBatch, keys: &[&str]) -> RecordBatch {
    let schema = batch.schema();
    let places: Vec<_> = keys.iter().map(|key| schema.index_of(key).unwrap()).collect();
    let projected = batch.project(&places).unwrap();
    let mut seen = HashSet::new();
    let is_first: BooleanArray =
        as_bytes(&projected, &projected.schema()).into_iter().map(|key| Some(seen.insert(key))).collect();
    filter_record_batch(batch, &is_first).unwrap()
}

/// A cell as Kudu stores it: a little-endian number, or text.
pub fn stored(array: &ArrayRef, row: usize) -> Vec<u8> {
    match array.data_type() {
        DataType::Int32 => array.as_primitive::<Int32Type>().value(row).to_le_bytes().to_vec(),
        DataType::Int64 => array.as_primitive::<Int64Type>().value(row).to_le_bytes().to_vec(),
        DataType::Utf8View => array.as_string_view().value(row).as_bytes().to_vec(),
        other => panic!("no stored form of {other} here"),
    }
}
