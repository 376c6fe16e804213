//! Which stretches of time a damaged log has lost, and which rows may have changed in them.
//!
//! A change of a rowset's row is in a delta file, or else in the log. A rowset whose files have a change that is newer than
//! a lost stretch has been flushed since, and all that happened to its rows before is in its files. The rows of any
//! other rowset may have had another state than the one that is left: they are older than the latest, or were deleted.

use std::collections::BTreeMap;

use pilaster_core::{Result, RowRanges};

use super::opening::{Played, has_alterations};
use super::replica::Replica;
use super::rowset::{RowSet, Snapshot};
use super::superblock::TabletState;
use crate::messages::{CommitMsg, MemStoreTargetPb, op_type};
use crate::wal::{Coverage, Log, MemoryRow};

/// A stretch of time whose operations are lost: all with timestamps between the two, both exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    after: u64,
    before: u64,
}

/// What a log has lost.
#[derive(Debug, Clone, Default)]
pub(super) struct LostLog {
    stretches: Vec<Stretch>,
    snapshot: Option<u64>,
    /// The last operation that is left of those that were flushed, where later ones were flushed to what is lost, too.
    flushed_until: Option<u64>,
    /// The first operation that is left, where rowsets have to prove each row by it.
    proven_from: Option<u64>,
}

impl LostLog {
    /// What is lost of the log of a replica that was played.
    pub fn of(replica: &Replica, log: &Log, coverage: &Coverage, played: &Played, flushed: u64) -> Self {
        let Played { report, .. } = played;
        let mut stretches = Vec::new();
        let ends = (coverage.first_timestamp, coverage.last_timestamp);
        let all = Stretch { after: 0, before: u64::MAX };
        let rest = Stretch { after: ends.1, before: u64::MAX };
        if coverage.first.is_none() && may_have_had_rows(replica, log) {
            stretches.push(all);
        }
        if coverage.may_lack_ends {
            stretches.extend([Stretch { after: 0, before: ends.0 }, rest]);
        }
        if replica.log_behind(coverage, flushed).is_some() || replica.witness.out_of_reach.is_some() {
            stretches.push(rest);
        }
        let knows_schema = log.segments.first().is_none_or(|first| first.schema.is_some());
        if !knows_schema && has_alterations(log) {
            stretches.push(all);
        }
        let times = timestamps(log, &report.failed);
        // What was committed and cannot be told from what was not.
        if coverage.may_lack_commits
            && let Some(at) = report.uncommitted.iter().filter_map(|index| times.get(index)).min()
        {
            stretches.push(Stretch { after: at.saturating_sub(1), before: u64::MAX });
        }
        for index in coverage.missing.iter().chain(&report.failed) {
            if !is_flushed(replica, log, *index) {
                let after = times.range(..index).next_back().map_or(0, |(_, at)| *at);
                let before = times.range(index..).next().map_or(u64::MAX, |(_, at)| *at);
                stretches.push(Stretch { after, before });
            }
        }
        stretches.dedup();
        let proven_from = replica.is_rebuilt.then_some(ends.0);
        Self { stretches, snapshot: None, flushed_until: None, proven_from }
    }

    /// The same where the log ends before changes that were flushed to what is lost: of rows that were flushed and that the log gives
    /// back, it may lack the latest state.
    pub fn behind_flushed(mut self, replica: &Replica, log: &Log) -> Self {
        let times = timestamps(log, &[]);
        let entries = log.segments.iter().flat_map(|segment| &segment.entries);
        let commits = entries.filter_map(|(_, entry)| entry.commit.as_ref());
        let flushed = commits.filter(|commit| {
            let ops = commit.result.iter().flat_map(|result| &result.ops);
            ops.flat_map(|op| &op.mutated_stores).any(|store| is_on_disk(replica, store))
        });
        let index = |commit: &CommitMsg| commit.commited_op_id.and_then(|id| id.index);
        self.flushed_until = flushed.filter_map(|commit| times.get(&index(commit)?)).max().copied();
        self
    }

    /// The same for a look at rows as they were at a time.
    pub fn at(mut self, snapshot: Snapshot) -> Self {
        self.snapshot = match snapshot {
            Snapshot::Latest => None,
            Snapshot::At(at) => Some(at),
        };
        self
    }

