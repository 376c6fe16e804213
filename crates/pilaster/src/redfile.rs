//! Where Redfile plugs in: how its files are opened, written and repaired.

use std::io::Write;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use pilaster_core::{DatasetRef, Limits, Progress, Result, SharedFile, SourceRef};
pub use pilaster_redfile::metadata::Compression;
pub use pilaster_redfile::{EncodingChoice, RedfileWriterOptions};
use pilaster_redfile::{RedfileReader, RedfileReaderOptions, RedfileWriter, RepairOptions};

use crate::detect::Format;
use crate::formats::Driver;
use crate::open::OpenOptions;
use crate::output::{BatchWriter, OutputFormat, WriteOptions};
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
            return Ok(Arc::new(RedfileReader::recover(source, None, &reader_options)?.0));
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
        let repair_options = RepairOptions { reader: reader_options(options), ..RepairOptions::default() };
        let (_, report) = pilaster_redfile::repair(source, sink, &repair_options, progress)?;
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
    let reader_options = RedfileReaderOptions::default().with_verify_checksums(options.verify_checksums());
    match options.limits() == &Limits::default() {
        true => reader_options,
        false => reader_options.with_limits(options.limits().clone()),
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
