//! The rows of a tablet in key order: which rowsets overlap, and how each is read.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_select::filter::FilterBuilder;
use bytes::Bytes;
use pilaster_core::{LossLog, Result};

use super::merge::{KeyedRows, Merge, SomeRows};
use super::rowset::{RowSet, RowSetReader, Snapshot};
use super::schema::KuduColumn;
use crate::cfile::SPLIT_ROWS;
use crate::wal::MemoryRows;

/// A stretch of a tablet's key space: rows that must be merged with each other and with nothing else.
#[derive(Debug, Clone)]
pub(crate) struct Unit {
    /// Rowsets and the rows of each.
    pub rowsets: Vec<(Arc<RowSet>, Range<u64>)>,
    /// Rows that were in memory only.
    pub memory: Option<Arc<MemoryRows>>,
}

/// Cuts a tablet into units, in key order: rowsets whose key ranges overlap belong together; a rowset alone is cut into
/// stretches of rows.
pub(crate) fn units(rowsets: &[Arc<RowSet>], memory: &Arc<MemoryRows>, keys: &KeyRange) -> Result<Vec<Unit>> {
    enum Member {
        RowSet(Arc<RowSet>, Range<u64>),
        Memory,
    }
    let mut members: Vec<(Vec<u8>, Vec<u8>, Member)> = Vec::new();
    for rowset in rowsets {
        let (min, max) =
            rowset.key_range().unwrap_or_else(|| (Bytes::new(), Bytes::from_static(&[0xff; 64])));
        if !keys.overlaps(&min, &max) {
            continue;
        }
        let rows = rowset.rows_between(&keys.start, &keys.end)?;
        // Files of a rowset that is lost as a whole may not even be there.
        if !rowset.intact(rows.clone()).is_empty() {
            members.push((min.to_vec(), max.to_vec(), Member::RowSet(Arc::clone(rowset), rows)));
        }
    }
    if let Some((min, max)) = memory.key_range()
        && keys.overlaps(min, max)
    {
        members.push((min.to_vec(), max.to_vec(), Member::Memory));
    }
    members.sort_by(|a, b| a.0.cmp(&b.0));
    let mut units: Vec<Unit> = Vec::new();
    let mut end: Option<Vec<u8>> = None;
    for (min, max, member) in members {
        let is_new = end.as_ref().is_none_or(|end| min > *end);
        if is_new {
            units.push(Unit { rowsets: Vec::new(), memory: None });
        }
        end = Some(match end {
            Some(end) if !is_new => end.max(max),
            _ => max,
        });
        if let Some(unit) = units.last_mut() {
            match member {
                Member::RowSet(rowset, rows) => unit.rowsets.push((rowset, rows)),
                Member::Memory => unit.memory = Some(Arc::clone(memory)),
            }
        }
    }
    Ok(units.into_iter().flat_map(cut).collect())
}

/// A rowset alone needs no merge, so any stretch of its rows is a unit.
fn cut(unit: Unit) -> Vec<Unit> {
    let ([(rowset, rows)], None) = (unit.rowsets.as_slice(), &unit.memory) else { return vec![unit] };
    let mut pieces = Vec::new();
    let mut start = rows.start;
    while start < rows.end {
        let boundary =
            start.checked_div(SPLIT_ROWS).unwrap_or_default().saturating_add(1).saturating_mul(SPLIT_ROWS);
        let end = rows.end.min(boundary);
        pieces.push(Unit { rowsets: vec![(Arc::clone(rowset), start..end)], memory: None });
        start = end;
    }
    pieces
}

impl Unit {
    /// The part of the unit whose keys lie in a range; `None` if there is none.
    pub fn within(self, keys: &KeyRange) -> Result<Option<Self>> {
        let mut rowsets = Vec::with_capacity(self.rowsets.len());
        for (rowset, rows) in self.rowsets {
            let found = rowset.rows_between(&keys.start, &keys.end)?;
            let rows = rows.start.max(found.start)..rows.end.min(found.end);
            if !rows.is_empty() {
                rowsets.push((rowset, rows));
            }
        }
        let overlaps =
            |memory: &Arc<MemoryRows>| memory.key_range().is_some_and(|(min, max)| keys.overlaps(min, max));
        let memory = self.memory.filter(overlaps);
        Ok((!rowsets.is_empty() || memory.is_some()).then_some(Self { rowsets, memory }))
    }

    /// The only rowset of the unit, if no change touches these columns or the existence of its rows.
    pub fn plain(&self, columns: &[KuduColumn], snapshot: Snapshot) -> Option<(&Arc<RowSet>, &Range<u64>)> {
        let ([(rowset, rows)], None) = (self.rowsets.as_slice(), &self.memory) else { return None };
        let ids: Vec<i32> = columns.iter().filter_map(|column| column.id).collect();
        rowset.is_plain(&ids, snapshot).then_some((rowset, rows))
    }

