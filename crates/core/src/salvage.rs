//! Which rows a tolerant scan had to leave out, and why.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::rows::RowRanges;

/// How many rows a loss takes, and which.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Extent {
    /// The rows at these positions, of which there is at least one.
    At(Range<u64>),
    /// So many rows; where they stood nobody can tell.
    Count(u64),
    /// Nothing that is left tells how many.
    Unknown,
}

/// How the reason of a loss ends whose rows can be read, but are not proven to be right: they are given apart.
pub const GIVEN_APART: &str = "they are given apart, as unproven rows";

/// Rows that could not be given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LostRows {
    /// The piece of the dataset (a tablet, a file) in which positions count; `None` if they are those of the dataset.
    pub part: Option<String>,
    /// Which rows, or how many, as far as that is known.
    pub extent: Extent,
    /// The column whose bytes are damaged; `None` if the rows are lost as a whole.
    pub column: Option<String>,
    /// The failure, with file, byte, expected and found.
    pub reason: String,
}

impl LostRows {
    /// Rows at these positions. No position at all says that nobody knows them.
    pub fn at(rows: Range<u64>, reason: impl Into<String>) -> Self {
        let extent = if rows.is_empty() { Extent::Unknown } else { Extent::At(rows) };
        Self { part: None, extent, column: None, reason: reason.into() }
    }

    /// So many rows whose positions nobody knows.
    pub fn counted(count: u64, reason: impl Into<String>) -> Self {
        Self { part: None, extent: Extent::Count(count), column: None, reason: reason.into() }
    }

    /// Rows that nobody can count.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { part: None, extent: Extent::Unknown, column: None, reason: reason.into() }
    }

    /// The same loss, of cells of one column.
    #[must_use]
    pub fn of_column(mut self, column: impl Into<String>) -> Self {
        self.column = Some(column.into());
        self
    }

    /// The same loss in a piece of the dataset, unless it already names one.
    #[must_use]
    pub fn within(mut self, part: impl Into<String>) -> Self {
        self.part.get_or_insert_with(|| part.into());
        self
    }

    /// The same loss where the piece it counts in begins at `base` of the dataset.
    #[must_use]
    pub fn moved(mut self, base: u64) -> Self {
        if let (Extent::At(rows), None) = (&mut self.extent, &self.part) {
            *rows = rows.start.saturating_add(base)..rows.end.saturating_add(base);
        }
        self
    }

    /// Whether the rows can be had apart from the others, as unproven ones.
    pub fn is_given_apart(&self) -> bool {
        self.reason.ends_with(GIVEN_APART)
    }

    /// The positions, where they are known.
    pub fn positions(&self) -> Option<Range<u64>> {
        match &self.extent {
            Extent::At(rows) => Some(rows.clone()),
            Extent::Count(_) | Extent::Unknown => None,
        }
    }

    /// How many rows, where that is known.
    pub fn count(&self) -> Option<u64> {
        match &self.extent {
            Extent::At(rows) => Some(rows.end.saturating_sub(rows.start)),
            Extent::Count(count) => Some(*count),
            Extent::Unknown => None,
        }
    }
}

