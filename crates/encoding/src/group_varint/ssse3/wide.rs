//! Five `u64` by two shuffles and a masked load.

use super::super::word::Word;
use super::{is_available, shuffles};
use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

/// Values of a group.
const GROUP: usize = u64::GROUP;
/// For each pair of lengths, where each byte of the two results comes from.
static SHUFFLES: [[u8; 16]; 64] = shuffles(2);
/// The bits of a value by its length.
static MASKS: [u64; 8] =
    [0xff, 0xffff, 0xff_ffff, 0xffff_ffff, 0xff_ffff_ffff, 0xffff_ffff_ffff, 0xff_ffff_ffff_ffff, u64::MAX];

/// Decodes groups while one of the longest form still lies inside the bytes; gives the position and the groups done. A selector
/// that is none is left to the portable decoder, which says so.
pub(in super::super) fn decode(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> (usize, usize) {
    if !is_available() {
        return (0, 0);
    }
    out.reserve(groups.saturating_mul(GROUP));
    // SAFETY: the check names the one feature the kernel is compiled for.
    unsafe { decode_batches(bytes, groups, out) }
}

/// Bytes of a pair of values whose lengths less one are `pair`'s two numbers of three bits.
#[inline(always)]
const fn pair_len(pair: usize) -> usize {
    (pair >> 3).wrapping_add(pair & 7).wrapping_add(2)
}

/// Groups that are looked at together.
const BATCH: usize = 4;
/// Bytes that a batch takes at most.
const WINDOW: usize = BATCH * u64::MAX_GROUP_LEN;

/// See [`decode`].
///
/// Keys and amounts have mostly the same lengths, so often four groups have the same selector and need not wait for each other.
#[target_feature(enable = "ssse3")]
fn decode_batches(bytes: &[u8], groups: usize, out: &mut Vec<u64>) -> (usize, usize) {
    let mut pos = 0usize;
    let mut done = 0usize;
    let room = out.spare_capacity_mut();
    let groups = groups.min(room.len() / GROUP);
    let target = room.as_mut_ptr().cast::<u64>();
    while done < groups
        && let Some(window) = bytes.get(pos..).and_then(|rest| rest.first_chunk::<{ u64::MAX_GROUP_LEN }>())
    {
        let selector_bytes = [window[0], window[1]];
        let selector = usize::from(u16::from_be_bytes(selector_bytes));
        let (first, second, last) = ((selector >> 9) & 63, (selector >> 3) & 63, selector & 7);
        let (Some(shuffle), Some(next), Some(mask)) =
            (SHUFFLES.get(first), SHUFFLES.get(second), MASKS.get(last))
        else {
            break;
        };
        if selector & 0x8000 != 0 {
            break;
        }
        let second_at = pair_len(first).wrapping_add(2);
        let last_at = second_at.wrapping_add(pair_len(second));
        let len = last_at.wrapping_add(last).wrapping_add(1);
        let selector_at = |n: usize| bytes.get(pos.wrapping_add(len.wrapping_mul(n))..)?.first_chunk();
        let is_batch = groups.wrapping_sub(done) >= BATCH
            && bytes.len().wrapping_sub(pos) >= WINDOW
            && (1..BATCH).all(|n| selector_at(n) == Some(&selector_bytes));
        let now = if is_batch { BATCH } else { 1 };
        // SAFETY: a pair takes at most 16 bytes, so the loads of a group begin at 2, at most at 18 and at most at 34, and end
        // inside its longest form of 42 bytes, which the bytes have from `pos` on; in a batch they have 4 · 42 bytes, and `len`
        // is at most 42; the shuffles have 16 bytes; `target` has room for five values of each of `groups` groups and
        // `done + now <= groups`.
        unsafe {
            let shuffle = _mm_loadu_si128(shuffle.as_ptr().cast());
            let next = _mm_loadu_si128(next.as_ptr().cast());
            let decode = |n: usize| {
                let from = bytes.as_ptr().add(pos.wrapping_add(len.wrapping_mul(n)));
                let target = target.add(done.wrapping_add(n).wrapping_mul(GROUP));
                let pair = _mm_loadu_si128(from.add(2).cast());
                _mm_storeu_si128(target.cast::<__m128i>(), _mm_shuffle_epi8(pair, shuffle));
                let pair = _mm_loadu_si128(from.add(second_at).cast());
                _mm_storeu_si128(target.add(2).cast::<__m128i>(), _mm_shuffle_epi8(pair, next));
                let value = from.add(last_at).cast::<u64>().read_unaligned();
                target.add(4).write(u64::from_le(value) & mask);
            };
            decode(0);
            if is_batch {
                (1..BATCH).for_each(decode);
            }
        }
        pos = pos.wrapping_add(len.wrapping_mul(now));
        done = done.wrapping_add(now);
    }
    // SAFETY: `done` groups of five values were written behind the old end, inside the capacity.
    unsafe { out.set_len(out.len().wrapping_add(done.wrapping_mul(GROUP))) };
    (pos, done)
}
