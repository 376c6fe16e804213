//! 512-bit vectors, with a bit transpose in one instruction (GFNI) and free byte permutes (VBMI).
//!
//! Sixteen groups of eight elements are done at a time. A register holds sixteen bytes of four rows that belong to four
//! different bytes of the elements, one per lane, so that after the transposes a lane is a byte of the element and
//! one permute puts whole elements together:
//!
//! ```text
//! X[b], b = 0..8      lane: byte j of the element, place: group                 8 loads of 4 × 16 bytes
//!   zip × 3           register m, lane j, two quadwords: groups 2m, 2m + 1, each the eight rows of one group
//!   gf2p8affineqb     the same, each quadword the bytes j of the eight elements of one group
//!   vpermb            register m: the elements of groups 2m and 2m + 1
//! ```
//!
//! This is the picture for elements of 4 bytes. For 8 bytes two such registers (even and odd bytes) are merged by a permute
//! of two sources, for 16 bytes four; for 2 bytes and 1 byte the lanes are filled with more groups. Shuffling is the
//! same backwards. A rest smaller than a column is done by a last column that overlaps the one before; blocks of less
//! than one column are left to AVX2.

use super::avx2;
use std::arch::x86_64::{
    __m512i, _mm_loadu_si128, _mm_storeu_si128, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_castsi128_si512, _mm512_castsi256_si512, _mm512_castsi512_si128, _mm512_castsi512_si256,
    _mm512_extracti32x4_epi32, _mm512_extracti64x4_epi64, _mm512_gf2p8affine_epi64_epi8, _mm512_inserti32x4,
    _mm512_inserti64x4, _mm512_loadu_si512, _mm512_permutex2var_epi8, _mm512_permutexvar_epi8,
    _mm512_set1_epi64, _mm512_storeu_si512, _mm512_unpackhi_epi8, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi8, _mm512_unpacklo_epi64,
};

/// Whether this machine can run the kernel.
pub(super) fn is_available() -> bool {
    avx2::is_available()
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi")
        && is_x86_feature_detected!("gfni")
}

/// Elements to bit rows.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    let Some((groups, columns)) = columns(element_size, src.len().min(dst.len())) else {
        return avx2::shuffle(element_size, src, dst);
    };
    for group in columns {
        // SAFETY: `dst` holds 8·e rows of `groups` bytes and `src` `groups` groups of 8·e bytes; a column is the groups
        // from `group` on as far as `columns` was told, and ends inside.
        unsafe {
            let from = src.as_ptr().add(group.wrapping_mul(8).wrapping_mul(element_size));
            let rows = dst.as_mut_ptr().add(group);
            match element_size {
                1 => shuffle1(from, rows, groups),
                2 => shuffle2(from, rows, groups),
                4 => shuffle4(from, rows, groups),
                8 => shuffle8(from, rows, groups),
                _ => shuffle16(from, rows, groups),
            }
        }
    }
}

/// Bit rows to elements.
#[target_feature(enable = "avx2,avx512f,avx512bw,avx512vbmi,gfni")]
pub(super) fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) {
    let Some((groups, columns)) = columns(element_size, src.len().min(dst.len())) else {
        return avx2::unshuffle(element_size, src, dst);
    };
    for group in columns {
        // SAFETY: as in `shuffle`, with the two sides exchanged.
        unsafe {
            let rows = src.as_ptr().add(group);
            let to = dst.as_mut_ptr().add(group.wrapping_mul(8).wrapping_mul(element_size));
            match element_size {
                1 => unshuffle1(rows, groups, to),
                2 => unshuffle2(rows, groups, to),
                4 => unshuffle4(rows, groups, to),
                8 => unshuffle8(rows, groups, to),
                _ => unshuffle16(rows, groups, to),
            }
        }
    }
}

