//! How a tablet is cut: which of its rowsets overlap, and which stretches of its key space can be read on their own.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use pilaster_core::{Result, RowRanges};

use super::key_range::KeyRange;
use super::rowset::RowSet;
use crate::wal::MemoryRows;
use pilaster_core::plan::TASK_ROWS;

/// A cut through more rowsets than this costs more look-ups than reading without a merge saves.
const MOST_CUT_THROUGH: usize = 1;

/// More pieces than this are not made of one stretch.
const MOST_PIECES: u64 = 256;

/// Above so many ranges of keys in a rowset, all between the first and the last are read.
const MOST_LOOK_UPS: usize = 256;

/// A stretch of a tablet's key space, to be read on its own.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    keys: KeyRange,
    /// Only these rows of its only rowset.
    rows: Option<Range<u64>>,
    rowsets: Vec<Arc<RowSet>>,
    /// Rows that were in memory only.
    memory: Option<Arc<MemoryRows>>,
    /// About how much there is to read.
    pub bytes: u64,
}

/// The rows of a unit, found.
#[derive(Debug)]
pub(crate) struct UnitRows {
    /// Rowsets and the rows of each; never none.
    pub rowsets: Vec<(Arc<RowSet>, RowRanges)>,
    /// Rows that were in memory only, and between which keys.
    pub memory: Option<(Arc<MemoryRows>, Vec<KeyRange>)>,
}

/// Cuts a tablet into units, in key order. Nothing is read for it.
pub(crate) fn units(rowsets: &[Arc<RowSet>], memory: &Arc<MemoryRows>) -> Vec<Unit> {
    // Files of a rowset that is lost as a whole may not even be there.
    let members = rowsets.iter().filter(|rowset| !rowset.intact(0..rowset.rows).is_empty());
    let mut members: Vec<_> = members.map(|rowset| (rowset.keys(), rowset)).collect();
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let edges = cuts(&members, memory);
    let starts = std::iter::once(Vec::new()).chain(edges.iter().cloned());
    let ends = edges.iter().cloned().chain([Vec::new()]);
    let mut units: Vec<Unit> = Vec::new();
    let mut coming = members.iter().peekable();
    let mut here: Vec<&(KeyRange, &Arc<RowSet>)> = Vec::new();
    let mut shares: HashMap<i64, u64> = HashMap::new();
    for (start, end) in starts.zip(ends) {
        let keys = KeyRange { start, end };
        here.retain(|(range, _)| !range.intersect(&keys).is_empty());
        while let Some(member) = coming.next_if(|(range, _)| keys.end.is_empty() || range.start < keys.end) {
            here.push(member);
        }
        let memory = memory.has_any(&keys).then(|| Arc::clone(memory));
        if !here.is_empty() || memory.is_some() {
            let rowsets: Vec<_> = here.iter().map(|(_, rowset)| Arc::clone(rowset)).collect();
            for rowset in &rowsets {
                let share = shares.entry(rowset.metadata.id).or_default();
                *share = share.saturating_add(1);
            }
            units.push(Unit { keys, rows: None, rowsets, memory, bytes: 0 });
        }
    }
    for unit in &mut units {
        let share = |rowset: &Arc<RowSet>| rowset.size_bytes().checked_div(*shares.get(&rowset.metadata.id)?);
        unit.bytes = unit.rowsets.iter().filter_map(share).sum();
    }
    units
}

/// The keys to cut at: where a rowset or the memory begins or ends, and few rowsets are cut through.
fn cuts(members: &[(KeyRange, &Arc<RowSet>)], memory: &MemoryRows) -> Vec<Vec<u8>> {
    // Rows of damaged rowsets cannot be found by key.
    let is_tolerant = members.iter().any(|(_, rowset)| rowset.is_tolerant);
    let most = if is_tolerant { 0 } else { MOST_CUT_THROUGH };
    let starts: Vec<&[u8]> = members.iter().map(|(range, _)| range.start.as_slice()).collect();
    let ends = members.iter().map(|(range, _)| range.end.as_slice()).filter(|end| !end.is_empty());
    let mut ends: Vec<&[u8]> = ends.collect();
    ends.sort_unstable();
    let in_memory = memory.key_range().map(|(first, last)| KeyRange::closed(first, last));
    let of_memory = in_memory.iter().flat_map(|range| [range.start.as_slice(), range.end.as_slice()]);
    let mut edges: Vec<&[u8]> = starts.iter().chain(&ends).copied().chain(of_memory).collect();
    edges.sort_unstable();
    edges.dedup();
    let cut_through = |edge: &&[u8]| {
        let begun = starts.partition_point(|start| start < edge);
        begun.saturating_sub(ends.partition_point(|end| end <= edge))
    };
    let worth = |edge: &&[u8]| !edge.is_empty() && cut_through(edge) <= most;
    edges.into_iter().filter(worth).map(<[u8]>::to_vec).collect()
}

