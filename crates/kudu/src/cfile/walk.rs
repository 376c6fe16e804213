//! Finding data blocks without an index.
//!
//! Blocks touch each other, so walking from the header finds them one after the other, if the end of each can be told:
//! by the lengths most encodings carry, or by its checksum, which stands right behind the bytes it covers. What is found
//! is believed only if it decodes. After a damaged block the next one is found by its checksum, or, in files without
//! checksums, by trying every byte as its start.

use bytes::Bytes;
use pilaster_core::Result;
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::{group_varint, prefix, varint};

use super::block::{Block, MAX_UNCOMPRESSED_BYTES};
use super::decode::{
    MODE_CODEWORDS, MODE_PLAIN, PLAIN_HEADER_BYTES, SHUFFLE_HEADER_BYTES, decode_plain_bytes,
};
use super::file::{CFile, LocatedBlock};
use super::index::{IndexNode, IndexTree, KeyOrder};
use super::metadata::{BlockPointer, Version};
use super::resync::checksummed_stretches;
use super::types::{Compression, Encoding, Physical};

/// Longest stretch in which the end of a block is looked for when nothing tells its length.
const LONGEST_SEARCH_BYTES: usize = 1 << 20;
/// Bytes that may be decoded while looking for blocks behind damage in a file without checksums, per byte of the file:
/// beyond this a walk would take hours.
const SEARCH_BUDGET_PER_BYTE: u64 = 4096;
/// Bytes behind damage that are looked at together as possible starts of a block.
const STARTS_AT_ONCE: usize = 1 << 20;
/// How much of the file is in memory during a walk.
const WINDOW_BYTES: u64 = 2 * MAX_UNCOMPRESSED_BYTES;

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub data: Vec<LocatedBlock>,
    pub dictionary: Option<BlockPointer>,
}

/// The data blocks of a damaged file by row, and what is known to be wrong with each: by the index where it can be
/// read, else by a walk.
pub(crate) fn salvage_map(file: &CFile) -> Vec<(LocatedBlock, Option<String>)> {
    let tree = file.positional.as_ref().or(file.by_value.as_ref());
    let index_is_sound = tree.is_some_and(|tree: &IndexTree| tree.blocks(&file.store).1.is_empty());
    let mut blocks = match file.located_blocks() {
        Ok(blocks) if index_is_sound => blocks,
        _ => walk(file).data,
    };
    blocks.sort_by_key(|block| block.rows.start);
    let mut end = 0;
    blocks.retain(|block| {
        let fits =
            !block.rows.is_empty() && block.rows.start >= end && block.rows.end <= file.metadata().num_values;
        end = if fits { block.rows.end } else { end };
        fits
    });
    blocks.into_iter().map(|block| (block, None)).collect()
}

/// Walks over all blocks of the file.
pub(crate) fn walk(file: &CFile) -> Found {
    let mut found = Found::default();
    let mut at = file.metadata().blocks_start;
    let end = file.metadata().blocks_end;
    let mut budget = end.saturating_mul(SEARCH_BUDGET_PER_BYTE);
    let mut window = Window { file, start: 0, bytes: Bytes::new() };
    let mut is_lost = false;
    while at < end && budget > 0 {
        let Ok(rest) = window.from(at) else { break };
        let next = if is_lost && file.metadata().has_checksums() {
            block_behind_damage(file, at, &rest)
        } else {
            next_block(file, at, &rest, &mut budget)
        };
        match next {
            Some((pointer, kind)) => {
                match kind {
                    Kind::Data(rows) => found.data.push(LocatedBlock { pointer, rows }),
                    Kind::Dictionary => found.dictionary = Some(pointer),
                    Kind::Index => {}
                }
                at = pointer.end();
                is_lost = false;
            }
            None => {
                let passed = if is_lost && file.metadata().has_checksums() { STARTS_AT_ONCE } else { 1 };
                at = at.saturating_add(passed as u64);
                is_lost = true;
            }
        }
    }
    found
}

/// The first block that begins somewhere in the next [`STARTS_AT_ONCE`] bytes, found by its checksum.
fn block_behind_damage(file: &CFile, at: u64, rest: &Bytes) -> Option<(BlockPointer, Kind)> {
    let searched = rest.get(..rest.len().min(STARTS_AT_ONCE + LONGEST_SEARCH_BYTES))?;
    checksummed_stretches(searched, STARTS_AT_ONCE, LONGEST_SEARCH_BYTES).into_iter().find_map(|stretch| {
        let offset = at.saturating_add(stretch.start as u64);
        let pointer = BlockPointer { offset, size: u32::try_from(stretch.len()).ok()? };
        Some((pointer, classify(file, offset, rest.slice(stretch))?))
    })
}

