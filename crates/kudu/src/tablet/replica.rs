//! One replica of a tablet: what a server's disks say about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::{Finding, Result, Severity};

use super::found::log_folder;
use super::rowset::{Blocks, RowSet};
use super::schema::KuduSchema;
use super::superblock::TabletMetadata;
use crate::fs::{FilePool, FsRoots, Pbc};
use crate::messages::{self, ConsensusMetadataPb, RaftPeerPb};
use crate::wal::{Log, LogReport, MemoryRows};

/// A tablet as one server has it, not yet opened.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub metadata: TabletMetadata,
    pub server: String,
    pub roots: Arc<FsRoots>,
    pub blocks: Blocks,
    /// Number of voters; 0 if nobody says.
    pub voters: usize,
    /// What is wrong with the superblock, if `metadata` is not what it said.
    pub metadata_damage: Option<Finding>,
    /// Tables it may belong to, if nothing says to which.
    pub doubtful_tables: Vec<String>,
}

/// Whether the log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogUse {
    /// Rows and changes that stand in the log only are given too.
    #[default]
    Replay,
    /// Only what was flushed.
    Ignore,
}

/// An opened replica.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub metadata: TabletMetadata,
    pub server: String,
    /// The newest schema, of the superblock or of the log.
    pub schema: KuduSchema,
    pub schema_version: u32,
    pub rowsets: Vec<Arc<RowSet>>,
    pub memory: Arc<MemoryRows>,
    pub log: LogReport,
    /// What is wrong: errors if rows are missing, else warnings.
    pub findings: Vec<Finding>,
    /// What it was opened from.
    pub replica: Replica,
}

impl Replica {
    pub fn log_folder(&self) -> Option<PathBuf> {
        log_folder(&self.metadata.tablet_id, &self.roots)
    }

    /// Bytes of its blocks.
    pub fn bytes(&self) -> u64 {
        let rowsets = self.metadata.rowsets.iter();
        let ids = rowsets.flat_map(|rowset| {
            let columns = rowset.columns.iter().map(|(_, block)| *block);
            let deltas = rowset.redo_deltas.iter().chain(&rowset.undo_deltas).copied();
            columns.chain(deltas).chain(rowset.bloom).chain(rowset.adhoc_index)
        });
        ids.filter_map(|id| self.blocks.map.places.get(&id)).map(|place| place.length).sum()
    }

    /// First and last segment of the log.
    pub fn log_segments(&self) -> Option<(u64, u64)> {
        let Log { segments, .. } = self.log();
        Some((segments.first()?.sequence, segments.last()?.sequence))
    }

    /// Term and index of the last operation in the log.
    pub fn last_op(&self) -> Option<(i64, i64)> {
        let Log { segments, .. } = self.log();
        let entries = segments.iter().flat_map(|segment| &segment.entries);
        let ids = entries.filter_map(|(_, entry)| entry.replicate.as_ref()?.id);
        ids.filter_map(|id| Some((id.term?, id.index?))).max()
    }
}

impl Tablet {
    /// Whether rows are missing.
    pub fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// The newest timestamp of any change, flushed or logged.
    pub fn newest_timestamp(&self) -> u64 {
        let flushed = self.rowsets.iter().map(|rowset| rowset.newest_timestamp()).max().unwrap_or_default();
        flushed.max(self.log.newest_timestamp)
    }
}

/// Number of voters of a tablet; 0 if nobody says.
pub(crate) fn voters(roots: &FsRoots, tablet: &str, pool: &FilePool) -> usize {
    let read = |path: &Path| -> Result<usize> {
        let source = pool.content(path)?;
        let message: ConsensusMetadataPb =
            messages::parse(&Pbc::single(source.as_ref())?, "ConsensusMetadataPB")?;
        let peers = message.committed_config.map(|config| config.peers).unwrap_or_default();
        Ok(peers.iter().filter(|peer| peer.member_type == Some(RaftPeerPb::VOTER)).count())
    };
    let paths = roots.folders("consensus-meta").into_iter().map(|folder| folder.join(tablet));
    paths.filter(|path| path.is_file()).find_map(|path| read(&path).ok()).unwrap_or_default()
}
