//! Integers of three bytes, highest byte first.
//!
//! ```text
//! 1, 258   ->   00 00 01 | 00 01 02
//! ```

use crate::{DecodeError, Result};

/// Bytes of a value.
pub const WIDTH: usize = 3;

/// Each value through `change`, which gets it in the upper three bytes of a `u32`: shifted down by eight it is the unsigned
/// value, as an `i32` the signed one.
///
/// # Errors
/// If the bytes end inside a value.
///
/// ```
/// use pilaster_encoding::big24;
///
/// let bytes = [0, 1, 2, 0xff, 0xff, 0xfe];
/// assert_eq!(big24::map(&bytes, |word| word >> 8)?, [0x102, 0xff_fffe]);
/// assert_eq!(big24::map(&bytes, |word| word.cast_signed() >> 8)?, [0x102, -2]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn map<T: Copy>(bytes: &[u8], mut change: impl FnMut(u32) -> T) -> Result<Vec<T>> {
    let (values, cut) = bytes.as_chunks::<WIDTH>();
    if !cut.is_empty() {
        let at = bytes.len().saturating_sub(cut.len());
        return Err(DecodeError::new(at, "values of three bytes", format!("{} bytes", cut.len())));
    }
    Ok(values
        .iter()
        .map(|[high, middle, low]| change(u32::from_be_bytes([*high, *middle, *low, 0])))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn each_value_is_its_three_bytes(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let expected: Vec<u32> =
                bytes.chunks_exact(3).map(|b| u32::from_be_bytes([0, b[0], b[1], b[2]])).collect();
            match map(&bytes, |word| word) {
                Ok(words) => {
                    prop_assert_eq!(bytes.len() % 3, 0);
                    prop_assert!(words.iter().all(|word| word & 0xff == 0));
                    prop_assert_eq!(words.iter().map(|word| word >> 8).collect::<Vec<_>>(), expected);
                }
                Err(error) => prop_assert_eq!(error.at, bytes.len() - bytes.len() % 3),
            }
        }
    }
}
