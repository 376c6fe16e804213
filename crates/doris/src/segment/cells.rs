//! From stored cells to Arrow values.

use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Decimal256Type, DecimalType, TimestampMicrosecondType, TimestampSecondType,
};
use arrow_array::{ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, MutableBuffer, ScalarBuffer};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::numbers::number_array;
use pilaster_core::views::{ByteKind, view_array};
use pilaster_core::{Error, Limits, Result};

use super::column_meta::ColumnMeta;
use super::paged::VIEW_BYTES;
use super::types::{FieldType, Physical};
use crate::calendar;
use crate::decimal;
use crate::jsonb;

/// LARGEINT has up to 39 digits, one more than 128-bit decimals of Arrow may have.
const LARGEINT_DIGITS: u8 = 39;
const DECIMAL_V2: (u8, i8) = (27, 9);
/// DECIMAL v2 counts its fraction in billionths.
const DECIMAL_V2_UNIT: i128 = 1_000_000_000;

/// What the cells of a column are, and so how they become Arrow values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Bool,
    /// Numbers that Arrow holds in as many bytes.
    Number(DataType, usize),
    LargeInt,
    Date,
    DateV2,
    DateTime,
    DateTimeV2,
    TimestampTz,
    DecimalV2,
    Decimal {
        width: usize,
        precision: u8,
        scale: i8,
    },
    Ipv4,
    Ipv6,
    Text,
    /// Text filled up with zero bytes.
    Char,
    Bytes,
    /// Documents, given as JSON text.
    Jsonb,
}

impl Cell {
    /// The cells of a column that has pages of its own. `declared` are the digits the tablet's schema gives a decimal, for
    /// old files that do not say them.
    pub fn of(column: &ColumnMeta, declared: Option<(i32, i32)>) -> Result<Self> {
        let precision =
            column.precision.filter(|digits| *digits > 0).or(declared.map(|(precision, _)| precision));
        let scale = column
            .frac
            .filter(|_| column.precision.is_some_and(|digits| digits > 0))
            .or(declared.map(|(_, frac)| frac));
        Self::of_type(column.field_type, precision, scale)
    }

    /// The cells of a type.
    pub fn of_type(field_type: FieldType, precision: Option<i32>, scale: Option<i32>) -> Result<Self> {
        let number = |arrow: DataType| match field_type.physical() {
            Physical::Fixed(width) => Ok(Self::Number(arrow, width)),
            _ => Err(Error::internal(format!("{field_type} is no number"))),
        };
        Ok(match field_type {
            FieldType::Bool => Self::Bool,
            FieldType::TinyInt => number(DataType::Int8)?,
            FieldType::SmallInt => number(DataType::Int16)?,
            FieldType::Int => number(DataType::Int32)?,
            FieldType::BigInt => number(DataType::Int64)?,
            FieldType::UnsignedTinyInt => number(DataType::UInt8)?,
            FieldType::UnsignedSmallInt => number(DataType::UInt16)?,
            FieldType::UnsignedInt => number(DataType::UInt32)?,
            FieldType::UnsignedBigInt => number(DataType::UInt64)?,
            FieldType::Float => number(DataType::Float32)?,
            FieldType::Double => number(DataType::Float64)?,
            FieldType::LargeInt => Self::LargeInt,
            FieldType::Date => Self::Date,
            FieldType::DateV2 => Self::DateV2,
            FieldType::DateTime => Self::DateTime,
            FieldType::DateTimeV2 => Self::DateTimeV2,
            FieldType::TimestampTz => Self::TimestampTz,
            FieldType::Decimal => Self::DecimalV2,
            FieldType::Decimal32 => decimal_cell(4, 9, precision, scale)?,
            FieldType::Decimal64 => decimal_cell(8, 18, precision, scale)?,
            FieldType::Decimal128 => decimal_cell(16, 38, precision, scale)?,
            FieldType::Decimal256 => decimal_cell(32, 76, precision, scale)?,
            FieldType::Ipv4 => Self::Ipv4,
            FieldType::Ipv6 => Self::Ipv6,
            FieldType::Char => Self::Char,
            FieldType::Varchar | FieldType::String => Self::Text,
            FieldType::Jsonb => Self::Jsonb,
            FieldType::Hll
            | FieldType::Bitmap
            | FieldType::QuantileState
            | FieldType::AggState
            | FieldType::Variant => Self::Bytes,
            FieldType::Struct | FieldType::Array | FieldType::Map => {
                return Err(Error::internal(format!("{field_type} has no cells of its own")));
            }
        })
    }

