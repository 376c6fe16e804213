//! Group varint for `u64`: five values behind two selector bytes.
//!
//! ```text
//! | selector, u16 big-endian | first, 1-8 bytes | … | fifth |      values little-endian
//!   bit 15: 0; bits 14-12: length - 1 of the first, 11-9 of the second, …, 2-0 of the fifth
//!
//! u64::MAX, 0, 256, 1, 2      7040 ffffffffffffffff 00 0001 01 02      selector 0 111 000 001 000 000
//! ```
//!
//! Lengths are minimal when written and free when read; the last group is filled up with zeros.

use super::word::{self, Word};
use crate::Result;

/// Values of a group.
pub const GROUP: usize = u64::GROUP;
/// Bytes of the shortest group.
pub const MIN_GROUP_LEN: usize = u64::MIN_GROUP_LEN;
/// Bytes of the longest group.
pub const MAX_GROUP_LEN: usize = u64::MAX_GROUP_LEN;

/// Bytes of `value` inside a group, 1 to 8.
#[must_use]
#[inline]
pub fn encoded_len(value: u64) -> usize {
    word::encoded_len(value)
}

/// Bytes that [`encode`] appends for `values`.
#[must_use]
pub fn encoded_size(values: &[u64]) -> usize {
    word::encoded_size(values)
}

/// Appends `values` in groups of five, the last one filled up with zeros.
pub fn encode(values: &[u64], out: &mut Vec<u8>) {
    word::encode(values, out);
}

/// Reads `count` values from groups of five that take all of `bytes`, and appends them to `out`.
///
/// # Errors
/// If the groups take more or fewer bytes, bit 15 of a selector is set, or what fills up the last group is not zero. Nothing
/// is appended then.
///
/// ```
/// let mut values = Vec::new();
/// let bytes = [0x70, 0x40, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 1, 1, 2];
/// pilaster_encoding::group_varint::wide::decode_all(&bytes, 5, &mut values)?;
/// assert_eq!(values, [u64::MAX, 0, 256, 1, 2]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode_all(bytes: &[u8], count: usize, out: &mut Vec<u64>) -> Result<()> {
    word::decode_all(bytes, count, out)
}

#[doc(hidden)]
pub mod kernels {
    //! Each way to decode, for tests and benchmarks.
    use crate::Result;

    /// The portable decoder.
    pub fn decode_scalar(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> Result<usize> {
        super::word::decode_portable(bytes, 0, groups, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() {
        for (values, bytes) in [
            (&[1][..], &[0, 0, 1, 0, 0, 0, 0][..]),
            (&[u64::MAX, 0, 256, 1, 2], &[0x70, 0x40, 255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 1, 1, 2]),
            (&[], &[]),
        ] {
            let mut encoded = Vec::new();
            encode(values, &mut encoded);
            assert_eq!(encoded, bytes);
            let mut again = Vec::new();
            decode_all(bytes, values.len(), &mut again).unwrap();
            assert_eq!(again, values);
        }
    }

    #[test]
    fn the_top_bit_and_padding_are_checked() {
        let mut out = Vec::new();
        assert!(decode_all(&[0x80, 0, 1, 0, 0, 0, 0], 1, &mut out).is_err());
        assert!(decode_all(&[0, 0, 1, 0, 0, 0, 9], 1, &mut out).is_err());
        assert!(decode_all(&[0, 0, 1, 0, 0, 0, 0, 0], 1, &mut out).is_err());
        // A length may be longer than needed.
        assert!(decode_all(&[0x10, 0, 1, 0, 0, 0, 0, 0], 1, &mut out).is_ok());
        assert_eq!(out, [1]);
    }

    #[test]
    fn lengths_are_minimal() {
        for len in 1..=8u32 {
            assert_eq!(encoded_len(u64::MAX >> (64 - 8 * len)), len as usize);
            assert_eq!(encoded_len(1u64 << (8 * (len - 1))), len as usize);
        }
        assert_eq!(encoded_len(0), 1);
    }

    fn values() -> impl Strategy<Value = Vec<u64>> {
        let value = (any::<u64>(), 0u32..64).prop_map(|(value, shift)| value >> shift);
        prop::collection::vec(value, 0..if cfg!(miri) { 20 } else { 200 })
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(values in values(), more in 1usize..9) {
            let mut bytes = vec![9];
            encode(&values, &mut bytes);
            let bytes = &bytes[1..];
            prop_assert_eq!(bytes.len(), encoded_size(&values));
            let mut again = vec![7];
            prop_assert_eq!(decode_all(bytes, values.len(), &mut again), Ok(()));
            prop_assert_eq!(&again[1..], &values);
            for cut in 0..bytes.len().min(60) {
                prop_assert!(decode_all(&bytes[..cut], values.len(), &mut again).is_err());
            }
            prop_assert!(decode_all(&[bytes, &vec![0; more]].concat(), values.len(), &mut again).is_err());
            prop_assert_eq!(again.len(), values.len() + 1);
        }

        #[test]
        fn every_kernel_gives_the_same(mut bytes in prop::collection::vec(any::<u8>(), 0..900), groups in 0usize..40, mask in any::<u8>()) {
            for byte in &mut bytes {
                *byte &= mask;
            }
            let (mut portable, mut fast) = (vec![1], vec![1]);
            let expected = kernels::decode_scalar(&bytes, groups, &mut portable);
            let found = word::decode_groups(&bytes, groups, &mut fast);
            prop_assert_eq!(&found, &expected);
            if found.is_ok() {
                prop_assert_eq!(portable, fast);
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), count in prop_oneof![0usize..200, any::<usize>()]) {
            let _ = decode_all(&bytes, count, &mut Vec::new());
        }
    }
}
