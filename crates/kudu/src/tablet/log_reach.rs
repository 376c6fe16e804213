//! How far a log reaches: whether it holds the last changes that were flushed to rowsets that are damaged.

use std::collections::BTreeSet;

use super::delta::DeltaFile;
use super::replica::Replica;
use super::rowset::{Damage, DamagedPart, RowSet};
use crate::wal::{Log, SegmentEnd};

impl Replica {
    /// The newest timestamp of any change that is in a file, those of rowsets that cannot be opened included.
    pub(super) fn newest_flushed(&self, opened: &[RowSet]) -> u64 {
        let is_open = |id: i64| opened.iter().any(|rowset| rowset.metadata.id == id);
        let closed = self.metadata.rowsets.iter().filter(|rowset| !is_open(rowset.id));
        let deltas = closed.flat_map(|rowset| rowset.undo_deltas.iter().chain(&rowset.redo_deltas));
        let of_file = |block: &u64| {
            let file = DeltaFile::open(self.blocks.certain(*block).ok()?, &self.blocks.options).ok()?;
            Some(file.timestamps().1)
        };
        let of_opened = opened.iter().map(RowSet::newest_timestamp);
        deltas.filter_map(of_file).chain(of_opened).max().unwrap_or_default()
    }

    /// Ids of the rowsets in which something is damaged that rows need.
    pub(super) fn damaged_rowsets(&self, damage: &[Damage]) -> BTreeSet<i64> {
        let needed = damage.iter().filter(|damage| damage.part != DamagedPart::Derivable);
        let texts: Vec<_> = needed.map(|damage| damage.finding.to_string()).collect();
        let ids = self.metadata.rowsets.iter().map(|rowset| rowset.id);
        ids.filter(|id| {
            let name = rowset_name(*id, &self.metadata.tablet_id);
            texts.iter().any(|text| text.contains(&name))
        })
        .collect()
    }

    /// Whether the log may end before changes that were flushed to one of these rowsets, of which no file tells how far they went: the
    /// last store that the superblock calls flushed is in no COMMIT though earlier ones are, or an entry is torn and none behind it is in a
    /// later store. (A rowset that a compaction made can have a store of changes it caught up with; no COMMIT names any of its stores then,
    /// and only a torn entry tells that one is missing.)
    /// A log that lost its end exactly behind an entry, in the middle of a store, looks like one that was never longer.
    pub(super) fn ends_before(&self, log: &Log, damaged: &BTreeSet<i64>) -> bool {
        if self.metadata_damage.is_some() {
            return false;
        }
        let is_torn = log.segments.last().is_some_and(|last| matches!(last.end, SegmentEnd::Torn(_)));
        let entries = log.segments.iter().flat_map(|segment| &segment.entries);
        let commits = entries.filter_map(|(_, entry)| entry.commit.as_ref()?.result.as_ref());
        let stores: Vec<_> =
            commits.flat_map(|result| &result.ops).flat_map(|op| &op.mutated_stores).collect();
        let is_memory_later =
            stores.iter().any(|store| store.mrs_id.is_some_and(|id| id > self.metadata.last_durable_mrs_id));
        let mut rowsets = self.metadata.rowsets.iter().filter(|rowset| damaged.contains(&rowset.id));
        rowsets.any(|rowset| {
            let own = stores.iter().filter(|store| store.rs_id == Some(rowset.id));
            let newest = own.filter_map(|store| store.dms_id).max();
            let flushed = (rowset.last_durable_dms_id >= 0).then_some(rowset.last_durable_dms_id);
            match (newest, flushed) {
                (None, None) => is_torn && !is_memory_later,
                (None, Some(_)) => is_torn,
                (newest, flushed) => newest < flushed || (newest == flushed && is_torn),
            }
        })
    }
}

/// How findings and losses name a rowset.
pub(super) fn rowset_name(id: i64, tablet: &str) -> String {
    format!("rowset {id} of tablet {tablet}")
}
