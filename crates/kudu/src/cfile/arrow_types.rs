//! Kudu types as Arrow types, and back.
//!
//! | Kudu | Arrow by default | may also be read as |
//! | --- | --- | --- |
//! | (U)INT8 … (U)INT64 | (U)Int8 … (U)Int64 | any integer, date, time, timestamp, duration or decimal of that width; wider decimals |
//! | INT128 | Decimal256(39, 0) | Decimal128 |
//! | FLOAT, DOUBLE | Float32, Float64 | |
//! | BOOL | Boolean | |
//! | STRING, VARCHAR | Utf8View | Utf8, LargeUtf8, all binary types, dictionaries of them |
//! | BINARY | BinaryView | Binary, LargeBinary, FixedSizeBinary, all text types, dictionaries of them |
//! | UNIXTIME_MICROS | Timestamp(µs, UTC) | Int64, timestamps without a zone |
//! | DATE | Date32 | Int32 |
//! | DECIMAL32, 64, 128 | Decimal32(9, 0), Decimal64(18, 0), Decimal128(38, 0) | the decimal with the table's precision and scale |
//! | array of T | List of T | LargeList |
//!
//! A CFile does not know precision and scale, nor whether bytes are text: the table's schema does.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_cast::{can_cast_types, cast};
use arrow_schema::{DataType, Field, TimeUnit};
use pilaster_core::views::ByteKind;
use pilaster_core::{Error, Result};

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
        KuduType::Decimal32 => DataType::Decimal32(9, 0),
        KuduType::Decimal64 => DataType::Decimal64(18, 0),
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
        DataType::Decimal32(precision, _)
        | DataType::Decimal64(precision, _)
        | DataType::Decimal128(precision, _) => match precision {
            0..=9 => KuduType::Decimal32,
            10..=18 => KuduType::Decimal64,
            _ => KuduType::Decimal128,
        },
        DataType::Decimal256(INT128_DIGITS, 0) => KuduType::Int128,
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
}

impl Target {
    /// The way from values of `data_type` to `wanted`, or to the natural type.
    pub fn new(data_type: KuduType, wanted: Option<&DataType>) -> Result<Self> {
        let natural = natural_type(data_type);
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
        let direct = |decoded: DataType| Self { arrow: decoded.clone(), decoded, widened: None };
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
                Ok(Self { arrow: wanted, decoded, widened: None })
            }
            Physical::Fixed(width) => {
                let is_float = matches!(data_type, KuduType::Float | KuduType::Double);
                if is_float {
                    return if wanted == natural { Ok(direct(wanted)) } else { Err(refuse()) };
                }
                if width_of(&wanted) == Some(width)
                    && !matches!(wanted, DataType::Float32 | DataType::Float64)
                {
                    return Ok(direct(wanted));
                }
                // Unscaled integers of any width may become a decimal that is wide enough.
                let (precision, scale, target_width) = match wanted {
                    DataType::Decimal64(p, s) => (p, s, 8),
                    DataType::Decimal128(p, s) => (p, s, 16),
                    DataType::Decimal256(p, s) => (p, s, 32),
                    _ => return Err(refuse()),
                };
                if target_width < width || precision == 0 {
                    return Err(refuse());
                }
                let decoded = match width {
                    4 => DataType::Decimal32(precision.min(9), scale),
                    8 => DataType::Decimal64(precision.min(18), scale),
                    16 => DataType::Decimal128(precision.min(38), scale),
                    _ => return Err(refuse()),
                };
                Ok(Self { widened: Some(wanted.clone()), arrow: wanted, decoded })
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

    /// Brings decoded values to the type that was asked for.
    pub fn finish(&self, array: ArrayRef) -> Result<ArrayRef> {
        match &self.arrow {
            same if same == array.data_type() => Ok(array),
            // Arrow has no direct way from views to fixed-size values.
            DataType::FixedSizeBinary(_) => Ok(cast(&cast(&array, &DataType::Binary)?, &self.arrow)?),
            _ => Ok(cast(&array, &self.arrow)?),
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
            let written = kudu_type(&natural_type(data_type)).unwrap();
            let expected = if data_type == KuduType::Varchar { KuduType::String } else { data_type };
            assert_eq!(written, expected);
            assert_eq!(Target::new(data_type, None).unwrap().arrow, natural_type(data_type));
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
        ] {
            assert!(Target::new(data_type, Some(&arrow)).is_err(), "{data_type} as {arrow}");
        }
    }
}
