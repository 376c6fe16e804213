//! What there is: tablets and logs.

use pilaster_core::verify::Finding;
use pilaster_core::{Error, Result};

use super::KuduStore;
use crate::fs::Unread;
use crate::tablet::{LogUse, Replica, TabletState, log_damage};
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
    /// How many replicas of it are here, and how many there are; 0 if nobody says.
    pub replicas: (usize, usize),
    /// First and last segment of its log.
    pub log_segments: Option<(u64, u64)>,
    /// Blocks that its superblock names and that are nowhere.
    pub missing_blocks: usize,
    /// What of it could not be read: nobody knows what is there.
    pub unread: Option<Unread>,
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
    /// What is wrong with its segments, or that it has none. What could not be read is not in it: see
    /// [`KuduStore::unread_logs`].
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
                    replicas: self.voters_here(replica),
                    log_segments: replica.log_segments(),
                    missing_blocks: replica.missing_blocks(),
                    unread: replica.unread(LogUse::Replay).into_iter().next(),
                    damage: replica.metadata_damage.clone(),
                }
            })
            .collect()
    }

    /// The log of every tablet that the options choose, of all tables or one: its entries in order, and what is wrong with it.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if a table or a tablet was asked for that is not here.
    pub fn logs(&self, table: Option<&str>) -> Result<Vec<TabletLog>> {
        let secrets = if self.options.secrets { Secrets::Shown } else { Secrets::Redacted };
        let is_of = |replica: &Replica| table.is_none_or(|table| replica.metadata.table_name == table);
        let mut chosen = self
            .replicas
            .iter()
            .filter(|replica| self.options.chooses(&replica.metadata.tablet_id, &replica.server))
            .filter(|replica| is_of(replica))
            .peekable();
        let is_asked = table.is_some() || self.options.tablet.is_some() || self.options.replica.is_some();
        if is_asked && chosen.peek().is_none() {
            // What could not be read may be what was asked for.
            return Err(match self.unread_logs().first() {
                Some(unread) => unread.error(),
                None => Error::invalid("no such table, tablet or replica here"),
            });
        }
        Ok(chosen.map(|replica| self.log_of(replica, secrets)).collect())
    }

    fn log_of(&self, replica: &Replica, secrets: Secrets) -> TabletLog {
        let log = replica.log();
        let unread = self.unread_logs();
        let damage = log_damage(&log).into_iter().chain(replica.missing_log(&log));
        TabletLog {
            table: replica.metadata.table_name.clone(),
            tablet: replica.metadata.tablet_id.clone(),
            server: replica.server.clone(),
            lines: log.segments.iter().flat_map(|segment| lines(segment, secrets)).collect(),
            findings: damage.filter(|finding| !unread.iter().any(|unread| unread.covers(finding))).collect(),
        }
    }
}
