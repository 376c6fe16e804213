//! The portable decoder.

use super::GROUP;
use crate::{DecodeError, Result};

/// Reads one group at `*pos` and moves `*pos` behind it.
#[inline]
fn decode_group(bytes: &[u8], pos: &mut usize) -> Result<[u64; GROUP]> {
    let truncated = || DecodeError::new(*pos, "a whole group of five varints", "the end of the bytes");
    let rest = bytes.get(*pos..).unwrap_or_default();
    let (selector, mut rest) = rest.split_first_chunk().ok_or_else(truncated)?;
    let selector = u16::from_be_bytes(*selector);
    if selector & 0x8000 != 0 {
        return Err(DecodeError::new(*pos, "a selector below 0x8000", format!("{selector:#06x}")));
    }
    let mut values = [0; GROUP];
    for (value, shift) in values.iter_mut().zip([12, 9, 6, 3, 0]) {
        let len = usize::from((selector >> shift) & 7).wrapping_add(1);
        let (now, later) = rest.split_at_checked(len).ok_or_else(truncated)?;
        *value = now.iter().rev().fold(0, |value, &byte| (value << 8) | u64::from(byte));
        rest = later;
    }
    *pos = bytes.len().wrapping_sub(rest.len());
    Ok(values)
}

/// Appends the values of `groups` groups from byte `pos` on; returns the position behind them.
pub(super) fn decode(bytes: &[u8], mut pos: usize, groups: usize, out: &mut Vec<u64>) -> Result<usize> {
    for _ in 0..groups {
        out.extend(decode_group(bytes, &mut pos)?);
    }
    Ok(pos)
}
