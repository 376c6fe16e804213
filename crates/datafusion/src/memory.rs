//! A bound for the memory of queries; what sorts and groups more than fits goes through files.

use std::path::PathBuf;
use std::sync::Arc;

use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use datafusion::prelude::SessionConfig;
use pilaster_core::Result;

use crate::error::from_datafusion;

/// Partitions that sort and merge side by side take memory from each other; one of them gets along with less than this.
const BYTES_OF_PARTITION: usize = 32 << 20;

/// Merging holds a batch of every file: small ones, so that there can be many files.
const ROWS_OF_BATCH: usize = 1024;

/// Memory that queries share, and the folder for what does not fit.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    bytes: usize,
    runtime: Arc<RuntimeEnv>,
}

impl Memory {
    pub(crate) fn new(bytes: usize, folder: PathBuf) -> Result<Self> {
        let files = DiskManagerBuilder::default()
            .with_mode(DiskManagerMode::Directories(vec![folder]))
            // A full disk says so itself.
            .with_max_temp_directory_size(u64::MAX);
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(bytes)))
            .with_disk_manager_builder(files)
            .build_arc()
            .map_err(from_datafusion)?;
        Ok(Self { bytes, runtime })
    }

    pub(crate) fn runtime(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime)
    }

    /// As many partitions as have room, each of which keeps a part of it back for merging.
    pub(crate) fn configured(&self, config: SessionConfig) -> SessionConfig {
        let room = self.bytes.checked_div(BYTES_OF_PARTITION).unwrap_or(0);
        let partitions = config.target_partitions().min(room).max(1);
        let rows = config.batch_size().min(ROWS_OF_BATCH);
        let merge = self.bytes.checked_div(partitions.saturating_mul(4)).unwrap_or(0);
        config
            .with_target_partitions(partitions)
            .with_batch_size(rows)
            .with_sort_spill_reservation_bytes(merge)
    }
}
