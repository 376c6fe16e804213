//! Booleans: PLAIN and RLE, both after `u32 count, u32 ordinal`.

use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use pilaster_core::{Error, Result};
use pilaster_encoding::rle;

use super::fixed::split_counts;
use super::{BlockShape, BlockStart, Values};
use crate::cfile::types::Encoding;

pub(super) fn decode(shape: &BlockShape, encoded: &[u8], encoding: Encoding) -> Result<(BlockStart, Values)> {
    let (start, body) = split_counts(shape, encoded)?;
    let length = start.count.div_ceil(8);
    shape.limits.decoded(length as u64)?;
    let bits = match encoding {
        Encoding::Plain if body.len() == length => body.to_vec(),
        Encoding::Plain => {
            return Err(Error::corrupt(format!("{length} bytes of bits"), format!("{} bytes", body.len())));
        }
        Encoding::Rle => {
            let mut bits = Vec::with_capacity(length);
            rle::decode_bitmap(body, start.count, &mut bits)?;
            bits
        }
        other => return Err(Error::corrupt("an encoding of booleans", other)),
    };
    Ok((start, Values::Bits(bits.into())))
}

/// Puts dense bits where `nulls` has a value; false elsewhere.
pub(super) fn spread(dense: &BooleanBuffer, nulls: &NullBuffer) -> BooleanBuffer {
    let mut spread = BooleanBufferBuilder::new(nulls.len());
    let mut next = 0usize;
    for (start, end) in nulls.valid_slices() {
        spread.append_n(start.saturating_sub(spread.len()), false);
        let count = end.saturating_sub(start);
        spread.append_buffer(&dense.slice(next, count));
        next = next.saturating_add(count);
    }
    spread.append_n(nulls.len().saturating_sub(spread.len()), false);
    spread.finish()
}
