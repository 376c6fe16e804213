//! What is left of a damaged tablet.
//!
//! Every block of every rowset is read once. Rows with a cell or a change that cannot be read are lost, and left out; the
//! log gives back those whose INSERT it still holds, with all that happened to them since. If the log holds every
//! operation since the first, nothing is lost at all. Where the log itself has lost operations, rows that may have been
//! changed by them are lost too ([`super::lost_log`]): they can be read apart, as they were before.

use std::collections::BTreeMap;
use std::sync::Arc;

use pilaster_core::salvage::GIVEN_APART;
use pilaster_core::{Extent, LostRows, RowRanges, Severity};

use super::log_reach::rowset_name;
use super::lost_log::LostLog;
use super::lost_rows::narrowed;
use super::opening::{Played, log_damage};
use super::replica::{LogUse, Replica, Tablet};
use super::rowset::{Damage, DamagedPart, RowSet, Snapshot};
use crate::wal::{Coverage, Log, MemoryRows, Method};

/// What could be given, and what could not.
#[derive(Debug)]
pub(crate) struct Salvaged {
    pub tablet: Tablet,
    pub losses: Vec<LostRows>,
    /// Rows that are there and may be older than their latest state, or deleted since.
    pub unproven: Option<Tablet>,
}

/// Rows of a rowset that are lost, and why.
struct Loss {
    rowset: usize,
    lost: LostRows,
}

/// The number of a rowset that cannot be opened.
const UNOPENED: usize = usize::MAX;

impl Loss {
    /// Whether both are of the same cells.
    fn is_like(&self, other: &Self) -> bool {
        let of = |loss: &Self| (loss.rowset, loss.lost.column.clone(), loss.lost.positions());
        self.lost.positions().is_some() && of(self) == of(other)
    }

    /// Which rows a rowset had that cannot be opened nobody can tell, so neither how many of them the log gave back.
    fn may_be_fewer(&mut self) {
        if let Some(rows) = self.lost.positions() {
            self.lost
                .reason
                .push_str(&format!("; of its {} rows the log gave back or deleted some", rows.end));
            self.lost.extent = Extent::Unknown;
        }
    }
}

