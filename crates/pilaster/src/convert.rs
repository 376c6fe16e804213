//! Any format to any format: streamed, checked, and complete or not there at all.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pilaster_core::{
    BatchReader, Dataset, Error, Limits, Location, Progress, Result, ScanRequest, SharedFile, SourceRef,
    fitting,
};

use crate::foreign::arrow_ipc::ArrowDataset;
use crate::foreign::json_lines::count_objects;
use crate::foreign::parquet::ParquetDataset;
use crate::foreign::source_read::SourceRead;
use crate::formats::{DRIVERS, writer_of};
use crate::open::OpenOptions;
use crate::output::{self, OutputFormat, WriteOptions};
use crate::overwrite::Overwrite;

/// What to write, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertTarget {
    /// The file or folder that will appear.
    pub place: Location,
    /// Its format.
    pub format: OutputFormat,
}

impl ConvertTarget {
    /// A target of this format.
    pub fn new(place: impl Into<Location>, format: OutputFormat) -> Self {
        Self { place: place.into(), format }
    }

    /// A target whose format its extension names.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if the extension is unknown.
    pub fn from_path(place: impl Into<Location>) -> Result<Self> {
        let place = place.into();
        let format = OutputFormat::from_path(place.path()).ok_or_else(|| {
            let message = "the name does not say which format to write; end it in .parquet, .arrow, .red, .csv, .tsv, .json \
                           or .jsonl, or name the format (-f kudu, -f cfile-set for folders)";
            place.blame(Error::invalid(message))
        })?;
        Ok(Self { place, format })
    }

    fn name(&self) -> String {
        self.place.to_string()
    }
}

/// How to convert.
#[derive(Debug, Clone, Default)]
pub struct ConvertOptions {
    overwrite: Overwrite,
    write: WriteOptions,
}

impl ConvertOptions {
    /// Whether an existing file is replaced, and what must not be; nothing is unless this says so.
    #[must_use]
    pub fn with_overwrite(mut self, overwrite: Overwrite) -> Self {
        self.overwrite = overwrite;
        self
    }

    /// How to write.
    #[must_use]
    pub fn with_write(mut self, write: WriteOptions) -> Self {
        self.write = write;
        self
    }
}

/// What a conversion did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvertSummary {
    /// Rows read and written.
    pub rows: u64,
    /// Bytes of the output.
    pub bytes: u64,
    /// Whether the output was opened again and its rows counted. (A table for people cannot be, nor can a pipe.)
    pub is_counted: bool,
}

/// Writes the rows a request asks for to a new file.
///
/// Memory holds a batch (a row group, for Parquet). The output is opened again and its rows are counted before it gets
/// its name; rows that are added to a table are counted when they are part of it. Progress counts rows.
///
/// # Errors
/// If the target exists and may not be replaced, if reading or writing fails, or if the counts differ; then nothing new
/// is there under the target's name, unless rows were added to a table and counted there.
pub fn convert(
    dataset: &dyn Dataset,
    request: &ScanRequest,
    target: &ConvertTarget,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let is_addition = DRIVERS.iter().any(|driver| driver.adds_to(target.format, &options.write));
    match target.format.is_folder() {
        true => options.overwrite.check_folder(&target.place, is_addition)?,
        false => options.overwrite.check(&target.place)?,
    }
    // Writers copy strings that scans share.
    let batches = fitting::batches(dataset.read(request)?, &Limits::default());
    if let Some(rows) = expected_rows(dataset, request) {
        progress.set_total(rows);
    }
    if target.format.is_folder() {
        return convert_folder(batches, target, options, progress);
    }
    let schema = batches.schema();
    let batches = batches.map(|batch| batch.map_err(Error::from));
    write_file(batches, &schema, target, options, progress)
}

