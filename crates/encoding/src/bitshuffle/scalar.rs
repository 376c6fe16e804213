//! The portable kernel: eight elements at a time through a transpose of 8 by 8 bits in a `u64`.

/// Transposes the 8 by 8 bit matrix whose row `r` is byte `r` and whose column `c` is bit `c`.
#[inline]
const fn transpose8(mut x: u64) -> u64 {
    // Swap the off-diagonal quarters of ever larger squares: 2 by 2, 4 by 4, 8 by 8.
    let t = (x ^ (x >> 7)) & 0x00aa_00aa_00aa_00aa;
    x ^= t ^ (t << 7);
    let t = (x ^ (x >> 14)) & 0x0000_cccc_0000_cccc;
    x ^= t ^ (t << 14);
    let t = (x ^ (x >> 28)) & 0x0000_0000_f0f0_f0f0;
    x ^ t ^ (t << 28)
}

/// Elements to bit rows. The lengths are equal and a multiple of eight elements.
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    match element_size {
        1 => shuffle_sized::<1>(src, dst),
        2 => shuffle_sized::<2>(src, dst),
        3 => shuffle_sized::<3>(src, dst),
        4 => shuffle_sized::<4>(src, dst),
        8 => shuffle_sized::<8>(src, dst),
        12 => shuffle_sized::<12>(src, dst),
        16 => shuffle_sized::<16>(src, dst),
        _ => shuffle_sized::<32>(src, dst),
    }
}

/// Bit rows to elements. The lengths are equal and a multiple of eight elements.
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    match element_size {
        1 => unshuffle_sized::<1>(src, dst),
        2 => unshuffle_sized::<2>(src, dst),
        3 => unshuffle_sized::<3>(src, dst),
        4 => unshuffle_sized::<4>(src, dst),
        8 => unshuffle_sized::<8>(src, dst),
        12 => unshuffle_sized::<12>(src, dst),
        16 => unshuffle_sized::<16>(src, dst),
        _ => unshuffle_sized::<32>(src, dst),
    }
}

fn row_len<const E: usize>(bytes: usize) -> usize {
    (bytes / 8).checked_div(E).unwrap_or(0).max(1)
}

fn shuffle_sized<const E: usize>(src: &[u8], dst: &mut [u8]) {
    let groups = src.as_chunks::<E>().0.as_chunks::<8>().0;
    let row_len = row_len::<E>(src.len());
    for (byte, rows) in dst.chunks_exact_mut(row_len.saturating_mul(8)).enumerate() {
        for (group, elements) in groups.iter().enumerate() {
            let column = elements.each_ref().map(|element| element.get(byte).copied().unwrap_or(0));
            let bits = transpose8(u64::from_le_bytes(column)).to_le_bytes();
            for (row, bits) in rows.chunks_exact_mut(row_len).zip(bits) {
                if let Some(slot) = row.get_mut(group) {
                    *slot = bits;
                }
            }
        }
    }
}

fn unshuffle_sized<const E: usize>(src: &[u8], dst: &mut [u8]) {
    let row_len = row_len::<E>(src.len());
    let groups = dst.as_chunks_mut::<E>().0.as_chunks_mut::<8>().0;
    for (byte, rows) in src.chunks_exact(row_len.saturating_mul(8)).enumerate() {
        let mut rows = rows.chunks_exact(row_len);
        let rows: [&[u8]; 8] = std::array::from_fn(|_| rows.next().unwrap_or_default());
        for (group, elements) in groups.iter_mut().enumerate() {
            let bits = rows.map(|row| row.get(group).copied().unwrap_or(0));
            let column = transpose8(u64::from_le_bytes(bits)).to_le_bytes();
            for (element, value) in elements.iter_mut().zip(column) {
                if let Some(slot) = element.get_mut(byte) {
                    *slot = value;
                }
            }
        }
    }
}
