//! What stands beside the values of a block and must agree with them: keys of the value index, smallest and largest key, restarts,
//! and the changes that the values of a delta file are.

use std::collections::HashMap;

use arrow_array::Array;
use arrow_schema::DataType;
use bytes::Bytes;
use pilaster_core::{Error, Result};
use pilaster_encoding::{group_varint, varint};

use super::arrow_types::Target;
use super::decode::{DecodedBlock, Form};
use super::file::CFile;
use super::kinds::{CFileKind, delta_values};
use super::lengths::encoded_start;
use super::metadata::{BlockPointer, MAX_KEY, MIN_KEY};
use super::types::{Encoding, Physical};
use super::write::Stored;
use crate::key::{self, KeyPart, decode_ordered_varint, delta_key};
use crate::tablet::ChangeList;

/// Bytes of a key that a message shows.
const SHOWN_BYTES: usize = 40;

/// The keys of the value index by the block they lead to; empty if there is none, or it is damaged.
pub(super) type IndexKeys = HashMap<BlockPointer, Bytes>;

pub(super) fn index_keys(file: &CFile) -> IndexKeys {
    let entries = file.by_value.as_ref().and_then(|tree| tree.entries(&file.store).ok());
    entries.into_iter().flatten().map(|entry| (entry.pointer, entry.key)).collect()
}

/// The keys of a file, compared block by block with what its indexes say of them.
#[derive(Debug)]
pub(super) struct KeyCheck<'a> {
    file: &'a CFile,
    index: &'a IndexKeys,
    /// The way to values as they are stored.
    target: Target,
    smallest: Option<Vec<u8>>,
    /// The last key of the block before; `None` if that could not be read.
    before: Option<Vec<u8>>,
    is_first: bool,
}

impl<'a> KeyCheck<'a> {
    /// For files with keys; `None` for others, and where the index itself is damaged.
    pub fn new(file: &'a CFile, kind: CFileKind, index: &'a IndexKeys) -> Option<Self> {
        let metadata = file.metadata();
        let can_be_key = metadata.data_type.can_be_key() || metadata.data_type.physical() == Physical::Binary;
        let may_be_null = metadata.is_nullable || metadata.is_array;
        if kind != CFileKind::Column || may_be_null || !can_be_key || index.is_empty() {
            return None;
        }
        // Keys need not be text.
        let bytes = Some(&DataType::BinaryView).filter(|_| metadata.data_type.physical() == Physical::Binary);
        Some(Self {
            file,
            index,
            target: Target::new(metadata.data_type, bytes).ok()?,
            smallest: None,
            before: None,
            is_first: true,
        })
    }

    /// Compares the keys of the next block. The separator in the index is greater than all keys before and at most the first here.
    pub fn block(&mut self, pointer: BlockPointer, block: &mut DecodedBlock) -> Result<()> {
        let array = block.read(0..block.rows, Form::Wanted, &self.target)?;
        let stored = Stored::new(&array, self.file.metadata().data_type.physical())?;
        let (first, last) =
            (self.encoded(&stored, 0)?, self.encoded(&stored, array.len().saturating_sub(1))?);
        let before = self.before.replace(last);
        if std::mem::take(&mut self.is_first) {
            self.smallest = Some(first.clone());
        }
        if !stored.ascends(&array)? || before.as_ref().is_some_and(|before| *before >= first) {
            return Err(Error::corrupt("keys that ascend, without repeats", "others"));
        }
        let Some(separator) = self.index.get(&pointer) else {
            return Err(Error::corrupt("a block that the value index names", "another"));
        };
        let is_above = before.as_ref().is_none_or(|before| before.as_slice() < separator.as_ref());
        if is_above && separator.as_ref() <= first.as_slice() {
            return Ok(());
        }
        let above = before.map(|before| format!(" above {}", shown(&before))).unwrap_or_default();
        Err(Error::corrupt(
            format!("a key in the value index{above} and at most {}", shown(&first)),
            shown(separator),
        ))
    }

    /// Forgets the block before: it could not be read.
    pub fn skip(&mut self) {
        self.before = None;
        self.is_first = false;
    }

