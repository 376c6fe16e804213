//! A column compared with a value that a DELETE statement left behind as text.
//!
//! The text is read by the column's type, as Doris reads it. A value that the type cannot hold (a number out of range, one
//! with more digits after the point) compares as the number it is: such a statement would have been refused, so it is
//! met only where the type was changed since.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, PrimitiveArray, StringViewArray, TimestampMicrosecondArray, TimestampSecondArray,
};
use arrow_buffer::i256;
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{CompareOp, Error, Literal, Predicate, Result, col};

use crate::calendar::{self, MICROS_PER_SECOND, SECONDS_PER_DAY};
use crate::schema::SchemaColumn;
use crate::segment::{FieldType, large_number, schema_type};

/// A value, as far as the column's type has room for it.
#[derive(Debug, PartialEq)]
enum Value {
    Exact(Literal),
    /// It lies behind this value and before the next one.
    Behind(Literal),
    BelowAll,
    AboveAll,
}

/// Whether values of a column are addresses: given as text, but compared as numbers. Such a column must be turned into
/// the bytes of its addresses before a condition is evaluated.
pub(super) fn is_address(column: &SchemaColumn) -> bool {
    matches!(column.type_name.to_ascii_uppercase().as_str(), "IPV4" | "IPV6")
}

/// `column op value`, unknown where the column is null.
pub(super) fn compare(column: &SchemaColumn, op: CompareOp, text: &str) -> Result<Predicate> {
    let compare = |op, value| Predicate::Compare { column: column.name.clone(), op, value };
    let (none, all) = (Predicate::Or(Vec::new()), col(column.name.clone()).is_not_null());
    Ok(match (parse(column, text)?, op) {
        (Value::Exact(value), op) => compare(op, value),
        (_, CompareOp::Eq) => none,
        (_, CompareOp::NotEq) => all,
        (Value::Behind(value), CompareOp::Lt | CompareOp::LtEq) => compare(CompareOp::LtEq, value),
        (Value::Behind(value), _) => compare(CompareOp::Gt, value),
        (Value::BelowAll, CompareOp::Lt | CompareOp::LtEq) => none,
        (Value::BelowAll, _) => all,
        (Value::AboveAll, CompareOp::Lt | CompareOp::LtEq) => all,
        (Value::AboveAll, _) => none,
    })
}

/// `column IN (values)`, unknown where the column is null.
pub(super) fn is_in(column: &SchemaColumn, texts: &[&str]) -> Result<Predicate> {
    let mut values = Vec::with_capacity(texts.len());
    for text in texts {
        if let Value::Exact(value) = parse(column, text)? {
            values.push(value);
        }
    }
    Ok(match values.as_slice() {
        [] => Predicate::Or(Vec::new()),
        _ => col(column.name.clone()).is_in(values),
    })
}

fn parse(column: &SchemaColumn, text: &str) -> Result<Value> {
    let wrong = || {
        let expected = format!("a value of type {} in a delete predicate", column.type_name);
        Error::corrupt(format!("{expected} on column \"{}\"", column.name), format!("{text:?}"))
    };
    let field_type = FieldType::from_schema_name(&column.type_name).ok_or_else(wrong)?;
    let arrow = schema_type(column)?;
    match field_type {
        FieldType::TinyInt
        | FieldType::SmallInt
        | FieldType::Int
        | FieldType::BigInt
        | FieldType::UnsignedTinyInt
        | FieldType::UnsignedSmallInt
        | FieldType::UnsignedInt
        | FieldType::UnsignedBigInt
        | FieldType::LargeInt
        | FieldType::Decimal
        | FieldType::Decimal32
        | FieldType::Decimal64
        | FieldType::Decimal128
        | FieldType::Decimal256 => number(&arrow, text).ok_or_else(wrong),
        _ => exact(field_type, &arrow, text).map(Value::Exact).ok_or_else(wrong),
    }
}

