//! What can be chosen when writing a tablet.

use std::path::PathBuf;

use pilaster_core::sort::DEFAULT_MEMORY_BYTES;
use pilaster_core::{Error, Result};

use crate::segment::SegmentWriteOptions;

/// Rows of a segment.
const ROWS_PER_SEGMENT: u32 = 1 << 20;
/// Bytes of the rows of a segment, which is in memory until it is whole.
const SEGMENT_BYTES: usize = 128 << 20;
/// A storage root has so many shards.
const SHARDS: i32 = 1024;

/// Where in the folder the tablet lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TabletLayout {
    /// `<tablet id>/<schema hash>/`, as in a snapshot.
    Snapshot,
    /// `data/<shard>/<tablet id>/<schema hash>/`, as in a storage root. A server keeps its metadata elsewhere; here it lies
    /// beside the segments, as in a snapshot.
    StorageRoot {
        /// Number of the shard, 0 to 1023.
        shard: i32,
    },
}

/// How to write a tablet.
#[derive(Debug, Clone)]
pub struct TabletWriteOptions {
    pub(super) layout: TabletLayout,
    pub(super) tablet_id: i64,
    pub(super) table_id: i64,
    pub(super) partition_id: i64,
    pub(super) replica_id: i64,
    pub(super) schema_hash: i32,
    pub(super) tablet_uid: Option<(i64, i64)>,
    pub(super) creation_time: Option<i64>,
    pub(super) rows_per_segment: u32,
    pub(super) segment_bytes: usize,
    pub(super) memory_bytes: usize,
    pub(super) sorted_rowsets: bool,
    pub(super) single_rowset: bool,
    pub(super) sorted_input: bool,
    pub(super) segment: SegmentWriteOptions,
}

impl Default for TabletWriteOptions {
    /// A snapshot of tablet 10001, segments of 1048576 rows or 128 MiB, whichever is less.
    fn default() -> Self {
        Self {
            layout: TabletLayout::Snapshot,
            tablet_id: 10_001,
            table_id: 10_000,
            partition_id: 10_002,
            replica_id: 10_003,
            schema_hash: 1,
            tablet_uid: None,
            creation_time: None,
            rows_per_segment: ROWS_PER_SEGMENT,
            segment_bytes: SEGMENT_BYTES,
            memory_bytes: DEFAULT_MEMORY_BYTES,
            sorted_rowsets: true,
            single_rowset: false,
            sorted_input: false,
            segment: SegmentWriteOptions::default(),
        }
    }
}

impl TabletWriteOptions {
    /// Where in the folder the tablet lies.
    #[must_use]
    pub fn with_layout(mut self, layout: TabletLayout) -> Self {
        self.layout = layout;
        self
    }

    /// Id of the tablet.
    #[must_use]
    pub fn with_tablet_id(mut self, id: i64) -> Self {
        self.tablet_id = id;
        self
    }

    /// Ids of the table and the partition.
    #[must_use]
    pub fn with_table(mut self, table_id: i64, partition_id: i64) -> Self {
        self.table_id = table_id;
        self.partition_id = partition_id;
        self
    }

    /// Id of the replica.
    #[must_use]
    pub fn with_replica_id(mut self, id: i64) -> Self {
        self.replica_id = id;
        self
    }

    /// Hash of the schema, which is part of the path.
    #[must_use]
    pub fn with_schema_hash(mut self, hash: i32) -> Self {
        self.schema_hash = hash;
        self
    }

    /// The tablet's id of 128 bits; made of the other ids unless set.
    #[must_use]
    pub fn with_tablet_uid(mut self, high: i64, low: i64) -> Self {
        self.tablet_uid = Some((high, low));
        self
    }

    /// Seconds since 1970 at which tablet and rowsets were made; now unless set.
    #[must_use]
    pub fn with_creation_time(mut self, seconds: i64) -> Self {
        self.creation_time = Some(seconds);
        self
    }

    /// The most rows of a segment.
    #[must_use]
    pub fn with_rows_per_segment(mut self, rows: u32) -> Self {
        self.rows_per_segment = rows;
        self
    }

    /// About how many bytes the rows of a segment have, before they are encoded. It is in memory until it is whole.
    #[must_use]
    pub fn with_segment_bytes(mut self, bytes: usize) -> Self {
        self.segment_bytes = bytes;
        self
    }

    /// About how many bytes of rows, and of keys of rows that may be replaced, are sorted in memory; more go through temporary files.
    #[must_use]
    pub fn with_sort_memory_bytes(mut self, bytes: usize) -> Self {
        self.memory_bytes = bytes.max(1);
        self
    }

    /// Whether rows are sorted over the whole rowset, so that no two of its segments have rows between each other's. Else each
    /// segment is what one buffer of a server would be: rows are sorted as they fill it, and keys may be in several.
    #[must_use]
    pub fn with_sorted_rowsets(mut self, sorted: bool) -> Self {
        self.sorted_rowsets = sorted;
        self
    }

    /// Whether all rows are one load. Then the keys of a merge-on-write table need not be kept until the end, to find what later
    /// loads replace; rows of a second load are refused.
    #[must_use]
    pub fn with_single_rowset(mut self, single: bool) -> Self {
        self.single_rowset = single;
        self
    }

    /// Whether rows of a duplicate-key table come in the order of the keys, so that they need not be gathered.
    #[must_use]
    pub fn with_sorted_input(mut self, sorted: bool) -> Self {
        self.sorted_input = sorted;
        self
    }

    /// How segments are written.
    #[must_use]
    pub fn with_segment_options(mut self, options: SegmentWriteOptions) -> Self {
        self.segment = options;
        self
    }

    /// Refuses what no tablet has.
    pub(super) fn check(&self) -> Result<()> {
        if self.tablet_id <= 0 || self.rows_per_segment == 0 {
            return Err(Error::invalid("a tablet has an id above 0, a segment at least one row"));
        }
        match self.layout {
            TabletLayout::StorageRoot { shard } if !(0..SHARDS).contains(&shard) => {
                Err(Error::invalid(format!("shard {shard} is outside 0..1024")))
            }
            _ => Ok(()),
        }
    }

    /// The tablet's folder, relative to the one that is written.
    pub(super) fn folder(&self) -> PathBuf {
        let tablet: PathBuf = [self.tablet_id.to_string(), self.schema_hash.to_string()].iter().collect();
        match self.layout {
            TabletLayout::Snapshot => tablet,
            TabletLayout::StorageRoot { shard } => {
                let shard: PathBuf = ["data".to_string(), shard.to_string()].iter().collect();
                shard.join(tablet)
            }
        }
    }
}
