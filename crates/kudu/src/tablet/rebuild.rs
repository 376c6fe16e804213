//! Putting rowsets together from blocks that no superblock names.
//!
//! A flush writes a rowset in one go: its columns in schema order, then the bloom filter, then the index of a compound
//! key, then the UNDO deltas, with ids one after the other and as many rows in each column. Deltas flushed later come
//! anywhere behind. What breaks the pattern is left out: a rowset put together wrongly would be worse than none. To which
//! tablet it belongs is for [`super::ownership`] to prove.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pilaster_core::{Result, SourceRef};

use super::change::{ChangeKind, ChangeList};
use super::delta::DeltaFile;
use super::key_index::KeyIndex;
use super::schema::{KuduColumn, KuduSchema};
use super::superblock::RowSetMetadata;
use crate::cfile::{CFile, CFileKind, CFileMetadata, CFileReader, CFileReaderOptions, MIN_KEY};
use crate::fs::{BlockMap, FilePool};

/// A rowset in the making.
#[derive(Debug)]
struct Group {
    rowset: RowSetMetadata,
    rows: u64,
    /// Its last block.
    last: u64,
}

/// Blocks of columns that follow each other and have as many rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub first: u64,
    pub last: u64,
    pub rows: u64,
}

/// The upper bits of a block's id name its folder where blocks are files.
const NUMBER_BITS: u64 = (1 << 48) - 1;

/// Whether a server made a block right after another.
fn follows(id: u64, before: u64) -> bool {
    (before & NUMBER_BITS).checked_add(1) == Some(id & NUMBER_BITS)
}

/// Rowsets of a tablet with this schema, out of blocks that are not `claimed`.
pub(crate) fn rebuild_rowsets(
    schema: &KuduSchema,
    claimed: &HashSet<u64>,
    map: &BlockMap,
    pool: &FilePool,
) -> Vec<RowSetMetadata> {
    let mut groups: Vec<Group> = Vec::new();
    for id in unclaimed(claimed, map) {
        let Some(place) = map.places.get(&id) else { continue };
        // Writers that give up leave a header without a footer.
        let Ok(file) = pool.block(id, place).and_then(CFileReader::open) else { continue };
        let is_used = match file.kind() {
            CFileKind::Delta => add_delta(id, &mut groups, schema),
            _ => add_file(id, file.metadata(), file.kind(), &mut groups, schema),
        };
        if let Some(group) = groups.last_mut().filter(|_| is_used) {
            group.last = id;
        }
    }
    groups.into_iter().filter(|group| group.is_whole(schema)).map(|group| group.rowset).collect()
}

/// Columns that no superblock names and no proof places, if a table with this schema may have them.
pub(crate) fn unplaced_columns(
    schema: &KuduSchema,
    claimed: &HashSet<u64>,
    map: &BlockMap,
    pool: &FilePool,
) -> Vec<BlockRun> {
    let mut runs: Vec<BlockRun> = Vec::new();
    for id in unclaimed(claimed, map) {
        let Some(place) = map.places.get(&id) else { continue };
        let Ok(file) = pool.block(id, place).and_then(CFileReader::open) else { continue };
        let metadata = file.metadata();
        if file.kind() == CFileKind::Delta || !schema.columns.iter().any(|column| fits(column, metadata)) {
            continue;
        }
        match runs.last_mut().filter(|run| follows(id, run.last) && run.rows == metadata.num_values) {
            Some(run) => run.last = id,
            None => runs.push(BlockRun { first: id, last: id, rows: metadata.num_values }),
        }
    }
    runs
}

/// Blocks that nobody claims, in the order in which they were made.
fn unclaimed(claimed: &HashSet<u64>, map: &BlockMap) -> Vec<u64> {
    let mut ids: Vec<_> = map.places.keys().copied().filter(|id| !claimed.contains(id)).collect();
    ids.sort_unstable_by_key(|id| (id & NUMBER_BITS, *id));
    ids
}

impl Group {
    fn is_whole(&self, schema: &KuduSchema) -> bool {
        self.rowset.columns.len() == schema.columns.len()
    }
}

fn fits(column: &KuduColumn, file: &CFileMetadata) -> bool {
    file.positional_index.is_some()
        && (file.data_type, file.is_nullable, file.is_array)
            == (column.data_type, column.is_nullable, column.is_array)
}

