//! One replica of a tablet: what a server's disks say about it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::verify::{Finding, Severity};
use pilaster_core::{Error, Result};

use super::rowset::{Blocks, RowSet};
use super::schema::KuduSchema;
use super::superblock::{TabletMetadata, TabletState};
use crate::fs::{FilePool, FsRoots, Pbc};
use crate::messages::{self, ConsensusMetadataPb, RaftPeerPb};
use crate::wal::{LogReport, MemoryRows, Replay, Segment, Uncommitted, read_segments};

/// A tablet as one server has it, not yet opened.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub metadata: TabletMetadata,
    pub server: String,
    pub roots: Arc<FsRoots>,
    pub blocks: Blocks,
    /// Number of voters; 0 if nobody says.
    pub voters: usize,
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
    pub rowsets: Vec<Arc<RowSet>>,
    pub memory: Arc<MemoryRows>,
    pub log: LogReport,
    /// What could not be opened.
    pub findings: Vec<Finding>,
}

impl Replica {
    /// The folder of the log: what a server was replaying when it died counts more than what it was writing anew.
    pub fn log_folder(&self) -> Option<PathBuf> {
        let folders = self.roots.folders("wals");
        let recovery =
            folders.iter().map(|folder| folder.join(format!("{}.recovery", self.metadata.tablet_id)));
        let plain = folders.iter().map(|folder| folder.join(&self.metadata.tablet_id));
        recovery.chain(plain).find(|folder| folder.is_dir())
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

    /// The segments of the log, and what is wrong with them.
    pub fn read_log(&self) -> (Vec<Segment>, Vec<Finding>) {
        self.log_folder().map(|folder| read_segments(&folder, &self.blocks.pool)).unwrap_or_default()
    }

    /// First and last segment of the log.
    pub fn log_segments(&self) -> Option<(u64, u64)> {
        let (segments, _) = self.read_log();
        Some((segments.first()?.sequence, segments.last()?.sequence))
    }

    /// Term and index of the last operation in the log.
    pub fn last_op(&self) -> Option<(i64, i64)> {
        let (segments, _) = self.read_log();
        let entries = segments.iter().flat_map(|segment| &segment.entries);
        let ids = entries.filter_map(|(_, entry)| entry.replicate.as_ref()?.id);
        ids.filter_map(|id| Some((id.term?, id.index?))).max()
    }

    /// Opens rowsets and replays the log.
    pub fn open(&self, log: LogUse) -> Tablet {
        let mut findings = Vec::new();
        let mut rowsets = Vec::new();
        for rowset in &self.metadata.rowsets {
            match RowSet::open(rowset.clone(), &self.metadata.schema, self.blocks.clone()) {
                Ok(rowset) => rowsets.push(rowset),
                Err(error) => {
                    let place = format!("tablet {} rowset {}", self.metadata.tablet_id, rowset.id);
                    let mut finding = Finding::from_error(&error, &place, None);
                    finding.part = format!(
                        "rowset {} of tablet {}: {}",
                        rowset.id, self.metadata.tablet_id, finding.part
                    );
                    findings.push(finding);
                }
            }
        }
        let (mut memory, mut report, mut schema) = (MemoryRows::default(), LogReport::default(), None);
        if log == LogUse::Replay {
            (memory, report, schema) = self.replay(&mut rowsets, &mut findings);
        }
        rowsets.sort_by_key(RowSet::key_range);
        Tablet {
            schema: schema.unwrap_or_else(|| self.metadata.schema.clone()),
            metadata: self.metadata.clone(),
            server: self.server.clone(),
            rowsets: rowsets.into_iter().map(Arc::new).collect(),
            memory: Arc::new(memory),
            log: report,
            findings,
        }
    }

    fn replay(
        &self,
        rowsets: &mut [RowSet],
        findings: &mut Vec<Finding>,
    ) -> (MemoryRows, LogReport, Option<KuduSchema>) {
        let Some(folder) = self.log_folder() else {
            if !self.metadata.rowsets.is_empty() && self.metadata.state == TabletState::Ready {
                let place = format!("tablet {}", self.metadata.tablet_id);
                let error =
                    Error::corrupt("a log", "none: what was not flushed is lost").at(&place, 0, "log");
                findings.push(Finding::from_error(&error, &place, None));
            }
            return Default::default();
        };
        let (segments, problems) = read_segments(&folder, &self.blocks.pool);
        findings.extend(problems);
        let uncommitted = if self.voters == 1 { Uncommitted::Apply } else { Uncommitted::Leave };
        let mut replay = Replay::new(&self.metadata, rowsets);
        replay.play(&segments, uncommitted);
        findings.extend(replay.report.findings.iter().cloned());
        if uncommitted == Uncommitted::Leave && !replay.report.uncommitted.is_empty() {
            findings.push(Finding {
                severity: Severity::Warning,
                path: Arc::from(folder.display().to_string()),
                offset: 0,
                part: "log".into(),
                message: format!(
                    "{} operations (from index {}) were replicated but not committed; {} voters decide, so they are left out",
                    replay.report.uncommitted.len(),
                    replay.report.uncommitted.first().copied().unwrap_or_default(),
                    self.voters
                ),
                rows: None,
            });
        }
        let schema = replay.newer_schema.take().map(|(schema, _)| schema);
        (std::mem::take(&mut replay.rows), replay.report, schema)
    }
}

impl Tablet {
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