    /// The Arrow type of the values.
    pub fn arrow(&self) -> DataType {
        match self {
            Self::Bool => DataType::Boolean,
            Self::Number(arrow, _) => arrow.clone(),
            Self::LargeInt => DataType::Decimal256(LARGEINT_DIGITS, 0),
            Self::Date | Self::DateV2 => DataType::Date32,
            Self::DateTime => DataType::Timestamp(TimeUnit::Second, None),
            Self::DateTimeV2 => DataType::Timestamp(TimeUnit::Microsecond, None),
            Self::TimestampTz => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            Self::DecimalV2 => DataType::Decimal128(DECIMAL_V2.0, DECIMAL_V2.1),
            Self::Decimal { width: 32, precision, scale } => DataType::Decimal256(*precision, *scale),
            Self::Decimal { precision, scale, .. } => DataType::Decimal128(*precision, *scale),
            Self::Ipv4 | Self::Ipv6 | Self::Text | Self::Char | Self::Jsonb => DataType::Utf8View,
            Self::Bytes => DataType::BinaryView,
        }
    }

    /// Bytes of a cell; `None` if cells have any number of bytes.
    pub fn width(&self) -> Option<usize> {
        match self {
            Self::Bool => Some(1),
            Self::Number(_, width) | Self::Decimal { width, .. } => Some(*width),
            Self::Date => Some(3),
            Self::DateV2 | Self::Ipv4 => Some(4),
            Self::DateTime | Self::DateTimeV2 | Self::TimestampTz => Some(8),
            Self::DecimalV2 => Some(12),
            Self::LargeInt | Self::Ipv6 => Some(16),
            Self::Text | Self::Char | Self::Bytes | Self::Jsonb => None,
        }
    }

    /// Bytes of a value in memory: of strings, of their views; of what is written as text, at most.
    pub fn value_bytes(&self) -> usize {
        const LONGEST_IPV4: usize = 15;
        const LONGEST_IPV6: usize = 39;
        match self {
            Self::Ipv4 => VIEW_BYTES.saturating_add(LONGEST_IPV4),
            Self::Ipv6 => VIEW_BYTES.saturating_add(LONGEST_IPV6),
            Self::Text | Self::Char | Self::Bytes | Self::Jsonb => VIEW_BYTES,
            _ => self.arrow().primitive_width().unwrap_or(1),
        }
    }

    /// Booleans out of a bitmap.
    pub fn bits_array(&self, bits: Vec<u8>, count: usize) -> Result<ArrayRef> {
        match self {
            Self::Bool => Ok(Arc::new(BooleanArray::new(BooleanBuffer::new(bits.into(), 0, count), None))),
            _ => Err(Error::corrupt(format!("cells of {}", self.arrow()), "single bits")),
        }
    }

