//! Keys that occur in several runs of a tablet.
//!
//! A run is sorted and has no key twice, so only runs whose key ranges overlap can share a key. Their keys are read back from the
//! rowsets and merged, a stretch of each run in memory. Where many runs overlap, some are merged into a file of keys first, so
//! that memory does not grow with their number.

use std::cmp::Reverse;
use std::collections::VecDeque;
use std::collections::binary_heap::{BinaryHeap, PeekMut};
use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, IntoInnerError, Read, Seek, Write};
use std::path::Path;
use std::sync::Arc;

use pilaster_core::error::AtPosition;
use pilaster_core::positional::ColumnCursor;
use pilaster_core::storage::unnamed_file;
use pilaster_core::{Result, RowRanges};

use super::key_rows::{KeyColumn, KeyRows};
use super::rowset::WrittenRowSet;
use crate::cfile::{CFile, CFileReaderOptions, CellCursor};
use crate::fs::{FilePool, UnreadLog, WrittenBlock};

/// Most runs that are merged at once.
const FAN_IN: usize = 64;
/// Keys of a run in memory.
const STRETCH_KEYS: u64 = 1024;
const BUFFER_BYTES: usize = 1 << 16;

/// The keys of a run: those of its rowsets, one after the other.
#[derive(Debug)]
pub(super) struct RunKeys {
    first: Vec<u8>,
    last: Vec<u8>,
    blocks: Vec<WrittenBlock>,
}

impl RunKeys {
    /// The keys from `first` to `last` of these rowsets, which follow each other.
    pub fn new(first: &[u8], last: &[u8], rowsets: &[WrittenRowSet]) -> Self {
        let blocks = rowsets.iter().map(|rowset| rowset.keys.clone()).collect();
        Self { first: first.to_vec(), last: last.to_vec(), blocks }
    }
}

/// A key that two runs have, if there is one. Files of keys are put into `scratch`.
pub(super) fn find_duplicate(mut runs: Vec<RunKeys>, scratch: &Path) -> Result<Option<Vec<u8>>> {
    let pool = Arc::new(FilePool::new(None, UnreadLog::default()));
    runs.sort_by(|a, b| a.first.cmp(&b.first));
    let mut group: Vec<RunKeys> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for run in runs {
        if !group.is_empty() && run.first > last {
            if let Some(key) = find_in_group(std::mem::take(&mut group), &pool, scratch)? {
                return Ok(Some(key));
            }
            last.clear();
        }
        last = last.max(run.last.clone());
        group.push(run);
    }
    find_in_group(group, &pool, scratch)
}

fn find_in_group(group: Vec<RunKeys>, pool: &Arc<FilePool>, scratch: &Path) -> Result<Option<Vec<u8>>> {
    if group.len() < 2 {
        return Ok(None);
    }
    let mut streams: VecDeque<KeyStream> = group
        .into_iter()
        .map(|run| KeyStream::Blocks(Box::new(BlockKeys::new(run.blocks, Arc::clone(pool)))))
        .collect();
    while streams.len() > FAN_IN {
        let some: Vec<_> = streams.drain(..FAN_IN).collect();
        let mut file = KeyFileWriter::create(scratch)?;
        if let Some(key) = merge(some, |key| file.push(key))? {
            return Ok(Some(key));
        }
        streams.push_back(KeyStream::File(file.finish()?));
    }
    merge(streams.into(), |_| Ok(()))
}

/// Calls `each` with all keys in order; stops at one that occurs twice, and gives it.
fn merge(mut streams: Vec<KeyStream>, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<Option<Vec<u8>>> {
    let mut heads = BinaryHeap::with_capacity(streams.len());
    for (number, stream) in streams.iter_mut().enumerate() {
        let mut key = Vec::new();
        if stream.next(&mut key)? {
            heads.push(Reverse((key, number)));
        }
    }
    let mut before: Option<Vec<u8>> = None;
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((key, number)) = &mut *head;
        if before.as_ref() == Some(key) {
            return Ok(before);
        }
        each(key)?;
        before.get_or_insert_default().clone_from(key);
        let has_next = match streams.get_mut(*number) {
            Some(stream) => stream.next(key)?,
            None => false,
        };
        if !has_next {
            PeekMut::pop(head);
        }
    }
    Ok(None)
}

