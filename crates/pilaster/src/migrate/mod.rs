//! A whole table into a folder of Parquet files, in pieces: what was finished stays finished.
//!
//! ```text
//! out/_pilaster_migration.jsonl        what is migrated, and a line per finished piece
//! out/part-00000.parquet               a stretch of rows
//! out/country=de/part-00001.parquet    the same, of a partitioned table; its columns are in the names of the folders
//! out/_pilaster_partitions.json        the types of those columns
//! out/_SUCCESS                         all rows are there, and were counted
//! ```
//!
//! A piece is written beside its place, opened again and counted, gets its name, and only then is noted. A run that was
//! killed at any moment is therefore continued by calling [`migrate`] again: pieces that are noted and still there are
//! passed over, all others are written. If the source has changed meanwhile, the second run is refused, because rows
//! would be missing or there twice. Memory holds a batch and a row group.

mod in_order;
mod journal;
mod missing;
mod pieces;
mod source;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::Schema;
use pilaster_core::error::AtPosition;
use pilaster_core::{Dataset, Error, LossLog, OnDamage, Progress, Result, ScanRequest, ScanTask};

use self::in_order::{Place, RowsInOrder};
use self::journal::{Finished, Journal};
pub(crate) use self::missing::missing_parts;
pub(crate) use self::pieces::escape as folder_name;
use self::pieces::{Piece, file_name, plan};
use self::source::Identity;
use crate::convert::{ConvertOptions, ConvertTarget, convert, write_file};
use crate::hive::write_partition_types;
use crate::output::{OutputFormat, WriteOptions};
use crate::overwrite::Overwrite;

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
    /// Rows of a file, at most; [`DEFAULT_FILE_ROWS`] unless set.
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
    /// new, gone or changed. Without them only columns, rows, bytes and tasks are compared.
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
/// predicate, batch size and what to do about damage count: losses are noted in the journal and told again by a run that continues. Progress counts rows.
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
    if request.rows.is_some() || request.limit.is_some() {
        return Err(Error::invalid("a migration takes all rows: no positions, no limit"));
    }
    // Losses of planning are told by whoever reads.
    let (losses, unnoted) = (Arc::new(LossLog::new()), Arc::new(LossLog::new()));
    let noting = |losses: &Arc<LossLog>| match request.on_damage {
        OnDamage::Skip(_) => OnDamage::Skip(Arc::clone(losses)),
        OnDamage::Stop => OnDamage::Stop,
    };
    let everything = ScanRequest { predicate: None, on_damage: noting(&unnoted), ..request.clone() };
    let spans: Vec<_> = dataset.plan(&everything)?.tasks()?.iter().map(|task| task.span().clone()).collect();
    let pieces = plan(dataset, request, &spans, options.file_rows)?;
    let known = pieces.as_ref().map_or(0, Vec::len);
    let identity = Identity::of(dataset, request, options, spans.len(), known)?;
    let journal = Journal::open(folder, &identity)?;
    let partitioned_by = partition_columns(dataset, request)?;
    if !partitioned_by.fields().is_empty() {
        write_partition_types(folder, &partitioned_by)?;
    }
    if let Some(rows) = dataset.row_count() {
        progress.set_total(rows);
    }
    let summary = MigrateSummary { rows: 0, bytes: 0, files: 0, files_before: 0 };
    let mut run = Run { dataset, request, folder, options, journal, progress, summary };
    match &pieces {
        Some(pieces) => run.write_pieces(pieces)?,
        None => {
            let plan = dataset.plan(&ScanRequest { on_damage: noting(&losses), ..request.clone() })?;
            if let OnDamage::Skip(all) = &request.on_damage {
                losses.losses().into_iter().for_each(|lost| all.add(lost));
            }
            run.write_in_order(&plan.tasks()?)?;
        }
    }
    let summary = run.summary;
    let skips = matches!(request.on_damage, OnDamage::Skip(_));
    if let (Some(rows), None, false) = (dataset.row_count(), &request.predicate, skips)
        && rows != summary.rows
    {
        let error = Error::corrupt(format!("{rows} rows, as many as the source has"), summary.rows);
        return Err(error.at(&name, 0, ""));
    }
    fs::write(folder.join(SUCCESS), b"").at(&name, 0, "")?;
    Ok(summary)
}

/// The columns whose values become names of folders.
fn partition_columns(dataset: &dyn Dataset, request: &ScanRequest) -> Result<Schema> {
    let (schema, partitions) = (dataset.schema(), dataset.partitions()?);
    let projected = request.projected(&schema)?;
    let columns = partitions.first().map_or_else(Vec::new, |partition| partition.values.clone());
    let columns = columns.into_iter().filter(|(column, _)| projected.contains(column));
    let fields = columns.filter_map(|(column, _)| schema.fields().get(column).cloned());
    Ok(Schema::new(fields.collect::<Vec<_>>()))
}

/// A migration under way.
struct Run<'a> {
    dataset: &'a dyn Dataset,
    request: &'a ScanRequest,
    folder: &'a Path,
    options: &'a MigrateOptions,
    journal: Journal,
    progress: &'a dyn Progress,
    summary: MigrateSummary,
}

