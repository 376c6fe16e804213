//! The values of one path of a VARIANT, as an array.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder};
use pilaster_core::{Error, Result};

use super::values::JSON_DEPTH;
use super::variant_parts::{Item, value_of};
use crate::jsonb::{self, Value};
use crate::segment::types::FieldType;

/// The values of a path as an array of the type chosen for it.
pub(super) fn path_array(
    (field_type, item): (FieldType, Option<Item>),
    values: &[(usize, Vec<u8>)],
    rows: usize,
) -> Result<ArrayRef> {
    let mut values = values.iter().peekable();
    let mut next = |row: usize| -> Result<Option<(Value<'_>, &[u8])>> {
        match values.next_if(|(at, _)| *at == row) {
            Some((_, bytes)) => Ok(Some((value_of(bytes)?, bytes.as_slice()))),
            None => Ok(None),
        }
    };
    macro_rules! build {
        ($builder:expr, $convert:expr) => {{
            let mut builder = $builder;
            for row in 0..rows {
                builder.append_option(next(row)?.map(|(value, _)| $convert(value)).transpose()?);
            }
            Ok(Arc::new(builder.finish()))
        }};
    }
    macro_rules! build_lists {
        ($builder:expr, $convert:expr) => {{
            let mut builder = ListBuilder::new($builder);
            for row in 0..rows {
                let Some((value, _)) = next(row)? else {
                    builder.append_null();
                    continue;
                };
                let Value::Array(mut items) = value else { return Err(misfit(value)) };
                while !items.is_empty() {
                    let (item, _) = items.value()?;
                    let item = if matches!(item, Value::Null) { None } else { Some($convert(item)?) };
                    builder.values().append_option(item);
                }
                builder.append(true);
            }
            Ok(Arc::new(builder.finish()))
        }};
    }
    match (field_type, item) {
        (FieldType::BigInt, _) => build!(Int64Builder::new(), integer),
        (FieldType::Double, _) => build!(Float64Builder::new(), double),
        (FieldType::Bool, _) => build!(BooleanBuilder::new(), boolean),
        (FieldType::String, _) => build!(StringBuilder::new(), text),
        (FieldType::Array, Some(Item::BigInt)) => build_lists!(Int64Builder::new(), integer),
        (FieldType::Array, Some(Item::Double)) => build_lists!(Float64Builder::new(), double),
        (FieldType::Array, Some(Item::Bool)) => build_lists!(BooleanBuilder::new(), boolean),
        (FieldType::Array, Some(Item::Text)) => build_lists!(StringBuilder::new(), text),
        (FieldType::Jsonb, _) => {
            let mut builder = StringBuilder::new();
            for row in 0..rows {
                match next(row)? {
                    None => builder.append_null(),
                    Some((_, bytes)) => {
                        let mut json = String::new();
                        jsonb::write_value(&mut jsonb::bare(bytes), JSON_DEPTH, &mut json)?;
                        builder.append_value(json);
                    }
                }
            }
            Ok(Arc::new(builder.finish()))
        }
        (other, _) => Err(Error::unsupported(format!("a path of type {other}"))),
    }
}

fn misfit(value: Value<'_>) -> Error {
    Error::invalid(format!("{value:?} does not fit the type chosen for the path"))
}

fn integer(value: Value<'_>) -> Result<i64> {
    match value {
        Value::Integer(integer) => i64::try_from(integer).map_err(|_| misfit(value)),
        other => Err(misfit(other)),
    }
}

fn double(value: Value<'_>) -> Result<f64> {
    match value {
        Value::Double(double) => Ok(double),
        other => Err(misfit(other)),
    }
}

fn boolean(value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => Err(misfit(other)),
    }
}

fn text(value: Value<'_>) -> Result<&str> {
    match value {
        Value::String(bytes) => std::str::from_utf8(bytes).map_err(|_| misfit(value)),
        other => Err(misfit(other)),
    }
}
