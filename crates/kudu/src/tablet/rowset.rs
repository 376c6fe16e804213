//! A rowset: base columns and the changes that apply to them.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use pilaster_core::{Error, Finding, Result, RowRanges};

use super::delta::DeltaFile;
use super::key_index::KeyIndex;
use super::key_range::KeyRange;
use super::schema::{KuduColumn, KuduSchema};
use super::superblock::RowSetMetadata;
use crate::cfile::{CFile, CFileReaderOptions};
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
        match (self.map.places.get(&id), &self.map.unread) {
            (Some(place), _) => self.pool.block(id, place),
            (None, None) => Err(Error::corrupt(format!("block {id}"), "no container that holds it")),
            (None, Some(unread)) => Err(Error::corrupt(format!("block {id}"), "what cannot be looked at")
                .at(&unread.to_string(), 0, "block")),
        }
    }

    /// The block, if it is sure that this is it.
    pub(super) fn certain(&self, id: u64) -> Result<pilaster_core::SourceRef> {
        let source = self.source(id)?;
        if self.map.uncertain.contains(&id) {
            return Err(Error::corrupt(
                format!("a record of block {id}"),
                "none, and more than one way to give found blocks their ids",
            )
            .at(source.name(), 0, "block"));
        }
        Ok(source)
    }
}

/// The way from keys to rows, and why it had to be made again if so.
fn open_keys(
    metadata: &RowSetMetadata,
    schema: &KuduSchema,
    blocks: &Blocks,
) -> Result<(KeyIndex, Option<Error>)> {
    let open = |id: u64, options: &CFileReaderOptions| -> Result<Arc<CFile>> {
        Ok(Arc::new(CFile::open(blocks.certain(id)?, options)?))
    };
    let column = |key: &KuduColumn| -> Result<Arc<CFile>> {
        let block = metadata.columns.iter().find(|(id, _)| Some(*id) == key.id).map(|(_, block)| *block);
        let block =
            block.ok_or_else(|| Error::corrupt(format!("a block of key column {:?}", key.name), "none"))?;
        open(block, &blocks.options.clone().with_field(key.field()))
    };
    match (metadata.adhoc_index, schema.keys()) {
        (None, [key]) => Ok((KeyIndex::File(column(key)?), None)),
        (index, keys) => {
            let missing = || Error::corrupt("an index of the compound key", "none");
            match index.ok_or_else(missing).and_then(|index| open(index, &blocks.options)) {
                Ok(file) => Ok((KeyIndex::File(file), None)),
                Err(error) => {
                    let columns = keys.iter().map(|key| Ok((key.clone(), column(key)?)));
                    Ok((KeyIndex::from_columns(&columns.collect::<Result<Vec<_>>>()?)?, Some(error)))
                }
            }
        }
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
    key_index: KeyIndex,
    /// The bloom file, opened when a key is first looked up; `None` if it cannot be.
    bloom: OnceLock<Option<CFile>>,
    pub rows: u64,
    pub(super) undo: Vec<Arc<DeltaFile>>,
    pub(super) redo: Vec<Arc<DeltaFile>>,
    /// Changes of the memory store, as the log has them.
    pub log_changes: LogChanges,
    /// Whether changes of the log are not all newer than those of the files.
    pub log_mixes_with_redo: bool,
    /// Rows that cannot be given as they were; they are left out everywhere.
    pub lost: RowRanges,
    /// Whether blocks are looked for even where the index of a file is damaged.
    pub is_tolerant: bool,
}

/// A part of a rowset that is missing or cannot be opened.
#[derive(Debug, Clone)]
pub(crate) struct Damage {
    pub part: DamagedPart,
    pub finding: Finding,
}

/// What is lost with a part of a rowset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DamagedPart {
    /// The keys: everything.
    Keys,
    /// The cells of a column.
    Column(String),
    /// Newer values; deleted rows would come back.
    Redo,
    /// Older values: the latest state is whole.
    Undo,
    /// Nothing: it can be made again or is not needed.
    Derivable,
}

impl RowSet {
    /// Opens what can be opened and says what cannot; no rowset if its keys are lost.
    pub fn open(
        metadata: RowSetMetadata,
        schema: &KuduSchema,
        blocks: Blocks,
    ) -> (Option<Self>, Vec<Damage>) {
        let mut damage = Vec::new();
        let place = format!("rowset {}", metadata.id);
        let mut note = |part: DamagedPart, error: &Error| {
            damage.push(Damage { part, finding: Finding::from_error(error, &place, None) });
        };
        let mut deltas = |ids: &[u64], part: DamagedPart| {
            let mut files = Vec::with_capacity(ids.len());
            for &id in ids {
                match blocks.certain(id).and_then(|source| DeltaFile::open(source, &blocks.options)) {
                    Ok(file) => files.push(Arc::new(file)),
                    Err(error) => note(part.clone(), &error),
                }
            }
            files
        };
        let (undo, redo) = (
            deltas(&metadata.undo_deltas, DamagedPart::Undo),
            deltas(&metadata.redo_deltas, DamagedPart::Redo),
        );
        for column in &schema.columns {
            let block = metadata.columns.iter().find(|(id, _)| Some(*id) == column.id);
            if let Some(error) = block.and_then(|(_, block)| blocks.certain(*block).err()) {
                note(DamagedPart::Column(column.name.clone()), &error);
            }
        }
        if let Some(error) = metadata.bloom.and_then(|block| blocks.certain(block).err()) {
            note(DamagedPart::Derivable, &error);
        }
        let key_index = match open_keys(&metadata, schema, &blocks) {
            Ok((key_index, None)) => key_index,
            Ok((key_index, Some(error))) => {
                note(DamagedPart::Derivable, &error);
                key_index
            }
            Err(error) => {
                note(DamagedPart::Keys, &error);
                return (None, damage);
            }
        };
        let rowset = Self {
            metadata,
            columns: Mutex::default(),
            rows: key_index.rows(),
            key_index,
            bloom: OnceLock::new(),
            undo,
            redo,
            log_changes: LogChanges::new(),
            log_mixes_with_redo: false,
            lost: RowRanges::none(),
            is_tolerant: false,
            blocks,
        };
        (Some(rowset), damage)
    }