impl Run<'_> {
    /// Files whose rows are known by position.
    fn write_pieces(&mut self, pieces: &[Piece]) -> Result<()> {
        for (number, piece) in pieces.iter().enumerate() {
            if self.take_finished(number, &piece.path).is_none() {
                let path = self.prepare(&piece.path)?;
                let finished = self.write_piece(piece, &path)?;
                self.note(number, &piece.path, finished)?;
            }
        }
        Ok(())
    }

    /// Files of a table that gives its rows in order only: each is filled, and the next begins where it ends.
    fn write_in_order(&mut self, tasks: &[ScanTask]) -> Result<()> {
        let (mut begin, mut rows) = (Some(Place::default()), None);
        for number in 0.. {
            let Some(place) = begin else { break };
            let name = file_name(number);
            let earlier = self.journal.finished(number).cloned();
            if let Some(finished) = self.take_finished(number, &name) {
                (begin, rows) = (finished.next, None);
                continue;
            }
            let path = self.prepare(&name)?;
            let rows = rows.get_or_insert_with(|| RowsInOrder::new(self.dataset.name(), tasks, place));
            let finished = self.write_next(rows, &path)?;
            // A file that was finished and is gone: those behind it go on where it ended.
            if let Some(earlier) =
                earlier.filter(|earlier| (earlier.rows, earlier.next) != (finished.rows, finished.next))
            {
                let error =
                    Error::corrupt(format!("{} rows, as an earlier run wrote", earlier.rows), finished.rows);
                return Err(error.at(&path.display().to_string(), 0, ""));
            }
            begin = finished.next;
            self.note(number, &name, finished)?;
        }
        Ok(())
    }

    /// A file that an earlier run finished, if it is as it was noted.
    fn take_finished(&mut self, number: usize, path: &str) -> Option<Finished> {
        let known =
            self.journal.finished(number).filter(|known| is_there(&self.folder.join(path), known))?.clone();
        self.summary.files_before = self.summary.files_before.saturating_add(1);
        self.progress.advance(known.rows);
        self.count(&known);
        Some(known)
    }

    fn count(&mut self, finished: &Finished) {
        if let OnDamage::Skip(log) = &self.request.on_damage {
            finished.losses.iter().cloned().for_each(|lost| log.add(lost));
        }
        self.summary.files = self.summary.files.saturating_add(1);
        self.summary.rows = self.summary.rows.saturating_add(finished.rows);
        self.summary.bytes = self.summary.bytes.saturating_add(finished.bytes);
    }

    fn note(&mut self, number: usize, path: &str, finished: Finished) -> Result<()> {
        // Whoever watches hears of each step, rows or not: a run can be stopped between any two.
        self.progress.advance(0);
        self.count(&finished);
        self.journal.note(number, path, finished)?;
        self.progress.advance(0);
        Ok(())
    }

    /// Makes the folder of a file, without what a killed run has left of it there.
    fn prepare(&self, path: &str) -> Result<PathBuf> {
        let path = self.folder.join(path);
        if let Some(parent) = path.parent() {
            let name = path.display().to_string();
            fs::create_dir_all(parent).at(&name, 0, "")?;
            remove_unfinished(parent, &path).at(&name, 0, "")?;
        }
        Ok(path)
    }

    fn target(&self, path: &Path) -> (ConvertTarget, ConvertOptions) {
        let how = ConvertOptions::default().with_overwrite(Overwrite::new(true));
        (ConvertTarget::new(path, OutputFormat::Parquet), how.with_write(self.options.write.clone()))
    }

    fn write_piece(&self, piece: &Piece, path: &Path) -> Result<Finished> {
        // What this piece has lost is noted with it: a run that continues does not read it again.
        let (skips, losses) = (matches!(self.request.on_damage, OnDamage::Skip(_)), Arc::new(LossLog::new()));
        let on_damage = if skips { OnDamage::Skip(Arc::clone(&losses)) } else { OnDamage::Stop };
        let request = ScanRequest {
            on_damage,
            projection: Some(piece.columns.clone()),
            rows: Some(piece.rows.clone()),
            ..self.request.clone()
        };
        let (target, how) = self.target(path);
        let done = convert(self.dataset, &request, &target, &how, &PieceProgress(self.progress))?;
        let is_whole = request.predicate.is_none() && self.dataset.row_count().is_some() && !skips;
        let expected = piece.rows.count();
        if is_whole && expected != done.rows {
            let error = Error::corrupt(format!("{expected} rows, as many as the source has here"), done.rows);
            return Err(error.at(&path.display().to_string(), 0, ""));
        }
        Ok(Finished { rows: done.rows, bytes: done.bytes, losses: losses.losses(), next: None })
    }

    fn write_next(&self, rows: &mut RowsInOrder<'_>, path: &Path) -> Result<Finished> {
        let schema = self.request.output_schema(&self.dataset.schema())?;
        let (target, how) = self.target(path);
        let mut left = self.options.file_rows;
        let batches = std::iter::from_fn(|| {
            let batch = if left == 0 { None } else { rows.next(left).transpose() };
            if let Some(Ok(batch)) = &batch {
                left = left.saturating_sub(batch.num_rows() as u64);
            }
            batch
        });
        let done = write_file(batches, &schema, &target, &how, &PieceProgress(self.progress))?;
        let next = rows.place()?;
        Ok(Finished { rows: done.rows, bytes: done.bytes, losses: rows.take_losses(), next })
    }
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