/// The number of groups, and where each column starts; the last one overlaps if it must. `None` if there is not even one.
fn columns(element_size: usize, bytes: usize) -> Option<(usize, impl Iterator<Item = usize>)> {
    let groups = (bytes / 8).checked_div(element_size)?;
    let width = match element_size {
        1 => 64,
        2 => 32,
        _ => 16,
    };
    let last = groups.checked_sub(width)?;
    Some((groups, (0..last).step_by(width).chain([last])))
}

type Regs = [__m512i; 8];
const EIGHT: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// A byte permutation, from a formula that says for each place of the result where its byte comes from.
macro_rules! permutation {
    (|$n:ident| $from:expr) => {{
        #[expect(
            clippy::indexing_slicing,
            clippy::arithmetic_side_effects,
            clippy::cast_possible_truncation,
            reason = "evaluated at compile time, where a wrong index fails the build"
        )]
        static TABLE: [u8; 64] = {
            let mut table = [0; 64];
            let mut $n = 0;
            while $n < 64 {
                let from: usize = $from;
                assert!(from < 128);
                table[$n] = from as u8;
                $n += 1;
            }
            table
        };
        // SAFETY: the table has 64 bytes.
        unsafe { _mm512_loadu_si512(TABLE.as_ptr().cast()) }
    }};
}

/// Three zips: from eight registers of rows to eight whose quadwords are the eight rows of one group. See `lanes::rotate`.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn zip3(x: Regs) -> Regs {
    zip(zip(zip(x)))
}

/// Four zips: the inverse of [`zip3`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn zip4(x: Regs) -> Regs {
    zip(zip3(x))
}

#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn zip([a, b, c, d, e, f, g, h]: Regs) -> Regs {
    [
        _mm512_unpacklo_epi8(a, e),
        _mm512_unpackhi_epi8(a, e),
        _mm512_unpacklo_epi8(b, f),
        _mm512_unpackhi_epi8(b, f),
        _mm512_unpacklo_epi8(c, g),
        _mm512_unpackhi_epi8(c, g),
        _mm512_unpacklo_epi8(d, h),
        _mm512_unpackhi_epi8(d, h),
    ]
}

/// Transposes each quadword as 8 by 8 bits, its bytes in reverse order.
#[inline]
#[target_feature(enable = "avx512f,gfni")]
fn transpose_reversed(x: __m512i) -> __m512i {
    // The product of the matrix with the vectors 1, 2, 4, … 128 gives its columns; the instruction counts the rows of the
    // matrix from the last byte.
    const COLUMNS: i64 = i64::from_le_bytes([1, 2, 4, 8, 16, 32, 64, 128]);
    _mm512_gf2p8affine_epi64_epi8::<0>(_mm512_set1_epi64(COLUMNS), x)
}

/// Four times 16 bytes, `stride` bytes apart.
///
/// # Safety
/// They are readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_lanes(from: *const u8, stride: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let lane = |n: usize| _mm_loadu_si128(from.add(stride.wrapping_mul(n)).cast());
        let x = _mm512_castsi128_si512(lane(0));
        let x = _mm512_inserti32x4::<1>(x, lane(1));
        let x = _mm512_inserti32x4::<2>(x, lane(2));
        _mm512_inserti32x4::<3>(x, lane(3))
    }
}

/// The inverse of [`load_lanes`].
///
/// # Safety
/// The bytes are writable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_lanes(x: __m512i, to: *mut u8, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(x));
        _mm_storeu_si128(to.add(stride).cast(), _mm512_extracti32x4_epi32::<1>(x));
        _mm_storeu_si128(to.add(stride.wrapping_mul(2)).cast(), _mm512_extracti32x4_epi32::<2>(x));
        _mm_storeu_si128(to.add(stride.wrapping_mul(3)).cast(), _mm512_extracti32x4_epi32::<3>(x));
    }
}

/// Two times 32 bytes, `stride` bytes apart.
///
/// # Safety
/// They are readable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load_halves(from: *const u8, stride: usize) -> __m512i {
    // SAFETY: the caller's promise.
    unsafe {
        let low = _mm512_castsi256_si512(_mm256_loadu_si256(from.cast()));
        _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(from.add(stride).cast()))
    }
}