/// A part of the file in memory, moved along as the walk goes.
struct Window<'a> {
    file: &'a CFile,
    start: u64,
    bytes: Bytes,
}

impl Window<'_> {
    /// The bytes from `at` on, at least as many as the largest block has or the file holds.
    fn from(&mut self, at: u64) -> Result<Bytes> {
        let file_end = self.file.metadata().blocks_end;
        let have_end = self.start.saturating_add(self.bytes.len() as u64);
        let need_end = at.saturating_add(MAX_UNCOMPRESSED_BYTES + 16).min(file_end);
        if at < self.start || need_end > have_end {
            let end = at.saturating_add(WINDOW_BYTES).min(file_end);
            self.bytes = self.file.store.source.read_at(at..end)?;
            self.start = at;
        }
        let from = usize::try_from(at.saturating_sub(self.start)).unwrap_or(usize::MAX);
        Ok(self.bytes.slice(from.min(self.bytes.len())..))
    }
}

enum Kind {
    Data(std::ops::Range<u64>),
    Index,
    Dictionary,
}

/// The block that begins with `rest`, if one does.
fn next_block(file: &CFile, offset: u64, rest: &Bytes, budget: &mut u64) -> Option<(BlockPointer, Kind)> {
    let checksum_bytes = if file.metadata().has_checksums() { 4 } else { 0 };
    let try_length = |length: usize| {
        let stored = rest.get(..length).map(|_| rest.slice(..length))?;
        let pointer = BlockPointer { offset, size: u32::try_from(length).ok()? };
        Some((pointer, classify(file, offset, stored)?))
    };
    // What tells its own length needs one look only.
    if let Some(payload_length) = stated_length(file, rest) {
        *budget = budget.saturating_sub(payload_length.min(rest.len()) as u64);
        if let Some(block) = try_length(payload_length.saturating_add(checksum_bytes)) {
            return Some(block);
        }
    }
    if checksum_bytes == 0 {
        return None;
    }
    let searched = rest.get(..LONGEST_SEARCH_BYTES.min(rest.len())).unwrap_or_default();
    block_ends(searched).find_map(try_length)
}

/// Every length at which the bytes so far are followed by their own checksum.
fn block_ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    const TABLE: [u32; 256] = crc_table();
    let mut register = u32::MAX;
    bytes.windows(4).enumerate().filter_map(move |(at, next)| {
        let stored = next.first_chunk::<4>().map_or(0, |four| u32::from_le_bytes(*four));
        let matches = at > 0 && !register == stored;
        let byte = next.first().copied().unwrap_or_default();
        let index = usize::from(register.to_le_bytes()[0] ^ byte);
        register = TABLE.get(index).copied().unwrap_or_default() ^ (register >> 8);
        matches.then(|| at.saturating_add(4))
    })
}

/// CRC-32C one byte at a time: here the checksum of every prefix is wanted, which no library gives.
#[expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "computed by the compiler, which would refuse a fault"
)]
const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0u32;
    while index < 256 {
        let mut value = index;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0x82F6_3B78 } else { value >> 1 };
            bit += 1;
        }
        table[index as usize] = value;
        index += 1;
    }
    table
}

/// What the stored bytes of a block are, if they are a block: right checksum, and a payload that decodes.
fn classify(file: &CFile, offset: u64, stored: Bytes) -> Option<Kind> {
    let mut store = file.store.clone();
    store.verify_checksums = true;
    if let Some((body, checksum)) = stored.split_last_chunk::<4>()
        && file.metadata().has_checksums()
        && crc32c(body) != u32::from_le_bytes(*checksum)
    {
        return None;
    }
    let pointer = BlockPointer { offset, size: u32::try_from(stored.len()).ok()? };
    let block: Block = store.open(pointer, stored, "cfile block").ok()?;
    if IndexNode::open(&block.payload).and_then(|node| node.check(KeyOrder::Any)).is_ok() {
        return Some(Kind::Index);
    }
    // A DICT block of codewords needs no words to be recognised, only to be read.
    if file.metadata().encoding == Encoding::Dict {
        if let Some(rows) = rows_of_codes(file, &block.payload) {
            return Some(Kind::Data(rows));
        }
        if let Ok((start, _)) = decode_plain_bytes(&file.shape, &block.payload)
            && start.ordinal == 0
        {
            return Some(Kind::Dictionary);
        }
    }
    let mut decoded = file.decode(&block).ok()?;
    if !file.metadata().has_checksums() {
        decoded.check(&file.shape.target).ok()?;
    }
    let end = decoded.first_row.checked_add(decoded.rows as u64)?;
    Some(Kind::Data(decoded.first_row..end))
}

