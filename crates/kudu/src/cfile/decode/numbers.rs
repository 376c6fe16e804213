//! Numbers on their way into an Arrow buffer: as wide as they are stored, or wider.

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer, i256};
use arrow_schema::DataType;
use pilaster_core::numbers::number_array;
use pilaster_core::{Error, Result};

use crate::cfile::arrow_types::Target;

/// Collects stored numbers, little-endian.
#[derive(Debug)]
pub(super) struct Numbers {
    stored: StoredNumber,
    collected: Collected,
    /// The largest magnitude that is allowed, if that is less than stored numbers may have.
    largest: Option<u128>,
    has_larger: bool,
}

#[derive(Debug)]
enum Collected {
    AsStored(MutableBuffer),
    Bits32(Vec<i32>),
    Bits64(Vec<i64>),
    Bits128(Vec<i128>),
    Bits256(Vec<i256>),
}

/// What a number that is to be widened is stored as.
#[derive(Debug, Clone, Copy)]
enum StoredNumber {
    I8,
    U8,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
    I128,
}

impl StoredNumber {
    fn new(width: usize, is_unsigned: bool) -> Self {
        match (width, is_unsigned) {
            (1, false) => Self::I8,
            (1, true) => Self::U8,
            (2, false) => Self::I16,
            (2, true) => Self::U16,
            (4, false) => Self::I32,
            (4, true) => Self::U32,
            (8, false) => Self::I64,
            (8, true) => Self::U64,
            _ => Self::I128,
        }
    }
}

/// Appends the numbers of `$stored` to `$wide`: one arm for each type that the wide one holds, so that each is a loop of its own.
/// Others are never widened to it; the array would be too short, and refused.
macro_rules! widen {
    ($number:expr, $stored:expr, $wide:expr, $to:ty: $($variant:ident $narrow:ty),*) => {
        match $number {
            $(StoredNumber::$variant => {
                let numbers = $stored.as_chunks().0.iter().map(|bytes| <$narrow>::from_le_bytes(*bytes));
                $wide.extend(numbers.map(<$to>::from));
            })*
            #[allow(unreachable_patterns, reason = "the widest holds all")]
            _ => {}
        }
    };
}

impl Numbers {
    /// Room for `rows` numbers on their way to `target`.
    pub fn new(target: &Target, rows: usize) -> Result<Self> {
        let (stored_width, width) = target.widths();
        let collected = match width {
            _ if width == stored_width => {
                Collected::AsStored(MutableBuffer::with_capacity(rows.saturating_mul(width)))
            }
            4 => Collected::Bits32(Vec::with_capacity(rows)),
            8 => Collected::Bits64(Vec::with_capacity(rows)),
            16 => Collected::Bits128(Vec::with_capacity(rows)),
            32 => Collected::Bits256(Vec::with_capacity(rows)),
            _ => return Err(Error::internal(format!("no way from {stored_width} to {width} bytes"))),
        };
        Ok(Self {
            stored: StoredNumber::new(stored_width, target.is_unsigned),
            collected,
            largest: target.most_digits.map(largest_of),
            has_larger: false,
        })
    }

    /// Takes whole stored numbers.
    pub fn push(&mut self, stored: &[u8]) {
        if let Some(largest) = self.largest {
            self.has_larger |= has_larger(self.stored, stored, largest);
        }
        match &mut self.collected {
            Collected::AsStored(buffer) => buffer.extend_from_slice(stored),
            Collected::Bits32(wide) => {
                widen!(self.stored, stored, wide, i32: I8 i8, U8 u8, I16 i16, U16 u16);
            }
            Collected::Bits64(wide) => {
                widen!(self.stored, stored, wide, i64: I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32);
            }
            Collected::Bits128(wide) => widen!(
                self.stored, stored, wide, i128:
                I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64
            ),
            Collected::Bits256(wide) => {
                let mut bits = Vec::new();
                widen!(
                    self.stored, stored, bits, i128:
                    I8 i8, U8 u8, I16 i16, U16 u16, I32 i32, U32 u32, I64 i64, U64 u64, I128 i128
                );
                wide.extend(bits.into_iter().map(i256::from_i128));
            }
        }
    }

    /// The array of `rows` rows that were collected.
    pub fn finish(self, rows: usize, nulls: Option<NullBuffer>, target: &Target) -> Result<ArrayRef> {
        let buffer: Buffer = match self.collected {
            Collected::AsStored(buffer) => buffer.into(),
            Collected::Bits32(wide) => Buffer::from_vec(wide),
            Collected::Bits64(wide) => Buffer::from_vec(wide),
            Collected::Bits128(wide) => Buffer::from_vec(wide),
            Collected::Bits256(wide) => Buffer::from_vec(wide),
        };
        let array = number_array(target.number(), buffer, rows, nulls)?;
        if self.has_larger {
            refuse_larger(&array, target)?;
        }
        target.finish(array)
    }
}

/// One stored number as an array of length one.
pub(crate) fn one_number(stored: &[u8], target: &Target) -> Result<ArrayRef> {
    let mut numbers = Numbers::new(target, 1)?;
    numbers.push(stored);
    numbers.finish(1, None, target)
}

/// An array of the type that was asked for, of `rows` numbers as they are stored.
pub(crate) fn number_values(
    stored: Buffer,
    rows: usize,
    nulls: Option<NullBuffer>,
    target: &Target,
) -> Result<ArrayRef> {
    let (stored_width, width) = target.widths();
    if stored_width != width {
        let mut wide = Numbers::new(target, rows)?;
        wide.push(&stored);
        return wide.finish(rows, nulls, target);
    }
    let number = StoredNumber::new(stored_width, target.is_unsigned);
    let has_larger = target.most_digits.is_some_and(|digits| has_larger(number, &stored, largest_of(digits)));
    let array = number_array(target.number(), stored, rows, nulls)?;
    if has_larger {
        refuse_larger(&array, target)?;
    }
    target.finish(array)
}

