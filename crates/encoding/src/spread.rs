//! Dense values put where a bitmap says.
//!
//! ```text
//! dense 7 8 9, bits 1 0 1 1 0   ->   7 0 8 9 0
//! ```

use crate::{DecodeError, Result};

/// A slot for each of the first `count` bits of `validity`: the next of `dense` where the bit is set, a default elsewhere.
///
/// # Errors
/// If the bitmap is shorter or has not exactly as many bits set as there are values.
pub fn spread<T: Copy + Default>(dense: &[T], validity: &[u8], count: usize) -> Result<Vec<T>> {
    let set = crate::bits::count_ones(validity, count);
    if validity.len() < count.div_ceil(8) || set != dense.len() {
        let expected = format!("{} of {count} bits set", dense.len());
        return Err(DecodeError::new(0, expected, format!("{set} of {} bytes", validity.len())));
    }
    let mut out = vec![T::default(); count];
    let mut rest = dense;
    let (whole, last) = out.as_chunks_mut::<64>();
    let (words, tail) = validity.as_chunks::<8>();
    for (slots, word) in whole.iter_mut().zip(words) {
        rest = place(slots, u64::from_le_bytes(*word), rest);
    }
    let tail = words.get(whole.len()).map_or(tail, |word| word);
    let word = tail.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte));
    place(last, word, rest);
    Ok(out)
}

/// Fills up to 64 slots; gives the values that are left.
#[inline]
fn place<'a, T: Copy>(slots: &mut [T], word: u64, dense: &'a [T]) -> &'a [T] {
    let count = slots.len();
    if word == u64::MAX
        && let Some((now, later)) = dense.split_at_checked(count)
    {
        slots.copy_from_slice(now);
        return later;
    }
    let mut word = if count < 64 { word & (1u64 << count).wrapping_sub(1) } else { word };
    let set = word.count_ones() as usize;
    let (now, later) = dense.split_at_checked(set).unwrap_or((dense, &[]));
    for &value in now {
        if let Some(slot) = slots.get_mut(word.trailing_zeros() as usize) {
            *slot = value;
        }
        word &= word.wrapping_sub(1);
    }
    later
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() {
        assert_eq!(spread(&[7, 8, 9], &[0b01101], 5), Ok(vec![7, 0, 8, 9, 0]));
        assert!(spread(&[7, 8], &[0b01101], 5).is_err());
        assert!(spread(&[7], &[], 5).is_err());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn each_set_bit_takes_the_next_value(bits in prop_oneof![prop::collection::vec(any::<bool>(), 0..300), prop::collection::vec(Just(true), 0..300)]) {
            let mut validity = Vec::new();
            crate::bits::pack(&bits, &mut validity);
            let dense: Vec<u32> = (1..).take(bits.iter().filter(|&&bit| bit).count()).collect();
            let mut values = dense.iter().copied();
            let expected: Vec<u32> = bits.iter().map(|&bit| if bit { values.next().unwrap() } else { 0 }).collect();
            prop_assert_eq!(spread(&dense, &validity, bits.len()), Ok(expected));
        }
    }
}
