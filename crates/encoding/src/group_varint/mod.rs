//! Group varint: four `u32` behind one selector byte.
//!
//! ```text
//! | selector | first, 1-4 bytes | second | third | fourth |      values little-endian
//!   bits 7-6: length - 1 of the first, 5-4 of the second, 3-2 of the third, 1-0 of the fourth
//!
//! 12, 12, 13, 15       00 0c 0c 0d 0f
//! 1, 300, 70000, 0     18 01 2c01 701101 00      selector 00 01 10 00
//! ```
//!
//! Lengths are minimal when written (0 takes one byte) and free when read. A list is cut into groups of four; the last
//! group is filled up with zeros, which [`decode`] ignores and [`decode_all`] insists on.
//!
//! [`wide`] has the same for `u64`, in groups of five.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod ssse3;
pub mod wide;
mod word;

use crate::Result;
use word::Word;

/// Bytes of the shortest group.
pub const MIN_GROUP_LEN: usize = u32::MIN_GROUP_LEN;
/// Bytes of the longest group.
pub const MAX_GROUP_LEN: usize = u32::MAX_GROUP_LEN;

/// Bytes of `value` inside a group, 1 to 4.
#[must_use]
#[inline]
pub fn encoded_len(value: u32) -> usize {
    word::encoded_len(value)
}

/// Reads one group at `*pos` and moves `*pos` behind it.
///
/// # Errors
/// If the bytes end inside the group; `*pos` then stays where it was.
pub fn decode_group(bytes: &[u8], pos: &mut usize) -> Result<[u32; 4]> {
    u32::read_group(bytes, pos)
}

/// Appends one group.
pub fn encode_group(out: &mut Vec<u8>, values: [u32; 4]) {
    word::encode(&values, out);
}

/// Reads `count` values in groups of four from the start of `bytes`, appends them to `out` and returns how many bytes the
/// groups took.
///
/// # Errors
/// If the bytes end inside a group. Nothing is appended then.
///
/// ```
/// let mut values = Vec::new();
/// let used = pilaster_encoding::group_varint::decode(&[0, 12, 12, 13, 15, 0, 18, 22, 0, 0], 6, &mut values)?;
/// assert_eq!((used, values.as_slice()), (10, &[12, 12, 13, 15, 18, 22][..]));
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], count: usize, out: &mut Vec<u32>) -> Result<usize> {
    word::decode(bytes, count, out)
}

/// Reads `count` values from groups of four that take all of `bytes`, and appends them to `out`.
///
/// # Errors
/// If the groups take more or fewer bytes, or what fills up the last group is not zero. Nothing is appended then.
pub fn decode_all(bytes: &[u8], count: usize, out: &mut Vec<u32>) -> Result<()> {
    word::decode_all(bytes, count, out)
}

/// Bytes that [`encode`] appends for `values`.
#[must_use]
pub fn encoded_size(values: &[u32]) -> usize {
    word::encoded_size(values)
}

/// Appends `values` in groups of four, the last one filled up with zeros.
pub fn encode(values: &[u32], out: &mut Vec<u8>) {
    word::encode(values, out);
}

#[doc(hidden)]
pub mod kernels {
    //! Each way to decode, for tests and benchmarks.
    use crate::Result;

    /// The portable decoder.
    pub fn decode_scalar(bytes: &[u8], groups: usize, out: &mut Vec<u32>) -> Result<usize> {
        super::word::decode_portable(bytes, 0, groups, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() -> Result<()> {
        let mut out = Vec::new();
        encode_group(&mut out, [1, 300, 70000, 0]);
        assert_eq!(out, [0x18, 1, 0x2c, 1, 0x70, 0x11, 1, 0]);
        let mut pos = 0;
        assert_eq!(decode_group(&out, &mut pos)?, [1, 300, 70000, 0]);
        assert_eq!(pos, 8);

        // Offsets of the `splain` column of the tiny table.
        let bytes = [0, 12, 12, 13, 15, 0, 18, 22, 27, 33, 0, 40, 48, 0, 0];
        let mut offsets = Vec::new();
        assert_eq!(decode(&bytes, 10, &mut offsets)?, bytes.len());
        assert_eq!(offsets, [12, 12, 13, 15, 18, 22, 27, 33, 40, 48]);
        let mut again = Vec::new();
        encode(&offsets, &mut again);
        assert_eq!(again, bytes);
        Ok(())
    }

    #[test]
    fn padding_must_be_zero_where_all_bytes_count() {
        let mut out = Vec::new();
        assert!(decode_all(&[0, 1, 2, 3, 0], 3, &mut out).is_ok());
        assert!(decode_all(&[0, 1, 2, 3, 4], 3, &mut out).is_err());
        assert!(decode_all(&[0, 1, 2, 3, 0, 0], 3, &mut out).is_err());
        assert_eq!(out, [1, 2, 3]);
        // Redfile's own example: a longer value in the middle.
        let bytes = [0x2d, 0xab, 0xef, 0xcd, 0xab, 0x78, 0x56, 0x34, 0x12, 0xef, 0xbe];
        let mut values = Vec::new();
        decode_all(&bytes, 4, &mut values).unwrap();
        assert_eq!(values, [0xab, 0x00ab_cdef, 0x1234_5678, 0xbeef]);
    }

    #[test]
    fn lengths_are_minimal() {
        for (value, len) in
            [(0, 1), (255, 1), (256, 2), (65535, 2), (65536, 3), (0xff_ffff, 3), (1 << 24, 4), (u32::MAX, 4)]
        {
            assert_eq!(encoded_len(value), len, "{value}");
        }
    }

    fn values() -> impl Strategy<Value = Vec<u32>> {
        let value = prop_oneof![0u32..300, 0u32..70_000, any::<u32>(), any::<u32>().prop_map(|v| v >> 8)];
        prop::collection::vec(value, 0..if cfg!(miri) { 20 } else { 200 })
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(values in values(), rest in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut bytes = Vec::new();
            encode(&values, &mut bytes);
            let len = bytes.len();
            bytes.extend(rest);
            let mut again = vec![7];
            prop_assert_eq!(decode(&bytes, values.len(), &mut again), Ok(len));
            prop_assert_eq!(&again[1..], &values);
            prop_assert_eq!(encoded_size(&values), len);
            let mut whole = vec![7];
            prop_assert_eq!(decode_all(&bytes[..len], values.len(), &mut whole), Ok(()));
            prop_assert_eq!(&whole, &again);
            prop_assert_eq!(decode_all(&bytes, values.len(), &mut whole).is_ok(), len == bytes.len());
            for cut in 0..len.min(60) {
                prop_assert!(decode(&bytes[..cut], values.len(), &mut again).is_err());
                prop_assert_eq!(again.len(), values.len() + 1);
            }
        }

        #[test]
        fn every_kernel_gives_the_same(bytes in prop::collection::vec(any::<u8>(), 0..400), groups in 0usize..80) {
            let (mut portable, mut fast) = (vec![1], vec![1]);
            let expected = kernels::decode_scalar(&bytes, groups, &mut portable);
            let found = word::decode_groups(&bytes, groups, &mut fast);
            prop_assert_eq!(&found, &expected);
            if found.is_ok() {
                prop_assert_eq!(portable, fast);
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), count in prop_oneof![0usize..200, any::<usize>()], pos: usize) {
            let _ = decode(&bytes, count, &mut Vec::new());
            let _ = decode_group(&bytes, &mut { pos });
        }
    }
}
