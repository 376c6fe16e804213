//! Pages of numbers: fixed width by the store type, changed by the encoding.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use pilaster_encoding::{DecodeError, Result, big24};

use super::super::meta::{EncoderMeta, Max, Store, big_endian};
use super::super::types::CarbonType;
use super::encoding;

/// Decompressed values, what they mean, and where they go.
pub(crate) struct NumberPage<'a> {
    pub carbon_type: CarbonType,
    pub encoding: i32,
    pub meta: &'a EncoderMeta,
    pub bytes: &'a [u8],
    /// For each row which stored value it has, if they are not in row order.
    pub order: Option<&'a [u32]>,
    pub nulls: Option<NullBuffer>,
}

/// Bytes of a stored value; `None` if its width is not fixed by the store type.
pub(crate) fn store_width(store: Store) -> Option<usize> {
    match store {
        Store::Byte => Some(1),
        Store::Short => Some(2),
        Store::ShortInt => Some(3),
        Store::Int | Store::Float => Some(4),
        Store::Long | Store::Double => Some(8),
        Store::Decimal | Store::ByteArray => None,
    }
}

/// Bytes of a decimal of this precision, when it is stored whole.
pub(crate) fn decimal_width(precision: u8) -> usize {
    // The least width whose positive numbers reach 10^precision.
    (1usize..16)
        .find(|width| {
            let bits = u32::try_from(width.saturating_mul(8)).unwrap_or(0).saturating_sub(1);
            1i128.checked_shl(bits).is_some_and(|limit| limit >= power_of_ten(precision))
        })
        .unwrap_or(16)
}

pub(crate) fn power_of_ten(exponent: u8) -> i128 {
    10i128.checked_pow(u32::from(exponent)).unwrap_or(i128::MAX)
}

/// How many values a page holds, by its length.
pub(crate) fn value_count(
    carbon_type: CarbonType,
    encoding: i32,
    meta: &EncoderMeta,
    bytes: &[u8],
) -> Result<usize> {
    let unrolled;
    let bytes = if encoding == encoding::RLE_INTEGRAL {
        unrolled = unroll(meta.store, bytes)?;
        &unrolled
    } else {
        bytes
    };
    let width = match (meta.store, carbon_type) {
        (Store::Decimal, CarbonType::Decimal { precision, .. }) => decimal_width(precision),
        (store, _) => store_width(store)
            .ok_or_else(|| DecodeError::new(0, "numbers of a fixed width", format!("{store:?}")))?,
    };
    match (bytes.len().checked_div(width), bytes.len().checked_rem(width)) {
        (Some(count), Some(0)) => Ok(count),
        _ => {
            let expected = format!("values of {width} bytes");
            Err(DecodeError::new(0, expected, format!("{} bytes", bytes.len())))
        }
    }
}

/// The most bytes that `rows` values can take.
pub(crate) fn max_bytes(carbon_type: CarbonType, meta: &EncoderMeta, rows: usize) -> usize {
    let width = match (meta.store, carbon_type) {
        (Store::Decimal, CarbonType::Decimal { precision, .. }) => decimal_width(precision),
        (store, _) => store_width(store).unwrap_or(0),
    };
    rows.saturating_mul(width)
}

/// An integer that a page's values are narrowed to.
trait Integer: Copy {
    fn narrow(value: i64) -> Self;
    fn widen(self) -> i64;
}

macro_rules! integer {
    ($($t:ty),*) => {$(
        impl Integer for $t {
            #[inline]
            #[expect(clippy::cast_possible_truncation, clippy::allow_attributes, reason = "the caller compares with the wide value")]
            #[allow(clippy::unnecessary_cast, reason = "one of the types is the wide one")]
            fn narrow(value: i64) -> Self {
                value as Self
            }

            #[inline]
            fn widen(self) -> i64 {
                i64::from(self)
            }
        }
    )*};
}
integer!(i8, i16, i32);

impl Integer for i64 {
    #[inline]
    fn narrow(value: i64) -> Self {
        value
    }

    #[inline]
    fn widen(self) -> i64 {
        self
    }
}

