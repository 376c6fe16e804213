//! Raw LZ4 blocks.
//!
//! ```text
//! sequence:  token | more of l | l literal bytes | u16 offset | more of m
//!            token = (l, or 15 if larger) << 4 | (m - 4, or 15 if larger); each "more" is bytes to add, up to one that
//!            is not 255
//! ```
//!
//! The literals are copied from the block; then `m` bytes are copied from `offset` bytes back in the output, which may run
//! into themselves: offset 1 repeats a byte. The last sequence ends after its literals.
//!
//! Ten bytes, of which the last eight are two bytes again and again:
//!
//! ```
//! # use pilaster_encoding::codec::Codec;
//! // two literals and a match of 8 | the literals | from two back | no literals at the end
//! let block = [2 << 4 | (8 - 4), b'a', b'b', 2, 0, 0];
//! let mut content = [0; 10];
//! Codec::Lz4.decompress(&block, &mut content)?;
//! assert_eq!(&content, b"ababababab");
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```
//!
//! Compressing is left to `lz4_flex`. Decompressing is done here, because bit-shuffled columns are mostly matches that run
//! into themselves, which that library copies byte by byte: this decoder is 5 to 12 times as fast on such blocks and
//! about as fast on text (`benches/codec.rs`). The library is the oracle of the tests.

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use std::cell::RefCell;

/// Appends the compressed form of `src`.
pub(crate) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    thread_local! {
        static TABLE: RefCell<CompressTable> = RefCell::new(CompressTable::large());
    }
    let start = out.len();
    out.resize(start.saturating_add(get_maximum_output_size(src.len())), 0);
    let target = out.get_mut(start..).unwrap_or_default();
    let written = TABLE.with_borrow_mut(|table| compress_into_with_table(src, target, table));
    out.truncate(start.saturating_add(*written.as_ref().unwrap_or(&0)));
    match written {
        Ok(_) => Ok(()),
        Err(error) => Err(DecodeError::new(0, "a block that lz4 can hold", error.to_string())),
    }
}

/// Bytes that are copied at once where only some are wanted.
const CHUNK: usize = 16;
/// The same for matches that are far enough back.
const WIDE: usize = 32;
/// Matches up to here are copied in place, longer ones by the standard library.
const LONG: usize = 256;
/// Input that [`short_sequences`] may look at: a token, fifteen literals rounded up to a chunk, an offset.
const WINDOW: usize = 32;
/// Output that [`short_sequences`] may write to: fifteen literals and 18 bytes of a match, rounded up.
const ROOM: usize = 64;
/// The value of half a token that says that more follows.
const MORE: usize = 15;
/// The shortest match.
const MIN_MATCH: usize = 4;

/// Decompresses all of `src` into exactly `dst`.
pub(crate) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    match decompress_behind(src, dst, 0)? {
        end if end == dst.len() => Ok(()),
        end => Err(wrong_length(Codec::Lz4, dst.len(), format_args!("{end} bytes"))),
    }
}

/// Decompresses all of `src` to `dst`, from `start` on; what is before that may be repeated. Returns where it ends.
pub(super) fn decompress_behind(src: &[u8], dst: &mut [u8], start: usize) -> Result<usize> {
    let (mut ip, mut op) = (0, start);
    loop {
        (ip, op) = short_sequences(src, dst, ip, op);
        if careful_sequence(src, dst, &mut ip, &mut op)? {
            return Ok(op);
        }
    }
}

/// Decodes one sequence of any lengths, wherever it stands; says whether it was the last.
#[inline]
fn careful_sequence(src: &[u8], dst: &mut [u8], ip: &mut usize, op: &mut usize) -> Result<bool> {
    let token = *src.get(*ip).ok_or_else(|| truncated(src))?;
    *ip = ip.wrapping_add(1);
    let literals = length(src, ip, usize::from(token >> 4)).ok_or_else(|| truncated(src))?;
    let from = src.get(*ip..).and_then(|rest| rest.get(..literals)).ok_or_else(|| truncated(src))?;
    let output = dst.len();
    let to =
        dst.get_mut(*op..).and_then(|rest| rest.get_mut(..literals)).ok_or_else(|| too_long(*ip, output))?;
    to.copy_from_slice(from);
    *ip = ip.wrapping_add(literals);
    *op = op.wrapping_add(literals);
    if *ip == src.len() {
        return Ok(true);
    }
    let offset = src.get(*ip..).and_then(|rest| rest.first_chunk()).ok_or_else(|| truncated(src))?;
    let offset = usize::from(u16::from_le_bytes(*offset));
    if offset.wrapping_sub(1) >= *op {
        return Err(bad_offset(*ip, offset, *op));
    }
    *ip = ip.wrapping_add(2);
    let len = length(src, ip, usize::from(token & 15)).ok_or_else(|| truncated(src))?.wrapping_add(MIN_MATCH);
    if len > output.wrapping_sub(*op) {
        return Err(too_long(*ip, output));
    }
    copy_match(dst, *op, offset, len);
    *op = op.wrapping_add(len);
    Ok(false)
}

/// Decodes sequences with few literals, as long as input and output are far from their ends and nothing is wrong; returns
/// where the first one starts that is left to [`careful_sequence`].
#[inline(always)]
fn short_sequences(src: &[u8], dst: &mut [u8], ip: usize, op: usize) -> (usize, usize) {
    let (Some(last_ip), Some(last_op)) = (src.len().checked_sub(WINDOW), dst.len().checked_sub(ROOM)) else {
        return (ip, op);
    };
    let (mut ip, mut op) = (ip, op);
    while ip <= last_ip && op <= last_op {
        let (input, output) = (src.as_ptr(), dst.as_mut_ptr());
        // SAFETY: `ip <= last_ip`, so 32 bytes of input follow.
        let token = unsafe { *input.add(ip) };
        let literals = usize::from(token >> 4);
        if literals == MORE {
            break;
        }
        // SAFETY: at most 14 literals, so the 32 bytes of input hold the chunk and the offset; `op <= last_op`, so 64 bytes
        // of output follow.
        let offset = unsafe {
            copy::<CHUNK>(input.add(ip.wrapping_add(1)), output.add(op));
            input.add(ip.wrapping_add(literals).wrapping_add(1)).cast::<u16>().read_unaligned()
        };
        let offset = usize::from(u16::from_le(offset));
        let mut after = ip.wrapping_add(literals).wrapping_add(3);
        let to = op.wrapping_add(literals);
        if offset.wrapping_sub(1) >= to {
            break;
        }
        let more = usize::from(token & 15);
        if more < MORE && offset >= 8 {
            // SAFETY: `1 <= offset <= to`, so the source is inside the output; of the 64 bytes at most 14 are used, so 18
            // are there. No copy reads what it writes, because the offset is at least as long as each.
            unsafe {
                let (from, to) = (output.add(to.wrapping_sub(offset)), output.add(to));
                copy::<8>(from, to);
                copy::<8>(from.add(8), to.add(8));
                copy::<2>(from.add(16), to.add(16));
            }
            ip = after;
            op = to.wrapping_add(more).wrapping_add(MIN_MATCH);
            continue;
        }
        let Some(len) = length(src, &mut after, more) else { break };
        let len = len.wrapping_add(MIN_MATCH);
        if len > dst.len().wrapping_sub(to) {
            break;
        }
        copy_match(dst, to, offset, len);
        ip = after;
        op = to.wrapping_add(len);
    }
    (ip, op)
}

/// Copies `N` bytes.
///
/// # Safety
/// They are readable and writable.
#[inline(always)]
unsafe fn copy<const N: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise; an array of bytes has no alignment.
    unsafe { to.cast::<[u8; N]>().write(from.cast::<[u8; N]>().read()) }
}

/// A length that began with `half` a token; `None` if the input ends in it.
#[inline(always)]
fn length(src: &[u8], ip: &mut usize, half: usize) -> Option<usize> {
    let mut len = half;
    if half == MORE {
        loop {
            let more = *src.get(*ip)?;
            *ip = ip.wrapping_add(1);
            // No more than 255 for each byte of the block.
            len = len.wrapping_add(usize::from(more));
            if more != u8::MAX {
                break;
            }
        }
    }
    Some(len)
}

/// Copies `len` bytes from `offset` bytes back. The caller has checked `1 <= offset <= op` and `len <= dst.len() - op`.
#[inline(always)]
fn copy_match(dst: &mut [u8], op: usize, offset: usize, len: usize) {
    let room = dst.len().wrapping_sub(op);
    let from = op.wrapping_sub(offset);
    if offset >= WIDE && len <= LONG && room >= LONG {
        let mut done = 0usize;
        while done < len {
            copy_within::<WIDE>(dst, from.wrapping_add(done), op.wrapping_add(done));
            done = done.wrapping_add(WIDE);
        }
    } else if let Some(&(mask, copies, step)) = PATTERNS.get(offset)
        && len <= LONG
        && room >= LONG.wrapping_add(CHUNK)
        && let Some(bytes) = chunk(dst, from)
    {
        // The repeated bytes as often as they fit a chunk, by one multiplication; then whole chunks of that.
        let pattern = (u128::from_le_bytes(*bytes) & mask).wrapping_mul(copies).to_le_bytes();
        let mut done = 0usize;
        while done < len {
            if let Some(to) = chunk_mut(dst, op.wrapping_add(done)) {
                *to = pattern;
            }
            done = done.wrapping_add(step);
        }
    } else {
        copy_long(dst, from, op, offset, len);
    }
}

/// For offsets below a chunk: the bits that repeat, the factor that repeats them, and the whole repetitions in bytes.
static PATTERNS: [(u128, u128, usize); CHUNK] = patterns();

#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated at compile time, where a wrong index fails the build"
)]
const fn patterns() -> [(u128, u128, usize); CHUNK] {
    let mut table = [(0, 0, CHUNK); CHUNK];
    let mut offset = 1;
    while offset < CHUNK {
        let mut copies = 0u128;
        let mut at = 0;
        while at < CHUNK {
            copies |= 1 << (8 * at);
            at += offset;
        }
        table[offset] = ((1 << (8 * offset)) - 1, copies, CHUNK - CHUNK % offset);
        offset += 1;
    }
    table
}

#[inline(always)]
fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

#[inline(always)]
fn chunk_mut<const N: usize>(bytes: &mut [u8], at: usize) -> Option<&mut [u8; N]> {
    bytes.get_mut(at..)?.first_chunk_mut()
}

#[inline(always)]
fn copy_within<const N: usize>(dst: &mut [u8], from: usize, to: usize) {
    if let Some(&bytes) = chunk::<N>(dst, from)
        && let Some(to) = chunk_mut(dst, to)
    {
        *to = bytes;
    }
}

/// [`copy_match`] without room for more than the match, or for long ones.
#[inline(never)]
fn copy_long(dst: &mut [u8], from: usize, op: usize, offset: usize, len: usize) {
    if offset == 1 {
        let byte = dst.get(from).copied().unwrap_or(0);
        if let Some(to) = dst.get_mut(op..op.wrapping_add(len)) {
            to.fill(byte);
        }
        return;
    }
    // What is there is always a whole number of repetitions, so it can be doubled.
    let mut done = 0usize;
    while done < len {
        let n = offset.wrapping_add(done).min(len.wrapping_sub(done));
        dst.copy_within(from..from.wrapping_add(n), op.wrapping_add(done));
        done = done.wrapping_add(n);
    }
}

#[cold]
fn truncated(src: &[u8]) -> DecodeError {
    DecodeError::new(src.len(), "more lz4 data", "the end of the bytes")
}

#[cold]
fn too_long(at: usize, expected: usize) -> DecodeError {
    DecodeError::new(at, format!("lz4 data of {expected} bytes"), "more")
}

#[cold]
fn bad_offset(at: usize, offset: usize, written: usize) -> DecodeError {
    DecodeError::new(at, format!("an lz4 offset of 1 to {written}"), offset.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lz4_flex::block::decompress_into;
    use proptest::prelude::*;

    fn decompress_carefully(src: &[u8], dst: &mut [u8]) -> Result<()> {
        let (mut ip, mut op) = (0, 0);
        while !careful_sequence(src, dst, &mut ip, &mut op)? {}
        if op == dst.len() { Ok(()) } else { Err(wrong_length(Codec::Lz4, dst.len(), op)) }
    }

    /// A block of sequences with the given literals, offsets and match lengths, and the bytes it stands for.
    fn build(sequences: &[(Vec<u8>, usize, usize)], last: &[u8]) -> (Vec<u8>, Vec<u8>) {
        fn half(len: usize) -> u8 {
            len.min(MORE) as u8
        }
        fn more(out: &mut Vec<u8>, len: usize) {
            if len >= MORE {
                out.extend(std::iter::repeat_n(255, (len - MORE) / 255));
                out.push(((len - MORE) % 255) as u8);
            }
        }
        let (mut block, mut bytes) = (Vec::new(), Vec::new());
        for (literals, offset, len) in sequences {
            block.push(half(literals.len()) << 4 | half(len - MIN_MATCH));
            more(&mut block, literals.len());
            block.extend(literals);
            bytes.extend(literals);
            let offset = offset % bytes.len() + 1;
            block.extend((offset as u16).to_le_bytes());
            more(&mut block, len - MIN_MATCH);
            for _ in 0..*len {
                bytes.push(bytes[bytes.len() - offset]);
            }
        }
        block.push(half(last.len()) << 4);
        more(&mut block, last.len());
        block.extend(last);
        bytes.extend(last);
        (block, bytes)
    }

    fn sequences() -> impl Strategy<Value = Vec<(Vec<u8>, usize, usize)>> {
        let literals = prop_oneof![
            prop::collection::vec(any::<u8>(), 1..20),
            prop::collection::vec(any::<u8>(), 1..300)
        ];
        let offset = prop_oneof![0usize..40, 0usize..60_000];
        let len = prop_oneof![4usize..20, 4usize..70, 200usize..700];
        prop::collection::vec((literals, offset, len), 0..if cfg!(miri) { 6 } else { 40 })
    }

    #[test]
    fn repeats_every_offset_over_every_length() {
        for offset in (1..40).step_by(if cfg!(miri) { 5 } else { 1 }) {
            for len in (4..600).step_by(if cfg!(miri) { 97 } else { 1 }) {
                let literals: Vec<u8> = (0..40).collect();
                let (block, expected) = build(&[(literals, offset - 1, len)], &[9; 400]);
                let mut out = vec![0; expected.len()];
                decompress(&block, &mut out).unwrap();
                assert_eq!(out, expected, "offset {offset}, length {len}");
            }
        }
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn sequences_of_every_shape(sequences in sequences(), last in prop::collection::vec(any::<u8>(), 0..100)) {
            let (block, expected) = build(&sequences, &last);
            let mut out = vec![0; expected.len()];
            prop_assert_eq!(decompress(&block, &mut out), Ok(()));
            prop_assert_eq!(&out, &expected);
            out.fill(0);
            prop_assert_eq!(decompress_carefully(&block, &mut out), Ok(()));
            prop_assert_eq!(&out, &expected);
        }

        #[test]
        fn damaged_blocks_are_judged_as_by_the_library(
            sequences in sequences(),
            last in prop::collection::vec(any::<u8>(), 0..100),
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            longer in 0usize..3,
        ) {
            let (mut block, expected) = build(&sequences, &last);
            for (at, value) in damage {
                let at = at.index(block.len());
                block[at] = value;
            }
            let len = expected.len() + longer;
            let (mut ours, mut theirs, mut careful) = (vec![0; len], vec![0; len], vec![0; len]);
            let result = decompress(&block, &mut ours);
            prop_assert_eq!(result.is_ok(), decompress_into(&block, &mut theirs).ok() == Some(len));
            prop_assert_eq!(result.is_ok(), decompress_carefully(&block, &mut careful).is_ok());
            if result.is_ok() {
                prop_assert_eq!(&ours, &theirs);
                prop_assert_eq!(&ours, &careful);
            }
        }
    }
}
