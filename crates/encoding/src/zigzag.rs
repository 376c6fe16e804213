//! Signed integers as unsigned ones, small magnitudes first.
//!
//! ```text
//! value     0  -1   1  -2   2 …
//! encoded   0   1   2   3   4 …
//! ```

/// The unsigned form of `value`.
#[must_use]
#[inline]
pub const fn encode_i32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

/// The signed value of `encoded`.
#[must_use]
#[inline]
pub const fn decode_i32(encoded: u32) -> i32 {
    (encoded >> 1).cast_signed() ^ (encoded & 1).cast_signed().wrapping_neg()
}

/// The unsigned form of `value`.
#[must_use]
#[inline]
pub const fn encode_i64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// The signed value of `encoded`.
#[must_use]
#[inline]
pub const fn decode_i64(encoded: u64) -> i64 {
    (encoded >> 1).cast_signed() ^ (encoded & 1).cast_signed().wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() {
        for (encoded, value) in [0, -1, 1, -2, 2].into_iter().enumerate() {
            assert_eq!(encode_i32(value), encoded as u32);
            assert_eq!(encode_i64(i64::from(value)), encoded as u64);
        }
        assert_eq!(encode_i64(i64::MIN), u64::MAX);
        assert_eq!(decode_i32(u32::MAX), i32::MIN);
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(value in any::<i64>()) {
            prop_assert_eq!(decode_i64(encode_i64(value)), value);
            let narrow = value as i32;
            prop_assert_eq!(decode_i32(encode_i32(narrow)), narrow);
        }

        #[test]
        fn every_number_is_a_form_and_small_ones_have_small_forms(encoded in any::<u64>(), shift in 0u32..64) {
            let encoded = encoded >> shift;
            let value = decode_i64(encoded);
            prop_assert_eq!(encode_i64(value), encoded);
            prop_assert_eq!(value.unsigned_abs(), encoded / 2 + encoded % 2);
            let narrow = encoded as u32;
            prop_assert_eq!(encode_i32(decode_i32(narrow)), narrow);
            prop_assert_eq!(u64::from(narrow), encode_i64(i64::from(decode_i32(narrow))));
        }
    }
}
