//! Values of any length: texts, bytes, and the numbers that nested columns and old files store as bytes.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMillisecondType,
};
use arrow_array::{ArrayRef, BooleanArray, Date32Array, Decimal128Array, PrimitiveArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use pilaster_core::views::{ByteKind, prefixed_array};
use pilaster_core::{Error, Result};
use pilaster_encoding::DecodeError;
use pilaster_encoding::prefixed::{BigU16, BigU32, next_behind};

use super::super::meta::big_endian;
use super::super::types::CarbonType;

/// What stands for null in a STRING.
pub(crate) const NULL_MARKER: &[u8] = b"@NU#LL$!";
/// Dates are stored as days since 1970 plus this.
pub(crate) const DATE_BASE: i32 = 1_073_741_823;

/// How long the length before each value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LengthWidth {
    Two,
    Four,
}

/// Values with their lengths, big-endian, up to the end of `bytes`, as an array of the column's type; of at most `most`, if
/// that is known. Nulls are told by their content.
pub(crate) fn array(
    bytes: Buffer,
    width: LengthWidth,
    carbon_type: CarbonType,
    most: Option<usize>,
) -> Result<ArrayRef> {
    let views = |kind: ByteKind, null: Option<&[u8]>| match width {
        LengthWidth::Two => prefixed_array::<BigU16>(kind, bytes.clone(), most, null),
        LengthWidth::Four => prefixed_array::<BigU32>(kind, bytes.clone(), most, null),
    };
    match carbon_type {
        CarbonType::String => views(ByteKind::Text, Some(NULL_MARKER)),
        // Null and empty are one value here, and CarbonData reads it as empty.
        CarbonType::Varchar => views(ByteKind::Text, None),
        CarbonType::Binary => views(ByteKind::Binary, Some(&[])),
        other => Slices::parse(&bytes, width, most)?.array(other),
    }
}

/// Values of types that have a fixed width in Arrow.
struct Slices<'a>(Vec<&'a [u8]>);

impl<'a> Slices<'a> {
    fn parse(bytes: &'a [u8], width: LengthWidth, most: Option<usize>) -> Result<Self, DecodeError> {
        let (mut values, mut pos) = (Vec::new(), 0);
        while pos < bytes.len() {
            if most.is_some_and(|most| values.len() >= most) {
                return Err(DecodeError::new(pos, format!("at most {} values", values.len()), "more"));
            }
            values.push(match width {
                LengthWidth::Two => next_behind::<BigU16>(bytes, &mut pos)?,
                LengthWidth::Four => next_behind::<BigU32>(bytes, &mut pos)?,
            });
        }
        Ok(Self(values))
    }

    fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        self.0.iter().copied()
    }

    fn array(&self, carbon_type: CarbonType) -> Result<ArrayRef> {
        match carbon_type {
            CarbonType::Date => self.dates(),
            CarbonType::Decimal { precision, scale } => self.decimals(precision, scale),
            CarbonType::Byte => self.texts_of_numbers(),
            CarbonType::Boolean => self.booleans(),
            CarbonType::Short => self.integers::<Int16Type, 2>(|bytes| i16::from_be_bytes(bytes) ^ i16::MIN),
            CarbonType::Int => self.integers::<Int32Type, 4>(|bytes| i32::from_be_bytes(bytes) ^ i32::MIN),
            CarbonType::Long => self.integers::<Int64Type, 8>(|bytes| i64::from_be_bytes(bytes) ^ i64::MIN),
            CarbonType::Timestamp => {
                let array =
                    self.integer_values::<TimestampMillisecondType, 8>(|b| i64::from_be_bytes(b) ^ i64::MIN)?;
                Ok(Arc::new(array.with_timezone("UTC")))
            }
            other => Err(Error::corrupt("a type that is stored as bytes", format!("{other:?}"))),
        }
    }

    fn integer_values<T: ArrowPrimitiveType, const N: usize>(
        &self,
        value: impl Fn([u8; N]) -> T::Native,
    ) -> Result<PrimitiveArray<T>> {
        self.iter()
            .map(|bytes| match <[u8; N]>::try_from(bytes) {
                Ok(bytes) => Ok(Some(value(bytes))),
                Err(_) if bytes.is_empty() => Ok(None),
                Err(_) => Err(Error::corrupt(format!("a number of {N} bytes"), bytes.len())),
            })
            .collect()
    }

    fn integers<T: ArrowPrimitiveType, const N: usize>(
        &self,
        value: impl Fn([u8; N]) -> T::Native,
    ) -> Result<ArrayRef> {
        Ok(Arc::new(self.integer_values::<T, N>(value)?))
    }

    fn texts_of_numbers(&self) -> Result<ArrayRef> {
        let array = self
            .iter()
            .map(|bytes| match (bytes, std::str::from_utf8(bytes).ok().and_then(|text| text.parse().ok())) {
                ([], _) => Ok(None),
                (_, Some(number)) => Ok(Some(number)),
                _ => Err(Error::corrupt("the text of a number from -128 to 127", format!("{bytes:02x?}"))),
            })
            .collect::<Result<PrimitiveArray<Int8Type>>>()?;
        Ok(Arc::new(array))
    }

    fn booleans(&self) -> Result<ArrayRef> {
        let array = self
            .iter()
            .map(|bytes| match bytes {
                [] => Ok(None),
                [0 | b'0'] => Ok(Some(false)),
                [1 | b'1' | 0xff] => Ok(Some(true)),
                other => Err(Error::corrupt("a boolean of one byte", format!("{other:02x?}"))),
            })
            .collect::<Result<BooleanArray>>()?;
        Ok(Arc::new(array))
    }

    fn dates(&self) -> Result<ArrayRef> {
        let array = self
            .iter()
            .map(|bytes| match <[u8; 4]>::try_from(bytes) {
                Ok(bytes) => surrogate_days(i32::from_be_bytes(bytes) ^ i32::MIN),
                Err(_) if bytes.is_empty() => Ok(None),
                Err(_) => Err(Error::corrupt("a date of 4 bytes", bytes.len())),
            })
            .collect::<Result<Date32Array>>()?;
        Ok(Arc::new(array))
    }

    fn decimals(&self, precision: u8, scale: u8) -> Result<ArrayRef> {
        let array = self
            .iter()
            .map(|bytes| match bytes.split_first() {
                None => Ok(None),
                Some((stored, unscaled)) => decimal(*stored, unscaled, precision, scale).map(Some),
            })
            .collect::<Result<Decimal128Array>>()?;
        Ok(Arc::new(array.with_precision_and_scale(precision, i8::try_from(scale).unwrap_or(i8::MAX))?))
    }
}

/// The value of an unscaled number with the scale it was stored with, at the column's scale.
pub(crate) fn decimal(stored: u8, unscaled: &[u8], precision: u8, scale: u8) -> Result<i128> {
    let refused = || {
        Error::corrupt(
            format!("a decimal of precision {precision} and scale {scale}"),
            format!("{} bytes of scale {stored}", unscaled.len()),
        )
    };
    let value = big_endian(unscaled).ok_or_else(refused)?;
    let factor = 10i128.checked_pow(u32::from(scale.abs_diff(stored))).ok_or_else(refused)?;
    let value = if stored <= scale {
        value.checked_mul(factor)
    } else {
        value.checked_div(factor).filter(|_| value.checked_rem(factor) == Some(0))
    };
    let limit = 10i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX);
    value.filter(|value| value.unsigned_abs() < limit.unsigned_abs()).ok_or_else(refused)
}

/// The largest surrogate of null.
const NULL_SURROGATE: i32 = 1;

/// Days since 1970; `None` for the surrogates of null.
pub(crate) fn surrogate_days(surrogate: i32) -> Result<Option<i32>> {
    match surrogate {
        0..=NULL_SURROGATE => Ok(None),
        2.. => Ok(Some(surrogate.wrapping_sub(DATE_BASE))),
        _ => Err(Error::corrupt("the surrogate of a date", surrogate)),
    }
}

