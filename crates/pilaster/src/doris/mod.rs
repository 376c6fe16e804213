//! Where Apache Doris plugs in: which files and folders are its own and how they are opened.

mod choice;
mod opening;
mod tablets;
mod writing;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use pilaster_core::{
    Absence, BatchReader, CallOption, DatasetRef, Error, Limits, Location, Progress, Result, SharedFile,
    SourceRef,
};
use pilaster_doris::index_file::IndexFileReader;
pub use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, Release, SegmentWriteOptions, StorageFormat,
};
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions};
use pilaster_doris::tablet::is_segment_of_tablet;
pub use pilaster_doris::tablet::{TabletLayout, TabletWriteOptions};
pub use pilaster_doris::{KeysType, SchemaColumn, TableModel, TabletSchema};
pub use writing::DorisWriterOptions;

use crate::convert::ConvertSummary;
use crate::detect::{Format, is_doris_index};
use crate::formats::Driver;
use crate::open::OpenOptions;
use crate::output::{BatchWriter, OutputFormat, WriteOptions};
use crate::paths;
use crate::repair::RepairReport;
use crate::store::Store;

/// What `format()` says of a segment.
const SEGMENT_KIND: &str = "doris segment";
/// What `format()` says of an index file.
const INDEX_KIND: &str = "doris index file";

/// How the name of a schema file beside a segment ends.
pub(crate) const SCHEMA_ENDING: &str = "schema.json";

/// The schema beside a segment on a disk, if there is one.
fn schema_beside(segment: &str, limits: &Limits) -> Result<Option<Arc<TabletSchema>>> {
    if paths::is_address(segment) {
        return Ok(None);
    }
    let place = Location::local(segment).with_extension(SCHEMA_ENDING);
    if place.entry()?.is_none() {
        return Ok(None);
    }
    let json = place.read("metadata_bytes", limits.metadata_bytes)?;
    TabletSchema::parse_json(&json).map(|schema| Some(Arc::new(schema))).map_err(|error| place.blame(error))
}

/// Apache Doris: segments, and folders of tablets.
#[derive(Debug)]
pub(crate) struct Doris;

impl Driver for Doris {
    fn name(&self) -> &'static str {
        "doris"
    }

    fn reads(&self, format: Format) -> bool {
        matches!(format, Format::DorisSegment | Format::DorisIndex)
    }

    /// A segment is known by its last bytes. Where they are lost, a tablet's schema says what it must have been.
    fn claims(&self, options: &OpenOptions) -> bool {
        options.recovers() && options.doris().schema.is_some()
    }

    fn open_file(&self, source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
        if is_doris_index(source.name()) {
            return Ok(Arc::new(IndexFileReader::open(source, options.limits())?));
        }
        let mut doris = options.doris().clone();
        if doris.schema.is_none() && options.schema().is_none() {
            doris.schema = schema_beside(source.name(), options.limits())?;
        }
        if options.schema().is_some() && doris.schema.is_none() {
            let message = "a Doris segment is joined to its schema by unique ids: give it as a tablet schema, with \"unique_id\" for each column";
            return Err(Error::invalid(message).at(source.name(), 0, ""));
        }
        let mut reader_options = SegmentReaderOptions::default()
            .with_schema(doris.schema.clone())
            .with_hidden(doris.hidden)
            .with_verify_checksums(options.verify_checksums())
            .with_recovery(options.recovers())
            .with_lost_cells(options.lost_cells())
            .with_limits(options.limits().clone());
        for (column, path) in &doris.variant_paths {
            reader_options = reader_options.with_variant_path(column, path);
        }
        Ok(Arc::new(SegmentReader::open_with_options(source, &reader_options)?))
    }

    fn repair(
        &self,
        source: SourceRef,
        sink: SharedFile,
        options: &OpenOptions,
        _progress: &dyn Progress,
    ) -> Result<RepairReport> {
        let name = source.name().to_string();
        if is_doris_index(&name) {
            let message = "index files are not repaired: rows are complete without them, and Doris builds them anew (BUILD INDEX)";
            return Err(Error::invalid(message).at(&name, 0, ""));
        }
        let schema = options.doris().schema.as_ref().ok_or_else(|| {
            Error::invalid("a segment is repaired with the schema of its tablet")
                .turning_on(CallOption::Schema)
                .at(&name, 0, "")
        })?;
        let writing = SegmentWriteOptions::default();
        let reading = SegmentReaderOptions::default()
            .with_lost_cells(options.lost_cells())
            .with_limits(options.limits().clone());
        let (_, report) = pilaster_doris::segment::repair(source, sink, schema, &writing, &reading)?;
        Ok(RepairReport {
            source: name,
            rows: report.rows,
            bytes: report.bytes,
            is_complete: report.losses.is_empty(),
            losses: report.losses,
        })
    }

    fn is_companion(&self, kind: &str) -> bool {
        kind == INDEX_KIND
    }

    /// What tells which of a tablet's segments are current, which rows of theirs are replaced and which are deleted.
    fn missing_beside(&self, folder: &Location, files: &[&str]) -> Vec<Absence> {
        let is_segment = |file: &&&str| {
            let name = Path::new(file).file_name().and_then(|name| name.to_str());
            name.is_some_and(is_segment_of_tablet)
        };
        let segments = files.iter().filter(is_segment).count();
        let what = format!(
            "the .hdr file of {segments} segments is not here: rows that newer ones have replaced or deleted may be among theirs"
        );
        let absence = Absence { path: folder.to_string().into(), what, rows: None };
        if segments > 0 { vec![absence] } else { Vec::new() }
    }

    fn unknown_together(&self, kind: &str) -> Option<&'static str> {
        (kind == SEGMENT_KIND).then_some(
            "segments without the metadata of their tablet: which of them are current and which rows newer ones have replaced or deleted cannot be known; all rows of all segments are given",
        )
    }

    fn is_store(&self, folder: &Location) -> bool {
        tablets::is_store(folder)
    }

    fn is_root(&self, folder: &Location) -> bool {
        tablets::is_root(folder)
    }

    fn open_store(&self, folders: &[Location], options: &OpenOptions) -> Result<Box<dyn Store>> {
        Ok(Box::new(tablets::Tablets::open(folders, options)?))
    }

    fn writes(&self, format: OutputFormat) -> bool {
        matches!(format, OutputFormat::Doris | OutputFormat::DorisSegment)
    }

    fn writer(
        &self,
        _format: OutputFormat,
        sink: Box<dyn Write + Send>,
        schema: SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        writing::segment_writer(sink, &schema, &options.formats.doris)
    }

    fn beside(
        &self,
        format: OutputFormat,
        schema: &SchemaRef,
        options: &WriteOptions,
    ) -> Result<Option<(&'static str, Vec<u8>)>> {
        if format != OutputFormat::DorisSegment {
            return Ok(None);
        }
        Ok(Some((SCHEMA_ENDING, options.formats.doris.schema(schema)?.to_json()?)))
    }

    fn write_folder(
        &self,
        _format: OutputFormat,
        batches: BatchReader,
        folder: &Location,
        options: &WriteOptions,
        progress: &dyn Progress,
    ) -> Result<ConvertSummary> {
        writing::write_tablet(batches, folder, &options.formats.doris, progress)
    }
}

