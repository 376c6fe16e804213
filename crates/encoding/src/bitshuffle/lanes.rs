//! The transpose over any vector with 128-bit lanes; AVX2 and NEON fill in the instructions.
//!
//! One step does all the moving of bytes: [`rotate`] zips the bytes of the first half of the registers with those of the
//! second half. Think of a byte's place as bits, register number first, place in the lane last: `[r2 r1 r0 | p3 p2 p1
//! p0]`. The step turns them by one, `[r1 r0 p3 | p2 p1 p0 r2]`. So with `n` register bits, `n` steps interleave
//! the registers byte by byte, and four steps undo that.
//!
//! Un-shuffling, for a column of as many groups of eight elements as a vector has bytes:
//!
//! ```text
//! rows 8·j + 0..8 of byte j     8 registers, place = group, bit = element of the group
//!   transpose_bits              8 registers = element of the group, place = group, bit = bit of the byte
//!   rotate × 3                  byte j of consecutive elements      -> scratch, one plane per byte
//! planes 0..e                   e registers, place = element
//!   rotate × log2(e)            whole elements                      -> destination
//! ```
//!
//! Shuffling goes the other way. A rest smaller than a column is done by a last column that overlaps the one before.

use super::scalar;

/// Registers of one plane: as many as a byte has bits.
const BITS: usize = 8;
/// Bytes of a lane.
const LANE: usize = 16;

/// A vector of one or two 128-bit lanes.
///
/// # Safety
/// Every method may only be called where the instructions it stands for exist, and with pointers to as many readable or
/// writable bytes as it says.
pub(super) unsafe trait Vector: Copy {
    /// Bytes of the vector.
    const BYTES: usize;

    /// Loads [`BYTES`](Vector::BYTES) bytes.
    unsafe fn load(from: *const u8) -> Self;
    /// Loads each lane from 16 bytes, `stride` bytes apart.
    unsafe fn load_lanes(from: *const u8, stride: usize) -> Self;
    /// Stores [`BYTES`](Vector::BYTES) bytes.
    unsafe fn store(self, to: *mut u8);
    /// Stores, for each lane, that of `self` and behind it that of `next`, 32 bytes together, `stride` bytes apart.
    unsafe fn store_lane_pairs(self, next: Self, to: *mut u8, stride: usize);
    /// In each lane, the first eight bytes of both, alternating.
    unsafe fn zip_low(self, other: Self) -> Self;
    /// In each lane, the last eight bytes of both, alternating.
    unsafe fn zip_high(self, other: Self) -> Self;
    /// The bits of `self` moved down by `S` and those of `other`: where they differ, at the bits of `mask` in each byte.
    unsafe fn difference<const S: i32>(self, other: Self, mask: u8) -> Self;
    /// Exclusive or.
    unsafe fn xor(self, other: Self) -> Self;
    /// Exclusive or with the bits of `other` moved up by `S`, none of which leave their byte.
    unsafe fn xor_shifted<const S: i32>(self, other: Self) -> Self;
}

/// One step of the rotation described above.
#[inline(always)]
unsafe fn rotate<V: Vector, const N: usize>(regs: &mut [V; N]) {
    let (first, second) = regs.split_at(N / 2);
    let mut turned = *regs;
    for ((pair, &a), &b) in turned.as_chunks_mut::<2>().0.iter_mut().zip(first).zip(second) {
        // SAFETY: the caller has the instructions of `V`.
        *pair = unsafe { [a.zip_low(b), a.zip_high(b)] };
    }
    *regs = turned;
}

/// [`rotate`] up to four times, written out so that the registers of every step are known to the compiler.
#[inline(always)]
unsafe fn rotate_times<V: Vector, const N: usize>(regs: &mut [V; N], times: u32) {
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        if times >= 1 {
            rotate(regs);
        }
        if times >= 2 {
            rotate(regs);
        }
        if times >= 3 {
            rotate(regs);
        }
        if times >= 4 {
            rotate(regs);
        }
    }
}

/// Swaps, for each place of a byte, register number and bit number.
#[inline(always)]
unsafe fn transpose_bits<V: Vector>(x: &mut [V; BITS]) {
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        for r in [0, 1, 2, 3] {
            swap::<V, 4>(x, r, 0x0f);
        }
        for r in [0, 1, 4, 5] {
            swap::<V, 2>(x, r, 0x33);
        }
        for r in [0, 2, 4, 6] {
            swap::<V, 1>(x, r, 0x55);
        }
    }
}

/// Exchanges the bits `S` above the mask in register `r` with the masked bits of register `r + S`.
#[inline(always)]
unsafe fn swap<V: Vector, const S: i32>(x: &mut [V; BITS], r: usize, mask: u8) {
    let Ok([a, b]) = x.get_disjoint_mut([r, r.wrapping_add(S.unsigned_abs() as usize)]) else { return };
    // SAFETY: the caller has the instructions of `V`.
    unsafe {
        let t = a.difference::<S>(*b, mask);
        *b = b.xor(t);
        *a = a.xor_shifted::<S>(t);
    }
}

