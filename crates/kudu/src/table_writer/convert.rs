//! Arrays → the types of the table's columns. Nothing is rounded, cut or made null: what does not fit is an error.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, TimestampNanosecondType,
};
use arrow_array::{Array, ArrayRef, ListArray, UInt32Array};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, FieldRef, TimeUnit};
use arrow_select::take::take;
use pilaster_core::{Error, Result};

use super::columns::{TableColumn, place};
use crate::cfile::KuduType;

const MILLIS_OF_DAY: i64 = 86_400_000;
/// 0001-01-01 to 9999-12-31 in days since 1970: the dates Kudu has.
const FIRST_DAY: i64 = -719_162;
const LAST_DAY: i64 = 2_932_896;

/// The values of a column of a batch as the table holds them; `first_row` is the number of the first one, for errors.
pub(super) fn convert(
    array: &ArrayRef,
    column: &TableColumn,
    max_cell_bytes: usize,
    first_row: u64,
) -> Result<ArrayRef> {
    let converted = match column.field.data_type() {
        DataType::List(element) => convert_lists(array, element, column),
        working => convert_values(array, working, column, max_cell_bytes).and_then(|array| own(&array)),
    };
    let converted = converted.map_err(|error| error.at(&place(&column.column.name), 0, ""))?;
    if let Some(nulls) = converted.logical_nulls().filter(|_| !column.column.is_nullable)
        && let Some(row) = (0..nulls.len()).find(|row| nulls.is_null(*row))
    {
        let what = if column.column.is_key { "is part of the primary key" } else { "has no nulls" };
        let message =
            format!("the column {what}, but row {} is null there", first_row.saturating_add(row as u64));
        return Err(Error::invalid(message).at(&place(&column.column.name), 0, ""));
    }
    Ok(converted)
}

fn convert_lists(array: &ArrayRef, element: &FieldRef, column: &TableColumn) -> Result<ArrayRef> {
    // Elements that no row shows must not be looked at.
    let lists = cast(&whole(array)?, &DataType::new_list(element_type(array.data_type()), true))?;
    let lists = lists.as_list::<i32>();
    let elements = convert_values(lists.values(), element.data_type(), column, usize::MAX)?;
    let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
    Ok(Arc::new(ListArray::try_new(Arc::clone(element), offsets, elements, nulls)?))
}

fn element_type(list: &DataType) -> DataType {
    match list {
        DataType::List(element) | DataType::LargeList(element) | DataType::FixedSizeList(element, _) => {
            element.data_type().clone()
        }
        other => other.clone(),
    }
}

/// A cast that fails rather than make a value null.
fn cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if array.data_type() == to {
        return Ok(Arc::clone(array));
    }
    let options = CastOptions { safe: false, ..CastOptions::default() };
    cast_with_options(array, to, &options).map_err(|error| Error::invalid(error.to_string()))
}

fn convert_values(
    array: &ArrayRef,
    working: &DataType,
    column: &TableColumn,
    max_cell_bytes: usize,
) -> Result<ArrayRef> {
    let array = match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values)?,
        _ => Arc::clone(array),
    };
    check_before(&array, working)?;
    let is_integer = working.is_integer();
    let array = match array.data_type() {
        // Clocks and calendars become the integers they are stored as.
        DataType::Time32(_) | DataType::Date32 if is_integer => cast(&array, &DataType::Int32)?,
        DataType::Time64(_) | DataType::Duration(_) | DataType::Timestamp(..) | DataType::Date64
            if is_integer =>
        {
            cast(&array, &DataType::Int64)?
        }
        _ => array,
    };
    let array = cast(&array, working)?;
    check_after(&array, column, max_cell_bytes)?;
    Ok(array)
}