impl fmt::Display for LostRows {
    /// `rows 5..9 of column c: why`; text from files stands in it as it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.extent {
            Extent::At(rows) => write!(f, "rows {}..{}", rows.start, rows.end)?,
            Extent::Count(1) => f.write_str("1 row")?,
            Extent::Count(count) => write!(f, "{count} rows")?,
            Extent::Unknown => f.write_str("an unknown number of rows")?,
        }
        if let Some(column) = &self.column {
            write!(f, " of column {column}")?;
        }
        if let Some(part) = &self.part {
            write!(f, " in {part}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// How many rows these losses take together: each position of a piece once, and all that are only counted. `None` if one
/// of them cannot be counted.
pub fn total_lost(losses: &[LostRows]) -> Option<u64> {
    let mut counted = 0u64;
    let mut at: HashMap<Option<&str>, Vec<Range<u64>>> = HashMap::new();
    for lost in losses {
        match &lost.extent {
            Extent::At(rows) => at.entry(lost.part.as_deref()).or_default().push(rows.clone()),
            Extent::Count(count) => counted = counted.saturating_add(*count),
            Extent::Unknown => return None,
        }
    }
    let placed = at.into_values().map(|ranges| RowRanges::from_iter(ranges).count());
    Some(placed.fold(counted, u64::saturating_add))
}

/// What a scan that goes on over damage does with a row of which some cells are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LostCells {
    /// Leaves the row out.
    #[default]
    DropRow,
    /// Gives null for them where the column may be null; leaves the row out where it may not, and where null would be an answer.
    Null,
}

/// Collects the losses of a scan that goes on over damage, and says what becomes of rows of which some cells are lost. Shared by all
/// threads of the scan.
#[derive(Debug, Default)]
pub struct LossLog {
    lost: Mutex<HashSet<LostRows>>,
    cells: LostCells,
}

impl LossLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty log of a scan that does this with rows of which some cells are lost, as far as its format can.
    #[must_use]
    pub fn with_cells(mut self, cells: LostCells) -> Self {
        self.cells = cells;
        self
    }

    /// An empty log for a part of the scan.
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self::new().with_cells(self.cells)
    }

    /// Whether lost cells are given as null where that is possible.
    pub fn fills_cells(&self) -> bool {
        self.cells == LostCells::Null
    }

    /// Notes that `rows` of `column` are lost because of `error`. The same loss is noted once.
    pub fn record(&self, rows: Range<u64>, column: Option<&str>, error: &Error) {
        self.add(LostRows { column: column.map(str::to_string), ..LostRows::at(rows, error.to_string()) });
    }

    /// Notes that rows nobody can count are lost because of `error`.
    pub fn record_unknown(&self, error: &Error) {
        self.add(LostRows::unknown(error.to_string()));
    }

    /// Notes a loss that another log has noted already, for example of one file among several.
    pub fn add(&self, lost: LostRows) {
        self.lock().insert(lost);
    }

    /// All losses so far, by piece, position and column; rows that touch and are lost for one reason are one loss. Those
    /// without positions come last.
    pub fn losses(&self) -> Vec<LostRows> {
        let mut losses: Vec<_> = self.lock().iter().cloned().collect();
        losses.sort_by_cached_key(|lost| {
            let rows = lost.positions();
            let order = (rows.is_none(), rows.map(|rows| (rows.start, rows.end)), lost.count());
            (lost.part.clone(), order, lost.column.clone(), lost.reason.clone())
        });
        let mut merged: Vec<LostRows> = Vec::with_capacity(losses.len());
        let mut last_of = HashMap::new();
        for lost in losses {
            let key = (lost.part.clone(), lost.column.clone(), lost.reason.clone());
            let number = *last_of.entry(key.clone()).or_insert(merged.len());
            match (merged.get_mut(number).map(|before| &mut before.extent), &lost.extent) {
                (Some(Extent::At(before)), Extent::At(rows)) if before.end == rows.start => {
                    before.end = rows.end
                }
                _ => {
                    last_of.insert(key, merged.len());
                    merged.push(lost);
                }
            }
        }
        merged
    }

    /// How many losses there are.
    pub fn len(&self) -> usize {
        self.losses().len()
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<LostRows>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_losses_of_one_reason_are_one_loss() {
        let log = LossLog::new();
        let (a, b) = (Error::invalid("a"), Error::invalid("b"));
        for (rows, column, error) in [
            (10..20, "x", &a),
            (0..10, "x", &a),
            (20..30, "y", &a),
            (20..25, "x", &b),
            (25..30, "x", &b),
            (40..50, "x", &a),
            (40..50, "x", &a),
        ] {
            log.record(rows, Some(column), error);
        }
        let losses: Vec<_> =
            log.losses().into_iter().map(|lost| (lost.positions().unwrap(), lost.reason)).collect();
        let expected = [(0..20, "a"), (20..30, "b"), (20..30, "a"), (40..50, "a")];
        assert_eq!(losses, expected.map(|(rows, reason)| (rows, reason.to_string())));
        assert_eq!(log.len(), 4);
    }

    #[test]
    fn totals_add_up_over_pieces_and_are_unknown_with_one_unknown_loss() {
        let mut losses = vec![
            LostRows::at(0..10, "a").within("t1"),
            LostRows::at(5..15, "b").of_column("x").within("t1"),
            LostRows::at(0..10, "a").within("t2"),
            LostRows::at(3..4, "c"),
            LostRows::counted(7, "d"),
        ];
        assert_eq!(total_lost(&losses), Some(15 + 10 + 1 + 7));
        losses.push(LostRows::unknown("e"));
        assert_eq!(total_lost(&losses), None);
        assert_eq!(LostRows::at(4..4, "no position").extent, Extent::Unknown);
    }

    #[test]
    fn says_which_rows_or_how_many() {
        for (lost, text) in [
            (LostRows::at(5..9, "why").of_column("c"), "rows 5..9 of column c: why"),
            (LostRows::at(5..9, "why").within("tablet t").moved(3), "rows 5..9 in tablet t: why"),
            (LostRows::at(5..9, "why").moved(3), "rows 8..12: why"),
            (LostRows::counted(1, "why"), "1 row: why"),
            (LostRows::unknown("why"), "an unknown number of rows: why"),
        ] {
            assert_eq!(lost.to_string(), text);
        }
    }
}
