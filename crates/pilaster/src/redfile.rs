//! Where Redfile plugs in: how its files are opened, written and repaired.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pilaster_core::{DatasetRef, Error, Limits, Location, LostRows, Progress, Result, SharedFile, SourceRef};
pub use pilaster_redfile::metadata::Compression;
pub use pilaster_redfile::{EncodingChoice, RedfileSchema, RedfileWriterOptions};
use pilaster_redfile::{RecoveryReport, RedfileReader, RedfileReaderOptions, RedfileWriter, RepairOptions};

use crate::detect::Format;
use crate::formats::Driver;
use crate::open::OpenOptions;
use crate::output::{BatchWriter, OutputFormat, WriteOptions};
use crate::overwrite::Overwrite;
use crate::paths;
use crate::repair::RepairReport;

/// Redfile.
#[derive(Debug)]
pub(crate) struct Redfile;

impl Driver for Redfile {
    fn name(&self) -> &'static str {
        "redfile"
    }

    fn reads(&self, format: Format) -> bool {
        format == Format::Redfile
    }

    fn open_file(&self, source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
        let reader_options = reader_options(options);
        if options.recovers() {
            return Ok(Arc::new(
                RedfileReader::recover(source, options.redfile().schema(), &reader_options)?.0,
            ));
        }
        Ok(Arc::new(RedfileReader::open_with_options(source, &reader_options)?))
    }

    fn writes(&self, format: OutputFormat) -> bool {
        format == OutputFormat::Redfile
    }

    fn writer(
        &self,
        _format: OutputFormat,
        sink: Box<dyn Write + Send>,
        schema: SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        Ok(Box::new(Output(RedfileWriter::try_new(sink, &schema, options.formats.redfile.clone())?)))
    }

    fn repair(
        &self,
        source: SourceRef,
        sink: SharedFile,
        options: &OpenOptions,
        progress: &dyn Progress,
    ) -> Result<RepairReport> {
        let name = source.name().to_string();
        let (_, report) = pilaster_redfile::repair(source, sink, &repair_options(options), progress)?;
        Ok(RepairReport {
            source: name,
            rows: report.rows_written,
            bytes: report.bytes_written,
            is_complete: report.is_complete(),
            losses: report.losses,
        })
    }
}

/// Redfiles have larger footers than others: only a limit that was asked for narrows what the format allows.
fn reader_options(options: &OpenOptions) -> RedfileReaderOptions {
    let reader_options = RedfileReaderOptions::default()
        .with_verify_checksums(options.verify_checksums())
        .with_lost_cells(options.lost_cells());
    match options.limits() == &Limits::default() {
        true => reader_options,
        false => reader_options.with_limits(options.limits().clone()),
    }
}

fn repair_options(options: &OpenOptions) -> RepairOptions {
    RepairOptions {
        reader: reader_options(options),
        writer: None,
        schema: options.redfile().schema.clone(),
        lost_cells: options.lost_cells(),
    }
}

/// What only Redfiles need to know to be opened or repaired.
#[derive(Debug, Clone, Default)]
pub struct RedfileOptions {
    schema: Option<RedfileSchema>,
}

impl RedfileOptions {
    /// The schema, for a damaged file of which neither footer nor checkpoints are left.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<RedfileSchema>) -> Self {
        self.schema = schema;
        self
    }

    /// The schema, for a damaged file of which neither footer nor checkpoints are left.
    pub fn schema(&self) -> Option<&RedfileSchema> {
        self.schema.as_ref()
    }
}

impl OpenOptions {
    /// What only Redfiles need to know.
    #[must_use]
    pub fn with_redfile(mut self, redfile: RedfileOptions) -> Self {
        self.formats.redfile = redfile;
        self
    }

    /// What only Redfiles need to know.
    pub fn redfile(&self) -> &RedfileOptions {
        &self.formats.redfile
    }
}

/// The schema of the Redfile at `path`, for a damaged sister of it.
///
/// # Errors
/// As [`crate::open()`].
pub fn schema_of(path: &str) -> Result<RedfileSchema> {
    Ok(RedfileReader::open(paths::place(path)?.open()?)?.redfile_schema().clone())
}

/// Gives the damaged Redfile at `path`, a local file, a footer again where it lies: what is behind its last complete row group is
/// cut off. Damaged pages stay as they are.
///
/// # Errors
/// If the footer is intact, if nothing leads to its rows, or if the file cannot be written.
pub fn repair_in_place(path: &str, options: &OpenOptions) -> Result<RepairReport> {
    let file = paths::place(path)?;
    let plan = pilaster_redfile::repair_in_place(file.open()?, &repair_options(options))?;
    plan.apply(file)?;
    let bytes = plan.keep.saturating_add(plan.footer.len() as u64);
    Ok(found(path, &plan.report, bytes))
}

/// Writes a metadata file to `target` that leads into the damaged Redfile at `path`, which stays as it is and must lie in the folder of
/// `target` or below. Damaged pages stay damaged: what reads the new file should skip damage.
///
/// # Errors
/// If the target exists and may not be replaced; if nothing leads to rows of the file. Then nothing new is there.
pub fn write_sidecar(
    path: &str,
    target: &Path,
    overwrite: bool,
    options: &OpenOptions,
) -> Result<RepairReport> {
    Overwrite::new(overwrite).with_sources([path]).check(target)?;
    let damaged = paths::place(path)?;
    let inner = path_below(&damaged, &target.into())?;
    let file = SharedFile::create(target)?;
    let (_, report) =
        pilaster_redfile::write_sidecar(damaged.open()?, &inner, file.clone(), &repair_options(options))?;
    let file = file.take()?;
    let bytes = file.bytes();
    file.finish()?;
    Ok(found(path, &report, bytes))
}

/// The path of `file` from the folder of `target`, as the format has it.
fn path_below(file: &Location, target: &Location) -> Result<String> {
    // A name alone lies in the folder that is the current one.
    let folder = target.parent().unwrap_or_else(|| target.beside(""));
    let (real_file, real_folder) = (file.real()?, folder.real()?);
    let inner = real_file.path().strip_prefix(real_folder.path()).ok();
    let parts = inner
        .map(|inner| inner.iter().map(|part| part.to_str().map(str::to_string)).collect::<Option<Vec<_>>>());
    match parts.flatten().filter(|_| file.local_path().is_some() == target.local_path().is_some()) {
        Some(parts) => Ok(parts.join("/")),
        None => {
            let folder =
                if folder.path().as_os_str().is_empty() { ".".to_string() } else { folder.to_string() };
            let message = format!("does not lie in \"{folder}\" or below, where it could be found");
            Err(file.blame(Error::invalid(message)))
        }
    }
}

/// A report of what a recovery found, where pages were not looked at.
fn found(path: &str, report: &RecoveryReport, bytes: u64) -> RepairReport {
    let losses: Vec<LostRows> = report.losses().into_iter().map(LostRows::unknown).collect();
    RepairReport {
        source: path.to_string(),
        rows: report.rows,
        bytes,
        is_complete: losses.is_empty(),
        losses,
    }
}

impl WriteOptions {
    /// How Redfiles are written.
    #[must_use]
    pub fn with_redfile(mut self, options: RedfileWriterOptions) -> Self {
        self.formats.redfile = options;
        self
    }
}

struct Output(RedfileWriter<Box<dyn Write + Send>>);

impl BatchWriter for Output {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let (mut sink, _) = self.0.finish()?;
        Ok(sink.flush()?)
    }
}