/// Where each column of `width` groups starts; the last one overlaps if it must. `None` if there is not even one.
fn columns(groups: usize, width: usize) -> Option<impl Iterator<Item = usize>> {
    let last = groups.checked_sub(width)?;
    Some((0..last).step_by(width).chain([last]))
}

/// Bit rows to elements of `E` bytes.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn unshuffle<V: Vector, const E: usize>(src: &[u8], dst: &mut [u8]) {
    let groups = (src.len().min(dst.len()) / BITS).checked_div(E).unwrap_or(0);
    let Some(columns) = columns(groups, V::BYTES) else {
        return scalar::unshuffle(E, src, dst);
    };
    let mut planes = [[0u8; 32 * BITS]; E];
    for group in columns {
        // SAFETY: `src` holds 8·E rows of `groups` bytes and `dst` `groups` groups of 8·E bytes; a column reads the
        // BYTES bytes of each row from `group` on and writes as many groups, and `group + BYTES <= groups`.
        unsafe {
            let to = dst.as_mut_ptr().add(group.wrapping_mul(BITS).wrapping_mul(E));
            for (j, plane) in planes.iter_mut().enumerate() {
                let rows = src.as_ptr().add(j.wrapping_mul(BITS).wrapping_mul(groups).wrapping_add(group));
                let target = if E == 1 { to } else { plane.as_mut_ptr() };
                plane_from_rows::<V>(rows, groups, target);
            }
            if E > 1 {
                interleave::<V, E>(&planes, to);
            }
        }
    }
}

/// Elements of `E` bytes to bit rows.
///
/// # Safety
/// The machine has the instructions of `V`.
#[inline(always)]
pub(super) unsafe fn shuffle<V: Vector, const E: usize>(src: &[u8], dst: &mut [u8]) {
    let groups = (src.len().min(dst.len()) / BITS).checked_div(E).unwrap_or(0);
    let Some(columns) = columns(groups, V::BYTES) else {
        return scalar::shuffle(E, src, dst);
    };
    let mut planes = [[0u8; 32 * BITS]; E];
    for group in columns {
        // SAFETY: as in `unshuffle`, with the two sides exchanged.
        unsafe {
            let from = src.as_ptr().add(group.wrapping_mul(BITS).wrapping_mul(E));
            if E > 1 {
                deinterleave::<V, E>(from, &mut planes);
            }
            for (j, plane) in planes.iter().enumerate() {
                let rows =
                    dst.as_mut_ptr().add(j.wrapping_mul(BITS).wrapping_mul(groups).wrapping_add(group));
                let source = if E == 1 { from } else { plane.as_ptr() };
                rows_from_plane::<V>(source, rows, groups);
            }
        }
    }
}

/// Eight rows, `stride` bytes apart, to 8·BYTES bytes of consecutive elements.
#[inline(always)]
unsafe fn plane_from_rows<V: Vector>(rows: *const u8, stride: usize, to: *mut u8) {
    // SAFETY: the caller gives eight rows of BYTES bytes and room for 8·BYTES bytes. Register m holds groups 2m and
    // 2m + 1 of each lane's sixteen, so two neighbours are 32 bytes of the 128 that a lane fills.
    unsafe {
        let mut x = [0, 1, 2, 3, 4, 5, 6, 7].map(|b: usize| V::load(rows.add(b.wrapping_mul(stride))));
        transpose_bits(&mut x);
        rotate_times(&mut x, 3);
        for (m, [a, b]) in x.as_chunks::<2>().0.iter().enumerate() {
            a.store_lane_pairs(*b, to.add(m.wrapping_mul(2 * LANE)), LANE * BITS);
        }
    }
}

/// The inverse of [`plane_from_rows`].
#[inline(always)]
unsafe fn rows_from_plane<V: Vector>(from: *const u8, rows: *mut u8, stride: usize) {
    // SAFETY: as in `plane_from_rows`, with the two sides exchanged.
    unsafe {
        let mut x = [0, 1, 2, 3, 4, 5, 6, 7]
            .map(|m: usize| V::load_lanes(from.add(m.wrapping_mul(LANE)), LANE * BITS));
        rotate_times(&mut x, 4);
        transpose_bits(&mut x);
        for (b, reg) in x.iter().enumerate() {
            reg.store(rows.add(b.wrapping_mul(stride)));
        }
    }
}

