//! Arrow values as physical ones.

use std::borrow::Cow;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, IntervalDayTimeType,
    IntervalMonthDayNanoType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeBinaryArray, GenericByteArray, GenericByteViewArray,
};
use arrow_buffer::{ArrowNativeType, i256};
use arrow_schema::{DataType, IntervalUnit};
use pilaster_core::{Error, Result};

use crate::metadata::PhysicalType;
use crate::schema::decimal_bytes;

/// The values of a column, none of them null.
pub(super) enum Values<'a> {
    /// Values that are always null.
    Nothing,
    Bits(&'a BooleanArray),
    Words(Cow<'a, [u32]>),
    Longs(Cow<'a, [u64]>),
    Wide(Vec<i128>),
    Text(ByteStrings<'a>),
}

/// Byte strings in any of Arrow's forms.
pub(super) enum ByteStrings<'a> {
    Small(&'a GenericByteArray<arrow_array::types::BinaryType>),
    SmallText(&'a GenericByteArray<arrow_array::types::Utf8Type>),
    Large(&'a GenericByteArray<arrow_array::types::LargeBinaryType>),
    LargeText(&'a GenericByteArray<arrow_array::types::LargeUtf8Type>),
    View(&'a GenericByteViewArray<arrow_array::types::BinaryViewType>),
    TextView(&'a GenericByteViewArray<arrow_array::types::StringViewType>),
    Fixed(&'a FixedSizeBinaryArray),
    Owned(Vec<Vec<u8>>),
}

/// The bits of a primitive array's values, where they are.
fn borrowed<T: ArrowPrimitiveType, N: ArrowNativeType>(array: &ArrayRef) -> Cow<'_, [N]> {
    Cow::Borrowed(array.as_primitive::<T>().values().inner().typed_data())
}

/// A copy of the bits of a fixed-width array's values.
fn native<T: ArrowNativeType>(array: &dyn Array) -> Result<Vec<T>> {
    let data = array.to_data();
    let buffer = data.buffers().first().ok_or_else(|| Error::internal("an array without values"))?;
    let end = data.offset().saturating_add(data.len());
    let values = buffer.typed_data::<T>().get(data.offset()..end);
    Ok(values.ok_or_else(|| Error::internal("an array with too few values"))?.to_vec())
}

/// The values of `array`, which is dense, in the physical type of its column.
pub(super) fn physical<'a>(array: &'a ArrayRef, physical: PhysicalType) -> Result<Values<'a>> {
    let array_ref: &dyn Array = array.as_ref();
    let words = |values: Vec<i32>| {
        Ok(Values::Words(Cow::Owned(values.into_iter().map(i32::cast_unsigned).collect())))
    };
    match array.data_type() {
        DataType::Null => Ok(Values::Nothing),
        DataType::Boolean => Ok(Values::Bits(array.as_boolean())),
        DataType::Int8 => {
            words(array.as_primitive::<Int8Type>().values().iter().map(|v| i32::from(*v)).collect())
        }
        DataType::Int16 => {
            words(array.as_primitive::<Int16Type>().values().iter().map(|v| i32::from(*v)).collect())
        }
        DataType::UInt8 => {
            words(array.as_primitive::<UInt8Type>().values().iter().map(|v| i32::from(*v)).collect())
        }
        DataType::UInt16 => {
            words(array.as_primitive::<UInt16Type>().values().iter().map(|v| i32::from(*v)).collect())
        }
        DataType::Float16 => words(native::<u16>(array_ref)?.into_iter().map(i32::from).collect()),
        DataType::Int32 => Ok(Values::Words(borrowed::<Int32Type, u32>(array))),
        DataType::UInt32 => Ok(Values::Words(borrowed::<UInt32Type, u32>(array))),
        DataType::Float32 => Ok(Values::Words(borrowed::<Float32Type, u32>(array))),
        DataType::Date32 => Ok(Values::Words(borrowed::<Date32Type, u32>(array))),
        DataType::Time32(_) | DataType::Interval(IntervalUnit::YearMonth) => {
            Ok(Values::Words(Cow::Owned(native(array_ref)?)))
        }
        DataType::Int64 => Ok(Values::Longs(borrowed::<Int64Type, u64>(array))),
        DataType::UInt64 => Ok(Values::Longs(borrowed::<UInt64Type, u64>(array))),
        DataType::Float64 => Ok(Values::Longs(borrowed::<Float64Type, u64>(array))),
        DataType::Date64 | DataType::Time64(_) | DataType::Timestamp(..) | DataType::Duration(_) => {
            Ok(Values::Longs(Cow::Owned(native(array_ref)?)))
        }
        DataType::Interval(IntervalUnit::DayTime) => {
            let joined = array.as_primitive::<IntervalDayTimeType>().values().iter().map(|value| {
                let [a, b, c, d] = value.days.to_le_bytes();
                let [e, f, g, h] = value.milliseconds.to_le_bytes();
                u64::from_le_bytes([a, b, c, d, e, f, g, h])
            });
            Ok(Values::Longs(joined.collect()))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let bytes = array.as_primitive::<IntervalMonthDayNanoType>().values().iter().map(|value| {
                let mut bytes = value.months.to_le_bytes().to_vec();
                bytes.extend(value.days.to_le_bytes());
                bytes.extend(value.nanoseconds.to_le_bytes());
                bytes
            });
            Ok(Values::Text(ByteStrings::Owned(bytes.collect())))
        }
        DataType::Utf8 => Ok(Values::Text(ByteStrings::SmallText(array.as_string()))),
        DataType::LargeUtf8 => Ok(Values::Text(ByteStrings::LargeText(array.as_string()))),
        DataType::Utf8View => Ok(Values::Text(ByteStrings::TextView(array.as_string_view()))),
        DataType::Binary => Ok(Values::Text(ByteStrings::Small(array.as_binary()))),
        DataType::LargeBinary => Ok(Values::Text(ByteStrings::Large(array.as_binary()))),
        DataType::BinaryView => Ok(Values::Text(ByteStrings::View(array.as_binary_view()))),
        DataType::FixedSizeBinary(_) => Ok(Values::Text(ByteStrings::Fixed(array.as_fixed_size_binary()))),
        DataType::Decimal32(..) => {
            let values = array.as_primitive::<Decimal32Type>().values();
            decimals(values.iter().map(|value| i128::from(*value)), physical)
        }
        DataType::Decimal64(..) => {
            let values = array.as_primitive::<Decimal64Type>().values();
            decimals(values.iter().map(|value| i128::from(*value)), physical)
        }
        DataType::Decimal128(..) => {
            let values = array.as_primitive::<Decimal128Type>().values();
            decimals(values.iter().copied(), physical)
        }
        DataType::Decimal256(..) => wide_decimals(array.as_primitive::<Decimal256Type>().values(), physical),
        other => Err(Error::invalid(format!("{other} is no type of a column"))),
    }
}

fn too_large(value: impl std::fmt::Display, physical: PhysicalType) -> Error {
    Error::invalid(format!("the decimal {value} does not fit {physical}, which its precision asks for"))
}

/// The lower 64 bits of a number, and whether they are all of it.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "whether anything is lost is told")]
fn low_half(value: i128) -> (u64, bool) {
    let long = value as i64;
    (long.cast_unsigned(), i128::from(long) == value)
}

fn decimals<'a>(values: impl Iterator<Item = i128>, physical: PhysicalType) -> Result<Values<'a>> {
    match physical {
        PhysicalType::Int32 => {
            let narrow = |value: i128| i32::try_from(value).map_err(|_| too_large(value, physical));
            Ok(Values::Words(
                values.map(|value| narrow(value).map(i32::cast_unsigned)).collect::<Result<_>>()?,
            ))
        }
        PhysicalType::Int64 => {
            // One check at the end, so that the loop has no exits.
            let mut beyond = None;
            let longs = values.map(|value| {
                let (long, fits) = low_half(value);
                if !fits {
                    beyond = Some(value);
                }
                long
            });
            let longs: Cow<'_, [u64]> = longs.collect();
            beyond.map_or(Ok(Values::Longs(longs)), |value| Err(too_large(value, physical)))
        }
        PhysicalType::Int96 => {
            let fits = |value: i128| {
                let is_inside = (value << 32) >> 32 == value;
                if is_inside { Ok(value) } else { Err(too_large(value, physical)) }
            };
            Ok(Values::Wide(values.map(fits).collect::<Result<_>>()?))
        }
        _ => {
            let bytes = values.map(|value| decimal_bytes(&value.to_be_bytes()).to_vec());
            Ok(Values::Text(ByteStrings::Owned(bytes.collect())))
        }
    }
}

fn wide_decimals<'a>(values: &[i256], physical: PhysicalType) -> Result<Values<'a>> {
    if physical == PhysicalType::ByteArray {
        let bytes = values.iter().map(|value| decimal_bytes(&value.to_be_bytes()).to_vec());
        return Ok(Values::Text(ByteStrings::Owned(bytes.collect())));
    }
    let narrow = |value: &i256| value.to_i128().ok_or_else(|| too_large(value, physical));
    decimals(values.iter().map(narrow).collect::<Result<Vec<_>>>()?.into_iter(), physical)
}
