//! 256-bit vectors: two lanes.

use super::lanes::{Vector, with_element_size};
use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_castsi128_si256, _mm256_inserti128_si256,
    _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_set1_epi8, _mm256_slli_epi64, _mm256_srli_epi64,
    _mm256_storeu_si256, _mm256_unpackhi_epi8, _mm256_unpacklo_epi8, _mm256_xor_si256,
};

// SAFETY: each method is one or two AVX2 instructions on the bytes its contract names.
unsafe impl Vector for __m256i {
    const BYTES: usize = 32;

    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller gives 32 readable bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_lanes(from: *const u8, stride: usize) -> Self {
        // SAFETY: the caller gives two times 16 readable bytes.
        unsafe {
            let low = _mm_loadu_si128(from.cast::<__m128i>());
            let high = _mm_loadu_si128(from.add(stride).cast::<__m128i>());
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
        }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller gives 32 writable bytes.
        unsafe { _mm256_storeu_si256(to.cast(), self) }
    }

    #[inline(always)]
    unsafe fn store_lane_pairs(self, next: Self, to: *mut u8, stride: usize) {
        // SAFETY: the caller gives two times 32 writable bytes.
        unsafe {
            _mm256_permute2x128_si256::<0x20>(self, next).store(to);
            _mm256_permute2x128_si256::<0x31>(self, next).store(to.add(stride));
        }
    }

    #[inline(always)]
    unsafe fn zip_low(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_unpacklo_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn zip_high(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_unpackhi_epi8(self, other) }
    }

    #[inline(always)]
    unsafe fn difference<const S: i32>(self, other: Self, mask: u8) -> Self {
        // SAFETY: the caller has AVX2. The mask drops the bits that come from the next byte.
        unsafe {
            let moved = _mm256_srli_epi64::<S>(self);
            _mm256_and_si256(_mm256_xor_si256(moved, other), _mm256_set1_epi8(mask.cast_signed()))
        }
    }

    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_xor_si256(self, other) }
    }

    #[inline(always)]
    unsafe fn xor_shifted<const S: i32>(self, other: Self) -> Self {
        // SAFETY: the caller has AVX2.
        unsafe { _mm256_xor_si256(self, _mm256_slli_epi64::<S>(other)) }
    }
}

/// Whether this machine can run the kernel.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
}

/// Elements to bit rows.
#[target_feature(enable = "avx2")]
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    // SAFETY: this function is compiled for AVX2, so its caller made sure of it.
    unsafe { with_element_size!(element_size, shuffle::<__m256i>, src, dst) }
}

/// Bit rows to elements.
#[target_feature(enable = "avx2")]
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    // SAFETY: this function is compiled for AVX2, so its caller made sure of it.
    unsafe { with_element_size!(element_size, unshuffle::<__m256i>, src, dst) }
}