/// The largest number of so many digits.
fn largest_of(digits: u8) -> u128 {
    10u128.checked_pow(u32::from(digits)).map_or(u128::MAX, |power| power.saturating_sub(1))
}

/// Whether a number is larger than `$largest` or smaller than its negative. First all bits of all magnitudes together, without a
/// branch for each (of a negative number, one less than its magnitude): where those are less, every number is.
macro_rules! any_larger {
    ($stored:expr, $largest:expr, $signed:ty, $unsigned:ty) => {{
        let largest = <$unsigned>::try_from($largest).unwrap_or(<$unsigned>::MAX);
        let numbers = || $stored.as_chunks().0.iter().map(|bytes| <$signed>::from_le_bytes(*bytes));
        let bits = numbers().fold(0, |bits, value| bits | (value ^ (value >> (<$signed>::BITS - 1))));
        bits.cast_unsigned() >= largest && numbers().any(|value| value.unsigned_abs() > largest)
    }};
}

fn has_larger(number: StoredNumber, stored: &[u8], largest: u128) -> bool {
    match number {
        StoredNumber::I8 => any_larger!(stored, largest, i8, u8),
        StoredNumber::I16 => any_larger!(stored, largest, i16, u16),
        StoredNumber::I32 => any_larger!(stored, largest, i32, u32),
        StoredNumber::I64 => any_larger!(stored, largest, i64, u64),
        StoredNumber::I128 => any_larger!(stored, largest, i128, u128),
        StoredNumber::U8 => stored.iter().any(|byte| u128::from(*byte) > largest),
        StoredNumber::U16 => {
            stored.as_chunks().0.iter().any(|bytes| u128::from(u16::from_le_bytes(*bytes)) > largest)
        }
        StoredNumber::U32 => {
            stored.as_chunks().0.iter().any(|bytes| u128::from(u32::from_le_bytes(*bytes)) > largest)
        }
        StoredNumber::U64 => {
            stored.as_chunks().0.iter().any(|bytes| u128::from(u64::from_le_bytes(*bytes)) > largest)
        }
    }
}

/// Names the first number of more digits than the decimal has that it is read as; nulls are zeros.
fn refuse_larger(array: &ArrayRef, target: &Target) -> Result<()> {
    let digits = target.most_digits.unwrap_or(u8::MAX);
    let largest = largest_of(digits);
    let found = match array.data_type() {
        DataType::Decimal32(..) => first_of(array.as_primitive::<Decimal32Type>(), |value| {
            u128::from(value.unsigned_abs()) > largest
        }),
        DataType::Decimal64(..) => first_of(array.as_primitive::<Decimal64Type>(), |value| {
            u128::from(value.unsigned_abs()) > largest
        }),
        DataType::Decimal128(..) => {
            first_of(array.as_primitive::<Decimal128Type>(), |value| value.unsigned_abs() > largest)
        }
        _ => first_of(array.as_primitive::<Decimal256Type>(), |value| {
            value.to_i128().is_none_or(|value| value.unsigned_abs() > largest)
        }),
    };
    Err(Error::corrupt(format!("a decimal of at most {digits} digits"), found))
}

fn first_of<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, is_larger: impl Fn(T::Native) -> bool) -> String
where
    T::Native: std::fmt::Display,
{
    let found = array.values().iter().find(|value| is_larger(**value));
    found.map_or_else(|| "one of more".to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_and_its_negative_are_not_larger() {
        for digits in [1u8, 2, 9, 15, 18] {
            let largest = i64::try_from(largest_of(digits)).unwrap();
            for value in
                [0, 1, -1, largest - 1, largest, -largest, largest + 1, -largest - 1, i64::MAX, i64::MIN]
            {
                // Among others, whose bits are together those of a larger number.
                let stored: Vec<u8> =
                    [1, largest / 2 + 1, value, -3].iter().flat_map(|v| v.to_le_bytes()).collect();
                let expected = value.unsigned_abs() > largest.unsigned_abs();
                let found = has_larger(StoredNumber::I64, &stored, largest_of(digits));
                assert_eq!(found, expected, "{value} of {digits} digits");
            }
        }
    }

    #[test]
    fn digits_are_counted_in_numbers_of_any_width() {
        let nines = i128::try_from(largest_of(38)).unwrap();
        let cases: [(StoredNumber, Vec<u8>, u8, bool); 8] = [
            (StoredNumber::I8, vec![99, 157], 2, false),
            (StoredNumber::I8, vec![99, 156], 2, true),
            (StoredNumber::U8, vec![99, 157], 2, true),
            (StoredNumber::I32, 999_999_999i32.to_le_bytes().into(), 9, false),
            (StoredNumber::I32, i32::MIN.to_le_bytes().into(), 9, true),
            (StoredNumber::I128, nines.to_le_bytes().into(), 38, false),
            (StoredNumber::I128, (-nines - 1).to_le_bytes().into(), 38, true),
            (StoredNumber::I128, i128::MIN.to_le_bytes().into(), 38, true),
        ];
        for (number, stored, digits, expected) in cases {
            assert_eq!(has_larger(number, &stored, largest_of(digits)), expected, "{number:?} {stored:?}");
        }
    }
}
