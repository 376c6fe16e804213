//! When the rows of a rowset came and went, as its delta files have it.

use std::collections::{BTreeSet, HashMap};

use pilaster_core::Result;

use super::change::{ChangeKind, ChangeList};
use super::rowset::{RowSet, Snapshot};

/// Every change of a rowset's files, by row.
#[derive(Debug, Default)]
pub(crate) struct History(HashMap<u64, Vec<Event>>);

/// One change: when, what, and whether it leads back in time.
#[derive(Debug, Clone, Copy)]
struct Event {
    timestamp: u64,
    kind: ChangeKind,
    is_undo: bool,
}

impl History {
    /// Whether a row has a change of this very time.
    pub fn has(&self, row: u64, timestamp: u64) -> bool {
        self.0.get(&row).is_some_and(|events| events.iter().any(|event| event.timestamp == timestamp))
    }

    /// Whether a row exists after all changes that lead forward.
    pub fn is_live(&self, row: u64) -> bool {
        let events = self.0.get(&row).map_or(&[][..], Vec::as_slice);
        events.iter().filter(|event| !event.is_undo).fold(true, |is_live, event| match event.kind {
            ChangeKind::Delete => false,
            ChangeKind::Reinsert => true,
            ChangeKind::Update => is_live,
        })
    }
}

impl RowSet {
    /// Reads all its delta files.
    pub fn history(&self) -> Result<History> {
        let mut history = History::default();
        let undo = self.undo.iter().map(|delta| (delta, true));
        for (delta, is_undo) in undo.chain(self.redo.iter().map(|delta| (delta, false))) {
            delta.cursor().for_each(0..self.rows, |row, timestamp, list| {
                let kind = ChangeList::parse(list)?.kind;
                history.0.entry(row).or_default().push(Event { timestamp, kind, is_undo });
                Ok(())
            })?;
        }
        Ok(history)
    }

    /// As [`RowSet::history`], as far as its delta files can be read; and whether they all can be.
    pub fn readable_history(&self) -> (History, bool) {
        let (mut history, mut is_whole) = (History::default(), true);
        let undo = self.undo.iter().map(|delta| (delta, true));
        for (delta, is_undo) in undo.chain(self.redo.iter().map(|delta| (delta, false))) {
            for number in 0..delta.first_rows().len() {
                let read = delta.cursor().for_each_of_block(number, |row, timestamp, list| {
                    let kind = ChangeList::parse(list)?.kind;
                    history.0.entry(row).or_default().push(Event { timestamp, kind, is_undo });
                    Ok(())
                });
                // Only changes that lead forward decide whether a row exists now.
                is_whole &= read.is_ok() || is_undo;
            }
        }
        (history, is_whole)
    }

    /// The rows with a change at or after a time in the files that lead back.
    pub fn rows_changed_since(&self, from: u64) -> Result<BTreeSet<u64>> {
        let mut rows = BTreeSet::new();
        for delta in &self.undo {
            delta.cursor().for_each(0..self.rows, |row, timestamp, _| {
                if timestamp >= from {
                    rows.insert(row);
                }
                Ok(())
            })?;
        }
        Ok(rows)
    }

    /// Every change of its files: encoded key and time.
    pub fn changes_by_key(&self) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut changes = Vec::new();
        for delta in self.undo.iter().chain(&self.redo) {
            let mut rows = Vec::new();
            delta.cursor().for_each(0..self.rows, |row, timestamp, _| {
                rows.push((row, timestamp));
                Ok(())
            })?;
            let (Some((first, _)), Some((last, _))) = (rows.first(), rows.last()) else { continue };
            let keys = self.keys_of(*first..last.saturating_add(1))?;
            changes.extend(rows.iter().filter_map(|(row, timestamp)| {
                let index = usize::try_from(row.saturating_sub(*first)).ok()?;
                Some((keys.get(index)?.clone(), *timestamp))
            }));
        }
        Ok(changes)
    }

    /// Whether a row exists at a time, what the log has for it included.
    pub fn is_live(&self, row: u64, history: &History, snapshot: Snapshot) -> Result<bool> {
        let events = history.0.get(&row).map_or(&[][..], Vec::as_slice);
        let of_files = events
            .iter()
            .filter(|event| event.is_undo != snapshot.includes(event.timestamp))
            .map(|event| (event.timestamp, event.kind, event.is_undo));
        let mut applied: Vec<_> = of_files.collect();
        for (timestamp, list) in self.log_changes.get(&row).into_iter().flatten() {
            if snapshot.includes(*timestamp) {
                applied.push((*timestamp, ChangeList::parse(list)?.kind, false));
            }
        }
        if self.log_mixes_with_redo {
            // UNDOs first, as they are; then what leads forward, by time.
            applied.sort_by_key(|(timestamp, _, is_undo)| if *is_undo { 0 } else { *timestamp });
        }
        Ok(applied.iter().fold(true, |is_live, (_, kind, _)| match kind {
            ChangeKind::Delete => false,
            ChangeKind::Reinsert => true,
            ChangeKind::Update => is_live,
        }))
    }
}