impl Replica {
    /// Opens the tablet and reads everything that a scan at this time could need.
    pub fn salvage(&self, log_use: LogUse, snapshot: Snapshot) -> Salvaged {
        let mut tablet = self.open(log_use, snapshot);
        tablet.rowsets.iter_mut().filter_map(Arc::get_mut).for_each(|rowset| rowset.is_tolerant = true);
        let needs_undo = snapshot != Snapshot::Latest || tablet.is_damaged();
        let (mut rowsets, damage, mut losses) = self.probed_rowsets(&tablet, needs_undo);
        let is_from_log = tablet.rowsets.is_empty() && !self.metadata.rowsets.is_empty();
        if !tablet.is_damaged() && (losses.is_empty() || is_from_log) {
            return Salvaged { tablet, losses: Vec::new(), unproven: None };
        }
        let log = if log_use == LogUse::Replay { self.log() } else { Log::default() };
        let coverage = Coverage::of(&log);
        let flushed = self.newest_flushed(&rowsets);
        let mut damaged = self.damaged_rowsets(&damage);
        damaged.extend(losses.iter().filter_map(|loss| Some(rowsets.get(loss.rowset)?.metadata.id)));
        if let Some(played) = self.whole_log(&log, &coverage, flushed, &damaged) {
            let tablet = self.tablet(Vec::new(), played, tablet.findings);
            return Salvaged { tablet, losses: Vec::new(), unproven: None };
        }
        for Damage { part, finding } in &damage {
            let column = match part {
                DamagedPart::Keys | DamagedPart::Redo => None,
                DamagedPart::Column(name) => Some(name.clone()),
                DamagedPart::Undo if snapshot != Snapshot::Latest => None,
                DamagedPart::Undo | DamagedPart::Derivable => continue,
            };
            let of_part = self.losses_of_part(&rowsets, finding.to_string(), column);
            // Reading has told it too, unless only the name of the block is in doubt.
            let is_told = |loss: &Loss, losses: &[Loss]| losses.iter().any(|known| loss.is_like(known));
            for loss in of_part {
                if !is_told(&loss, &losses) {
                    losses.push(loss);
                }
            }
        }
        for Loss { rowset, lost } in &losses {
            if let (Some(rowset), Some(rows)) = (rowsets.get_mut(*rowset), lost.positions()) {
                rowset.lost = rowset.lost.union(&RowRanges::one(rows));
            }
        }
        let salvaging = Self { salvages: true, ..self.clone() };
        let mut played = match log_use {
            LogUse::Replay => salvaging.play(&self.metadata, &log, &mut rowsets, Method::ByTime),
            LogUse::Ignore => Played::default(),
        };
        if !played.memory.0.is_empty() || !played.deleted.is_empty() {
            losses.iter_mut().filter(|loss| loss.rowset == UNOPENED).for_each(Loss::may_be_fewer);
        }
        // A log with holes may lack changes of the rows it gives back.
        let mut noted = match coverage.is_unbroken() || log_use == LogUse::Ignore {
            true => restored(&rowsets, losses, &played, snapshot, &damage),
            false => losses.into_iter().map(|loss| loss.lost).collect(),
        };
        let lost_log = match log_use {
            LogUse::Replay => {
                let lost = LostLog::of(self, &log, &coverage, &played, flushed).at(snapshot);
                if self.ends_before(&log, &damaged) { lost.behind_flushed(self, &log) } else { lost }
            }
            LogUse::Ignore => LostLog::default(),
        };
        let (unproven, lost) = self.take_unproven(&tablet, &mut rowsets, &mut played, &lost_log, needs_undo);
        noted.extend(lost);
        // What the log itself has lost has no position.
        let of_log = log_damage(&log).into_iter().chain(played.errors.iter().cloned());
        let unplaced =
            of_log.chain(tablet.findings.iter().filter(|f| f.severity == Severity::Error).cloned());
        let mut reasons: Vec<_> = unplaced.map(|finding| finding.to_string()).collect();
        reasons.retain(|reason| !noted.iter().any(|lost| lost.reason.contains(reason)));
        reasons.dedup();
        let part = format!("tablet {}", self.metadata.tablet_id);
        noted.extend(reasons.into_iter().map(|reason| LostRows::unknown(reason).within(part.clone())));
        noted.extend(self.unplaced.iter().cloned());
        Salvaged { tablet: self.tablet(rowsets, played, tablet.findings), losses: noted, unproven }
    }

    /// The rowsets as far as they can be opened, what cannot, and the rows that cannot be read.
    fn probed_rowsets(&self, tablet: &Tablet, needs_undo: bool) -> (Vec<RowSet>, Vec<Damage>, Vec<Loss>) {
        let (mut rowsets, damage) = self.open_rowsets();
        let mut losses = Vec::new();
        for (index, rowset) in rowsets.iter_mut().enumerate() {
            let name = rowset_name(rowset.metadata.id, &self.metadata.tablet_id);
            let found = rowset.probe(&tablet.schema, needs_undo);
            let found = rowset.restore_lost_keys(&self.metadata.schema, found);
            let loss = |lost: LostRows| Loss { rowset: index, lost: lost.within(name.clone()) };
            losses.extend(found.into_iter().map(loss));
        }
        (rowsets, damage, losses)
    }

