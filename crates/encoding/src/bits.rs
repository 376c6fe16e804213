//! Bits in bytes, least significant first: booleans and integers of any width from 1 to 64 bits.
//!
//! Bit `i` is bit `i % 8` of byte `i / 8`. An integer of `w` bits takes the next `w` bits, its lowest bit first.
//!
//! ```text
//! true, false, false, true, false, false, true, false, false, true   ->   49 02
//! widths of 3:  5, 1, 6    ->   8d 01     (bits 101 100 011, lowest first)
//! ```
//!
//! Bits after the last value are zero when written and ignored when read.

use crate::plain::{self, Fixed};
use crate::{DecodeError, Result};

/// An integer that can be packed into fewer bits than it has: the unsigned ones, and the signed ones as their two's
/// complement bits (a signed value narrower than its type comes back without its sign).
pub trait Packable: Fixed {
    /// Bits of the type.
    const BITS: u32;
    /// The value whose low bits are `bits`; higher bits are dropped.
    fn from_bits(bits: u64) -> Self;
    /// The bits of the value, zero above [`BITS`](Packable::BITS).
    fn to_bits(self) -> u64;
}

macro_rules! packable {
    ($($t:ty as $unsigned:ty),*) => {$(
        impl Packable for $t {
            const BITS: u32 = <$t>::BITS;

            #[inline]
            #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "the low bits are meant")]
            fn from_bits(bits: u64) -> Self {
                bits as $t
            }

            #[inline]
            fn to_bits(self) -> u64 {
                u64::from(<$unsigned>::from_le_bytes(self.to_le_bytes()))
            }
        }
    )*};
}

packable!(u8 as u8, u16 as u16, u32 as u32, u64 as u64, i8 as u8, i16 as u16, i32 as u32, i64 as u64);

/// Bit `i`; bits beyond the end are not set.
#[must_use]
#[inline]
pub fn get(bytes: &[u8], i: usize) -> bool {
    bytes.get(i / 8).is_some_and(|byte| (byte >> (i % 8)) & 1 == 1)
}

/// How many of the first `count` bits are set; bits beyond the end are not.
#[must_use]
pub fn count_ones(bytes: &[u8], count: usize) -> usize {
    let whole = bytes.get(..count / 8).unwrap_or(bytes);
    let (words, rest) = whole.as_chunks::<8>();
    let ones_in_words: usize = words.iter().map(|word| u64::from_le_bytes(*word).count_ones() as usize).sum();
    let ones_in_rest: usize = rest.iter().map(|byte| byte.count_ones() as usize).sum();
    let last = bytes.get(count / 8).map_or(0, |byte| (byte & low_mask(count % 8)).count_ones() as usize);
    ones_in_words.saturating_add(ones_in_rest).saturating_add(last)
}

/// A byte with the lowest `n % 8` bits set.
#[inline]
const fn low_mask(n: usize) -> u8 {
    (1u8 << (n % 8)).wrapping_sub(1)
}

/// Appends `values` as bits, starting a new byte.
pub fn pack(values: &[bool], out: &mut Vec<u8>) {
    out.reserve(values.len().div_ceil(8));
    out.extend(values.chunks(8).map(|chunk| {
        chunk.iter().enumerate().fold(0u8, |byte, (i, &bit)| byte | (u8::from(bit) << (i % 8)))
    }));
}

/// Fills `out` with the first bits of `bytes`.
///
/// # Errors
/// If there are fewer bits than values.
pub fn unpack(bytes: &[u8], out: &mut [bool]) -> Result<()> {
    let needed = out.len().div_ceil(8);
    let Some(bytes) = bytes.get(..needed) else {
        return Err(DecodeError::new(
            bytes.len(),
            format!("{needed} bytes of bits"),
            bytes.len().to_string(),
        ));
    };
    for (chunk, byte) in out.chunks_mut(8).zip(bytes) {
        for (i, bit) in chunk.iter_mut().enumerate() {
            *bit = (byte >> (i % 8)) & 1 == 1;
        }
    }
    Ok(())
}