    /// Cells of fixed width.
    pub fn fixed_array(&self, cells: MutableBuffer) -> Result<ArrayRef> {
        let width =
            self.width().ok_or_else(|| Error::corrupt("cells of any length", "cells of fixed width"))?;
        let count = cells.len().checked_div(width).unwrap_or_default();
        Ok(match self {
            Self::Bool => {
                let values =
                    BooleanBuffer::collect_bool(count, |at| cells.get(at).is_some_and(|byte| *byte != 0));
                Arc::new(BooleanArray::new(values, None))
            }
            Self::Number(arrow, _) => number_array(arrow, cells.into(), count, None)?,
            Self::Decimal { width: 32, precision, scale } => {
                let values = ScalarBuffer::new(cells.into(), 0, count);
                within_digits(PrimitiveArray::<Decimal256Type>::new(values, None), *precision, *scale)?
            }
            Self::Decimal { width: 16, precision, scale } => {
                let values = ScalarBuffer::new(cells.into(), 0, count);
                within_digits(PrimitiveArray::<Decimal128Type>::new(values, None), *precision, *scale)?
            }
            Self::LargeInt => {
                let wide = cells.as_chunks::<16>().0.iter().map(|cell| decimal::integer(cell));
                let array = PrimitiveArray::<Decimal256Type>::from_iter_values(wide);
                Arc::new(array.with_precision_and_scale(LARGEINT_DIGITS, 0)?)
            }
            Self::Decimal { width: 4, precision, scale } => {
                let cells = cells.as_chunks::<4>().0.iter();
                narrow_decimals(cells.map(|cell| i64::from(i32::from_le_bytes(*cell))), *precision, *scale)?
            }
            Self::Decimal { precision, scale, .. } => {
                let cells = cells.as_chunks::<8>().0.iter();
                narrow_decimals(cells.map(|cell| i64::from_le_bytes(*cell)), *precision, *scale)?
            }
            Self::DecimalV2 => {
                let wide = cells.as_chunks::<12>().0.iter().map(decimal_v2);
                decimals(wide, DECIMAL_V2.0, DECIMAL_V2.1)?
            }
            Self::Date => {
                let wide: Vec<_> = cells.as_chunks::<3>().0.iter().map(|[a, b, c]| [*a, *b, *c, 0]).collect();
                dates(calendar::all_packed_days(&wide)?)
            }
            Self::DateV2 => dates(calendar::all_packed_days(cells.as_chunks::<4>().0)?),
            Self::DateTime => converted::<TimestampSecondType, 8>(&cells, |cell| {
                calendar::digits_seconds(i64::from_le_bytes(cell))
            })?,
            Self::DateTimeV2 => converted::<TimestampMicrosecondType, 8>(&cells, |cell| {
                calendar::packed_micros(u64::from_le_bytes(cell))
            })?,
            Self::TimestampTz => {
                let plain = converted_array::<TimestampMicrosecondType, 8>(&cells, |cell| {
                    calendar::packed_micros(u64::from_le_bytes(cell))
                })?;
                Arc::new(plain.with_timezone("UTC"))
            }
            Self::Ipv4 => texts(cells.as_chunks::<4>().0, |cell, out| {
                // Writing into a string cannot fail.
                let _ = write!(out, "{}", Ipv4Addr::from_bits(u32::from_le_bytes(*cell)));
            })?,
            Self::Ipv6 => texts(cells.as_chunks::<16>().0, |cell, out| {
                let _ = write!(out, "{}", Ipv6Addr::from_bits(u128::from_le_bytes(*cell)));
            })?,
            Self::Text | Self::Char | Self::Bytes | Self::Jsonb => {
                return Err(Error::corrupt("cells of any length", "cells of fixed width"));
            }
        })
    }

    /// What cells of any length are, if their values are the bytes that are stored.
    pub fn stored_kind(&self) -> Option<ByteKind> {
        match self {
            Self::Text => Some(ByteKind::Text),
            Self::Bytes => Some(ByteKind::Binary),
            _ => None,
        }
    }

    /// Cells `bytes[offsets[i]..offsets[i + 1]]`.
    pub fn bytes_array(&self, bytes: Buffer, offsets: &[u32], limits: &Limits) -> Result<ArrayRef> {
        match self {
            Self::Text => view_array(ByteKind::Text, bytes, offsets, None),
            Self::Bytes => view_array(ByteKind::Binary, bytes, offsets, None),
            Self::Char => {
                let (bytes, offsets) = without_padding(&bytes, offsets);
                view_array(ByteKind::Text, bytes, &offsets, None)
            }
            Self::Jsonb => {
                let (mut text, mut ends) = (String::new(), vec![0]);
                for pair in offsets.windows(2) {
                    let &[start, end] = pair else { continue };
                    let document = bytes.get(start as usize..end as usize).unwrap_or_default();
                    jsonb::write_document(document, limits.depth, &mut text)?;
                    ends.push(text_end(&text, limits)?);
                }
                view_array(ByteKind::Text, text.into_bytes().into(), &ends, None)
            }
            other => Err(Error::corrupt(format!("cells of {}", other.arrow()), "cells of any length")),
        }
    }
}

