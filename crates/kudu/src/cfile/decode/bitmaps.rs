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
