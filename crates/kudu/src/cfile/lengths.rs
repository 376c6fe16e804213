//! How long a block is, as its own bytes tell.
//!
//! | block | told by |
//! | --- | --- |
//! | compressed, version 1 | its header |
//! | compressed, version 2 | the codec: its content is known, and where that is complete the block ends; or it is stored raw |
//! | PLAIN numbers, BIT_SHUFFLE, strings | counts and positions in their headers |
//! | RLE, PREFIX, GROUP_VARINT | going over their runs, entries or groups |
//! | index block | going over its entries, up to the list of their positions |
//!
//! All are guesses until the block decodes. Looking for blocks behind damage asks at every byte, so what is gone over is
//! taken from a budget.

use pilaster_encoding::{group_varint, rle, varint};

use super::block::MAX_UNCOMPRESSED_BYTES;
use super::decode::{MODE_CODEWORDS, MODE_PLAIN, PLAIN_HEADER_BYTES, SHUFFLE_HEADER_BYTES};
use super::file::CFile;
use super::index::stated_length as index_length;
use super::metadata::Version;
use super::types::{Compression, Encoding, Physical};

/// Lengths, without a checksum, that the block may have that begins with `rest`: at most `longest`, also decompressed. What was gone
/// over is taken from `budget`.
pub(super) fn lengths(file: &CFile, rest: &[u8], longest: usize, budget: &mut u64) -> Vec<usize> {
    let metadata = file.metadata();
    let lengths: Vec<usize> = if metadata.compression == Compression::None {
        let data = encoded_start(file, rest).and_then(|(at, _)| {
            let encoded = rest.get(at..)?;
            at.checked_add(encoded_length(file, encoded, budget)?)
        });
        let words = match metadata.encoding {
            Encoding::Dict => plain_length(rest, budget),
            _ => None,
        };
        let (index, entries) = index_length(rest);
        spend(budget, entries);
        // An index block is the hardest to take for another.
        [index, words, data].into_iter().flatten().collect()
    } else {
        compressed_lengths(file, rest, longest, budget)
    };
    lengths.into_iter().filter(|length| *length <= rest.len().min(longest)).collect()
}

fn spend(budget: &mut u64, bytes: usize) {
    *budget = budget.saturating_sub(bytes as u64);
}

fn compressed_lengths(file: &CFile, rest: &[u8], longest: usize, budget: &mut u64) -> Vec<usize> {
    let metadata = file.metadata();
    let (Some(stated), Some(codec)) = (word(rest, 0), metadata.compression.codec()) else {
        return Vec::new();
    };
    if metadata.version == Version::V1 {
        return vec![stated.saturating_add(8)];
    }
    if stated as u64 > MAX_UNCOMPRESSED_BYTES.min(longest as u64) {
        return Vec::new();
    }
    let compressed = match codec.stored_length(rest.get(4..).unwrap_or_default(), stated) {
        Ok(length) => {
            spend(budget, length);
            Some(length).filter(|length| *length < stated)
        }
        Err(error) => {
            spend(budget, error.at);
            None
        }
    };
    let lengths = compressed.into_iter().chain([stated]);
    lengths.map(|length| length.saturating_add(4)).collect()
}

/// Where the encoded values begin, and the number of rows if a null bitmap or array lengths told it.
pub(super) fn encoded_start(file: &CFile, payload: &[u8]) -> Option<(usize, Option<u64>)> {
    let mut at = 0;
    if file.metadata().is_array {
        let _elements = varint::read_u32(payload, &mut at).ok()?;
        let cells = varint::read_u32(payload, &mut at).ok()?;
        // Which elements are null, how long each cell is, which cells are null.
        for _ in 0..3 {
            let size = varint::read_u32(payload, &mut at).ok()? as usize;
            at = at.checked_add(size)?;
        }
        return Some((at, Some(u64::from(cells))));
    }
    if !file.metadata().is_nullable {
        return Some((0, None));
    }
    let rows = varint::read_u32(payload, &mut at).ok()?;
    let bitmap = varint::read_u32(payload, &mut at).ok()? as usize;
    Some((at.checked_add(bitmap)?, Some(u64::from(rows))))
}

/// A little-endian word.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<usize> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four) as usize)
}

fn encoded_length(file: &CFile, encoded: &[u8], budget: &mut u64) -> Option<usize> {
    let metadata = file.metadata();
    let word = |at: usize| word(encoded, at);
    match (metadata.data_type.physical(), metadata.encoding) {
        (Physical::Fixed(width), Encoding::Plain) => word(0)?.checked_mul(width)?.checked_add(8),
        (Physical::Bool, Encoding::Plain) => word(0)?.div_ceil(8).checked_add(8),
        (physical, Encoding::Rle) => {
            let bits = match physical {
                Physical::Fixed(width) => u32::try_from(width.checked_mul(8)?).ok()?,
                Physical::Bool | Physical::Binary => 1,
            };
            let count = word(0)?;
            let length = rle::stream_length(encoded.get(8..)?, bits, count, budget).ok()?;
            // Few runs may be many values.
            spend(budget, count / 16);
            length.checked_add(8)
        }
        (_, Encoding::BitShuffle) => word(8).filter(|size| *size >= SHUFFLE_HEADER_BYTES),
        (_, Encoding::GroupVarint) => {
            let mut at = 0;
            let [count, ..] = group_varint::decode_group(encoded, &mut at).ok()?;
            groups_length(encoded, at, count as usize, budget)
        }
        (_, Encoding::Prefix) => prefix_length(encoded, budget),
        (Physical::Binary, Encoding::Plain) => plain_length(encoded, budget),
        (Physical::Binary, Encoding::Dict) => match u32::try_from(word(0)?).ok()? {
            MODE_CODEWORDS => word(12)?.checked_add(4),
            MODE_PLAIN => plain_length(encoded.get(4..)?, budget)?.checked_add(4),
            _ => None,
        },
        _ => None,
    }
}

/// Entries are gone over without putting their values together.
fn prefix_length(encoded: &[u8], budget: &mut u64) -> Option<usize> {
    let mut at = 0;
    let [count, _, interval, _] = group_varint::decode_group(encoded, &mut at).ok()?;
    let mut entry = || {
        let _shared = varint::read_u32(encoded, &mut at).ok()?;
        let unshared = varint::read_u32(encoded, &mut at).ok()? as usize;
        at = at.checked_add(unshared).filter(|end| *end <= encoded.len())?;
        Some(())
    };
    let whole = (0..count).take_while(|_| entry().is_some()).count();
    spend(budget, whole);
    let restarts = count.saturating_sub(1).checked_div(interval)? as usize;
    at.checked_add(restarts.checked_mul(4)?)?.checked_add(4).filter(|_| whole == count as usize)
}

fn plain_length(encoded: &[u8], budget: &mut u64) -> Option<usize> {
    let (count, offsets_at) = (word(encoded, 4)?, word(encoded, 8)?);
    groups_length(encoded, offsets_at.max(PLAIN_HEADER_BYTES), count, budget)
}

/// Where groups of four for `count` numbers end that begin at `at`.
fn groups_length(encoded: &[u8], at: usize, count: usize, budget: &mut u64) -> Option<usize> {
    let groups = encoded.get(at..)?;
    if count.div_ceil(4).checked_mul(5)? > groups.len() {
        return None;
    }
    spend(budget, count);
    let mut numbers = Vec::new();
    at.checked_add(group_varint::decode(groups, count, &mut numbers).ok()?)
}