/// Every stored integer through `change`.
fn integers<T: Copy>(store: Store, bytes: &[u8], mut change: impl FnMut(i64) -> T) -> Result<Vec<T>> {
    Ok(match store {
        Store::Byte => bytes.iter().map(|byte| change(i64::from(byte.cast_signed()))).collect(),
        Store::Short => {
            bytes.as_chunks().0.iter().map(|b| change(i64::from(i16::from_le_bytes(*b)))).collect()
        }
        Store::ShortInt => big24::map(bytes, |word| change(i64::from(word.cast_signed() >> 8)))?,
        Store::Int => bytes.as_chunks().0.iter().map(|b| change(i64::from(i32::from_le_bytes(*b)))).collect(),
        Store::Long => bytes.as_chunks().0.iter().map(|b| change(i64::from_le_bytes(*b))).collect(),
        Store::Float | Store::Double | Store::Decimal | Store::ByteArray => {
            return Err(DecodeError::new(0, "integers", format!("values stored as {store:?}")));
        }
    })
}

/// More than the values of any page take.
const MAX_UNROLLED: usize = 1 << 20;

/// Runs as RLE_INTEGRAL stores them, to plain little-endian values.
fn unroll(store: Store, bytes: &[u8]) -> Result<Vec<u8>> {
    let width = store_width(store).filter(|_| store != Store::ShortInt);
    let width = width.ok_or_else(|| DecodeError::new(0, "runs of integers", format!("{store:?}")))?;
    let mut out = Vec::new();
    let mut rest = bytes;
    let end = || DecodeError::new(bytes.len(), "a whole run", "the end of the page");
    while !rest.is_empty() {
        let (header, body) = rest.split_first_chunk::<2>().ok_or_else(end)?;
        let header = u16::from_be_bytes(*header);
        let (repeats, stored) = match header & 0x8000 {
            0 => (usize::from(header), 1),
            _ => (1, usize::from(header & 0x7fff)),
        };
        let (values, after) = body.split_at_checked(stored.saturating_mul(width)).ok_or_else(end)?;
        if out.len().saturating_add(values.len().saturating_mul(repeats)) > MAX_UNROLLED {
            return Err(DecodeError::new(0, format!("runs of at most {MAX_UNROLLED} bytes"), "more"));
        }
        for value in values.chunks(width) {
            for _ in 0..repeats {
                out.extend(value.iter().rev());
            }
        }
        rest = after;
    }
    Ok(out)
}

fn arranged<T: Copy>(values: Vec<T>, order: Option<&[u32]>) -> Result<Vec<T>> {
    let Some(order) = order else { return Ok(values) };
    order
        .iter()
        .map(|&place| usize::try_from(place).ok().and_then(|place| values.get(place).copied()))
        .collect::<Option<_>>()
        .ok_or_else(|| DecodeError::new(0, "a stored value for every row", format!("{}", values.len())))
}

fn out_of_range() -> DecodeError {
    DecodeError::new(0, "values of the column's type", "a larger one")
}

