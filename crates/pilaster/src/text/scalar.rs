//! Values that are not made of other values.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Date64Type, DecimalType, DurationMicrosecondType,
    DurationMillisecondType, DurationNanosecondType, DurationSecondType, Float16Type, Float32Type,
    Float64Type, IntervalDayTimeType, IntervalMonthDayNanoType, IntervalYearMonthType, Time32MillisecondType,
    Time32SecondType, Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayAccessor, BooleanArray, PrimitiveArray};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::{Error, Result};

use super::calendar::{Unit, push_date};
use super::value::Encode;

pub(super) struct BoolEncoder<'a>(pub(super) &'a BooleanArray);

impl Encode for BoolEncoder<'_> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(if self.0.value(row) { b"true" } else { b"false" });
    }
}

pub(super) struct IntegerEncoder<'a, T: ArrowPrimitiveType>(pub(super) &'a PrimitiveArray<T>);

impl<T: ArrowPrimitiveType<Native: itoa::Integer>> Encode for IntegerEncoder<'_, T> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(itoa::Buffer::new().format(self.0.value(row)).as_bytes());
    }
}

/// A float type and how its values are printed.
pub(super) trait Float: ArrowPrimitiveType {
    /// Appends a value; `zmij` prints the shortest text that reads back to the same bits.
    fn push(value: Self::Native, out: &mut Vec<u8>);
}

macro_rules! float {
    ($type:ty, $convert:expr) => {
        impl Float for $type {
            fn push(value: Self::Native, out: &mut Vec<u8>) {
                let value = $convert(value);
                if value.is_finite() {
                    out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
                } else if value.is_nan() {
                    out.extend_from_slice(b"\"NaN\"");
                } else if value > 0.0 {
                    out.extend_from_slice(b"\"Infinity\"");
                } else {
                    out.extend_from_slice(b"\"-Infinity\"");
                }
            }
        }
    };
}
float!(Float16Type, |value: <Float16Type as ArrowPrimitiveType>::Native| value.to_f32());
float!(Float32Type, |value: f32| value);
float!(Float64Type, |value: f64| value);

pub(super) struct FloatEncoder<'a, T: Float>(pub(super) &'a PrimitiveArray<T>);

impl<T: Float> Encode for FloatEncoder<'_, T> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        T::push(self.0.value(row), out);
    }

    fn is_plain_string(&self) -> bool {
        true
    }
}

pub(super) struct DecimalEncoder<'a, T: DecimalType> {
    array: &'a PrimitiveArray<T>,
    scale: i8,
}

impl<'a, T: DecimalType> DecimalEncoder<'a, T> {
    pub(super) fn new(array: &'a PrimitiveArray<T>, scale: i8) -> Self {
        Self { array, scale }
    }
}

impl<T: DecimalType<Native: std::fmt::Display>> Encode for DecimalEncoder<'_, T> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        use std::io::Write;
        out.push(b'"');
        let start = out.len();
        // Writing to a vector cannot fail.
        let _ = write!(out, "{}", self.array.value(row));
        let first_digit = start.saturating_add(usize::from(out.get(start) == Some(&b'-')));
        let digits = out.len().saturating_sub(first_digit);
        let scale = usize::from(self.scale.unsigned_abs());
        if self.scale < 0 {
            out.resize(out.len().saturating_add(scale), b'0');
        } else if scale > 0 {
            let missing = scale.saturating_add(1).saturating_sub(digits);
            out.splice(first_digit..first_digit, std::iter::repeat_n(b'0', missing));
            out.insert(out.len().saturating_sub(scale), b'.');
        }
        out.push(b'"');
    }

    fn is_plain_string(&self) -> bool {
        true
    }
}

pub(super) struct TextEncoder<A>(pub(super) A);

impl<'a, A: ArrayAccessor<Item = &'a str>> Encode for TextEncoder<A> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        push_json_string(self.0.value(row), out);
    }

    fn append_raw(&self, row: usize, out: &mut Vec<u8>) -> bool {
        out.extend_from_slice(self.0.value(row).as_bytes());
        true
    }
}

/// Appends a string as JSON. Only quotes, backslashes and control characters need an escape, so runs without them are
/// copied whole.
pub(super) fn push_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (index, &byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0..=0x1f => b"\\u00",
            _ => continue,
        };
        out.extend_from_slice(bytes.get(copied..index).unwrap_or_default());
        out.extend_from_slice(escape);
        if escape.starts_with(b"\\u") {
            push_hex(&[byte], out);
        }
        copied = index.saturating_add(1);
    }
    out.extend_from_slice(bytes.get(copied..).unwrap_or_default());
    out.push(b'"');
}

/// Appends bytes as lower-case hex. (`W` lies ten before `a`.)
fn push_hex(bytes: &[u8], out: &mut Vec<u8>) {
    let digit = |nibble: u8| if nibble < 10 { b'0'.wrapping_add(nibble) } else { b'W'.wrapping_add(nibble) };
    out.reserve(bytes.len().saturating_mul(2));
    for byte in bytes {
        out.extend_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
    }
}

pub(super) struct BinaryEncoder<A>(pub(super) A);

impl<'a, A: ArrayAccessor<Item = &'a [u8]>> Encode for BinaryEncoder<A> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        push_hex(self.0.value(row), out);
        out.push(b'"');
    }

    fn is_plain_string(&self) -> bool {
        true
    }
}

