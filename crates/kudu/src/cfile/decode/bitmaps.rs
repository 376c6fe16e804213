//! Which rows of a nullable block hold a value.

use bytes::Bytes;
use pilaster_core::validity::Validity;
use pilaster_core::{Error, Result};
use pilaster_encoding::{rle, varint};

use super::BlockShape;

impl BlockShape {
    /// `varint rows | varint B | B bytes of RLE bits`
    pub(super) fn read_validity(&self, payload: &Bytes, at: &mut usize) -> Result<Validity> {
        let rows = u64::from(varint::read_u32(payload, at)?);
        let rows = self.check_count(rows)?;
        let length = varint::read_u32(payload, at)? as usize;
        read_bitmap(self, payload, at, length, rows)
    }
}

impl BlockShape {
    /// How many cells of a block of a nullable column are null, by its bitmap alone.
    pub fn null_count(&self, payload: &Bytes) -> Result<u64> {
        let mut at = 0;
        if !self.metadata.is_array {
            let validity = self.read_validity(payload, &mut at)?;
            return Ok(validity.len().saturating_sub(validity.ones()) as u64);
        }
        let _elements = varint::read_u32(payload, &mut at)?;
        let cells = self.check_count(u64::from(varint::read_u32(payload, &mut at)?))?;
        // Past the bitmap of the elements and the lengths of the cells.
        for _ in 0..2 {
            let length = varint::read_u32(payload, &mut at)? as usize;
            at = at.saturating_add(length);
        }
        let length = varint::read_u32(payload, &mut at)? as usize;
        let validity = read_bitmap(self, payload, &mut at, length, cells)?;
        Ok(validity.len().saturating_sub(validity.ones()) as u64)
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
    Ok(Validity::new(bytes, rows, ones))
}
