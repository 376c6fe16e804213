//! JSON text of values that a VARIANT keeps in columns.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use crate::jsonb;
use crate::segment::ColumnMeta;
use crate::segment::FieldType;

/// What the values of a column are as JSON.
#[derive(Debug, Clone)]
pub(crate) enum JsonShape {
    /// A number, a boolean or a string.
    Value,
    /// Text that is JSON already.
    Document,
    List(Box<JsonShape>),
}

impl JsonShape {
    pub fn of(column: &ColumnMeta) -> Self {
        match (column.field_type, column.children.first()) {
            (FieldType::Jsonb, _) => Self::Document,
            (FieldType::Array, Some(item)) => Self::List(Box::new(Self::of(item))),
            _ => Self::Value,
        }
    }
}

/// Appends the value in `row`.
pub(crate) fn write_json(array: &ArrayRef, row: usize, shape: &JsonShape, out: &mut String) -> Result<()> {
    if array.is_null(row) {
        out.push_str("null");
        return Ok(());
    }
    match (shape, array.data_type()) {
        (JsonShape::Document, DataType::Utf8View) => out.push_str(array.as_string_view().value(row)),
        (_, DataType::Utf8View) => jsonb::write_string(array.as_string_view().value(row), out),
        (_, DataType::BinaryView) => jsonb::write_hex(array.as_binary_view().value(row), out),
        (_, DataType::Float64) => jsonb::write_float(array.as_primitive::<Float64Type>().value(row), out),
        (_, DataType::Float32) => jsonb::write_float32(array.as_primitive::<Float32Type>().value(row), out),
        (shape, DataType::List(_)) => {
            let items = array.as_list::<i32>().value(row);
            let shape = match shape {
                JsonShape::List(item) => item.as_ref(),
                other => other,
            };
            out.push('[');
            for item in 0..items.len() {
                if item > 0 {
                    out.push(',');
                }
                write_json(&items, item, shape, out)?;
            }
            out.push(']');
        }
        (_, data_type) => {
            let options = FormatOptions::default()
                .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
                .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"));
            let formatter = ArrayFormatter::try_new(array.as_ref(), &options)?;
            let text = formatter.value(row).try_to_string()?;
            match data_type {
                DataType::Boolean => out.push_str(&text),
                numeric if numeric.is_numeric() => out.push_str(&text),
                DataType::Date32 | DataType::Timestamp(..) => jsonb::write_string(&text, out),
                other => return Err(Error::unsupported(format!("a VARIANT with a column of {other}"))),
            }
        }
    }
    Ok(())
}
