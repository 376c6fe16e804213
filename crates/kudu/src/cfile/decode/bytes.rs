//! Values of any length: PLAIN, PREFIX and DICT.
//!
//! ```text
//! PLAIN:  | u32 ordinal | u32 count | u32 P | values | at P: offsets from block start, group varint, groups of 4 |
//! PREFIX: | group: count, ordinal, restart interval, 0 | entries | u32 position of each restart | u32 restarts |
//! DICT:   | u32 mode | 1: BIT_SHUFFLE block of codewords; 2: PLAIN block |
//! ```

use std::ops::Range;
use std::sync::Arc;

use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::{dictionary, group_varint, prefix};

use super::fixed::decode_shuffled;
use super::{BlockShape, BlockStart, Values, Words, word};
use crate::cfile::types::Encoding;

/// Bytes of the three words before PLAIN values.
pub(crate) const PLAIN_HEADER_BYTES: usize = 12;
/// A DICT block of codewords.
pub(crate) const MODE_CODEWORDS: u32 = 1;
/// A DICT block of plain strings.
pub(crate) const MODE_PLAIN: u32 = 2;

pub(super) fn decode(
    shape: &BlockShape,
    encoded: &Bytes,
    encoding: Encoding,
) -> Result<(BlockStart, Values)> {
    match encoding {
        Encoding::Plain => decode_plain(shape, encoded),
        Encoding::Prefix => decode_prefix(shape, encoded),
        other => Err(Error::corrupt("an encoding of strings", other)),
    }
}

/// A PLAIN block; its values stay where they are.
pub(crate) fn decode_plain(shape: &BlockShape, encoded: &Bytes) -> Result<(BlockStart, Values)> {
    let ordinal = word(encoded, 0, "an ordinal")?;
    let count = word(encoded, 4, "a count")?;
    let offsets_at = word(encoded, 8, "the position of the offsets")? as usize;
    let count = shape.check_count(u64::from(count))?;
    let groups = encoded
        .get(offsets_at..)
        .filter(|_| offsets_at >= PLAIN_HEADER_BYTES)
        .ok_or_else(|| Error::corrupt(format!("offsets at byte 12..{}", encoded.len()), offsets_at))?;
    if count.div_ceil(4).saturating_mul(5) > groups.len() {
        return Err(Error::corrupt(format!("offsets of {count} values"), format!("{} bytes", groups.len())));
    }
    let mut starts = Vec::with_capacity(count.next_multiple_of(4));
    let used = group_varint::decode(groups, count, &mut starts)?;
    if used != groups.len() {
        return Err(Error::corrupt(format!("{used} bytes of offsets"), format!("{} bytes", groups.len())));
    }
    let offsets = rebase(&starts, PLAIN_HEADER_BYTES, offsets_at)?;
    let values = Buffer::from(encoded.slice(PLAIN_HEADER_BYTES..offsets_at));
    Ok((BlockStart { ordinal, count }, Values::Bytes { bytes: values, offsets }))
}

/// Offsets from the first value, with the end of the last one, checked to ascend.
fn rebase(starts: &[u32], header_bytes: usize, end: usize) -> Result<Vec<i32>> {
    let base = u32::try_from(header_bytes).unwrap_or(u32::MAX);
    let end = u32::try_from(end).map_err(|_| Error::corrupt("a block below 4 GiB", end))?;
    let last = end.saturating_sub(base);
    if i32::try_from(last).is_err() {
        return Err(Error::corrupt("at most 2 GiB of values in a block", last));
    }
    if starts.first().is_some_and(|first| *first != base) || !starts.is_sorted() || starts.last() > Some(&end)
    {
        return Err(Error::corrupt(format!("offsets that ascend from {base} to at most {end}"), "others"));
    }
    #[expect(clippy::cast_possible_wrap, reason = "all are at most `last`, which fits")]
    let mut offsets: Vec<i32> = starts.iter().map(|start| start.saturating_sub(base) as i32).collect();
    #[expect(clippy::cast_possible_wrap, reason = "checked above")]
    offsets.push(if starts.is_empty() { 0 } else { last as i32 });
    Ok(offsets)
}

