//! Finding data blocks without an index.
//!
//! Blocks touch each other, so walking from the header finds them one after the other, if the end of each can be told:
//! by the lengths that encodings, codecs and index blocks carry (`lengths`), or by its checksum, which stands right behind the
//! bytes it covers. What is found is believed only if it decodes. After a damaged block the next one is found by its
//! checksum; in files without checksums by trying every byte as its start, and then only if another block, or the end,
//! follows it.

use std::ops::Range;

use bytes::Bytes;
use pilaster_core::{Error, Result};

use super::block::Block;
use super::decode::{MODE_CODEWORDS, decode_plain_bytes};
use super::file::{CFile, LocatedBlock};
use super::index::{IndexNode, IndexTree, KeyOrder};
use super::lengths::{encoded_start, lengths, word};
use super::metadata::{BlockPointer, is_footer_start};
use super::resync::checksummed_stretches;
use super::types::{Compression, Encoding};

/// Shortest stretch in which the end of a block is looked for when nothing tells its length.
const SHORTEST_SEARCH_BYTES: usize = 1 << 20;
/// The longest: the largest block that Kudu takes, with its header and checksum.
const LONGEST_SEARCH_BYTES: usize = (16 << 20) + 16;
/// Bytes that may be decoded while looking for blocks behind damage in a file without checksums, per byte of the file:
/// beyond this a walk would take hours.
const SEARCH_BUDGET_PER_BYTE: u64 = 4096;
/// Bytes behind damage that are looked at together as possible starts of a block.
const STARTS_AT_ONCE: usize = 2 << 20;
/// How much of the file must be in memory at each step of a walk.
const NEEDED_BYTES: u64 = (LONGEST_SEARCH_BYTES + STARTS_AT_ONCE) as u64;
/// How much of it is.
const WINDOW_BYTES: u64 = 2 * NEEDED_BYTES;

/// What a walk found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub data: Vec<LocatedBlock>,
    pub indexes: Vec<BlockPointer>,
    pub dictionary: Option<BlockPointer>,
    /// Bytes that are part of no block, in file order.
    pub unclaimed: Vec<Range<u64>>,
}

/// The data blocks of a damaged file by row, and what is known to be wrong with each: by the index where it can be
/// read, else by a walk.
pub(crate) fn salvage_map(file: &CFile) -> Vec<(LocatedBlock, Option<Error>)> {
    let tree = file.positional.as_ref().or(file.by_value.as_ref());
    let index_is_sound = tree.is_some_and(|tree: &IndexTree| tree.blocks(&file.store).1.is_empty());
    let blocks = match file.located_blocks() {
        Ok(blocks) if index_is_sound => blocks,
        _ => walk(file).data,
    };
    let blocks = in_row_order(blocks, file.metadata().num_values);
    blocks.into_iter().map(|block| (block, None)).collect()
}

/// Blocks by row; those that overlap one before, or rows that the file does not have, are left out.
pub(crate) fn in_row_order(mut blocks: Vec<LocatedBlock>, rows: u64) -> Vec<LocatedBlock> {
    blocks.sort_by_key(|block| block.rows.start);
    let mut end = 0;
    blocks.retain(|block| {
        let fits = !block.rows.is_empty() && block.rows.start >= end && block.rows.end <= rows;
        end = if fits { block.rows.end } else { end };
        fits
    });
    blocks
}

