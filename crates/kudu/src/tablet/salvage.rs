//! What is left of a damaged tablet.
//!
//! Every block of every rowset is read once. Rows with a cell or a change that cannot be read are lost, and left out; the
//! log gives back those whose INSERT it still holds, with all that happened to them since. If the log holds every
//! operation since the first, nothing is lost at all.

use std::sync::Arc;

use pilaster_core::{LostRows, RowRanges, Severity};

use super::opening::{Played, log_damage};
use super::replica::{LogUse, Replica, Tablet};
use super::rowset::{Damage, DamagedPart, RowSet, Snapshot};
use crate::wal::{Coverage, Method};

/// What could be given, and what could not.
#[derive(Debug)]
pub(crate) struct Salvaged {
    pub tablet: Tablet,
    pub losses: Vec<LostRows>,
}

/// Rows of a rowset that are lost, and why.
struct Loss {
    rowset: usize,
    lost: LostRows,
}

impl Replica {
    /// Opens the tablet and reads everything that a scan at this time could need.
    pub fn salvage(&self, log_use: LogUse, snapshot: Snapshot) -> Salvaged {
        let mut tablet = self.open(log_use, snapshot);
        tablet.rowsets.iter_mut().filter_map(Arc::get_mut).for_each(|rowset| rowset.is_tolerant = true);
        let (mut rowsets, damage) = self.open_rowsets();
        let mut losses = Vec::new();
        for (index, rowset) in rowsets.iter_mut().enumerate() {
            let name = rowset_name(rowset.metadata.id, &self.metadata.tablet_id);
            let needs_undo = snapshot != Snapshot::Latest || tablet.is_damaged();
            let found = rowset.probe(&tablet.schema, needs_undo);
            let found = rowset.restore_lost_keys(&self.metadata.schema, found);
            losses.extend(found.into_iter().map(|lost| {
                let reason = format!("{name}: {}", lost.reason);
                Loss { rowset: index, lost: LostRows { reason, ..lost } }
            }));
        }
        let is_from_log = tablet.rowsets.is_empty() && !self.metadata.rowsets.is_empty();
        if !tablet.is_damaged() && (losses.is_empty() || is_from_log) {
            return Salvaged { tablet, losses: Vec::new() };
        }
        let log = if log_use == LogUse::Replay { self.log() } else { Default::default() };
        let coverage = Coverage::of(&log);
        let flushed = rowsets.iter().map(RowSet::newest_timestamp).max().unwrap_or_default();
        if let Some(played) = self.whole_log(&log, &coverage, flushed) {
            return Salvaged { tablet: self.tablet(Vec::new(), played, tablet.findings), losses: Vec::new() };
        }
        for Damage { part, finding } in &damage {
            let column = match part {
                DamagedPart::Keys | DamagedPart::Redo => None,
                DamagedPart::Column(name) => Some(name.clone()),
                DamagedPart::Undo if snapshot != Snapshot::Latest => None,
                DamagedPart::Undo | DamagedPart::Derivable => continue,
            };
            losses.extend(self.losses_of_part(&rowsets, finding.to_string(), column));
        }
        for Loss { rowset, lost } in &losses {
            if let Some(rowset) = rowsets.get_mut(*rowset) {
                rowset.lost = rowset.lost.union(&RowRanges::one(lost.rows.clone()));
            }
        }
        let played = match log_use {
            LogUse::Replay => self.play(&self.metadata, &log, &mut rowsets, Method::ByTime),
            LogUse::Ignore => Played::default(),
        };
        // A log with holes may lack changes of the rows it gives back.
        let mut noted = match coverage.is_unbroken() {
            true => restored(&rowsets, losses, &played),
            false => losses.into_iter().map(|loss| loss.lost).collect(),
        };
        // What the log itself has lost has no position.
        let of_log = log_damage(&log).into_iter().chain(played.errors.iter().cloned());
        let unplaced =
            of_log.chain(tablet.findings.iter().filter(|f| f.severity == Severity::Error).cloned());
        let mut reasons: Vec<_> = unplaced.map(|finding| finding.to_string()).collect();
        reasons.retain(|reason| !noted.iter().any(|lost| lost.reason.contains(reason)));
        reasons.dedup();
        noted.extend(reasons.into_iter().map(|reason| LostRows { rows: 0..0, column: None, reason }));
        Salvaged { tablet: self.tablet(rowsets, played, tablet.findings), losses: noted }
    }

    /// All rows of the rowset that a finding names are lost.
    fn losses_of_part(&self, rowsets: &[RowSet], reason: String, column: Option<String>) -> Vec<Loss> {
        let named = |id: i64| reason.contains(&rowset_name(id, &self.metadata.tablet_id));
        let metadata = self.metadata.rowsets.iter().filter(|rowset| named(rowset.id));
        let losses = metadata.map(|metadata| {
            let opened = rowsets.iter().position(|rowset| rowset.metadata.id == metadata.id);
            let rows = opened.and_then(|index| rowsets.get(index)).map(|rowset| rowset.rows);
            let rows = 0..rows.or(metadata.live_row_count).unwrap_or_default();
            let lost = LostRows { rows, column: column.clone(), reason: reason.clone() };
            Loss { rowset: opened.unwrap_or(usize::MAX), lost }
        });
        losses.collect()
    }
}

/// How findings and losses name a rowset.
fn rowset_name(id: i64, tablet: &str) -> String {
    format!("rowset {id} of tablet {tablet}")
}

/// The losses without the rows that the log gave back.
fn restored(rowsets: &[RowSet], losses: Vec<Loss>, played: &Played) -> Vec<LostRows> {
    let mut left = Vec::new();
    for Loss { rowset, lost } in losses {
        let keys = rowsets.get(rowset).map(|rowset| rowset.keys_of(lost.rows.clone()));
        let Some(Ok(keys)) = keys else {
            left.push(lost);
            continue;
        };
        let rows = lost.rows.clone().zip(keys);
        let still_lost = rows.filter(|(_, key)| !played.memory.0.contains_key(key));
        let ranges: RowRanges = still_lost.map(|(row, _)| row..row.saturating_add(1)).collect();
        let ranges = ranges.as_slice().iter().cloned();
        left.extend(ranges.map(|rows| LostRows { rows, ..lost.clone() }));
    }
    left
}
