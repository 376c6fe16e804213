//! From a path to a dataset.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::source::open_source;
use pilaster_core::{DatasetRef, Error, Limits, Result, SourceRef};

use crate::concat::ConcatDataset;
use crate::detect::{Format, detect};
use crate::foreign::arrow_ipc::ArrowDataset;
use crate::foreign::csv::CsvDataset;
use crate::foreign::json_lines::JsonLinesDataset;
use crate::foreign::parquet::ParquetDataset;
#[cfg(feature = "kudu")]
use crate::kudu::KuduOptions;
use crate::paths;

/// Opens a file, a folder, a glob or an address, whatever its format.
///
/// # Errors
/// If nothing is there, if it is of no known format, or if its headers cannot be read.
pub fn open(path: &str) -> Result<DatasetRef> {
    OpenOptions::default().open(path)
}

/// How to open.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    schema: Option<SchemaRef>,
    verify_checksums: bool,
    limits: Limits,
    table: Option<String>,
    as_of: Option<String>,
    #[cfg(feature = "kudu")]
    kudu: KuduOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            schema: None,
            verify_checksums: true,
            limits: Limits::default(),
            table: None,
            as_of: None,
            #[cfg(feature = "kudu")]
            kudu: KuduOptions::default(),
        }
    }
}

impl OpenOptions {
    /// Names and types for files that carry none: a bare CFile, CSV, JSON lines.
    #[must_use]
    pub fn with_schema(mut self, schema: Option<SchemaRef>) -> Self {
        self.schema = schema;
        self
    }

    /// Whether scans compare stored checksums; they do unless told otherwise.
    #[must_use]
    pub fn with_verify_checksums(mut self, verify_checksums: bool) -> Self {
        self.verify_checksums = verify_checksums;
        self
    }

    /// How much a file may make a reader allocate.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which table of a folder that holds several.
    #[must_use]
    pub fn with_table(mut self, table: Option<String>) -> Self {
        self.table = table;
        self
    }

    /// Rows as they were at an earlier time, in the words of the format: for Kudu a hybrid timestamp or a wall-clock
    /// time.
    #[must_use]
    pub fn with_as_of(mut self, as_of: Option<String>) -> Self {
        self.as_of = as_of;
        self
    }

    /// What only Kudu's files need to know.
    #[cfg(feature = "kudu")]
    #[must_use]
    pub fn with_kudu(mut self, kudu: KuduOptions) -> Self {
        self.kudu = kudu;
        self
    }

    /// Which table of a folder that holds several.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// The earlier time, as it was given.
    pub fn as_of(&self) -> Option<&str> {
        self.as_of.as_deref()
    }

    /// What only Kudu's files need to know.
    #[cfg(feature = "kudu")]
    pub fn kudu(&self) -> &KuduOptions {
        &self.kudu
    }

    /// The schema for files that carry none.
    pub fn schema(&self) -> Option<&SchemaRef> {
        self.schema.as_ref()
    }

    /// Whether scans compare stored checksums.
    pub fn verify_checksums(&self) -> bool {
        self.verify_checksums
    }

