//! Sorted rows in temporary files, and their merge.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};

use super::gathered::SortedInMemory;
use super::{BATCH_ROWS, KeysOf, batch_of, size, with_own_values};
use crate::merge::{self, KeyedRows, Keys, Merge, SomeRows};
use crate::storage::unnamed_file;
use crate::{Error, Result};

/// So many runs of a kind become one: that many files are open for each kind, and each row is written once for each.
const MERGED_AT_ONCE: usize = 32;
/// Bytes of the batches of a run: at least so many, that files are read in large pieces, and at most so many, that those of
/// all runs fit in memory.
const RUN_BATCH_BYTES: std::ops::RangeInclusive<usize> = (4 << 10)..=(1 << 20);
/// What the batches of runs that are merged may take at least, however little memory there is.
const LEAST_MERGE_BYTES: usize = 1 << 20;
/// How errors call the files of runs, which have no names.
const WHAT: &str = "a temporary file of sorted rows";
/// What is written and read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Sorted rows in a file that has no name.
struct Run {
    file: File,
    first_key: Vec<u8>,
    /// 0 as it came out of memory, one more than those it was merged from.
    level: u32,
    /// Bytes of its largest batch.
    largest: usize,
}

/// Runs in the order in which their rows came.
pub(super) struct Runs {
    schema: SchemaRef,
    keys_of: Arc<KeysOf>,
    memory_bytes: usize,
    folder: PathBuf,
    runs: Vec<Run>,
    written: u64,
}

impl Runs {
    pub fn new(schema: SchemaRef, keys_of: Arc<KeysOf>, memory_bytes: usize, folder: PathBuf) -> Self {
        Self { schema, keys_of, memory_bytes, folder, runs: Vec::new(), written: 0 }
    }

    /// How many runs came out of memory.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// How many files are open.
    #[cfg(test)]
    pub fn open(&self) -> usize {
        self.runs.len()
    }

    /// Writes rows to a run.
    pub fn add(&mut self, mut rows: SortedInMemory) -> Result<()> {
        let mut writer = self.writer(rows.first_key().to_vec(), 0)?;
        while let Some(batch) = rows.next_batch(self.batch_bytes())? {
            writer.write(batch)?;
        }
        drop(rows);
        self.runs.push(writer.finish()?);
        self.written = self.written.saturating_add(1);
        self.merge_full_levels()
    }

    /// Merges the last runs while there are enough of a level: how often a row is written grows with the logarithm of their number.
    fn merge_full_levels(&mut self) -> Result<()> {
        while let Some(last) = self.runs.last() {
            let level = last.level;
            let alike = self.runs.iter().rev().take_while(|run| run.level == level).count();
            if alike < MERGED_AT_ONCE {
                return Ok(());
            }
            let group = self.runs.split_off(self.runs.len().saturating_sub(alike));
            let merged = self.merge_to_run(group)?;
            self.runs.push(merged);
        }
        Ok(())
    }

    fn merge_to_run(&self, mut group: Vec<Run>) -> Result<Run> {
        if group.len() == 1
            && let Some(run) = group.pop()
        {
            return Ok(run);
        }
        let level = group.iter().map(|run| run.level).max().unwrap_or_default().saturating_add(1);
        let first_key = group.iter().map(|run| &run.first_key).min().cloned().unwrap_or_default();
        let mut writer = self.writer(first_key, level)?;
        let mut merged = self.merge(group);
        while let Some(batch) = merged.next_batch()? {
            writer.write(batch)?;
        }
        writer.finish()
    }

    /// All rows in order.
    pub fn merged(mut self) -> Result<MergedRuns> {
        // Rows of many megabytes: fewer runs at once, until the batches of all fit.
        let most = (self.memory_bytes / 2).max(LEAST_MERGE_BYTES);
        loop {
            let mut groups: Vec<Vec<Run>> = Vec::new();
            let mut bytes = 0usize;
            for run in std::mem::take(&mut self.runs) {
                bytes = bytes.saturating_add(run.largest);
                match groups.last_mut() {
                    Some(group) if bytes <= most || group.len() < 2 => group.push(run),
                    _ => {
                        bytes = run.largest;
                        groups.push(vec![run]);
                    }
                }
            }
            if groups.len() < 2 {
                return Ok(self.merge(groups.pop().unwrap_or_default()));
            }
            for group in groups {
                self.runs.push(self.merge_to_run(group)?);
            }
        }
    }

    fn merge(&self, runs: Vec<Run>) -> MergedRuns {
        let source = |run| Box::new(self.rows_of(run)) as Box<dyn KeyedRows>;
        let merge = Merge::new(runs.into_iter().map(source).collect());
        let most_bytes = self.batch_bytes();
        MergedRuns { schema: Arc::clone(&self.schema), merge, most_bytes, shares: Shares::default() }
    }

    fn rows_of(&self, run: Run) -> RunRows {
        RunRows {
            first_key: run.first_key,
            state: RunState::Closed(run.file),
            keys_of: Arc::clone(&self.keys_of),
            folder: self.folder.display().to_string(),
        }
    }

    /// About how many bytes the batches of runs have.
    fn batch_bytes(&self) -> usize {
        let share = self.memory_bytes / MERGED_AT_ONCE / 4;
        share.clamp(*RUN_BATCH_BYTES.start(), *RUN_BATCH_BYTES.end())
    }

