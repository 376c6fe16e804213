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
pub(crate) fn checksummed_stretches(bytes: &[u8], starts: usize, longest: usize) -> Stretches {
    let mut ends = Vec::with_capacity(bytes.len());
    let mut keys = Vec::with_capacity(starts.min(bytes.len()));
    let mut ones_before = [0; CHECKSUM_BYTES];
    for (at, mark) in (0u32..).zip(marks(bytes)) {
        let [ones, b, c, d] = ones_before;
        ones_before = [b, c, d, mark.ones];
        if let Some(end) = at.checked_sub(u32::BITS / 8) {
            ends.push((ones ^ mark.zeros, end));
        }
        if keys.len() < starts {
            keys.push(mark.ones ^ mark.zeros);
        }
    }
    ends.sort_unstable();
    Stretches { keys, ends, longest, start: None, next: 0 }
}

/// Stretches with a right checksum, found when they are asked for: hostile bytes have nearly as many as there are pairs of bytes.
#[derive(Debug)]
pub(crate) struct Stretches {
    /// `f(s) + z(s)` by start.
    keys: Vec<u32>,
    /// `f(e) + z(e + 4)` and the end, in order.
    ends: Vec<(u32, u32)>,
    longest: usize,
    /// The start whose ends are being given, and its key.
    start: Option<(u32, u32)>,
    /// Where in `ends` the next of them may be.
    next: usize,
}

impl Iterator for Stretches {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((start, key)) = self.start
                && let Some(&(found, end)) = self.ends.get(self.next)
                && found == key
            {
                let stretch = start as usize..(end as usize).saturating_add(CHECKSUM_BYTES);
                if stretch.len() <= self.longest {
                    self.next = self.next.saturating_add(1);
                    return Some(stretch);
                }
            }
            let start = self.start.map_or(0, |(start, _)| start.saturating_add(1));
            let key = *self.keys.get(start as usize)?;
            self.start = Some((start, key));
            // There is at least one byte before a checksum.
            self.next = self.ends.partition_point(|end| *end <= (key, start));
        }
    }
}

/// What is known at a position; see the module.
struct Mark {
    /// `z(i)`
    zeros: u32,
    /// `f(i)`
    ones: u32,
}

/// One mark for each position, that of the end included.
fn marks(bytes: &[u8]) -> impl Iterator<Item = Mark> {
    let (mut zeros, mut ones) = (0u32, u32::MAX);
    // x to the power of 24 minus eight times the position: what the highest bit of a byte stands for.
    let mut unit = 1u32 << 7;
    let others = bytes.iter().map(move |byte| {
        let mut power = unit;
        for bit in (0..8).rev() {
            zeros ^= power & 0u32.wrapping_sub(u32::from(byte >> bit & 1));
            power = times_x(power);
        }
        for _ in 0..8 {
            (unit, ones) = (divided_by_x(unit), divided_by_x(ones));
        }
        Mark { zeros, ones }
    });
    std::iter::once(Mark { zeros: 0, ones: u32::MAX }).chain(others)
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
            let found: Vec<_> = checksummed_stretches(&bytes, starts, longest).collect();
            prop_assert_eq!(found, tried(&bytes, starts, longest));
        }
    }

    /// Words that leave the checksum's register as it was make every start alike, and one that is its own checksum every end right.
    #[test]
    fn hostile_bytes_have_as_many_stretches_as_pairs() {
        const WORDS: usize = 100_000;
        let unchanged = !(0..32).fold(u32::MAX, |register, _| divided_by_x(register));
        assert_eq!(crc32c(&unchanged.to_le_bytes()), 0);
        let own_checksum = crc32c(&[0; 4]);
        let mut words = vec![unchanged; WORDS];
        words.push(0);
        words.resize(2 * WORDS, own_checksum);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // All of them would be 10^10.
        let some: Vec<_> = checksummed_stretches(&bytes, bytes.len(), usize::MAX).take(150_000).collect();
        assert_eq!(some.len(), 150_000);
        for stretch in some.iter().step_by(10_000) {
            let (body, checksum) = bytes[stretch.clone()].split_last_chunk::<4>().unwrap();
            assert_eq!(crc32c(body).to_le_bytes(), *checksum);
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
