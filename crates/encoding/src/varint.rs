//! Unsigned LEB128 integers.
//!
//! Seven bits per byte, least significant first; the high bit of a byte says that another one follows.
//!
//! ```text
//! 300 = 0b10_0101100   ->   ac 02
//!                           |  `-- 0 0000010  the upper bits, last byte
//!                           `----- 1 0101100  the lower seven bits, more follow
//! ```
//!
//! A `u32` takes at most [`MAX_LEN_U32`] bytes and a `u64` at most [`MAX_LEN_U64`]. Bits of the last byte that would not
//! fit into the integer are refused, not dropped. Longer forms than needed (`80 00` for 0) are read, as the systems that
//! write these files read them; they are never written.

use crate::{DecodeError, Result};

/// Bytes of the longest `u32`.
pub const MAX_LEN_U32: usize = 5;
/// Bytes of the longest `u64`.
pub const MAX_LEN_U64: usize = 10;

/// Reads a `u32` at `*pos` and moves `*pos` behind it.
///
/// # Errors
/// If the bytes end inside the integer or it does not fit 32 bits; `*pos` then stays where it was.
///
/// ```
/// let mut pos = 0;
/// assert_eq!(pilaster_encoding::varint::read_u32(&[0xac, 0x02, 0xff], &mut pos)?, 300);
/// assert_eq!(pos, 2);
/// # Ok::<(), pilaster_encoding::DecodeError>(())
/// ```
#[inline]
pub fn read_u32(bytes: &[u8], pos: &mut usize) -> Result<u32> {
    // Lengths and run headers are mostly below 128.
    if let Some(&byte) = bytes.get(*pos)
        && byte < 0x80
    {
        *pos = pos.saturating_add(1);
        return Ok(u32::from(byte));
    }
    let start = *pos;
    let value = read_long(bytes, pos, MAX_LEN_U32, "a 32-bit varint")?;
    u32::try_from(value).map_err(|_| {
        *pos = start;
        DecodeError::new(start, "a varint of at most 32 bits", value.to_string())
    })
}

/// Reads a `u64` at `*pos` and moves `*pos` behind it.
///
/// # Errors
/// If the bytes end inside the integer or it does not fit 64 bits; `*pos` then stays where it was.
#[inline]
pub fn read_u64(bytes: &[u8], pos: &mut usize) -> Result<u64> {
    if let Some(&byte) = bytes.get(*pos)
        && byte < 0x80
    {
        *pos = pos.saturating_add(1);
        return Ok(u64::from(byte));
    }
    read_long(bytes, pos, MAX_LEN_U64, "a 64-bit varint")
}

#[inline]
fn read_long(bytes: &[u8], pos: &mut usize, max_len: usize, what: &'static str) -> Result<u64> {
    let rest = bytes.get(*pos..).unwrap_or_default();
    if let Some(eight) = rest.first_chunk()
        && let Some((value, length)) = read_within_eight(u64::from_le_bytes(*eight))
        && length <= max_len
    {
        *pos = pos.saturating_add(length);
        return Ok(value);
    }
    read_by_bytes(rest, pos, max_len, what)
}

/// The integer at the beginning of eight bytes and how many it takes, if it ends there.
#[inline]
fn read_within_eight(word: u64) -> Option<(u64, usize)> {
    const ENDS: u64 = 0x8080_8080_8080_8080;
    let ends = !word & ENDS;
    if ends == 0 {
        return None;
    }
    // All bits up to that of the last byte, without the marks; then seven bits of each byte are moved together, by pairs.
    let sevens = word & (ends ^ ends.wrapping_sub(1)) & !ENDS;
    let pairs = sevens & 0x007f_007f_007f_007f | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
    let fours = pairs & 0x0000_3fff_0000_3fff | (pairs & 0x3fff_0000_3fff_0000) >> 2;
    let value = fours & 0x0fff_ffff | (fours & 0x0fff_ffff_0000_0000) >> 4;
    Some((value, (ends.trailing_zeros() as usize).div_euclid(8).saturating_add(1)))
}

#[cold]
fn read_by_bytes(rest: &[u8], pos: &mut usize, max_len: usize, what: &'static str) -> Result<u64> {
    let (mut value, mut shift) = (0u64, 0u32);
    for (i, &byte) in rest.iter().take(max_len).enumerate() {
        let low = u64::from(byte & 0x7f);
        // Of the tenth byte one bit fits; those before fit whole.
        if shift == 63 && low > 1 {
            return Err(DecodeError::new(*pos, what, "more bits than fit"));
        }
        value |= low.wrapping_shl(shift);
        if byte < 0x80 {
            *pos = pos.saturating_add(i).saturating_add(1);
            return Ok(value);
        }
        shift = shift.saturating_add(7);
    }
    let found = if rest.len() < max_len { "the end of the bytes" } else { "no last byte" };
    Err(DecodeError::new(*pos, what, found))
}

/// Appends `value`.
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    write_u64(out, u64::from(value));
}

/// Appends `value`.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Bytes that [`write_u32`] appends for `value`.
#[must_use]
pub fn len_u32(value: u32) -> usize {
    len_u64(u64::from(value))
}

/// Bytes that [`write_u64`] appends for `value`.
#[must_use]
pub fn len_u64(value: u64) -> usize {
    let bits = 64u32.saturating_sub((value | 1).leading_zeros());
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() {
        let mut out = Vec::new();
        write_u32(&mut out, 300);
        assert_eq!(out, [0xac, 0x02]);
    }

    #[test]
    fn refuses_bits_that_do_not_fit() {
        for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x1f][..], &[0xff; 5], &[0x80; 6], &[], &[0x80]] {
            let mut pos = 0;
            assert!(read_u32(bytes, &mut pos).is_err());
            assert_eq!(pos, 0);
        }
        let mut bytes = vec![0xff; 9];
        bytes.push(2);
        assert!(read_u64(&bytes, &mut 0).is_err());
        bytes[9] = 1;
        assert_eq!(read_u64(&bytes, &mut 0), Ok(u64::MAX));
        assert!(read_u64(&bytes, &mut 100).is_err());
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(values in prop::collection::vec(prop_oneof![any::<u64>(), 0..300u64, any::<u32>().prop_map(u64::from)], 0..50)) {
            let mut out = Vec::new();
            let mut len = 0;
            for &v in &values {
                write_u64(&mut out, v);
                len += len_u64(v);
                prop_assert_eq!(out.len(), len);
            }
            let mut pos = 0;
            for &v in &values {
                let mut narrow = pos;
                prop_assert_eq!(read_u32(&out, &mut narrow).ok(), u32::try_from(v).ok());
                prop_assert_eq!(read_u64(&out, &mut pos), Ok(v));
            }
            prop_assert_eq!(pos, out.len());
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..16), pos in 0usize..20) {
            let _ = read_u32(&bytes, &mut { pos });
            let _ = read_u64(&bytes, &mut { pos });
        }

        #[test]
        fn eight_bytes_at_once_are_as_each_of_them(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x80u8..], 0..16),
        ) {
            for max_len in [MAX_LEN_U32, MAX_LEN_U64] {
                let (mut at_once, mut one_by_one) = (0, 0);
                prop_assert_eq!(
                    read_long(&bytes, &mut at_once, max_len, "a varint"),
                    read_by_bytes(&bytes, &mut one_by_one, max_len, "a varint")
                );
                prop_assert_eq!(at_once, one_by_one);
            }
        }
    }
}
