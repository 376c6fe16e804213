//! Bit shuffle: the bits of many elements as a transposed matrix, in LZ4 blocks.
//!
//! Bit 0 of byte 0 of all elements comes first, then bit 1 of byte 0 of all elements, and so on. Columns whose values
//! are alike become long runs of equal bytes that LZ4 packs well.
//!
//! ```text
//! k elements of e bytes, k a multiple of 8   ->   8·e rows of k/8 bytes
//! row 8·j + b    bit b (0 = lowest) of byte j (0 = first in memory) of every element,
//!                element i in bit i % 8 (lowest first) of byte i / 8 of the row
//!
//! u32 values 0, 257, 514, … 2313 and six zeros (k = 16, rows of 2 bytes):
//!     aa02 cc00 f000 0003 0000 0000 0000 0000      bits 0-7 of byte 0
//!     aa02 cc00 f000 0003 0000 0000 0000 0000      bits 0-7 of byte 1
//!     00 …                                          bytes 2 and 3
//! ```
//!
//! [`compress_lz4`] cuts the elements into sub-blocks of [`block_elements`], the last one smaller, shuffles each alone and
//! writes `u32 big-endian length | raw LZ4 block`. This is the layout of the `bitshuffle` library with its default block
//! size. The number of elements comes from outside; writers fill up with zero elements to a multiple of 8.
//!
//! Element sizes are 1, 2, 4, 8 and 16 bytes, and 3, 12 and 32, which only the portable kernel transposes.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
mod block;
#[cfg(any(test, all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
mod lanes;
#[cfg(all(target_arch = "aarch64", not(miri)))]
mod neon;
mod scalar;
mod sub_blocks;

pub use block::ShuffledBlock;
pub use sub_blocks::SubBlocks;

use crate::codec::lz4;
use crate::{DecodeError, Result};
use std::cell::RefCell;
use std::sync::OnceLock;

/// Bytes a sub-block holds if its elements are not too wide.
const BLOCK_BYTES: usize = 8192;
/// Elements a sub-block holds at least.
const MIN_BLOCK_ELEMENTS: usize = 128;
/// Bytes of the length before each sub-block.
const LENGTH_BYTES: usize = 4;

/// Elements of a whole sub-block.
#[must_use]
pub const fn block_elements(element_size: usize) -> usize {
    let fitting = match BLOCK_BYTES.checked_div(element_size) {
        Some(fitting) => fitting & !7,
        None => BLOCK_BYTES,
    };
    if fitting < MIN_BLOCK_ELEMENTS { MIN_BLOCK_ELEMENTS } else { fitting }
}

/// A way to transpose, for tests and benchmarks; [`shuffle`] and [`unshuffle`] use the fastest one of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kernel {
    /// Plain integer code that runs everywhere.
    Portable,
    /// 256-bit vectors of x86-64.
    Avx2,
    /// 512-bit vectors with byte permutes (VBMI) and Galois field instructions (GFNI) of x86-64.
    Avx512Gfni,
    /// 128-bit vectors of 64-bit Arm.
    Neon,
}