/// A page of dates: surrogates of four bytes, big-endian.
pub(crate) fn date_page(bytes: &[u8]) -> Result<ArrayRef> {
    let (surrogates, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(Error::corrupt("dates of 4 bytes", format!("{} bytes", bytes.len())));
    }
    let surrogates = surrogates.iter().map(|bytes| i32::from_be_bytes(*bytes));
    // No early exit, so that the loop is vectorised.
    let least = surrogates.clone().fold(i32::MAX, i32::min);
    let first = surrogate_days(least)?;
    let days: Vec<i32> = surrogates.clone().map(|surrogate| surrogate.wrapping_sub(DATE_BASE)).collect();
    let nulls = first.is_none().then(|| {
        let is_date: Vec<bool> = surrogates.map(|surrogate| surrogate > NULL_SURROGATE).collect();
        NullBuffer::new(BooleanBuffer::from(is_date))
    });
    Ok(Arc::new(Date32Array::new(days.into(), nulls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Date32Type, Decimal128Type};
    use proptest::prelude::*;

    #[test]
    fn the_marker_is_null_and_empty_is_not() {
        let bytes = b"\0\x01a\0\x08@NU#LL$!\0\0";
        let array = array(bytes.into(), LengthWidth::Two, CarbonType::String, Some(3)).unwrap();
        assert_eq!(array.as_string_view().iter().collect::<Vec<_>>(), [Some("a"), None, Some("")]);
        let bytes = [0, 0, 0, 1, 0xff, 0, 0, 0, 0];
        let array =
            super::array(bytes.as_slice().into(), LengthWidth::Four, CarbonType::Binary, None).unwrap();
        assert_eq!(array.as_binary_view().iter().collect::<Vec<_>>(), [Some(&[0xff][..]), None]);
    }

    #[test]
    fn children_of_dates_and_decimals() {
        let date = ((DATE_BASE + 3) ^ i32::MIN).to_be_bytes();
        let bytes = [&[0, 0, 0, 4][..], &date, &[0, 0, 0, 0]].concat();
        let array = array(bytes.into(), LengthWidth::Four, CarbonType::Date, None).unwrap();
        assert_eq!(array.as_primitive::<Date32Type>().iter().collect::<Vec<_>>(), [Some(3), None]);
        let bytes = [0, 2, 1, 0x0f, 0, 3, 3, 0x03, 0xe8, 0, 0];
        let decimal = CarbonType::Decimal { precision: 4, scale: 2 };
        let array = super::array(bytes.as_slice().into(), LengthWidth::Two, decimal, None).unwrap();
        assert_eq!(
            array.as_primitive::<Decimal128Type>().iter().collect::<Vec<_>>(),
            [Some(150), Some(100), None]
        );
        let inexact = [0, 2, 3, 0x0f];
        assert!(super::array(inexact.as_slice().into(), LengthWidth::Two, decimal, None).is_err());
    }

    #[test]
    fn pages_of_dates_have_two_surrogates_of_null() {
        let page = |surrogates: &[i32]| surrogates.iter().flat_map(|s| s.to_be_bytes()).collect::<Vec<_>>();
        let array = date_page(&page(&[DATE_BASE, 1, DATE_BASE - 2, 0])).unwrap();
        let dates: Vec<_> = array.as_primitive::<Date32Type>().iter().collect();
        assert_eq!(dates, [Some(0), None, Some(-2), None]);
        assert_eq!(date_page(&page(&[DATE_BASE, 2])).unwrap().null_count(), 0);
        assert_eq!(date_page(&[]).unwrap().len(), 0);
        assert!(date_page(&page(&[DATE_BASE, -1])).is_err());
        assert!(date_page(&[0; 5]).is_err());
    }

    proptest! {
        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            for width in [LengthWidth::Two, LengthWidth::Four] {
                for carbon_type in [
                    CarbonType::String, CarbonType::Varchar, CarbonType::Binary, CarbonType::Date, CarbonType::Int,
                    CarbonType::Boolean, CarbonType::Byte, CarbonType::Decimal { precision: 9, scale: 3 },
                ] {
                    let _ = array(bytes.clone().into(), width, carbon_type, None);
                }
            }
            let _ = date_page(&bytes);
        }
    }
}
