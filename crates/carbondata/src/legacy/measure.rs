//! Measures: numbers whose width follows from the greatest and the least of them.
//!
//! Both are in a Java object that was serialised into the chunk's meta; only its one shape is read, never any other object.

use std::sync::Arc;

use arrow_array::Array;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, Float64Array, PrimitiveArray, make_array};
use arrow_buffer::NullBuffer;
use pilaster_core::{Error, Result};

use crate::file::CarbonType;
use crate::file::page::strings::{self, LengthWidth};

/// What the object says.
#[derive(Debug, Clone, PartialEq)]
struct Meta {
    decimals: i32,
    kind: u8,
    max: [u8; 8],
    min: [u8; 8],
}

/// Everything before the first value: class, its fields and their types.
const HEAD: &[&[u8]] = &[
    b"\xac\xed\x00\x05\x73\x72\x00\x34org.apache.carbondata.core.metadata.ValueEncoderMeta",
    b"\xe8\x6a\x31\xbb\x2c\x82\x99\x9b\x02\x00\x06",
    b"\x42\x00\x10dataTypeSelected\x49\x00\x07decimal\x43\x00\x04type",
    b"\x4c\x00\x08maxValue\x74\x00\x12Ljava/lang/Object;\x4c\x00\x08minValue\x71\x00\x7e\x00\x01",
    b"\x4c\x00\x0buniqueValue\x71\x00\x7e\x00\x01\x78\x70",
];
/// A class of numbers after its name: id, flags, one field `value`.
const NUMBER_CLASS_BYTES: usize = 19;
/// `java.lang.Number` and the end of the class.
const NUMBER_TAIL: &[u8] =
    b"\x78\x72\x00\x10java.lang.Number\x86\xac\x95\x1d\x0b\x94\xe0\x8b\x02\x00\x00\x78\x70";

fn refused(what: &'static str) -> Error {
    Error::corrupt("the serialised meta of a measure", what)
}

fn strip<'a>(bytes: &'a [u8], prefix: &[u8]) -> Result<&'a [u8]> {
    bytes.strip_prefix(prefix).ok_or_else(|| refused("another object"))
}

impl Meta {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut rest = bytes;
        for part in HEAD {
            rest = strip(rest, part)?;
        }
        let cut = || refused("its end");
        let (head, rest) = rest.split_first_chunk::<7>().ok_or_else(cut)?;
        let [_, d0, d1, d2, d3, _, kind] = *head;
        let decimals = i32::from_be_bytes([d0, d1, d2, d3]);
        let mut meta = Self { decimals, kind, max: [0; 8], min: [0; 8] };
        // The values of decimals are not needed.
        if kind == b'b' {
            return Ok(meta);
        }
        let rest = strip(rest, b"\x73\x72")?;
        let rest = match kind {
            b'n' => strip(rest, b"\x00\x10java.lang.Double")?,
            _ => strip(rest, b"\x00\x0ejava.lang.Long")?,
        };
        let rest = rest.get(NUMBER_CLASS_BYTES..).ok_or_else(cut)?;
        let rest = strip(rest, NUMBER_TAIL)?;
        let (max, rest) = rest.split_first_chunk::<8>().ok_or_else(cut)?;
        meta.max = *max;
        meta.min = match rest.strip_prefix(b"\x73\x71\x00\x7e\x00\x03") {
            Some(rest) => *rest.first_chunk::<8>().ok_or_else(cut)?,
            // The same object again.
            None if rest.first() == Some(&0x71) => *max,
            None => return Err(refused("another second value")),
        };
        Ok(meta)
    }
}

/// Bytes of the least integer type that holds a number; 8 for what none holds.
fn fit(value: i64) -> usize {
    match value {
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x8000_0000..=0x7fff_ffff => 4,
        _ => 8,
    }
}

/// As [`fit`]; whether it is a double and no integer too.
fn fit_double(value: f64) -> (usize, bool) {
    if value.abs() < 9.2e18 { (fit(truncated(value)), false) } else { (8, true) }
}

