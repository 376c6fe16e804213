//! Decoders by byte shuffles, with a table from lengths to the shuffle.

pub(super) mod narrow;
pub(super) mod wide;

/// Whether this machine can run them.
#[inline]
fn is_available() -> bool {
    is_x86_feature_detected!("ssse3")
}

/// For each of `N` selectors of `values` lengths, where each byte of the sixteen of the result comes from; 0x80 gives zero.
#[expect(
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "evaluated at compile time, where a wrong index fails the build"
)]
const fn shuffles<const N: usize>(values: usize) -> [[u8; 16]; N] {
    let mut table = [[0x80; 16]; N];
    let length_bits = N.ilog2() as usize / values;
    let mut selector = 0;
    while selector < N {
        let (mut value, mut from) = (0, 0u8);
        while value < values {
            let shift = length_bits * (values - 1 - value);
            let len = ((selector >> shift) & ((1 << length_bits) - 1)) + 1;
            let mut byte = 0;
            while byte < len {
                table[selector][value * (16 / values) + byte] = from;
                from += 1;
                byte += 1;
            }
            value += 1;
        }
        selector += 1;
    }
    table
}
