//! What changes make of a stretch of rows: which of them exist, and the cells that are not those of the base.

use std::collections::HashMap;
use std::ops::Range;

use arrow_array::{Array, ArrayRef};
use arrow_buffer::BooleanBuffer;
use arrow_select::interleave::interleave;
use pilaster_core::{Error, Result};

use super::cells;
use super::change::{ChangeKind, ChangeList};
use super::schema::KuduColumn;

/// The changes of a stretch of rows, to be laid over the base values. The last one of a cell counts.
#[derive(Debug)]
pub(crate) struct Overlay {
    rows: Range<u64>,
    deleted: Option<Vec<bool>>,
    /// For each column, in the order of the changes: row of the stretch, and where the new cell stands in `bytes`; `None` is
    /// null.
    columns: Vec<Vec<(usize, Option<Range<usize>>)>>,
    bytes: Vec<u8>,
}

impl Overlay {
    /// No changes yet of so many columns.
    pub fn new(columns: usize, rows: Range<u64>) -> Self {
        Self { rows, deleted: None, columns: vec![Vec::new(); columns], bytes: Vec::new() }
    }

    /// Number of rows in the stretch.
    pub fn count(&self) -> usize {
        usize::try_from(self.rows.end.saturating_sub(self.rows.start)).unwrap_or(usize::MAX)
    }

    /// Adds a change of a row; `positions` says which column has an id.
    pub fn change(&mut self, row: u64, list: &[u8], positions: &HashMap<i32, usize>) -> Result<()> {
        if !self.rows.contains(&row) {
            return Err(Error::corrupt(format!("a change of rows {:?}", self.rows), row));
        }
        let index = usize::try_from(row.saturating_sub(self.rows.start)).unwrap_or(usize::MAX);
        let list = ChangeList::parse(list)?;
        let is_deleted = match list.kind {
            ChangeKind::Delete => Some(true),
            ChangeKind::Reinsert => Some(false),
            ChangeKind::Update => None,
        };
        if let Some(is_deleted) = is_deleted {
            let count = self.count();
            let deleted = self.deleted.get_or_insert_with(|| vec![false; count]);
            if let Some(flag) = deleted.get_mut(index) {
                *flag = is_deleted;
            }
        }
        list.for_each(|id, cell| {
            let column = positions.get(&id).and_then(|position| self.columns.get_mut(*position));
            if let Some(column) = column {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(cell.unwrap_or_default());
                column.push((index, cell.map(|_| start..self.bytes.len())));
            }
            Ok(())
        })
    }

    /// Puts the changes of each row into the order in which they apply, once all are there.
    pub fn finish(mut self) -> Self {
        // Changes of one row stay in their order.
        self.columns.iter_mut().for_each(|changes| changes.sort_by_key(|(row, _)| *row));
        self
    }

    /// Which rows exist; `None` if all do.
    pub fn live(&self) -> Option<BooleanBuffer> {
        let deleted = self.deleted.as_ref().filter(|deleted| deleted.contains(&true))?;
        Some(deleted.iter().map(|is_deleted| !is_deleted).collect())
    }

    /// Column number `number` of `rows`, whose base values are `base`, with its changes.
    pub fn laid_over(
        &self,
        number: usize,
        column: &KuduColumn,
        base: ArrayRef,
        rows: &Range<u64>,
    ) -> Result<ArrayRef> {
        let index = |row: u64| usize::try_from(row.saturating_sub(self.rows.start)).unwrap_or(usize::MAX);
        let (start, end) = (index(rows.start), index(rows.end));
        let changes = self.columns.get(number).map_or(&[][..], Vec::as_slice);
        let from = changes.partition_point(|(row, _)| *row < start);
        let until = changes.partition_point(|(row, _)| *row < end);
        let changes = changes.get(from..until).unwrap_or_default();
        if changes.is_empty() {
            return Ok(base);
        }
        let of_rows = changes.chunk_by(|a, b| a.0 == b.0).filter_map(<[_]>::last);
        let (rows, cells): (Vec<usize>, Vec<Option<&[u8]>>) = of_rows
            .map(|(row, cell)| {
                (row.saturating_sub(start), cell.clone().and_then(|range| self.bytes.get(range)))
            })
            .unzip();
        let updates = cells::to_array(column, &cells)?;
        let mut indexes: Vec<(usize, usize)> = (0..base.len()).map(|row| (0, row)).collect();
        for (number, row) in rows.into_iter().enumerate() {
            if let Some(index) = indexes.get_mut(row) {
                *index = (1, number);
            }
        }
        Ok(interleave(&[base.as_ref(), updates.as_ref()], &indexes)?)
    }
}
