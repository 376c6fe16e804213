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
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
/// Two small numbers; room for what later versions may add. A trailer stays in memory with its block.
const MOST_TRAILER_BYTES: usize = 1 << 10;

/// One entry: where the block of `key` lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub key: Bytes,
    pub pointer: BlockPointer,
}

/// An index block. Its entries are parsed when they are asked for: a search looks at few of them.
#[derive(Debug)]
pub(crate) struct IndexNode {
    is_leaf: bool,
    count: usize,
    /// Entries, then their positions.
    payload: Bytes,
    entries_bytes: usize,
}

impl IndexNode {
    /// Opens the payload of an index block.
    pub fn open(payload: &Bytes) -> Result<Self> {
        let bad = |what: &str| Error::corrupt("an index block", what.to_string());
        let (rest, length) = payload.split_last_chunk::<4>().ok_or_else(|| bad("less than 4 bytes"))?;
        let trailer_bytes = u32::from_le_bytes(*length) as usize;
        let most = rest.len().min(MOST_TRAILER_BYTES);
        if trailer_bytes > most {
            return Err(Error::corrupt(format!("a trailer of at most {most} bytes"), trailer_bytes));
        }
        let trailer_at = rest.len().saturating_sub(trailer_bytes);
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
        Ok(Self { is_leaf: kind == LEAF, count, payload: payload.slice(..rest.len()), entries_bytes })
    }

    /// Where an entry begins, or for the one after the last, where they end.
    fn position(&self, index: usize) -> usize {
        if index >= self.count {
            return self.entries_bytes;
        }
        let at = self.entries_bytes.saturating_add(index.saturating_mul(4));
        let word = self.payload.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(usize::MAX, |four| u32::from_le_bytes(*four) as usize)
    }

    /// The bytes of the key of an entry, and where the block lies that it leads to.
    fn parts(&self, index: usize) -> Result<(&[u8], BlockPointer)> {
        let (start, end) = (self.position(index), self.position(index.saturating_add(1)));
        let entry = self.payload.get(start..end).filter(|_| (index == 0) == (start == 0));
        let entry = entry.ok_or_else(|| {
            Error::corrupt(
                format!("entry {index} inside {} bytes, after those before it", self.entries_bytes),
                format!("bytes {start}..{end}"),
            )
        })?;
        let mut at = 0;
        let length = varint::read_u32(entry, &mut at)? as usize;
        let key_end = at.saturating_add(length);
        let key = entry.get(at..key_end).ok_or_else(|| {
            Error::corrupt(format!("a key of at most {} bytes", entry.len().saturating_sub(at)), length)
        })?;
        at = key_end;
        let offset = varint::read_u64(entry, &mut at)?;
        let size = varint::read_u32(entry, &mut at)?;
        if at != entry.len() {
            return Err(Error::corrupt(format!("an entry of {} bytes", entry.len()), format!("{at} bytes")));
        }
        Ok((key, BlockPointer { offset, size }))
    }

    fn entry(&self, index: usize) -> Result<Option<IndexEntry>> {
        if index >= self.count {
            return Ok(None);
        }
        let (key, pointer) = self.parts(index)?;
        Ok(Some(IndexEntry { key: self.payload.slice_ref(key), pointer }))
    }

    /// Number of the last entry whose key is at most `key`, or 0 if there is none.
    fn find(&self, key: &[u8]) -> Result<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low.midpoint(high);
            if self.parts(middle)?.0 <= key {
                low = middle.saturating_add(1);
            } else {
                high = middle;
            }
        }
        Ok(low.saturating_sub(1))
    }

    /// Parses every entry.
    pub fn check(&self, order: KeyOrder) -> Result<()> {
        let mut last: Option<&[u8]> = None;
        for index in 0..self.count {
            let (key, _) = self.parts(index)?;
            if order != KeyOrder::Any && last.is_some_and(|last| last >= key) {
                return Err(descends());
            }
            last = Some(key);
        }
        if self.position(0) != 0 {
            return Err(Error::corrupt("entries from byte 0", format!("from byte {}", self.position(0))));
        }
        Ok(())
    }
}

/// How long the index block is that begins with `bytes`: its entries are followed by their own positions. And how many entries
/// were gone over to tell.
pub(super) fn stated_length(bytes: &[u8]) -> (Option<usize>, usize) {
    let mut positions = Vec::new();
    let mut at = 0;
    loop {
        if let Some(end) = end_of_positions(bytes, at, &positions) {
            return (Some(end), positions.len());
        }
        let Some(end) = end_of_entry(bytes, at) else { return (None, positions.len()) };
        positions.push(u32::try_from(at).unwrap_or(u32::MAX));
        at = end;
    }
}

