//! How much a file may make a reader allocate.

use crate::error::{Error, ErrorKind, Result};

/// Upper bounds that every length and count read from a file passes before memory is reserved for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Largest header or footer message, in bytes.
    pub metadata_bytes: u64,
    /// Largest stored block or page, in bytes.
    pub block_bytes: u64,
    /// Largest block or page after decompression and decoding, in bytes.
    pub decoded_bytes: u64,
    /// Largest column of a batch whose strings are written out one by one, in bytes: batches are cut so that they fit.
    pub batch_bytes: u64,
    /// What a scan holds at a time over all of its columns, in bytes, beside the block that it unpacks: see [`crate::memory`].
    pub scan_bytes: u64,
    /// Largest file of small records that is read in one piece, in bytes: superblocks, the records of a container.
    pub record_file_bytes: u64,
    /// Largest log, or segment of one, that is read in one piece, in bytes.
    pub log_bytes: u64,
    /// Deepest nesting of an index tree or a nested type.
    pub depth: u32,
}

impl Default for Limits {
    /// 64 MiB of metadata, 256 MiB per block before and after decoding and per column of a batch and per scan, 512 MiB of records, 4 GiB of log, 32 levels.
    fn default() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            metadata_bytes: 64 * MIB,
            block_bytes: 256 * MIB,
            decoded_bytes: 256 * MIB,
            batch_bytes: 256 * MIB,
            scan_bytes: 256 * MIB,
            record_file_bytes: 512 * MIB,
            log_bytes: 4096 * MIB,
            depth: 32,
        }
    }
}

impl Limits {
    /// Bounds for files of a few KiB that nobody vouches for, as tests of damage and fuzz targets have them:
    /// 64 KiB of metadata, 1 MiB of anything else, 8 levels.
    #[doc(hidden)]
    #[must_use]
    pub fn small() -> Self {
        const MIB: u64 = 1 << 20;
        Self {
            metadata_bytes: 1 << 16,
            block_bytes: MIB,
            decoded_bytes: MIB,
            batch_bytes: MIB,
            scan_bytes: 4 * MIB,
            record_file_bytes: MIB,
            log_bytes: MIB,
            depth: 8,
        }
    }

    /// A metadata length as a `usize`, if it is within the limit.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub fn metadata(&self, bytes: u64) -> Result<usize> {
        within("metadata_bytes", self.metadata_bytes, bytes)
    }

    /// The stored length of a block as a `usize`, if it is within the limit.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub fn block(&self, bytes: u64) -> Result<usize> {
        within("block_bytes", self.block_bytes, bytes)
    }

    /// The decoded length of a block as a `usize`, if it is within the limit.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub fn decoded(&self, bytes: u64) -> Result<usize> {
        within("decoded_bytes", self.decoded_bytes, bytes)
    }

    /// The length of a file of records as a `usize`, if it is within the limit.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub fn record_file(&self, bytes: u64) -> Result<usize> {
        within("record_file_bytes", self.record_file_bytes, bytes)
    }

    /// The length of a log as a `usize`, if it is within the limit.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`]
    pub fn log(&self, bytes: u64) -> Result<usize> {
        within("log_bytes", self.log_bytes, bytes)
    }
}

fn within(limit: &'static str, max: u64, found: u64) -> Result<usize> {
    match usize::try_from(found) {
        Ok(length) if found <= max => Ok(length),
        _ => Err(Error::new(ErrorKind::LimitExceeded { limit, max, found })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_limit_that_was_passed() {
        let limits = Limits { block_bytes: 10, ..Limits::default() };
        assert_eq!(limits.block(10).unwrap(), 10);
        assert_eq!(limits.block(11).unwrap_err().to_string(), "11 is over the limit block_bytes = 10");
    }
}
