//! The portable kernels.

use super::{lanes, pack_with, unpack_with};

pub(super) fn unpack(bytes: &[u8], width: u32, groups: &mut [[u8; 8]]) {
    let mask = lanes(width) & 0xff;
    unpack_with(bytes, width, groups, |word| {
        (0..8u32).fold(0, |spread, lane| {
            spread | ((word >> (lane.wrapping_mul(width) % 64)) & mask) << (lane.wrapping_mul(8) % 64)
        })
    });
}

pub(super) fn pack(groups: &[[u8; 8]], width: u32, out: &mut [u8]) {
    let mask = lanes(width) & 0xff;
    pack_with(groups, width, out, |word| {
        (0..8u32).fold(0, |packed, lane| {
            packed | ((word >> (lane.wrapping_mul(8) % 64)) & mask) << (lane.wrapping_mul(width) % 64)
        })
    });
}
