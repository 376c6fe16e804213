//! What the tests of all crates share: where test files are, bytes as sources, scans as batches, real systems.
#![forbid(unsafe_code)]
#![allow(clippy::panic, reason = "a test that lacks its files in CI must stop")]

mod read_recorder;
pub mod real;
#[cfg(feature = "rocksdb")]
mod rocks;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::source::MemorySource;
use pilaster_core::{Result, Scan, SourceRef};
pub use read_recorder::ReadRecorder;
#[cfg(feature = "rocksdb")]
pub use rocks::{rocksdb_into_tables, rocksdb_with_tables};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a system that are committed with the tests.
pub fn testdata(system: &str) -> PathBuf {
    workspace().join("testdata").join(system)
}

/// Where the files of a real system are that are not committed, in `PILASTER_GOLDENS` or beside the checkout; `None`, said aloud, if
/// they are not there.
///
/// # Panics
/// If they are not there and `CI` is set: there nothing may be left out.
pub fn goldens(system: &str) -> Option<PathBuf> {
    let root = std::env::var_os("PILASTER_GOLDENS")
        .map_or_else(|| workspace().join("../shared/goldens"), PathBuf::from)
        .join(system);
    if root.is_dir() {
        return Some(root);
    }
    assert!(
        std::env::var("CI").map_or(true, |ci| ci.is_empty() || ci == "false"),
        "CI must have the golden files: set PILASTER_GOLDENS; {} is no folder",
        root.display()
    );
    eprintln!("SKIPPED: no golden files in {}; set PILASTER_GOLDENS", root.display());
    None
}

/// Bytes in memory as a source.
pub fn memory(name: &str, bytes: impl Into<bytes::Bytes>) -> SourceRef {
    Arc::new(MemorySource::new(name, bytes))
}

/// All batches of a scan.
///
/// # Errors
/// What the scan meets.
pub fn batches(scan: Scan<'_>) -> Result<Vec<RecordBatch>> {
    scan.read()?.map(|batch| batch.map_err(Into::into)).collect()
}

/// A log of RocksDB, or a manifest, of these records, each in one fragment that checks.
///
/// # Panics
/// If a record has 64 KiB or more.
pub fn rocksdb_log(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for record in records {
        let covered: Vec<u8> = std::iter::once(1).chain(record.iter().copied()).collect();
        let masked = pilaster_encoding::checksum::crc32c(&covered).rotate_right(15).wrapping_add(0xa282_ead8);
        let Ok(length) = u16::try_from(record.len()) else { panic!("a record of {} bytes", record.len()) };
        bytes.extend(masked.to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend(covered);
    }
    bytes
}