#[expect(clippy::cast_possible_truncation, reason = "only the magnitude counts, and it is below 2^63")]
fn truncated(value: f64) -> i64 {
    value as i64
}

fn as_f64(value: i64) -> f64 {
    value as f64
}

/// Little-endian integers of `width` bytes.
fn integers(bytes: &[u8], width: usize) -> Vec<i64> {
    match width {
        1 => bytes.iter().map(|byte| i64::from(byte.cast_signed())).collect(),
        2 => bytes.as_chunks().0.iter().map(|b| i64::from(i16::from_le_bytes(*b))).collect(),
        4 => bytes.as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect(),
        _ => bytes.as_chunks().0.iter().map(|b| i64::from_le_bytes(*b)).collect(),
    }
}

/// The values of a measure.
pub(crate) fn decode(
    carbon_type: CarbonType,
    meta: &[u8],
    bytes: &[u8],
    rows: usize,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let meta = Meta::parse(meta)?;
    if meta.kind == b'b' {
        let array = strings::array(bytes.into(), LengthWidth::Four, carbon_type, Some(rows))?;
        let nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
        return Ok(make_array(array.to_data().into_builder().nulls(nulls).build()?));
    }
    let sized = |width: usize| -> Result<()> {
        match rows.checked_mul(width) {
            Some(length) if length == bytes.len() => Ok(()),
            _ => Err(Error::corrupt(
                format!("{rows} values of {width} bytes"),
                format!("{} bytes", bytes.len()),
            )),
        }
    };
    match meta.kind {
        b'd' | b'l' => {
            let (max, min) = (i64::from_be_bytes(meta.max), i64::from_be_bytes(meta.min));
            let (plain, spread) = (fit(max), fit(max.wrapping_sub(min)));
            let is_delta = meta.kind == b'd' && plain > spread;
            let width = if meta.kind == b'l' { 8 } else { spread };
            sized(width)?;
            let mut values = integers(bytes, width);
            if is_delta {
                values.iter_mut().for_each(|value| *value = max.wrapping_sub(*value));
            }
            integer_array(carbon_type, values, nulls)
        }
        b'n' => {
            let (max, min) = (f64::from_be_bytes(meta.max), f64::from_be_bytes(meta.min));
            let values = doubles(&meta, max, min, bytes, &sized)?;
            if carbon_type != CarbonType::Double {
                return Err(Error::corrupt("a column of doubles", format!("{carbon_type:?}")));
            }
            Ok(Arc::new(Float64Array::new(values.into(), nulls)))
        }
        other => Err(Error::corrupt("a kind of measure", char::from(other))),
    }
}

fn doubles(
    meta: &Meta,
    max: f64,
    min: f64,
    bytes: &[u8],
    sized: &dyn Fn(usize) -> Result<()>,
) -> Result<Vec<f64>> {
    let plain_doubles = || -> Result<Vec<f64>> {
        sized(8)?;
        Ok(bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect())
    };
    let greatest = if max.abs() >= min.abs() { max } else { min };
    if meta.decimals <= 0 {
        let ((plain, is_double), (spread, is_wide)) = (fit_double(greatest), fit_double(max - min));
        if plain > spread {
            sized(spread)?;
            return Ok(integers(bytes, spread).into_iter().map(|value| max - as_f64(value)).collect());
        }
        if (plain == spread && is_double) || is_wide {
            return plain_doubles();
        }
        sized(spread)?;
        return Ok(integers(bytes, spread).into_iter().map(as_f64).collect());
    }
    let factor = 10f64.powi(meta.decimals);
    let ((scaled, _), (scaled_delta, _)) = (fit_double(factor * greatest), fit_double(factor * (max - min)));
    if scaled >= 8 && scaled_delta >= 8 {
        return plain_doubles();
    }
    if scaled <= scaled_delta {
        sized(scaled)?;
        return Ok(integers(bytes, scaled).into_iter().map(|value| as_f64(value) / factor).collect());
    }
    sized(scaled_delta)?;
    integers(bytes, scaled_delta)
        .into_iter()
        .map(|value| minus(max, as_f64(value) / factor).ok_or_else(|| refused("a value of too many digits")))
        .collect()
}

