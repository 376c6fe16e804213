//! Bloom filters: one for each data page, asked whether the page may hold a value.
//!
//! ```text
//! filter = blocks of 32 bytes, a power of two of them | u8 1 if the page has nulls
//!
//! block = high half of the hash, modulo the number of blocks
//! in each of its eight u32 words one bit: (low half of the hash · SALT[word], 32 bits) >> 27
//! ```

pub(crate) const BLOCK_BYTES: usize = 32;
const SALT: [u32; 8] =
    [0x47b6_137b, 0x4497_4d91, 0x8824_ad5b, 0xa2b7_289d, 0x7054_95c7, 0x2df1_424b, 0x9efc_4947, 0x5c6b_fb31];
/// The seed of the hash of cells.
const SEED: u64 = 1_575_457_558;

/// Whether a filter may hold a cell; what is no filter may hold anything.
pub(crate) fn may_hold(filter: &[u8], cell: &[u8]) -> bool {
    let Some((_, blocks)) = filter.split_last() else { return true };
    let (blocks, rest) = blocks.as_chunks::<BLOCK_BYTES>();
    if !rest.is_empty() || !blocks.len().is_power_of_two() {
        return true;
    }
    let hash = hash64(cell);
    let number = usize::try_from(hash >> 32).unwrap_or_default() & blocks.len().wrapping_sub(1);
    let Some(block) = blocks.get(number) else { return true };
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    block.as_chunks::<4>().0.iter().zip(SALT).all(|(word, salt)| {
        let bit = low.wrapping_mul(salt) >> 27;
        u32::from_le_bytes(*word) & 1u32.wrapping_shl(bit) != 0
    })
}

/// Adds a cell by its hash to the blocks of a filter, a power of two of them.
pub(crate) fn add(blocks: &mut [[u8; BLOCK_BYTES]], hash: u64) {
    let number = usize::try_from(hash >> 32).unwrap_or_default() & blocks.len().wrapping_sub(1);
    let Some(block) = blocks.get_mut(number) else { return };
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    for (word, salt) in block.as_chunks_mut::<4>().0.iter_mut().zip(SALT) {
        let bit = low.wrapping_mul(salt) >> 27;
        *word = (u32::from_le_bytes(*word) | 1u32.wrapping_shl(bit)).to_le_bytes();
    }
}

/// A 64-bit Murmur3 with one lane, as Doris hashes cells.
pub(crate) fn hash64(bytes: &[u8]) -> u64 {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix = |word: u64| word.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let (words, tail) = bytes.as_chunks::<8>();
    let mut hash = SEED;
    for word in words {
        hash =
            (hash ^ mix(u64::from_le_bytes(*word))).rotate_left(27).wrapping_mul(5).wrapping_add(0x52dc_e729);
    }
    if !tail.is_empty() {
        hash ^= mix(tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    hash ^= bytes.len() as u64;
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A filter that holds these cells.
    fn filter(blocks: usize, cells: &[Vec<u8>]) -> Vec<u8> {
        let mut filled = vec![[0; BLOCK_BYTES]; blocks];
        cells.iter().for_each(|cell| add(&mut filled, hash64(cell)));
        [filled.concat(), vec![0]].concat()
    }

    proptest! {
        #[test]
        fn what_was_added_is_held(cells in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..50)) {
            let filter = filter(4, &cells);
            prop_assert!(cells.iter().all(|cell| may_hold(&filter, cell)));
        }

        #[test]
        fn any_bytes_answer(bytes in prop::collection::vec(any::<u8>(), 0..200), cell in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = may_hold(&bytes, &cell);
        }
    }

    #[test]
    fn an_empty_filter_holds_nothing() {
        assert!(!may_hold(&filter(1, &[]), b"x"));
    }
}