/// Appends `count` bits of `src`, from bit `src_offset` on, to the `*dst_len` bits that `dst` already holds.
///
/// `dst` keeps exactly the bytes its bits need, with zeros after the last bit, and `*dst_len` grows by `count`. Neither
/// side needs to be at a byte boundary.
///
/// # Errors
/// If `src` has fewer bits, or `dst` is not as long as `*dst_len` says; nothing is appended then.
pub fn append_range(
    dst: &mut Vec<u8>,
    dst_len: &mut usize,
    src: &[u8],
    src_offset: usize,
    count: usize,
) -> Result<()> {
    check_bitmap(dst, *dst_len)?;
    let end = src_offset.checked_add(count).filter(|end| end.div_ceil(8) <= src.len());
    let new_len = dst_len.checked_add(count);
    let (Some(end), Some(new_len)) = (end, new_len) else {
        let expected = format!("{count} bits from bit {src_offset} on");
        return Err(DecodeError::new(src.len(), expected, format!("{} bytes", src.len())));
    };
    let src = src.get(src_offset / 8..end.div_ceil(8)).unwrap_or_default();
    let mut src_bit = src_offset % 8;
    let mut left = count;
    dst.reserve(new_len.div_ceil(8).saturating_sub(dst.len()));

    let filled = *dst_len % 8;
    if filled != 0
        && left != 0
        && let Some(last) = dst.last_mut()
    {
        let n = left.min(8usize.wrapping_sub(filled));
        *last |= (window_byte(src, src_bit) & low_byte_mask(n)) << filled;
        src_bit = src_bit.wrapping_add(n);
        left = left.wrapping_sub(n);
    }
    // From here on dst is at a byte boundary; only the source may be between two bytes.
    let src = src.get(src_bit / 8..).unwrap_or_default();
    let shift = src_bit % 8;
    let whole = left / 8;
    if shift == 0 {
        dst.extend_from_slice(src.get(..whole).unwrap_or_default());
    } else {
        let (low, high) = (src.get(..whole).unwrap_or_default(), src.get(1..).unwrap_or_default());
        let up = 8usize.wrapping_sub(shift);
        dst.extend(low.iter().zip(high).map(|(&low, &high)| (low >> shift) | (high << up)));
    }
    if !left.is_multiple_of(8) {
        let rest = src.get(whole..).unwrap_or_default();
        dst.push(window_byte(rest, shift) & low_mask(left));
    }
    *dst_len = new_len;
    Ok(())
}

/// Appends `count` times the same bit to the `*dst_len` bits that `dst` already holds.
///
/// # Errors
/// If `dst` is not as long as `*dst_len` says.
pub fn append_run(dst: &mut Vec<u8>, dst_len: &mut usize, bit: bool, count: usize) -> Result<()> {
    check_bitmap(dst, *dst_len)?;
    let Some(new_len) = dst_len.checked_add(count) else {
        return Err(DecodeError::new(0, "fewer bits than memory has", count.to_string()));
    };
    if bit {
        let filled = *dst_len % 8;
        if filled != 0
            && let Some(last) = dst.last_mut()
        {
            *last |= u8::MAX << filled;
        }
        dst.resize(new_len.div_ceil(8), u8::MAX);
        if !new_len.is_multiple_of(8)
            && let Some(last) = dst.last_mut()
        {
            *last &= low_mask(new_len);
        }
    } else {
        dst.resize(new_len.div_ceil(8), 0);
    }
    *dst_len = new_len;
    Ok(())
}

/// Bits that fit a 64-bit word behind up to seven others.
const WORD_BITS: usize = 57;

/// Sets the bits of `word`, of which only the lowest [`WORD_BITS`] may be used, from bit `at` of `dst` on.
#[inline]
fn or_word(dst: &mut [u8], at: usize, word: u64) {
    let placed = (word << (at % 8)).to_le_bytes();
    let dst = dst.get_mut(at / 8..).unwrap_or_default();
    if let Some(chunk) = dst.first_chunk_mut() {
        *chunk = (u64::from_le_bytes(*chunk) | u64::from_le_bytes(placed)).to_le_bytes();
    } else {
        for (byte, placed) in dst.iter_mut().zip(placed) {
            *byte |= placed;
        }
    }
}

/// Sets `count` bits of `dst` from bit `at` on; those beyond the end are left out.
#[inline]
pub(crate) fn set_run(dst: &mut [u8], at: usize, count: usize) {
    if count <= WORD_BITS {
        return or_word(dst, at, low_bits(count));
    }
    let end = at.saturating_add(count);
    or_word(dst, at, u64::from(u8::MAX >> (at % 8)));
    if let Some(whole) = dst.get_mut(at.div_ceil(8)..end / 8) {
        whole.fill(u8::MAX);
    }
    or_word(dst, end & !7, u64::from(low_mask(end)));
}

/// Sets the bits of `dst` from bit `at` on that are set in the first `count` bits of `src`; both have that many.
#[inline]
pub(crate) fn or_bits(dst: &mut [u8], at: usize, src: &[u8], count: usize) {
    let mut done = 0usize;
    if at.is_multiple_of(8) {
        let whole = src.get(..count / 8).unwrap_or_default();
        for (to, from) in dst.get_mut(at / 8..).unwrap_or_default().iter_mut().zip(whole) {
            *to |= from;
        }
        done = count & !7;
    }
    while done < count {
        let n = count.wrapping_sub(done).min(WORD_BITS & !7);
        let word = load_u64(src.get(done / 8..).unwrap_or_default()) & low_bits(n);
        or_word(dst, at.wrapping_add(done), word);
        done = done.wrapping_add(n);
    }
}

