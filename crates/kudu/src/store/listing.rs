//! What there is: tablets and logs.

use pilaster_core::verify::Finding;

use super::KuduStore;
use crate::tablet::{TabletState, log_damage};
use crate::wal::{LogLine, Secrets, lines};

/// A tablet in a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TabletEntry {
    /// Name of its table.
    pub table: String,
    /// Its id.
    pub tablet: String,
    /// Uuid of the server.
    pub server: String,
    /// What the server was doing with it.
    pub state: TabletState,
    /// Its bounds.
    pub partition: String,
    /// Columns of its table.
    pub columns: usize,
    /// Rowsets on disk.
    pub rowsets: usize,
    /// Rows that were live when rowsets were written, where known.
    pub flushed_rows: Option<u64>,
    /// Delta files.
    pub deltas: usize,
    /// Bytes of its blocks.
    pub bytes: u64,
    /// First and last segment of its log.
    pub log_segments: Option<(u64, u64)>,
    /// Blocks that its superblock names and that are nowhere.
    pub missing_blocks: usize,
    /// What is wrong with its superblock.
    pub damage: Option<Finding>,
}

/// The log of a tablet.
#[derive(Debug, Clone)]
pub struct TabletLog {
    /// Name of its table.
    pub table: String,
    /// Its id.
    pub tablet: String,
    /// Uuid of the server.
    pub server: String,
    /// Its entries, in order.
    pub lines: Vec<LogLine>,
    /// What is wrong with its segments.
    pub findings: Vec<Finding>,
}

impl KuduStore {
    /// Every replica of every tablet. Of the log only the headers of its segments are read.
    pub fn tablets(&self) -> Vec<TabletEntry> {
        self.replicas
            .iter()
            .map(|replica| {
                let metadata = &replica.metadata;
                let rows = metadata.rowsets.iter().map(|rowset| rowset.live_row_count);
                let deltas =
                    metadata.rowsets.iter().map(|r| r.redo_deltas.len().saturating_add(r.undo_deltas.len()));
                TabletEntry {
                    table: metadata.table_name.clone(),
                    tablet: metadata.tablet_id.clone(),
                    server: replica.server.clone(),
                    state: metadata.state,
                    partition: metadata.partition.to_string(),
                    columns: metadata.schema.columns.len(),
                    rowsets: metadata.rowsets.len(),
                    flushed_rows: rows.sum(),
                    deltas: deltas.sum(),
                    bytes: replica.bytes(),
                    log_segments: replica.log_segments(),
                    missing_blocks: replica.missing_blocks(),
                    damage: replica.metadata_damage.clone(),
                }
            })
            .collect()
    }

    /// The log of every tablet that the options choose: its tablet id and table name, its entries in order, and what is
    /// wrong with it.
    pub fn logs(&self) -> Vec<TabletLog> {
        let secrets = if self.options.secrets { Secrets::Shown } else { Secrets::Redacted };
        let chosen = self
            .replicas
            .iter()
            .filter(|replica| self.options.chooses(&replica.metadata.tablet_id, &replica.server));
        chosen
            .map(|replica| {
                let log = replica.log();
                TabletLog {
                    table: replica.metadata.table_name.clone(),
                    tablet: replica.metadata.tablet_id.clone(),
                    server: replica.server.clone(),
                    lines: log.segments.iter().flat_map(|segment| lines(segment, secrets)).collect(),
                    findings: log_damage(&log),
                }
            })
            .collect()
    }
}