    /// Whether operations may be lost whose timestamps are above `newest`, as far as anyone looks.
    fn concerns(&self, newest: u64) -> bool {
        self.stretches.iter().any(|stretch| {
            let from = stretch.after.max(newest).saturating_add(1);
            from < stretch.before.min(self.snapshot.unwrap_or(u64::MAX))
        })
    }

    /// The rows of a rowset whose state may not be the one that is left.
    pub fn rows_of(&self, rowset: &RowSet) -> Result<RowRanges> {
        if self.concerns(rowset.newest_timestamp()) {
            return Ok(RowRanges::one(0..rowset.rows));
        }
        let Some(from) = self.proven_from else { return Ok(RowRanges::none()) };
        // Nobody says which delta files the rowset has: only rows that changed while the log goes back are sure.
        let proven: RowRanges =
            rowset.rows_changed_since(from)?.into_iter().map(|row| row..row.saturating_add(1)).collect();
        let mut start = 0;
        let mut others = Vec::new();
        for range in proven.as_slice() {
            others.push(start..range.start);
            start = range.end;
        }
        others.push(start..rowset.rows);
        Ok(others.into_iter().collect())
    }

    /// Whether the state of a row of memory may not be the one that is left.
    pub fn has_row(&self, row: &MemoryRow) -> bool {
        let made = row.made_whole_at();
        self.concerns(made) || self.flushed_until.is_some_and(|until| made <= until)
    }
}

/// A tablet that was in use has a log; one that was being copied may have lost it.
fn may_have_had_rows(replica: &Replica, log: &Log) -> bool {
    replica.missing_log(log).is_some()
        || !log.findings.is_empty()
        || log.segments.iter().any(|segment| !segment.gaps.is_empty())
        || replica.is_rebuilt
        || replica.metadata.state == TabletState::Copying
}

/// When each operation that could be played happened, by index.
fn timestamps(log: &Log, failed: &[i64]) -> BTreeMap<i64, u64> {
    let entries = log.segments.iter().flat_map(|segment| &segment.entries);
    let of_entries = entries.filter_map(|(_, entry)| {
        let message = entry.replicate.as_ref()?;
        Some((message.id?.index?, message.timestamp?))
    });
    of_entries.filter(|(index, _)| !failed.contains(index)).collect()
}

/// Whether the COMMIT of an operation is left and says that all it did is on disk.
fn is_flushed(replica: &Replica, log: &Log, index: i64) -> bool {
    if replica.metadata_damage.is_some() {
        return false;
    }
    let entries = log.segments.iter().flat_map(|segment| &segment.entries);
    let mut commits = entries.filter_map(|(_, entry)| entry.commit.as_ref());
    let is_of = |commit: &&CommitMsg| commit.commited_op_id.and_then(|id| id.index) == Some(index);
    let Some(commit) = commits.find(is_of).filter(|commit| commit.op_type != Some(op_type::ALTER_SCHEMA))
    else {
        return false;
    };
    let results = commit.result.iter().flat_map(|result| &result.ops);
    results.flat_map(|op| &op.mutated_stores).all(|store| is_on_disk(replica, store))
}

fn is_on_disk(replica: &Replica, store: &MemStoreTargetPb) -> bool {
    let metadata = &replica.metadata;
    if let Some(transaction) = store.rs_txn_id {
        return metadata.transactions.get(&transaction).is_some_and(|state| state.is_flushed);
    }
    if let Some(mrs) = store.mrs_id {
        return mrs <= metadata.last_durable_mrs_id;
    }
    let rowset = metadata.rowsets.iter().find(|rowset| Some(rowset.id) == store.rs_id);
    rowset.is_none_or(|rowset| store.dms_id.is_none_or(|dms| dms <= rowset.last_durable_dms_id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_after_a_lost_stretch_holds_what_was_lost_in_it() {
        let lost = LostLog { stretches: vec![Stretch { after: 10, before: 20 }], ..LostLog::default() };
        let at = |snapshot: u64| lost.clone().at(Snapshot::At(snapshot));
        for (lost, newest, expected) in [
            (lost.clone(), 5, true),
            (lost.clone(), 18, true),
            (lost.clone(), 19, false),
            (lost.clone(), 25, false),
            // Nobody who looks at an earlier time misses it.
            (at(11), 5, false),
            (at(12), 11, false),
            (at(12), 5, true),
            (at(13), 5, true),
            (at(13), 12, false),
        ] {
            assert_eq!(lost.concerns(newest), expected, "{lost:?} {newest}");
        }
    }
}
