//! One byte shuffle per group, with a table from the selector to the shuffle.

use super::{MAX_GROUP_LEN, scalar};
use crate::Result;
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

/// For each selector, where each byte of the four results comes from; 0x80 gives zero.
static SHUFFLES: [[u8; 16]; 256] = shuffles();
/// For each selector, the bytes of the whole group.
static LENGTHS: [u8; 256] = lengths();

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated at compile time, where a wrong index fails the build"
)]
const fn shuffles() -> [[u8; 16]; 256] {
    let mut table = [[0x80; 16]; 256];
    let mut selector = 0;
    while selector < 256 {
        let (mut value, mut from) = (0, 0u8);
        while value < 4 {
            let len = ((selector >> (6 - 2 * value)) & 3) + 1;
            let mut byte = 0;
            while byte < len {
                table[selector][value * 4 + byte] = from;
                from += 1;
                byte += 1;
            }
            value += 1;
        }
        selector += 1;
    }
    table
}

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated at compile time, where a wrong index fails the build"
)]
const fn lengths() -> [u8; 256] {
    let mut table = [0; 256];
    let mut selector = 0u8;
    loop {
        table[selector as usize] =
            5 + (selector >> 6) + ((selector >> 4) & 3) + ((selector >> 2) & 3) + (selector & 3);
        if selector == 255 {
            return table;
        }
        selector += 1;
    }
}

/// Whether this machine can run [`decode`].
#[inline]
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("ssse3")
}

/// Appends the values of `groups` groups; returns the bytes they took.
pub(super) fn decode(bytes: &[u8], groups: usize, out: &mut Vec<u32>) -> Result<usize> {
    out.reserve(groups.saturating_mul(4));
    // SAFETY: the caller's dispatch and this check name the one feature the kernel is compiled for.
    let (pos, done) = if is_available() { unsafe { decode_wide(bytes, groups, out) } } else { (0, 0) };
    scalar::decode(bytes, pos, groups.saturating_sub(done), out)
}

/// Groups that are looked at together.
const BATCH: usize = 4;
/// Bytes that a batch may read.
const WINDOW: usize = BATCH * MAX_GROUP_LEN;

/// Decodes while a batch of the longest form still lies inside the bytes; returns the position and the groups done.
///
/// Where a group starts is known only when the selector before it was looked up, which is what takes the time. Offsets
/// grow slowly, so mostly four groups have the same selector and the next four start four lengths on.
#[target_feature(enable = "ssse3")]
fn decode_wide(bytes: &[u8], groups: usize, out: &mut Vec<u32>) -> (usize, usize) {
    let mut pos = 0usize;
    let mut done = 0usize;
    let room = out.spare_capacity_mut();
    let groups = groups.min(room.len() / 4);
    let target = room.as_mut_ptr().cast::<__m128i>();
    while done < groups
        && let Some(window) = bytes.get(pos..).and_then(|rest| rest.first_chunk::<WINDOW>())
    {
        let selector = usize::from(window[0]);
        let (Some(shuffle), Some(&len)) = (SHUFFLES.get(selector), LENGTHS.get(selector)) else { break };
        let len = usize::from(len);
        let selector_at = |n: usize| window.get(len.wrapping_mul(n)).copied().map(usize::from);
        let is_batch =
            groups.wrapping_sub(done) >= BATCH && (1..BATCH).all(|n| selector_at(n) == Some(selector));
        let now = if is_batch { BATCH } else { 1 };
        // SAFETY: `len` is at most 17, so the sixteen bytes behind each of the selectors lie in the window of 4 · 17; the
        // shuffle has 16 bytes; `target` has room for `groups` vectors of four values and `done + now <= groups`.
        unsafe {
            let shuffle = _mm_loadu_si128(shuffle.as_ptr().cast());
            let decode = |n: usize| {
                let data = _mm_loadu_si128(window.as_ptr().add(len.wrapping_mul(n).wrapping_add(1)).cast());
                _mm_storeu_si128(target.add(done.wrapping_add(n)), _mm_shuffle_epi8(data, shuffle));
            };
            decode(0);
            if is_batch {
                (1..BATCH).for_each(decode);
            }
        }
        pos = pos.wrapping_add(len.wrapping_mul(now));
        done = done.wrapping_add(now);
    }
    // SAFETY: `done` vectors of four values were written behind the old end, inside the capacity.
    unsafe { out.set_len(out.len().wrapping_add(done.wrapping_mul(4))) };
    (pos, done)
}
