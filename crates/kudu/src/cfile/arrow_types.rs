//! Kudu types as Arrow types, and back.
//!
//! | Kudu | Arrow by default | may also be read as |
//! | --- | --- | --- |
//! | INT8 … INT64 | Int8 … Int64 | any integer (bits are kept), date, time, timestamp, duration or decimal of that width; wider decimals |
//! | UINT8 … UINT64 | UInt8 … UInt64 | the same, but of decimals only wider ones |
//! | INT128 | Decimal256(39, 0) | Decimal128 |
//! | FLOAT, DOUBLE | Float32, Float64 | |
//! | BOOL | Boolean | |
//! | STRING, VARCHAR | Utf8View | Utf8, LargeUtf8, all binary types, dictionaries of them |
//! | BINARY | BinaryView | Binary, LargeBinary, FixedSizeBinary, all text types, dictionaries of them |
//! | UNIXTIME_MICROS | Timestamp(µs, UTC) | Int64, timestamps without a zone |
//! | DATE | Date32 | Int32 |
//! | DECIMAL32, 64, 128 | Decimal128(9, 0), Decimal128(18, 0), Decimal128(38, 0) | the decimal with the table's precision and scale, of any width that holds it |
//! | array of T | List of T | LargeList |
//!
//! A CFile does not know precision and scale, nor whether bytes are text: the table's schema does. Decimals of 32 and 64 bits are
//! made wider on the way out, because query engines compute with Arrow's narrow decimals as if they were integers.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_cast::{CastOptions, can_cast_types, cast_with_options};
use arrow_schema::{DECIMAL128_MAX_PRECISION, DataType, Field, TimeUnit};
use pilaster_core::views::ByteKind;
use pilaster_core::{Error, Limits, Result, fitting};

use super::types::{KuduType, Physical};

/// Digits of the largest 128-bit integer.
const INT128_DIGITS: u8 = 39;
/// Name of the field of list elements, as Arrow has it by default.
const ELEMENT: &str = "item";

/// The Arrow type of a cell when nobody asks for another.
pub fn natural_type(data_type: KuduType) -> DataType {
    match data_type {
        KuduType::UInt8 => DataType::UInt8,
        KuduType::Int8 => DataType::Int8,
        KuduType::UInt16 => DataType::UInt16,
        KuduType::Int16 => DataType::Int16,
        KuduType::UInt32 => DataType::UInt32,
        KuduType::Int32 => DataType::Int32,
        KuduType::UInt64 => DataType::UInt64,
        KuduType::Int64 => DataType::Int64,
        KuduType::String | KuduType::Varchar => DataType::Utf8View,
        KuduType::Bool => DataType::Boolean,
        KuduType::Float => DataType::Float32,
        KuduType::Double => DataType::Float64,
        KuduType::Binary => DataType::BinaryView,
        KuduType::UnixtimeMicros => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        KuduType::Int128 => DataType::Decimal256(INT128_DIGITS, 0),
        KuduType::Decimal32 => DataType::Decimal128(9, 0),
        KuduType::Decimal64 => DataType::Decimal128(18, 0),
        KuduType::Decimal128 => DataType::Decimal128(38, 0),
        KuduType::Date => DataType::Date32,
    }
}

/// The Arrow type of a column of arrays of `data_type`.
pub(crate) fn natural_list(data_type: KuduType) -> DataType {
    DataType::List(Arc::new(Field::new(ELEMENT, natural_type(data_type), true)))
}

/// The Kudu type a value of an Arrow type is written as.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is none.
pub fn kudu_type(data_type: &DataType) -> Result<KuduType> {
    Ok(match data_type {
        DataType::Boolean => KuduType::Bool,
        DataType::Int8 => KuduType::Int8,
        DataType::Int16 | DataType::Float16 => KuduType::Int16,
        DataType::Int32 | DataType::Time32(_) => KuduType::Int32,
        DataType::Int64 | DataType::Time64(_) | DataType::Duration(_) | DataType::Date64 => KuduType::Int64,
        DataType::UInt8 => KuduType::UInt8,
        DataType::UInt16 => KuduType::UInt16,
        DataType::UInt32 => KuduType::UInt32,
        DataType::UInt64 => KuduType::UInt64,
        DataType::Float32 => KuduType::Float,
        DataType::Float64 => KuduType::Double,
        DataType::Timestamp(TimeUnit::Microsecond, _) => KuduType::UnixtimeMicros,
        DataType::Timestamp(..) => KuduType::Int64,
        DataType::Date32 => KuduType::Date,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => KuduType::String,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            KuduType::Binary
        }
        DataType::Decimal256(INT128_DIGITS, 0) => KuduType::Int128,
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _)
        | DataType::Decimal256(precision @ ..=DECIMAL128_MAX_PRECISION, _) => match precision {
            0..=9 => KuduType::Decimal32,
            10..=18 => KuduType::Decimal64,
            _ => KuduType::Decimal128,
        },
        DataType::Dictionary(_, values) => kudu_type(values)?,
        DataType::List(element) | DataType::LargeList(element) => kudu_type(element.data_type())?,
        other => return Err(Error::invalid(format!("Arrow type {other} has no CFile form"))),
    })
}