impl NumberPage<'_> {
    /// The values as an array.
    pub fn decode(self) -> Result<ArrayRef> {
        let unrolled;
        let mut page: NumberPage<'_> = self;
        if page.encoding == encoding::RLE_INTEGRAL {
            unrolled = unroll(page.meta.store, page.bytes)?;
            page.bytes = &unrolled;
            page.encoding = encoding::DIRECT_COMPRESS;
        }
        match page.carbon_type {
            CarbonType::Byte => page.integer_array::<Int8Type>(),
            CarbonType::Short => page.integer_array::<Int16Type>(),
            CarbonType::Int => page.integer_array::<Int32Type>(),
            CarbonType::Long => page.integer_array::<Int64Type>(),
            CarbonType::Timestamp => {
                let array = page.integers_of::<TimestampMillisecondType>()?;
                Ok(Arc::new(array.with_timezone("UTC")))
            }
            CarbonType::Boolean => page.booleans(),
            CarbonType::Double => page.floats::<Float64Type>(|value| value),
            CarbonType::Float => page.floats::<Float32Type>(to_f32),
            CarbonType::Decimal { precision, scale } => page.decimals(precision, scale),
            other => Err(DecodeError::new(0, "a type of numbers", format!("{other:?}"))),
        }
    }

    /// What [`encoding::ADAPTIVE_DELTA_INTEGRAL`] subtracts from; 0 for the other encodings.
    fn integer_base(&self) -> Result<Option<i64>> {
        match self.encoding {
            encoding::DIRECT_COMPRESS | encoding::ADAPTIVE_INTEGRAL | encoding::BOOL_BYTE => Ok(None),
            encoding::ADAPTIVE_DELTA_INTEGRAL => match self.meta.max {
                Max::Integer(max) => Ok(Some(max)),
                Max::Double(max) => Ok(Some(truncated(max))),
                Max::Float(max) => Ok(Some(truncated(f64::from(max)))),
                Max::Decimal(max) => i64::try_from(max).map(Some).map_err(|_| out_of_range()),
                Max::None => Err(DecodeError::new(0, "the maximum of a delta page", "none")),
            },
            other => Err(DecodeError::new(0, "an encoding of integers", other.to_string())),
        }
    }

    /// Every integer of the page, changed as the encoding says, then by `change`.
    fn decoded<T: Copy>(&self, mut change: impl FnMut(i64) -> T) -> Result<Vec<T>> {
        let values = match self.integer_base()? {
            None => integers(self.meta.store, self.bytes, change)?,
            Some(max) => integers(self.meta.store, self.bytes, |value| change(max.wrapping_sub(value)))?,
        };
        arranged(values, self.order)
    }

    fn integers_of<T>(&self) -> Result<PrimitiveArray<T>>
    where
        T: ArrowPrimitiveType,
        T::Native: Integer,
    {
        let mut fits = true;
        let values = self.decoded(|wide| {
            let value = T::Native::narrow(wide);
            fits &= value.widen() == wide;
            value
        })?;
        if !fits {
            return Err(out_of_range());
        }
        Ok(PrimitiveArray::new(values.into(), self.nulls.clone()))
    }

    fn integer_array<T>(&self) -> Result<ArrayRef>
    where
        T: ArrowPrimitiveType,
        T::Native: Integer,
    {
        Ok(Arc::new(self.integers_of::<T>()?))
    }

    fn booleans(&self) -> Result<ArrayRef> {
        let mut fits = true;
        let values = self.decoded(|value| {
            fits &= value == 0 || value == 1;
            value == 1
        })?;
        if !fits {
            return Err(DecodeError::new(0, "booleans of 0 and 1", "another number"));
        }
        Ok(Arc::new(BooleanArray::new(BooleanBuffer::from(values), self.nulls.clone())))
    }

    fn floats<T: ArrowPrimitiveType>(&self, change: impl Fn(f64) -> T::Native) -> Result<ArrayRef> {
        let factor = 10f64.powi(self.meta.decimals.max(0));
        let values = match (self.encoding, self.meta.store) {
            (encoding::ADAPTIVE_FLOATING, _) => {
                integers(self.meta.store, self.bytes, |value| change(as_f64(value) / factor))?
            }
            (encoding::ADAPTIVE_DELTA_FLOATING, _) => {
                let base = match self.meta.max {
                    Max::Double(max) => truncated(factor * max),
                    // The product was made in the column's own precision.
                    Max::Float(max) => truncated(f64::from(to_f32(factor) * max)),
                    _ => return Err(DecodeError::new(0, "the maximum of a delta page", "none")),
                };
                integers(self.meta.store, self.bytes, |value| {
                    change(as_f64(base.wrapping_sub(value)) / factor)
                })?
            }
            (encoding::DIRECT_COMPRESS, Store::Double) => {
                self.bytes.as_chunks().0.iter().map(|bytes| change(f64::from_le_bytes(*bytes))).collect()
            }
            (encoding::DIRECT_COMPRESS, Store::Float) => self
                .bytes
                .as_chunks()
                .0
                .iter()
                .map(|bytes| change(f64::from(f32::from_le_bytes(*bytes))))
                .collect(),
            _ => {
                let values = self.decoded(|value| change(as_f64(value)))?;
                return Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.clone())));
            }
        };
        let values = arranged(values, self.order)?;
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), self.nulls.clone())))
    }

    fn decimals(&self, precision: u8, scale: u8) -> Result<ArrayRef> {
        let limit = power_of_ten(precision).unsigned_abs();
        let mut fits = true;
        let values = if self.meta.store == Store::Decimal {
            let whole = |bytes: &[u8]| {
                let value = big_endian(bytes).unwrap_or(i128::MAX);
                fits &= value.unsigned_abs() < limit;
                value
            };
            arranged(self.bytes.chunks(decimal_width(precision)).map(whole).collect(), self.order)?
        } else {
            // A limit beyond 64 bits is beyond every integer.
            let limit = u64::try_from(limit).unwrap_or(u64::MAX);
            self.decoded(|value| {
                fits &= value.unsigned_abs() < limit;
                i128::from(value)
            })?
        };
        if !fits {
            let expected = format!("decimals of at most {precision} digits");
            return Err(DecodeError::new(0, expected, "a longer one"));
        }
        let array = Decimal128Array::new(values.into(), self.nulls.clone());
        let array = array.with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(i8::MAX));
        Ok(Arc::new(array.map_err(|error| DecodeError::new(0, "a decimal type", error.to_string()))?))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the format narrows these values itself")]