    /// Takes the rows away whose latest state may be in what the log has lost: a tablet of their own, and losses.
    fn take_unproven(
        &self,
        tablet: &Tablet,
        rowsets: &mut [RowSet],
        played: &mut Played,
        lost_log: &LostLog,
        needs_undo: bool,
    ) -> (Option<Tablet>, Vec<LostRows>) {
        let mut losses = Vec::new();
        let mut taken: BTreeMap<i64, RowRanges> = BTreeMap::new();
        for rowset in rowsets.iter_mut() {
            // Changes that cannot be read prove nothing.
            let rows = lost_log.rows_of(rowset).unwrap_or_else(|_| RowRanges::one(0..rowset.rows));
            let rows = rows.intersect(&rowset.intact(0..rowset.rows));
            if rows.is_empty() {
                continue;
            }
            let name = rowset_name(rowset.metadata.id, &self.metadata.tablet_id);
            let loss =
                |rows: &std::ops::Range<u64>| LostRows::at(rows.clone(), may_be_old()).within(name.clone());
            losses.extend(rows.as_slice().iter().map(loss));
            rowset.lost = rowset.lost.union(&rows);
            taken.insert(rowset.metadata.id, rows);
        }
        let (mut sure, mut unsure) = (BTreeMap::new(), BTreeMap::new());
        for (key, row) in std::mem::take(&mut played.memory.0) {
            let is_unsure = played.unsure.contains(&key) || lost_log.has_row(&row);
            match is_unsure {
                // What was deleted since is nobody's loss.
                true if !row.is_live().unwrap_or(true) && !lost_log.has_row(&row) => None,
                true => unsure.insert(key, row),
                false => sure.insert(key, row),
            };
        }
        played.memory = MemoryRows(sure);
        if !unsure.is_empty() {
            let part = format!("the log of tablet {}", self.metadata.tablet_id);
            // Of a row that was deleted where the log ends, nobody can tell whether it came back.
            let lost = match unsure.values().all(|row| row.is_live().unwrap_or(true)) {
                true => LostRows::counted(unsure.len() as u64, may_be_old()),
                false => LostRows::unknown(may_be_old()),
            };
            losses.push(lost.within(part));
        }
        if taken.is_empty() && unsure.is_empty() {
            return (None, losses);
        }
        // The same rowsets once more, with the other rows left out.
        let (mut again, ..) = self.probed_rowsets(tablet, needs_undo);
        again.retain(|rowset| taken.contains_key(&rowset.metadata.id));
        for rowset in &mut again {
            if let Some(rows) = taken.get(&rowset.metadata.id) {
                rowset.lost = rows.clone();
                rowset.lost = rowset.intact(0..rowset.rows);
            }
            if let Some(given) = rowsets.iter().find(|given| given.metadata.id == rowset.metadata.id) {
                rowset.log_changes.clone_from(&given.log_changes);
                rowset.log_mixes_with_redo = given.log_mixes_with_redo;
            }
        }
        let played =
            Played { memory: MemoryRows(unsure), schema: played.schema.clone(), ..Played::default() };
        (Some(self.tablet(again, played, Vec::new())), losses)
    }

    /// All rows of the rowset that a finding names are lost.
    fn losses_of_part(&self, rowsets: &[RowSet], reason: String, column: Option<String>) -> Vec<Loss> {
        let named = |id: i64| reason.contains(&rowset_name(id, &self.metadata.tablet_id));
        let metadata = self.metadata.rowsets.iter().filter(|rowset| named(rowset.id));
        let losses = metadata.map(|metadata| {
            let opened = rowsets.iter().position(|rowset| rowset.metadata.id == metadata.id);
            let lost = match opened.and_then(|index| rowsets.get(index)) {
                Some(rowset) => LostRows::at(0..rowset.rows, reason.clone()),
                None => match metadata.live_row_count {
                    Some(rows) => LostRows::at(0..rows, reason.clone()),
                    None => LostRows::unknown(reason.clone()),
                },
            };
            let name = rowset_name(metadata.id, &self.metadata.tablet_id);
            let lost = LostRows { column: column.clone(), ..lost }.within(name);
            Loss { rowset: opened.unwrap_or(UNOPENED), lost }
        });
        losses.collect()
    }
}

/// Why rows that can be read are not given.
fn may_be_old() -> String {
    format!("operations of the log are lost that may have changed or deleted these rows; {GIVEN_APART}")
}

/// The losses without the rows that were deleted or that the log gave back.
fn restored(
    rowsets: &[RowSet],
    losses: Vec<Loss>,
    played: &Played,
    snapshot: Snapshot,
    damage: &[Damage],
) -> Vec<LostRows> {
    let mut left = Vec::new();
    let mut placed: BTreeMap<usize, Vec<LostRows>> = BTreeMap::new();
    for Loss { rowset, lost } in losses {
        match rowset < rowsets.len() && lost.positions().is_some() {
            true => placed.entry(rowset).or_default().push(lost),
            false => left.push(lost),
        }
    }
    for (index, losses) in placed {
        let Some(rowset) = rowsets.get(index) else { continue };
        let misses = |damage: &&Damage| match damage.part {
            DamagedPart::Redo => true,
            DamagedPart::Undo => snapshot != Snapshot::Latest,
            _ => false,
        };
        let of_rowset = |damage: &Damage| losses.iter().any(|lost| lost.reason == damage.finding.to_string());
        let misses_deltas = damage.iter().filter(misses).any(of_rowset);
        left.extend(narrowed(rowset, losses, played, snapshot, misses_deltas));
    }
    left
}