/// Ascending keys.
enum KeyStream {
    Blocks(Box<BlockKeys>),
    File(KeyFile),
}

impl KeyStream {
    /// Puts the next key into `key`; says whether there is one.
    fn next(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        match self {
            Self::Blocks(blocks) => blocks.next(key),
            Self::File(file) => file.next(key),
        }
    }
}

/// The keys of some rowsets, one after the other; one CFile is open at a time.
struct BlockKeys {
    blocks: std::vec::IntoIter<WrittenBlock>,
    pool: Arc<FilePool>,
    current: Option<OpenKeys>,
    /// Keys that were read, and how many of them were given.
    stretch: KeyRows,
    given: usize,
}

struct OpenKeys {
    file: Arc<CFile>,
    cursor: CellCursor,
    at: u64,
}

impl BlockKeys {
    fn new(blocks: Vec<WrittenBlock>, pool: Arc<FilePool>) -> Self {
        Self { blocks: blocks.into_iter(), pool, current: None, stretch: KeyRows::default(), given: 0 }
    }

    fn next(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        while self.given >= self.stretch.len() {
            if !self.read_stretch()? {
                return Ok(false);
            }
        }
        key.clear();
        key.extend_from_slice(self.stretch.get(self.given));
        self.given = self.given.saturating_add(1);
        Ok(true)
    }

    /// Reads further keys; says whether there may be some.
    fn read_stretch(&mut self) -> Result<bool> {
        let Some(open) = &mut self.current else {
            let Some(block) = self.blocks.next() else { return Ok(false) };
            let source = self.pool.block(block.id, &block.place)?;
            let file = Arc::new(CFile::open(source, &CFileReaderOptions::default())?);
            let cursor = CellCursor::new(Arc::clone(&file), RowRanges::none());
            self.current = Some(OpenKeys { file, cursor, at: 0 });
            return Ok(true);
        };
        let metadata = open.file.metadata();
        let end = open.at.saturating_add(STRETCH_KEYS).min(metadata.num_values);
        if open.at >= end {
            self.current = None;
            return Ok(true);
        }
        let values = open.cursor.read(open.at..end)?;
        let column = KeyColumn::new(metadata.data_type, &values)?;
        self.stretch = KeyRows::encode(&[&column], values.len())?;
        self.given = 0;
        open.at = end;
        Ok(true)
    }
}

/// A file of keys: the length of each as a u32, and its bytes.
struct KeyFile {
    file: BufReader<File>,
    name: String,
}

impl KeyFile {
    fn next(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        let mut length = [0; 4];
        match self.file.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(error).at(&self.name, 0, ""),
        }
        key.resize(u32::from_le_bytes(length) as usize, 0);
        self.file.read_exact(key).at(&self.name, 0, "")?;
        Ok(true)
    }
}

struct KeyFileWriter {
    file: BufWriter<File>,
    name: String,
}

impl KeyFileWriter {
    fn create(folder: &Path) -> Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, unnamed_file(folder, "a temporary file of keys")?);
        Ok(Self { file, name: folder.display().to_string() })
    }

    fn push(&mut self, key: &[u8]) -> Result<()> {
        let length = u32::try_from(key.len()).unwrap_or(u32::MAX).to_le_bytes();
        let written = self.file.write_all(&length).and_then(|()| self.file.write_all(key));
        written.at(&self.name, 0, "")
    }

    fn finish(self) -> Result<KeyFile> {
        let Self { file, name } = self;
        let mut file = file.into_inner().map_err(IntoInnerError::into_error).at(&name, 0, "")?;
        file.rewind().at(&name, 0, "")?;
        Ok(KeyFile { file: BufReader::with_capacity(BUFFER_BYTES, file), name })
    }
}
