//! CRC-32C and CRC-32, by the machine's own instructions where it has them, and xxHash.
//!
//! | checksum | reflected polynomial | `"123456789"` gives | known from |
//! | --- | --- | --- | --- |
//! | CRC-32C (Castagnoli) | `0x82f63b78` | `e3069283` | iSCSI, Kudu |
//! | CRC-32 | `0xedb88320` | `cbf43926` | zlib, gzip, zip, Redfile |
//!
//! Initial value and final xor are `0xffffffff` for both.
//!
//! With the feature `xxhash` also XXH32, XXH64 and the 64 bits of XXH3, with the seed 0, as RocksDB has them.

use crc_fast::{CrcAlgorithm, Digest};

use crate::error::{DecodeError, Result};

/// The checksum of `bytes`.
///
/// ```
/// assert_eq!(pilaster_encoding::checksum::crc32c(b"123456789"), 0xe306_9283);
/// ```
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Refuses `bytes` with another checksum than the stored one.
///
/// # Errors
/// With both checksums.
pub fn check_crc32c(bytes: &[u8], stored: u32) -> Result<()> {
    let computed = crc32c(bytes);
    if computed == stored {
        return Ok(());
    }
    Err(DecodeError::new(0, format!("checksum {stored:08x}"), format!("bytes with checksum {computed:08x}")))
}

/// The checksum of what `crc` is the checksum of, followed by `bytes`.
#[must_use]
pub fn crc32c_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    low_half(digest.finalize())
}

/// The checksum of `bytes`, as zlib and gzip compute it.
///
/// ```
/// assert_eq!(pilaster_encoding::checksum::crc32(b"123456789"), 0xcbf4_3926);
/// ```
#[must_use]
pub fn crc32(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iso_hdlc(bytes)
}

/// The checksum, as zlib and gzip compute it, of what `crc` is the checksum of, followed by `bytes`.
#[must_use]
pub fn crc32_append(crc: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32IsoHdlc, u64::from(!crc));
    digest.update(bytes);
    low_half(digest.finalize())
}

/// XXH32 with the seed 0.
///
/// ```
/// assert_eq!(pilaster_encoding::checksum::xxh32(b""), 0x02cc_5d05);
/// ```
#[cfg(feature = "xxhash")]
#[must_use]
pub fn xxh32(bytes: &[u8]) -> u32 {
    xxhash_rust::xxh32::xxh32(bytes, 0)
}

/// XXH64 with the seed 0.
///
/// ```
/// assert_eq!(pilaster_encoding::checksum::xxh64(b""), 0xef46_db37_51d8_e999);
/// ```
#[cfg(feature = "xxhash")]
#[must_use]
pub fn xxh64(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh64::xxh64(bytes, 0)
}

/// XXH3 of 64 bits with the seed 0.
///
/// ```
/// assert_eq!(pilaster_encoding::checksum::xxh3(b""), 0x2d06_8005_38d3_94c2);
/// ```
#[cfg(feature = "xxhash")]
#[must_use]
pub fn xxh3(bytes: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(bytes)
}

#[expect(clippy::cast_possible_truncation, reason = "a checksum of 32 bits in a wider integer")]
const fn low_half(crc: u64) -> u32 {
    crc as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn another_checksum_is_refused_with_both() {
        assert_eq!(check_crc32c(b"123456789", 0xe306_9283), Ok(()));
        let error = check_crc32c(b"123456789", 0x0306_9283).unwrap_err();
        assert_eq!(error, DecodeError::new(0, "checksum 03069283", "bytes with checksum e3069283"));
    }

    #[test]
    fn known_values() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
        // The header of every checksummed CFile.
        assert_eq!(crc32c(b"kuducfl2\0\0\0\0"), u32::from_le_bytes([0x02, 0x94, 0x3a, 0xd3]));
    }

    fn bit_by_bit(bytes: &[u8], polynomial: u32) -> u32 {
        let register = bytes.iter().fold(u32::MAX, |register, byte| {
            (0..8).fold(register ^ u32::from(*byte), |r, _| r >> 1 ^ polynomial & 0u32.wrapping_sub(r & 1))
        });
        !register
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn equals_the_computation_bit_by_bit(bytes in prop::collection::vec(any::<u8>(), 0..1000)) {
            prop_assert_eq!(crc32c(&bytes), bit_by_bit(&bytes, 0x82f6_3b78));
            prop_assert_eq!(crc32(&bytes), bit_by_bit(&bytes, 0xedb8_8320));
        }

        #[test]
        fn a_flipped_bit_changes_it(mut bytes in prop::collection::vec(any::<u8>(), 1..300), at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let (before, at) = ((crc32c(&bytes), crc32(&bytes)), at.index(bytes.len()));
            bytes[at] ^= 1 << bit;
            prop_assert!(crc32c(&bytes) != before.0 && crc32(&bytes) != before.1);
        }

        #[test]
        fn appending_equals_the_whole(bytes in prop::collection::vec(any::<u8>(), 0..2000), cut in any::<prop::sample::Index>()) {
            let (a, b) = bytes.split_at(cut.index(bytes.len() + 1));
            prop_assert_eq!(crc32c_append(crc32c(a), b), crc32c(&bytes));
            prop_assert_eq!(crc32_append(crc32(a), b), crc32(&bytes));
        }
    }
}
