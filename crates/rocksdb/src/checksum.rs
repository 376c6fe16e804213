//! The checksums of blocks: the last four bytes of what follows each of them.
//!
//! From format version 6 on a checksum also says where in which file its block stands: the context that the footer names is added.

use pilaster_core::{Error, Result};
use pilaster_encoding::checksum::{crc32c, xxh3, xxh32, xxh64};

/// RocksDB does not store a CRC as it is, so that one over bytes that hold a CRC stays good.
const MASK_DELTA: u32 = 0xa282_ead8;
/// What the last byte, which XXH3 is computed without, is multiplied with.
const LAST_BYTE_PRIME: u32 = 0x6b90_83d9;

pub(crate) const fn mask(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(MASK_DELTA)
}

pub(crate) const fn unmask(stored: u32) -> u32 {
    stored.wrapping_sub(MASK_DELTA).rotate_left(15)
}

/// How a table computes its checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checksum {
    None,
    Crc32c,
    XxHash32,
    XxHash64,
    Xxh3,
}

impl Checksum {
    pub fn of(number: u8) -> Result<Self> {
        Ok(match number {
            0 => Self::None,
            1 => Self::Crc32c,
            2 => Self::XxHash32,
            3 => Self::XxHash64,
            4 => Self::Xxh3,
            other => return Err(Error::corrupt("a checksum of type 0 to 4", other)),
        })
    }

    /// As it is stored, without context.
    pub fn compute(self, bytes: &[u8]) -> u32 {
        match (self, bytes.split_last()) {
            (Self::None, _) | (Self::Xxh3, None) => 0,
            (Self::Crc32c, _) => mask(crc32c(bytes)),
            (Self::XxHash32, _) => xxh32(bytes),
            (Self::XxHash64, _) => low_half(xxh64(bytes)),
            (Self::Xxh3, Some((last, bytes))) => {
                low_half(xxh3(bytes)) ^ u32::from(*last).wrapping_mul(LAST_BYTE_PRIME)
            }
        }
    }

    /// Refuses bytes with another checksum than the stored one.
    pub fn check(self, bytes: &[u8], stored: u32, context: u32) -> Result<()> {
        let computed = self.compute(bytes).wrapping_add(context);
        if self == Self::None || computed == stored {
            return Ok(());
        }
        Err(Error::corrupt(format!("checksum {stored:08x}"), format!("bytes with checksum {computed:08x}")))
    }
}

/// What is added to the checksum of a block at `offset`, in a file whose footer has `base`.
pub(crate) const fn context(base: u32, offset: u64) -> u32 {
    if base == 0 { 0 } else { base ^ low_half(offset).wrapping_add(low_half(offset >> 32)) }
}

#[expect(clippy::cast_possible_truncation, reason = "a checksum of 32 bits in a wider integer")]
const fn low_half(value: u64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_come_off_again() {
        for crc in [0, 1, u32::MAX, 0xe306_9283] {
            assert_eq!(unmask(mask(crc)), crc);
        }
        // The last record of a manifest that Kudu's RocksDB wrote: its kind and content, and the checksum before them.
        assert_eq!(mask(crc32c(b"\x01\x09\0\x03\x06\x04\0")), u32::from_le_bytes([0xfc, 0x2c, 0x26, 0xf9]));
    }

    #[test]
    fn a_context_depends_on_file_and_place() {
        assert_eq!(context(0, 77), 0);
        assert_eq!(context(0x1234, 0x1_0000_0002), 0x1234 ^ 3);
    }
}
