//! Whole rows as JSONB: an object whose keys are the unique ids of the columns.

use std::borrow::Cow;

use arrow_array::ArrayRef;
use pilaster_core::{Error, Result};

use super::plan::ColumnPlan;
use super::row_store_nested::nested_values;
use super::values::{MadeBytes, Values};
use crate::jsonb::{self, Container};
use crate::schema::{ROW_STORE_COLUMN, TabletSchema};
use crate::segment::cells::{Cell, decimal_v2};
use crate::segment::types::FieldType;

const NULL: u8 = 0;
const INT8: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 9;
const INT128: u8 = 12;
const FLOAT: u8 = 13;

/// Makes the cells of the row store.
#[derive(Debug)]
pub(super) struct RowStore {
    /// Numbers of the columns in the schema, their key ids and types.
    columns: Vec<(usize, u16, FieldType)>,
}

impl RowStore {
    /// `None` if the schema has no row store.
    pub fn new(schema: &TabletSchema, plans: &[ColumnPlan]) -> Result<Option<Self>> {
        if !schema.columns.iter().any(|column| column.name == ROW_STORE_COLUMN) {
            return Ok(None);
        }
        let chosen = &schema.row_store_column_unique_ids;
        let mut columns = Vec::new();
        for (number, plan) in plans.iter().enumerate().filter(|(_, plan)| plan.name != ROW_STORE_COLUMN) {
            if !chosen.is_empty() && !chosen.contains(&plan.unique_id) {
                continue;
            }
            let id = u16::try_from(plan.unique_id).map_err(|_| {
                Error::invalid(format!("unique id {} is no key of the row store", plan.unique_id))
            })?;
            columns.push((number, id, plan.field_type));
        }
        Ok(Some(Self { columns }))
    }

    /// The cells of a batch; `values` are those of the columns of the schema.
    pub fn make(&self, values: &[Option<Values>], rows: usize) -> Result<MadeBytes> {
        for (number, _, field_type) in &self.columns {
            if values.get(*number).is_none_or(Option::is_none) {
                return Err(Error::unsupported(format!(
                    "a row store with a column of type {field_type}: give the column {ROW_STORE_COLUMN} itself"
                )));
            }
        }
        let mut made = MadeBytes::default();
        for row in 0..rows {
            made.bytes.push(jsonb::VERSION);
            let object = Container::object(&mut made.bytes);
            for (number, id, field_type) in &self.columns {
                jsonb::append_key_id(*id, &mut made.bytes);
                if let Some(values) = values.get(*number).and_then(Option::as_ref) {
                    append(*field_type, values, row, &mut made.bytes)?;
                }
            }
            object.end(&mut made.bytes)?;
            made.end_value();
        }
        Ok(made)
    }
}

fn append(field_type: FieldType, values: &Values, row: usize, out: &mut Vec<u8>) -> Result<()> {
    if values.is_null(row) {
        out.push(NULL);
        return Ok(());
    }
    let cell = in_memory(field_type, values.cell(row));
    let kind = match field_type {
        FieldType::Bool | FieldType::TinyInt => INT8,
        FieldType::SmallInt => INT16,
        FieldType::Int | FieldType::DateV2 | FieldType::Ipv4 | FieldType::Decimal32 => INT32,
        FieldType::BigInt
        | FieldType::DateTimeV2
        | FieldType::TimestampTz
        | FieldType::Decimal64
        | FieldType::Date
        | FieldType::DateTime => INT64,
        FieldType::LargeInt | FieldType::Decimal128 | FieldType::Decimal => INT128,
        FieldType::Float => FLOAT,
        FieldType::Double => DOUBLE,
        _ => return jsonb::append_sized(BINARY, &cell, out),
    };
    out.push(kind);
    out.extend_from_slice(&cell);
    Ok(())
}

/// A stored cell as Doris has it in memory.
pub(super) fn in_memory(field_type: FieldType, cell: &[u8]) -> Cow<'_, [u8]> {
    match field_type {
        FieldType::Decimal => {
            let value = cell.first_chunk::<12>().map_or(0, decimal_v2);
            Cow::Owned(value.to_le_bytes().to_vec())
        }
        FieldType::Date => {
            let packed = cell.iter().rev().fold(0u32, |packed, byte| packed << 8 | u32::from(*byte));
            Cow::Owned(old_date(packed >> 9, packed >> 5 & 0xf, packed & 0x1f, 0, 2).to_vec())
        }
        FieldType::DateTime => {
            let digits = cell.first_chunk().map_or(0, |eight| i64::from_le_bytes(*eight));
            let part = |divisor: i64, modulus: i64| {
                let part = digits.checked_div(divisor).and_then(|rest| rest.checked_rem(modulus));
                u32::try_from(part.unwrap_or_default()).unwrap_or_default()
            };
            let year = part(10_000_000_000, 10_000);
            let time = part(1, 1_000_000);
            Cow::Owned(old_date(year, part(100_000_000, 100), part(1_000_000, 100), time, 3).to_vec())
        }
        FieldType::Char => {
            let end = cell.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
            Cow::Borrowed(cell.get(..end).unwrap_or_default())
        }
        _ => Cow::Borrowed(cell),
    }
}

/// Dates of the first kind as they lie in memory: `u16 (second << 4 | type << 1), u8 minute, u8 hour, u8 day, u8 month, u16
/// year`. `time` is in digits, hhmmss.
fn old_date(year: u32, month: u32, day: u32, time: u32, kind: u16) -> [u8; 8] {
    let byte = |value: u32| u8::try_from(value).unwrap_or_default();
    let second = u16::try_from(time % 100).unwrap_or_default();
    let [a, b] = (second << 4 | kind << 1).to_le_bytes();
    let [c, d] = u16::try_from(year).unwrap_or_default().to_le_bytes();
    [a, b, byte(time / 100 % 100), byte(time / 10_000), byte(day), byte(month), c, d]
}

/// What a column without cells of its own puts into the row store; `None` for all others.
pub(super) fn lent_values(array: &ArrayRef, plan: &ColumnPlan) -> Result<Option<Values>> {
    match plan.field_type {
        FieldType::Variant => Values::new(array, &Cell::Jsonb, plan.length).map(Some),
        FieldType::Array | FieldType::Map | FieldType::Struct => nested_values(array, plan).map(Some),
        _ => Ok(None),
    }
}
