//! 128-bit vectors of 64-bit Arm: one lane.

use super::lanes::{Vector, with_element_size};
use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vdupq_n_u8, veorq_u8, vld1q_u8, vshlq_n_u8, vshrq_n_u8, vst1q_u8, vzip1q_u8,
    vzip2q_u8,
};

// SAFETY: each method is one or two NEON instructions on the bytes its contract names.
unsafe impl Vector for uint8x16_t {
    const BYTES: usize = 16;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller gives 16 readable bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn load_lanes(from: *const u8, _: usize) -> Self {
        // SAFETY: the caller gives 16 readable bytes.
        unsafe { vld1q_u8(from) }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller gives 16 writable bytes.
        unsafe { vst1q_u8(to, self) }
    }

    #[inline(always)]
    unsafe fn store_lane_pairs(self, next: Self, to: *mut u8, _: usize) {
        // SAFETY: the caller gives 32 writable bytes.
        unsafe {
            vst1q_u8(to, self);
            vst1q_u8(to.add(16), next);
        }
    }

    #[inline(always)]
    unsafe fn zip_low(self, other: Self) -> Self {
        // SAFETY: the caller has NEON.
        unsafe { vzip1q_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn zip_high(self, other: Self) -> Self {
        // SAFETY: the caller has NEON.
        unsafe { vzip2q_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn difference<const S: i32>(self, other: Self, mask: u8) -> Self {
        // SAFETY: the caller has NEON.
        unsafe { vandq_u8(veorq_u8(vshrq_n_u8::<S>(self), other), vdupq_n_u8(mask)) }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has NEON.
        unsafe { veorq_u8(self, other) }
    }

    #[inline(always)]
    unsafe fn xor_shifted<const S: i32>(self, other: Self) -> Self {
        // SAFETY: the caller has NEON.
        unsafe { veorq_u8(self, vshlq_n_u8::<S>(other)) }
    }
}

/// Whether this machine can run the kernel.
pub(super) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

/// Elements to bit rows.
#[target_feature(enable = "neon")]
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    // SAFETY: this function is compiled for NEON, so its caller made sure of it.
    unsafe { with_element_size!(element_size, shuffle::<uint8x16_t>, src, dst) }
}

/// Bit rows to elements.
#[target_feature(enable = "neon")]
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    // SAFETY: this function is compiled for NEON, so its caller made sure of it.
    unsafe { with_element_size!(element_size, unshuffle::<uint8x16_t>, src, dst) }
}
