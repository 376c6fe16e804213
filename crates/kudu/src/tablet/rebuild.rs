//! Putting rowsets together from blocks that no superblock names.
//!
//! A flush writes a rowset in one go: its columns in schema order, then the bloom filter, then the index of a compound
//! key, then the UNDO deltas, with ids one after the other and as many rows in each column. Deltas flushed later come
//! anywhere behind. What breaks the pattern is left out: a rowset put together wrongly would be worse than none.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use pilaster_core::{Finding, Result, Severity, SourceRef};

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
}

/// Rowsets of a tablet with this schema, out of blocks that are not `claimed`; what is used is claimed.
pub(crate) fn rebuild_rowsets(
    schema: &KuduSchema,
    claimed: &mut HashSet<u64>,
    map: &BlockMap,
    pool: &FilePool,
) -> (Vec<RowSetMetadata>, Vec<Finding>) {
    let mut ids: Vec<_> = map.places.keys().copied().filter(|id| !claimed.contains(id)).collect();
    ids.sort_unstable();
    let (mut groups, mut findings): (Vec<Group>, _) = (Vec::new(), Vec::new());
    for id in ids {
        let Some(place) = map.places.get(&id) else { continue };
        // Writers that give up leave a header without a footer.
        let Ok(file) = pool.block(id, place).and_then(CFileReader::open) else { continue };
        let is_used = match file.kind() {
            CFileKind::Delta => add_delta(id, &mut groups, schema, map, pool),
            _ => Ok(add_file(id, file.metadata(), file.kind(), &mut groups, schema)),
        };
        match is_used {
            Ok(true) => {
                claimed.insert(id);
            }
            Ok(false) => findings.push(Finding {
                severity: Severity::Warning,
                path: Arc::from(place.file.display().to_string()),
                offset: place.offset,
                part: "block".into(),
                message: format!("block {id} fits no rowset that could be put together"),
                rows: None,
            }),
            Err(error) => findings.push(Finding::from_error(&error, &format!("block {id}"), None)),
        }
    }
    let whole = groups.into_iter().filter(|group| group.is_whole(schema));
    (whole.map(|group| group.rowset).collect(), findings)
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
    let last = groups.last_mut();
    if kind == CFileKind::Bloom {
        let slot = last.filter(|group| group.is_whole(schema)).map(|group| &mut group.rowset.bloom);
        return slot.is_some_and(|slot| slot.replace(id).is_none());
    }
    if file.positional_index.is_none() {
        let is_index = file.pair(MIN_KEY).is_some();
        let group = last.filter(|group| is_index && group.is_whole(schema) && group.rows == file.num_values);
        return group.is_some_and(|group| group.rowset.adhoc_index.replace(id).is_none());
    }
    if let Some(group) = last
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
    groups.push(Group { rowset, rows: file.num_values });
    true
}

/// Which way a delta file leads, as its entries show.
struct Direction {
    last_row: u64,
    /// Whether the changes of some row go back in time.
    is_undo: bool,
    only_deletes: bool,
}

impl Direction {
    fn of(source: SourceRef, options: &CFileReaderOptions) -> Result<Self> {
        let file = Arc::new(DeltaFile::open(source, options)?);
        let mut direction = Self { last_row: 0, is_undo: false, only_deletes: true };
        let mut before: Option<(u64, u64)> = None;
        file.cursor().for_each(0..u64::MAX, |row, timestamp, list| {
            direction.last_row = row;
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

/// Adds a delta file to the group it follows, or to the only one whose rows it can be of.
fn add_delta(
    id: u64,
    groups: &mut [Group],
    schema: &KuduSchema,
    map: &BlockMap,
    pool: &FilePool,
) -> Result<bool> {
    let Some(place) = map.places.get(&id) else { return Ok(false) };
    let Direction { last_row, is_undo, only_deletes } =
        Direction::of(pool.block(id, place)?, &CFileReaderOptions::default())?;
    let whole: Vec<_> = (0..groups.len())
        .filter(|&index| groups.get(index).is_some_and(|g| g.is_whole(schema) && last_row < g.rows))
        .collect();
    // The first delta behind the blocks of a flush is what takes its inserts back.
    let newest = groups.len().checked_sub(1).filter(|newest| whole.contains(newest));
    let follows = newest.and_then(|index| groups.get(index)).is_some_and(|group| {
        group.rowset.undo_deltas.is_empty()
            && group.rowset.redo_deltas.is_empty()
            && (only_deletes || is_undo)
    });
    let target = match (newest.filter(|_| follows), whole.as_slice()) {
        (Some(newest), _) => Some(newest),
        (None, [only]) => Some(*only),
        (None, _) => None,
    };
    let Some(group) = target.and_then(|index| groups.get_mut(index)) else { return Ok(false) };
    if follows || is_undo {
        group.rowset.undo_deltas.insert(0, id);
    } else {
        group.rowset.redo_deltas.push(id);
    }
    Ok(true)
}
