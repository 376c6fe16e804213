//! Which bucket a row is in, by the hash of release 2.
//!
//! The bucket is the sum of the hashes of the bucket columns, modulo their number. The hash is Murmur3 with seed 42 as Spark
//! computes it: whole words of a text little-endian, then each byte of the rest as a word of its own. Only types whose form is
//! certain are hashed; filters on others prune nothing.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use pilaster_core::Literal;
use pilaster_core::predicate::{BoundPredicate, MOST_VALUES};

use super::schema::TableSchema;

pub(crate) const SEED: i32 = 42;
/// The only method whose hash is this one; it is the one without a name too.
const METHOD: &str = "spark_hash_expression";

/// How the rows of a table are spread over buckets.
pub(crate) struct Buckets;

impl Buckets {
    /// The bucket columns of a table and the number of buckets, if rows are spread by the hash that is known here.
    pub fn of(table: &TableSchema) -> Option<(&[String], u32)> {
        let (columns, count) = table.buckets.as_ref()?;
        let method = table.properties.iter().find(|(key, _)| key == "bucket_hash_method");
        let is_known = method.is_none_or(|(_, value)| value.eq_ignore_ascii_case(METHOD));
        let count = u32::try_from(*count).ok().filter(|count| *count > 0)?;
        (is_known && !columns.is_empty()).then_some((columns, count))
    }

    /// The buckets of all rows for which a predicate can be true, if it names the values of all `columns`.
    pub fn matching(columns: &[usize], count: u32, predicate: &BoundPredicate) -> Option<Vec<u32>> {
        let mut sums = vec![0i32];
        for column in columns {
            let hashes = predicate.values(*column)?.iter().map(hash).collect::<Option<Vec<_>>>()?;
            if sums.len().saturating_mul(hashes.len()) > MOST_VALUES {
                return None;
            }
            sums = sums.iter().flat_map(|sum| hashes.iter().map(|hash| sum.wrapping_add(*hash))).collect();
        }
        Some(sums.into_iter().map(|sum| bucket(sum, count)).collect())
    }
}

/// The bucket of a sum of hashes.
pub(crate) fn bucket(sum: i32, count: u32) -> u32 {
    let bucket = i64::from(sum).rem_euclid(i64::from(count.max(1)));
    u32::try_from(bucket).unwrap_or(0)
}

fn hash(value: &Literal) -> Option<i32> {
    let array: &ArrayRef = value.array();
    if array.is_null(0) {
        return None;
    }
    Some(match array.data_type() {
        DataType::Utf8View => hash_bytes(array.as_string_view().value(0).as_bytes()),
        DataType::Int16 => hash_word(i32::from(array.as_primitive::<Int16Type>().value(0))),
        DataType::Int32 => hash_word(array.as_primitive::<Int32Type>().value(0)),
        DataType::Int64 => hash_long(array.as_primitive::<Int64Type>().value(0)),
        _ => return None,
    })
}

fn mix(hash: i32, word: i32) -> i32 {
    let word = word.wrapping_mul(0xcc9e_2d51_u32.cast_signed()).rotate_left(15).wrapping_mul(0x1b87_3593);
    (hash ^ word).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64_u32.cast_signed())
}

fn finish(hash: i32, length: usize) -> i32 {
    let mut hash = (hash ^ i32::try_from(length).unwrap_or(i32::MAX)).cast_unsigned();
    hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
    (hash ^ (hash >> 16)).cast_signed()
}

pub(crate) fn hash_word(value: i32) -> i32 {
    finish(mix(SEED, value), 4)
}

pub(crate) fn hash_long(value: i64) -> i32 {
    let [a, b, c, d, e, f, g, h] = value.to_le_bytes();
    let (low, high) = (i32::from_le_bytes([a, b, c, d]), i32::from_le_bytes([e, f, g, h]));
    finish(mix(mix(SEED, low), high), 8)
}

pub(crate) fn hash_bytes(bytes: &[u8]) -> i32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let hash = words.iter().fold(SEED, |hash, word| mix(hash, i32::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, byte| mix(hash, i32::from(byte.cast_signed())));
    finish(hash, bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_spark() {
        // SELECT hash(1), hash(0), hash(1L), hash('Spark') of Spark 3.
        assert_eq!(hash_word(1), -559_580_957);
        assert_eq!(hash_word(0), 933_211_791);
        assert_eq!(hash_long(1), -1_712_319_331);
        assert_eq!(hash_bytes(b""), 142_593_372);
        assert_eq!((bucket(-1, 4), bucket(7, 4), bucket(i32::MIN, 3)), (3, 3, 1));
    }
}