fn rows_of_codes(file: &CFile, payload: &Bytes) -> Option<std::ops::Range<u64>> {
    let (at, rows) = encoded_start(file, payload)?;
    let word = |from: usize| {
        payload.get(at.checked_add(from)?..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
    };
    if word(0)? != MODE_CODEWORDS {
        return None;
    }
    let (ordinal, count, size) = (word(4)?, word(8)?, word(12)?);
    let is_whole = size as usize == payload.len().checked_sub(at)?.checked_sub(4)?;
    let rows = rows.unwrap_or(u64::from(count));
    (is_whole && rows > 0).then(|| u64::from(ordinal)..u64::from(ordinal).saturating_add(rows))
}

/// Where the encoded values begin, and the number of rows if a null bitmap or array lengths told it.
fn encoded_start(file: &CFile, payload: &[u8]) -> Option<(usize, Option<u64>)> {
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

/// The length of the block without its checksum, if its bytes say it.
fn stated_length(file: &CFile, rest: &[u8]) -> Option<usize> {
    let metadata = file.metadata();
    if metadata.compression != Compression::None {
        let stated = u32::from_le_bytes(*rest.first_chunk::<4>()?) as usize;
        return (metadata.version == Version::V1).then(|| stated.saturating_add(8));
    }
    let (at, _) = encoded_start(file, rest)?;
    let encoded = rest.get(at..)?;
    at.checked_add(encoded_length(file, encoded)?)
}

fn encoded_length(file: &CFile, encoded: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        encoded
            .get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|four| u32::from_le_bytes(*four) as usize)
    };
    let metadata = file.metadata();
    match (metadata.data_type.physical(), metadata.encoding) {
        (Physical::Fixed(width), Encoding::Plain) => word(0)?.checked_mul(width)?.checked_add(8),
        (Physical::Bool, Encoding::Plain) => word(0)?.div_ceil(8).checked_add(8),
        (_, Encoding::BitShuffle) => word(8).filter(|size| *size >= SHUFFLE_HEADER_BYTES),
        (_, Encoding::GroupVarint) => {
            let mut at = 0;
            let [count, ..] = group_varint::decode_group(encoded, &mut at).ok()?;
            groups_length(encoded, at, count as usize)
        }
        (_, Encoding::Prefix) => {
            let mut at = 0;
            let [count, _, interval, _] = group_varint::decode_group(encoded, &mut at).ok()?;
            let (mut values, mut offsets) = (Vec::new(), Vec::new());
            let most = LONGEST_SEARCH_BYTES.saturating_mul(16);
            if count as usize > encoded.len() {
                return None;
            }
            let used =
                prefix::decode(encoded.get(at..)?, count as usize, &mut values, &mut offsets, most).ok()?;
            let restarts = count.saturating_sub(1).checked_div(interval)? as usize;
            at.checked_add(used)?.checked_add(restarts.checked_mul(4)?)?.checked_add(4)
        }
        (Physical::Binary, Encoding::Plain) => plain_length(encoded),
        (Physical::Binary, Encoding::Dict) => match u32::try_from(word(0)?).ok()? {
            MODE_CODEWORDS => word(12)?.checked_add(4),
            MODE_PLAIN => plain_length(encoded.get(4..)?)?.checked_add(4),
            _ => None,
        },
        _ => None,
    }
}

fn plain_length(encoded: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        encoded
            .get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|four| u32::from_le_bytes(*four) as usize)
    };
    let (count, offsets_at) = (word(4)?, word(8)?);
    groups_length(encoded, offsets_at.max(PLAIN_HEADER_BYTES), count)
}

/// Where groups of four for `count` numbers end that begin at `at`.
fn groups_length(encoded: &[u8], at: usize, count: usize) -> Option<usize> {
    let groups = encoded.get(at..)?;
    if count.div_ceil(4).checked_mul(5)? > groups.len() {
        return None;
    }
    let mut numbers = Vec::new();
    at.checked_add(group_varint::decode(groups, count, &mut numbers).ok()?)
}