impl Kernel {
    /// Its name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512Gfni => "avx512-gfni",
            Self::Neon => "neon",
        }
    }

    /// Whether this machine can run it.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => avx2::is_available(),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512Gfni => avx512::is_available(),
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            Self::Neon => neon::is_available(),
            _ => false,
        }
    }

    /// [`shuffle`] with this kernel, or with the portable one where it is not available.
    ///
    /// # Errors
    /// As [`shuffle`].
    pub fn shuffle(self, element_size: usize, src: &[u8], dst: &mut [u8]) -> Result<()> {
        check_lengths(element_size, src, dst)?;
        match self {
            _ if !has_vectors(element_size) => scalar::shuffle(element_size, src, dst),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the kernel is available, that is, the machine has the instructions it is compiled for.
            Self::Avx2 if avx2::is_available() => unsafe { avx2::shuffle(element_size, src, dst) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as above.
            Self::Avx512Gfni if avx512::is_available() => unsafe { avx512::shuffle(element_size, src, dst) },
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            // SAFETY: as above.
            Self::Neon if neon::is_available() => unsafe { neon::shuffle(element_size, src, dst) },
            _ => scalar::shuffle(element_size, src, dst),
        }
        Ok(())
    }

    /// [`unshuffle`] with this kernel, or with the portable one where it is not available.
    ///
    /// # Errors
    /// As [`unshuffle`].
    pub fn unshuffle(self, element_size: usize, src: &[u8], dst: &mut [u8]) -> Result<()> {
        check_lengths(element_size, src, dst)?;
        match self {
            _ if !has_vectors(element_size) => scalar::unshuffle(element_size, src, dst),
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: the kernel is available, that is, the machine has the instructions it is compiled for.
            Self::Avx2 if avx2::is_available() => unsafe { avx2::unshuffle(element_size, src, dst) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as above.
            Self::Avx512Gfni if avx512::is_available() => unsafe {
                avx512::unshuffle(element_size, src, dst)
            },
            #[cfg(all(target_arch = "aarch64", not(miri)))]
            // SAFETY: as above.
            Self::Neon if neon::is_available() => unsafe { neon::unshuffle(element_size, src, dst) },
            _ => scalar::unshuffle(element_size, src, dst),
        }
        Ok(())
    }
}

/// The kernels this machine can run, slowest first.
pub fn kernels() -> impl Iterator<Item = Kernel> {
    [Kernel::Portable, Kernel::Neon, Kernel::Avx2, Kernel::Avx512Gfni]
        .into_iter()
        .filter(|kernel| kernel.is_available())
}

/// The kernel that [`shuffle`] and [`unshuffle`] use here.
#[must_use]
pub fn chosen_kernel() -> Kernel {
    static CHOSEN: OnceLock<Kernel> = OnceLock::new();
    *CHOSEN.get_or_init(|| kernels().last().unwrap_or(Kernel::Portable))
}

/// Transposes the elements of `src` into the bit rows of `dst`, as one block whatever its size.
///
/// # Errors
/// If the element size is none of the module's, the lengths differ, or they are no multiple of eight elements.
pub fn shuffle(element_size: usize, src: &[u8], dst: &mut [u8]) -> Result<()> {
    chosen_kernel().shuffle(element_size, src, dst)
}

/// Transposes the bit rows of `src` into the elements of `dst`, the inverse of [`shuffle`].
///
/// # Errors
/// If the element size is none of the module's, the lengths differ, or they are no multiple of eight elements.
pub fn unshuffle(element_size: usize, src: &[u8], dst: &mut [u8]) -> Result<()> {
    chosen_kernel().unshuffle(element_size, src, dst)
}

fn check_lengths(element_size: usize, src: &[u8], dst: &[u8]) -> Result<()> {
    check_elements(element_size, src.len())?;
    if src.len() != dst.len() {
        return Err(DecodeError::new(0, format!("{} bytes", src.len()), dst.len().to_string()));
    }
    Ok(())
}

/// Whether the vector kernels know elements of this size.
fn has_vectors(element_size: usize) -> bool {
    matches!(element_size, 1 | 2 | 4 | 8 | 16)
}

fn check_elements(element_size: usize, len: usize) -> Result<()> {
    if !matches!(element_size, 1 | 2 | 3 | 4 | 8 | 12 | 16 | 32) {
        let expected = "elements of 1, 2, 3, 4, 8, 12, 16 or 32 bytes";
        return Err(DecodeError::new(0, expected, element_size.to_string()));
    }
    if !len.is_multiple_of(element_size.saturating_mul(8)) {
        let expected = format!("whole groups of eight elements of {element_size} bytes");
        return Err(DecodeError::new(0, expected, format!("{len} bytes")));
    }
    Ok(())
}

/// Appends the sub-blocks of the elements of `src`.
///
/// # Errors
/// If the element size is none of the module's or `src` is no multiple of eight elements.
pub fn compress_lz4(element_size: usize, src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    check_elements(element_size, src.len())?;
    let block_bytes = block_elements(element_size).saturating_mul(element_size);
    with_scratch(|scratch| {
        scratch.resize(block_bytes.max(scratch.len()), 0);
        for block in src.chunks(block_bytes) {
            let rows = scratch.get_mut(..block.len()).unwrap_or_default();
            shuffle(element_size, block, rows)?;
            let start = out.len();
            out.extend([0; LENGTH_BYTES]);
            lz4::compress(rows, out)?;
            let len = out.len().saturating_sub(start).saturating_sub(LENGTH_BYTES);
            // A sub-block has some thousand bytes, so its compressed length fits.
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            if let Some(slot) = out.get_mut(start..).and_then(|rest| rest.first_chunk_mut()) {
                *slot = len.to_be_bytes();
            }
        }
        Ok(())
    })
}

/// Decompresses the sub-blocks of `src` into `dst`, which is exactly as long as all elements.
///
/// # Errors
/// If the element size is none of the module's, `dst` is no multiple of eight elements, a sub-block is malformed or does
/// not give the bytes it should, or `src` ends before the last sub-block or goes on after it.
pub fn decompress_lz4(element_size: usize, src: &[u8], dst: &mut [u8]) -> Result<()> {
    with_scratch(|scratch| decompress_lz4_with(element_size, src, dst, scratch))
}

/// [`decompress_lz4`] with a buffer of the caller, which grows to one sub-block and is kept for the next call.
///
/// # Errors
/// As [`decompress_lz4`].
pub fn decompress_lz4_with(
    element_size: usize,
    src: &[u8],
    dst: &mut [u8],
    scratch: &mut Vec<u8>,
) -> Result<()> {
    check_elements(element_size, dst.len())?;
    let block_bytes = block_elements(element_size).saturating_mul(element_size);
    if scratch.len() < block_bytes {
        scratch.resize(block_bytes, 0);
    }
    let kernel = chosen_kernel();
    let mut rest = src;
    for block in dst.chunks_mut(block_bytes) {
        let at = src.len().saturating_sub(rest.len());
        let Some((len, after)) = rest.split_first_chunk::<LENGTH_BYTES>() else {
            let expected = format!("the length of a sub-block of {} bytes", block.len());
            return Err(DecodeError::new(at, expected, format!("{} bytes", rest.len())));
        };
        let len = u32::from_be_bytes(*len);
        let Some((packed, after)) = after.split_at_checked(len as usize) else {
            return Err(DecodeError::new(
                at,
                format!("a sub-block of at most {} bytes", after.len()),
                len.to_string(),
            ));
        };
        let rows = scratch.get_mut(..block.len()).unwrap_or_default();
        lz4::decompress(packed, rows).map_err(|error| error.shifted(at.saturating_add(LENGTH_BYTES)))?;
        kernel.unshuffle(element_size, rows, block)?;
        rest = after;
    }
    if !rest.is_empty() {
        let at = src.len().saturating_sub(rest.len());
        return Err(DecodeError::new(at, "the end of the sub-blocks", format!("{} more bytes", rest.len())));
    }
    Ok(())
}

/// Lends a buffer that is kept for the next call on this thread.
fn with_scratch<T>(work: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    thread_local! {
        static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    // Taken, not borrowed: the work may be a caller's and come back here.
    let mut scratch = SCRATCH.take();
    let result = work(&mut scratch);
    SCRATCH.set(scratch);
    result
}

#[cfg(test)]
mod tests;
