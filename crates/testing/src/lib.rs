//! What the tests of all crates share: where test files are, bytes as sources, scans as batches, real systems, damaged files, storages
//! that fail.
#![forbid(unsafe_code)]
#![allow(clippy::panic, reason = "a test that lacks its files must stop")]
#![allow(clippy::arithmetic_side_effects, reason = "tests compute with known values")]

pub mod damage;
pub mod fault_net;
pub mod faults;
mod read_recorder;
pub mod real;
mod rocks;
pub mod types;
pub mod write_net;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::source::MemorySource;
use pilaster_core::{Error, Result, Scan, ScanTask, SourceRef};
pub use pilaster_testing_macros::needs;
pub use read_recorder::ReadRecorder;
pub use rocks::{rocksdb_family, rocksdb_log, rocksdb_put, rocksdb_table, rocksdb_with_tables};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a system that are committed with the tests.
pub fn testdata(system: &str) -> PathBuf {
    workspace().join("testdata").join(system)
}

/// What decides which tests are ignored: with a change of these variables everything that [`macro@needs`] is compiled again.
const _: [Option<&str>; 2] = [option_env!("PILASTER_GOLDENS"), option_env!("CI")];

/// The golden files that were there when the tests were compiled, by system.
pub const GOLDENS_WHEN_COMPILED: &[&str] = pilaster_testing_macros::goldens_present!();

/// Where the golden files of a real system are, which are not committed: in `PILASTER_GOLDENS` or beside the checkout. A test that
/// asks for them [`macro@needs`] them.
///
/// # Panics
/// If they are not there.
pub fn goldens(system: &str) -> PathBuf {
    let root = goldens_folder().join(system);
    assert!(root.is_dir(), "no golden files in {}: set PILASTER_GOLDENS", root.display());
    root
}

/// The folder in which the golden files are, if they are there.
pub fn goldens_folder() -> PathBuf {
    PathBuf::from(pilaster_testing_macros::goldens_folder!())
}

/// The batches of each task of a scan.
///
/// # Errors
/// As [`Scan::plan`] and reading its tasks.
pub fn batches_by_task(scan: Scan<'_>) -> Result<Vec<Vec<RecordBatch>>> {
    let read = |task: &ScanTask| task.read()?.map(|batch| batch.map_err(Error::from)).collect();
    scan.plan()?.tasks()?.iter().map(read).collect()
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