/// Writes rows to a file, and counts those that are there.
///
/// # Errors
/// As [`convert`].
pub(crate) fn write_file(
    batches: impl Iterator<Item = Result<RecordBatch>>,
    schema: &SchemaRef,
    target: &ConvertTarget,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let file = SharedFile::create(&target.place)?;
    let in_target = |error: Error| error.at(&target.name(), 0, "");
    let mut writer =
        output::writer(target.format, Box::new(file.clone()), Arc::clone(schema), &options.write)
            .map_err(in_target)?;
    let mut rows = 0u64;
    for batch in batches {
        let batch = batch?;
        writer.write(&batch).map_err(in_target)?;
        rows = rows.saturating_add(batch.num_rows() as u64);
        progress.advance(batch.num_rows() as u64);
    }
    writer.finish().map_err(in_target)?;
    let mut file = file.take()?;
    let bytes = file.bytes();
    let beside = || match writer_of(target.format) {
        Ok(driver) => match driver.beside(target.format, schema, &options.write)? {
            Some((ending, content)) => {
                write_beside(&target.place.with_extension(ending), &content, &options.overwrite)
            }
            None => Ok(()),
        },
        Err(_) => Ok(()),
    };
    let is_counted = match file.written()? {
        Some(source) => {
            let is_counted = count(source, rows, target, schema)?;
            beside()?;
            file.finish()?;
            is_counted
        }
        None => {
            file.finish()?;
            // Of a pipe nothing can be read again; in a store of objects, only what is finished.
            let is_counted = target.place.is_file()? && count_finished(rows, target, schema)?;
            if is_counted {
                beside()?;
            }
            is_counted
        }
    };
    Ok(ConvertSummary { rows, bytes, is_counted })
}

/// Counts the rows of an output; `false` if nobody can.
///
/// # Errors
/// If there are others than were written.
fn count(source: SourceRef, rows: u64, target: &ConvertTarget, schema: &SchemaRef) -> Result<bool> {
    let written =
        count_rows(source, target.format, schema).map_err(|error| error.at(&target.name(), 0, ""))?;
    match written {
        Some(written) if written != rows => Err(target.place.blame(miscounted(rows, written))),
        written => Ok(written.is_some()),
    }
}

/// Counts the rows of an output that has its name already, and takes it away if there are others than were written.
fn count_finished(rows: u64, target: &ConvertTarget, schema: &SchemaRef) -> Result<bool> {
    let counted = target.place.open().and_then(|source| count(source, rows, target, schema));
    if counted.is_err() {
        // The first error says more than that it cannot be removed.
        let _ = target.place.remove();
    }
    counted
}

/// Writes a small file that belongs to another; it appears whole, or not at all.
fn write_beside(place: &Location, content: &[u8], overwrite: &Overwrite) -> Result<()> {
    // A run that was killed before the other file had its name has left it.
    if is_written(place, content) {
        return Ok(());
    }
    overwrite.check(place)?;
    place.write(content)
}

/// Whether a file is there already with these very bytes.
fn is_written(place: &Location, content: &[u8]) -> bool {
    let source = place.open().ok().filter(|source| source.size() == content.len() as u64);
    source.is_some_and(|source| source.read_at(0..source.size()).is_ok_and(|bytes| bytes == content))
}

/// How many rows a request gives, where that is known before reading.
fn expected_rows(dataset: &dyn Dataset, request: &ScanRequest) -> Option<u64> {
    let rows = dataset.row_count()?;
    let wanted = request.wanted_rows(rows).count();
    Some(wanted.min(request.limit.unwrap_or(u64::MAX)))
}

fn convert_folder(
    batches: BatchReader,
    target: &ConvertTarget,
    options: &ConvertOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let driver = writer_of(target.format).map_err(|error| error.at(&target.name(), 0, ""))?;
    driver.write_folder(target.format, batches, &target.place, &options.write, progress)
}

/// What was written to a folder, and how many rows were found there afterwards.
#[cfg(any(feature = "kudu", feature = "doris", feature = "carbondata"))]
pub(crate) struct Counted {
    pub(crate) rows: u64,
    pub(crate) bytes: u64,
    /// `None` where their number says nothing.
    pub(crate) found: Option<u64>,
}

