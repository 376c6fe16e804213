//! The portable kernel: eight elements at a time through a transpose of 8 by 8 bits in a `u64`.
//!
//! The vector kernels hand it the groups they leave over, so it can start at any group.

/// Transposes the 8 by 8 bit matrix whose row `r` is byte `r` and whose column `c` is bit `c`.
#[inline]
pub(super) const fn transpose8(mut x: u64) -> u64 {
    // Swap the off-diagonal quarters of ever larger squares: 2 by 2, 4 by 4, 8 by 8.
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Elements to bit rows, for the groups of eight elements from `first_group` on.
///
/// The lengths are equal and a multiple of eight elements.
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8], first_group: usize) {
    let row_len = src.len() / 8 / element_size.max(1);
    let group_len = element_size.wrapping_mul(8);
    let groups = src.chunks_exact(group_len.max(1)).enumerate().skip(first_group);
    for (group, elements) in groups {
        for byte in 0..element_size {
            let column = elements.iter().skip(byte).step_by(element_size);
            let word = column.rev().fold(0, |word, &byte| (word << 8) | u64::from(byte));
            let first_row = byte.wrapping_mul(8).wrapping_mul(row_len);
            let rows = dst.iter_mut().skip(first_row.wrapping_add(group)).step_by(row_len.max(1));
            for (slot, bits) in rows.zip(transpose8(word).to_le_bytes()) {
                *slot = bits;
            }
        }
    }
}

/// Bit rows to elements, for the groups of eight elements from `first_group` on.
///
/// The lengths are equal and a multiple of eight elements.
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8], first_group: usize) {
    let row_len = src.len() / 8 / element_size.max(1);
    let group_len = element_size.wrapping_mul(8);
    let groups = dst.chunks_exact_mut(group_len.max(1)).enumerate().skip(first_group);
    for (group, elements) in groups {
        for byte in 0..element_size {
            let first_row = byte.wrapping_mul(8).wrapping_mul(row_len);
            let rows = src.iter().skip(first_row.wrapping_add(group)).step_by(row_len.max(1)).take(8);
            let word = rows
                .zip([0, 8, 16, 24, 32, 40, 48, 56])
                .fold(0, |word, (&bits, shift)| word | (u64::from(bits) << shift));
            let column = elements.iter_mut().skip(byte).step_by(element_size);
            for (slot, value) in column.zip(transpose8(word).to_le_bytes()) {
                *slot = value;
            }
        }
    }
}
