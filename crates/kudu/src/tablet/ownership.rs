//! Which blocks that no superblock names are a tablet's own.
//!
//! Neither a block nor a log says to which tablet a rowset belongs. But every change on disk has a time, and the log has the
//! operations of one tablet with their keys and times: a rowset with a change of the same key at the same time as an operation of
//! the log is that tablet's, unless some other change of it should be in the log and is not. What is not proven so is offered
//! apart, and is a loss: a rowset of another tablet would give rows that were never there.

use std::collections::HashSet;

use pilaster_core::LostRows;
use pilaster_core::salvage::GIVEN_APART;

use super::found::{FoundTablet, log_folder};
use super::rebuild::{BlockRun, rebuild_rowsets, unplaced_columns};
use super::replica::Replica;
use super::rowset::{Blocks, RowSet};
use super::superblock::{RowSetMetadata, TabletMetadata};
use crate::fs::FsRoots;
use crate::wal::{Coverage, Written, read_log};

/// Gives tablets without a superblock the rowsets that are proven to be theirs, and claims their blocks. Gives back, for each
/// tablet, what may be its own besides.
pub(crate) fn attach_rowsets(
    tablets: &mut [FoundTablet],
    claimed: &mut HashSet<u64>,
    blocks: &Blocks,
    roots: &FsRoots,
) -> Vec<Vec<LostRows>> {
    for tablet in tablets.iter_mut().filter(|tablet| tablet.lacks_rowsets) {
        let written = written(&tablet.metadata, blocks, roots);
        let candidates = rebuild_rowsets(&tablet.metadata.schema, claimed, &blocks.map, &blocks.pool);
        let mut known = HashSet::new();
        let mut proven = Vec::new();
        // A rowset that was merged into a later one has the same changes as that.
        for candidate in candidates.into_iter().rev() {
            let Some(changes) = changes(&candidate, &tablet.metadata, blocks) else { continue };
            if written.proves(&changes) && !changes.iter().any(|change| known.contains(change)) {
                known.extend(changes);
                claimed.extend(candidate.block_ids());
                proven.push(candidate);
            }
        }
        proven.reverse();
        tablet.metadata.rowsets = proven;
    }
    let unplaced = |tablet: &FoundTablet| {
        if !tablet.lacks_rowsets {
            return Vec::new();
        }
        let runs = unplaced_columns(&tablet.metadata.schema, claimed, &blocks.map, &blocks.pool);
        runs.iter().map(|run| loss(run, roots)).collect()
    };
    tablets.iter().map(unplaced).collect()
}

impl Replica {
    /// What its log changes.
    pub fn written(&self) -> Written {
        written(&self.metadata, &self.blocks, &self.roots)
    }
}

fn written(metadata: &TabletMetadata, blocks: &Blocks, roots: &FsRoots) -> Written {
    let log = log_folder(&metadata.tablet_id, roots)
        .map(|folder| read_log(&folder, &blocks.pool, &blocks.options.limits))
        .unwrap_or_default();
    Written::of(&log, &Coverage::of(&log), &metadata.schema)
}

/// Every change of a rowset: encoded key and time. `None` if it cannot be read.
fn changes(
    rowset: &RowSetMetadata,
    metadata: &TabletMetadata,
    blocks: &Blocks,
) -> Option<Vec<(Vec<u8>, u64)>> {
    let (rowset, damage) = RowSet::open(rowset.clone(), &metadata.schema, blocks.clone());
    rowset.filter(|_| damage.is_empty())?.changes_by_key().ok()
}

fn loss(run: &BlockRun, roots: &FsRoots) -> LostRows {
    let BlockRun { first, last, rows } = run;
    let server = roots.uuid.get(..8).unwrap_or(&roots.uuid);
    let reason = format!(
        "no superblock names blocks {first} to {last}, and nothing proves to which tablet they belong; {GIVEN_APART}"
    );
    LostRows::counted(*rows, reason).within(format!("{server}-block-{first}"))
}