fn end_of_entry(bytes: &[u8], mut at: usize) -> Option<usize> {
    let key = varint::read_u32(bytes, &mut at).ok()? as usize;
    at = at.checked_add(key)?;
    varint::read_u64(bytes, &mut at).ok()?;
    varint::read_u32(bytes, &mut at).ok()?;
    Some(at)
}

/// The end of the block if the positions and the trailer stand at `at`.
fn end_of_positions(bytes: &[u8], mut at: usize, positions: &[u32]) -> Option<usize> {
    let (words, _) = bytes.get(at..)?.as_chunks::<4>();
    let listed = words.get(..positions.len())?;
    if !positions.iter().zip(listed).all(|(position, word)| position.to_le_bytes() == *word) {
        return None;
    }
    at = at.checked_add(positions.len().checked_mul(4)?)?;
    let start = at;
    // Fields 1 and 2 of the trailer, both small numbers.
    let mut field = |tag: u8| {
        (varint::read_u32(bytes, &mut at).ok()? == u32::from(tag)).then_some(())?;
        varint::read_u32(bytes, &mut at).ok()
    };
    let (count, kind) = (field(0x08)?, field(0x10)?);
    let is_trailer = count as usize == positions.len() && matches!(i32::try_from(kind), Ok(LEAF | INTERNAL));
    let length = bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four) as usize)?;
    (is_trailer && length == at.checked_sub(start)?).then(|| at.checked_add(4)).flatten()
}

fn descends() -> Error {
    Error::corrupt("ascending keys", "keys that descend")
}

/// How the keys of a tree lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyOrder {
    /// They ascend, which is checked before an index block is used: nothing else could show that a search went wrong.
    Ascending,
    /// They ascend. A data block knows its first row itself, so an index block is used without a look at all its entries.
    Ordinals,
    /// As in the value index of a delta file.
    Any,
}

/// One tree; its blocks are parsed once and kept, within limits.
#[derive(Debug)]
pub(crate) struct IndexTree {
    root: BlockPointer,
    order: KeyOrder,
    /// Most trees are nothing else.
    root_node: OnceLock<Arc<IndexNode>>,
    nodes: Mutex<Nodes>,
}

/// The other index blocks that were met.
#[derive(Debug, Default)]
struct Nodes {
    by_pointer: HashMap<BlockPointer, Arc<IndexNode>>,
    bytes: u64,
}

impl Nodes {
    /// Keeps a block. All others go when they would be more than `most` bytes together: that many are no index of a sound file.
    fn insert(&mut self, pointer: BlockPointer, node: &Arc<IndexNode>, most: u64) {
        let bytes = node.payload.len() as u64;
        if self.bytes.saturating_add(bytes) > most {
            *self = Self::default();
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.by_pointer.insert(pointer, Arc::clone(node));
    }
}

impl IndexTree {
    pub fn new(root: BlockPointer, order: KeyOrder) -> Self {
        Self { root, order, root_node: OnceLock::new(), nodes: Mutex::default() }
    }

    fn node(&self, store: &BlockStore, pointer: BlockPointer) -> Result<Arc<IndexNode>> {
        let nodes = || self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_root = pointer == self.root;
        let known =
            if is_root { self.root_node.get().cloned() } else { nodes().by_pointer.get(&pointer).cloned() };
        if let Some(node) = known {
            return Ok(node);
        }
        let node = self.read_node(store, pointer)?;
        if is_root {
            return Ok(Arc::clone(self.root_node.get_or_init(|| node)));
        }
        nodes().insert(pointer, &node, store.limits.decoded_bytes);
        Ok(node)
    }

    fn read_node(&self, store: &BlockStore, pointer: BlockPointer) -> Result<Arc<IndexNode>> {
        let block = store.read(pointer, PART)?;
        let open = || -> Result<_> {
            let node = IndexNode::open(&block.payload)?;
            if self.order == KeyOrder::Ascending {
                node.check(self.order)?;
            }
            Ok(Arc::new(node))
        };
        open().at(store.source.name(), pointer.offset, PART)
    }