/// What a cast would lose.
fn check_before(array: &ArrayRef, working: &DataType) -> Result<()> {
    match (array.data_type(), working) {
        (DataType::Timestamp(TimeUnit::Nanosecond, _), DataType::Timestamp(TimeUnit::Microsecond, _)) => {
            let lost =
                array.as_primitive::<TimestampNanosecondType>().iter().flatten().find(|t| t % 1000 != 0);
            lost.map_or(Ok(()), |time| {
                Err(Error::invalid(format!(
                    "a time of {time} nanoseconds is not a whole number of microseconds"
                )))
            })
        }
        (DataType::Date64, DataType::Date32) => {
            let days = FIRST_DAY.saturating_mul(MILLIS_OF_DAY)..=LAST_DAY.saturating_mul(MILLIS_OF_DAY);
            let lost = array
                .as_primitive::<Date64Type>()
                .iter()
                .flatten()
                .find(|time| time % MILLIS_OF_DAY != 0 || !days.contains(time));
            lost.map_or(Ok(()), |time| {
                Err(Error::invalid(format!("a date of {time} milliseconds is no day of the years 1 to 9999")))
            })
        }
        _ => Ok(()),
    }
}

/// What Kudu would not take.
fn check_after(array: &ArrayRef, column: &TableColumn, max_cell_bytes: usize) -> Result<()> {
    let precision = column.column.precision;
    match array.data_type() {
        DataType::Date32 if column.column.data_type == KuduType::Date => {
            let days = FIRST_DAY..=LAST_DAY;
            let mut found = array.as_primitive::<Date32Type>().iter().flatten();
            found.find(|day| !days.contains(&i64::from(*day))).map_or(Ok(()), |day| {
                Err(Error::invalid(format!("day {day} since 1970 is not in the years 1 to 9999")))
            })
        }
        DataType::Decimal32(..) => {
            Ok(array.as_primitive::<Decimal32Type>().validate_decimal_precision(precision)?)
        }
        DataType::Decimal64(..) => {
            Ok(array.as_primitive::<Decimal64Type>().validate_decimal_precision(precision)?)
        }
        DataType::Decimal128(..) => {
            Ok(array.as_primitive::<Decimal128Type>().validate_decimal_precision(precision)?)
        }
        DataType::LargeUtf8 => {
            let texts = array.as_string::<i64>();
            check_lengths(texts.value_offsets(), max_cell_bytes)?;
            let Some(most) = column.varchar_length.map(usize::from) else { return Ok(()) };
            // A text of few bytes has few characters.
            let long = texts.iter().flatten().find(|text| text.len() > most && text.chars().count() > most);
            long.map_or(Ok(()), |text| {
                let count = text.chars().count();
                Err(Error::invalid(format!("a text of {count} characters in a VARCHAR of {most}: {text:?}")))
            })
        }
        DataType::LargeBinary => check_lengths(array.as_binary::<i64>().value_offsets(), max_cell_bytes),
        _ => Ok(()),
    }
}

fn check_lengths(offsets: &[i64], most: usize) -> Result<()> {
    let lengths = offsets.windows(2).map(|pair| match pair {
        [start, end] => usize::try_from(end.saturating_sub(*start)).unwrap_or_default(),
        _ => 0,
    });
    match lengths.max().filter(|length| *length > most) {
        Some(length) => {
            Err(Error::invalid(format!("a cell of {length} bytes; servers take at most {most} by default")))
        }
        None => Ok(()),
    }
}

/// The array without what other arrays share with it and other rows left in its buffers: what is kept in memory is then
/// what is counted.
fn own(array: &ArrayRef) -> Result<ArrayRef> {
    let used = memory_bytes(array);
    if array.get_buffer_memory_size() <= used.saturating_mul(2).saturating_add(4096) {
        return Ok(Arc::clone(array));
    }
    whole(array)
}

/// A copy of all rows, with nothing else in its buffers.
fn whole(array: &ArrayRef) -> Result<ArrayRef> {
    let rows =
        u32::try_from(array.len()).map_err(|_| Error::invalid("a batch of more than 4 billion rows"))?;
    Ok(take(array, &UInt32Array::from_iter_values(0..rows), None)?)
}

/// Bytes of the rows of an array.
pub(super) fn memory_bytes(array: &ArrayRef) -> usize {
    array.to_data().get_slice_memory_size().unwrap_or_else(|_| array.get_buffer_memory_size())
}