/// Walks over all blocks of the file.
pub(crate) fn walk(file: &CFile) -> Found {
    let mut found = Found::default();
    let mut at = file.metadata().blocks_start;
    let end = file.metadata().blocks_end;
    let mut claimed = at;
    let mut search = Search { file, budget: end.saturating_mul(SEARCH_BUDGET_PER_BYTE), largest: 0 };
    let mut window = Window { file, start: 0, bytes: Bytes::new() };
    let has_checksums = file.metadata().has_checksums();
    let mut is_lost = false;
    let mut next_row = 0;
    while at < end && search.budget > 0 {
        let Ok(rest) = window.from(at) else { break };
        let next = match (is_lost, has_checksums) {
            (true, true) => search.block_behind_damage(at, &rest),
            (false, true) => search.next_block(at, &rest, is_lost),
            // Without a checksum a block may seem to be there by chance: its rows must follow, and what follows it be a block.
            (_, false) => search.next_block(at, &rest, is_lost).filter(|block| {
                let follows = match &block.1 {
                    Kind::Data(rows) if is_lost => rows.start >= next_row,
                    Kind::Data(rows) => rows.start == next_row,
                    Kind::Index | Kind::Dictionary => true,
                };
                follows && (!is_lost || search.is_confirmed(block, &mut window))
            }),
        };
        match next {
            Some((pointer, kind)) => {
                if pointer.offset > claimed {
                    found.unclaimed.push(claimed..pointer.offset);
                }
                match kind {
                    Kind::Data(rows) => {
                        next_row = rows.end;
                        found.data.push(LocatedBlock { pointer, rows });
                    }
                    Kind::Dictionary => found.dictionary = Some(pointer),
                    Kind::Index => found.indexes.push(pointer),
                }
                at = pointer.end();
                claimed = at;
                is_lost = false;
            }
            None => {
                let passed = if is_lost && has_checksums { STARTS_AT_ONCE } else { 1 };
                at = at.saturating_add(passed as u64);
                is_lost = true;
            }
        }
    }
    if claimed < end {
        found.unclaimed.push(claimed..end);
    }
    found
}

/// Whether the first block of the file is one of its shape.
pub(crate) fn has_first_block(file: &CFile) -> bool {
    let start = file.metadata().blocks_start;
    let Ok(rest) = (Window { file, start: 0, bytes: Bytes::new() }).from(start) else { return false };
    let mut search = Search { file, budget: u64::MAX, largest: 0 };
    let first = lengths(file, &rest, usize::MAX, &mut search.budget)
        .into_iter()
        .find_map(|length| search.try_length(start, &rest, length.saturating_add(search.checksum_bytes())));
    matches!(first, Some((_, Kind::Data(rows))) if rows.start == 0)
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
        let need_end = at.saturating_add(NEEDED_BYTES).min(file_end);
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
    Data(Range<u64>),
    Index,
    Dictionary,
}

/// Looks for blocks; see the module.
struct Search<'a> {
    file: &'a CFile,
    /// Bytes that may still be looked at in vain.
    budget: u64,
    /// Bytes of the largest block so far, stored or decompressed. Those of one file are of a size.
    largest: usize,
}