    fn writer(&self, first_key: Vec<u8>, level: u32) -> Result<RunWriter> {
        let folder = self.folder.display().to_string();
        let file = unnamed_file(&self.folder, WHAT)?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let writer = StreamWriter::try_new(file, &self.schema).map_err(|error| in_file(error, &folder))?;
        Ok(RunWriter { writer, first_key, level, batch_bytes: self.batch_bytes(), largest: 0, folder })
    }
}

/// What the system says of a temporary file, which has no name of its own.
fn failed(error: io::Error, folder: &str) -> Error {
    let words = format!("{WHAT}: {error}");
    Error::from(io::Error::new(error.kind(), words)).at(folder, 0, "")
}

/// Arrow carries the system's error as one of its own.
fn in_file(error: ArrowError, folder: &str) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(error, folder),
        error => Error::from(error).at(folder, 0, ""),
    }
}

struct RunWriter {
    writer: StreamWriter<BufWriter<File>>,
    first_key: Vec<u8>,
    level: u32,
    batch_bytes: usize,
    largest: usize,
    folder: String,
}

impl RunWriter {
    /// Writes rows, in smaller batches if they turn out to be large.
    fn write(&mut self, batch: RecordBatch) -> Result<()> {
        let mut pending = vec![batch];
        while let Some(batch) = pending.pop() {
            let bytes = batch_bytes(batch.columns());
            let rows = batch.num_rows();
            if rows > 1 && bytes / 2 > self.batch_bytes {
                let half = rows / 2;
                pending.extend([batch.slice(half, rows.saturating_sub(half)), batch.slice(0, half)]);
                continue;
            }
            self.largest = self.largest.max(bytes);
            let batch = with_own_values(&batch)?;
            self.writer.write(&batch).map_err(|error| in_file(error, &self.folder))?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Run> {
        let Self { writer, first_key, level, largest, folder, .. } = self;
        let file = writer.into_inner().map_err(|error| in_file(error, &folder))?;
        let file = file.into_inner().map_err(io::IntoInnerError::into_error);
        let mut file = file.map_err(|error| failed(error, &folder))?;
        file.seek(SeekFrom::Start(0)).map_err(|error| failed(error, &folder))?;
        Ok(Run { file, first_key, level, largest })
    }
}

fn batch_bytes(columns: &[ArrayRef]) -> usize {
    columns.iter().fold(0, |sum, column| sum.saturating_add(size::bytes(column)))
}

/// The rows of a run, read when its turn comes.
struct RunRows {
    first_key: Vec<u8>,
    state: RunState,
    keys_of: Arc<KeysOf>,
    folder: String,
}

enum RunState {
    Closed(File),
    Open(Box<StreamReader<BufReader<File>>>),
    Done,
}

impl RunRows {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let mut reader = match std::mem::replace(&mut self.state, RunState::Done) {
            RunState::Closed(file) => {
                let file = BufReader::with_capacity(BUFFER_BYTES, file);
                Box::new(StreamReader::try_new(file, None).map_err(|error| in_file(error, &self.folder))?)
            }
            RunState::Open(reader) => reader,
            RunState::Done => return Ok(None),
        };
        let batch = reader.next().transpose().map_err(|error| in_file(error, &self.folder))?;
        if batch.is_some() {
            self.state = RunState::Open(reader);
        }
        Ok(batch)
    }
}

impl KeyedRows for RunRows {
    fn first_key(&self) -> &[u8] {
        &self.first_key
    }

    fn next(&mut self, keys: Option<&mut Keys>) -> Result<Option<SomeRows>> {
        let Some(batch) = self.next_batch()? else { return Ok(None) };
        if let Some(keys) = keys {
            *keys = super::keys_of(&*self.keys_of, &batch)?;
        }
        Ok(Some(SomeRows { count: batch.num_rows(), arrays: batch.columns().to_vec() }))
    }
}

/// Runs as one.
pub(super) struct MergedRuns {
    schema: SchemaRef,
    merge: Merge,
    most_bytes: usize,
    shares: Shares,
}

impl MergedRuns {
    /// The next rows; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Self { schema, merge, most_bytes, shares } = self;
        let mut rows = merge::Runs::default();
        let mut bytes = 0usize;
        while rows.count() < BATCH_ROWS && bytes < *most_bytes {
            let Some(run) = merge.next_run(BATCH_ROWS.saturating_sub(rows.count()))? else { break };
            bytes = bytes.saturating_add(run.rows.len().saturating_mul(shares.of(&run)));
            rows.add(&run);
        }
        let Some(SomeRows { arrays, count }) = rows.gather()? else { return Ok(None) };
        // The rows leave the batches they come from, which are large and many.
        let columns = arrays.iter().map(size::copied).collect::<Result<Vec<_>>>()?;
        batch_of(schema, columns, count).map(Some)
    }
}

/// The batch that each run is at, and what one of its rows takes.
#[derive(Default)]
struct Shares(Vec<Option<(Weak<[ArrayRef]>, usize)>>);

impl Shares {
    /// What a row of a run takes, if all of its batch are alike.
    fn of(&mut self, run: &merge::Run<'_>) -> usize {
        if self.0.len() <= run.source {
            self.0.resize(run.source.saturating_add(1), None);
        }
        let Some(known) = self.0.get_mut(run.source) else { return 0 };
        match known {
            Some((batch, share)) if std::ptr::addr_eq(batch.as_ptr(), Arc::as_ptr(run.batch)) => *share,
            _ => {
                let share = batch_bytes(run.batch).checked_div(run.keys.len()).unwrap_or_default();
                *known = Some((Arc::downgrade(run.batch), share));
                share
            }
        }
    }
}
