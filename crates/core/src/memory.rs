//! What a scan holds in memory at a time, over all of its columns.
//!
//! A block of a few bytes may unpack to hundreds of MiB, and each column of a file has one open. So the columns of a scan share
//! a budget:
//!
//! - one half is for blocks that are kept from batch to batch. A block that does not fit is unpacked again for the next
//!   batch, and values are copied out of it; a scan that has to do so reads more rows at once, and gives them in batches.
//! - one quarter is for the values of a batch. What does not fit is read as two ([`crate::fitting`]).
//!
//! Beside it there is at any time the one block that is being unpacked, which [`Limits::decoded_bytes`] bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arrow_schema::{DataType, Schema};

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;

/// Name of the limit in [`Limits`].
pub(crate) const LIMIT: &str = "scan_bytes";
/// What a value of any length takes besides its bytes.
const VIEW_BYTES: u64 = 16;

/// The budget of one scan; see the module.
#[derive(Debug, Clone)]
pub struct ScanMemory(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    kept: Arc<Kept>,
    /// What all scans that share it may take for their batches, and how many these are.
    most: u64,
    sharers: u64,
    /// What one row may take, whatever the budget is.
    most_of_row: u64,
    /// Rows of the batch being read; 0 between batches.
    rows: AtomicU64,
    /// What its values take.
    taken: AtomicU64,
    is_short: AtomicBool,
}

/// Blocks that are kept from batch to batch.
#[derive(Debug)]
struct Kept {
    most: u64,
    bytes: AtomicU64,
}

/// Part of a budget, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    of: Arc<Kept>,
    bytes: u64,
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Default for ScanMemory {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl ScanMemory {
    /// As much as the limits say.
    pub fn new(limits: &Limits) -> Self {
        let kept = Kept { most: limits.scan_bytes / 2, bytes: AtomicU64::new(0) };
        Self::of(Arc::new(kept), limits.scan_bytes, 1, limits.scan_bytes.max(limits.batch_bytes))
    }

    fn of(kept: Arc<Kept>, most: u64, sharers: u64, most_of_row: u64) -> Self {
        Self(Arc::new(Budget {
            kept,
            most,
            sharers: sharers.max(1),
            most_of_row,
            rows: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
        }))
    }

    /// For whoever reads one column after the other and lets go of each: whatever block it has open is kept.
    pub fn of_one_column(limits: &Limits) -> Self {
        let most = limits.decoded_bytes.saturating_mul(2).saturating_add(limits.scan_bytes);
        let kept = Kept { most, bytes: AtomicU64::new(0) };
        Self::of(Arc::new(kept), limits.scan_bytes, 1, limits.scan_bytes.max(limits.batch_bytes))
    }

    /// For one of several scans that run at the same time: blocks draw on one budget, and each scan has its part for batches.
    #[must_use]
    pub fn shared(&self, sharers: usize) -> Self {
        Self::of(Arc::clone(&self.0.kept), self.0.most, sharers as u64, self.0.most_of_row)
    }

    /// Room for a block that is kept from batch to batch, if there is some.
    pub fn keep(&self, bytes: u64) -> Option<Room> {
        let kept = &self.0.kept;
        let add = |all: u64| all.checked_add(bytes).filter(|sum| *sum <= kept.most);
        kept.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Room { of: Arc::clone(kept), bytes })
    }

    /// Says that a block was let go that the next batch needs too.
    pub fn note_let_go(&self) {
        self.0.is_short.store(true, Ordering::Relaxed);
    }

    /// Takes room for values of the batch that is being read, beside those of fixed width. Between batches there is any.
    ///
    /// # Errors
    /// [`ErrorKind::LimitExceeded`] if fewer rows should be read at once; see [`crate::fitting::is_too_large`].
    pub fn take(&self, bytes: u64) -> Result<()> {
        let max = match self.0.rows.load(Ordering::Relaxed) {
            0 => return Ok(()),
            1 => self.0.most_of_row,
            _ => self.part(4),
        };
        let found = self.0.taken.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if found <= max {
            return Ok(());
        }
        Err(Error::new(ErrorKind::LimitExceeded { limit: LIMIT, max, found }))
    }

    /// Says how many rows are read next, or that none are.
    pub fn start(&self, rows: u64) {
        self.0.rows.store(rows, Ordering::Relaxed);
        self.0.taken.store(0, Ordering::Relaxed);
    }

    /// Whether blocks were let go since this was asked last.
    pub(crate) fn was_short(&self) -> bool {
        self.0.is_short.swap(false, Ordering::Relaxed)
    }

    fn part(&self, of: u64) -> u64 {
        self.0.most.checked_div(of.saturating_mul(self.0.sharers)).unwrap_or_default()
    }

    /// How many rows a batch of these columns may have, of the `wanted` ones.
    pub fn fitting_rows(&self, schema: &Schema, wanted: usize) -> usize {
        let most = self.part(4).checked_div(row_bytes(schema)).unwrap_or(u64::MAX);
        usize::try_from(most).unwrap_or(usize::MAX).min(wanted).max(1)
    }

    /// How many are read at once where blocks are unpacked again each time.
    pub(crate) fn rows_at_once(&self, schema: &Schema) -> u64 {
        self.part(8).checked_div(row_bytes(schema)).unwrap_or(u64::MAX).max(1)
    }
}

/// What a row takes at least.
fn row_bytes(schema: &Schema) -> u64 {
    schema.fields().iter().fold(0, |sum, field| sum.saturating_add(value_bytes(field.data_type())))
}

fn value_bytes(data_type: &DataType) -> u64 {
    match data_type {
        DataType::FixedSizeBinary(width) => u64::try_from(*width).unwrap_or_default(),
        DataType::FixedSizeList(item, length) => {
            value_bytes(item.data_type()).saturating_mul(u64::try_from(*length).unwrap_or_default())
        }
        DataType::Struct(fields) => {
            fields.iter().fold(1, |sum, field| sum.saturating_add(value_bytes(field.data_type())))
        }
        DataType::Boolean | DataType::Null => 1,
        other => other.primitive_width().map_or(VIEW_BYTES, |width| width as u64),
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::Field;

    use super::*;
    use crate::fitting::is_too_large;

    #[test]
    fn blocks_and_values_have_their_shares() {
        let memory = ScanMemory::new(&Limits { scan_bytes: 800, batch_bytes: 1000, ..Limits::default() });
        let first = memory.keep(300).unwrap();
        assert!(memory.keep(101).is_none());
        let second = memory.shared(4).keep(100).unwrap();
        drop(first);
        assert!(memory.keep(300).is_some());
        drop(second);
        assert_eq!(memory.0.kept.bytes.load(Ordering::Relaxed), 0);
        // Between batches, of several rows, and of a single one.
        memory.take(u64::MAX).unwrap();
        for (rows, most) in [(2, 200), (1, 1000)] {
            memory.start(rows);
            memory.take(most - 1).unwrap();
            memory.take(1).unwrap();
            assert!(is_too_large(&memory.take(1).unwrap_err()));
        }
        let number = |name: &str| Field::new(name, DataType::Int64, true);
        let two =
            Schema::new(vec![number("a"), Field::new("b", DataType::Struct(vec![number("c")].into()), true)]);
        let fitting = [
            memory.fitting_rows(&two, 99),
            memory.shared(4).fitting_rows(&two, 99),
            memory.fitting_rows(&two, 3),
        ];
        assert_eq!((fitting, memory.rows_at_once(&two)), ([11, 2, 3], 5));
        assert!(!memory.was_short());
        memory.note_let_go();
        assert!(memory.was_short() && !memory.was_short());
    }
}
