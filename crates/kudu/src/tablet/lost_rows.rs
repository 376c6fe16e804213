//! Which rows are really lost where positions of a rowset cannot be read: not those that were deleted, nor those that the log
//! gave back.
//!
//! Flushed deletes stand in REDO files, later ones in the log. Where a REDO file is damaged, nobody can tell which of its rows
//! were deleted; how many were is known if the superblock counts the live ones.

use std::collections::BTreeMap;

use pilaster_core::{Extent, LostRows, RowRanges};

use super::history::History;
use super::opening::Played;
use super::rowset::{RowSet, Snapshot};

/// Narrows the losses at positions of one rowset, in which `rowset.lost` are all of them. `misses_deltas` says that a file with changes
/// that the snapshot needs could not be opened.
pub(super) fn narrowed(
    rowset: &RowSet,
    losses: Vec<LostRows>,
    played: &Played,
    snapshot: Snapshot,
    misses_deltas: bool,
) -> Vec<LostRows> {
    let (history, is_whole) = rowset.readable_history();
    let mut given_back = false;
    let mut left = BTreeMap::new();
    for rows in rowset.lost.as_slice() {
        // Rows whose keys are lost were neither given back nor deleted by the log, as far as anyone can tell.
        let keys = rowset.keys_of(rows.clone()).unwrap_or_default();
        for (index, row) in rows.clone().enumerate() {
            let key = keys.get(index);
            if !rowset.is_live(row, &history, snapshot).unwrap_or(true) {
                continue;
            }
            if key.is_some_and(|key| is_given(key, played, snapshot)) {
                given_back = true;
            } else if !key.is_some_and(|key| is_deleted(key, played, snapshot)) {
                left.insert(row, ());
            }
        }
    }
    let deleted = match is_whole && !misses_deltas {
        true => Some(0),
        false => unknown_deletes(rowset, &history, snapshot).filter(|deleted| *deleted == 0 || !given_back),
    };
    let left: RowRanges = left.into_keys().map(|row| row..row.saturating_add(1)).collect();
    let reason = |lost: &LostRows, deleted: &str| {
        format!("{}; of its {} rows {deleted} were deleted before", lost.reason, left.count())
    };
    match (deleted, losses.first()) {
        (Some(0), _) => {
            let of_left = |lost: LostRows| {
                let at = lost.positions().map_or_else(RowRanges::none, RowRanges::one).intersect(&left);
                let ranges = at.as_slice().to_vec();
                ranges.into_iter().map(move |rows| LostRows { extent: Extent::At(rows), ..lost.clone() })
            };
            losses.into_iter().flat_map(of_left).collect()
        }
        (_, None) => Vec::new(),
        (Some(deleted), Some(first)) => {
            let count = left.count().saturating_sub(deleted);
            let lost = LostRows {
                extent: Extent::Count(count),
                reason: reason(first, &deleted.to_string()),
                ..first.clone()
            };
            if count == 0 { Vec::new() } else { vec![lost] }
        }
        (None, Some(first)) => {
            let reason = reason(first, "nobody can tell how many");
            vec![LostRows { extent: Extent::Unknown, reason, ..first.clone() }]
        }
    }
}

/// Whether the log gives back a row that exists at a time.
fn is_given(key: &[u8], played: &Played, snapshot: Snapshot) -> bool {
    played.memory.0.get(key).is_some_and(|row| snapshot.includes(row.inserted))
        && !played.unsure.contains(key)
}

/// Whether the log deleted a row that nobody has.
fn is_deleted(key: &[u8], played: &Played, snapshot: Snapshot) -> bool {
    played.deleted.get(key).is_some_and(|at| snapshot.includes(*at))
}

/// How many rows flushed changes have deleted of which no readable file says so; `None` if nobody counted.
fn unknown_deletes(rowset: &RowSet, history: &History, snapshot: Snapshot) -> Option<u64> {
    let counted = rowset.metadata.live_row_count.filter(|_| snapshot == Snapshot::Latest)?;
    let known = (0..rowset.rows).filter(|row| !history.is_live(*row)).count() as u64;
    rowset.rows.checked_sub(counted)?.checked_sub(known)
}
