//! Stretches of a rowset's rows as they were at a time: base values, and what changes make of them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow_array::ArrayRef;
use bytes::Bytes;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::source::READ_AHEAD_BYTES;
use pilaster_core::{Result, RowRanges, ScanMemory};

use super::cells;
use super::delta::{DeltaCursor, DeltaFile};
use super::overlay::Overlay;
use super::rowset::{RowSet, Snapshot};
use super::schema::KuduColumn;
use crate::cfile::CellCursor;

/// Bytes that all columns read at once fetch ahead together, at most.
const SHARED_READ_AHEAD_BYTES: u64 = 64 << 20;

/// How many bytes of a column are fetched in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReadAhead(u64);

impl Default for ReadAhead {
    fn default() -> Self {
        Self(READ_AHEAD_BYTES)
    }
}

impl ReadAhead {
    /// What is left for each of so many columns.
    pub fn shared_by(columns: usize) -> Self {
        let share = SHARED_READ_AHEAD_BYTES.checked_div(columns as u64);
        Self(share.map_or(READ_AHEAD_BYTES, |share| share.min(READ_AHEAD_BYTES)))
    }
}

/// Reads a rowset at one point in time.
#[derive(Debug)]
pub(crate) struct RowSetReader {
    rowset: Arc<RowSet>,
    columns: Vec<ReadColumn>,
    positions: HashMap<i32, usize>,
    undo: Vec<DeltaCursor>,
    redo: Vec<DeltaCursor>,
    snapshot: Snapshot,
    ahead: ReadAhead,
    /// Unless there is one, each column has a budget of its own.
    memory: Option<ScanMemory>,
}

/// A column being read; its file is opened when the first of its values are asked for.
#[derive(Debug)]
struct ReadColumn {
    column: KuduColumn,
    /// Rows that will all be asked for.
    wanted: RowRanges,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Unopened,
    Stored(Box<CellCursor>),
    /// The rowset was written before the column existed.
    Default,
}

impl ReadColumn {
    fn read(
        &mut self,
        rows: &Range<u64>,
        rowset: &RowSet,
        ahead: ReadAhead,
        memory: Option<&ScanMemory>,
    ) -> Result<ArrayRef> {
        if matches!(self.values, Values::Unopened) {
            self.values = match rowset.column(&self.column)? {
                None => Values::Default,
                Some(file) => {
                    let cursor = CellCursor::new(file, self.wanted.clone()).with_read_ahead(ahead.0);
                    let cursor = match memory {
                        Some(memory) => cursor.within(memory),
                        None => cursor,
                    };
                    Values::Stored(Box::new(if rowset.is_tolerant { cursor.over_damage() } else { cursor }))
                }
            };
        }
        match &mut self.values {
            Values::Stored(cursor) => cursor.read(rows.clone()),
            Values::Unopened | Values::Default => {
                let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
                cells::default_array(&self.column, count)
            }
        }
    }
}

impl RowSet {
    /// Reads `columns` at `snapshot`. Of the first `certain` columns all of the `wanted` rows will be asked for, of the others
    /// nobody knows.
    pub fn reader(
        self: &Arc<Self>,
        columns: &[KuduColumn],
        certain: usize,
        snapshot: Snapshot,
        wanted: &RowRanges,
        ahead: ReadAhead,
    ) -> RowSetReader {
        let ids: Vec<i32> = columns.iter().filter_map(|column| column.id).collect();
        let columns = columns.iter().enumerate().map(|(number, column)| ReadColumn {
            column: column.clone(),
            wanted: if number < certain { wanted.clone() } else { RowRanges::none() },
            values: Values::Unopened,
        });
        let columns: Vec<_> = columns.collect();
        let positions = columns.iter().enumerate().filter_map(|(at, read)| Some((read.column.id?, at)));
        let redo = self.relevant(&self.redo, &ids, |delta| snapshot.includes(delta.timestamps().0));
        // Latest needs no UNDO at all; otherwise those with a change at or after the time.
        let undo = self.relevant(&self.undo, &ids, |delta| !snapshot.includes(delta.timestamps().1));
        RowSetReader {
            undo: undo.iter().map(DeltaFile::cursor).collect(),
            redo: redo.iter().map(DeltaFile::cursor).collect(),
            positions: positions.collect(),
            columns,
            rowset: Arc::clone(self),
            snapshot,
            ahead,
            memory: None,
        }
    }
}

impl RowSetReader {
    /// Draws on a budget that it shares with others.
    pub fn within(mut self, memory: &ScanMemory) -> Self {
        self.memory = Some(memory.clone());
        self
    }

    /// The values of some columns, by number, in `rows`, which `overlay` covers.
    pub fn read(
        &mut self,
        columns: Range<usize>,
        rows: &Range<u64>,
        overlay: &Overlay,
    ) -> Result<Vec<ArrayRef>> {
        let Self { rowset, ahead, memory, .. } = self;
        let first = columns.start;
        let columns = self.columns.get_mut(columns).unwrap_or_default().iter_mut().enumerate();
        let arrays = columns.map(|(number, read)| {
            let base = read.read(rows, rowset, *ahead, memory.as_ref())?;
            overlay.laid_over(first.saturating_add(number), &read.column, base, rows)
        });
        arrays.collect()
    }

    /// The changes of `rows`, all columns of them.
    pub fn overlay(&mut self, rows: &Range<u64>) -> Result<Overlay> {
        let mut overlay = Overlay::new(self.columns.len(), rows.clone());
        let Self { undo, redo, snapshot, positions, rowset, .. } = self;
        for cursor in undo {
            cursor.for_each(rows.clone(), |row, timestamp, list| {
                if snapshot.includes(timestamp) { Ok(()) } else { overlay.change(row, list, positions) }
            })?;
        }
        // Changes of the log that mix with those of the files are laid between them.
        let mut mixed: BTreeMap<u64, Vec<(u64, Bytes)>> = BTreeMap::new();
        for cursor in redo {
            cursor.for_each(rows.clone(), |row, timestamp, list| {
                if !snapshot.includes(timestamp) {
                    Ok(())
                } else if rowset.log_mixes_with_redo {
                    mixed.entry(row).or_default().push((timestamp, Bytes::copy_from_slice(list)));
                    Ok(())
                } else {
                    overlay.change(row, list, positions)
                }
            })?;
        }
        for (&row, changes) in rowset.log_changes.range(rows.clone()) {
            let visible = changes.iter().filter(|(timestamp, _)| snapshot.includes(*timestamp));
            mixed.entry(row).or_default().extend(visible.cloned());
        }
        for (row, mut changes) in mixed {
            if rowset.log_mixes_with_redo {
                changes.sort_by_key(|(timestamp, _)| *timestamp);
            }
            for (_, list) in changes {
                overlay.change(row, &list, positions)?;
            }
        }
        Ok(overlay.finish())
    }
}