/// The inverse of [`load_halves`].
///
/// # Safety
/// The bytes are writable.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store_halves(x: __m512i, to: *mut u8, stride: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(x));
        _mm256_storeu_si256(to.add(stride).cast(), _mm512_extracti64x4_epi64::<1>(x));
    }
}

/// Bytes `j`, `j + step`, `j + 2·step`, `j + 3·step` of the elements of sixteen groups: a byte per lane, register m with
/// groups 2m and 2m + 1, element by element.
///
/// # Safety
/// `rows` points to the first of the rows, `groups` bytes apart, of a column of sixteen groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn bytes_from_rows(rows: *const u8, groups: usize, j: usize, step: usize) -> Regs {
    let row = |n: usize| groups.wrapping_mul(n);
    // SAFETY: the rows 8·j + b exist for every byte j of the element.
    let x = EIGHT.map(|b| unsafe {
        load_lanes(
            rows.add(row(j.wrapping_mul(8).wrapping_add(7).wrapping_sub(b))),
            row(step.wrapping_mul(8)),
        )
    });
    zip3(x).map(|x| transpose_reversed(x))
}

/// The inverse of [`bytes_from_rows`]; in `x` the elements of each group are in reverse order.
///
/// # Safety
/// `rows` points to the first of the rows, `groups` bytes apart, of a column of sixteen groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,gfni")]
unsafe fn rows_from_bytes(x: Regs, rows: *mut u8, groups: usize, j: usize, step: usize) {
    let row = |n: usize| groups.wrapping_mul(n);
    let x = zip4(x.map(|x| transpose_reversed(x)));
    for (b, x) in x.into_iter().enumerate() {
        // SAFETY: the rows 8·j + b exist for every byte j of the element.
        unsafe {
            store_lanes(x, rows.add(row(j.wrapping_mul(8).wrapping_add(b))), row(step.wrapping_mul(8)));
        }
    }
}

/// # Safety
/// `rows` and `to` point to a column of 64 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn unshuffle1(rows: *const u8, groups: usize, to: *mut u8) {
    // Spread the groups over the lanes so that the zips bring eight neighbours together.
    let spread = permutation!(|n| 2 * (4 * (n / 2 % 8) + n / 16) + n % 2);
    // SAFETY: eight rows of 64 bytes, eight times 64 bytes of elements.
    unsafe {
        let x = EIGHT.map(|b| {
            let row = _mm512_loadu_si512(rows.add(groups.wrapping_mul(7usize.wrapping_sub(b))).cast());
            _mm512_permutexvar_epi8(spread, row)
        });
        for (m, x) in zip3(x).into_iter().enumerate() {
            _mm512_storeu_si512(to.add(m.wrapping_mul(64)).cast(), transpose_reversed(x));
        }
    }
}

/// # Safety
/// `from` and `rows` point to a column of 64 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn shuffle1(from: *const u8, rows: *mut u8, groups: usize) {
    let reverse = permutation!(|n| n / 8 * 8 + 7 - n % 8);
    let gather = permutation!(|n| 2 * (8 * (n / 2 % 4) + n / 8) + n % 2);
    // SAFETY: eight times 64 bytes of elements, eight rows of 64 bytes.
    unsafe {
        let x = EIGHT.map(|m| {
            let elements = _mm512_loadu_si512(from.add(m.wrapping_mul(64)).cast());
            transpose_reversed(_mm512_permutexvar_epi8(reverse, elements))
        });
        for (b, x) in zip4(x).into_iter().enumerate() {
            let row = _mm512_permutexvar_epi8(gather, x);
            _mm512_storeu_si512(rows.add(groups.wrapping_mul(b)).cast(), row);
        }
    }
}