/// What only Doris's files need to know to be opened.
#[derive(Debug, Clone, Default)]
pub struct DorisOptions {
    schema: Option<Arc<TabletSchema>>,
    hidden: bool,
    variant_paths: Vec<(String, String)>,
    tablet: Option<String>,
}

impl DorisOptions {
    /// Names, order and visibility of columns, which a segment does not know.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<Arc<TabletSchema>>) -> Self {
        self.schema = schema;
        self
    }

    /// Whether columns that queries do not see are given too.
    #[must_use]
    pub fn with_hidden(mut self, hidden: bool) -> Self {
        self.hidden = hidden;
        self
    }

    /// Read only the tablet with this id.
    #[must_use]
    pub fn with_tablet(mut self, tablet: Option<String>) -> Self {
        self.tablet = tablet;
        self
    }

    /// Adds a column `column['path']` with one path of a VARIANT column.
    #[must_use]
    pub fn with_variant_path(mut self, column: impl Into<String>, path: impl Into<String>) -> Self {
        self.variant_paths.push((column.into(), path.into()));
        self
    }
}

/// Whether a schema file is one of Doris, whose columns have unique ids, and not one of ours.
///
/// # Errors
/// If the file cannot be read.
pub fn is_tablet_schema(path: impl AsRef<Path>) -> Result<bool> {
    let file = Location::local(path.as_ref());
    let json = file.read("metadata_bytes", Limits::default().metadata_bytes)?;
    let value = serde_json::from_slice::<serde_json::Value>(&json).unwrap_or_default();
    Ok(value.pointer("/columns/0/unique_id").is_some())
}

/// Reads a tablet schema in its JSON form from a file.
///
/// # Errors
/// If the file cannot be read or is no such schema.
pub fn read_schema(path: impl AsRef<Path>) -> Result<Arc<TabletSchema>> {
    let file = Location::local(path.as_ref());
    let json = file.read("metadata_bytes", Limits::default().metadata_bytes)?;
    TabletSchema::parse_json(&json).map(Arc::new).map_err(|error| file.blame(error))
}

impl OpenOptions {
    /// What only Doris's files need to know.
    #[must_use]
    pub fn with_doris(mut self, doris: DorisOptions) -> Self {
        self.formats.doris = doris;
        self
    }

    /// What only Doris's files need to know.
    pub fn doris(&self) -> &DorisOptions {
        &self.formats.doris
    }
}

impl WriteOptions {
    /// How segments and tablets of Doris are written.
    #[must_use]
    pub fn with_doris(mut self, options: DorisWriterOptions) -> Self {
        self.formats.doris = options;
        self
    }
}