    /// A cursor on the last entry whose key is at most `key`, or on the first entry if there is none.
    pub fn seek(&self, store: &BlockStore, key: &[u8]) -> Result<IndexCursor> {
        let mut cursor = IndexCursor::default();
        cursor.descend(self, store, self.root, None, |node| node.find(key))?;
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
            let last = entries.last().map(|last: &IndexEntry| &last.key);
            if self.order == KeyOrder::Ordinals && last.is_some_and(|last| *last >= entry.key) {
                return Err(descends().at(store.source.name(), entry.pointer.offset, PART));
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
            let children = self.node(store, pointer).and_then(|node| {
                node.check(self.order).at(store.source.name(), pointer.offset, PART)?;
                let children = if node.is_leaf { 0 } else { node.count };
                (0..children).rev().map(|index| Ok(node.parts(index)?.1)).collect::<Result<Vec<_>>>()
            });
            match children {
                Ok(children) => {
                    pending.extend(children.into_iter().map(|child| (child, level.saturating_add(1))));
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

/// A place in the leaves of a tree.
#[derive(Debug, Clone, Default)]
pub(crate) struct IndexCursor {
    /// The way down from the root.
    path: Vec<Step>,
    entry: Option<IndexEntry>,
}

/// One index block on the way, and which of its entries was chosen.
#[derive(Debug, Clone)]
struct Step {
    node: Arc<IndexNode>,
    pointer: BlockPointer,
    index: usize,
}

impl Step {
    fn entry(&self, store: &BlockStore) -> Result<Option<IndexEntry>> {
        self.node.entry(self.index).at(store.source.name(), self.pointer.offset, PART)
    }
}

impl IndexCursor {
    /// The entry it stands on; `None` past the end.
    pub fn entry(&self) -> Option<&IndexEntry> {
        self.entry.as_ref()
    }

    /// The entry after it, as far as it can be told without reading another index block.
    pub fn next_in_leaf(&self) -> Option<IndexEntry> {
        let step = self.path.last()?;
        step.node.entry(step.index.saturating_add(1)).ok().flatten()
    }

    /// Moves to the next leaf entry.
    pub fn advance(&mut self, tree: &IndexTree, store: &BlockStore) -> Result<()> {
        self.entry = None;
        while let Some(step) = self.path.last_mut() {
            step.index = step.index.saturating_add(1);
            match step.entry(store)? {
                Some(entry) if step.node.is_leaf => {
                    self.entry = Some(entry);
                    return Ok(());
                }
                Some(child) => return self.descend(tree, store, child.pointer, Some(child.key), |_| Ok(0)),
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
        choose: impl Fn(&IndexNode) -> Result<usize>,
    ) -> Result<()> {
        loop {
            let fail = |expected: String, found: &str| {
                Err(Error::corrupt(expected, found).at(store.source.name(), pointer.offset, PART))
            };
            if self.path.len() as u64 >= u64::from(store.limits.depth) {
                return fail(format!("a tree of at most {} levels", store.limits.depth), "a deeper one");
            }
            let node = tree.node(store, pointer)?;
            let at_node = |error: Error| error.at(store.source.name(), pointer.offset, PART);
            if let Some(expected) = first_key
                && node.entry(0).map_err(at_node)?.is_none_or(|first| first.key != expected)
            {
                return fail("the first key its parent names".into(), "another");
            }
            let index = choose(&node).map_err(at_node)?;
            let step = Step { node, pointer, index };
            let (is_leaf, entry) = (step.node.is_leaf, step.entry(store)?);
            self.path.push(step);
            match entry {
                entry if is_leaf => {
                    self.entry = entry;
                    return Ok(());
                }
                Some(child) => (pointer, first_key) = (child.pointer, Some(child.key)),
                None => return fail("an inner index block with entries".into(), "an empty one"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    /// A leaf without entries, whose trailer has so many bytes of an unknown field.
    fn leaf(unknown_bytes: usize) -> Bytes {
        let trailer = IndexBlockTrailerPb { num_entries: Some(0), kind: Some(LEAF) };
        let mut block = trailer.encode_to_vec();
        block.extend([0x7a, (unknown_bytes % 128) as u8 | 0x80, (unknown_bytes / 128) as u8]);
        block.resize(block.len() + unknown_bytes, 0);
        let length = block.len() as u32;
        block.extend(length.to_le_bytes());
        block.into()
    }

    #[test]
    fn a_long_trailer_is_refused() {
        assert_eq!(IndexNode::open(&leaf(500)).unwrap().count, 0);
        assert!(IndexNode::open(&leaf(2000)).is_err());
    }

    #[test]
    fn index_blocks_are_kept_within_limits() {
        let node = |bytes: usize| {
            let payload = Bytes::from(vec![0; bytes]);
            Arc::new(IndexNode { is_leaf: true, count: 0, payload, entries_bytes: 0 })
        };
        let at = |offset: u64| BlockPointer { offset, size: 1 };
        let mut nodes = Nodes::default();
        for offset in 0..3 {
            nodes.insert(at(offset), &node(400), 1000);
        }
        // The third did not fit beside the others.
        assert_eq!((nodes.by_pointer.len(), nodes.bytes), (1, 400));
        assert!(nodes.by_pointer.contains_key(&at(2)));
    }
}