pub(crate) fn to_f32(value: f64) -> f32 {
    value as f32
}

#[expect(clippy::cast_possible_truncation, reason = "the format cuts off the fraction itself")]
pub(crate) fn truncated(value: f64) -> i64 {
    value as i64
}

#[expect(clippy::cast_precision_loss, clippy::allow_attributes, reason = "the format computes in doubles")]
#[allow(unfulfilled_lint_expectations, reason = "the lint is not always on")]
pub(crate) fn as_f64(value: i64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;

    fn meta(store: Store, decimals: i32, max: Max) -> EncoderMeta {
        EncoderMeta { column_type: 4, store, decimals, max, rest: 0 }
    }

    fn page<'a>(
        carbon_type: CarbonType,
        encoding: i32,
        meta: &'a EncoderMeta,
        bytes: &'a [u8],
    ) -> NumberPage<'a> {
        NumberPage { carbon_type, encoding, meta, bytes, order: None, nulls: None }
    }

    #[test]
    fn deltas_count_down_from_the_maximum() {
        let meta = meta(Store::ShortInt, 0, Max::Integer(100));
        let array = page(CarbonType::Int, 8, &meta, &[0, 0, 1, 0xff, 0xff, 0xff]).decode().unwrap();
        assert_eq!(array.as_primitive::<Int32Type>().values(), &[99, 101]);
    }

    #[test]
    fn values_that_do_not_fit_the_type_are_refused() {
        let meta = meta(Store::Int, 0, Max::Integer(0));
        assert!(page(CarbonType::Short, 7, &meta, &[0, 0, 1, 0]).decode().is_err());
        assert!(page(CarbonType::Boolean, 7, &meta, &[2, 0, 0, 0]).decode().is_err());
        assert!(
            page(CarbonType::Decimal { precision: 4, scale: 0 }, 7, &meta, &[0x10, 0x27, 0, 0])
                .decode()
                .is_err()
        );
        assert!(
            page(CarbonType::Decimal { precision: 4, scale: 0 }, 7, &meta, &[0x0f, 0x27, 0, 0])
                .decode()
                .is_ok()
        );
    }

    #[test]
    fn floats_are_divided_in_doubles() {
        let meta = meta(Store::Short, 1, Max::Double(10.25));
        let array = page(CarbonType::Double, 11, &meta, &[3, 0]).decode().unwrap();
        assert_eq!(array.as_primitive::<Float64Type>().values(), &[0.3]);
        let array = page(CarbonType::Double, 13, &meta, &[2, 0]).decode().unwrap();
        assert_eq!(array.as_primitive::<Float64Type>().values(), &[10.0]);
    }

    #[test]
    fn runs_of_integers_are_unrolled() {
        let meta = meta(Store::Short, 0, Max::Integer(0));
        let bytes = [0, 3, 0, 7, 0x80, 2, 0, 8, 0xff, 0xff];
        let array = page(CarbonType::Short, encoding::RLE_INTEGRAL, &meta, &bytes).decode().unwrap();
        assert_eq!(array.as_primitive::<Int16Type>().values(), &[7, 7, 7, 8, -1]);
        assert!(page(CarbonType::Short, encoding::RLE_INTEGRAL, &meta, &bytes[..9]).decode().is_err());
    }

    #[test]
    fn decimal_widths_are_those_of_the_format() {
        let widths = [19, 20, 25, 30, 38].map(decimal_width);
        assert_eq!(widths, [9, 9, 11, 13, 16]);
    }
}
