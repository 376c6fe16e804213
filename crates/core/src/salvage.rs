//! Which rows a tolerant scan had to leave out, and why.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Rows that could not be given.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LostRows {
    /// Their positions in the dataset.
    pub rows: Range<u64>,
    /// The column whose bytes are damaged; `None` if the rows are lost as a whole.
    pub column: Option<String>,
    /// The failure, with file, byte, expected and found.
    pub reason: String,
}

/// Collects the losses of a scan that goes on over damage. Shared by all threads of the scan.
#[derive(Debug, Default)]
pub struct LossLog(Mutex<HashSet<LostRows>>);

impl LossLog {
    /// An empty log.
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that `rows` of `column` are lost because of `error`. The same loss is noted once.
    pub fn record(&self, rows: Range<u64>, column: Option<&str>, error: &Error) {
        self.add(LostRows { rows, column: column.map(str::to_string), reason: error.to_string() });
    }

    /// Notes a loss that another log has noted already, for example of one file among several.
    pub fn add(&self, lost: LostRows) {
        self.lock().insert(lost);
    }

    /// All losses so far, by position and column; rows that touch and are lost for one reason are one loss.
    pub fn losses(&self) -> Vec<LostRows> {
        let mut losses: Vec<_> = self.lock().iter().cloned().collect();
        let order = |lost: &LostRows| (lost.rows.start, lost.rows.end);
        losses.sort_by(|a, b| {
            order(a).cmp(&order(b)).then_with(|| (&a.column, &a.reason).cmp(&(&b.column, &b.reason)))
        });
        let mut merged: Vec<LostRows> = Vec::with_capacity(losses.len());
        let mut last_of = HashMap::new();
        for lost in losses {
            let number = *last_of.entry((lost.column.clone(), lost.reason.clone())).or_insert(merged.len());
            match merged.get_mut(number) {
                Some(before) if before.rows.end == lost.rows.start => before.rows.end = lost.rows.end,
                _ => {
                    last_of.insert((lost.column.clone(), lost.reason.clone()), merged.len());
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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
        let losses: Vec<_> = log.losses().into_iter().map(|lost| (lost.rows, lost.reason)).collect();
        let expected = [(0..20, "a"), (20..30, "b"), (20..30, "a"), (40..50, "a")];
        assert_eq!(losses, expected.map(|(rows, reason)| (rows, reason.to_string())));
        assert_eq!(log.len(), 4);
    }
}
