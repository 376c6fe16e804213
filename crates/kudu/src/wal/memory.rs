//! Rows that were in memory only.

use std::collections::{BTreeMap, HashMap};

use arrow_array::ArrayRef;
use bytes::Bytes;
use pilaster_core::{LossLog, Result};

use crate::tablet::{ChangeKind, ChangeList, KuduColumn, Snapshot, cells_to_array};

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

    /// Its cells at a time; `None` if it did not exist then.
    fn at(&self, snapshot: Snapshot) -> Result<Option<HashMap<i32, Option<Bytes>>>> {
        if !snapshot.includes(self.inserted) {
            return Ok(None);
        }
        let mut cells = self.cells.clone();
        let mut is_live = true;
        for (timestamp, list) in &self.changes {
            if !snapshot.includes(*timestamp) {
                continue;
            }
            let changes = ChangeList::parse(list)?;
            match changes.kind {
                ChangeKind::Delete => is_live = false,
                ChangeKind::Reinsert => is_live = true,
                ChangeKind::Update => {}
            }
            changes.for_each(|id, cell| {
                cells.insert(id, cell.map(Bytes::copy_from_slice));
                Ok(())
            })?;
        }
        Ok(is_live.then_some(cells))
    }
}

/// Rows by encoded primary key.
#[derive(Debug, Clone, Default)]
pub(crate) struct MemoryRows(pub BTreeMap<Vec<u8>, MemoryRow>);

impl MemoryRows {
    /// The rows that exist at a time, in key order, as one array per column, and their number.
    pub fn read(&self, columns: &[KuduColumn], snapshot: Snapshot) -> Result<(Vec<ArrayRef>, usize)> {
        let mut rows = Vec::new();
        for row in self.0.values() {
            rows.extend(row.at(snapshot)?);
        }
        let arrays = columns.iter().map(|column| {
            let cells: Vec<Option<&[u8]>> = rows
                .iter()
                .map(|row| match column.id.and_then(|id| row.get(&id)) {
                    Some(cell) => cell.as_deref(),
                    None => column.read_default.as_deref(),
                })
                .collect();
            cells_to_array(column, &cells)
        });
        Ok((arrays.collect::<Result<_>>()?, rows.len()))
    }

    /// As [`MemoryRows::read`], without the rows that cannot be read, which are noted.
    pub fn read_good(
        &self,
        columns: &[KuduColumn],
        snapshot: Snapshot,
        losses: &LossLog,
    ) -> Result<(Vec<ArrayRef>, usize)> {
        let mut good = BTreeMap::new();
        for (key, row) in &self.0 {
            let alone = Self(BTreeMap::from([(key.clone(), row.clone())]));
            match alone.read(columns, snapshot) {
                Ok(_) => good.extend(alone.0),
                Err(error) => losses.record(0..0, None, &error),
            }
        }
        Self(good).read(columns, snapshot)
    }

    /// Encoded keys of the first and the last row.
    pub fn key_range(&self) -> Option<(&[u8], &[u8])> {
        let (first, _) = self.0.first_key_value()?;
        let (last, _) = self.0.last_key_value()?;
        Some((first, last))
    }
}
