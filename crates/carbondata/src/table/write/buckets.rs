//! The bucket of each row of a batch; the hash is in [`super::super::buckets`].

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef, Int32Array};
use arrow_schema::DataType;
use pilaster_core::{Error, Result};

use super::super::buckets::{SEED, bucket, hash_bytes, hash_long, hash_word};
use crate::file::page::numbers::power_of_ten;
use crate::file::page::strings::NULL_MARKER;

/// Java's hash of a double.
fn hash_decimal(unscaled: i128, scale: i8) -> i32 {
    let divisor = power_of_ten(scale.unsigned_abs());
    // Through text, so that the double is the nearest to the decimal.
    let (whole, rest) =
        (unscaled.checked_div(divisor).unwrap_or(0), unscaled.checked_rem(divisor).unwrap_or(0));
    let sign = if unscaled < 0 { "-" } else { "" };
    let width = usize::from(scale.unsigned_abs());
    let text = format!("{sign}{}.{:0width$}", whole.unsigned_abs(), rest.unsigned_abs());
    let bits = text.trim_end_matches('.').parse::<f64>().unwrap_or_default().to_bits();
    let [a, b, c, d, e, f, g, h] = bits.to_le_bytes();
    i32::from_le_bytes([a, b, c, d]) ^ i32::from_le_bytes([e, f, g, h])
}

fn hashes(array: &ArrayRef) -> Result<Vec<i32>> {
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
        DataType::Boolean => each!(array.as_boolean().iter(), |value| hash_word(i32::from(value))),
        DataType::Int8 => each!(array.as_primitive::<Int8Type>().iter(), |value| hash_word(value.into())),
        DataType::Int16 => each!(array.as_primitive::<Int16Type>().iter(), |value| hash_word(value.into())),
        DataType::Int32 => each!(array.as_primitive::<Int32Type>().iter(), hash_word),
        DataType::Date32 => each!(array.as_primitive::<Date32Type>().iter(), hash_word),
        DataType::Int64 => each!(array.as_primitive::<Int64Type>().iter(), hash_long),
        DataType::Timestamp(..) => {
            each!(array.as_primitive::<TimestampMillisecondType>().iter(), |value| hash_long(
                value.wrapping_mul(1000)
            ))
        }
        DataType::Float32 => {
            each!(array.as_primitive::<Float32Type>().iter(), |value| hash_word(
                value.to_bits().cast_signed()
            ))
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
    let mut sums = vec![0i32; rows];
    for column in columns {
        for (sum, hash) in sums.iter_mut().zip(hashes(column)?) {
            *sum = sum.wrapping_add(hash);
        }
    }
    let number = |sum: i32| i32::try_from(bucket(sum, buckets)).unwrap_or_default();
    Ok(sums.into_iter().map(|sum| Some(number(sum))).collect())
}
