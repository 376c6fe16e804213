//! The Arrow types of leaves.

use arrow_schema::{DataType, IntervalUnit, TimeUnit};
use pilaster_encoding::Result;

use super::bad_schema;
use crate::metadata::{ConvertedType, LogicalType, PhysicalType, SchemaElement, kind};

/// Digits of every 96-bit number.
const INT96_DIGITS: u8 = 29;

/// What a leaf is in Arrow; dictionaries and runs are put around it elsewhere.
pub(super) fn data_type(element: &SchemaElement, physical: PhysicalType) -> Result<DataType> {
    let logical = element.logical_type.as_ref();
    if let Some(logical) = logical
        && let Some(data_type) = logical_type(logical, physical)?
    {
        return Ok(data_type);
    }
    Ok(match physical {
        PhysicalType::Boolean => DataType::Boolean,
        PhysicalType::Int32 => DataType::Int32,
        PhysicalType::Int64 => DataType::Int64,
        PhysicalType::Int96 => DataType::Decimal128(INT96_DIGITS, 0),
        PhysicalType::Float => DataType::Float32,
        PhysicalType::Double => DataType::Float64,
        PhysicalType::ByteArray if element.converted_type == Some(ConvertedType::Utf8) => DataType::Utf8,
        PhysicalType::ByteArray => DataType::Binary,
        // Named when its values are asked for.
        PhysicalType::Unknown(_) => DataType::Null,
    })
}

/// `None` for kinds that say nothing of a leaf: none, and those of later versions.
fn logical_type(logical: &LogicalType, physical: PhysicalType) -> Result<Option<DataType>> {
    use PhysicalType::{Boolean, ByteArray, Int32, Int64, Int96};
    let need = |name: &str, value: Option<i32>| {
        value.ok_or_else(|| bad_schema(format!("the parameter {name} of kind {}", logical.kind), "none"))
    };
    let variant = logical.variant.unwrap_or(0);
    let is_signed = logical.signed.unwrap_or(false);
    let unit = || time_unit(need("unit", logical.unit)?);
    let data_type = match (logical.kind, physical) {
        (kind::NULL, Boolean) => DataType::Null,
        (kind::INT, Int32) => match (need("bit_width", logical.bit_width)?, is_signed) {
            (8, true) => DataType::Int8,
            (8, false) => DataType::UInt8,
            (16, true) => DataType::Int16,
            (16, false) => DataType::UInt16,
            (32, true) => DataType::Int32,
            (32, false) => DataType::UInt32,
            (other, _) => return Err(bad_schema("an INT of 8, 16 or 32 bits", other.to_string())),
        },
        (kind::INT, Int64) => match (need("bit_width", logical.bit_width)?, is_signed) {
            (64, true) => DataType::Int64,
            (64, false) => DataType::UInt64,
            (other, _) => return Err(bad_schema("an INT of 64 bits", other.to_string())),
        },
        (kind::FLOAT16, Int32) => DataType::Float16,
        (kind::STRING, ByteArray) => match variant {
            1 => DataType::LargeUtf8,
            2 => DataType::Utf8View,
            _ => DataType::Utf8,
        },
        (kind::BINARY, ByteArray) => match variant {
            1 => DataType::LargeBinary,
            2 => DataType::BinaryView,
            _ => DataType::Binary,
        },
        (kind::FIXED_BINARY, ByteArray) => {
            let width = need("byte_width", logical.byte_width)?;
            if width < 0 {
                return Err(bad_schema("a width of 0 or more", width.to_string()));
            }
            DataType::FixedSizeBinary(width)
        }
        (kind::DATE, Int32) if variant == 0 => DataType::Date32,
        (kind::DATE, Int64) if variant == 1 => DataType::Date64,
        (kind::TIME, Int32) => match unit()? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            _ => return Err(bad_schema("a 32-bit TIME in s or ms", "another unit")),
        },
        (kind::TIME, Int64) => match unit()? {
            unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond) => DataType::Time64(unit),
            _ => return Err(bad_schema("a 64-bit TIME in µs or ns", "another unit")),
        },
        (kind::TIMESTAMP, Int64) => DataType::Timestamp(unit()?, logical.timezone.as_deref().map(Into::into)),
        (kind::DURATION, Int64) => DataType::Duration(unit()?),
        (kind::INTERVAL, Int32) if variant == 0 => DataType::Interval(IntervalUnit::YearMonth),
        (kind::INTERVAL, Int64) if variant == 1 => DataType::Interval(IntervalUnit::DayTime),
        (kind::INTERVAL, ByteArray) if variant == 2 => DataType::Interval(IntervalUnit::MonthDayNano),
        (kind::DECIMAL, Int32 | Int64 | Int96 | ByteArray) => {
            let precision = need("precision", logical.precision)?;
            let bits = need("bit_width", logical.bit_width)?;
            decimal_type(bits, precision, logical.scale.unwrap_or(0), physical)?
        }
        (kind::NONE | kind::LIST | kind::LIST_ENTRY | kind::MAP | kind::UNION, _) => return Ok(None),
        (kind::NULL..=kind::DECIMAL, _) => {
            return Err(bad_schema(
                format!("kind {} on a type that can hold it", logical.kind),
                physical.to_string(),
            ));
        }
        _ => return Ok(None),
    };
    Ok(Some(data_type))
}

