//! Four `u32` by one shuffle.

use super::super::word::Word;
use super::{is_available, shuffles};
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

/// For each selector, where each byte of the four results comes from.
static SHUFFLES: [[u8; 16]; 256] = shuffles(4);
/// For each selector, the bytes of the whole group.
static LENGTHS: [u8; 256] = lengths();

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

/// Decodes groups while a batch of the longest form still lies inside the bytes; gives the position and the groups done.
pub(in super::super) fn decode(bytes: &[u8], groups: usize, out: &mut Vec<u32>) -> (usize, usize) {
    if !is_available() {
        return (0, 0);
    }
    out.reserve(groups.saturating_mul(u32::GROUP));
    // SAFETY: the check names the one feature the kernel is compiled for.
    unsafe { decode_batches(bytes, groups, out) }
}

/// Groups that are looked at together.
const BATCH: usize = 4;
/// Bytes that a batch may read.
const WINDOW: usize = BATCH * u32::MAX_GROUP_LEN;

/// See [`decode`].
///
/// Where a group starts is known only when the selector before it was looked up, which is what takes the time. Offsets
/// grow slowly, so mostly four groups have the same selector and the next four start four lengths on.
#[target_feature(enable = "ssse3")]
fn decode_batches(bytes: &[u8], groups: usize, out: &mut Vec<u32>) -> (usize, usize) {
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
