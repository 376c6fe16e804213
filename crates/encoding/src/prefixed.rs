//! Byte strings, each behind its length: a little-endian `u32` unless another [`LengthPrefix`] is named.
//!
//! ```text
//! "hi", ""   ->   02000000 6869 00000000
//! ```

use crate::{DecodeError, Result};

/// Bytes of the length before each string.
pub const PREFIX_LEN: usize = 4;

/// How the length before each string is stored.
pub trait LengthPrefix: sealed::Sealed {
    /// Bytes of it, at most four.
    const LEN: usize;

    #[doc(hidden)]
    const BITS: u32;

    /// The length, out of the four bytes where it begins.
    fn length(head: [u8; 4]) -> u32;
}

mod sealed {
    /// Views are made by shifting what lies behind a length, so only those known here will do.
    pub trait Sealed {}
}

/// A little-endian `u32`.
#[derive(Debug, Clone, Copy)]
pub enum LittleU32 {}

/// A big-endian `u32`.
#[derive(Debug, Clone, Copy)]
pub enum BigU32 {}

/// A big-endian `u16`.
#[derive(Debug, Clone, Copy)]
pub enum BigU16 {}

macro_rules! length_prefix {
    ($($name:ident $len:literal $length:expr),*) => {$(
        impl sealed::Sealed for $name {}
        impl LengthPrefix for $name {
            const LEN: usize = $len;
            const BITS: u32 = $len * 8;

            #[inline(always)]
            fn length(head: [u8; 4]) -> u32 {
                let length: fn([u8; 4]) -> u32 = $length;
                length(head)
            }
        }
    )*};
}
length_prefix!(
    LittleU32 4 u32::from_le_bytes,
    BigU32 4 u32::from_be_bytes,
    BigU16 2 |[high, low, _, _]| u32::from(u16::from_be_bytes([high, low]))
);

/// Strings up to this length are copied as one vector where the source has as many bytes.
const SHORT: usize = 16;

fn truncated(at: usize, bytes: &[u8]) -> DecodeError {
    let found = format!("{} bytes", bytes.len().saturating_sub(at));
    DecodeError::new(at, "a length and as many bytes", found)
}

/// Where the string at `*pos` lies; moves `*pos` behind it.
///
/// # Errors
/// If the bytes end inside it; `*pos` then stays where it was.
#[inline]
pub fn next<'a>(bytes: &'a [u8], pos: &mut usize) -> Result<&'a [u8]> {
    next_behind::<LittleU32>(bytes, pos)
}

/// As [`next`], behind a length of any kind.
///
/// # Errors
/// As [`next`].
#[inline]
pub fn next_behind<'a, L: LengthPrefix>(bytes: &'a [u8], pos: &mut usize) -> Result<&'a [u8]> {
    let found = bytes.get(*pos..).and_then(|rest| {
        let (prefix, rest) = rest.split_at_checked(L::LEN)?;
        let mut head = [0; 4];
        head.get_mut(..L::LEN)?.copy_from_slice(prefix);
        rest.get(..L::length(head) as usize)
    });
    let string = found.ok_or_else(|| truncated(*pos, bytes))?;
    *pos = pos.saturating_add(L::LEN).saturating_add(string.len());
    Ok(string)
}

/// Moves `*pos` behind `count` strings.
///
/// # Errors
/// If the bytes end before.
pub fn skip(bytes: &[u8], pos: &mut usize, count: usize) -> Result<()> {
    for _ in 0..count {
        next(bytes, pos)?;
    }
    Ok(())
}

/// Appends `count` strings from `*pos` on to `values`, the end of each to `ends`, and moves `*pos` behind them.
///
/// # Errors
/// If the bytes end before, or an end does not fit its type; what was appended is then not specified.
pub fn append<O: TryFrom<usize>>(
    bytes: &[u8],
    pos: &mut usize,
    count: usize,
    values: &mut Vec<u8>,
    ends: &mut Vec<O>,
) -> Result<()> {
    let left = bytes.len().saturating_sub(*pos);
    if count.saturating_mul(PREFIX_LEN) > left {
        return Err(truncated(*pos, bytes));
    }
    let mut end = values.len();
    // Not more than is there, with room for the vector of the last string.
    let most = left.saturating_sub(count.saturating_mul(PREFIX_LEN));
    values.resize(end.saturating_add(most).saturating_add(SHORT), 0);
    ends.reserve(count);
    for _ in 0..count {
        let at = pos.saturating_add(PREFIX_LEN);
        let string = next(bytes, pos)?;
        let len = string.len();
        let target = values.get_mut(end..).unwrap_or_default();
        match (bytes.get(at..).and_then(|rest| rest.first_chunk::<SHORT>()), target.first_chunk_mut()) {
            (Some(vector), Some(place)) if len <= SHORT => *place = *vector,
            _ => {
                if let Some(place) = target.get_mut(..len) {
                    place.copy_from_slice(string);
                }
            }
        }
        end = end.saturating_add(len);
        let Ok(stored) = O::try_from(end) else {
            return Err(DecodeError::new(at, "strings that fit their offsets", format!("{end} bytes")));
        };
        ends.push(stored);
    }
    values.truncate(end);
    Ok(())
}

