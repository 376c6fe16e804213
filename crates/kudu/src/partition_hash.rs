//! Which hash bucket a row belongs to.
//!
//! The columns of a hash dimension are encoded as a key of their own (see [`crate::key`]: the last one raw, the others
//! terminated), hashed with MurmurHash2-64A and the seed of the dimension, and taken modulo the number of buckets.

use std::num::NonZeroU32;

use pilaster_core::{Error, Result};

use crate::cfile::KuduType;
use crate::key::{self, KeyPart};

const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The bucket of a row, given the stored form of its cells in the columns of a hash dimension, in the dimension's order.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if there is no column, or one that cannot be a key.
pub fn bucket(cells: &[(KuduType, &[u8])], seed: u32, buckets: NonZeroU32) -> Result<u32> {
    let Some(((data_type, last), others)) = cells.split_last() else {
        return Err(Error::invalid("a hash dimension without columns"));
    };
    let mut encoded = Vec::new();
    for (data_type, cell) in others {
        key::encode(*data_type, cell, KeyPart::NotLast, &mut encoded)?;
    }
    key::encode(*data_type, last, KeyPart::Last, &mut encoded)?;
    Ok(bucket_of_encoded(&encoded, seed, buckets))
}

/// The bucket of hash columns that are encoded already.
pub fn bucket_of_encoded(encoded: &[u8], seed: u32, buckets: NonZeroU32) -> u32 {
    let hash = murmur_hash_64a(encoded, u64::from(seed));
    // A remainder is smaller than what it was divided by.
    hash.checked_rem(buckets.get().into()).and_then(|rest| u32::try_from(rest).ok()).unwrap_or_default()
}

/// MurmurHash2 in its 64-bit form "64A".
pub fn murmur_hash_64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, tail) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash = (hash ^ word.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        hash = (hash ^ rest).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_with_and_without_a_tail() {
        for (bytes, seed, expected) in [
            (&b"key-00"[..], 0, 0x2ac3_e97d_f20f_02bf),
            (b"12345678", 0, 0x758f_67d1_62b2_d202),
            (b"abcdefghij", 42, 0x0e9f_64d4_5f02_6ece),
        ] {
            assert_eq!(murmur_hash_64a(bytes, seed), expected);
        }
    }

    #[test]
    fn columns_are_hashed_as_a_key_of_their_own() {
        let buckets = NonZeroU32::new(7).unwrap();
        let number = 5i32.to_le_bytes();
        let cells = [(KuduType::String, &b"a\0b"[..]), (KuduType::Int32, &number[..])];
        let encoded = b"a\0\x01b\0\0\x80\0\0\x05";
        assert_eq!(bucket(&cells, 3, buckets).unwrap(), bucket_of_encoded(encoded, 3, buckets));
        let expected = murmur_hash_64a(encoded, 3) % 7;
        assert_eq!(u64::from(bucket_of_encoded(encoded, 3, buckets)), expected);
    }

    #[test]
    fn columns_that_cannot_be_hashed_are_refused() {
        let buckets = NonZeroU32::new(2).unwrap();
        assert!(bucket(&[], 0, buckets).is_err());
        assert!(bucket(&[(KuduType::Bool, &[1])], 0, buckets).is_err());
    }
}