/// How decoded values become the Arrow type that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// The Arrow type that comes out.
    pub arrow: DataType,
    /// The type decoding gives; cheap to reach from the bytes.
    pub decoded: DataType,
    /// Integers become decimals of more bits before anything else.
    widened: Option<DataType>,
    /// Whether stored integers have no sign.
    pub is_unsigned: bool,
    /// Digits that a decimal may have that was asked for, if stored numbers can have more: a CFile does not know them.
    pub most_digits: Option<u8>,
}

impl Target {
    /// The way from values of `data_type` to `wanted`, or to the natural type.
    pub fn new(data_type: KuduType, wanted: Option<&DataType>) -> Result<Self> {
        let natural = natural_type(data_type);
        let is_asked_for = wanted.is_some();
        let wanted = wanted.unwrap_or(&natural).clone();
        let refuse =
            || Error::invalid(format!("values of type {data_type} cannot be read as Arrow type {wanted}"));
        if let DataType::Dictionary(_, values) = &wanted {
            let way = Self::new(data_type, Some(values))?;
            let before = way.widened.as_ref().unwrap_or(&way.decoded);
            return if can_cast_types(before, &wanted) {
                Ok(Self { arrow: wanted, ..way })
            } else {
                Err(refuse())
            };
        }
        let is_unsigned = data_type.is_unsigned();
        let direct = |decoded: DataType| Self {
            arrow: decoded.clone(),
            decoded,
            widened: None,
            is_unsigned,
            most_digits: None,
        };
        match data_type.physical() {
            Physical::Bool if wanted == DataType::Boolean => Ok(direct(wanted)),
            Physical::Bool => Err(refuse()),
            Physical::Binary => {
                let decoded = match wanted {
                    DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8View,
                    DataType::Binary
                    | DataType::LargeBinary
                    | DataType::BinaryView
                    | DataType::FixedSizeBinary(_) => DataType::BinaryView,
                    _ => return Err(refuse()),
                };
                Ok(Self { arrow: wanted, decoded, widened: None, is_unsigned, most_digits: None })
            }
            Physical::Fixed(width) => {
                let is_float = matches!(data_type, KuduType::Float | KuduType::Double);
                if is_float {
                    return if wanted == natural { Ok(direct(wanted)) } else { Err(refuse()) };
                }
                let wanted_width = width_of(&wanted).ok_or_else(refuse)?;
                // A decimal has a sign: integers without one need more bits.
                let is_same = wanted_width == width && !(is_unsigned && wanted.is_decimal());
                let precision = match wanted {
                    DataType::Decimal32(precision, _)
                    | DataType::Decimal64(precision, _)
                    | DataType::Decimal128(precision, _)
                    | DataType::Decimal256(precision, _) => precision,
                    _ => 0,
                };
                let is_short = wanted.is_decimal() && precision < digits_of(width, is_unsigned);
                let most_digits = (is_asked_for && is_short).then_some(precision);
                if is_same && !matches!(wanted, DataType::Float32 | DataType::Float64) {
                    return Ok(Self { most_digits, ..direct(wanted) });
                }
                // Unscaled integers of any width may become a decimal that is wide enough.
                if precision == 0 || wanted_width <= width {
                    return Err(refuse());
                }
                let decoded = natural_number(width);
                Ok(Self { widened: Some(wanted.clone()), arrow: wanted, decoded, is_unsigned, most_digits })
            }
        }
    }

    /// What decoded bytes are, if values are bytes.
    pub fn byte_kind(&self) -> ByteKind {
        if self.decoded == DataType::Utf8View { ByteKind::Text } else { ByteKind::Binary }
    }

    /// The type of numbers before [`Target::finish`]: as they are stored, or wider.
    pub fn number(&self) -> &DataType {
        self.widened.as_ref().unwrap_or(&self.decoded)
    }

    /// Bytes of a stored number, and of what it becomes before [`Target::finish`].
    pub fn widths(&self) -> (usize, usize) {
        let width = |data_type: &DataType| width_of(data_type).unwrap_or_default();
        (width(&self.decoded), width(self.number()))
    }

    /// Bytes that a value takes in an array before [`Target::finish`], those of strings themselves left out.
    pub fn element_bytes(&self) -> u64 {
        match self.decoded {
            DataType::Utf8View | DataType::BinaryView => size_of::<u128>() as u64,
            _ => self.widths().1.max(1) as u64,
        }
    }