/// Adds a column, a bloom filter or an index of keys to the last group, or begins a new one.
fn add_file(
    id: u64,
    file: &CFileMetadata,
    kind: CFileKind,
    groups: &mut Vec<Group>,
    schema: &KuduSchema,
) -> bool {
    let last = groups.last_mut().filter(|group| follows(id, group.last));
    if kind == CFileKind::Bloom {
        let slot = last.filter(|group| group.is_whole(schema)).map(|group| &mut group.rowset.bloom);
        return slot.is_some_and(|slot| slot.replace(id).is_none());
    }
    if file.positional_index.is_none() {
        let is_index = file.pair(MIN_KEY).is_some();
        let group = last.filter(|group| is_index && group.is_whole(schema) && group.rows == file.num_values);
        return group.is_some_and(|group| group.rowset.adhoc_index.replace(id).is_none());
    }
    // Another rowset with as many rows begins with its own smallest key.
    let begins = file.pair(MIN_KEY).is_some();
    if let Some(group) = last
        && !begins
        && group.rows == file.num_values
        && let Some(column) = schema.columns.get(group.rowset.columns.len())
        && fits(column, file)
    {
        group.rowset.columns.push((column.id.unwrap_or(-1), id));
        return true;
    }
    let Some(first) = schema.columns.first().filter(|column| fits(column, file)) else { return false };
    // What was begun before is not whole and never will be.
    groups.retain(|group| group.is_whole(schema));
    let rowset = RowSetMetadata {
        id: i64::try_from(groups.len()).unwrap_or(i64::MAX),
        last_durable_dms_id: -1,
        columns: vec![(first.id.unwrap_or(-1), id)],
        ..RowSetMetadata::default()
    };
    groups.push(Group { rowset, rows: file.num_values, last: id });
    true
}

/// Which way a delta file leads, as its entries show.
struct Direction {
    /// Whether the changes of some row go back in time.
    is_undo: bool,
    only_deletes: bool,
}

impl Direction {
    fn of(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        let file = Arc::new(DeltaFile::open(source, options)?);
        let mut direction = Self { is_undo: false, only_deletes: true };
        let mut before: Option<(u64, u64)> = None;
        file.cursor().for_each(0..u64::MAX, |row, timestamp, list| {
            direction.only_deletes &= ChangeList::parse(list)?.kind == ChangeKind::Delete;
            direction.is_undo |= before.is_some_and(|(r, t)| r == row && t > timestamp);
            before = Some((row, timestamp));
            Ok(())
        })?;
        Ok(direction)
    }
}

/// Whether a delta file right behind the blocks of a flush is what takes its inserts back.
pub(crate) fn belongs_to_undo(source: SourceRef, options: &CFileReaderOptions) -> Result<bool> {
    let direction = Direction::of(source, options)?;
    Ok(direction.is_undo || direction.only_deletes)
}

/// How many of a rowset's first columns are its key, as the index of keys shows; `None` if no number fits.
pub(crate) fn key_columns(
    schema: &KuduSchema,
    rowset: &RowSetMetadata,
    index: u64,
    blocks: &HashMap<u64, SourceRef>,
    options: &CFileReaderOptions,
) -> Option<usize> {
    let open = |id: u64, options: &CFileReaderOptions| {
        Some(Arc::new(CFile::open(Arc::clone(blocks.get(&id)?), options).ok()?))
    };
    let index = open(index, options)?;
    let mut columns = Vec::new();
    for (column, (_, block)) in schema.columns.iter().zip(&rowset.columns) {
        if column.is_nullable || column.is_array || !column.data_type.can_be_key() {
            break;
        }
        columns.push((column.clone(), open(*block, &options.clone().with_field(column.field()))?));
    }
    let wanted = KeyIndex::File(index);
    let all = wanted.keys_of(0..wanted.rows()).ok()?;
    (2..=columns.len()).find(|count| {
        let keys = KeyIndex::from_columns(columns.get(..*count).unwrap_or_default());
        keys.and_then(|keys| keys.keys_of(0..keys.rows())).is_ok_and(|keys| keys == all)
    })
}

/// Adds a delta file right behind the blocks of a flush: first what takes its inserts back, then what it deleted again.
fn add_delta(id: u64, groups: &mut [Group], schema: &KuduSchema) -> bool {
    let last = groups.last_mut().filter(|group| follows(id, group.last) && group.is_whole(schema));
    let Some(Group { rowset, .. }) = last else { return false };
    if rowset.undo_deltas.is_empty() {
        rowset.undo_deltas.push(id);
        return true;
    }
    let is_free = rowset.redo_deltas.is_empty();
    if is_free {
        rowset.redo_deltas.push(id);
    }
    is_free
}
