//! Numbers below 128 of a fixed width in bits, least significant bit first; in memory a byte each.
//!
//! ```text
//! widths of 3:  5, 1, 6    ->   8d 01     (bits 101 100 011, lowest first)
//! ```
//!
//! This is the bit packing of [`crate::bits`] for the one case that nested formats need in bulk: repetition and definition
//! levels. Eight numbers are one 64-bit word in memory and `width` bytes when packed, so a word is spread or gathered at
//! once. Bits after the last number are zero when written and ignored when read.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod bmi2;
mod scalar;

use crate::{DecodeError, Result};

/// The widest number.
pub const MAX_WIDTH: u32 = 7;

/// Bits of the numbers up to `max`; 0 for no bits at all.
#[must_use]
pub const fn width_of(max: u8) -> u32 {
    8u32.saturating_sub(max.leading_zeros())
}

/// Bytes of `count` packed numbers.
#[must_use]
pub const fn packed_len(count: usize, width: u32) -> usize {
    count.saturating_mul(width as usize).div_ceil(8)
}

/// The lowest `width` bits of each of eight bytes.
const fn lanes(width: u32) -> u64 {
    0x0101_0101_0101_0101u64.wrapping_mul((1u64 << (width % 8)).wrapping_sub(1))
}

fn check_width(width: u32) -> Result<()> {
    if (1..=MAX_WIDTH).contains(&width) {
        return Ok(());
    }
    Err(DecodeError::new(0, format!("a width of 1 to {MAX_WIDTH} bits"), width.to_string()))
}

/// Appends `count` numbers of `width` bits to `out`, a byte each.
///
/// # Errors
/// If the width is not in 1 to 7 or there are fewer bits. Nothing is appended then.
///
/// ```
/// let mut levels = Vec::new();
/// pilaster_encoding::levels::unpack(&[0x8d, 0x01], 3, 3, &mut levels)?;
/// assert_eq!(levels, [5, 1, 6]);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
pub fn unpack(bytes: &[u8], width: u32, count: usize, out: &mut Vec<u8>) -> Result<()> {
    check_width(width)?;
    let needed = packed_len(count, width);
    let Some(bytes) = bytes.get(..needed) else {
        let expected = format!("{count} numbers of {width} bits in {needed} bytes");
        return Err(DecodeError::new(bytes.len(), expected, format!("{} bytes", bytes.len())));
    };
    let start = out.len();
    // Whole groups of eight; what the last one has too much is cut off.
    out.resize(start.saturating_add(count.next_multiple_of(8)), 0);
    let (groups, _) = out.get_mut(start..).unwrap_or_default().as_chunks_mut::<8>();
    unpack_groups(bytes, width, groups);
    out.truncate(start.saturating_add(count));
    Ok(())
}

/// Appends the low `width` bits of each of `levels`, starting a new byte and filling the last one up with zeros.
///
/// # Errors
/// If the width is not in 1 to 7.
pub fn pack(levels: &[u8], width: u32, out: &mut Vec<u8>) -> Result<()> {
    check_width(width)?;
    let start = out.len();
    let end = start.saturating_add(packed_len(levels.len(), width));
    let (groups, rest) = levels.as_chunks::<8>();
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    // A word of eight bytes is written for each group, of which `width` are kept.
    out.resize(end.saturating_add(16), 0);
    let target = out.get_mut(start..).unwrap_or_default();
    pack_groups(groups, width, target);
    let at = groups.len().saturating_mul(width as usize);
    pack_groups(&[last], width, target.get_mut(at..).unwrap_or_default());
    out.truncate(end);
    Ok(())
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn unpack_groups(bytes: &[u8], width: u32, groups: &mut [[u8; 8]]) {
    if bmi2::is_available() {
        bmi2::unpack(bytes, width, groups);
    } else {
        scalar::unpack(bytes, width, groups);
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn pack_groups(groups: &[[u8; 8]], width: u32, out: &mut [u8]) {
    if bmi2::is_available() {
        bmi2::pack(groups, width, out);
    } else {
        scalar::pack(groups, width, out);
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
use scalar::{pack as pack_groups, unpack as unpack_groups};

/// The first eight bytes, zeros beyond the end.
#[inline(always)]
fn load(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk() {
        return u64::from_le_bytes(*chunk);
    }
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte))
}

/// Calls `spread` with each packed word; shared by the kernels.
#[inline(always)]
fn unpack_with(bytes: &[u8], width: u32, groups: &mut [[u8; 8]], spread: impl Fn(u64) -> u64) {
    let mut rest = bytes;
    for group in groups {
        *group = spread(load(rest)).to_le_bytes();
        rest = rest.get(width as usize..).unwrap_or_default();
    }
}

/// Calls `gather` with each word of eight levels; shared by the kernels.
#[inline(always)]
fn pack_with(groups: &[[u8; 8]], width: u32, out: &mut [u8], gather: impl Fn(u64) -> u64) {
    let mut rest = out;
    for group in groups {
        let word = gather(u64::from_le_bytes(*group)).to_le_bytes();
        match rest.first_chunk_mut() {
            Some(chunk) => *chunk = word,
            None => {
                for (to, from) in rest.iter_mut().zip(word) {
                    *to = from;
                }
            }
        }
        rest = rest.get_mut(width as usize..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits;
    use proptest::prelude::*;

    #[test]
    fn widths_are_bit_lengths() {
        let widths = [0, 1, 2, 3, 4, 7, 8, 15, 16, 64].map(width_of);
        assert_eq!(widths, [0, 1, 2, 2, 3, 3, 4, 4, 5, 7]);
        assert_eq!((packed_len(30, 3), packed_len(30, 2)), (12, 8));
        assert!(unpack(&[], 0, 0, &mut Vec::new()).is_err());
        assert!(pack(&[], 8, &mut Vec::new()).is_err());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn is_the_bit_packing_of_any_width(values in prop::collection::vec(any::<u8>(), 0..70), width in 1u32..=7) {
            let values: Vec<u8> = values.into_iter().map(|value| value & lanes(width).to_le_bytes()[0]).collect();
            let (mut packed, mut expected) = (vec![9], vec![9]);
            pack(&values, width, &mut packed).unwrap();
            bits::pack_width(&values, width, &mut expected);
            prop_assert_eq!(&packed, &expected);
            let mut again = vec![7];
            unpack(&packed[1..], width, values.len(), &mut again).unwrap();
            prop_assert_eq!(&again[1..], &values);
            let needed = packed_len(values.len() + 1, width);
            prop_assert_eq!(unpack(&packed[1..], width, values.len() + 1, &mut again).is_ok(), needed < packed.len());
        }

        #[test]
        fn every_kernel_gives_the_same(bytes in prop::collection::vec(any::<u8>(), 0..90), width in 1u32..=7, count in 0usize..12) {
            let (mut fast, mut portable) = (vec![[0; 8]; count], vec![[0; 8]; count]);
            unpack_groups(&bytes, width, &mut fast);
            scalar::unpack(&bytes, width, &mut portable);
            prop_assert_eq!(&fast, &portable);
            let (mut packed, mut portable) = (vec![0; bytes.len()], vec![0; bytes.len()]);
            pack_groups(&fast, width, &mut packed);
            scalar::pack(&fast, width, &mut portable);
            prop_assert_eq!(packed, portable);
        }
    }
}