fn decimal_type(bits: i32, precision: i32, scale: i32, physical: PhysicalType) -> Result<DataType> {
    let most = match bits {
        32 => 9,
        64 => 18,
        128 => 38,
        256 => 76,
        other => return Err(bad_schema("a DECIMAL of 32, 64, 128 or 256 bits", other.to_string())),
    };
    let precision = u8::try_from(precision)
        .ok()
        .filter(|precision| (1..=most).contains(precision))
        .ok_or_else(|| bad_schema(format!("a precision of 1 to {most}"), precision.to_string()))?;
    let scale = i8::try_from(scale)
        .ok()
        .filter(|scale| i32::from(*scale) <= i32::from(precision))
        .ok_or_else(|| bad_schema(format!("a scale of at most {precision}"), scale.to_string()))?;
    if physical != decimal_physical(precision) {
        let expected = format!("{} for a precision of {precision}", decimal_physical(precision));
        return Err(bad_schema(expected, physical.to_string()));
    }
    // Query engines compute with Arrow's narrow decimals as if they were integers.
    Ok(match bits {
        256 => DataType::Decimal256(precision, scale),
        _ => DataType::Decimal128(precision, scale),
    })
}

/// The narrowest type that holds so many digits.
pub(super) fn decimal_physical(precision: u8) -> PhysicalType {
    match precision {
        0..=9 => PhysicalType::Int32,
        10..=18 => PhysicalType::Int64,
        19..=28 => PhysicalType::Int96,
        _ => PhysicalType::ByteArray,
    }
}

fn time_unit(unit: i32) -> Result<TimeUnit> {
    match unit {
        0 => Ok(TimeUnit::Second),
        1 => Ok(TimeUnit::Millisecond),
        2 => Ok(TimeUnit::Microsecond),
        3 => Ok(TimeUnit::Nanosecond),
        other => Err(bad_schema("a unit of 0 to 3", other.to_string())),
    }
}

/// How the values of a leaf are ordered, for its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Boolean,
    Signed,
    Unsigned,
    Float,
    /// Bytewise; bounds may be cut.
    Bytes,
    /// Big-endian two's complement, by value.
    DecimalBytes,
    /// No bounds.
    None,
}

pub(crate) fn order_of(element: &SchemaElement, physical: PhysicalType) -> Order {
    let logical = element.logical_type.as_ref();
    match logical.map(|logical| logical.kind) {
        Some(kind::NULL | kind::FLOAT16 | kind::INTERVAL) => return Order::None,
        Some(kind::INT) if !logical.and_then(|logical| logical.signed).unwrap_or(false) => {
            return Order::Unsigned;
        }
        Some(kind::DECIMAL) if physical == PhysicalType::ByteArray => return Order::DecimalBytes,
        _ => {}
    }
    match physical {
        PhysicalType::Boolean => Order::Boolean,
        PhysicalType::Int32 | PhysicalType::Int64 | PhysicalType::Int96 => Order::Signed,
        PhysicalType::Float | PhysicalType::Double => Order::Float,
        PhysicalType::ByteArray => Order::Bytes,
        PhysicalType::Unknown(_) => Order::None,
    }
}

/// The fewest bytes of a big-endian two's complement number that keep its sign.
pub(crate) fn decimal_bytes(big_endian: &[u8]) -> &[u8] {
    let mut bytes = big_endian;
    while let [first, rest @ ..] = bytes
        && let Some(second) = rest.first()
        && ((*first == 0 && *second < 0x80) || (*first == 0xff && *second >= 0x80))
    {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_take_as_few_bytes_as_hold_the_sign() {
        for (number, bytes) in [
            (0i16, &[0][..]),
            (127, &[0x7f]),
            (128, &[0, 0x80]),
            (-128, &[0x80]),
            (-1, &[0xff]),
            (-129, &[0xff, 0x7f]),
        ] {
            assert_eq!(decimal_bytes(&number.to_be_bytes()), bytes);
        }
    }
}
