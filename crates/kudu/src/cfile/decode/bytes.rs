//! Values of any length: PLAIN, PREFIX and DICT.
//!
//! ```text
//! PLAIN:  | u32 ordinal | u32 count | u32 P | values | at P: offsets from block start, group varint, groups of 4 |
//! PREFIX: | group: count, ordinal, restart interval, 0 | entries | u32 position of each restart | u32 restarts |
//! DICT:   | u32 mode | 1: BIT_SHUFFLE block of codewords; 2: PLAIN block |
//! ```

use arrow_buffer::Buffer;
use bytes::Bytes;
use pilaster_core::views::Strings;
use pilaster_core::{Error, Result};
use pilaster_encoding::{group_varint, prefix};

use super::{BlockShape, BlockStart, FindWords, Values, shuffled, word};
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
    let mut starts = Vec::with_capacity(count.next_multiple_of(4).saturating_add(1));
    let used = group_varint::decode(groups, count, &mut starts)?;
    if used != groups.len() {
        return Err(Error::corrupt(format!("{used} bytes of offsets"), format!("{} bytes", groups.len())));
    }
    let offsets = rebase(starts, PLAIN_HEADER_BYTES, offsets_at)?;
    let values = Buffer::from(encoded.slice(PLAIN_HEADER_BYTES..offsets_at));
    Ok((BlockStart { ordinal, count }, Values::Bytes(Strings { bytes: values, offsets })))
}

/// Offsets from the first value, with the end of the last one.
fn rebase(mut starts: Vec<u32>, header_bytes: usize, end: usize) -> Result<Vec<u32>> {
    let base = u32::try_from(header_bytes).unwrap_or(u32::MAX);
    let end = u32::try_from(end).map_err(|_| Error::corrupt("a block below 4 GiB", end))?;
    if starts.first().is_some_and(|first| *first != base) {
        return Err(Error::corrupt(format!("a first offset of {base}"), "another"));
    }
    if !starts.is_empty() {
        starts.push(end);
    } else {
        starts.push(base);
    }
    // Whether they ascend is checked once, here.
    let ascend = |pair: &[u32]| matches!(pair, [start, end] if start <= end);
    if !starts.windows(2).fold(true, |all, pair| all & ascend(pair)) {
        return Err(Error::corrupt(format!("offsets that ascend from {base} to at most {end}"), "others"));
    }
    for start in &mut starts {
        *start = start.wrapping_sub(base);
    }
    Ok(starts)
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
    let strings = Strings { bytes: Buffer::from_vec(values), offsets: ends };
    Ok((BlockStart { ordinal, count }, Values::Bytes(strings)))
}

pub(super) fn decode_dict(
    shape: &BlockShape,
    encoded: &Bytes,
    words: FindWords<'_>,
) -> Result<(BlockStart, Values)> {
    let mode = word(encoded, 0, "a mode")?;
    let rest = encoded.slice(size_of::<u32>()..);
    match mode {
        MODE_PLAIN => decode_plain(shape, &rest),
        MODE_CODEWORDS => {
            let words = words()?.ok_or_else(|| Error::corrupt("a dictionary", "none"))?;
            let (start, codes) = shuffled::open(shape, &rest)?;
            if codes.width() > 4 {
                return Err(Error::corrupt("codewords of 1, 2 or 4 bytes", codes.width()));
            }
            Ok((start, Values::Codes { codes, words }))
        }
        other => Err(Error::corrupt("mode 1 or 2", other)),
    }
}
