//! Which rows of a page hold a value.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use pilaster_core::{Limits, Result};
use pilaster_encoding::rle;

/// The null map of a page, turned around: bit 1 for a value; and how many values stand before a row.
#[derive(Debug)]
pub(crate) struct Validity {
    bits: Buffer,
    rows: usize,
    ones: usize,
    /// A row and the number of ones before it: batches ask in ascending order.
    rank: (usize, usize),
}

impl Validity {
    pub fn decode(stream: &[u8], rows: usize, limits: &Limits) -> Result<Self> {
        limits.decoded(rows.div_ceil(8) as u64)?;
        let mut bytes = Vec::with_capacity(rows.div_ceil(8));
        let nulls = rle::decode_bitmap(stream, rows, &mut bytes)?;
        for byte in &mut bytes {
            *byte = !*byte;
        }
        Ok(Self { bits: bytes.into(), rows, ones: rows.saturating_sub(nulls), rank: (0, 0) })
    }

    pub fn ones(&self) -> usize {
        self.ones
    }

    /// The null buffer of rows `range` (`None` if all hold a value) and the dense values that belong to them.
    pub fn read(&mut self, range: Range<usize>) -> (Option<NullBuffer>, Range<usize>) {
        if self.ones == self.rows {
            return (None, range);
        }
        let dense = self.rank_of(range.start)..self.rank_of(range.end);
        if dense.len() == range.len() {
            return (None, dense);
        }
        (Some(NullBuffer::new(self.slice(range.start, range.end))), dense)
    }

    /// Number of ones before `row`.
    fn rank_of(&mut self, row: usize) -> usize {
        let (known_row, known_rank) = if self.rank.0 <= row { self.rank } else { (0, 0) };
        let ones = self.slice(known_row, row).count_set_bits();
        self.rank = (row, known_rank.saturating_add(ones));
        self.rank.1
    }

    fn slice(&self, start: usize, end: usize) -> BooleanBuffer {
        BooleanBuffer::new(self.bits.clone(), start, end.saturating_sub(start))
    }
}
