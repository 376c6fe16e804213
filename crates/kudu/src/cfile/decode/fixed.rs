//! Values of fixed width: PLAIN, RLE, BIT_SHUFFLE and the old GROUP_VARINT.
//!
//! ```text
//! PLAIN:        | u32 count | u32 ordinal | values |
//! RLE:          | u32 count | u32 ordinal | runs |
//! BIT_SHUFFLE:  | u32 ordinal | u32 count | u32 bytes of all this | u32 count rounded up to 8 | u32 width | sub-blocks |
//! GROUP_VARINT: | group: count, min, ordinal, 0 | groups of value − min |
//! ```

use arrow_buffer::{Buffer, MutableBuffer, NullBuffer};
use pilaster_core::{Error, Result};
use pilaster_encoding::plain::Fixed;
use pilaster_encoding::rle::{self, RleValue};
use pilaster_encoding::{bitshuffle, frame_of_reference, group_varint};

use super::{BlockShape, BlockStart, Values, word};
use crate::cfile::types::Encoding;

/// Bytes of the counts before PLAIN and RLE values.
pub(super) const COUNTS_BYTES: usize = 8;
/// Bytes of the BIT_SHUFFLE header.
pub(crate) const SHUFFLE_HEADER_BYTES: usize = 20;

pub(super) fn decode(
    shape: &BlockShape,
    encoded: &[u8],
    width: usize,
    encoding: Encoding,
) -> Result<(BlockStart, Values)> {
    let (start, bytes) = match encoding {
        Encoding::Plain => decode_plain(shape, encoded, width)?,
        Encoding::Rle => decode_rle(shape, encoded, width)?,
        Encoding::BitShuffle => {
            let (start, element_size, bytes) = decode_shuffled(shape, encoded)?;
            if element_size != width {
                return Err(Error::corrupt(format!("elements of {width} bytes"), element_size));
            }
            (start, bytes)
        }
        Encoding::GroupVarint => decode_group_varint(shape, encoded)?,
        Encoding::Prefix | Encoding::Dict => return Err(Error::corrupt("an encoding of numbers", encoding)),
    };
    Ok((start, Values::Fixed { width, bytes }))
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

fn decode_rle(shape: &BlockShape, encoded: &[u8], width: usize) -> Result<(BlockStart, Buffer)> {
    let (start, body) = split_counts(shape, encoded)?;
    shape.limits.decoded(start.count.saturating_mul(width) as u64)?;
    let buffer = match width {
        1 => decode_runs::<u8>(body, start.count)?,
        2 => decode_runs::<u16>(body, start.count)?,
        4 => decode_runs::<u32>(body, start.count)?,
        8 => decode_runs::<u64>(body, start.count)?,
        _ => return Err(Error::corrupt("runs of values of 1 to 8 bytes", width)),
    };
    Ok((start, buffer))
}

fn decode_runs<T: RleValue + Fixed + arrow_buffer::ArrowNativeType>(
    body: &[u8],
    count: usize,
) -> Result<Buffer> {
    let mut values = vec![<T as Default>::default(); count];
    let bits = u32::try_from(<T as Fixed>::WIDTH.saturating_mul(8)).unwrap_or(u32::MAX);
    rle::decode(body, bits, &mut values)?;
    Ok(Buffer::from_vec(values))
}

/// The elements of a BIT_SHUFFLE block and their width.
pub(super) fn decode_shuffled(shape: &BlockShape, encoded: &[u8]) -> Result<(BlockStart, usize, Buffer)> {
    let ordinal = word(encoded, 0, "an ordinal")?;
    let count = shape.check_count(u64::from(word(encoded, 4, "a count")?))?;
    let size = word(encoded, 8, "a size")? as usize;
    let padded = word(encoded, 12, "a padded count")? as usize;
    let element_size = word(encoded, 16, "an element size")? as usize;
    if size != encoded.len() {
        return Err(Error::corrupt(format!("a size of {} bytes", encoded.len()), size));
    }
    if padded != count.next_multiple_of(8) {
        return Err(Error::corrupt(format!("{} elements with padding", count.next_multiple_of(8)), padded));
    }
    if !matches!(element_size, 1 | 2 | 4 | 8 | 16) {
        return Err(Error::corrupt("elements of 1, 2, 4, 8 or 16 bytes", element_size));
    }
    let body = encoded.get(SHUFFLE_HEADER_BYTES..).unwrap_or_default();
    // LZ4 cannot make more than 255 bytes out of one.
    let possible = body.len().saturating_mul(255);
    if padded.saturating_mul(element_size) > possible {
        return Err(Error::corrupt(
            format!("elements of at most {possible} bytes"),
            padded.saturating_mul(element_size),
        ));
    }
    let mut buffer = shape.buffer_for(padded, element_size)?;
    bitshuffle::decompress_lz4(element_size, body, &mut buffer)?;
    buffer.truncate(count.saturating_mul(element_size));
    Ok((BlockStart { ordinal, count }, element_size, buffer.into()))
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