fn decode_prefix(shape: &BlockShape, encoded: &Bytes) -> Result<(BlockStart, Values)> {
    let mut at = 0;
    let [count, ordinal, interval, _] = group_varint::decode_group(encoded, &mut at)?;
    let count = shape.check_count(u64::from(count))?;
    if interval == 0 {
        return Err(Error::corrupt("a restart interval above 0", interval));
    }
    let (rest, restarts) = encoded.split_last_chunk::<4>().ok_or_else(|| {
        Error::corrupt("a number of restarts", format!("a block of {} bytes", encoded.len()))
    })?;
    let restarts = u32::from_le_bytes(*restarts) as usize;
    let expected = count.saturating_sub(1).checked_div(interval as usize).unwrap_or_default();
    if restarts != expected {
        return Err(Error::corrupt(format!("{expected} restarts"), restarts));
    }
    let entries_end =
        rest.len().checked_sub(restarts.saturating_mul(4)).filter(|end| *end >= at).ok_or_else(|| {
            Error::corrupt(format!("{restarts} restart positions"), format!("{} bytes", rest.len()))
        })?;
    let entries = rest.get(at..entries_end).unwrap_or_default();
    // An entry takes at least two bytes.
    if count.saturating_mul(2) > entries.len() {
        return Err(Error::corrupt(format!("entries of {count} values"), format!("{} bytes", entries.len())));
    }
    let most = usize::try_from(shape.limits.decoded_bytes.min(i32::MAX as u64)).unwrap_or(usize::MAX);
    let (mut values, mut ends) = (Vec::new(), Vec::new());
    let used = prefix::decode(entries, count, &mut values, &mut ends, most)?;
    if used != entries.len() {
        return Err(Error::corrupt(format!("{used} bytes of entries"), format!("{} bytes", entries.len())));
    }
    #[expect(clippy::cast_possible_wrap, reason = "at most i32::MAX bytes were allowed")]
    let offsets = ends.into_iter().map(|end| end as i32).collect();
    Ok((BlockStart { ordinal, count }, Values::Bytes { bytes: Buffer::from_vec(values), offsets }))
}

pub(super) fn decode_dict(
    shape: &BlockShape,
    encoded: &Bytes,
    words: Option<&Words>,
) -> Result<(BlockStart, Values)> {
    let mode = word(encoded, 0, "a mode")?;
    let rest = encoded.slice(4..);
    match mode {
        MODE_PLAIN => decode_plain(shape, &rest),
        MODE_CODEWORDS => {
            let words = words.ok_or_else(|| Error::corrupt("a dictionary", "none"))?;
            let (start, element_size, bytes) = decode_shuffled(shape, &rest)?;
            if element_size > 4 {
                return Err(Error::corrupt("codewords of 1, 2 or 4 bytes", element_size));
            }
            let codes: ScalarBuffer<u32> = if element_size == 4 {
                bytes.into()
            } else {
                let mut codes = vec![0; start.count];
                dictionary::widen(&bytes, element_size, &mut codes)?;
                codes.into()
            };
            dictionary::check_codes(&codes, u32::try_from(words.len()).unwrap_or(u32::MAX))?;
            Ok((start, Values::Codes { codes, words: Arc::clone(words) }))
        }
        other => Err(Error::corrupt("mode 1 or 2", other)),
    }
}

/// The bytes and offsets of the values `dense`; with nulls, an empty value stands for each null.
pub(super) fn cut(
    bytes: &Buffer,
    offsets: &[i32],
    dense: Range<usize>,
    nulls: Option<&NullBuffer>,
) -> Result<(Buffer, Vec<i32>)> {
    let wanted = offsets
        .get(dense.start..dense.end.saturating_add(1))
        .ok_or_else(|| Error::invalid(format!("values {dense:?} of {}", offsets.len().saturating_sub(1))))?;
    let first = wanted.first().copied().unwrap_or_default();
    let last = wanted.last().copied().unwrap_or_default();
    let position = |offset: i32| usize::try_from(offset).unwrap_or_default();
    let length = position(last).saturating_sub(position(first));
    let cut = bytes.slice_with_length(position(first), length);
    let mut rebased = wanted.iter().map(|offset| offset.wrapping_sub(first));
    let Some(nulls) = nulls else { return Ok((cut, rebased.collect())) };
    let mut spread = Vec::with_capacity(nulls.len().saturating_add(1));
    let mut at = rebased.next().unwrap_or_default();
    spread.push(at);
    for is_set in nulls.iter() {
        if is_set {
            at = rebased.next().unwrap_or(at);
        }
        spread.push(at);
    }
    Ok((cut, spread))
}
