//! Where Apache Kudu plugs in: which files and folders are its own, how they are opened and written.

mod cfiles;
mod tables;

use std::ffi::OsStr;
use std::io::Write;

use arrow_schema::SchemaRef;
use pilaster_core::{BatchReader, DatasetRef, Location, Progress, Result, SourceRef};
pub use pilaster_kudu::cfile::{AssumedShape, CFileWriterOptions, Compression, Encoding, KuduType, Version};
pub use pilaster_kudu::cfile_set::CFileSetWriterOptions;
pub use pilaster_kudu::store::{KuduStore, KuduStoreOptions, TabletEntry, TabletLog};
pub use pilaster_kudu::table_writer::{
    BlockManager, HashPartition, KeyBounds, KuduTableWriterOptions, RangePartition,
};
pub use pilaster_kudu::tablet::LogUse;
pub use pilaster_kudu::wal::LogLine;
pub use tables::{open_servers, parse_as_of};

use crate::convert::ConvertSummary;
use crate::detect::Format;
use crate::formats::Driver;
use crate::open::OpenOptions;
use crate::output::{BatchWriter, OutputFormat, WriteOptions};
use crate::store::Store;

/// Apache Kudu: CFiles, sets of CFiles, and the disks of tablet servers.
#[derive(Debug)]
pub(crate) struct Kudu;

impl Driver for Kudu {
    fn name(&self) -> &'static str {
        "kudu"
    }

    fn reads(&self, format: Format) -> bool {
        format == Format::CFile
    }

    fn claims(&self, options: &OpenOptions) -> bool {
        options.kudu().assumed_shape().is_some()
    }

    fn open_file(&self, source: SourceRef, options: &OpenOptions) -> Result<DatasetRef> {
        cfiles::open_file(source, options)
    }

    fn is_table(&self, place: &Location) -> bool {
        cfiles::is_set(place)
    }

    fn open_table(&self, place: &Location, options: &OpenOptions) -> Result<DatasetRef> {
        cfiles::open_set(place, options)
    }

    fn is_store(&self, folder: &Location) -> bool {
        tables::is_store(folder) && !self.is_table(folder)
    }

    fn is_root(&self, folder: &Location) -> bool {
        tables::is_root(folder)
    }

    fn is_part_of_root(&self, name: &OsStr) -> bool {
        tables::is_part_of_root(name)
    }

    fn open_store(&self, folders: &[Location], options: &OpenOptions) -> Result<Box<dyn Store>> {
        Ok(Box::new(tables::Servers::open(folders, options)?))
    }

    fn writes(&self, format: OutputFormat) -> bool {
        matches!(format, OutputFormat::CFile | OutputFormat::CFileSet | OutputFormat::Kudu)
    }

    fn writer(
        &self,
        _: OutputFormat,
        sink: Box<dyn Write + Send>,
        schema: SchemaRef,
        options: &WriteOptions,
    ) -> Result<Box<dyn BatchWriter>> {
        cfiles::file_writer(sink, &schema, &options.formats.cfile_set)
    }

    fn write_folder(
        &self,
        format: OutputFormat,
        batches: BatchReader,
        folder: &Location,
        options: &WriteOptions,
        progress: &dyn Progress,
    ) -> Result<ConvertSummary> {
        match format {
            OutputFormat::Kudu => tables::write(batches, folder, &options.formats.kudu, progress),
            _ => cfiles::write_set(batches, folder, &options.formats.cfile_set, progress),
        }
    }
}

/// What only Kudu's files need to know to be opened.
#[derive(Debug, Clone, Default)]
pub struct KuduOptions {
    assumed_shape: Option<AssumedShape>,
    store: KuduStoreOptions,
}

impl KuduOptions {
    /// What a CFile whose footer is lost must be taken for.
    #[must_use]
    pub fn with_assumed_shape(mut self, shape: Option<AssumedShape>) -> Self {
        self.assumed_shape = shape;
        self
    }

    /// How servers' folders are read: log, replica, tablet, server key. Checksums, limits and the time come from
    /// [`OpenOptions`].
    #[must_use]
    pub fn with_store(mut self, store: KuduStoreOptions) -> Self {
        self.store = store;
        self
    }

    /// What a CFile whose footer is lost must be taken for.
    pub fn assumed_shape(&self) -> Option<&AssumedShape> {
        self.assumed_shape.as_ref()
    }
}

impl OpenOptions {
    /// What only Kudu's files need to know.
    #[must_use]
    pub fn with_kudu(mut self, kudu: KuduOptions) -> Self {
        self.formats.kudu = kudu;
        self
    }

    /// What only Kudu's files need to know.
    pub fn kudu(&self) -> &KuduOptions {
        &self.formats.kudu
    }
}

impl WriteOptions {
    /// How CFile sets are written.
    #[must_use]
    pub fn with_cfile_set(mut self, options: CFileSetWriterOptions) -> Self {
        self.formats.cfile_set = options;
        self
    }

    /// How tables of Kudu servers are written.
    #[must_use]
    pub fn with_kudu(mut self, options: KuduTableWriterOptions) -> Self {
        self.formats.kudu = options;
        self
    }
}
