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

mod scalar;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod ssse3;

use super::finish_all;
use crate::{DecodeError, Result};

/// Values of a group.
pub const GROUP: usize = 5;
/// Bytes of the shortest group.
pub const MIN_GROUP_LEN: usize = 7;
/// Bytes of the longest group.
pub const MAX_GROUP_LEN: usize = 42;

/// Bytes of `value` inside a group, 1 to 8.
#[must_use]
#[inline]
pub const fn encoded_len(value: u64) -> usize {
    (71u32.saturating_sub((value | 1).leading_zeros()) / 8) as usize
}

/// Bytes that [`encode`] appends for `values`.
#[must_use]
pub fn encoded_size(values: &[u64]) -> usize {
    let groups = values.len().div_ceil(GROUP);
    let padding = groups.saturating_mul(GROUP).saturating_sub(values.len());
    let lengths = values.iter().fold(0usize, |sum, &value| sum.wrapping_add(encoded_len(value)));
    groups.saturating_mul(2).saturating_add(lengths).saturating_add(padding)
}

/// Writes one group; bytes after it are scratch. Gives its length.
#[inline(always)]
fn put_group(group: &mut [u8; MAX_GROUP_LEN], values: [u64; GROUP]) -> usize {
    let mut selector = 0u16;
    let mut at = 2usize;
    for value in values {
        let len = encoded_len(value);
        let [low, ..] = len.wrapping_sub(1).to_le_bytes();
        selector = (selector << 3) | u16::from(low & 7);
        // The longest group ends with the window, so eight bytes are always there.
        if let Some(place) = group.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *place = value.to_le_bytes();
        }
        at = at.wrapping_add(len);
    }
    [group[0], group[1]] = selector.to_be_bytes();
    at
}

/// Appends `values` in groups of five, the last one filled up with zeros.
pub fn encode(values: &[u64], out: &mut Vec<u8>) {
    let (groups, rest) = values.as_chunks::<GROUP>();
    let mut at = out.len();
    // Room for the longest form; each group overwrites what the one before wrote too much.
    let most = values.len().div_ceil(GROUP).saturating_mul(MAX_GROUP_LEN);
    out.resize(at.saturating_add(most), 0);
    let mut last = [0; GROUP];
    for (slot, value) in last.iter_mut().zip(rest) {
        *slot = *value;
    }
    let last = if rest.is_empty() { &[][..] } else { &[last] };
    for group in groups.iter().chain(last) {
        if let Some(place) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            at = at.wrapping_add(put_group(place, *group));
        }
    }
    out.truncate(at);
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
    // Every group takes seven bytes or more, so the count is bounded before anything is allocated for it.
    let groups = count.div_ceil(GROUP);
    if groups.saturating_mul(MIN_GROUP_LEN) > bytes.len() {
        let expected = format!("{count} values in at least {} bytes", groups.saturating_mul(MIN_GROUP_LEN));
        return Err(DecodeError::new(bytes.len(), expected, format!("{} bytes", bytes.len())));
    }
    let start = out.len();
    match decode_groups(bytes, groups, out) {
        Ok(used) => finish_all(bytes, count, start, used, out),
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn decode_groups(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> Result<usize> {
    if ssse3::is_available() {
        ssse3::decode(bytes, groups, out)
    } else {
        scalar::decode(bytes, 0, groups, out)
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn decode_groups(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> Result<usize> {
    scalar::decode(bytes, 0, groups, out)
}

#[doc(hidden)]
pub mod kernels {
    //! Each way to decode, for tests and benchmarks.
    use crate::Result;

    /// The portable decoder.
    pub fn decode_scalar(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> Result<usize> {
        super::scalar::decode(bytes, 0, groups, out)
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
            let found = decode_groups(&bytes, groups, &mut fast);
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
