//! The bucket of a row: Spark's Murmur3 hashes of the bucket columns, added up, modulo the number of buckets.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use crate::file::page::numbers::power_of_ten;
use crate::file::page::strings::NULL_MARKER;

const SEED: u32 = 42;

fn mix(hash: u32, word: u32) -> u32 {
    let word = word.wrapping_mul(0xcc9e_2d51).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

fn finish(hash: u32, length: u32) -> u32 {
    let mut hash = hash ^ length;
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    hash ^ (hash >> 16)
}

fn hash_int(value: i32) -> u32 {
    finish(mix(SEED, value.cast_unsigned()), 4)
}

fn hash_long(value: i64) -> u32 {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    let low = mix(SEED, u32::from_le_bytes([a, b, c, d]));
    finish(mix(low, u32::from_le_bytes([e, f, g, h])), 8)
}

fn hash_bytes(bytes: &[u8]) -> u32 {
    let (words, tail) = bytes.as_chunks::<4>();
    let hash = words.iter().fold(SEED, |hash, word| mix(hash, u32::from_le_bytes(*word)));
    // Not as the original algorithm: each byte of the tail is a word of its own, with its sign.
    let hash = tail.iter().fold(hash, |hash, byte| mix(hash, i32::from(byte.cast_signed()).cast_unsigned()));
    finish(hash, u32::try_from(bytes.len()).unwrap_or(u32::MAX))
}

/// Java's hash of a double.
fn hash_decimal(unscaled: i128, scale: i8) -> u32 {
    let divisor = power_of_ten(scale.unsigned_abs());
    // Through text, so that the double is the nearest to the decimal.
    let (whole, rest) =
        (unscaled.checked_div(divisor).unwrap_or(0), unscaled.checked_rem(divisor).unwrap_or(0));
    let sign = if unscaled < 0 { "-" } else { "" };
    let width = usize::from(scale.unsigned_abs());
    let text = format!("{sign}{}.{:0width$}", whole.unsigned_abs(), rest.unsigned_abs());
    let bits = text.trim_end_matches('.').parse::<f64>().unwrap_or_default().to_bits();
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    u32::from_le_bytes([a, b, c, d]) ^ u32::from_le_bytes([e, f, g, h])
}

fn hashes(array: &ArrayRef) -> Result<Vec<u32>> {
    let null = SEED;
    macro_rules! each {
        ($values:expr, $hash:expr) => {
            $values.map(|value| value.map_or(null, $hash)).collect()
        };
    }
    Ok(match array.data_type() {
        DataType::Utf8View => array
            .as_string_view()
            .iter()
            .map(|text| hash_bytes(text.map_or(NULL_MARKER, str::as_bytes)))
            .collect(),
        DataType::Boolean => each!(array.as_boolean().iter(), |value| hash_int(i32::from(value))),
        DataType::Int8 => each!(array.as_primitive::<Int8Type>().iter(), |value| hash_int(value.into())),
        DataType::Int16 => each!(array.as_primitive::<Int16Type>().iter(), |value| hash_int(value.into())),
        DataType::Int32 => each!(array.as_primitive::<Int32Type>().iter(), hash_int),
        DataType::Date32 => each!(array.as_primitive::<Date32Type>().iter(), hash_int),
        DataType::Int64 => each!(array.as_primitive::<Int64Type>().iter(), hash_long),
        DataType::Timestamp(..) => {
            each!(array.as_primitive::<TimestampMillisecondType>().iter(), |value| hash_long(
                value.wrapping_mul(1000)
            ))
        }
        DataType::Float32 => {
            each!(array.as_primitive::<Float32Type>().iter(), |value| hash_int(value.to_bits().cast_signed()))
        }
        DataType::Float64 => {
            each!(array.as_primitive::<Float64Type>().iter(), |value| hash_long(
                value.to_bits().cast_signed()
            ))
        }
        DataType::Decimal128(_, scale) => {
            let values = array.as_primitive::<Decimal128Type>().iter();
            values.map(|value| value.map_or(null, |value| hash_decimal(value, *scale))).collect()
        }
        other => return Err(Error::invalid(format!("rows cannot be put into buckets by {other}"))),
    })
}

/// The bucket of each row.
pub(crate) fn bucket_numbers(columns: &[ArrayRef], rows: usize, buckets: u32) -> Result<Int32Array> {
    let mut sums = vec![0u32; rows];
    for column in columns {
        for (sum, hash) in sums.iter_mut().zip(hashes(column)?) {
            *sum = sum.wrapping_add(hash);
        }
    }
    let buckets = i64::from(buckets.max(1));
    let bucket =
        |sum: u32| i32::try_from(i64::from(sum.cast_signed()).rem_euclid(buckets)).unwrap_or_default();
    Ok(sums.into_iter().map(|sum| Some(bucket(sum))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_sparks() {
        // SELECT hash('Spark'), hash(1), hash(1L), hash(true) of Spark 3.1.
        assert_eq!(hash_int(1).cast_signed(), -559_580_957);
        assert_eq!(hash_long(1).cast_signed(), -1_712_319_331);
        assert_eq!(hash_bytes(b"Spark").cast_signed(), 228_093_765);
    }
}
