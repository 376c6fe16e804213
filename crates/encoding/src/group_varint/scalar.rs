//! The portable decoder.

use crate::{DecodeError, Result};

/// Reads one group at `*pos` and moves `*pos` behind it.
#[inline]
pub(super) fn decode_group(bytes: &[u8], pos: &mut usize) -> Result<[u32; 4]> {
    let truncated = || DecodeError::new(*pos, "a whole group of four varints", "the end of the bytes");
    let mut rest = bytes.get(*pos..).unwrap_or_default();
    let (&selector, after) = rest.split_first().ok_or_else(truncated)?;
    rest = after;
    let mut values = [0; 4];
    for (value, shift) in values.iter_mut().zip([6, 4, 2, 0]) {
        let len = usize::from((selector >> shift) & 3).wrapping_add(1);
        let (now, later) = rest.split_at_checked(len).ok_or_else(truncated)?;
        *value = now.iter().rev().fold(0, |value, &byte| (value << 8) | u32::from(byte));
        rest = later;
    }
    *pos = bytes.len().wrapping_sub(rest.len());
    Ok(values)
}

/// Appends the values of `groups` groups from byte `pos` on; returns the position behind them.
pub(super) fn decode(bytes: &[u8], mut pos: usize, groups: usize, out: &mut Vec<u32>) -> Result<usize> {
    for _ in 0..groups {
        out.extend(decode_group(bytes, &mut pos)?);
    }
    Ok(pos)
}
