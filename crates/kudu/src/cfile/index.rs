//! The index trees of a CFile: by row ordinal and by value.
//!
//! ```text
//! index block: | entries | u32 position of each entry | IndexBlockTrailerPB | u32 trailer length |
//! entry:       | varint key length | key | varint block offset | varint block size |
//! ```
//!
//! Entries of a leaf point to data blocks, those of an inner node to index blocks; the key of an inner entry is the
//! first key of its child. Keys of the positional index are row ordinals, four bytes big-endian. Keys of the value
//! index are separators: greater than every value before the block, at most its first value.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use pilaster_encoding::varint;

use super::block::BlockStore;
use super::metadata::BlockPointer;
use super::proto::{self, IndexBlockTrailerPb, required};

const PART: &str = "cfile index block";
const LEAF: i32 = 0;
const INTERNAL: i32 = 1;
/// One length byte, no key, one offset byte, one size byte, four bytes of position.
const SMALLEST_ENTRY_BYTES: usize = 7;

/// One entry: where the block of `key` lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub key: Bytes,
    pub pointer: BlockPointer,
}

/// A parsed index block.
#[derive(Debug)]
pub(crate) struct IndexNode {
    pub is_leaf: bool,
    pub entries: Vec<IndexEntry>,
}

impl IndexNode {
    /// Parses the payload of an index block.
    pub fn parse(payload: &Bytes) -> Result<Self> {
        let bad = |what: &str| Error::corrupt("an index block", what.to_string());
        let (rest, length) = payload.split_last_chunk::<4>().ok_or_else(|| bad("less than 4 bytes"))?;
        let trailer_bytes = u32::from_le_bytes(*length) as usize;
        let trailer_at = rest.len().checked_sub(trailer_bytes).ok_or_else(|| {
            Error::corrupt(format!("a trailer of at most {} bytes", rest.len()), format!("{trailer_bytes}"))
        })?;
        let (rest, trailer) = rest.split_at_checked(trailer_at).ok_or_else(|| bad("no trailer"))?;
        let trailer: IndexBlockTrailerPb = proto::parse(trailer, "IndexBlockTrailerPB")?;
        let count = required(trailer.num_entries, "num_entries")?;
        let kind = required(trailer.kind, "type")?;
        if kind != LEAF && kind != INTERNAL {
            return Err(Error::corrupt("index block type 0 or 1", kind));
        }
        let count = usize::try_from(count)
            .ok()
            .filter(|count| count.saturating_mul(SMALLEST_ENTRY_BYTES) <= rest.len())
            .ok_or_else(|| Error::corrupt(format!("entries that fit in {} bytes", rest.len()), count))?;
        let entries_bytes = rest.len().saturating_sub(count.saturating_mul(4));
        let (bytes, positions) = rest.split_at_checked(entries_bytes).ok_or_else(|| bad("no positions"))?;
        let mut entries = Vec::with_capacity(count);
        let mut at = 0;
        for position in positions.chunks_exact(4) {
            let position = position.first_chunk().map_or(u32::MAX, |four| u32::from_le_bytes(*four));
            if position as usize != at {
                return Err(Error::corrupt(format!("an entry at byte {at}"), position));
            }
            let length = varint::read_u32(bytes, &mut at)? as usize;
            let end = at.checked_add(length).filter(|end| *end <= bytes.len()).ok_or_else(|| {
                Error::corrupt(format!("a key of at most {} bytes", bytes.len().saturating_sub(at)), length)
            })?;
            let key = payload.slice(at..end);
            at = end;
            let offset = varint::read_u64(bytes, &mut at)?;
            let size = varint::read_u32(bytes, &mut at)?;
            entries.push(IndexEntry { key, pointer: BlockPointer { offset, size } });
        }
        if at != bytes.len() {
            return Err(Error::corrupt(
                format!("entries of {} bytes", bytes.len()),
                format!("{at} bytes of entries"),
            ));
        }
        Ok(Self { is_leaf: kind == LEAF, entries })
    }
}

/// Whether keys must ascend. They must, except in the value index of a delta file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOrder {
    Ascending,
    Any,
}

/// One tree; its blocks are parsed once and kept.
#[derive(Debug)]
pub(crate) struct IndexTree {
    root: BlockPointer,
    order: KeyOrder,
    nodes: Mutex<HashMap<BlockPointer, Arc<IndexNode>>>,
}

impl IndexTree {
    pub fn new(root: BlockPointer, order: KeyOrder) -> Self {
        Self { root, order, nodes: Mutex::default() }
    }

