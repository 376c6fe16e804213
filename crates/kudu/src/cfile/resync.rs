//! Finding blocks by their checksums alone, in one pass.
//!
//! Behind damage nothing tells where the next block begins, and trying every start against every end would take hours.
//! CRC-32C is linear, so both can be found at once. Let `z(i)` be the checksum register over the first `i` bytes,
//! started with zeros, and `f(i)` the starting register of ones, both carried back to the beginning of the stretch, that
//! is divided by x once for each bit. Then `s..e + 4` is a stretch that ends with the checksum of the rest of it exactly
//! if `f(s) + z(s) = f(e) + z(e + 4)`: one look into a table for each end.

use std::ops::Range;

/// The polynomial of CRC-32C, lowest power in the highest bit.
const POLYNOMIAL: u32 = 0x82F6_3B78;
const CHECKSUM_BYTES: usize = 4;

/// The stretches of `bytes` that start before `starts`, are at most `longest` bytes long, and end with the checksum of
/// what stands before it; by start, then by end.
pub(crate) fn checksummed_stretches(bytes: &[u8], starts: usize, longest: usize) -> Vec<Range<usize>> {
    let marks = marks(bytes);
    let mut known: Vec<(u32, u32)> =
        marks.iter().map(|mark| mark.ones ^ mark.zeros).take(starts).zip(0..).collect();
    known.sort_unstable();
    let mut found = Vec::new();
    for (at, (mark, end)) in marks.iter().zip(marks.iter().skip(CHECKSUM_BYTES)).enumerate() {
        let wanted = mark.ones ^ end.zeros;
        let first = known.partition_point(|(key, _)| *key < wanted);
        let same = known.iter().skip(first).take_while(|(key, _)| *key == wanted);
        let end = at.saturating_add(CHECKSUM_BYTES);
        found.extend(
            same.map(|&(_, start)| start as usize..end)
                .filter(|stretch| stretch.start < at && stretch.len() <= longest),
        );
    }
    found.sort_unstable_by_key(|stretch| (stretch.start, stretch.end));
    found
}

/// What is known at a position; see the module.
struct Mark {
    /// `z(i)`
    zeros: u32,
    /// `f(i)`
    ones: u32,
}

/// One mark for each position, that of the end included.
fn marks(bytes: &[u8]) -> Vec<Mark> {
    let (mut zeros, mut ones) = (0u32, u32::MAX);
    // x to the power of 24 minus eight times the position: what the highest bit of a byte stands for.
    let mut unit = 1u32 << 7;
    let mut marks = Vec::with_capacity(bytes.len().saturating_add(1));
    marks.push(Mark { zeros, ones });
    for &byte in bytes {
        let mut power = unit;
        for bit in (0..8).rev() {
            zeros ^= power & 0u32.wrapping_sub(u32::from(byte >> bit & 1));
            power = times_x(power);
        }
        for _ in 0..8 {
            (unit, ones) = (divided_by_x(unit), divided_by_x(ones));
        }
        marks.push(Mark { zeros, ones });
    }
    marks
}

fn times_x(value: u32) -> u32 {
    value >> 1 ^ POLYNOMIAL & 0u32.wrapping_sub(value & 1)
}

fn divided_by_x(value: u32) -> u32 {
    let is_odd = value >> 31;
    (value ^ POLYNOMIAL & 0u32.wrapping_sub(is_odd)) << 1 | is_odd
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilaster_encoding::checksum::crc32c;
    use proptest::prelude::*;

    fn tried(bytes: &[u8], starts: usize, longest: usize) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for start in 0..starts.min(bytes.len()) {
            for end in start + 5..=bytes.len().min(start + longest) {
                if crc32c(&bytes[start..end - 4]).to_le_bytes() == bytes[end - 4..end] {
                    found.push(start..end);
                }
            }
        }
        found
    }

    proptest! {
        #[test]
        fn finds_what_trying_everything_finds(
            parts in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..40), any::<bool>()), 0..8),
            starts in 0usize..300,
            longest in 0usize..60,
        ) {
            let mut bytes = Vec::new();
            for (part, is_block) in parts {
                bytes.extend_from_slice(&part);
                if is_block {
                    bytes.extend(crc32c(&part).to_le_bytes());
                }
            }
            prop_assert_eq!(checksummed_stretches(&bytes, starts, longest), tried(&bytes, starts, longest));
        }
    }

    #[test]
    fn multiplying_and_dividing_are_opposites() {
        for value in [1, 2, 0x8000_0000, 0xdead_beef, u32::MAX] {
            assert_eq!(divided_by_x(times_x(value)), value);
            assert_eq!(times_x(divided_by_x(value)), value);
        }
    }
}