    pub(super) fn block_source(&self, id: u64) -> Result<pilaster_core::SourceRef> {
        self.blocks.source(id)
    }

    pub(super) fn block_options(&self) -> &CFileReaderOptions {
        &self.blocks.options
    }

    /// Takes a column that was made again in place of its file.
    pub(super) fn put_column(&self, id: i32, file: Arc<CFile>) {
        self.columns.lock().unwrap_or_else(PoisonError::into_inner).insert(id, file);
    }

    /// Bytes of a block; 0 if it is missing.
    pub(super) fn block_bytes(&self, id: u64) -> u64 {
        self.blocks.map.places.get(&id).map_or(0, |place| place.length)
    }

    /// Encoded keys of the first and the last row.
    pub fn key_range(&self) -> Option<(Bytes, Bytes)> {
        self.key_index.key_range()
    }

    /// Those of `rows` that are not lost.
    pub fn intact(&self, rows: Range<u64>) -> RowRanges {
        let mut start = rows.start;
        let mut intact = Vec::new();
        for lost in self.lost.as_slice() {
            intact.push(start..lost.start.min(rows.end));
            start = start.max(lost.end);
        }
        intact.push(start..rows.end);
        intact.into_iter().collect()
    }

    /// The encoded keys of `rows`.
    pub fn keys_of(&self, rows: Range<u64>) -> Result<Vec<Vec<u8>>> {
        self.key_index.keys_of(rows)
    }

    /// The file in which rows are looked up by key; `None` if keys were made again.
    pub(super) fn key_index_file(&self) -> Option<Arc<CFile>> {
        match &self.key_index {
            KeyIndex::File(file) => Some(Arc::clone(file)),
            KeyIndex::Keys(_) => None,
        }
    }

    /// Makes the keys again from the key columns.
    pub(super) fn make_key_index(&mut self, schema: &KuduSchema) -> Result<()> {
        let columns = schema.keys().iter().map(|key| {
            let missing = || Error::corrupt(format!("a block of key column {:?}", key.name), "none");
            Ok((key.clone(), self.column(key)?.ok_or_else(missing)?))
        });
        self.key_index = KeyIndex::from_columns(&columns.collect::<Result<Vec<_>>>()?)?;
        Ok(())
    }

    /// The row with this encoded key.
    pub fn find(&self, key: &[u8]) -> Result<Option<u64>> {
        if let Some((min, max)) = self.key_range()
            && (key < min.as_ref() || key > max.as_ref())
        {
            return Ok(None);
        }
        match self.key_index.row_of_key(key) {
            Ok((row, is_there)) => {
                Ok((is_there && !self.intact(row..row.saturating_add(1)).is_empty()).then_some(row))
            }
            // The rows of damaged keys are lost already.
            Err(_) if self.is_tolerant => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Between which encoded keys its rows lie; everywhere if nothing says, or what makes no sense.
    pub fn keys(&self) -> KeyRange {
        let keys = self.key_range().map(|(min, max)| KeyRange::closed(&min, &max));
        keys.filter(|keys| !keys.is_empty()).unwrap_or_default()
    }

    /// The encoded key of a row.
    pub fn key_of(&self, row: u64) -> Result<Vec<u8>> {
        self.key_index.key_of(row)
    }

    /// The rows whose encoded key lies in a range: all of them, if damage may hide some.
    pub fn rows_in(&self, keys: &KeyRange) -> Result<Range<u64>> {
        if self.is_tolerant {
            return Ok(0..self.rows);
        }
        let own = self.keys();
        if keys.intersect(&own).is_empty() {
            return Ok(0..0);
        }
        if let Some(key) = keys.only_key() {
            if !self.may_contain(key) {
                return Ok(0..0);
            }
            let (row, is_there) = self.key_index.row_of_key(key)?;
            return Ok(row..row.saturating_add(u64::from(is_there)));
        }
        let first = if keys.start <= own.start { 0 } else { self.key_index.row_of_key(&keys.start)?.0 };
        let last = if keys.reaches(&own.end) { self.rows } else { self.key_index.row_of_key(&keys.end)?.0 };
        Ok(first..last.max(first))
    }

    /// Whether the bloom filter lets an encoded key pass. One that cannot be read lets all pass: it only saves work.
    pub(super) fn may_contain(&self, key: &[u8]) -> bool {
        let open = || {
            let source = self.blocks.certain(self.metadata.bloom?).ok()?;
            CFile::open(source, &self.blocks.options).ok()
        };
        let bloom = self.bloom.get_or_init(open).as_ref();
        bloom.is_none_or(|bloom| bloom.bloom_may_contain(key).unwrap_or(true))
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

    pub(super) fn relevant(
        &self,
        deltas: &[Arc<DeltaFile>],
        ids: &[i32],
        applies: impl Fn(&DeltaFile) -> bool,
    ) -> Vec<Arc<DeltaFile>> {
        deltas.iter().filter(|delta| applies(delta) && delta.concerns(ids)).cloned().collect()
    }

    /// The newest timestamp of any change of its files.
    pub fn newest_timestamp(&self) -> u64 {
        self.undo.iter().chain(&self.redo).map(|delta| delta.timestamps().1).max().unwrap_or_default()
    }
}