    /// Reads `columns` of the unit's live rows in key order; `keys` are read too where rows must be merged. With `losses`
    /// keys that are live twice are noted and left out.
    pub fn read(
        &self,
        columns: &[KuduColumn],
        keys: &[KuduColumn],
        snapshot: Snapshot,
        batch_size: usize,
        losses: Option<Arc<LossLog>>,
    ) -> Result<UnitRows> {
        if self.rowsets.len().saturating_add(usize::from(self.memory.is_some())) == 1 {
            let mut sources = self.sources(columns, snapshot, batch_size, losses.as_ref())?;
            return Ok(UnitRows::Single(sources.swap_remove(0)));
        }
        let others = columns.iter().filter(|column| !keys.contains(column));
        let all: Vec<KuduColumn> = keys.iter().chain(others).cloned().collect();
        let key_types = keys.iter().map(|column| column.field().data_type().clone()).collect();
        let sources = self.sources(&all, snapshot, batch_size, losses.as_ref())?;
        let merge = Merge::new(sources, key_types, batch_size, losses)?;
        let positions =
            columns.iter().filter_map(|column| all.iter().position(|known| known == column)).collect();
        Ok(UnitRows::Merged { merge: Box::new(merge), positions })
    }

    fn sources(
        &self,
        columns: &[KuduColumn],
        snapshot: Snapshot,
        batch_size: usize,
        losses: Option<&Arc<LossLog>>,
    ) -> Result<Vec<Box<dyn KeyedRows>>> {
        let mut sources: Vec<Box<dyn KeyedRows>> = Vec::new();
        for (rowset, rows) in &self.rowsets {
            let intact = rowset.intact(rows.clone());
            let reader = rowset.reader(columns, snapshot, &intact)?;
            let pending = intact.as_slice().iter().rev().cloned().collect();
            let losses = losses.map(Arc::clone);
            sources.push(Box::new(RowSetRows { reader, pending, batch_size: batch_size as u64, losses }));
        }
        if let Some(memory) = &self.memory {
            let (arrays, count) = match (memory.read(columns, snapshot), losses) {
                (Err(_), Some(losses)) => memory.read_good(columns, snapshot, losses)?,
                (read, _) => read?,
            };
            sources.push(Box::new(MemoryBatches { arrays, pending: 0..count, batch_size }));
        }
        Ok(sources)
    }
}

/// The rows of a unit.
pub(crate) enum UnitRows {
    Single(Box<dyn KeyedRows>),
    /// Merged rows, with more columns than were asked for: where those stand.
    Merged {
        merge: Box<Merge>,
        positions: Vec<usize>,
    },
}

impl UnitRows {
    pub fn next(&mut self) -> Result<Option<SomeRows>> {
        match self {
            Self::Single(rows) => rows.next(),
            Self::Merged { merge, positions } => Ok(merge.next()?.map(|rows| SomeRows {
                arrays: positions.iter().filter_map(|at| rows.arrays.get(*at).cloned()).collect(),
                count: rows.count,
            })),
        }
    }
}

/// A rowset's live rows, batch by batch.
struct RowSetRows {
    reader: RowSetReader,
    /// What is still to read, the next at the end.
    pending: Vec<Range<u64>>,
    batch_size: u64,
    /// Where rows are noted that cannot be read; without it they end the scan.
    losses: Option<Arc<LossLog>>,
}

impl KeyedRows for RowSetRows {
    fn next(&mut self) -> Result<Option<SomeRows>> {
        while let Some(range) = self.pending.pop() {
            let start = range.start;
            let boundary = start
                .checked_div(self.batch_size)
                .unwrap_or_default()
                .saturating_add(1)
                .saturating_mul(self.batch_size);
            let end = range.end.min(boundary);
            if end < range.end {
                self.pending.push(end..range.end);
            }
            let (arrays, live) = match (self.reader.read(start..end), &self.losses) {
                (Ok(read), _) => read,
                (Err(error), None) => return Err(error),
                // Smaller and smaller stretches, until only the rows that cannot be read are left out.
                (Err(_), Some(_)) if end.saturating_sub(start) > 1 => {
                    let middle = start.midpoint(end);
                    self.pending.extend([middle..end, start..middle]);
                    continue;
                }
                (Err(error), Some(losses)) => {
                    losses.record(start..end, None, &error);
                    continue;
                }
            };
            let all = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
            let Some(live) = live else { return Ok(Some(SomeRows { arrays, count: all })) };
            let count = live.true_count();
            if count == live.len() {
                return Ok(Some(SomeRows { arrays, count }));
            }
            if count > 0 {
                let filter = FilterBuilder::new(&live).optimize().build();
                let arrays =
                    arrays.iter().map(|array| Ok(filter.filter(array)?)).collect::<Result<Vec<_>>>()?;
                return Ok(Some(SomeRows { arrays, count }));
            }
        }
        Ok(None)
    }
}

/// Rows of memory, batch by batch.
struct MemoryBatches {
    arrays: Vec<ArrayRef>,
    pending: Range<usize>,
    batch_size: usize,
}

impl KeyedRows for MemoryBatches {
    fn next(&mut self) -> Result<Option<SomeRows>> {
        let count = self.pending.len().min(self.batch_size);
        if count == 0 {
            return Ok(None);
        }
        let start = self.pending.start;
        self.pending.start = start.saturating_add(count);
        let arrays = self.arrays.iter().map(|array| array.slice(start, count)).collect();
        Ok(Some(SomeRows { arrays, count }))
    }
}

/// A range of encoded keys: start inclusive, end exclusive; an empty end means no end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
}

impl KeyRange {
    /// Whether a stretch of keys, both ends inclusive, has any in common with this.
    fn overlaps(&self, min: &[u8], max: &[u8]) -> bool {
        max >= self.start.as_slice() && (self.end.is_empty() || min < self.end.as_slice())
    }
}