#[cfg(any(feature = "kudu", feature = "doris", feature = "carbondata"))]
impl Counted {
    /// Refuses another number of rows than was read.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::Corrupt`]
    pub(crate) fn check(self, folder: &Location) -> Result<ConvertSummary> {
        let Self { rows, bytes, found } = self;
        match found.filter(|found| *found != rows) {
            Some(found) => Err(folder.blame(miscounted(rows, found))),
            None => Ok(ConvertSummary { rows, bytes, is_counted: found.is_some() }),
        }
    }
}

/// Lets `fill` write a folder beside its place and count its rows there; it gets its name if none is missing.
///
/// # Errors
/// As [`convert`].
#[cfg(any(feature = "kudu", feature = "doris", feature = "carbondata"))]
pub(crate) fn write_counted(
    folder: &Location,
    fill: impl FnOnce(&Location) -> Result<Counted>,
) -> Result<ConvertSummary> {
    let unchecked = pilaster_core::NewFolder::create(folder)?;
    let summary = fill(unchecked.place())?.check(folder)?;
    unchecked.finish()?;
    Ok(summary)
}

/// The error of an output that has another number of rows than were read.
fn miscounted(read: u64, written: u64) -> Error {
    Error::corrupt(format!("{read} rows, as many as were read"), written)
}

/// Counts the rows of what was written, by reading it; `None` where a format cannot be read back.
fn count_rows(source: SourceRef, format: OutputFormat, schema: &SchemaRef) -> Result<Option<u64>> {
    let options = OpenOptions::default();
    let rows = match format {
        OutputFormat::Parquet => ParquetDataset::open(source, &options)?.row_count(),
        OutputFormat::Arrow => ArrowDataset::open_file(source, &options)?.row_count(),
        OutputFormat::Csv => Some(count_records(source, b',')?),
        OutputFormat::Tsv => Some(count_records(source, b'\t')?),
        OutputFormat::Json | OutputFormat::Jsonl => Some(count_objects(&source)?),
        OutputFormat::CFile | OutputFormat::Redfile | OutputFormat::DorisSegment => {
            options.open_source(source)?.row_count()
        }
        OutputFormat::Table
        | OutputFormat::CFileSet
        | OutputFormat::Kudu
        | OutputFormat::Doris
        | OutputFormat::CarbonData => None,
    };
    // Records without fields are empty lines, which readers pass over.
    Ok(rows.filter(|_| !schema.fields().is_empty()))
}

fn count_records(source: SourceRef, delimiter: u8) -> Result<u64> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).from_reader(SourceRead::starting_at(source, 0));
    let mut record = csv::ByteRecord::new();
    let mut rows = 0u64;
    while reader.read_byte_record(&mut record).map_err(|error| Error::corrupt("a csv record", error))? {
        rows = rows.saturating_add(1);
    }
    Ok(rows)
}

#[cfg(all(test, any(feature = "kudu", feature = "doris", feature = "carbondata")))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_gets_its_name_only_if_its_rows_are_all_there() {
        let damage = || Error::corrupt("a footer", "nothing").at("a", 0, "");
        for (case, count, expected) in [
            ("as many", Ok(Some(3)), Ok(true)),
            ("no number", Ok(None), Ok(false)),
            ("fewer", Ok(Some(2)), Err("out: expected 3 rows, as many as were read, found 2")),
            ("unreadable", Err(damage()), Err("a: expected a footer, found nothing")),
        ] {
            let place = tempfile::tempdir().unwrap();
            let target = place.path().join("out");
            let done = write_counted(&(&target).into(), |folder| {
                folder.child("rows").write(b"abc").unwrap();
                assert!(!target.exists(), "{case}");
                Ok(Counted { rows: 3, bytes: 3, found: count? })
            });
            let found = done.map(|summary| summary.is_counted).map_err(|error| error.to_string());
            let found = found.map_err(|text| text.replace(&format!("{}/", place.path().display()), ""));
            assert_eq!(found, expected.map_err(str::to_string), "{case}");
            // Nothing is left behind either.
            let names = fs::read_dir(place.path()).unwrap().count();
            assert_eq!((target.exists(), names), (found.is_ok(), usize::from(found.is_ok())), "{case}");
        }
    }
}
