//! Single CFiles and sets of them.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use pilaster_core::{
    BatchReader, CallOption, Dataset, DatasetRef, Error, ErrorKind, Location, Progress, Result, SourceRef,
};
use pilaster_kudu::cfile::{CFileReader, CFileReaderOptions, CFileWriter};
use pilaster_kudu::cfile_set::{
    CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions, MANIFEST_NAME,
};

use crate::convert::{ConvertSummary, Counted, write_counted};
use crate::open::OpenOptions;
use crate::output::BatchWriter;

/// How CFiles are opened.
pub(super) fn cfile_options(options: &OpenOptions) -> CFileReaderOptions {
    CFileReaderOptions::default()
        .with_verify_checksums(options.verify_checksums())
        .with_limits(options.limits().clone())
}

/// Whether a folder is a set of CFiles with its manifest.
pub(super) fn is_set(folder: &Location) -> bool {
    folder.child(MANIFEST_NAME).is_file().unwrap_or(false)
}

/// Opens one CFile; a schema of one column in the options names and types it.
pub(super) fn open_file(source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
    let mut reader_options = cfile_options(options);
    if let Some(schema) = options.schema() {
        let [field] = schema.fields().as_ref() else {
            let message = format!("a cfile holds one column; the schema given has {}", schema.fields().len());
            return Err(Error::invalid(message).at(source.name(), 0, ""));
        };
        reader_options = reader_options.with_field(Arc::clone(field));
    }
    let opened = match options.kudu().assumed_shape() {
        Some(shape) => CFileReader::recover(source, shape, &reader_options),
        None => match CFileReader::open_with_options(Arc::clone(&source), &reader_options) {
            Err(error) if options.recovers() && error.is_damage() => {
                CFileReader::open_without_header(source, &reader_options).map_err(with_hint)
            }
            opened => opened,
        },
    };
    Ok(Arc::new(opened?))
}

/// Says what helps where a footer is lost.
fn with_hint(error: Error) -> Error {
    match (error.kind(), error.position()) {
        (ErrorKind::Corrupt { expected, found }, Some(at)) => {
            let hint = "without its footer a cfile is salvaged if type and encoding of its column are given";
            Error::corrupt(expected.clone(), format!("{found}; {hint}"))
                .turning_on(CallOption::ColumnShape)
                .at(&at.path, at.offset, at.part)
        }
        _ => error,
    }
}

/// Opens a set of CFiles as a table.
pub(super) fn open_set(folder: &Location, options: &OpenOptions) -> Result<DatasetRef> {
    let options = CFileSetOptions::default()
        .with_verify_checksums(options.verify_checksums())
        .with_recovery(options.recovers())
        .with_limits(options.limits().clone());
    Ok(Arc::new(CFileSet::open(folder, options)?))
}

/// A writer of one column.
pub(super) fn file_writer(
    sink: Box<dyn Write + Send>,
    schema: &Schema,
    options: &CFileSetWriterOptions,
) -> Result<Box<dyn BatchWriter>> {
    let [field] = schema.fields().as_ref() else {
        let count = schema.fields().len();
        let message =
            format!("a cfile holds one column, not {count}: choose one of them, or write a set of cfiles");
        return Err(Error::invalid(message).turning_on(CallOption::Columns));
    };
    Ok(Box::new(CFileOutput(CFileWriter::try_new(sink, field, options.of_file(field))?)))
}

struct CFileOutput(CFileWriter<Box<dyn Write + Send>>);

impl BatchWriter for CFileOutput {
    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.0.write(batch)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        let (mut sink, _) = self.0.finish()?;
        Ok(sink.flush()?)
    }
}

/// Writes a set of CFiles; it is opened again and its rows are counted before it gets its name.
pub(super) fn write_set(
    batches: BatchReader,
    folder: &Location,
    options: &CFileSetWriterOptions,
    progress: &dyn Progress,
) -> Result<ConvertSummary> {
    let name = folder.to_string();
    let in_folder = |error: Error| error.at(&name, 0, "");
    write_counted(folder, |folder| {
        let mut writer = CFileSetWriter::create(folder, batches.schema(), options).map_err(in_folder)?;
        let mut rows = 0u64;
        for batch in batches {
            let batch = batch.map_err(Error::from)?;
            writer.write(&batch).map_err(in_folder)?;
            rows = rows.saturating_add(batch.num_rows() as u64);
            progress.advance(batch.num_rows() as u64);
        }
        let bytes = writer.finish().map_err(in_folder)?.bytes;
        let written = CFileSet::open(folder, CFileSetOptions::default())?;
        let mut found = Some(rows);
        for column in 0..written.schema().fields().len() {
            // Each column is a file; one with another number of rows is enough.
            let count = written.column(column)?.row_count().unwrap_or(0);
            found = found.filter(|found| *found != rows).or(Some(count));
        }
        Ok(Counted { rows, bytes, found })
    })
}
