//! Values of fixed width: PLAIN and the old GROUP_VARINT; RLE is in `runs`, BIT_SHUFFLE in `shuffled`.
//!
//! ```text
//! PLAIN:        | u32 count | u32 ordinal | values |
//! GROUP_VARINT: | group: count, min, ordinal, 0 | groups of value − min |
//! ```

use std::ops::Range;

use arrow_array::ArrayRef;
use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::{frame_of_reference, group_varint};

use super::numbers::number_values;
use super::runs::Runs;
use super::{BlockShape, BlockStart, Values, shuffled, word};
use crate::cfile::arrow_types::Target;
use crate::cfile::types::Encoding;

/// Bytes of the counts before PLAIN and RLE values.
pub(super) const COUNTS_BYTES: usize = 8;

pub(super) fn decode(
    shape: &BlockShape,
    encoded: &Bytes,
    width: usize,
    encoding: Encoding,
) -> Result<(BlockStart, Values)> {
    let (start, bytes) = match encoding {
        Encoding::Plain => decode_plain(shape, encoded, width)?,
        Encoding::Rle => {
            let (start, runs) = Runs::open(shape, encoded, width)?;
            return Ok((start, Values::Runs(runs)));
        }
        Encoding::GroupVarint => decode_group_varint(shape, encoded)?,
        Encoding::BitShuffle => {
            let (start, shuffled) = shuffled::open(shape, encoded)?;
            if shuffled.width() != width {
                return Err(Error::corrupt(format!("elements of {width} bytes"), shuffled.width()));
            }
            return Ok((start, Values::Shuffled(shuffled)));
        }
        Encoding::Prefix | Encoding::Dict => return Err(Error::corrupt("an encoding of numbers", encoding)),
    };
    Ok((start, Values::Fixed { width, bytes }))
}

/// The values `dense` of `bytes`, spread over the rows of `nulls` if there are nulls.
pub(super) fn read(
    bytes: &Buffer,
    width: usize,
    dense: Range<usize>,
    nulls: Option<NullBuffer>,
    target: &Target,
) -> Result<ArrayRef> {
    let rows = nulls.as_ref().map_or(dense.len(), NullBuffer::len);
    let mut cut =
        bytes.slice_with_length(dense.start.saturating_mul(width), dense.len().saturating_mul(width));
    if let Some(nulls) = &nulls {
        cut = spread(&cut, width, nulls);
    }
    number_values(cut, rows, nulls, target)
}

/// The two counts before PLAIN and RLE values, checked, and the bytes after them.
pub(super) fn split_counts<'a>(shape: &BlockShape, encoded: &'a [u8]) -> Result<(BlockStart, &'a [u8])> {
    let count = shape.check_count(u64::from(word(encoded, 0, "a count")?))?;
    let ordinal = word(encoded, 4, "an ordinal")?;
    Ok((BlockStart { ordinal, count }, encoded.get(COUNTS_BYTES..).unwrap_or_default()))
}

fn decode_plain(shape: &BlockShape, encoded: &[u8], width: usize) -> Result<(BlockStart, Buffer)> {
    let (start, body) = split_counts(shape, encoded)?;
    let expected = start.count.saturating_mul(width);
    if body.len() != expected {
        return Err(Error::corrupt(format!("{expected} bytes of values"), format!("{} bytes", body.len())));
    }
    shape.limits.decoded(expected as u64)?;
    let mut buffer = MutableBuffer::with_capacity(expected);
    buffer.extend_from_slice(body);
    Ok((start, buffer.into()))
}

fn decode_group_varint(shape: &BlockShape, encoded: &[u8]) -> Result<(BlockStart, Buffer)> {
    let mut at = 0;
    let [count, min, ordinal, reserved] = group_varint::decode_group(encoded, &mut at)?;
    if reserved != 0 {
        return Err(Error::corrupt("0 as fourth number of the header", reserved));
    }
    let count = shape.check_count(u64::from(count))?;
    let body = encoded.get(at..).unwrap_or_default();
    // A group of four takes at least five bytes.
    if count.div_ceil(4).saturating_mul(5) > body.len() {
        return Err(Error::corrupt(format!("groups for {count} values"), format!("{} bytes", body.len())));
    }
    let mut values = Vec::with_capacity(count);
    let used = frame_of_reference::decode(body, count, min, &mut values)?;
    if used != body.len() {
        return Err(Error::corrupt(format!("{used} bytes of groups"), format!("{} bytes", body.len())));
    }
    Ok((BlockStart { ordinal, count }, Buffer::from_vec(values)))
}

/// Puts dense values where `nulls` has a value; zero bytes elsewhere.
pub(super) fn spread(dense: &Buffer, width: usize, nulls: &NullBuffer) -> Buffer {
    let mut spread = MutableBuffer::from_len_zeroed(nulls.len().saturating_mul(width));
    match width {
        1 => spread_array::<1>(dense, nulls, &mut spread),
        2 => spread_array::<2>(dense, nulls, &mut spread),
        4 => spread_array::<4>(dense, nulls, &mut spread),
        8 => spread_array::<8>(dense, nulls, &mut spread),
        _ => spread_array::<16>(dense, nulls, &mut spread),
    }
    spread.into()
}

fn spread_array<const W: usize>(dense: &[u8], nulls: &NullBuffer, spread: &mut [u8]) {
    let (from, _) = dense.as_chunks::<W>();
    let (to, _) = spread.as_chunks_mut::<W>();
    let mut next = 0usize;
    for (start, end) in nulls.valid_slices() {
        let count = end.saturating_sub(start);
        let after = next.saturating_add(count);
        if let (Some(to), Some(from)) = (to.get_mut(start..end), from.get(next..after)) {
            to.copy_from_slice(from);
        }
        next = after;
    }
}
