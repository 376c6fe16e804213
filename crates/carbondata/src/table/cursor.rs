//! One column of a table, read by row position over all its files.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, new_empty_array};
use arrow_schema::DataType;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, Result, RowRanges, ScanMemory};

use super::part::{ColumnOrigin, Part, widened};
use super::values::repeat;
use crate::file::cursor::{KnownChunks, PageCursor};

/// The files of a scan, with the chunk headers that planning has read.
pub(crate) type PlannedParts = Arc<Vec<(Arc<Part>, Arc<KnownChunks>)>>;

/// Reads a column of a table.
pub(crate) struct TableCursor {
    parts: PlannedParts,
    column: usize,
    data_type: DataType,
    wanted: RowRanges,
    memory: ScanMemory,
    /// The file that was read last, and its cursor.
    open: Option<(usize, PageCursor)>,
}

impl TableCursor {
    pub fn new(
        parts: PlannedParts,
        column: usize,
        data_type: DataType,
        wanted: RowRanges,
        memory: ScanMemory,
    ) -> Self {
        Self { parts, column, data_type, wanted, memory, open: None }
    }

    fn part_of(&self, row: u64) -> Option<(usize, Arc<Part>)> {
        let number = self.parts.partition_point(|(part, _)| part.rows().end <= row);
        self.parts.get(number).map(|(part, _)| (number, Arc::clone(part)))
    }

    fn file_cursor(&mut self, number: usize, index: usize) -> Result<&mut PageCursor> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != number) {
            self.open = None;
            let lost = || Error::internal(format!("no file number {number}"));
            let (part, known) = self.parts.get(number).ok_or_else(lost)?;
            let local = self.wanted.within(&part.rows());
            let physical = part.live.physical_ranges(&local);
            let (file, known) = (Arc::clone(part.whole()?), Arc::clone(known));
            let cursor = PageCursor::new(file, index, physical, known, &self.memory);
            self.open = Some((number, cursor));
        }
        self.open.as_mut().map(|(_, cursor)| cursor).ok_or_else(|| Error::internal("a cursor was lost"))
    }

    fn read_form(
        &mut self,
        rows: Range<u64>,
        read: fn(&mut PageCursor, Range<u64>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let mut pieces: Vec<ArrayRef> = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let Some((number, part)) = self.part_of(row) else {
                return Err(Error::internal(format!("no row {row} in the table")));
            };
            let end = rows.end.min(part.rows().end);
            let count = usize::try_from(end.saturating_sub(row)).unwrap_or(usize::MAX);
            let piece = match part.origins.get(self.column) {
                Some(ColumnOrigin::File(index)) => {
                    let logical = shifted(&(row..end), part.first_row);
                    let Some(physical) = part.live.physical(&logical) else {
                        return Err(Error::internal("a row that was deleted"));
                    };
                    let values = read(self.file_cursor(number, *index)?, physical.clone())?;
                    widened(part.without_deleted(values, &physical)?, &self.data_type)?
                }
                Some(ColumnOrigin::Constant(value)) => repeat(value, count)?,
                None => return Err(Error::internal(format!("no column number {}", self.column))),
            };
            pieces.push(piece);
            row = end;
        }
        match pieces.as_slice() {
            [] => Ok(new_empty_array(&self.data_type)),
            [one] => Ok(Arc::clone(one)),
            several => {
                let several: Vec<&dyn Array> = several.iter().map(AsRef::as_ref).collect();
                Ok(arrow_select::concat::concat(&several)?)
            }
        }
    }
}

fn shifted(rows: &Range<u64>, by: u64) -> Range<u64> {
    rows.start.saturating_sub(by)..rows.end.saturating_sub(by)
}

impl ColumnCursor for TableCursor {
    fn read(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        self.read_form(rows, PageCursor::read)
    }

    fn read_for_filter(&mut self, rows: Range<u64>) -> Result<ArrayRef> {
        // The files of one read must give one form.
        match self.part_of(rows.start) {
            Some((_, part)) if part.rows().end >= rows.end => {
                self.read_form(rows, PageCursor::read_for_filter)
            }
            _ => self.read(rows),
        }
    }

    fn block(&self, row: u64) -> Option<Range<u64>> {
        let (_, part) = self.part_of(row)?;
        let physical = part.live.physical(&shifted(&(row..row.checked_add(1)?), part.first_row))?;
        let block = part.file.page_around(physical.start)?;
        // What was deleted makes a block smaller, or nothing of it is left.
        let local = part.live.logical(&block);
        let global = local.start.checked_add(part.first_row)?..local.end.checked_add(part.first_row)?;
        (!global.is_empty()).then_some(global)
    }

    fn probe(&mut self, rows: Range<u64>) -> Vec<(Range<u64>, Option<Error>)> {
        let mut stretches = Vec::new();
        let mut row = rows.start;
        while row < rows.end {
            let Some((number, part)) = self.part_of(row) else { break };
            let end = rows.end.min(part.rows().end);
            let logical = shifted(&(row..end), part.first_row);
            match (part.origins.get(self.column), part.live.physical(&logical)) {
                (Some(ColumnOrigin::File(index)), Some(physical)) => match self.file_cursor(number, *index) {
                    Ok(cursor) => {
                        for (stretch, damage) in cursor.probe(physical) {
                            let local = part.live.logical(&stretch);
                            let global = local.start.saturating_add(part.first_row)
                                ..local.end.saturating_add(part.first_row);
                            if !global.is_empty() {
                                stretches.push((global, damage));
                            }
                        }
                    }
                    Err(error) => stretches.push((row..end, Some(error))),
                },
                _ => stretches.push((row..end, None)),
            }
            row = end;
        }
        stretches
    }
}
