//! Which rows a tolerant scan had to leave out, and why.

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::Error;

/// Rows that could not be given.
#[derive(Debug, Clone, PartialEq, Eq)]
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
pub struct LossLog(Mutex<Vec<LostRows>>);

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
        let mut losses = self.lock();
        if !losses.contains(&lost) {
            losses.push(lost);
        }
    }

    /// All losses so far, by position and column.
    pub fn losses(&self) -> Vec<LostRows> {
        let mut losses = self.lock().clone();
        losses.sort_by(|a, b| {
            (a.rows.start, a.rows.end, &a.column).cmp(&(b.rows.start, b.rows.end, &b.column))
        });
        losses
    }

    /// How many losses were noted.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LostRows>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
