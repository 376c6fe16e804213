//! Where Apache CarbonData plugs in: which files and folders are its own, and how they are opened.

mod foreign;
mod tables;
mod writing;

use std::sync::Arc;

pub use pilaster_carbondata::file::{Calendar, CarbonWriterOptions, Compressor};
use pilaster_carbondata::file::{CarbonFileOptions, CarbonFileReader};
use pilaster_carbondata::table::has_metadata;
pub use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriterOptions, CompactionSummary, OutsideFolders,
    RebuiltFile, SegmentStatus, TableRepair,
};
use pilaster_core::{BatchReader, CallOption, DatasetRef, Error, Location, Progress, Result, SourceRef};
pub use writing::{CarbonDataWriterOptions, compact_table};

use crate::convert::ConvertSummary;
use crate::detect::Format;
use crate::formats::Driver;
use crate::open::OpenOptions;
use crate::output::{OutputFormat, WriteOptions};
use crate::paths;
use crate::store::Store;

/// Apache CarbonData: data files, folders of them, tables and stores.
#[derive(Debug)]
pub(crate) struct CarbonData;

impl Driver for CarbonData {
    fn name(&self) -> &'static str {
        "carbondata"
    }

    fn reads(&self, format: Format) -> bool {
        format == Format::CarbonData
    }

    fn open_file(&self, source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
        let file_options = CarbonFileOptions::default()
            .with_limits(options.limits().clone())
            .with_calendar(options.carbondata().calendar);
        let opened = CarbonFileReader::open_with_options(Arc::clone(&source), &file_options);
        Ok(Arc::new(match opened {
            Err(error) if options.recovers() && error.is_damage() => {
                CarbonFileReader::recover(source, &file_options)?
            }
            opened => opened?,
        }))
    }

    /// Data files without a table's metadata, as the SDK writes them; a table with its metadata is a store of one.
    fn is_table(&self, folder: &Location) -> bool {
        let is_table = || -> Result<bool> {
            Ok(folder.is_folder()? && !has_metadata(folder)? && pilaster_carbondata::table::is_table(folder)?)
        };
        // What cannot be looked at is opened as a folder of files, and that says why it cannot be.
        is_table().unwrap_or(false)
    }

    fn open_table(&self, place: &Location, options: &OpenOptions) -> Result<DatasetRef> {
        Ok(Arc::new(CarbonTable::open(place, &options.carbon_table()?)?))
    }

    fn is_store(&self, folder: &Location) -> bool {
        tables::is_store(folder)
    }

    fn is_root(&self, folder: &Location) -> bool {
        has_metadata(folder).unwrap_or(false)
    }

    fn open_store(&self, folders: &[Location], options: &OpenOptions) -> Result<Box<dyn Store>> {
        Ok(Box::new(tables::Tables::find(folders, options)?))
    }

    fn writes(&self, format: OutputFormat) -> bool {
        format == OutputFormat::CarbonData
    }

    fn adds_to(&self, format: OutputFormat, options: &WriteOptions) -> bool {
        self.writes(format) && options.formats.carbondata.appends()
    }

    fn write_folder(
        &self,
        _format: OutputFormat,
        batches: BatchReader,
        folder: &Location,
        options: &WriteOptions,
        progress: &dyn Progress,
    ) -> Result<ConvertSummary> {
        writing::write_table(batches, folder, &options.formats.carbondata, progress)
    }
}

/// What only CarbonData's tables need to know to be opened.
#[derive(Debug, Clone, Default)]
pub struct CarbonOptions {
    segments: Option<Vec<String>>,
    outside: OutsideFolders,
    calendar: Calendar,
}

impl CarbonOptions {
    /// Only the rows of these segments.
    #[must_use]
    pub fn with_segments(mut self, segments: Option<Vec<String>>) -> Self {
        self.segments = segments;
        self
    }

    /// Which days and times numbers before 1582-10-15 are given as: those that CarbonData shows, unless told otherwise.
    #[must_use]
    pub fn with_calendar(mut self, calendar: Calendar) -> Self {
        self.calendar = calendar;
        self
    }

    /// Where folders may lie that a table names and that are not its own: segments that were added by their path.
    #[must_use]
    pub fn with_outside(mut self, outside: OutsideFolders) -> Self {
        self.outside = outside;
        self
    }
}

impl OpenOptions {
    /// What only CarbonData's tables need to know.
    #[must_use]
    pub fn with_carbondata(mut self, carbondata: CarbonOptions) -> Self {
        self.formats.carbondata = carbondata;
        self
    }

    /// What only CarbonData's tables need to know.
    pub fn carbondata(&self) -> &CarbonOptions {
        &self.formats.carbondata
    }

    /// How tables are opened.
    fn carbon_table(&self) -> Result<CarbonTableOptions> {
        Ok(CarbonTableOptions::default()
            .with_limits(self.limits().clone())
            .with_segments(self.carbondata().segments.clone())
            .with_as_of(self.as_of().map(parse_as_of).transpose()?)
            .with_outside(self.carbondata().outside.clone())
            .with_calendar(self.carbondata().calendar)
            .with_recovery(self.recovers()))
    }
}

/// Writes the metadata and index files of the table at `path` that are lost or damaged, from the data and from each other. A
/// damaged file stays beside the new one; data files are not touched.
///
/// # Errors
/// If the path is no table with metadata, if so much is lost that it cannot be opened, or if a file cannot be written.
pub fn repair_table(path: &str, options: &OpenOptions) -> Result<TableRepair> {
    let folder = paths::place(path)?;
    if !has_metadata(&folder)? {
        return Err(Error::invalid("is no folder of a CarbonData table with metadata").at(path, 0, ""));
    }
    pilaster_carbondata::table::repair(folder, &options.carbon_table()?)
}

/// Milliseconds since 1970, as a number; or a wall-clock time, UTC unless it names a zone.
///
/// # Errors
/// [`pilaster_core::ErrorKind::InvalidInput`] if it is neither.
pub fn parse_as_of(text: &str) -> Result<i64> {
    if let Ok(milliseconds) = text.parse::<i64>() {
        return Ok(milliseconds);
    }
    let nanos = arrow_cast::parse::string_to_timestamp_nanos(text).map_err(|_| {
        let expected = "milliseconds since 1970 or a time such as 2024-05-31T12:00:00";
        Error::invalid(format!("a point in time is {expected}, not \"{text}\"")).turning_on(CallOption::AsOf)
    })?;
    Ok(nanos.div_euclid(1_000_000))
}

impl WriteOptions {
    /// How CarbonData tables are written.
    #[must_use]
    pub fn with_carbondata(mut self, options: CarbonDataWriterOptions) -> Self {
        self.formats.carbondata = options;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_a_number_or_a_clock() {
        assert_eq!(parse_as_of("1794732568199").unwrap(), 1_794_732_568_199);
        assert_eq!(parse_as_of("1970-01-01T00:00:01.005").unwrap(), 1005);
        assert_eq!(parse_as_of("1970-01-01T02:00:00+02:00").unwrap(), 0);
        for text in ["yesterday", ""] {
            assert!(parse_as_of(text).is_err(), "{text}");
        }
    }
}