fn check_bitmap(dst: &[u8], len: usize) -> Result<()> {
    if dst.len() == len.div_ceil(8) {
        return Ok(());
    }
    Err(DecodeError::new(0, format!("{} bytes for {len} bits", len.div_ceil(8)), dst.len().to_string()))
}

/// The eight bits of `src` from bit `shift` on, zero beyond the end.
#[inline]
fn window_byte(src: &[u8], bit: usize) -> u8 {
    let byte = |i: usize| u16::from(src.get(i).copied().unwrap_or(0));
    let window = byte(bit / 8) | (byte((bit / 8).wrapping_add(1)) << 8);
    (window >> (bit % 8)).to_le_bytes()[0]
}

/// A byte with the lowest `n` (0 to 8) bits set.
#[inline]
const fn low_byte_mask(n: usize) -> u8 {
    if n >= 8 { u8::MAX } else { low_mask(n) }
}

/// A word with the lowest `n` (0 to 63) bits set.
#[inline]
const fn low_bits(n: usize) -> u64 {
    (1u64 << (n % 64)).wrapping_sub(1)
}

/// The `width` (0 to 64) lowest bits.
#[inline]
pub(crate) const fn width_mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1u64 << (width % 64)).wrapping_sub(1) }
}

/// Appends the low `width` bits of each value, starting a new byte and padding the last one with zeros.
///
/// A width outside 1 to 64 writes nothing.
pub fn pack_width<T: Packable>(values: &[T], width: u32, out: &mut Vec<u8>) {
    if width == 0 || width > 64 {
        return;
    }
    if width == T::BITS {
        plain::encode(values, out);
        return;
    }
    let mask = width_mask(width);
    let mut pending = 0u128;
    let mut bits = 0u32;
    for value in values {
        pending |= u128::from(value.to_bits() & mask) << (bits % 64);
        bits = bits.wrapping_add(width);
        while bits >= 8 {
            out.push(pending.to_le_bytes()[0]);
            pending >>= 8;
            bits = bits.wrapping_sub(8);
        }
    }
    if bits > 0 {
        out.push(pending.to_le_bytes()[0]);
    }
}

/// Fills `out` with integers of `width` bits, beginning with integer number `first` of `bytes`.
///
/// # Errors
/// If the width is not in 1 to 64 or wider than `T`, or there are fewer bits.
pub fn unpack_width<T: Packable>(bytes: &[u8], width: u32, first: usize, out: &mut [T]) -> Result<()> {
    if width == 0 || width > T::BITS {
        return Err(DecodeError::new(0, format!("a width of 1 to {} bits", T::BITS), width.to_string()));
    }
    let step = width as usize;
    let start = first.checked_mul(step);
    let end = first.checked_add(out.len()).and_then(|last| last.checked_mul(step));
    let (Some(start), Some(end)) = (start, end.filter(|end| end.div_ceil(8) <= bytes.len())) else {
        let expected = format!("{} values of {width} bits after the first {first}", out.len());
        return Err(DecodeError::new(bytes.len(), expected, format!("{} bytes", bytes.len())));
    };
    let bytes = bytes.get(start / 8..end.div_ceil(8)).unwrap_or_default();
    if width == T::BITS && start.is_multiple_of(8) {
        return plain::decode_into(bytes, out);
    }
    let mask = width_mask(width);
    let mut bit = start % 8;
    for value in out {
        let window = bytes.get(bit / 8..).unwrap_or_default();
        let shift = bit % 8;
        // Up to 57 bits and the shift before them lie in eight bytes; wider ones need sixteen.
        let word = if width <= 57 { u128::from(load_u64(window)) } else { load_u128(window) };
        *value = T::from_bits(low_word(word >> shift) & mask);
        bit = bit.wrapping_add(step);
    }
    Ok(())
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
const fn low_word(word: u128) -> u64 {
    word as u64
}

/// The first eight bytes, zeros beyond the end.
#[inline]
fn load_u64(bytes: &[u8]) -> u64 {
    if let Some(chunk) = bytes.first_chunk() {
        return u64::from_le_bytes(*chunk);
    }
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u64::from(byte))
}

