//! A column of a set whose file is missing, torn or damaged as a whole: its lost cells are null, so that the other columns' rows are
//! not lost with it.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_null_array};
use arrow_schema::FieldRef;
use arrow_select::concat::concat;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, LossLog, Result, RowRanges};

use crate::cfile::{CFile, CellCursor};

/// What is left of such a column.
#[derive(Debug)]
pub(super) struct LostColumn {
    /// What is wrong with its file.
    pub reason: Error,
    /// The blocks that were found in a torn file.
    pub found: Option<Arc<CFile>>,
}

/// Reads it; what is null because it is lost is noted.
pub(super) struct LostCursor {
    field: FieldRef,
    reason: Error,
    cells: Option<(CellCursor, u64)>,
    log: Arc<LossLog>,
}

impl LostCursor {
    pub fn new(column: &LostColumn, field: &FieldRef, log: &Arc<LossLog>) -> Self {
        let open = |file: &Arc<CFile>| {
            let rows = file.metadata().num_values;
            (CellCursor::new(Arc::clone(file), RowRanges::none()), rows)
        };
        Self {
            field: Arc::clone(field),
            reason: column.reason.clone(),
            cells: column.found.as_ref().map(open),
            log: Arc::clone(log),
        }
    }

    /// `rows` in stretches, and whether each is there.
    fn stretches(&mut self, rows: &Range<u64>) -> Vec<(Range<u64>, bool)> {
        let Some((cells, found)) = &mut self.cells else { return vec![(rows.clone(), false)] };
        let known = rows.start..rows.end.min(*found);
        let mut stretches = Vec::new();
        if !known.is_empty() {
            // A lost stretch may reach past what was asked for.
            stretches.extend(cells.probe(known).into_iter().map(|(stretch, damage)| {
                (stretch.start.max(rows.start)..stretch.end.min(rows.end), damage.is_none())
            }));
        }
        let rest = rows.start.max(*found)..rows.end;
        if !rest.is_empty() {
            stretches.push((rest, false));
        }
        stretches
    }
}

impl ColumnCursor for LostCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        let mut parts = Vec::new();
        for (stretch, is_there) in self.stretches(&rows) {
            let length = usize::try_from(stretch.end.saturating_sub(stretch.start)).unwrap_or(usize::MAX);
            parts.push(match &mut self.cells {
                Some((cells, _)) if is_there => cells.read(stretch)?,
                _ => new_null_array(self.field.data_type(), length),
            });
        }
        match parts.as_slice() {
            [whole] => Ok(Arc::clone(whole)),
            parts => Ok(concat(&parts.iter().map(|part| part as &dyn Array).collect::<Vec<_>>())?),
        }
    }

    /// Nothing stops a scan here: lost cells are noted, and null.
    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        for (stretch, is_there) in self.stretches(&rows) {
            if !is_there {
                self.log.record(stretch, Some(self.field.name()), &self.reason);
            }
        }
        vec![(rows, None)]
    }
}