    /// The way to strings as decoding gives them, views, for columns that are asked for in another form; else this one.
    pub fn decoded_only(&self) -> Self {
        match self.decoded {
            DataType::Utf8View | DataType::BinaryView => Self { arrow: self.decoded.clone(), ..self.clone() },
            _ => self.clone(),
        }
    }

    /// As [`Target::finish`], for any number of strings: those that would take too many bytes once they are written out are
    /// refused before that (see [`fitting`]).
    pub fn finish_within(&self, array: ArrayRef, limits: &Limits) -> Result<ArrayRef> {
        if self.arrow != *array.data_type() {
            fitting::check(&array, limits)?;
        }
        self.finish(array)
    }

    /// Brings decoded values to the type that was asked for; few of them, or numbers.
    pub fn finish(&self, array: ArrayRef) -> Result<ArrayRef> {
        // What does not fit is an error, not a null.
        let strict = CastOptions { safe: false, ..CastOptions::default() };
        let cast = |array: &ArrayRef, wanted: &DataType| {
            cast_with_options(array, wanted, &strict)
                .map_err(|error| Error::corrupt(format!("values of Arrow type {wanted}"), error))
        };
        match &self.arrow {
            same if same == array.data_type() => Ok(array),
            // Arrow has no direct way from views to fixed-size values.
            DataType::FixedSizeBinary(_) => cast(&cast(&array, &DataType::Binary)?, &self.arrow),
            _ => cast(&array, &self.arrow),
        }
    }
}

/// Whether the values of an Arrow type are ordered as the keys they are stored as.
pub(crate) fn is_ordered_as_stored(data_type: KuduType, arrow: &DataType) -> bool {
    match arrow {
        DataType::Dictionary(_, values) => is_ordered_as_stored(data_type, values),
        DataType::Float16 | DataType::Interval(_) => false,
        _ if data_type.physical() == Physical::Binary => true,
        _ => arrow.is_unsigned_integer() == data_type.is_unsigned(),
    }
}

/// Digits of the largest integer of so many bytes.
fn digits_of(width: usize, is_unsigned: bool) -> u8 {
    match (width, is_unsigned) {
        (1, _) => 3,
        (2, _) => 5,
        (4, _) => 10,
        (8, false) => 19,
        (8, true) => 20,
        _ => INT128_DIGITS,
    }
}

/// An Arrow type for stored numbers of so many bytes that are widened before they are given.
fn natural_number(width: usize) -> DataType {
    match width {
        1 => DataType::Int8,
        2 => DataType::Int16,
        4 => DataType::Int32,
        8 => DataType::Int64,
        _ => DataType::Decimal128(38, 0),
    }
}

/// Bytes of a value of a fixed-width Arrow type.
fn width_of(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(_) | DataType::Boolean | DataType::Null => None,
        other => other.primitive_width(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_natural_form_that_is_written_as_itself() {
        for &data_type in KuduType::ALL {
            let natural = natural_type(data_type);
            assert!(
                !matches!(natural, DataType::Decimal32(..) | DataType::Decimal64(..)),
                "{data_type}: {natural}"
            );
            let written = kudu_type(&natural).unwrap();
            let expected = if data_type == KuduType::Varchar { KuduType::String } else { data_type };
            assert_eq!(written, expected);
            assert_eq!(Target::new(data_type, None).unwrap().arrow, natural_type(data_type));
        }
    }

    #[test]
    fn decimals_are_written_in_the_width_they_need() {
        for (precision, scale, written) in [
            (9, 2, Some(KuduType::Decimal32)),
            (10, 2, Some(KuduType::Decimal64)),
            (18, 0, Some(KuduType::Decimal64)),
            (19, 0, Some(KuduType::Decimal128)),
            (38, 38, Some(KuduType::Decimal128)),
            (39, 0, Some(KuduType::Int128)),
            (39, 2, None),
            (40, 0, None),
            (76, 0, None),
        ] {
            let wide = DataType::Decimal256(precision, scale);
            assert_eq!(kudu_type(&wide).ok(), written, "{wide}");
            if precision <= 38 {
                assert_eq!(kudu_type(&DataType::Decimal128(precision, scale)).ok(), written);
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for (data_type, arrow) in [
            (KuduType::Double, DataType::Int64),
            (KuduType::Int64, DataType::Float64),
            (KuduType::Int64, DataType::Utf8),
            (KuduType::String, DataType::Int32),
            (KuduType::Int64, DataType::Decimal32(9, 0)),
            (KuduType::Bool, DataType::Int8),
            (KuduType::UInt32, DataType::Decimal32(9, 0)),
            (KuduType::UInt64, DataType::Decimal64(18, 0)),
        ] {
            assert!(Target::new(data_type, Some(&arrow)).is_err(), "{data_type} as {arrow}");
        }
    }
}
