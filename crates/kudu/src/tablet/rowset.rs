//! A rowset: base columns and the changes that apply to them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{ArrayRef, BooleanArray};
use arrow_select::interleave::interleave;
use bytes::Bytes;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::{Error, Result, RowRanges};

use super::cells;
use super::change::{ChangeKind, ChangeList};
use super::delta::{DeltaCursor, DeltaFile};
use super::schema::{KuduColumn, KuduSchema};
use super::superblock::RowSetMetadata;
use crate::cfile::{CFile, CFileReaderOptions, CellCursor, MAX_KEY, MIN_KEY};
use crate::fs::{BlockMap, FilePool};

/// At which time rows are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Snapshot {
    /// Everything applied.
    Latest,
    /// Only changes before this hybrid timestamp.
    At(u64),
}

impl Snapshot {
    pub fn includes(self, timestamp: u64) -> bool {
        match self {
            Self::Latest => true,
            Self::At(at) => timestamp < at,
        }
    }
}

/// Where the blocks of a server are, and how to open them.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    pub pool: Arc<FilePool>,
    pub map: Arc<BlockMap>,
    pub options: CFileReaderOptions,
}

impl Blocks {
    fn source(&self, id: u64) -> Result<pilaster_core::SourceRef> {
        let place = self
            .map
            .places
            .get(&id)
            .ok_or_else(|| Error::corrupt(format!("block {id}"), "no container that holds it"))?;
        self.pool.block(id, place)
    }
}

/// Changes that stand in the log only, in log order: timestamp and list.
pub(crate) type LogChanges = BTreeMap<u64, Vec<(u64, Bytes)>>;

/// An open rowset; the files of its columns are opened when they are needed.
#[derive(Debug)]
pub(crate) struct RowSet {
    pub metadata: RowSetMetadata,
    blocks: Blocks,
    columns: Mutex<HashMap<i32, Arc<CFile>>>,
    key_file: Arc<CFile>,
    pub rows: u64,
    undo: Vec<Arc<DeltaFile>>,
    redo: Vec<Arc<DeltaFile>>,
    /// Changes of the memory store, as the log has them.
    pub log_changes: LogChanges,
}

impl RowSet {
    pub fn open(metadata: RowSetMetadata, schema: &KuduSchema, blocks: Blocks) -> Result<Self> {
        let deltas = |ids: &[u64]| {
            ids.iter()
                .map(|&id| Ok(Arc::new(DeltaFile::open(blocks.source(id)?, &blocks.options)?)))
                .collect::<Result<Vec<_>>>()
        };
        let (undo, redo) = (deltas(&metadata.undo_deltas)?, deltas(&metadata.redo_deltas)?);
        let key_block = match (metadata.adhoc_index, schema.keys()) {
            (Some(index), _) => index,
            (None, [key]) => metadata
                .columns
                .iter()
                .find(|(id, _)| Some(*id) == key.id)
                .map(|(_, block)| *block)
                .ok_or_else(|| Error::corrupt(format!("a block of key column {:?}", key.name), "none"))?,
            (None, _) => return Err(Error::corrupt("an index of the compound key", "none")),
        };
        let key_file = Arc::new(CFile::open(blocks.source(key_block)?, &blocks.options)?);
        let rows = key_file.metadata().num_values;
        Ok(Self {
            metadata,
            columns: Mutex::default(),
            key_file,
            rows,
            undo,
            redo,
            log_changes: LogChanges::new(),
            blocks,
        })
    }

    pub(super) fn block_source(&self, id: u64) -> Result<pilaster_core::SourceRef> {
        self.blocks.source(id)
    }

    pub(super) fn block_options(&self) -> &CFileReaderOptions {
        &self.blocks.options
    }

    /// Bytes of a block; 0 if it is missing.
    pub(super) fn block_bytes(&self, id: u64) -> u64 {
        self.blocks.map.places.get(&id).map_or(0, |place| place.length)
    }

    /// Encoded keys of the first and the last row.
    pub fn key_range(&self) -> Option<(Bytes, Bytes)> {
        let metadata = self.key_file.metadata();
        Some((metadata.pair(MIN_KEY)?.clone(), metadata.pair(MAX_KEY)?.clone()))
    }

