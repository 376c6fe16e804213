//! Rows that were in memory only.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use arrow_array::ArrayRef;
use bytes::Bytes;
use pilaster_core::{LossLog, Result};

use crate::tablet::{ChangeKind, ChangeList, KeyRange, KuduColumn, Snapshot, cells_to_array};

/// A row of a memory store.
#[derive(Debug, Clone)]
pub(crate) struct MemoryRow {
    /// When it was inserted (or its transaction committed).
    pub inserted: u64,
    /// Its cells by column id.
    pub cells: HashMap<i32, Option<Bytes>>,
    /// What happened to it since, in order: timestamp and list.
    pub changes: Vec<(u64, Bytes)>,
}

impl MemoryRow {
    /// Whether it exists when all its changes are applied.
    pub fn is_live(&self) -> Result<bool> {
        let mut is_live = true;
        for (_, list) in &self.changes {
            match ChangeList::parse(list)?.kind {
                ChangeKind::Delete => is_live = false,
                ChangeKind::Reinsert => is_live = true,
                ChangeKind::Update => {}
            }
        }
        Ok(is_live)
    }

    /// When it last got all its cells at once: what happened before no longer shows.
    pub fn made_whole_at(&self) -> u64 {
        let reinserts = self
            .changes
            .iter()
            .filter(|(_, list)| ChangeList::parse(list).is_ok_and(|list| list.kind == ChangeKind::Reinsert));
        reinserts.map(|(timestamp, _)| *timestamp).max().unwrap_or_default().max(self.inserted)
    }

    /// Adds its cells at a time to those of each column; whether it existed then. What was added for a row that did not
    /// exist, or that cannot be read, is taken away again.
    fn push_cells<'a>(
        &'a self,
        columns: &'a [KuduColumn],
        snapshot: Snapshot,
        cells: &mut [Vec<Option<&'a [u8]>>],
    ) -> Result<bool> {
        if !snapshot.includes(self.inserted) {
            return Ok(false);
        }
        for (column, cells) in columns.iter().zip(cells.iter_mut()) {
            cells.push(match column.id.and_then(|id| self.cells.get(&id)) {
                Some(cell) => cell.as_deref(),
                None => column.read_default.as_deref(),
            });
        }
        let changed = self.apply_changes(columns, snapshot, cells);
        if !matches!(changed, Ok(true)) {
            cells.iter_mut().for_each(|cells| {
                cells.pop();
            });
        }
        changed
    }

    /// Applies its changes to the last cell of each column; whether it exists after them.
    fn apply_changes<'a>(
        &'a self,
        columns: &[KuduColumn],
        snapshot: Snapshot,
        cells: &mut [Vec<Option<&'a [u8]>>],
    ) -> Result<bool> {
        let mut is_live = true;
        for (_, list) in self.changes.iter().filter(|(timestamp, _)| snapshot.includes(*timestamp)) {
            let changes = ChangeList::parse(list)?;
            match changes.kind {
                ChangeKind::Delete => is_live = false,
                ChangeKind::Reinsert => is_live = true,
                ChangeKind::Update => {}
            }
            changes.for_each(|id, cell| {
                let of_id = columns.iter().zip(cells.iter_mut()).filter(|(column, _)| column.id == Some(id));
                of_id.filter_map(|(_, cells)| cells.last_mut()).for_each(|last| *last = cell);
                Ok(())
            })?;
        }
        Ok(is_live)
    }
}

/// Rows by encoded primary key.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryRows(pub BTreeMap<Vec<u8>, MemoryRow>);

impl MemoryRows {
    /// Encoded keys of the first and the last row.
    pub fn key_range(&self) -> Option<(&[u8], &[u8])> {
        let (first, _) = self.0.first_key_value()?;
        let (last, _) = self.0.last_key_value()?;
        Some((first, last))
    }

    /// Whether any row has a key in the range.
    pub fn has_any(&self, keys: &KeyRange) -> bool {
        self.between(keys, None).next().is_some()
    }

    /// The rows with keys in a range, after the key `after` if there is one.
    fn between<'a, 'k>(
        &'a self,
        keys: &'k KeyRange,
        after: Option<&'k [u8]>,
    ) -> impl Iterator<Item = (&'a Vec<u8>, &'a MemoryRow)> + use<'a, 'k> {
        let start = match after {
            Some(key) => Bound::Excluded(key),
            None => Bound::Included(keys.start.as_slice()),
        };
        let rows = self.0.range::<[u8], _>((start, Bound::Unbounded));
        rows.take_while(|(key, _)| keys.end.is_empty() || **key < keys.end)
    }
}

/// Reads the rows of memory with keys in some ranges, batch by batch.
#[derive(Debug)]
pub(crate) struct MemoryCursor {
    memory: Arc<MemoryRows>,
    /// What is still to read, the next at the end.
    pending: Vec<KeyRange>,
    /// The last key read of the next range.
    after: Option<Vec<u8>>,
}

impl MemoryCursor {
    /// Reads the rows between `keys`, which ascend.
    pub fn new(memory: Arc<MemoryRows>, mut keys: Vec<KeyRange>) -> Self {
        keys.reverse();
        Self { memory, pending: keys, after: None }
    }

    /// The next rows that exist at a time, at most `most`, in key order: an array for each column, and their number, which is
    /// never none. With `losses`, rows that cannot be read are noted there and left out.
    pub fn next(
        &mut self,
        columns: &[KuduColumn],
        snapshot: Snapshot,
        most: usize,
        losses: Option<&LossLog>,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let memory = Arc::clone(&self.memory);
        let mut cells: Vec<Vec<Option<&[u8]>>> = vec![Vec::new(); columns.len()];
        let mut count = 0;
        while let Some(keys) = self.pending.last() {
            let mut last = None;
            for (key, row) in memory.between(keys, self.after.as_deref()) {
                last = Some(key);
                match (row.push_cells(columns, snapshot, &mut cells), losses) {
                    (Ok(true), Some(losses)) if !is_readable(columns, &mut cells, losses) => {}
                    (Ok(is_live), _) => count = usize::from(is_live).saturating_add(count),
                    (Err(error), None) => return Err(error),
                    (Err(error), Some(losses)) => losses.record_unknown(&error),
                }
                if count >= most {
                    break;
                }
            }
            if count >= most {
                self.after = last.cloned();
                break;
            }
            self.after = None;
            self.pending.pop();
        }
        if count == 0 {
            return Ok(None);
        }
        let arrays = columns.iter().zip(&cells).map(|(column, cells)| cells_to_array(column, cells));
        Ok(Some((arrays.collect::<Result<_>>()?, count)))
    }
}

/// Whether the last cells make a row; if not, that is noted and they are taken away.
fn is_readable(columns: &[KuduColumn], cells: &mut [Vec<Option<&[u8]>>], losses: &LossLog) -> bool {
    let last = |cells: &Vec<Option<_>>| cells.last().copied().flatten();
    let mut of_row = columns.iter().zip(cells.iter());
    let damage = of_row.find_map(|(column, cells)| cells_to_array(column, &[last(cells)]).err());
    if let Some(error) = &damage {
        losses.record_unknown(error);
        cells.iter_mut().for_each(|cells| {
            cells.pop();
        });
    }
    damage.is_none()
}
