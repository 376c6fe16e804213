//! The formats of this build, each behind a feature, and what the facade asks of one.

use std::ffi::OsStr;
use std::io::Write;

use arrow_schema::SchemaRef;
use pilaster_core::{
    Absence, BatchReader, DatasetRef, Error, Location, Progress, Result, SharedFile, SourceRef,
};

use crate::convert::ConvertSummary;
use crate::detect::Format;
use crate::open::OpenOptions;
use crate::output::{BatchWriter, OutputFormat, WriteOptions};
use crate::repair::RepairReport;
use crate::store::Store;

/// One format as the facade sees it: which files and folders are its own, how they are opened and written.
///
/// A format implements what it has; the rest is never called, because nothing leads there.
pub(crate) trait Driver: Sync {
    /// The name of its feature.
    fn name(&self) -> &'static str;

    /// Whether this kind of file is its own.
    fn reads(&self, format: Format) -> bool;

    /// Whether a file is its own whatever its content, because the options say so.
    fn claims(&self, _options: &OpenOptions) -> bool {
        false
    }

    /// Opens a file that [`Driver::reads`] or [`Driver::claims`] spoke for.
    fn open_file(&self, source: SourceRef, options: &OpenOptions) -> Result<DatasetRef>;

    /// Whether datasets of this kind lie beside others and have no rows of theirs.
    fn is_companion(&self, _kind: &str) -> bool {
        false
    }

    /// What nobody can know of several datasets of this kind ([`pilaster_core::Dataset::format`]) that are read together
    /// without the metadata they belong to.
    fn unknown_together(&self, _kind: &str) -> Option<&'static str> {
        None
    }

    /// What belongs to these files of a folder, which are read as they are, and is not beside them.
    fn missing_beside(&self, _folder: &Location, _files: &[&str]) -> Vec<Absence> {
        Vec::new()
    }

    /// Whether a folder is one table of its own.
    fn is_table(&self, _place: &Location) -> bool {
        false
    }

    /// Opens what [`Driver::is_table`] spoke for.
    fn open_table(&self, place: &Location, _options: &OpenOptions) -> Result<DatasetRef> {
        Err(place.blame(Error::invalid("is a folder of no known table")))
    }

    /// Whether a folder holds tables of its own.
    fn is_store(&self, _folder: &Location) -> bool {
        false
    }

    /// Whether a folder that [`Driver::is_store`] spoke for belongs to this format with all that is in it: the root of a server, the
    /// folder of one table. In others on the way to such a one anything may lie.
    fn is_root(&self, _folder: &Location) -> bool {
        false
    }

    /// Whether what lies directly in a root of this name is a part of it. What is not may be data of its own.
    fn is_part_of_root(&self, _name: &OsStr) -> bool {
        true
    }

    /// Opens folders that [`Driver::is_store`] spoke for, all together.
    fn open_store(&self, _folders: &[Location], _options: &OpenOptions) -> Result<Box<dyn Store>> {
        Err(Error::invalid(format!("{} has no folders of tables", self.name())))
    }

    /// Writes a whole file from a damaged one that [`Driver::reads`] spoke for.
    fn repair(
        &self,
        source: SourceRef,
        _sink: SharedFile,
        _options: &OpenOptions,
        _progress: &dyn Progress,
    ) -> Result<RepairReport> {
        let message = format!(
            "files of {} are not repaired; `salvage` writes what is left of them to a new one",
            self.name()
        );
        Err(Error::unsupported(message).at(source.name(), 0, ""))
    }

    /// Whether it writes this format.
    fn writes(&self, format: OutputFormat) -> bool;

    /// Whether the options say that rows are added to what is there.
    fn adds_to(&self, _format: OutputFormat, _options: &WriteOptions) -> bool {
        false
    }

    /// A writer of a format that is one stream of bytes.
    fn writer(
        &self,
        format: OutputFormat,
        _sink: Box<dyn Write + Send>,
        _schema: SchemaRef,
        _options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        Err(Error::invalid(format!("{format} is a folder: it needs a path to be written to")))
    }

    /// A small file that stands beside a file of a format and says what that has no place for: how its name ends, and what is in it.
    fn beside(
        &self,
        _format: OutputFormat,
        _schema: &SchemaRef,
        _options: &WriteOptions,
    ) -> Result<Option<(&'static str, Vec<u8>)>> {
        Ok(None)
    }

    /// Writes a format that is a folder; it appears complete, or not at all.
    fn write_folder(
        &self,
        format: OutputFormat,
        _batches: BatchReader,
        _folder: &Location,
        _options: &WriteOptions,
        _progress: &dyn Progress,
    ) -> Result<ConvertSummary> {
        Err(Error::invalid(format!("{format} is no folder")))
    }
}

/// Every format of this build.
pub(crate) static DRIVERS: &[&dyn Driver] = &[
    #[cfg(feature = "carbondata")]
    &crate::carbondata::CarbonData,
    #[cfg(feature = "kudu")]
    &crate::kudu::Kudu,
    #[cfg(feature = "redfile")]
    &crate::redfile::Redfile,
    #[cfg(feature = "doris")]
    &crate::doris::Doris,
];

/// What only one format needs to know to be opened.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormatReadOptions {
    #[cfg(feature = "carbondata")]
    pub(crate) carbondata: crate::carbondata::CarbonOptions,
    #[cfg(feature = "doris")]
    pub(crate) doris: crate::doris::DorisOptions,
    #[cfg(feature = "kudu")]
    pub(crate) kudu: crate::kudu::KuduOptions,
    #[cfg(feature = "redfile")]
    pub(crate) redfile: crate::redfile::RedfileOptions,
}

/// What only one format needs to know to be written.
#[derive(Debug, Clone, Default)]
pub(crate) struct FormatWriteOptions {
    #[cfg(feature = "carbondata")]
    pub(crate) carbondata: crate::carbondata::CarbonDataWriterOptions,
    #[cfg(feature = "kudu")]
    pub(crate) cfile_set: crate::kudu::CFileSetWriterOptions,
    #[cfg(feature = "kudu")]
    pub(crate) kudu: crate::kudu::KuduTableWriterOptions,
    #[cfg(feature = "doris")]
    pub(crate) doris: crate::doris::DorisWriterOptions,
    #[cfg(feature = "redfile")]
    pub(crate) redfile: crate::redfile::RedfileWriterOptions,
}

/// The driver of a kind of file.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if it is not in this build.
pub(crate) fn reader_of(format: Format) -> Result<&'static dyn Driver> {
    let found = DRIVERS.iter().find(|driver| driver.reads(format)).copied();
    found.ok_or_else(|| not_built(format.feature()))
}

/// The driver that writes a format.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Unsupported`] if it is not in this build.
pub(crate) fn writer_of(format: OutputFormat) -> Result<&'static dyn Driver> {
    let found = DRIVERS.iter().find(|driver| driver.writes(format)).copied();
    found.ok_or_else(|| not_built(format.feature()))
}

fn not_built(feature: &str) -> Error {
    Error::unsupported(format!("this build has no {feature} support; build it with `--features {feature}`"))
}
