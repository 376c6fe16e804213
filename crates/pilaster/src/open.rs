//! From a path to a dataset.

use std::path::Path;
use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::source::open_source;
use pilaster_core::{DatasetRef, Error, ErrorKind, Limits, Result, SourceRef};

use crate::concat::ConcatDataset;
use crate::detect::{Format, detect};
use crate::foreign::arrow_ipc::ArrowDataset;
use crate::foreign::csv::CsvDataset;
use crate::foreign::json_lines::JsonLinesDataset;
use crate::foreign::parquet::ParquetDataset;
use crate::formats::{DRIVERS, Driver, FormatReadOptions, reader_of};
use crate::paths;
use crate::store::{open_store, open_tables};

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
    recovers: bool,
    /// What only one format needs to know; its module fills it in.
    #[allow(dead_code, reason = "a build without formats has nothing to ask it")]
    pub(crate) formats: FormatReadOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            schema: None,
            verify_checksums: true,
            limits: Limits::default(),
            table: None,
            as_of: None,
            recovers: false,
            formats: FormatReadOptions::default(),
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
    /// time, for CarbonData milliseconds since 1970 or a wall-clock time, for Doris a version.
    #[must_use]
    pub fn with_as_of(mut self, as_of: Option<String>) -> Self {
        self.as_of = as_of;
        self
    }

    /// Whether a file whose headers or footers are damaged is opened as far as it can be put together again, and several files
    /// without those for which that is too little. Scans should skip damage; what is missing is in the losses.
    #[must_use]
    pub fn with_recovery(mut self, recovers: bool) -> Self {
        self.recovers = recovers;
        self
    }

    /// Whether damaged files are put together again.
    pub fn recovers(&self) -> bool {
        self.recovers
    }

    /// Which table of a folder that holds several.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// The earlier time, as it was given.
    pub fn as_of(&self) -> Option<&str> {
        self.as_of.as_deref()
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
        if let Some(store) = open_store(paths, self) {
            return store?.table(self.table());
        }
        let mut parts = Vec::new();
        for path in paths {
            for path in paths::expand_glob(path.as_ref())? {
                self.open_into(&path, &mut parts)?;
            }
        }
        // Read by themselves companions are listed; beside the files they belong to they have no rows.
        let is_companion =
            |part: &DatasetRef| DRIVERS.iter().any(|driver| driver.is_companion(part.format()));
        if !parts.iter().flatten().all(is_companion) {
            parts.retain(|part| !part.as_ref().is_ok_and(is_companion));
        }
        match (parts.pop(), parts.is_empty()) {
            (None, _) => Err(Error::invalid("no path was given")),
            (Some(only), true) => only,
            (Some(last), false) => {
                parts.push(last);
                let name = match paths {
                    [only] => only.as_ref().to_string(),
                    several => several.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "),
                };
                Ok(Arc::new(ConcatDataset::recovered(name, parts)?))
            }
        }
    }

    /// Opens one existing path and adds what it holds; with recovery also what is too damaged to be opened.
    fn open_into(&self, path: &str, parts: &mut Vec<Result<DatasetRef>>) -> Result<()> {
        for (name, opened) in self.open_one(path)? {
            match opened {
                Err(error) if !(self.recovers && is_lost(&name, &error)) => return Err(error),
                opened => parts.push(opened),
            }
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
        if let Some(driver) = table_driver(&local.display().to_string()) {
            return Ok(vec![(path.to_string(), driver.open_table(&local.display().to_string(), self))]);
        }
        if let Some(store) = open_store(&[path], self) {
            return Ok(open_tables(path, store?.as_ref(), self));
        }
        let files = paths::files_in(local)?;
        Ok(files.into_iter().map(|file| (file.clone(), self.open_file(&file))).collect())
    }

    /// A store has no folders, so an address that is no file may still be a table.
    fn open_address(&self, address: &str) -> Result<DatasetRef> {
        self.open_file(address).or_else(|error| match table_driver(address) {
            Some(driver) => driver.open_table(address, self),
            None => Err(error),
        })
    }

    fn open_file(&self, path: &str) -> Result<DatasetRef> {
        self.open_source(open_source(path)?)
    }

    /// Opens a source: a file in memory, a part of another file.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open_source(&self, source: SourceRef) -> Result<DatasetRef> {
        if let Some(driver) = DRIVERS.iter().find(|driver| driver.claims(self)) {
            return driver.open_file(source, self);
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
            Format::CFile
            | Format::CarbonData
            | Format::DorisSegment
            | Format::DorisIndex
            | Format::Redfile => {
                let driver = reader_of(format).map_err(|error| error.at(source.name(), 0, ""))?;
                driver.open_file(source, self)?
            }
        })
    }
}

/// Whether an error says that the bytes of a file are damaged, or so much so that nobody can tell what they were.
fn is_lost(path: &str, error: &Error) -> bool {
    let is_nothing = || open_source(path).is_ok_and(|source| detect(source.as_ref()).is_err());
    error.is_damage() || matches!(error.kind(), ErrorKind::InvalidInput(_)) && is_nothing()
}

/// The format that has one table at this path or address, if any.
fn table_driver(path: &str) -> Option<&'static dyn Driver> {
    DRIVERS.iter().find(|driver| driver.is_table(path)).copied()
}

/// Whether a folder is one table, and not a folder of files.
pub(crate) fn is_table_folder(folder: &Path) -> bool {
    folder.is_dir() && table_driver(&folder.display().to_string()).is_some()
}