    /// How much a file may make a reader allocate.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Opens a file, a folder, a glob or an address.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(&self, path: &str) -> Result<DatasetRef> {
        self.open_all(&[path])
    }

    /// Opens several paths as one dataset: their rows follow each other in the order given, those of a folder or a
    /// glob in the order of their names.
    ///
    /// # Errors
    /// As [`open`], and if the files do not have the same columns.
    pub fn open_all<S: AsRef<str>>(&self, paths: &[S]) -> Result<DatasetRef> {
        #[cfg(feature = "kudu")]
        if let Some(store) = crate::kudu::store_of(paths, self) {
            return Ok(Arc::new(store?.table(self.table())?));
        }
        let mut parts = Vec::new();
        for path in paths {
            for path in paths::expand_glob(path.as_ref())? {
                self.open_into(&path, &mut parts)?;
            }
        }
        match (parts.pop(), parts.is_empty()) {
            (None, _) => Err(Error::invalid("no path was given")),
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                parts.push(last);
                let name = match paths {
                    [only] => only.as_ref().to_string(),
                    several => several.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "),
                };
                Ok(Arc::new(ConcatDataset::try_new(name, parts)?))
            }
        }
    }

    /// Opens one existing path and adds what it holds.
    fn open_into(&self, path: &str, parts: &mut Vec<DatasetRef>) -> Result<()> {
        for (_, opened) in self.open_one(path)? {
            parts.push(opened?);
        }
        Ok(())
    }

    /// Opens what an existing path holds, each file by itself.
    pub(crate) fn open_one(&self, path: &str) -> Result<Vec<(String, Result<DatasetRef>)>> {
        let local = paths::local(path);
        if paths::is_address(path) {
            return Ok(vec![(path.to_string(), self.open_address(path))]);
        }
        if !local.is_dir() {
            return Ok(vec![(path.to_string(), self.open_file(path))]);
        }
        if self.is_table_folder(local) {
            return Ok(vec![(path.to_string(), self.open_table_folder(local))]);
        }
        #[cfg(feature = "kudu")]
        if let Some(store) = crate::kudu::store_of(&[path], self) {
            return crate::kudu::open_tables(path, &store?, self);
        }
        let files = paths::files_in(local)?;
        Ok(files.into_iter().map(|file| (file.clone(), self.open_file(&file))).collect())
    }

    /// A store has no folders, so an address that is no file may still be a table.
    fn open_address(&self, address: &str) -> Result<DatasetRef> {
        let opened = self.open_file(address);
        #[cfg(feature = "kudu")]
        if opened.is_err() && crate::kudu::is_cfile_set_address(address) {
            return crate::kudu::open_cfile_set(address, self);
        }
        opened
    }

    /// Whether a folder is one table, and not a folder of files.
    pub(crate) fn is_table_folder(&self, folder: &Path) -> bool {
        #[cfg(feature = "kudu")]
        if crate::kudu::is_cfile_set(folder) {
            return true;
        }
        let _ = folder;
        false
    }

    fn open_table_folder(&self, folder: &Path) -> Result<DatasetRef> {
        #[cfg(feature = "kudu")]
        if crate::kudu::is_cfile_set(folder) {
            return crate::kudu::open_cfile_set(&folder.display().to_string(), self);
        }
        Err(Error::invalid("is a folder of no known table").at(&folder.display().to_string(), 0, ""))
    }

    fn open_file(&self, path: &str) -> Result<DatasetRef> {
        self.open_source(open_source(path)?)
    }

    /// Opens a source: a file in memory, a part of another file.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open_source(&self, source: SourceRef) -> Result<DatasetRef> {
        #[cfg(feature = "kudu")]
        if self.kudu.assumed_shape().is_some() {
            return crate::kudu::open_cfile(source, self);
        }
        let format = detect(source.as_ref())?;
        if let Some(as_of) = &self.as_of {
            let message = format!("is one {format} file, which knows no earlier state: {as_of}");
            return Err(Error::invalid(message).at(source.name(), 0, ""));
        }
        if let Some(table) = &self.table {
            let message = format!("is one {format} file: there is no table \"{table}\" to choose in it");
            return Err(Error::invalid(message).at(source.name(), 0, ""));
        }
        Ok(match format {
            Format::Parquet => Arc::new(ParquetDataset::open(source, self)?),
            Format::ArrowFile => Arc::new(ArrowDataset::open_file(source, self)?),
            Format::ArrowStream => Arc::new(ArrowDataset::open_stream(source, self)?),
            Format::Csv => Arc::new(CsvDataset::open(source, b',', self)?),
            Format::Tsv => Arc::new(CsvDataset::open(source, b'\t', self)?),
            Format::JsonLines => Arc::new(JsonLinesDataset::open(source, self)?),
            #[cfg(feature = "kudu")]
            Format::CFile => crate::kudu::open_cfile(source, self)?,
            #[cfg(not(feature = "kudu"))]
            Format::CFile => {
                let needed = "this build has no kudu support; build it with `--features kudu`";
                return Err(Error::unsupported(needed).at(source.name(), 0, ""));
            }
        })
    }
}