/// The value of a type that is not a number of limited digits.
fn exact(field_type: FieldType, arrow: &DataType, text: &str) -> Option<Literal> {
    let trimmed = text.trim();
    let array: ArrayRef = match field_type {
        FieldType::Bool => Arc::new(BooleanArray::from(vec![boolean(trimmed)?])),
        FieldType::Float => Arc::new(Float32Array::from(vec![trimmed.parse::<f32>().ok()?])),
        FieldType::Double => Arc::new(Float64Array::from(vec![trimmed.parse::<f64>().ok()?])),
        // Cells are filled up with zeros, which are no part of the text.
        FieldType::Char => Arc::new(StringViewArray::from(vec![text.trim_end_matches('\0')])),
        FieldType::Varchar | FieldType::String => Arc::new(StringViewArray::from(vec![text])),
        FieldType::Ipv4 => {
            let octets = trimmed.parse::<Ipv4Addr>().ok()?.octets();
            Arc::new(BinaryViewArray::from(vec![octets.as_slice()]))
        }
        FieldType::Ipv6 => {
            let octets = trimmed.parse::<Ipv6Addr>().ok()?.octets();
            Arc::new(BinaryViewArray::from(vec![octets.as_slice()]))
        }
        FieldType::Date | FieldType::DateV2 => {
            Arc::new(Date32Array::from(vec![Moment::parse(trimmed)?.days]))
        }
        FieldType::DateTime | FieldType::DateTimeV2 | FieldType::TimestampTz => {
            Moment::parse(trimmed)?.array(arrow)?
        }
        _ => return None,
    };
    Some(Literal::from_array(array.as_ref(), 0))
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "1" | "true" => Some(true),
        "0" | "false" => Some(false),
        _ => None,
    }
}

/// A number by the digits that a column of this type has.
fn number(arrow: &DataType, text: &str) -> Option<Value> {
    let text = text.trim();
    let is_negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len().saturating_add(fraction.len()) == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let all = format!("{whole}{fraction}");
    let beyond = || Some(if is_negative { Value::BelowAll } else { Value::AboveAll });
    let sign = if is_negative { "-" } else { "" };
    let significant = match all.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    };
    let Some(mantissa) = large_number(&format!("{sign}{significant}")) else { return beyond() };
    let scale = match arrow {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => i64::from(*scale),
        _ => 0,
    };
    let shift = scale.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let Some(power) = i256::from_i128(10).checked_pow(u32::try_from(shift.unsigned_abs()).ok()?) else {
        // More digits behind the point than any number has: all but zeros leave something behind it.
        return None;
    };
    let (value, is_exact) = if shift >= 0 {
        let Some(value) = mantissa.checked_mul(power) else { return beyond() };
        (value, true)
    } else {
        let (quotient, rest) = (mantissa.checked_div(power)?, mantissa.checked_rem(power)?);
        let is_exact = rest == i256::ZERO;
        // Division rounds towards zero; what is wanted is the value before.
        let floor = if is_exact || !is_negative { quotient } else { quotient.checked_sub(i256::ONE)? };
        (floor, is_exact)
    };
    let Some(array) = array_of(arrow, value)? else {
        return Some(if value.is_negative() { Value::BelowAll } else { Value::AboveAll });
    };
    let literal = Literal::from_array(array.as_ref(), 0);
    Some(if is_exact { Value::Exact(literal) } else { Value::Behind(literal) })
}

/// The number in a type, `Some(None)` if it is out of its range; `None` if the type has no numbers.
fn array_of(arrow: &DataType, value: i256) -> Option<Option<ArrayRef>> {
    fn integer<T: ArrowPrimitiveType>(value: i256) -> Option<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let value = T::Native::try_from(value.to_i128()?).ok()?;
        Some(Arc::new(PrimitiveArray::<T>::from_value(value, 1)))
    }
    Some(match arrow {
        DataType::Int8 => integer::<Int8Type>(value),
        DataType::Int16 => integer::<Int16Type>(value),
        DataType::Int32 => integer::<Int32Type>(value),
        DataType::Int64 => integer::<Int64Type>(value),
        DataType::UInt8 => integer::<UInt8Type>(value),
        DataType::UInt16 => integer::<UInt16Type>(value),
        DataType::UInt32 => integer::<UInt32Type>(value),
        DataType::UInt64 => integer::<UInt64Type>(value),
        DataType::Decimal128(..) => value.to_i128().map(|value| {
            Arc::new(Decimal128Array::from(vec![value]).with_data_type(arrow.clone())) as ArrayRef
        }),
        DataType::Decimal256(..) => {
            Some(Arc::new(Decimal256Array::from(vec![value]).with_data_type(arrow.clone())) as ArrayRef)
        }
        _ => return None,
    })
}

