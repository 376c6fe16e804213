//! A whole table into a folder of Parquet files, in pieces: what was finished stays finished.
//!
//! ```text
//! out/_pilaster_migration.jsonl        what is migrated, and a line per finished piece
//! out/part-00000.parquet               a stretch of rows
//! out/country=de/part-00001.parquet    the same, of a partitioned table; its columns are in the names of the folders
//! out/_SUCCESS                         all rows are there, and were counted
//! ```
//!
//! A piece is written beside its place, opened again and counted, gets its name, and only then is noted. A run that was
//! killed at any moment is therefore continued by calling [`migrate`] again: pieces that are noted and still there are
//! passed over, all others are written. If the source has changed meanwhile, the second run is refused, because rows
//! would be missing or there twice. Memory holds a batch and a row group.

mod journal;
mod pieces;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use pilaster_core::error::AtPosition;
use pilaster_core::{Dataset, Error, Progress, Result, RowRanges, ScanRequest};

use self::journal::{Finished, Journal};
use self::pieces::{Piece, plan};
use self::source::Identity;
use crate::convert::{ConvertOptions, ConvertTarget, convert};
use crate::output::{OutputFormat, WriteOptions};

/// Rows of a file unless told otherwise: large enough for any engine, small enough to be repeated.
pub const DEFAULT_FILE_ROWS: u64 = 4 << 20;
/// What says that all is there.
const SUCCESS: &str = "_SUCCESS";

/// How to migrate.
#[derive(Debug, Clone)]
pub struct MigrateOptions {
    file_rows: u64,
    write: WriteOptions,
    source_paths: Vec<PathBuf>,
    choices: Vec<String>,
}

impl Default for MigrateOptions {
    fn default() -> Self {
        let write = WriteOptions::default();
        Self { file_rows: DEFAULT_FILE_ROWS, write, source_paths: Vec::new(), choices: Vec::new() }
    }
}

impl MigrateOptions {
    /// Rows of a file, at most; [`DEFAULT_FILE_ROWS`] unless set. A table that only gives rows in order makes one file per
    /// split.
    #[must_use]
    pub fn with_file_rows(mut self, rows: u64) -> Self {
        self.file_rows = rows.max(1);
        self
    }

    /// How the Parquet files are written.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }

    /// The local files and folders the dataset was opened from: a run that continues makes sure that no file in them is
    /// new, gone or changed. Without them only columns, rows, bytes and splits are compared.
    #[must_use]
    pub fn with_source_paths(mut self, paths: Vec<PathBuf>) -> Self {
        self.source_paths = paths;
        self
    }

    /// What decides, beside the request, which rows the dataset gives, in any words: conditions, times, versions. A run that continues
    /// must have been asked for the same.
    #[must_use]
    pub fn with_choices(mut self, choices: Vec<String>) -> Self {
        self.choices = choices;
        self
    }
}

/// What a migration did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrateSummary {
    /// Rows of all files.
    pub rows: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Number of files.
    pub files: usize,
    /// How many of them an earlier run had finished.
    pub files_before: usize,
}

/// Writes all rows of a dataset into `folder`, or goes on where an earlier run was stopped. Of the request, projection,
/// predicate and batch size count. Progress counts rows.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if the folder holds something else, another run is writing to it, or the source,
/// the request or the options are not those of the run that is to be continued. If reading or writing fails, or counts
/// differ; then what is finished stays, and the next call goes on after it.
pub fn migrate(
    dataset: &dyn Dataset,
    request: &ScanRequest,
    folder: &Path,
    options: &MigrateOptions,
    progress: &dyn Progress,
) -> Result<MigrateSummary> {
    let name = folder.display().to_string();
    if request.rows.is_some() || request.split.is_some() || request.limit.is_some() {
        return Err(Error::invalid("a migration takes all rows: no positions, no split, no limit"));
    }
    let pieces = plan(dataset, request, options.file_rows)?;
    let identity = Identity::of(dataset, request, options, pieces.len())?;
    let mut journal = Journal::open(folder, &identity)?;
    if let Some(rows) = dataset.row_count() {
        progress.set_total(rows);
    }
    let mut summary = MigrateSummary { rows: 0, bytes: 0, files: pieces.len(), files_before: 0 };
    for (number, piece) in pieces.iter().enumerate() {
        let path = folder.join(&piece.path);
        let finished = match journal.finished(number).filter(|known| is_there(&path, known)) {
            Some(known) => {
                summary.files_before = summary.files_before.saturating_add(1);
                progress.advance(known.rows);
                *known
            }
            None => {
                let finished = write_piece(dataset, request, piece, &path, options, progress)?;
                // Whoever watches hears of each step, rows or not: a run can be stopped between any two.
                progress.advance(0);
                journal.note(number, &piece.path, finished)?;
                progress.advance(0);
                finished
            }
        };
        summary.rows = summary.rows.saturating_add(finished.rows);
        summary.bytes = summary.bytes.saturating_add(finished.bytes);
    }
    if let (Some(rows), None) = (dataset.row_count(), &request.predicate)
        && rows != summary.rows
    {
        let error = Error::corrupt(format!("{rows} rows, as many as the source has"), summary.rows);
        return Err(error.at(&name, 0, ""));
    }
    fs::write(folder.join(SUCCESS), b"").at(&name, 0, "")?;
    Ok(summary)
}

/// Whether a file that was finished before is as it was noted.
fn is_there(path: &Path, known: &Finished) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() == known.bytes)
}

/// Tells how far the rows of one piece are.
struct PieceProgress<'a>(&'a dyn Progress);

impl Progress for PieceProgress<'_> {
    fn set_total(&self, _total: u64) {}

    fn advance(&self, units: u64) {
        self.0.advance(units);
    }
}

fn write_piece(
    dataset: &dyn Dataset,
    request: &ScanRequest,
    piece: &Piece,
    path: &Path,
    options: &MigrateOptions,
    progress: &dyn Progress,
) -> Result<Finished> {
    let name = path.display().to_string();
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).at(&name, 0, "")?;
        remove_unfinished(parent, path).at(&name, 0, "")?;
    }
    let request = ScanRequest {
        projection: Some(piece.columns.clone()),
        rows: piece.rows.clone(),
        split: piece.split,
        ..request.clone()
    };
    let target = ConvertTarget::new(path, OutputFormat::Parquet);
    let how = ConvertOptions::default().with_overwrite(true).with_write(options.write.clone());
    let done = convert(dataset, &request, &target, &how, &PieceProgress(progress))?;
    let is_whole = request.predicate.is_none() && dataset.row_count().is_some();
    let expected = piece.rows.as_ref().map(RowRanges::count).filter(|_| is_whole);
    if let Some(expected) = expected.filter(|expected| *expected != done.rows) {
        let error = Error::corrupt(format!("{expected} rows, as many as the source has here"), done.rows);
        return Err(error.at(&name, 0, ""));
    }
    Ok(Finished { rows: done.rows, bytes: done.bytes })
}

/// Removes what a killed run has left of this file.
fn remove_unfinished(folder: &Path, path: &Path) -> std::io::Result<()> {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { return Ok(()) };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.file_name().to_string_lossy().into_owned();
        if found.starts_with(&format!(".{name}.")) && found.ends_with(".tmp") {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