/// `E` planes of 8·BYTES bytes to as many elements.
#[inline(always)]
unsafe fn interleave<V: Vector, const E: usize>(planes: &[[u8; 32 * BITS]; E], to: *mut u8) {
    for block in 0..BITS {
        // SAFETY: a plane holds at least eight blocks of BYTES bytes, and the caller gives room for the elements of all.
        unsafe {
            let at = block.wrapping_mul(V::BYTES);
            let mut x = planes.each_ref().map(|plane| V::load(plane.as_ptr().add(at)));
            rotate_times(&mut x, E.trailing_zeros());
            let to = to.add(at.wrapping_mul(E));
            for (h, [a, b]) in x.as_chunks::<2>().0.iter().enumerate() {
                a.store_lane_pairs(*b, to.add(h.wrapping_mul(2 * LANE)), LANE.wrapping_mul(E));
            }
        }
    }
}

/// The inverse of [`interleave`].
#[inline(always)]
unsafe fn deinterleave<V: Vector, const E: usize>(from: *const u8, planes: &mut [[u8; 32 * BITS]; E]) {
    for block in 0..BITS {
        // SAFETY: as in `interleave`, with the two sides exchanged.
        unsafe {
            let at = block.wrapping_mul(V::BYTES);
            let from = from.add(at.wrapping_mul(E));
            let mut h = 0usize;
            let mut x = [(); E].map(|()| {
                let lanes = V::load_lanes(from.add(h.wrapping_mul(LANE)), LANE.wrapping_mul(E));
                h = h.wrapping_add(1);
                lanes
            });
            rotate_times(&mut x, 4);
            for (plane, reg) in planes.iter_mut().zip(x) {
                reg.store(plane.as_mut_ptr().add(at));
            }
        }
    }
}

/// Calls a kernel with the element size as a constant.
macro_rules! with_element_size {
    ($element_size:expr, $kernel:ident::<$vector:ty>, $src:expr, $dst:expr) => {
        match $element_size {
            1 => $crate::bitshuffle::lanes::$kernel::<$vector, 1>($src, $dst),
            2 => $crate::bitshuffle::lanes::$kernel::<$vector, 2>($src, $dst),
            4 => $crate::bitshuffle::lanes::$kernel::<$vector, 4>($src, $dst),
            8 => $crate::bitshuffle::lanes::$kernel::<$vector, 8>($src, $dst),
            _ => $crate::bitshuffle::lanes::$kernel::<$vector, 16>($src, $dst),
        }
    };
}
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
pub(super) use with_element_size;

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The vector as an array, so that the transpose itself is tested on every machine and under miri.
    #[derive(Clone, Copy)]
    pub(crate) struct Model([u8; 16]);

    // SAFETY: no instructions are needed; the pointers are the caller's business.
    unsafe impl Vector for Model {
        const BYTES: usize = 16;

        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { from.cast::<[u8; 16]>().read_unaligned() })
        }

        unsafe fn load_lanes(from: *const u8, _: usize) -> Self {
            // SAFETY: the caller's promise.
            unsafe { Self::load(from) }
        }

        unsafe fn store(self, to: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { to.cast::<[u8; 16]>().write_unaligned(self.0) }
        }

        unsafe fn store_lane_pairs(self, next: Self, to: *mut u8, _: usize) {
            // SAFETY: the caller's promise.
            unsafe {
                self.store(to);
                next.store(to.add(16));
            }
        }

        unsafe fn zip_low(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| if i % 2 == 0 { self.0[i / 2] } else { other.0[i / 2] }))
        }

        unsafe fn zip_high(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| if i % 2 == 0 { self.0[8 + i / 2] } else { other.0[8 + i / 2] }))
        }

        unsafe fn difference<const S: i32>(self, other: Self, mask: u8) -> Self {
            Self(std::array::from_fn(|i| ((self.0[i] >> S) ^ other.0[i]) & mask))
        }

        unsafe fn xor(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] ^ other.0[i]))
        }

        unsafe fn xor_shifted<const S: i32>(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] ^ (other.0[i] << S)))
        }
    }

    #[test]
    fn the_model_agrees_with_the_portable_kernel() {
        let (element_sizes, groups): (&[usize], &[usize]) =
            if cfg!(miri) { (&[1, 4], &[17]) } else { (&[1, 2, 4, 8, 16], &[1, 15, 16, 17, 40]) };
        for &element_size in element_sizes {
            for &groups in groups {
                let src = crate::bitshuffle::tests::noise(groups * 8 * element_size, 77);
                let (mut expected, mut rows, mut again) =
                    (vec![0; src.len()], vec![0; src.len()], vec![0; src.len()]);
                scalar::shuffle(element_size, &src, &mut expected);
                // SAFETY: the model needs no instructions.
                unsafe {
                    with_element_size!(element_size, shuffle::<Model>, &src, &mut rows);
                    with_element_size!(element_size, unshuffle::<Model>, &rows, &mut again);
                }
                assert_eq!(rows, expected);
                assert_eq!(again, src);
            }
        }
    }
}
