//! Which rows of a nullable block hold a value.

use std::ops::Range;

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::{bits, rle, varint};

use super::BlockShape;

/// The bitmap of a nullable block, bit 1 for a value, and how many values stand before a row.
#[derive(Debug)]
pub(crate) struct Validity {
    bits: Buffer,
    rows: usize,
    ones: usize,
    /// A row and the number of ones before it: batches ask in ascending order.
    rank: (usize, usize),
}

impl BlockShape {
    /// `varint rows | varint B | B bytes of RLE bits`
    pub(super) fn read_validity(&self, payload: &Bytes, at: &mut usize) -> Result<Validity> {
        let rows = u64::from(varint::read_u32(payload, at)?);
        let rows = self.check_count(rows)?;
        let length = varint::read_u32(payload, at)? as usize;
        read_bitmap(self, payload, at, length, rows)
    }
}

/// `length` bytes of RLE bits for `rows` rows.
pub(super) fn read_bitmap(
    shape: &BlockShape,
    payload: &[u8],
    at: &mut usize,
    length: usize,
    rows: usize,
) -> Result<Validity> {
    shape.limits.decoded(rows.div_ceil(8) as u64)?;
    let end = at.checked_add(length).unwrap_or(usize::MAX);
    let stream = payload
        .get(*at..end)
        .ok_or_else(|| Error::corrupt(format!("a bitmap of {length} bytes"), "the end of the block"))?;
    let mut bytes = Vec::with_capacity(rows.div_ceil(8));
    let ones = rle::decode_bitmap(stream, rows, &mut bytes)?;
    *at = end;
    Ok(Validity { bits: bytes.into(), rows, ones, rank: (0, 0) })
}

impl Validity {
    pub fn len(&self) -> usize {
        self.rows
    }

    pub fn ones(&self) -> usize {
        self.ones
    }

    /// The null buffer of rows `range` (`None` if all hold a value) and the dense values that belong to them.
    pub fn read(&mut self, range: Range<usize>) -> (Option<NullBuffer>, Range<usize>) {
        if self.ones == self.rows {
            return (None, range);
        }
        let first = self.rank_of(range.start);
        let last = self.rank_of(range.end);
        let dense = first..last;
        if dense.len() == range.len() {
            return (None, dense);
        }
        let slice = BooleanBuffer::new(self.bits.clone(), range.start, range.len());
        (Some(NullBuffer::new(slice)), dense)
    }

    /// Number of ones before `row`.
    fn rank_of(&mut self, row: usize) -> usize {
        let (known_row, known_rank) = if self.rank.0 <= row { self.rank } else { (0, 0) };
        let ones = self.count_between(known_row, row);
        self.rank = (row, known_rank.saturating_add(ones));
        self.rank.1
    }

    fn count_between(&self, start: usize, end: usize) -> usize {
        BooleanBuffer::new(self.bits.clone(), start, end.saturating_sub(start)).count_set_bits()
    }

    /// Whether row `row` holds a value.
    pub fn is_set(&self, row: usize) -> bool {
        bits::get(self.bits.as_slice(), row)
    }
}