/// # Safety
/// `rows` and `to` point to a column of 32 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn unshuffle2(rows: *const u8, groups: usize, to: *mut u8) {
    // Lanes: byte 0 of the first and of the second sixteen groups, then byte 1 of both.
    let join = permutation!(|n| 16 * (2 * (n % 2) + n / 32) + 8 * (n / 16 % 2) + n / 2 % 8);
    // SAFETY: sixteen rows of 32 bytes, 32 groups of 16 bytes.
    unsafe {
        let x = EIGHT.map(|b| {
            load_halves(rows.add(groups.wrapping_mul(7usize.wrapping_sub(b))), groups.wrapping_mul(8))
        });
        for (m, x) in zip3(x).into_iter().enumerate() {
            let elements = _mm512_permutexvar_epi8(join, transpose_reversed(x));
            store_halves(elements, to.add(m.wrapping_mul(32)), 16 * 16);
        }
    }
}

/// # Safety
/// `from` and `rows` point to a column of 32 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn shuffle2(from: *const u8, rows: *mut u8, groups: usize) {
    let split = permutation!(|n| 32 * (n / 16 % 2) + 16 * (n / 8 % 2) + 2 * (7 - n % 8) + n / 32);
    // SAFETY: 32 groups of 16 bytes, sixteen rows of 32 bytes.
    unsafe {
        let x = EIGHT.map(|m| {
            let elements = load_halves(from.add(m.wrapping_mul(32)), 16 * 16);
            transpose_reversed(_mm512_permutexvar_epi8(split, elements))
        });
        for (b, x) in zip4(x).into_iter().enumerate() {
            store_halves(x, rows.add(groups.wrapping_mul(b)), groups.wrapping_mul(8));
        }
    }
}

/// # Safety
/// `rows` and `to` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn unshuffle4(rows: *const u8, groups: usize, to: *mut u8) {
    let join = permutation!(|n| 16 * (n % 4) + 8 * (n / 32) + n / 4 % 8);
    // SAFETY: 32 rows of 16 bytes, 16 groups of 32 bytes.
    unsafe {
        for (m, x) in bytes_from_rows(rows, groups, 0, 1).into_iter().enumerate() {
            _mm512_storeu_si512(to.add(m.wrapping_mul(64)).cast(), _mm512_permutexvar_epi8(join, x));
        }
    }
}

/// # Safety
/// `from` and `rows` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn shuffle4(from: *const u8, rows: *mut u8, groups: usize) {
    let split = permutation!(|n| 32 * (n / 8 % 2) + 4 * (7 - n % 8) + n / 16);
    // SAFETY: 16 groups of 32 bytes, 32 rows of 16 bytes.
    unsafe {
        let x = EIGHT
            .map(|m| _mm512_permutexvar_epi8(split, _mm512_loadu_si512(from.add(m.wrapping_mul(64)).cast())));
        rows_from_bytes(x, rows, groups, 0, 1);
    }
}

/// # Safety
/// `rows` and `to` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn unshuffle8(rows: *const u8, groups: usize, to: *mut u8) {
    // The first source has the even bytes, the second the odd ones; each has two groups.
    let join_first = permutation!(|n| 64 * (n % 2) + 16 * (n % 8 / 2) + n / 8);
    let join_second = permutation!(|n| 64 * (n % 2) + 16 * (n % 8 / 2) + n / 8 + 8);
    // SAFETY: 64 rows of 16 bytes, 16 groups of 64 bytes.
    unsafe {
        let even = bytes_from_rows(rows, groups, 0, 2);
        let odd = bytes_from_rows(rows, groups, 1, 2);
        for (m, (even, odd)) in even.into_iter().zip(odd).enumerate() {
            let to = to.add(m.wrapping_mul(128));
            _mm512_storeu_si512(to.cast(), _mm512_permutex2var_epi8(even, join_first, odd));
            _mm512_storeu_si512(to.add(64).cast(), _mm512_permutex2var_epi8(even, join_second, odd));
        }
    }
}