fn decimal_cell(width: usize, most: u8, precision: Option<i32>, scale: Option<i32>) -> Result<Cell> {
    let precision = match precision.filter(|digits| *digits > 0) {
        None => most,
        Some(digits) => u8::try_from(digits)
            .ok()
            .filter(|digits| *digits <= most)
            .ok_or_else(|| Error::corrupt(format!("a precision of at most {most}"), digits))?,
    };
    let scale = scale.filter(|digits| *digits >= 0).unwrap_or(0);
    let scale = i8::try_from(scale)
        .ok()
        .filter(|scale| i16::from(*scale) <= i16::from(precision))
        .ok_or_else(|| Error::corrupt(format!("a scale of at most {precision}"), scale))?;
    Ok(Cell::Decimal { width, precision, scale })
}

/// Integer part and billionths, both of which carry the sign.
pub(crate) fn decimal_v2(cell: &[u8; 12]) -> i128 {
    let whole = cell.first_chunk::<8>().map_or(0, |bytes| i64::from_le_bytes(*bytes));
    let fraction = cell.last_chunk::<4>().map_or(0, |bytes| i32::from_le_bytes(*bytes));
    i128::from(whole).saturating_mul(DECIMAL_V2_UNIT).saturating_add(i128::from(fraction))
}

/// The stored form of a DECIMAL v2, if it has one.
pub(crate) fn decimal_v2_cell(value: i128) -> Option<[u8; 12]> {
    let whole = i64::try_from(value.checked_div(DECIMAL_V2_UNIT)?).ok()?;
    let fraction = i32::try_from(value.checked_rem(DECIMAL_V2_UNIT)?).ok()?;
    let mut cell = [0; 12];
    for (to, from) in cell.iter_mut().zip(whole.to_le_bytes().into_iter().chain(fraction.to_le_bytes())) {
        *to = from;
    }
    Some(cell)
}

fn decimals(values: impl Iterator<Item = i128>, precision: u8, scale: i8) -> Result<ArrayRef> {
    within_digits(PrimitiveArray::<Decimal128Type>::from_iter_values(values), precision, scale)
}

/// As [`decimals`]; digits are counted before values are made wide.
fn narrow_decimals(values: impl Iterator<Item = i64> + Clone, precision: u8, scale: i8) -> Result<ArrayRef> {
    let limit = 10i64.checked_pow(u32::from(precision)).unwrap_or(i64::MAX);
    let wide = values.clone().map(i128::from);
    let fit = values.fold(true, |fit, value| fit & (limit.saturating_neg() < value) & (value < limit));
    if !fit {
        return decimals(wide, precision, scale);
    }
    let array = PrimitiveArray::<Decimal128Type>::from_iter_values(wide);
    Ok(Arc::new(array.with_precision_and_scale(precision, scale)?))
}

fn dates(days: Vec<i32>) -> ArrayRef {
    Arc::new(PrimitiveArray::<Date32Type>::new(days.into(), None))
}

/// Refuses values with more digits than the type has: as text they would lose their first digits.
fn within_digits<T: DecimalType>(array: PrimitiveArray<T>, precision: u8, scale: i8) -> Result<ArrayRef> {
    let array = array.with_precision_and_scale(precision, scale)?;
    array
        .validate_decimal_precision(precision)
        .map_err(|error| Error::corrupt(format!("decimals of at most {precision} digits"), error))?;
    Ok(Arc::new(array))
}