/// What the numbers of a date or time column count.
#[derive(Clone, Copy)]
pub(super) enum Time {
    Days,
    Milliseconds,
    Clock(Unit),
    /// With or without a zone.
    Timestamp(Unit, bool),
    Duration(Unit),
    /// How it is stored says of what it is made.
    Interval,
}

/// The numbers of a date or time column, by how they are stored.
enum Numbers<'a> {
    I32(&'a [i32]),
    I64(&'a [i64]),
    DayTime(&'a PrimitiveArray<IntervalDayTimeType>),
    MonthDayNano(&'a PrimitiveArray<IntervalMonthDayNanoType>),
}

pub(super) struct TimeEncoder<'a> {
    numbers: Numbers<'a>,
    time: Time,
}

impl<'a> TimeEncoder<'a> {
    pub(super) fn try_new(array: &'a dyn Array, time: Time) -> Result<Self> {
        fn i32s<T: ArrowPrimitiveType<Native = i32>>(array: &dyn Array) -> Numbers<'_> {
            Numbers::I32(array.as_primitive::<T>().values())
        }
        fn i64s<T: ArrowPrimitiveType<Native = i64>>(array: &dyn Array) -> Numbers<'_> {
            Numbers::I64(array.as_primitive::<T>().values())
        }
        use arrow_schema::IntervalUnit;
        let numbers = match array.data_type() {
            DataType::Date32 => i32s::<Date32Type>(array),
            DataType::Date64 => i64s::<Date64Type>(array),
            DataType::Time32(TimeUnit::Second) => i32s::<Time32SecondType>(array),
            DataType::Time32(TimeUnit::Millisecond) => i32s::<Time32MillisecondType>(array),
            DataType::Time64(TimeUnit::Microsecond) => i64s::<Time64MicrosecondType>(array),
            DataType::Time64(TimeUnit::Nanosecond) => i64s::<Time64NanosecondType>(array),
            DataType::Timestamp(TimeUnit::Second, _) => i64s::<TimestampSecondType>(array),
            DataType::Timestamp(TimeUnit::Millisecond, _) => i64s::<TimestampMillisecondType>(array),
            DataType::Timestamp(TimeUnit::Microsecond, _) => i64s::<TimestampMicrosecondType>(array),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => i64s::<TimestampNanosecondType>(array),
            DataType::Duration(TimeUnit::Second) => i64s::<DurationSecondType>(array),
            DataType::Duration(TimeUnit::Millisecond) => i64s::<DurationMillisecondType>(array),
            DataType::Duration(TimeUnit::Microsecond) => i64s::<DurationMicrosecondType>(array),
            DataType::Duration(TimeUnit::Nanosecond) => i64s::<DurationNanosecondType>(array),
            DataType::Interval(IntervalUnit::YearMonth) => i32s::<IntervalYearMonthType>(array),
            DataType::Interval(IntervalUnit::DayTime) => Numbers::DayTime(array.as_primitive()),
            DataType::Interval(IntervalUnit::MonthDayNano) => Numbers::MonthDayNano(array.as_primitive()),
            other => return Err(Error::unsupported(format!("text of type {other}"))),
        };
        Ok(Self { numbers, time })
    }
}

impl Encode for TimeEncoder<'_> {
    fn encode(&self, row: usize, out: &mut Vec<u8>) {
        out.push(b'"');
        match &self.numbers {
            Numbers::I32(values) => {
                push_time(self.time, i64::from(values.get(row).copied().unwrap_or(0)), out)
            }
            Numbers::I64(values) => push_time(self.time, values.get(row).copied().unwrap_or(0), out),
            Numbers::DayTime(values) => {
                let value = values.value(row);
                let milliseconds = i64::from(value.milliseconds);
                push_interval(0, value.days, milliseconds, Unit::of(&TimeUnit::Millisecond), out);
            }
            Numbers::MonthDayNano(values) => {
                let value = values.value(row);
                push_interval(
                    value.months,
                    value.days,
                    value.nanoseconds,
                    Unit::of(&TimeUnit::Nanosecond),
                    out,
                );
            }
        }
        out.push(b'"');
    }

    fn is_plain_string(&self) -> bool {
        true
    }
}

fn push_time(time: Time, value: i64, out: &mut Vec<u8>) {
    const MILLISECONDS_IN_DAY: i64 = 86_400_000;
    match time {
        Time::Days => push_date(out, value),
        Time::Milliseconds => push_date(out, value.div_euclid(MILLISECONDS_IN_DAY)),
        Time::Clock(unit) => unit.push_time(out, value),
        Time::Timestamp(unit, has_zone) => {
            unit.push_timestamp(out, value);
            if has_zone {
                out.push(b'Z');
            }
        }
        Time::Duration(unit) => {
            if value < 0 {
                out.push(b'-');
            }
            out.extend_from_slice(b"PT");
            unit.push_span(out, value.unsigned_abs());
        }
        Time::Interval => {
            out.push(b'P');
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            out.push(b'M');
        }
    }
}

/// Appends `P1M2DT0.000000003S`; parts that are zero are left out, but for the seconds when nothing else is there.
fn push_interval(months: i32, days: i32, fraction: i64, unit: Unit, out: &mut Vec<u8>) {
    out.push(b'P');
    for (value, letter) in [(months, b'M'), (days, b'D')] {
        if value != 0 {
            out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            out.push(letter);
        }
    }
    if fraction != 0 || (months == 0 && days == 0) {
        out.push(b'T');
        if fraction < 0 {
            out.push(b'-');
        }
        unit.push_span(out, fraction.unsigned_abs());
    }
}