    fn encoded(&self, stored: &Stored, row: usize) -> Result<Vec<u8>> {
        let value = stored.value(row).ok_or_else(|| Error::corrupt("a key", "none"))?;
        let mut encoded = Vec::new();
        key::encode(self.file.metadata().data_type, value, KeyPart::Last, &mut encoded)?;
        Ok(encoded)
    }

    /// Compares the smallest and the largest key with those the footer has. The last block must have been readable.
    pub fn edges(&self) -> Vec<Error> {
        let edges = [(MIN_KEY, self.smallest.as_ref()), (MAX_KEY, self.before.as_ref())];
        let differ = edges.into_iter().filter_map(|(name, found)| {
            let (stated, found) = (self.file.metadata().pair(name)?, found?);
            (stated.as_ref() != found.as_slice()).then(|| {
                Error::corrupt(format!("{name} {}, as the values have it", shown(found)), shown(stated))
            })
        });
        differ.collect()
    }
}

fn shown(key: &[u8]) -> String {
    let more = if key.len() > SHOWN_BYTES { "…" } else { "" };
    format!("\"{}{more}\"", key.get(..SHOWN_BYTES).unwrap_or(key).escape_ascii())
}

/// Every value of a block of a delta file is a row, a timestamp and changes, ascending by row; the value index has the first of them.
pub(super) fn check_changes(
    file: &CFile,
    index: &IndexKeys,
    pointer: BlockPointer,
    block: &mut DecodedBlock,
) -> Result<()> {
    let values = block.read_all(&file.shape.target)?;
    let values = delta_values(&values)?;
    let mut last = 0;
    for index in 0..values.len() {
        let value = values.value(index);
        let mut at = 0;
        let row = decode_ordered_varint(value, &mut at)?;
        decode_ordered_varint(value, &mut at)?;
        if row < last {
            return Err(Error::corrupt(format!("a change of row {last} or a later one"), row));
        }
        last = row;
        ChangeList::parse(value.get(at..).unwrap_or_default())?.for_each(|_, _| Ok(()))?;
    }
    let Some(key) = index.get(&pointer).filter(|_| !values.is_empty()) else { return Ok(()) };
    let first = delta_key(values.value(0))?;
    if key.as_ref() == first {
        return Ok(());
    }
    Err(Error::corrupt(format!("{} in the value index", shown(first)), shown(key)))
}

/// The restarts of a PREFIX block stand where every so many entries begin, and those entries share nothing: Kudu starts there.
pub(super) fn check_restarts(file: &CFile, payload: &[u8]) -> Result<()> {
    if file.metadata().encoding != Encoding::Prefix {
        return Ok(());
    }
    let (start, _) = encoded_start(file, payload).ok_or_else(|| Error::corrupt("encoded values", "none"))?;
    let encoded = payload.get(start..).unwrap_or_default();
    let mut at = 0;
    let [count, _, interval, _] = group_varint::decode_group(encoded, &mut at)?;
    // Decoding has counted them.
    let restarts = count.saturating_sub(1).checked_div(interval).unwrap_or_default() as usize;
    let list_at = encoded.len().saturating_sub(restarts.saturating_add(1).saturating_mul(4));
    let (listed, _) = encoded.get(list_at..).unwrap_or_default().as_chunks::<4>();
    let mut listed = listed.iter().map(|four| u32::from_le_bytes(*four) as usize);
    for entry in 0..count {
        let position = at;
        let shared = varint::read_u32(encoded, &mut at)?;
        let unshared = varint::read_u32(encoded, &mut at)? as usize;
        at = at.saturating_add(unshared);
        if entry == 0 || entry.checked_rem(interval) != Some(0) {
            continue;
        }
        let stated = listed.next().unwrap_or_default();
        if stated != position {
            return Err(Error::corrupt(
                format!("a restart at byte {position} of the block, where entry {entry} begins"),
                format!("byte {stated}"),
            ));
        }
        if shared != 0 {
            let expected = format!("entry {entry} of the block to share nothing, as a restart");
            return Err(Error::corrupt(expected, format!("{shared} shared bytes")));
        }
    }
    Ok(())
}
