//! Reading everything of a rowset once, to know which rows can be given.

use std::ops::Range;
use std::sync::Arc;

use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, LostRows, Result, RowRanges};

use super::cells;
use super::change::ChangeList;
use super::delta::DeltaFile;
use super::rowset::RowSet;
use super::schema::{KuduColumn, KuduSchema};
use crate::cfile::{CFile, CellCursor};

impl RowSet {
    /// The rows with a cell or a change that cannot be read.
    pub fn probe(&mut self, schema: &KuduSchema, needs_undo: bool) -> Vec<LostRows> {
        let mut losses = Vec::new();
        for column in &schema.columns {
            let lost = |(rows, error): (Range<u64>, Error)| {
                LostRows::at(rows, error.to_string()).of_column(column.name.clone())
            };
            losses.extend(self.probe_column(column).into_iter().map(lost));
        }
        let undo = self.undo.iter().filter(|_| needs_undo);
        let deltas = self.redo.iter().chain(undo).flat_map(|delta| delta.damaged_rows());
        let lost = |(rows, error): (Range<u64>, Error)| {
            LostRows::at(rows.start..rows.end.min(self.rows), error.to_string())
        };
        losses.extend(deltas.map(lost));
        // Keys can be made again from their columns.
        if let Some(index) = self.key_index_file()
            && (!has_sound_index(&index) || !damaged_rows(&index, self.rows).is_empty())
            && let Err(error) = self.make_key_index(schema)
            && losses.is_empty()
        {
            losses.push(LostRows::at(0..self.rows, error.to_string()));
        }
        self.is_tolerant = true;
        losses
    }

    fn probe_column(&self, column: &KuduColumn) -> Vec<(Range<u64>, Error)> {
        let all = 0..self.rows;
        match self.column(column) {
            Ok(Some(file)) => damaged_rows(&file, self.rows),
            Ok(None) => cells::default_array(column, 1).err().map(|error| (all, error)).into_iter().collect(),
            Err(error) => vec![(all, error)],
        }
    }
}

/// Whether every node of the index by key can be read.
fn has_sound_index(file: &CFile) -> bool {
    file.by_value.as_ref().is_some_and(|tree| tree.entries(&file.store).is_ok())
}

/// The stretches of a column that cannot be read.
fn damaged_rows(file: &Arc<CFile>, rows: u64) -> Vec<(Range<u64>, Error)> {
    let mut cursor = CellCursor::new(Arc::clone(file), RowRanges::none());
    cursor.probe(0..rows).into_iter().filter_map(|(rows, error)| Some((rows, error?))).collect()
}

impl DeltaFile {
    /// The rows with a change that cannot be read.
    fn damaged_rows(self: &Arc<Self>) -> Vec<(Range<u64>, Error)> {
        let mut damaged = Vec::new();
        let starts = self.first_rows();
        for (index, start) in starts.iter().enumerate() {
            // The changes of a row may go on in the next block.
            let next = starts.get(index.saturating_add(1)).map_or(u64::MAX, |next| next.saturating_add(1));
            let check = |_: u64, _: u64, list: &[u8]| -> Result<()> {
                ChangeList::parse(list)?.for_each(|_, _| Ok(()))
            };
            if let Err(error) = self.cursor().for_each_of_block(index, check) {
                damaged.push((*start..next, error));
            }
        }
        damaged
    }
}
