//! What the tests of this crate share.
#![allow(dead_code, reason = "every test program uses its own part of this")]

pub mod cells;
pub mod golden;

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatch;
use pilaster_core::source::MemorySource;
use pilaster_core::{Result, Scan, SourceRef};

/// The root of the workspace.
pub fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the files of real systems are that are not committed; `None`, said aloud, if they are not there.
pub fn goldens() -> Option<PathBuf> {
    let root = std::env::var_os("PILASTER_GOLDENS")
        .map_or_else(|| workspace().join("../shared/goldens"), PathBuf::from)
        .join("doris");
    if root.is_dir() {
        return Some(root);
    }
    assert!(
        std::env::var("CI").as_deref() != Ok("true"),
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
pub fn batches(scan: Scan<'_>) -> Result<Vec<RecordBatch>> {
    scan.read()?.map(|batch| batch.map_err(Into::into)).collect()
}