/// The first sixteen bytes, zeros beyond the end.
#[inline]
fn load_u128(bytes: &[u8]) -> u128 {
    if let Some(chunk) = bytes.first_chunk() {
        return u128::from_le_bytes(*chunk);
    }
    bytes.iter().rev().fold(0, |word, &byte| (word << 8) | u128::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() -> Result<()> {
        let values: Vec<bool> = (0..10).map(|i| i % 3 == 0).collect();
        let mut out = Vec::new();
        pack(&values, &mut out);
        assert_eq!(out, [0x49, 0x02]);
        let mut again = [false; 10];
        unpack(&out, &mut again)?;
        assert_eq!(again, *values);

        let mut packed = Vec::new();
        pack_width(&[5u8, 1, 6], 3, &mut packed);
        assert_eq!(packed, [0x8d, 0x01]);
        let mut out = [0u16; 2];
        unpack_width(&packed, 3, 1, &mut out)?;
        assert_eq!(out, [1, 6]);
        Ok(())
    }

    #[test]
    fn signed_values_keep_their_bits() -> Result<()> {
        let mut packed = Vec::new();
        pack_width(&[-1i32, i32::MIN], 32, &mut packed);
        let mut out = [0i32; 2];
        unpack_width(&packed, 32, 0, &mut out)?;
        assert_eq!(out, [-1, i32::MIN]);
        Ok(())
    }

    fn round_trip<T: Packable + std::fmt::Debug>(values: &[u64], width: u32, first: usize) {
        let width = width.min(T::BITS);
        let first = first.min(values.len());
        let values: Vec<T> = values.iter().map(|v| T::from_bits(v & width_mask(width))).collect();
        let mut packed = Vec::new();
        pack_width(&values, width, &mut packed);
        assert_eq!(packed.len(), (values.len() * width as usize).div_ceil(8));
        let mut again = vec![T::default(); values.len() - first];
        unpack_width(&packed, width, first, &mut again).unwrap();
        assert_eq!(again, values[first..]);
        let mut too_many = vec![T::default(); values.len() + 8];
        assert!(unpack_width(&packed, width, 0, &mut too_many).is_err());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips_any_width(values in prop::collection::vec(any::<u64>(), 0..70), width in 1u32..=64, first in 0usize..70) {
            round_trip::<u8>(&values, width, first);
            round_trip::<u16>(&values, width, first);
            round_trip::<u32>(&values, width, first);
            round_trip::<u64>(&values, width, first);
            round_trip::<i64>(&values, width, first);
        }

        #[test]
        fn ranges_append_like_single_bits(
            parts in prop::collection::vec((prop::collection::vec(any::<bool>(), 0..90), 0usize..90, any::<Option<bool>>()), 0..8),
        ) {
            let (mut dst, mut len, mut expected) = (Vec::new(), 0, Vec::new());
            for (bits, from, run) in &parts {
                let from = (*from).min(bits.len());
                if let Some(bit) = run {
                    append_run(&mut dst, &mut len, *bit, from).unwrap();
                    expected.extend(std::iter::repeat_n(*bit, from));
                } else {
                    let mut src = Vec::new();
                    pack(bits, &mut src);
                    append_range(&mut dst, &mut len, &src, from, bits.len() - from).unwrap();
                    expected.extend_from_slice(&bits[from..]);
                }
                prop_assert_eq!(len, expected.len());
            }
            let mut packed = Vec::new();
            pack(&expected, &mut packed);
            prop_assert_eq!(&dst, &packed);
            prop_assert_eq!(count_ones(&dst, len), expected.iter().filter(|&&bit| bit).count());
            prop_assert_eq!(count_ones(&dst, len / 2), expected[..len / 2].iter().filter(|&&bit| bit).count());
            for (i, &bit) in expected.iter().enumerate() {
                prop_assert_eq!(get(&dst, i), bit);
            }
            prop_assert!(!get(&dst, len));
        }

        #[test]
        fn runs_and_ranges_are_set_in_place(
            before in prop::collection::vec(any::<u8>(), 40),
            bits in prop::collection::vec(any::<bool>(), 0..150),
            at in 0usize..150,
        ) {
            let mut expected = [false; 320];
            unpack(&before, &mut expected).unwrap();
            let mut src = Vec::new();
            pack(&bits, &mut src);
            src.push(0xff);
            let (mut ranges, mut runs) = (before.clone(), before.clone());
            let mut expected_runs = expected;
            for (i, &bit) in bits.iter().enumerate() {
                expected[at + i] |= bit;
                expected_runs[at + i] = true;
            }
            or_bits(&mut ranges, at, &src, bits.len());
            set_run(&mut runs, at, bits.len());
            let mut found = [false; 320];
            unpack(&ranges, &mut found).unwrap();
            prop_assert_eq!(found, expected);
            unpack(&runs, &mut found).unwrap();
            prop_assert_eq!(found, expected_runs);
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..20), offset: usize, count in prop_oneof![any::<usize>(), 0usize..200], width in 0u32..70) {
            let _ = append_range(&mut Vec::new(), &mut 0, &bytes, offset, count);
            let _ = append_range(&mut vec![1], &mut 5, &bytes, offset % 170, count);
            let _ = unpack_width(&bytes, width, count, &mut [0u64; 3]);
            let _ = unpack(&bytes, &mut [false; 77]);
            let _ = count_ones(&bytes, count);
            let _ = get(&bytes, count);
        }
    }
}