    /// The row with this encoded key.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        if let Some((min, max)) = self.key_range()
            && (key < min.as_ref() || key > max.as_ref())
        {
            return Ok(None);
        }
        let (row, is_there) = self.key_file.row_of_key(key)?;
        Ok(is_there.then_some(row))
    }

    /// The rows whose encoded key lies in a range; an empty end means no end.
    pub fn rows_between(&self, start: &[u8], end: &[u8]) -> Result<Range<u64>> {
        let first = if start.is_empty() { 0 } else { self.key_file.row_of_key(start)?.0 };
        let last = if end.is_empty() { self.rows } else { self.key_file.row_of_key(end)?.0 };
        Ok(first..last.max(first))
    }

    /// The file of a column; `None` if the rowset was written before the column existed.
    pub fn column(&self, column: &KuduColumn) -> Result<Option<Arc<CFile>>> {
        let Some(id) = column.id else { return Ok(None) };
        let Some((_, block)) = self.metadata.columns.iter().find(|(known, _)| *known == id) else {
            return Ok(None);
        };
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = columns.get(&id) {
            return Ok(Some(Arc::clone(file)));
        }
        let options = self.blocks.options.clone().with_field(column.field());
        let file = CFile::open(self.blocks.source(*block)?, &options)?;
        if file.metadata().num_values != self.rows {
            return Err(Error::corrupt(format!("{} rows", self.rows), file.metadata().num_values).at(
                file.name(),
                file.metadata().blocks_end,
                "cfile footer",
            ));
        }
        let file = Arc::new(file);
        columns.insert(id, Arc::clone(&file));
        Ok(Some(file))
    }

    /// Whether no change can touch these columns, or whether rows exist, at this time.
    pub fn is_plain(&self, ids: &[i32], snapshot: Snapshot) -> bool {
        self.log_changes.is_empty()
            && self.relevant(&self.redo, ids, |delta| snapshot.includes(delta.timestamps().0)).is_empty()
            && self.relevant(&self.undo, ids, |delta| !snapshot.includes(delta.timestamps().1)).is_empty()
    }

    fn relevant(
        &self,
        deltas: &[Arc<DeltaFile>],
        ids: &[i32],
        applies: impl Fn(&DeltaFile) -> bool,
    ) -> Vec<Arc<DeltaFile>> {
        deltas.iter().filter(|delta| applies(delta) && delta.concerns(ids)).cloned().collect()
    }

    /// Reads `columns` at `snapshot`; `wanted` are the rows it will be asked for.
    pub fn reader(
        self: &Arc<Self>,
        columns: &[KuduColumn],
        snapshot: Snapshot,
        wanted: &RowRanges,
    ) -> Result<RowSetReader> {
        let ids: Vec<i32> = columns.iter().filter_map(|column| column.id).collect();
        let readers = columns.iter().map(|column| {
            let cursor = self.column(column)?.map(|file| CellCursor::new(file, wanted.clone()));
            Ok((column.clone(), cursor))
        });
        let redo = self.relevant(&self.redo, &ids, |delta| snapshot.includes(delta.timestamps().0));
        // Latest needs no UNDO at all; otherwise those with a change at or after the time.
        let undo = self.relevant(&self.undo, &ids, |delta| !snapshot.includes(delta.timestamps().1));
        Ok(RowSetReader {
            columns: readers.collect::<Result<_>>()?,
            undo: undo.iter().map(DeltaFile::cursor).collect(),
            redo: redo.iter().map(DeltaFile::cursor).collect(),
            positions: ids.iter().enumerate().map(|(index, id)| (*id, index)).collect(),
            rowset: Arc::clone(self),
            snapshot,
        })
    }

    /// Every (row, timestamp) that a delta file already has.
    pub fn recorded_changes(&self) -> Result<std::collections::HashSet<(u64, u64)>> {
        let mut recorded = std::collections::HashSet::new();
        for delta in self.undo.iter().chain(&self.redo) {
            delta.cursor().for_each(0..self.rows, |row, timestamp, _| {
                recorded.insert((row, timestamp));
                Ok(())
            })?;
        }
        Ok(recorded)
    }

    /// Whether a row exists when everything on disk and in `log_changes` is applied.
    pub fn is_live(&self, row: u64) -> Result<bool> {
        let mut is_live = true;
        let mut apply = |list: &[u8]| -> Result<()> {
            match ChangeList::parse(list)?.kind {
                ChangeKind::Delete => is_live = false,
                ChangeKind::Reinsert => is_live = true,
                ChangeKind::Update => {}
            }
            Ok(())
        };
        for delta in &self.redo {
            delta.cursor().for_each(row..row.saturating_add(1), |_, _, list| apply(list))?;
        }
        for (_, list) in self.log_changes.get(&row).into_iter().flatten() {
            apply(list)?;
        }
        Ok(is_live)
    }

    /// The newest timestamp of any change of its files.
    pub fn newest_timestamp(&self) -> u64 {
        self.undo.iter().chain(&self.redo).map(|delta| delta.timestamps().1).max().unwrap_or_default()
    }
}