/// Strings up to this length are copied by blocks of fixed size, which is faster than by one of any size.
const BLOCK: usize = 32;

/// Appends a string.
///
/// # Errors
/// If it is longer than a `u32` can tell.
#[inline]
pub fn put(string: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let len = u32::try_from(string.len())
        .map_err(|_| DecodeError::new(0, "a string below 4 GiB", format!("{} bytes", string.len())))?;
    out.extend_from_slice(&len.to_le_bytes());
    if string.len() > BLOCK {
        out.extend_from_slice(string);
        return Ok(());
    }
    let start = out.len();
    out.extend_from_slice(&[0; BLOCK]);
    let body = out.get_mut(start..).unwrap_or_default();
    // From both ends, overlapping in the middle.
    if !(put_ends::<16>(string, body) || put_ends::<8>(string, body) || put_ends::<4>(string, body)) {
        for (to, from) in body.iter_mut().zip(string) {
            *to = *from;
        }
    }
    out.truncate(start.saturating_add(string.len()));
    Ok(())
}

/// Strings up to this length are copied as a block of it where the source goes on.
pub const BLOCK_LEN: usize = 64;

/// Appends the first `len` bytes of a block, all of it if `len` is more: a copy of fixed size and no branches.
///
/// ```
/// let (mut out, mut block) = (Vec::new(), [b'.'; 64]);
/// block[..2].copy_from_slice(b"hi");
/// pilaster_encoding::prefixed::put_block(&block, 2, &mut out);
/// assert_eq!(out, b"\x02\0\0\0hi");
/// ```
#[inline]
pub fn put_block(block: &[u8; BLOCK_LEN], len: usize, out: &mut Vec<u8>) {
    let len = len.min(BLOCK_LEN);
    let [low, ..] = len.to_le_bytes();
    out.extend_from_slice(&[low, 0, 0, 0]);
    let start = out.len();
    out.extend_from_slice(block);
    out.truncate(start.wrapping_add(len));
}

/// The longest string that an Arrow view holds itself.
pub const MAX_INLINE_LEN: usize = 12;

/// Appends a string of at most [`MAX_INLINE_LEN`] bytes as an Arrow view holds it: its length, then its bytes, filled up with
/// zeros. A longer length counts as that.
///
/// ```
/// let mut out = Vec::new();
/// pilaster_encoding::prefixed::put_inline(u128::from_le_bytes(*b"\x02\0\0\0hi\0\0\0\0\0\0\0\0\0\0"), &mut out);
/// assert_eq!(out, b"\x02\0\0\0hi");
/// ```
#[inline]
pub fn put_inline(view: u128, out: &mut Vec<u8>) {
    let bytes = view.to_le_bytes();
    let [a, b, c, d, ..] = bytes;
    let len = (u32::from_le_bytes([a, b, c, d]) as usize).min(MAX_INLINE_LEN);
    let start = out.len();
    out.extend_from_slice(&bytes);
    out.truncate(start.wrapping_add(PREFIX_LEN).wrapping_add(len));
}

/// Copies a string of `N` to `2 N` bytes as its first and its last `N`; says whether it is one.
#[inline(always)]
fn put_ends<const N: usize>(string: &[u8], out: &mut [u8]) -> bool {
    let (Some(first), Some(last)) = (string.first_chunk::<N>(), string.last_chunk::<N>()) else {
        return false;
    };
    if let Some(place) = out.first_chunk_mut() {
        *place = *first;
    }
    let at = string.len().wrapping_sub(N);
    if let Some(place) = out.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
        *place = *last;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_example() {
        let mut out = Vec::new();
        put(b"hi", &mut out).unwrap();
        put(b"", &mut out).unwrap();
        assert_eq!(out, [2, 0, 0, 0, b'h', b'i', 0, 0, 0, 0]);
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(strings in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..30), skipped in 0usize..30) {
            let mut out = Vec::new();
            for string in &strings {
                put(string, &mut out).unwrap();
            }
            let skipped = skipped.min(strings.len());
            let (mut pos, mut values, mut ends) = (0, b"before".to_vec(), vec![6i32]);
            skip(&out, &mut pos, skipped).unwrap();
            append(&out, &mut pos, strings.len() - skipped, &mut values, &mut ends).unwrap();
            prop_assert_eq!(pos, out.len());
            let again: Vec<&[u8]> = ends.windows(2).map(|w| &values[w[0] as usize..w[1] as usize]).collect();
            prop_assert_eq!(again, strings[skipped..].iter().map(Vec::as_slice).collect::<Vec<_>>());
            prop_assert!(append(&out, &mut pos, 1, &mut values, &mut ends).is_err());
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), pos in 0usize..70, count in prop_oneof![0usize..9, any::<usize>()]) {
            let _ = append(&bytes, &mut { pos }, count, &mut Vec::new(), &mut Vec::<i32>::new());
            let _ = next(&bytes, &mut { pos });
        }
    }
}