impl Search<'_> {
    /// The block that begins with `rest`, if one does.
    fn next_block(&mut self, offset: u64, rest: &Bytes, is_lost: bool) -> Option<(BlockPointer, Kind)> {
        // What tells its own length needs one look only.
        let longest = if is_lost { self.longest() } else { usize::MAX };
        for payload_length in lengths(self.file, rest, longest, &mut self.budget) {
            let length = payload_length.saturating_add(self.checksum_bytes());
            if let Some(block) = self.try_length(offset, rest, length) {
                return Some(block);
            }
        }
        if self.checksum_bytes() == 0 {
            return None;
        }
        let searched = rest.get(..self.longest().min(rest.len())).unwrap_or_default();
        self.first_block(block_ends(searched).map(|length| 0..length), offset, rest)
    }

    /// The first of the `stretches` of `rest` that is a block. Hostile bytes have many that are none.
    fn first_block(
        &mut self,
        stretches: impl Iterator<Item = Range<usize>>,
        offset: u64,
        rest: &Bytes,
    ) -> Option<(BlockPointer, Kind)> {
        for stretch in stretches {
            if self.budget == 0 {
                return None;
            }
            let start = offset.saturating_add(stretch.start as u64);
            let block = self.try_length(start, &rest.slice(stretch.start..), stretch.len());
            if block.is_some() {
                return block;
            }
        }
        None
    }

    /// How long a block may be whose length nothing tells.
    fn longest(&self) -> usize {
        match self.largest {
            0 => LONGEST_SEARCH_BYTES,
            largest => largest.saturating_mul(2).clamp(SHORTEST_SEARCH_BYTES, LONGEST_SEARCH_BYTES),
        }
    }

    fn checksum_bytes(&self) -> usize {
        if self.file.metadata().has_checksums() { 4 } else { 0 }
    }

    fn try_length(&mut self, offset: u64, rest: &Bytes, length: usize) -> Option<(BlockPointer, Kind)> {
        let stored = rest.get(..length).map(|_| rest.slice(..length))?;
        // A checksum or a codec goes over all bytes; else most guesses fail at the first.
        let metadata = self.file.metadata();
        let is_raw = !metadata.has_checksums() && metadata.compression == Compression::None;
        let is_stored_raw =
            !metadata.has_checksums() && word(rest, 0).is_some_and(|u| u.saturating_add(4) == length);
        let work = if is_raw || is_stored_raw { (length / 256).saturating_add(16) } else { length };
        self.budget = self.budget.saturating_sub(work as u64);
        let pointer = BlockPointer { offset, size: u32::try_from(length).ok()? };
        let (kind, payload_bytes) = classify(self.file, offset, stored)?;
        self.largest = self.largest.max(length).max(payload_bytes);
        Some((pointer, kind))
    }

    /// The first block that begins somewhere in the next [`STARTS_AT_ONCE`] bytes, found by its checksum.
    fn block_behind_damage(&mut self, at: u64, rest: &Bytes) -> Option<(BlockPointer, Kind)> {
        let longest = self.longest();
        let searched = rest.get(..rest.len().min(STARTS_AT_ONCE.saturating_add(longest)))?;
        self.first_block(checksummed_stretches(searched, STARTS_AT_ONCE, longest), at, rest)
    }

    /// Whether what follows a block that was found behind damage speaks for it: without a checksum it may be there by chance.
    fn is_confirmed(&mut self, (pointer, kind): &(BlockPointer, Kind), window: &mut Window<'_>) -> bool {
        let end = self.file.metadata().blocks_end;
        if pointer.end() >= end {
            return true;
        }
        let Ok(rest) = window.from(pointer.end()) else { return false };
        match (kind, self.next_block(pointer.end(), &rest, false)) {
            (Kind::Data(rows), Some((_, Kind::Data(next)))) => rows.end == next.start,
            (_, Some(_)) => true,
            (_, None) => is_footer_start(self.file.metadata(), &rest),
        }
    }
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

/// What the stored bytes of a block are, if they are a block: right checksum, and a payload that decodes; and how long that is.
fn classify(file: &CFile, offset: u64, stored: Bytes) -> Option<(Kind, usize)> {
    let mut store = file.store.clone();
    store.verify_checksums = true;
    let pointer = BlockPointer { offset, size: u32::try_from(stored.len()).ok()? };
    let block: Block = store.open(pointer, stored, "cfile block").ok()?;
    Some((kind_of(file, &block)?, block.payload.len()))
}

fn kind_of(file: &CFile, block: &Block) -> Option<Kind> {
    if IndexNode::open(&block.payload).and_then(|node| node.check(KeyOrder::Any)).is_ok() {
        return Some(Kind::Index);
    }
    // A DICT block of codewords needs no entries to be recognised, only to be read.
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
    let mut decoded = file.decode(block).ok()?;
    if !file.metadata().has_checksums() {
        decoded.check(&file.shape).ok()?;
    }
    let end = decoded.first_row.checked_add(decoded.rows as u64)?;
    Some(Kind::Data(decoded.first_row..end))
}

fn rows_of_codes(file: &CFile, payload: &Bytes) -> Option<Range<u64>> {
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
