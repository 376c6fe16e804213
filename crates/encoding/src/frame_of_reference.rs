//! Frame of reference: `u32` values as group varints of their distance from a minimum.
//!
//! ```text
//! 1000, 1003, 1000, 1255, 1256 with minimum 1000   ->   00 00 03 00 ff | 40 0001 00 00 00
//! ```
//!
//! The minimum and the number of values come from outside. See [`group_varint`] for the groups.

use crate::{DecodeError, Result, group_varint};

/// Reads `count` values from the start of `bytes`, adds `min` to each, appends them to `out` and returns how many bytes
/// they took.
///
/// # Errors
/// If the bytes end inside a group or a sum does not fit 32 bits. Nothing is appended then.
///
/// ```
/// let mut values = Vec::new();
/// pilaster_encoding::frame_of_reference::decode(&[0, 0, 3, 0, 255], 3, 1000, &mut values)?;
/// assert_eq!(values, [1000, 1003, 1000]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn decode(bytes: &[u8], count: usize, min: u32, out: &mut Vec<u32>) -> Result<usize> {
    let start = out.len();
    let used = group_varint::decode(bytes, count, out)?;
    let values = out.get_mut(start..).unwrap_or_default();
    let largest = values.iter().copied().fold(0, u32::max);
    if largest.checked_add(min).is_none() {
        out.truncate(start);
        return Err(DecodeError::new(
            0,
            format!("a distance of at most {}", u32::MAX.wrapping_sub(min)),
            largest.to_string(),
        ));
    }
    for value in values {
        *value = value.wrapping_add(min);
    }
    Ok(used)
}

/// Appends the groups of `values`, none of which may be below `min`; one that is comes back as `min`.
pub fn encode(values: &[u32], min: u32, out: &mut Vec<u8>) {
    for group in values.chunks(4) {
        let mut distances = [0; 4];
        for (slot, value) in distances.iter_mut().zip(group) {
            *slot = value.saturating_sub(min);
        }
        group_varint::encode_group(out, distances);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() {
        let mut out = Vec::new();
        encode(&[1000, 1003, 1000, 1255, 1256], 1000, &mut out);
        assert_eq!(out, [0, 0, 3, 0, 255, 0x40, 0, 1, 0, 0, 0]);
    }

    #[test]
    fn sums_beyond_32_bits_are_refused() {
        let mut out = vec![5];
        assert!(decode(&[0, 0, 1, 0, 0], 4, u32::MAX, &mut out).is_err());
        assert_eq!(out, [5]);
        assert_eq!(decode(&[0, 0, 0, 0, 0], 4, u32::MAX, &mut out), Ok(5));
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(values in prop::collection::vec(any::<u32>(), 0..100)) {
            let min = values.iter().copied().min().unwrap_or(0);
            let mut bytes = Vec::new();
            encode(&values, min, &mut bytes);
            let mut again = Vec::new();
            prop_assert_eq!(decode(&bytes, values.len(), min, &mut again), Ok(bytes.len()));
            prop_assert_eq!(again, values);
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100), count in 0usize..100, min: u32) {
            let _ = decode(&bytes, count, min, &mut Vec::new());
        }
    }
}
