//! Sources of rows in key order made one.
//!
//! Keys are bytes that compare as the rows do; how they are made is the format's matter, and so is what happens with
//! rows of equal keys. [`Merge`] gives runs: rows of one source that no row of another comes between.

mod gather;
mod keys;
mod sources;
#[cfg(test)]
mod tests;

use arrow_array::ArrayRef;

use crate::Result;

pub use gather::{Batches, Runs};
pub use keys::Keys;
pub use sources::{Merge, Run};

/// Some rows: their columns and their number, which also rows without columns have.
#[derive(Debug, Clone)]
pub struct SomeRows {
    /// The columns.
    pub arrays: Vec<ArrayRef>,
    /// Number of rows.
    pub count: usize,
}

/// Batches of rows in key order.
pub trait KeyedRows: Send {
    /// A key that no row is before, known without reading.
    fn first_key(&self) -> &[u8];

    /// The next rows; `None` at the end, and from then on nothing is held. Their keys take the place of those in `keys`, if
    /// anybody wants to compare them. Never none of both: all rows may be left out, see [`Keys::leave_out_but`], but then there
    /// are keys.
    ///
    /// # Errors
    /// If they cannot be read.
    fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>>;
}