fn converted_array<T: arrow_array::ArrowPrimitiveType, const W: usize>(
    cells: &[u8],
    convert: impl Fn([u8; W]) -> Result<T::Native>,
) -> Result<PrimitiveArray<T>> {
    let values = cells.as_chunks::<W>().0.iter().map(|cell| convert(*cell)).collect::<Result<Vec<_>>>()?;
    Ok(PrimitiveArray::new(values.into(), None))
}

fn converted<T: arrow_array::ArrowPrimitiveType, const W: usize>(
    cells: &[u8],
    convert: impl Fn([u8; W]) -> Result<T::Native>,
) -> Result<ArrayRef> {
    Ok(Arc::new(converted_array::<T, W>(cells, convert)?))
}

fn texts<C>(cells: &[C], write: impl Fn(&C, &mut String)) -> Result<ArrayRef> {
    let (mut text, mut ends) = (String::new(), Vec::with_capacity(cells.len().saturating_add(1)));
    ends.push(0);
    for cell in cells {
        write(cell, &mut text);
        ends.push(text_end(&text, &Limits { decoded_bytes: u64::from(u32::MAX), ..Limits::default() })?);
    }
    view_array(ByteKind::Text, text.into_bytes().into(), &ends, None)
}

fn text_end(text: &str, limits: &Limits) -> Result<u32> {
    let length = limits.decoded(text.len() as u64)?;
    u32::try_from(length).map_err(|_| Error::corrupt("at most 4 GiB of text in a page", length))
}

/// CHAR values without the zero bytes that fill them up.
fn without_padding(bytes: &[u8], offsets: &[u32]) -> (Buffer, Vec<u32>) {
    let (mut values, mut ends) = (Vec::with_capacity(bytes.len()), Vec::with_capacity(offsets.len()));
    ends.push(0);
    for pair in offsets.windows(2) {
        let &[start, end] = pair else { continue };
        let padded = bytes.get(start as usize..end as usize).unwrap_or_default();
        let length = padded.iter().rposition(|byte| *byte != 0).map_or(0, |last| last.saturating_add(1));
        values.extend_from_slice(padded.get(..length).unwrap_or_default());
        // Not longer than the bytes the offsets came from.
        ends.push(u32::try_from(values.len()).unwrap_or(u32::MAX));
    }
    (values.into(), ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;

    fn fixed(cell: &Cell, bytes: &[u8]) -> ArrayRef {
        let mut buffer = MutableBuffer::new(bytes.len());
        buffer.extend_from_slice(bytes);
        cell.fixed_array(buffer).unwrap()
    }

    #[test]
    fn decimal_v2_carries_the_sign_twice() {
        let cell = decimal_v2_cell(-123_456_789_012).unwrap();
        assert_eq!(cell[..8], (-123i64).to_le_bytes());
        let array = fixed(&Cell::DecimalV2, &cell);
        assert_eq!(array.as_primitive::<Decimal128Type>().value(0), -123_456_789_012);
    }

    #[test]
    fn addresses_are_text() {
        assert_eq!(fixed(&Cell::Ipv4, &[4, 3, 2, 1]).as_string_view().value(0), "1.2.3.4");
        let mut one = [0; 16];
        one[0] = 1;
        assert_eq!(fixed(&Cell::Ipv6, &one).as_string_view().value(0), "::1");
    }

    #[test]
    fn the_largest_largeint_fits() {
        let array = fixed(&Cell::LargeInt, &i128::MIN.to_le_bytes());
        assert_eq!(array.as_primitive::<Decimal256Type>().value_as_string(0), i128::MIN.to_string());
    }

    #[test]
    fn padding_is_taken_off_the_end_only() {
        let array = Cell::Char
            .bytes_array(b"a\0b\0\0\0\0\0".to_vec().into(), &[0, 5, 8], &Limits::default())
            .unwrap();
        assert_eq!(array.as_string_view().iter().flatten().collect::<Vec<_>>(), ["a\0b", ""]);
    }
}
