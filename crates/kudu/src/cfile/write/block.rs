//! A data block being filled: which cells are null, how long arrays are, and the values.

use std::ops::Range;

use arrow_buffer::NullBuffer;
use pilaster_core::{Error, Result};
use pilaster_encoding::rle::RleEncoder;
use pilaster_encoding::varint;

use super::encoder::ValueEncoder;
use super::options::Resolved;
use super::values::Stored;

/// Rows or elements after which a block ends. Nulls and repeated values take next to nothing, so it would never be full, and readers
/// unpack its bitmap.
const MAX_ROWS: usize = 4 << 20;

/// Collects the cells of one data block.
#[derive(Debug)]
pub(super) struct BlockBuilder {
    encoder: ValueEncoder,
    is_nullable: bool,
    is_array: bool,
    rows: usize,
    /// Bit 1 for each cell that is not null.
    cells: RleEncoder,
    /// Number of elements of each cell of an array column.
    lengths: RleEncoder,
    /// Bit 1 for each element that is not null.
    elements: RleEncoder,
}

/// The cells of an array column: where the elements of each begin, and the elements.
#[derive(Debug)]
pub(super) struct Cells<'a> {
    pub starts: &'a [usize],
    pub nulls: Option<&'a NullBuffer>,
    pub elements: &'a Stored,
    pub element_nulls: Option<&'a NullBuffer>,
}

impl BlockBuilder {
    pub fn new(shape: &Resolved) -> Result<Self> {
        Ok(Self {
            encoder: ValueEncoder::new(shape)?,
            is_nullable: shape.is_nullable,
            is_array: shape.is_array,
            rows: 0,
            cells: RleEncoder::new(1),
            lengths: RleEncoder::new(u16::BITS),
            elements: RleEncoder::new(1),
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn dictionary(&self) -> Option<Vec<u8>> {
        self.encoder.dictionary()
    }

    /// Takes rows of `range` until the block is full; gives how many, and whether the block must be written now.
    pub fn append(
        &mut self,
        stored: &Stored,
        nulls: Option<&NullBuffer>,
        range: Range<usize>,
    ) -> Result<(usize, bool)> {
        let mut row = range.start;
        while row < range.end {
            let room = MAX_ROWS.saturating_sub(self.rows);
            let (is_set, end) = run_at(nulls, row, range.end.min(row.saturating_add(room)));
            let taken =
                if is_set { self.encoder.append(stored, row..end, false)? } else { end.saturating_sub(row) };
            if self.is_nullable {
                self.cells.push_run(u64::from(is_set), taken);
            } else if !is_set {
                return Err(Error::invalid("a null in a column that has none"));
            }
            row = row.saturating_add(taken);
            self.rows = self.rows.saturating_add(taken);
            if row < end || self.rows >= MAX_ROWS || self.encoder.is_full() {
                return Ok((row.saturating_sub(range.start), true));
            }
        }
        Ok((row.saturating_sub(range.start), false))
    }

    /// Takes array cells of `range` until the block is full; gives how many, and whether the block must be written
    /// now. A cell never spans two blocks.
    pub fn append_cells(&mut self, cells: &Cells<'_>, range: Range<usize>) -> Result<(usize, bool)> {
        for cell in range.clone() {
            let taken = || cell.saturating_sub(range.start);
            let (Some(&start), Some(&end)) =
                (cells.starts.get(cell), cells.starts.get(cell.saturating_add(1)))
            else {
                return Err(Error::internal("an array column shorter than announced"));
            };
            let is_set = cells.nulls.is_none_or(|nulls| nulls.is_valid(cell));
            if !is_set && !self.is_nullable {
                return Err(Error::invalid("a null in a column that has none"));
            }
            let elements = if is_set { start..end } else { start..start };
            if elements.len() > usize::from(u16::MAX) {
                return Err(Error::invalid(format!(
                    "an array of {} elements; at most 65535 are possible",
                    elements.len()
                )));
            }
            if self.encoder.must_end_before(cells.elements, elements.clone()) {
                return Ok((taken(), true));
            }
            self.cells.push(u64::from(is_set));
            self.lengths.push(elements.len() as u64);
            let mut element = elements.start;
            while element < elements.end {
                let (is_set, end) = run_at(cells.element_nulls, element, elements.end);
                if is_set {
                    self.encoder.append(cells.elements, element..end, true)?;
                }
                self.elements.push_run(u64::from(is_set), end.saturating_sub(element));
                element = end;
            }
            self.rows = self.rows.saturating_add(1);
            let is_long = self.rows.max(self.elements.len()) >= MAX_ROWS;
            if is_long || !elements.is_empty() && self.encoder.is_full() {
                return Ok((taken().saturating_add(1), true));
            }
        }
        Ok((range.len(), false))
    }

    /// The payload of the block, and an empty builder again.
    pub fn finish(&mut self, ordinal: u32) -> Result<Vec<u8>> {
        let mut payload = Vec::new();
        let cells = std::mem::replace(&mut self.cells, RleEncoder::new(1));
        if self.is_array {
            let elements = std::mem::replace(&mut self.elements, RleEncoder::new(1));
            let lengths = std::mem::replace(&mut self.lengths, RleEncoder::new(u16::BITS));
            varint::write_u64(&mut payload, elements.len() as u64);
            varint::write_u64(&mut payload, self.rows as u64);
            for stream in [elements, lengths, cells] {
                with_length(stream.finish(), &mut payload);
            }
        } else if self.is_nullable {
            varint::write_u64(&mut payload, self.rows as u64);
            with_length(cells.finish(), &mut payload);
        }
        self.encoder.finish(ordinal, &mut payload)?;
        self.rows = 0;
        Ok(payload)
    }
}

fn with_length(stream: Vec<u8>, payload: &mut Vec<u8>) {
    varint::write_u64(payload, stream.len() as u64);
    payload.extend(stream);
}

/// Whether the values from `row` on are there, and up to where that stays so.
fn run_at(nulls: Option<&NullBuffer>, row: usize, end: usize) -> (bool, usize) {
    let Some(nulls) = nulls else { return (true, end) };
    let is_set = nulls.is_valid(row);
    let mut next = row.saturating_add(1);
    while next < end && nulls.is_valid(next) == is_set {
        next = next.saturating_add(1);
    }
    (is_set, next)
}