/// # Safety
/// `from` and `rows` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn shuffle8(from: *const u8, rows: *mut u8, groups: usize) {
    let split_even = permutation!(|n| 64 * (n / 8 % 2) + 8 * (7 - n % 8) + 2 * (n / 16));
    let split_odd = permutation!(|n| 64 * (n / 8 % 2) + 8 * (7 - n % 8) + 2 * (n / 16) + 1);
    // SAFETY: 16 groups of 64 bytes, 64 rows of 16 bytes.
    unsafe {
        for (j, split) in [split_even, split_odd].into_iter().enumerate() {
            let x = EIGHT.map(|m| {
                let from = from.add(m.wrapping_mul(128));
                let (first, second) =
                    (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(64).cast()));
                _mm512_permutex2var_epi8(first, split, second)
            });
            rows_from_bytes(x, rows, groups, j, 2);
        }
    }
}

/// # Safety
/// `rows` and `to` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn unshuffle16(rows: *const u8, groups: usize, to: *mut u8) {
    // Half elements of one group as quadwords, in the order 0 4 1 5 2 6 3 7, which zipping two halves puts right.
    let join_first = permutation!(|n| 64 * (n % 8 / 4) + 16 * (n % 4) + 4 * (n / 8 % 2) + n / 16);
    let join_second = permutation!(|n| 64 * (n % 8 / 4) + 16 * (n % 4) + 4 * (n / 8 % 2) + n / 16 + 8);
    // SAFETY: 128 rows of 16 bytes, 16 groups of 128 bytes.
    unsafe {
        let mut halves = [[_mm512_set1_epi64(0); 16]; 2];
        for (j, half) in halves.iter_mut().enumerate() {
            let low = bytes_from_rows(rows, groups, j.wrapping_mul(8), 1);
            let high = bytes_from_rows(rows, groups, j.wrapping_mul(8).wrapping_add(4), 1);
            for ((pair, low), high) in half.as_chunks_mut::<2>().0.iter_mut().zip(low).zip(high) {
                *pair = [
                    _mm512_permutex2var_epi8(low, join_first, high),
                    _mm512_permutex2var_epi8(low, join_second, high),
                ];
            }
        }
        let [low, high] = halves;
        for (group, (low, high)) in low.into_iter().zip(high).enumerate() {
            let to = to.add(group.wrapping_mul(128));
            _mm512_storeu_si512(to.cast(), _mm512_unpacklo_epi64(low, high));
            _mm512_storeu_si512(to.add(64).cast(), _mm512_unpackhi_epi64(low, high));
        }
    }
}

/// # Safety
/// `from` and `rows` point to a column of 16 groups.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi,gfni")]
unsafe fn shuffle16(from: *const u8, rows: *mut u8, groups: usize) {
    let split_low =
        permutation!(|n| 64 * (n / 8 % 2) + 16 * ((7 - n % 8) % 4) + 8 * ((7 - n % 8) / 4) + n / 16);
    let split_high =
        permutation!(|n| 64 * (n / 8 % 2) + 16 * ((7 - n % 8) % 4) + 8 * ((7 - n % 8) / 4) + n / 16 + 4);
    // SAFETY: 16 groups of 128 bytes, 128 rows of 16 bytes.
    unsafe {
        let halves = |group: usize| {
            let from = from.add(group.wrapping_mul(128));
            let (first, second) = (_mm512_loadu_si512(from.cast()), _mm512_loadu_si512(from.add(64).cast()));
            [_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second)]
        };
        for (n, split) in [split_low, split_high].into_iter().enumerate() {
            let x = EIGHT.map(|m| {
                let ([a, c], [b, d]) = (halves(m.wrapping_mul(2)), halves(m.wrapping_mul(2).wrapping_add(1)));
                [_mm512_permutex2var_epi8(a, split, b), _mm512_permutex2var_epi8(c, split, d)]
            });
            rows_from_bytes(x.map(|[low, _]| low), rows, groups, n.wrapping_mul(4), 1);
            rows_from_bytes(x.map(|[_, high]| high), rows, groups, n.wrapping_mul(4).wrapping_add(8), 1);
        }
    }
}