/// The difference of the shortest decimal texts of two numbers.
fn minus(a: f64, b: f64) -> Option<f64> {
    let parts = |value: f64| -> Option<(i128, usize)> {
        let text = format!("{value}");
        let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
        Some((text.replace('.', "").parse().ok()?, digits))
    };
    let ((a, a_digits), (b, b_digits)) = (parts(a)?, parts(b)?);
    let digits = a_digits.max(b_digits);
    let raised = |value: i128, from: usize| {
        value.checked_mul(10i128.checked_pow(u32::try_from(digits.checked_sub(from)?).ok()?)?)
    };
    let difference = raised(a, a_digits)?.checked_sub(raised(b, b_digits)?)?;
    format!("{difference}e-{digits}").parse().ok()
}

fn integer_array(
    carbon_type: CarbonType,
    mut values: Vec<i64>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    // What stands in the place of a null may not fit the type.
    if let Some(nulls) = &nulls {
        for (value, is_valid) in values.iter_mut().zip(nulls.iter()) {
            if !is_valid {
                *value = 0;
            }
        }
    }
    match carbon_type {
        CarbonType::Short => narrowed::<Int16Type>(&values, nulls),
        CarbonType::Int => narrowed::<Int32Type>(&values, nulls),
        CarbonType::Long => narrowed::<Int64Type>(&values, nulls),
        CarbonType::Boolean => {
            let flags: Vec<bool> = values.iter().map(|value| *value != 0).collect();
            Ok(Arc::new(BooleanArray::new(flags.into(), nulls)))
        }
        other => Err(Error::corrupt("a column of integers", format!("{other:?}"))),
    }
}

fn narrowed<T: ArrowPrimitiveType>(values: &[i64], nulls: Option<NullBuffer>) -> Result<ArrayRef>
where
    T::Native: TryFrom<i64>,
{
    let values: Vec<T::Native> = values
        .iter()
        .map(|value| T::Native::try_from(*value))
        .collect::<Result<_, _>>()
        .map_err(|_| Error::corrupt("values of the column's type", "a larger one"))?;
    Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(kind: u8, class: &[u8], max: [u8; 8], min: [u8; 8]) -> Vec<u8> {
        let mut bytes = HEAD.concat();
        bytes.extend([0, 0, 0, 0, 0, 0, kind, 0x73, 0x72]);
        bytes.extend(class);
        bytes.extend([0; NUMBER_CLASS_BYTES]);
        bytes.extend(NUMBER_TAIL);
        bytes.extend(max);
        bytes.extend(b"\x73\x71\x00\x7e\x00\x03");
        bytes.extend(min);
        bytes
    }

    #[test]
    fn the_one_shape_of_the_object_is_read() {
        let bytes = meta(b'd', b"\x00\x0ejava.lang.Long", 59i64.to_be_bytes(), 0i64.to_be_bytes());
        let parsed = Meta::parse(&bytes).unwrap();
        assert_eq!((i64::from_be_bytes(parsed.max), parsed.kind), (59, b'd'));
        for end in 0..bytes.len() {
            assert!(Meta::parse(&bytes[..end]).is_err());
        }
    }

    #[test]
    fn narrow_spreads_are_stored_as_distances() {
        let bytes = meta(b'd', b"\x00\x0ejava.lang.Long", 1000i64.to_be_bytes(), 990i64.to_be_bytes());
        let array = decode(CarbonType::Int, &bytes, &[0, 10, 3], 3, None).unwrap();
        let expected = arrow_array::Int32Array::from(vec![1000, 990, 997]);
        assert_eq!(array.as_ref(), &expected as &dyn Array);
        assert!(decode(CarbonType::Int, &bytes, &[0, 10], 3, None).is_err());
    }

    #[test]
    fn decimal_texts_are_subtracted_exactly() {
        assert_eq!(minus(0.3, 0.1), Some(0.2));
        assert_eq!(minus(1.0, 0.25), Some(0.75));
        assert_eq!(minus(-1.5, 2.0), Some(-3.5));
    }
}