/// Reads stretches of a rowset's rows as they were at a time.
#[derive(Debug)]
pub(crate) struct RowSetReader {
    rowset: Arc<RowSet>,
    columns: Vec<(KuduColumn, Option<CellCursor>)>,
    positions: HashMap<i32, usize>,
    undo: Vec<DeltaCursor>,
    redo: Vec<DeltaCursor>,
    snapshot: Snapshot,
}

impl RowSetReader {
    /// The columns of `rows`, and which of the rows exist (`None`: all).
    pub fn read(&mut self, rows: Range<u64>) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        let count = usize::try_from(rows.end.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (column, cursor) in &mut self.columns {
            arrays.push(match cursor {
                Some(cursor) => cursor.read(rows.clone())?,
                None => cells::default_array(column, count)?,
            });
        }
        let overlay = self.overlay(&rows, count)?;
        overlay.apply(&self.columns, arrays)
    }

    fn overlay(&mut self, rows: &Range<u64>, count: usize) -> Result<Overlay> {
        let mut overlay = Overlay::new(self.columns.len(), count);
        let Self { undo, redo, snapshot, positions, rowset, .. } = self;
        for cursor in undo {
            cursor.for_each(rows.clone(), |row, timestamp, list| {
                if snapshot.includes(timestamp) { Ok(()) } else { overlay.change(row, rows, list, positions) }
            })?;
        }
        for cursor in redo {
            cursor.for_each(rows.clone(), |row, timestamp, list| {
                if snapshot.includes(timestamp) { overlay.change(row, rows, list, positions) } else { Ok(()) }
            })?;
        }
        for (&row, changes) in rowset.log_changes.range(rows.clone()) {
            for (timestamp, list) in changes {
                if snapshot.includes(*timestamp) {
                    overlay.change(row, rows, list, positions)?;
                }
            }
        }
        Ok(overlay)
    }
}

/// The changes of a stretch of rows, to be laid over the base values. The last one of a cell counts.
#[derive(Debug)]
struct Overlay {
    count: usize,
    deleted: Option<Vec<bool>>,
    columns: Vec<BTreeMap<usize, Option<Vec<u8>>>>,
}

impl Overlay {
    fn new(columns: usize, count: usize) -> Self {
        Self { count, deleted: None, columns: vec![BTreeMap::new(); columns] }
    }

    fn change(
        &mut self,
        row: u64,
        rows: &Range<u64>,
        list: &[u8],
        positions: &HashMap<i32, usize>,
    ) -> Result<()> {
        let index = usize::try_from(row.saturating_sub(rows.start)).unwrap_or(usize::MAX);
        if index >= self.count {
            return Err(Error::corrupt(format!("a change of rows {rows:?}"), row));
        }
        let list = ChangeList::parse(list)?;
        let is_deleted = match list.kind {
            ChangeKind::Delete => Some(true),
            ChangeKind::Reinsert => Some(false),
            ChangeKind::Update => None,
        };
        if let Some(is_deleted) = is_deleted {
            let deleted = self.deleted.get_or_insert_with(|| vec![false; self.count]);
            if let Some(flag) = deleted.get_mut(index) {
                *flag = is_deleted;
            }
        }
        list.for_each(|id, cell| {
            let column = positions.get(&id).and_then(|position| self.columns.get_mut(*position));
            if let Some(column) = column {
                column.insert(index, cell.map(<[u8]>::to_vec));
            }
            Ok(())
        })
    }

    fn apply(
        self,
        columns: &[(KuduColumn, Option<CellCursor>)],
        mut arrays: Vec<ArrayRef>,
    ) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        for (((column, _), base), changes) in columns.iter().zip(&mut arrays).zip(&self.columns) {
            if changes.is_empty() {
                continue;
            }
            let cells: Vec<Option<&[u8]>> = changes.values().map(|cell| cell.as_deref()).collect();
            let updates = cells::to_array(column, &cells)?;
            let mut indexes: Vec<(usize, usize)> = (0..self.count).map(|row| (0, row)).collect();
            for (number, row) in changes.keys().enumerate() {
                if let Some(index) = indexes.get_mut(*row) {
                    *index = (1, number);
                }
            }
            *base = interleave(&[base.as_ref(), updates.as_ref()], &indexes)?;
        }
        let live =
            self.deleted.map(|deleted| deleted.into_iter().map(|is_deleted| Some(!is_deleted)).collect());
        Ok((arrays, live))
    }
}