/// `YYYY-MM-DD[ HH:MM:SS[.ffffff]][+HH:MM]`
struct Moment {
    days: i32,
    /// Microseconds since 1970, in UTC if an offset was given.
    micros: i64,
}

impl Moment {
    fn parse(text: &str) -> Option<Self> {
        let date = text.get(..10)?;
        let mut parts = date.split('-');
        let (year, month, day) =
            (digits(parts.next()?, 4)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
        let days = calendar::days(year, month, day).ok()?;
        let rest = text.get(10..)?.trim_start_matches(['T', ' ']);
        let (time, offset) = match rest.rfind(['+', '-']) {
            Some(at) => (rest.get(..at)?.trim_end(), offset_seconds(rest.get(at..)?)?),
            None => (rest.strip_suffix('Z').unwrap_or(rest).trim_end(), 0),
        };
        let of_day = if time.is_empty() { 0 } else { micros_of_day(time)? };
        let seconds = i64::from(days).checked_mul(SECONDS_PER_DAY)?.checked_sub(offset)?;
        Some(Self { days, micros: seconds.checked_mul(MICROS_PER_SECOND)?.checked_add(of_day)? })
    }

    fn array(&self, arrow: &DataType) -> Option<ArrayRef> {
        let DataType::Timestamp(unit, zone) = arrow else { return None };
        let zone = zone.clone();
        match unit {
            TimeUnit::Second => {
                let seconds = self.micros.div_euclid(MICROS_PER_SECOND);
                Some(Arc::new(TimestampSecondArray::from(vec![seconds]).with_timezone_opt(zone)))
            }
            TimeUnit::Microsecond => {
                Some(Arc::new(TimestampMicrosecondArray::from(vec![self.micros]).with_timezone_opt(zone)))
            }
            _ => None,
        }
    }
}

/// A number of so many digits.
fn digits(text: &str, count: usize) -> Option<u32> {
    (text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok())?
}

/// `HH:MM:SS[.ffffff]`
fn micros_of_day(text: &str) -> Option<i64> {
    let (clock, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = clock.split(':');
    let (hour, minute, second) =
        (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let is_time = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    let fraction = format!("{fraction:0<6}");
    let micros = i64::from(digits(&fraction, 6).filter(|_| is_time)?);
    let seconds = i64::from(hour).checked_mul(3600)?.checked_add(i64::from(minute).checked_mul(60)?)?;
    seconds.checked_add(i64::from(second))?.checked_mul(MICROS_PER_SECOND)?.checked_add(micros)
}

/// `+HH:MM`
fn offset_seconds(text: &str) -> Option<i64> {
    let (hours, minutes) = text.get(1..)?.split_once(':')?;
    let minutes =
        i64::from(digits(hours, 2)?).checked_mul(60)?.checked_add(i64::from(digits(minutes, 2)?))?;
    let seconds = minutes.checked_mul(60)?;
    Some(if text.starts_with('-') { seconds.checked_neg()? } else { seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(type_name: &str, precision: i32, frac: i32) -> SchemaColumn {
        SchemaColumn {
            name: "c".to_string(),
            type_name: type_name.to_string(),
            precision,
            frac,
            ..SchemaColumn::default()
        }
    }

    fn condition(type_name: &str, op: CompareOp, text: &str) -> String {
        compare(&column(type_name, 9, 2), op, text).unwrap().to_string()
    }

    #[test]
    fn values_beyond_a_type_compare_as_the_numbers_they_are() {
        use CompareOp::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
        let (all, none) = (col("c").is_not_null().to_string(), Predicate::Or(Vec::new()).to_string());
        for (type_name, text) in [
            ("TINYINT", "128"),
            ("INT", "99999999999"),
            ("BIGINT", "9223372036854775808"),
            ("LARGEINT", &"9".repeat(90)),
            ("DECIMAL32", &"9".repeat(50)),
            ("DECIMAL256", &"9".repeat(90)),
        ] {
            for (op, expected) in
                [(Lt, &all), (LtEq, &all), (NotEq, &all), (Gt, &none), (GtEq, &none), (Eq, &none)]
            {
                assert_eq!(&condition(type_name, op, text), expected, "{type_name} {op} {text}");
            }
            let text = format!("-{}", text.replace("128", "129").replace("808", "809"));
            for (op, expected) in
                [(Lt, &none), (LtEq, &none), (NotEq, &all), (Gt, &all), (GtEq, &all), (Eq, &none)]
            {
                assert_eq!(&condition(type_name, op, &text), expected, "{type_name} {op} {text}");
            }
        }
        // Between two values of the type.
        for (text, floor) in [("0.014", "0.01"), ("-0.014", "-0.02"), ("2.5000001", "2.50")] {
            let at_most = condition("DECIMAL32", LtEq, floor);
            let above = condition("DECIMAL32", Gt, floor);
            for (op, expected) in
                [(Lt, &at_most), (LtEq, &at_most), (Gt, &above), (GtEq, &above), (Eq, &none)]
            {
                assert_eq!(&condition("DECIMAL32", op, text), expected, "{op} {text}");
            }
        }
        assert_eq!(condition("DECIMAL32", Eq, "0.0100"), condition("DECIMAL32", Eq, "0.01"));
        assert_eq!(condition("INT", Lt, "2.5"), condition("INT", LtEq, "2"));
    }

    #[test]
    fn texts_are_read_by_the_type_of_their_column() {
        let parse = |type_name: &str, text: &str| parse(&column(type_name, 9, 2), text);
        for (type_name, text, other) in [
            ("BOOLEAN", "1", "true"),
            ("DATE", "2024-02-29", "2024-02-29 10:11:12"),
            ("DATEV2", "2024-02-29", "2024-02-29 00:00:00.5"),
            ("DATETIME", "2024-02-29 10:11:12", "2024-02-29 10:11:12.250000"),
            ("DATETIMEV2", "2024-02-29 10:11:12.25", "2024-02-29  10:11:12.250000"),
            ("DATETIMEV2", "2024-02-29", "2024-02-29 00:00:00"),
            ("TIMESTAMPTZ", "2024-02-29 10:11:12+00:00", "2024-02-29 12:41:12+02:30"),
            ("CHAR", "ab", "ab\0\0"),
            ("IPV4", "10.0.0.1", " 10.0.0.1"),
            ("IPV6", "::1", "0:0::0:1"),
            ("DECIMALV2", "1.5", "1.500000000"),
            (
                "LARGEINT",
                "-170141183460469231731687303715884105728",
                "-0170141183460469231731687303715884105728",
            ),
        ] {
            let (one, other) = (parse(type_name, text).unwrap(), parse(type_name, other).unwrap());
            assert!(matches!(one, Value::Exact(_)), "{type_name} {text}");
            assert_eq!(one, other, "{type_name} {text}");
        }
        assert_ne!(parse("VARCHAR", "ab").unwrap(), parse("VARCHAR", "ab ").unwrap());
        for (type_name, text) in [
            ("BOOLEAN", "yes"),
            ("INT", "one"),
            ("INT", ""),
            ("INT", "1-1"),
            ("DATE", "2024-02-30"),
            ("DATE", "today"),
            ("DATETIMEV2", "2024-02-29 25:00:00"),
            ("TIMESTAMPTZ", "2024-02-29 10:11:12+2"),
            ("IPV4", "10.0.0"),
            ("JSONB", "{}"),
            ("VARIANT", "1"),
        ] {
            assert!(parse(type_name, text).is_err(), "{type_name} {text}");
        }
    }
}
