//! Values of any length.
//!
//! ```text
//! PLAIN:    | bytes of all values | u32 offset of each | u32 count |
//! PLAIN_V2: | (varint length, bytes) of each | u32 count |
//! PLAIN_V3: | bytes of all values | varint length of each | u32 bytes of all values | u32 count |
//! PREFIX:   | entries | u32 count | u8 restart interval | u32 offset of each restart | u32 restarts |
//! ```

use arrow_buffer::Buffer;
use bytes::Bytes;
use pilaster_core::views::Strings;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::{prefix, utf8, varint};

use super::{check_count, word};
use crate::segment::types::Encoding;

pub(super) fn decode(encoded: &Bytes, encoding: Encoding, count: usize, limits: &Limits) -> Result<Strings> {
    let cells = match encoding {
        Encoding::Plain | Encoding::PlainV2 | Encoding::PlainV3 => decode_plain(encoded, encoding)?,
        Encoding::Prefix => decode_prefix(encoded, limits)?,
        other => return Err(Error::corrupt("an encoding of cells of any length", other)),
    };
    check_count(cells.len(), count)?;
    Ok(cells)
}

/// As many values as the page says, in one of the three plain forms.
pub(crate) fn decode_plain(encoded: &Bytes, encoding: Encoding) -> Result<Strings> {
    let (rest, count) = split_word(encoded)?;
    match encoding {
        Encoding::Plain => {
            let offsets_at = rest.checked_sub(count.saturating_mul(4)).ok_or_else(|| {
                Error::corrupt(format!("{count} offsets"), format!("a page of {} bytes", encoded.len()))
            })?;
            let stored = encoded.get(offsets_at..rest).unwrap_or_default();
            let mut offsets: Vec<u32> =
                stored.as_chunks::<4>().0.iter().map(|four| u32::from_le_bytes(*four)).collect();
            offsets.push(end(offsets_at)?);
            checked(encoded.slice(..offsets_at), offsets)
        }
        Encoding::PlainV2 => {
            // A value takes a byte or more.
            if count > rest {
                return Err(Error::corrupt(format!("{count} values"), format!("{rest} bytes")));
            }
            let (mut values, mut offsets, mut at) = (Vec::with_capacity(rest), vec![0], 0);
            for _ in 0..count {
                let length = varint::read_u32(encoded.get(..rest).unwrap_or_default(), &mut at)? as usize;
                let until = at.saturating_add(length);
                let value = encoded.get(at..until).filter(|_| until <= rest).ok_or_else(|| {
                    Error::corrupt(format!("a value of {length} bytes"), "the end of the page")
                })?;
                values.extend_from_slice(value);
                offsets.push(end(values.len())?);
                at = until;
            }
            if at != rest {
                return Err(Error::corrupt(format!("{at} bytes of values"), format!("{rest} bytes")));
            }
            Ok(Strings { bytes: values.into(), offsets })
        }
        _ => {
            let (rest, data_bytes) = split_word(encoded.get(..rest).unwrap_or_default())?;
            let lengths = encoded.get(data_bytes..rest).ok_or_else(|| {
                Error::corrupt(
                    format!("{data_bytes} bytes of values"),
                    format!("a page of {} bytes", encoded.len()),
                )
            })?;
            if count > lengths.len() {
                return Err(Error::corrupt(
                    format!("lengths of {count} values"),
                    format!("{} bytes", lengths.len()),
                ));
            }
            let (mut offsets, mut at, mut sum) = (Vec::with_capacity(count.saturating_add(1)), 0, 0usize);
            offsets.push(0);
            for _ in 0..count {
                sum = sum.saturating_add(varint::read_u32(lengths, &mut at)? as usize);
                offsets.push(end(sum)?);
            }
            if at != lengths.len() || sum != data_bytes {
                return Err(Error::corrupt(format!("lengths that sum to {data_bytes}"), sum));
            }
            checked(encoded.slice(..data_bytes), offsets)
        }
    }
}

/// The last entry, and where it begins.
fn split_word(encoded: &[u8]) -> Result<(usize, usize)> {
    let at = encoded
        .len()
        .checked_sub(4)
        .ok_or_else(|| Error::corrupt("a count", format!("a page of {} bytes", encoded.len())))?;
    Ok((at, word(encoded, at, "a count")? as usize))
}

fn end(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| Error::corrupt("a page below 4 GiB", length))
}

/// Offsets that ascend, from 0 to the end of the bytes.
fn checked(bytes: Bytes, offsets: Vec<u32>) -> Result<Strings> {
    utf8::check_offsets(&bytes, &offsets)?;
    Ok(Strings { bytes: Buffer::from(bytes), offsets })
}

fn decode_prefix(encoded: &Bytes, limits: &Limits) -> Result<Strings> {
    let (rest, restarts) = split_word(encoded)?;
    let missing =
        || Error::corrupt("a trailer of prefix entries", format!("a page of {} bytes", encoded.len()));
    // Count, restart interval and restart offsets stand before the number of restarts.
    let trailer =
        rest.checked_sub(restarts.saturating_mul(4)).and_then(|at| at.checked_sub(5)).ok_or_else(missing)?;
    let count = word(encoded, trailer, "a count")? as usize;
    let interval = encoded.get(trailer.saturating_add(4)).copied().ok_or_else(missing)?;
    if interval == 0 || restarts != count.div_ceil(usize::from(interval)) {
        return Err(Error::corrupt(
            format!("a restart every {interval} of {count} values"),
            format!("{restarts} restarts"),
        ));
    }
    let entries = encoded.get(..trailer).unwrap_or_default();
    let most = usize::try_from(limits.decoded_bytes.min(i32::MAX as u64)).unwrap_or(usize::MAX);
    let (mut values, mut offsets) = (Vec::new(), Vec::new());
    let used = prefix::decode(entries, count, &mut values, &mut offsets, most)?;
    if used != entries.len() {
        return Err(Error::corrupt(format!("{used} bytes of entries"), format!("{} bytes", entries.len())));
    }
    Ok(Strings { bytes: values.into(), offsets })
}
