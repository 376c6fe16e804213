//! One bit deposit or extraction for each eight numbers.

use std::arch::x86_64::{_pdep_u64, _pext_u64};

use super::{lanes, pack_with, scalar, unpack_with};

/// Whether this machine has the instructions.
#[inline]
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("bmi2")
}

pub(super) fn unpack(bytes: &[u8], width: u32, groups: &mut [[u8; 8]]) {
    if is_available() {
        // SAFETY: the check above names the one feature the kernel is compiled for.
        unsafe { deposit(bytes, width, groups) }
    } else {
        scalar::unpack(bytes, width, groups);
    }
}

pub(super) fn pack(groups: &[[u8; 8]], width: u32, out: &mut [u8]) {
    if is_available() {
        // SAFETY: the check above names the one feature the kernel is compiled for.
        unsafe { extract(groups, width, out) }
    } else {
        scalar::pack(groups, width, out);
    }
}

#[target_feature(enable = "bmi2")]
fn deposit(bytes: &[u8], width: u32, groups: &mut [[u8; 8]]) {
    let mask = lanes(width);
    unpack_with(bytes, width, groups, |word| _pdep_u64(word, mask));
}

#[target_feature(enable = "bmi2")]
fn extract(groups: &[[u8; 8]], width: u32, out: &mut [u8]) {
    let mask = lanes(width);
    pack_with(groups, width, out, |word| _pext_u64(word, mask));
}
