//! One replica of a tablet: what a server's disks say about it.

use std::sync::Arc;

use pilaster_core::{Error, Finding, Limits, Location, LostRows, Result, Severity};

use super::found::log_folder;
use super::rowset::{Blocks, RowSet};
use super::schema::KuduSchema;
use super::superblock::{RowSetMetadata, TabletMetadata};
use crate::fs::{FilePool, FsRoots, Pbc};
use crate::messages::{self, ConsensusMetadataPb, RaftPeerPb};
use crate::wal::{LogReport, MemoryRows, Segment, read_headers};

/// A tablet as one server has it, not yet opened.
#[derive(Debug, Clone)]
pub(crate) struct Replica {
    pub metadata: TabletMetadata,
    pub server: String,
    pub roots: Arc<FsRoots>,
    pub blocks: Blocks,
    /// Uuids of the voters; none if nobody says.
    pub voters: Vec<String>,
    /// Why the list of the voters cannot be read, if it is there.
    pub voters_damage: Option<Error>,
    /// What the logs of other replicas say.
    pub witness: Witness,
    /// What is wrong with the superblock, if `metadata` is not what it said.
    pub metadata_damage: Option<Finding>,
    /// Tables it may belong to, if nothing says to which.
    pub doubtful_tables: Vec<String>,
    /// Rowsets that nothing proves to be its own, if nobody says which are.
    pub unplaced: Vec<LostRows>,
    /// Whether its rowsets were put together from blocks that no superblock names.
    pub is_rebuilt: bool,
    /// Whether it is read for what is left of it.
    pub salvages: bool,
}

/// What the logs of other replicas of a tablet add to one's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Witness {
    /// Whether the logs of most voters are known: then the one that goes furthest is decided to its end.
    pub is_majority: bool,
    /// Operations up to this one are committed, as the log of some replica says.
    pub committed: Option<i64>,
    /// Operations that follow the last one of the replica's own log.
    pub tail: Option<Arc<Segment>>,
    /// What is wrong if operations that another replica has are in no log any more.
    pub out_of_reach: Option<Finding>,
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
    /// How its log ends, if not as a server leaves it.
    pub log_end: Option<Finding>,
    /// Operations that only other replicas can decide, and that are left out.
    pub left_out: u64,
    /// What it was opened from.
    pub replica: Replica,
}

impl Replica {
    pub fn log_folder(&self) -> Option<Location> {
        log_folder(&self.metadata.tablet_id, &self.roots)
    }

    /// Bytes of its blocks.
    pub fn bytes(&self) -> u64 {
        let places = self.block_ids().filter_map(|id| self.blocks.map.places.get(&id));
        places.map(|place| place.length).sum()
    }

    /// Blocks of its rowsets that are nowhere.
    pub fn missing_blocks(&self) -> usize {
        self.block_ids().filter(|id| !self.blocks.map.places.contains_key(id)).count()
    }

    pub(super) fn block_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.metadata.rowsets.iter().flat_map(RowSetMetadata::block_ids)
    }

    /// First and last segment of the log, as their headers say.
    pub fn log_segments(&self) -> Option<(u64, u64)> {
        let segments = read_headers(&self.log_folder()?, &self.blocks.pool, self.limits());
        Some((segments.first()?.sequence, segments.last()?.sequence))
    }

    /// How much its files may make a reader allocate.
    pub fn limits(&self) -> &Limits {
        &self.blocks.options.limits
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

/// Uuids of the voters of a tablet; none if nobody says, with what is wrong with the list that should.
pub(crate) fn voters(
    roots: &FsRoots,
    tablet: &str,
    pool: &FilePool,
    limits: &Limits,
) -> (Vec<String>, Option<Error>) {
    let read = |path: &Location| -> Result<Vec<String>> {
        let source = pool.content(path)?;
        let message: ConsensusMetadataPb =
            messages::parse(&Pbc::single_within(source.as_ref(), limits)?, "ConsensusMetadataPB")?;
        let peers = message.committed_config.map(|config| config.peers).unwrap_or_default();
        let voters = peers.into_iter().filter(|peer| peer.member_type == Some(RaftPeerPb::VOTER));
        let uuid = |peer: RaftPeerPb| peer.permanent_uuid.unwrap_or_default();
        Ok(voters.map(|peer| String::from_utf8_lossy(&uuid(peer)).into_owned()).collect())
    };
    let paths = roots.folders("consensus-meta").into_iter().map(|folder| folder.child(tablet));
    let mut damage = None;
    for path in paths.filter(|path| roots.is_file(path)) {
        match read(&path) {
            Ok(voters) => return (voters, None),
            Err(error) => damage = damage.or(Some(path.blame(error))),
        }
    }
    (Vec::new(), damage)
}