    fn node(&self, store: &BlockStore, pointer: BlockPointer) -> Result<Arc<IndexNode>> {
        let known = self.nodes.lock().unwrap_or_else(PoisonError::into_inner).get(&pointer).cloned();
        if let Some(node) = known {
            return Ok(node);
        }
        let block = store.read(pointer, PART)?;
        let node = IndexNode::parse(&block.payload).at(store.source.name(), pointer.offset, PART)?;
        if self.order == KeyOrder::Ascending
            && !node.entries.windows(2).all(|pair| matches!(pair, [a, b] if a.key < b.key))
        {
            return Err(Error::corrupt("ascending keys", "keys that descend").at(
                store.source.name(),
                pointer.offset,
                PART,
            ));
        }
        let node = Arc::new(node);
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner).insert(pointer, Arc::clone(&node));
        Ok(node)
    }

    /// A cursor on the last entry whose key is at most `key`, or on the first entry if there is none.
    pub fn seek(&self, store: &BlockStore, key: &[u8]) -> Result<IndexCursor> {
        let mut cursor = IndexCursor::default();
        cursor.descend(self, store, self.root, None, |entries| {
            entries.partition_point(|entry| entry.key.as_ref() <= key).saturating_sub(1)
        })?;
        Ok(cursor)
    }

    /// All leaf entries in order.
    ///
    /// A tree that leads to a block twice is refused, so this ends whatever the bytes say.
    pub fn entries(&self, store: &BlockStore) -> Result<Vec<IndexEntry>> {
        let mut cursor = self.seek(store, &[])?;
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        while let Some(entry) = cursor.entry() {
            if !seen.insert(entry.pointer) {
                return Err(Error::corrupt("every data block once", "an index that names one twice").at(
                    store.source.name(),
                    entry.pointer.offset,
                    PART,
                ));
            }
            entries.push(entry.clone());
            cursor.advance(self, store)?;
        }
        Ok(entries)
    }

    /// The index blocks themselves with their level (0 for the root), as far as they can be read, and what failed.
    pub fn blocks(&self, store: &BlockStore) -> (Vec<IndexBlock>, Vec<Error>) {
        let (mut blocks, mut failures) = (Vec::new(), Vec::new());
        let mut pending = vec![(self.root, 0)];
        let mut seen = HashSet::new();
        while let Some((pointer, level)) = pending.pop() {
            if level >= store.limits.depth || !seen.insert(pointer) {
                failures.push(Error::corrupt("a tree", "a branch that leads back or too deep").at(
                    store.source.name(),
                    pointer.offset,
                    PART,
                ));
                continue;
            }
            match self.node(store, pointer) {
                Ok(node) => {
                    if !node.is_leaf {
                        pending.extend(
                            node.entries.iter().rev().map(|entry| (entry.pointer, level.saturating_add(1))),
                        );
                    }
                    blocks.push(IndexBlock { pointer, level });
                }
                Err(error) => failures.push(error),
            }
        }
        (blocks, failures)
    }
}

/// An index block and where it stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexBlock {
    pub pointer: BlockPointer,
    pub level: u32,
}

/// A place in the leaves of a tree: the way down from the root.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexCursor {
    path: Vec<(Arc<IndexNode>, usize)>,
}

impl IndexCursor {
    /// The entry it stands on; `None` past the end.
    pub fn entry(&self) -> Option<&IndexEntry> {
        let (node, index) = self.path.last()?;
        node.entries.get(*index)
    }

    /// Moves to the next leaf entry.
    pub fn advance(&mut self, tree: &IndexTree, store: &BlockStore) -> Result<()> {
        while let Some((node, index)) = self.path.last_mut() {
            *index = index.saturating_add(1);
            match node.entries.get(*index) {
                Some(_) if node.is_leaf => return Ok(()),
                Some(child) => {
                    let child = child.clone();
                    return self.descend(tree, store, child.pointer, Some(child.key), |_| 0);
                }
                None => {
                    self.path.pop();
                }
            }
        }
        Ok(())
    }

    /// Goes down from the node at `pointer` to a leaf; `choose` picks the entry in each node.
    fn descend(
        &mut self,
        tree: &IndexTree,
        store: &BlockStore,
        mut pointer: BlockPointer,
        mut first_key: Option<Bytes>,
        choose: impl Fn(&[IndexEntry]) -> usize,
    ) -> Result<()> {
        loop {
            let fail = |expected: String, found: &str| {
                Err(Error::corrupt(expected, found).at(store.source.name(), pointer.offset, PART))
            };
            if self.path.len() as u64 >= u64::from(store.limits.depth) {
                return fail(format!("a tree of at most {} levels", store.limits.depth), "a deeper one");
            }
            let node = tree.node(store, pointer)?;
            if let Some(expected) = first_key
                && node.entries.first().is_none_or(|entry| entry.key != expected)
            {
                return fail("the first key its parent names".into(), "another");
            }
            let index = choose(&node.entries);
            let next = if node.is_leaf { None } else { node.entries.get(index).cloned() };
            let is_leaf = node.is_leaf;
            self.path.push((node, index));
            match next {
                Some(child) => (pointer, first_key) = (child.pointer, Some(child.key)),
                None if is_leaf => return Ok(()),
                None => return fail("an inner index block with entries".into(), "an empty one"),
            }
        }
    }
}