impl Unit {
    /// Cuts what is large into pieces for threads. That needs some keys; where damage hides them, there is one piece.
    pub fn cut(self) -> Result<Vec<Self>> {
        let all: u64 = self.rowsets.iter().map(|rowset| rowset.rows).sum();
        let count = all.div_ceil(TASK_ROWS).min(MOST_PIECES);
        if count < 2 || self.rowsets.iter().any(|rowset| rowset.is_tolerant) {
            return Ok(vec![self]);
        }
        let pieces = match (self.rowsets.as_slice(), &self.memory) {
            ([only], None) => only.rows_in(&self.keys).map(|rows| self.cut_by_rows(&rows)),
            _ => self.cut_by_keys(count),
        };
        let mut pieces = match pieces {
            Err(error) if error.is_damage() => vec![self],
            pieces => pieces?,
        };
        let share = pieces.len() as u64;
        pieces.iter_mut().for_each(|piece| piece.bytes = piece.bytes.checked_div(share).unwrap_or_default());
        Ok(pieces)
    }

    /// A rowset alone needs no merge, so any stretch of its rows is a unit.
    fn cut_by_rows(&self, rows: &Range<u64>) -> Vec<Self> {
        let mut pieces = Vec::new();
        let mut start = rows.start;
        while start < rows.end {
            let number = start.checked_div(TASK_ROWS).unwrap_or_default().saturating_add(1);
            let end = rows.end.min(number.saturating_mul(TASK_ROWS));
            pieces.push(Self { rows: Some(start..end), ..self.clone() });
            start = end;
        }
        pieces
    }

    /// Pieces of about as many rows of the largest rowset.
    fn cut_by_keys(&self, count: u64) -> Result<Vec<Self>> {
        let Some(largest) = self.rowsets.iter().max_by_key(|rowset| rowset.rows) else {
            return Ok(vec![self.clone()]);
        };
        let rows = largest.rows_in(&self.keys)?;
        let step = rows.end.saturating_sub(rows.start).div_ceil(count).max(1);
        let mut pieces = Vec::new();
        let mut rest = self.keys.clone();
        let mut row = rows.start.saturating_add(step);
        while row < rows.end {
            let key = largest.key_of(row)?;
            // Damage may hide in keys that do not ascend.
            if key > rest.start && rest.reaches(&key) {
                pieces.push(self.piece(KeyRange { start: rest.start, end: key.clone() }));
                rest.start = key;
            }
            row = row.saturating_add(step);
        }
        pieces.push(self.piece(rest));
        Ok(pieces)
    }

    /// The part of it between keys.
    fn piece(&self, keys: KeyRange) -> Self {
        let overlaps = |rowset: &&Arc<RowSet>| !rowset.keys().intersect(&keys).is_empty();
        let rowsets = self.rowsets.iter().filter(overlaps).cloned().collect();
        let memory = self.memory.clone().filter(|memory| memory.has_any(&keys));
        Self { keys, rows: None, rowsets, memory, bytes: self.bytes }
    }

    /// Whether it may have rows with keys in one of the ranges. Nothing is read for it.
    pub fn may_hold(&self, wanted: &[KeyRange]) -> bool {
        let members = |keys: &KeyRange| {
            let mut rowsets = self.rowsets.iter();
            rowsets.any(|rowset| !rowset.keys().intersect(keys).is_empty())
                || self.memory.as_ref().is_some_and(|memory| memory.has_any(keys))
        };
        let mut here = wanted.iter().map(|range| range.intersect(&self.keys));
        here.any(|keys| !keys.is_empty() && members(&keys))
    }

    /// Finds its rows with keys in one of the `wanted` ranges; all its rows without such.
    pub fn find(&self, wanted: Option<&[KeyRange]>) -> Result<UnitRows> {
        let keys = match wanted {
            None => vec![self.keys.clone()],
            Some(wanted) => wanted
                .iter()
                .map(|range| range.intersect(&self.keys))
                .filter(|range| !range.is_empty())
                .collect(),
        };
        let mut rowsets = Vec::with_capacity(self.rowsets.len());
        for rowset in &self.rowsets {
            let mut rows = find_rows(rowset, &keys)?;
            if let Some(only) = &self.rows {
                rows = rows.intersect(&RowRanges::one(only.clone()));
            }
            let rows = rows.intersect(&rowset.intact(0..rowset.rows));
            if !rows.is_empty() {
                rowsets.push((Arc::clone(rowset), rows));
            }
        }
        let memory = self.memory.as_ref().and_then(|memory| {
            let keys: Vec<_> = keys.into_iter().filter(|keys| memory.has_any(keys)).collect();
            (!keys.is_empty()).then(|| (Arc::clone(memory), keys))
        });
        Ok(UnitRows { rowsets, memory })
    }
}

/// The rows of a rowset in any of some ascending ranges of keys.
fn find_rows(rowset: &RowSet, keys: &[KeyRange]) -> Result<RowRanges> {
    let own = rowset.keys();
    let keys: Vec<_> = keys.iter().filter(|range| !range.intersect(&own).is_empty()).collect();
    match keys.as_slice() {
        [first, .., last] if keys.len() > MOST_LOOK_UPS => {
            let hull = KeyRange { start: first.start.clone(), end: last.end.clone() };
            Ok(RowRanges::one(rowset.rows_in(&hull)?))
        }
        keys => keys.iter().map(|range| rowset.rows_in(range)).collect(),
    }
}
