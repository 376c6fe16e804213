//! From a path to a dataset.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::storage::EntryKind;
use pilaster_core::{
    Absence, CallOption, DatasetRef, Error, ErrorKind, Finding, Limits, Location, LostCells, Result,
    SourceRef,
};

use crate::concat::ConcatDataset;
use crate::detect::{Format, detect};
use crate::folder::{DataFile, Folder, note, nothing_to_read};
use crate::foreign::arrow_ipc::ArrowDataset;
use crate::foreign::csv::CsvDataset;
use crate::foreign::json_lines::JsonLinesDataset;
use crate::foreign::parquet::ParquetDataset;
use crate::formats::{DRIVERS, Driver, FormatReadOptions, reader_of};
use crate::hive;
use crate::migrate::missing_parts;
use crate::paths;
use crate::store::{open_tables, store_at};
use crate::widened::WidenedDataset;

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
    accepts_partial: bool,
    lost_cells: LostCells,
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
            accepts_partial: false,
            lost_cells: LostCells::DropRow,
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

    /// Whether a table is opened of which parts are not here ([`pilaster_core::Dataset::absences`] names them). Otherwise that is an
    /// error, so that nobody takes the rest for the whole.
    #[must_use]
    pub fn with_partial(mut self, accepts_partial: bool) -> Self {
        self.accepts_partial = accepts_partial;
        self
    }

    /// The dataset, if it is complete or need not be.
    pub(crate) fn check_complete(&self, dataset: DatasetRef) -> Result<DatasetRef> {
        if self.accepts_partial || self.recovers {
            return Ok(dataset);
        }
        let absences = dataset.absences();
        let Some(first) = absences.first() else { return Ok(dataset) };
        let more = match absences.len().saturating_sub(1) {
            0 => String::new(),
            more => format!(", nor are {more} other parts"),
        };
        let error = Error::incomplete(format!("{}{more}", first.what));
        Err(error.turning_on(CallOption::Partial).at(&first.path, 0, ""))
    }

    /// Whether damaged files are put together again.
    pub fn recovers(&self) -> bool {
        self.recovers
    }

    /// What a scan that goes on over damage, a salvage or a repair does with a row of which some cells are lost, as far as the format
    /// can give null for them.
    #[must_use]
    pub fn with_lost_cells(mut self, lost_cells: LostCells) -> Self {
        self.lost_cells = lost_cells;
        self
    }

    /// What is done with a row of which some cells are lost.
    pub fn lost_cells(&self) -> LostCells {
        self.lost_cells
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
    /// As [`open`], and if the files do not have the same columns; [`ErrorKind::Incomplete`] if parts of a table are not here
    /// ([`OpenOptions::with_partial`]).
    pub fn open_all<S: AsRef<str>>(&self, paths: &[S]) -> Result<DatasetRef> {
        self.check_complete(self.open_together(paths)?)
    }

    fn open_together<S: AsRef<str>>(&self, paths: &[S]) -> Result<DatasetRef> {
        let name = match paths {
            [only] => only.as_ref().to_string(),
            several => several.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(" "),
        };
        if let Some(store) = store_at(&paths::places(paths)?, self) {
            return store?.table(self.table());
        }
        let mut places = Vec::new();
        for path in paths {
            places.extend(paths::expand_glob(path.as_ref())?);
        }
        self.open_places(name, &places)
    }

    /// Opens a file or a folder, wherever it lies.
    ///
    /// # Errors
    /// As [`OpenOptions::open_all`].
    pub fn open_location(&self, place: impl Into<Location>) -> Result<DatasetRef> {
        let place = place.into();
        let opened = match store_at(std::slice::from_ref(&place), self) {
            Some(store) => store?.table(self.table()),
            None => self.open_places(place.to_string(), std::slice::from_ref(&place)),
        };
        self.check_complete(opened?)
    }

    /// Opens places that are no store together.
    fn open_places(&self, name: String, places: &[Location]) -> Result<DatasetRef> {
        let mut parts = Vec::new();
        let mut beside = Beside::default();
        for place in places {
            self.open_into(place, &mut parts, &mut beside)?;
        }
        join(name, parts, beside)
    }

    /// Opens one place and adds what it holds; with recovery also what is too damaged to be opened.
    fn open_into(
        &self,
        place: &Location,
        parts: &mut Vec<Result<DatasetRef>>,
        beside: &mut Beside,
    ) -> Result<()> {
        let Opened { parts: opened, beside: found } = self.open_one(place)?;
        beside.passed_over.extend(found.passed_over);
        beside.absences.extend(found.absences);
        for (name, opened) in opened {
            match opened {
                Err(error) if !(self.recovers && is_lost(&name, &error)) => return Err(error),
                opened => parts.push(opened),
            }
        }
        Ok(())
    }

    /// Opens what a place holds, each file by itself.
    pub(crate) fn open_one(&self, place: &Location) -> Result<Opened> {
        let kind = match paths::kind(place) {
            // Not every server can list what it has: then opening the place as a file tells what is wrong with it.
            Err(_) if place.local_path().is_none() => None,
            kind => kind?,
        };
        if kind != Some(EntryKind::Folder) {
            return Ok(Opened::only(place, self.open_file(place)));
        }
        if let Some(driver) = table_driver(place) {
            let table = driver.open_table(place, self);
            return Ok(Opened::only(place, table.map(WidenedDataset::around)));
        }
        if let Some(store) = store_at(std::slice::from_ref(place), self) {
            let parts = open_tables(place, store?.as_ref(), self);
            return Ok(Opened { parts, beside: Beside::default() });
        }
        if let Some(hive::Opened { files, passed_over }) = hive::open(place, self)? {
            let absences = missing_parts(place, &self.limits)?;
            return Ok(Opened { parts: files, beside: Beside { passed_over, absences } });
        }
        self.open_files(place)
    }

    /// Opens the files that lie directly in a folder.
    fn open_files(&self, folder: &Location) -> Result<Opened> {
        let mut inside = Folder::look(folder)?;
        let absences = self.missing_in(folder, &inside.names())?;
        if inside.files.is_empty() {
            return Err(match absences.first() {
                Some(absence) => Error::incomplete(&absence.what).at(&absence.path, 0, ""),
                None => nothing_to_read(folder, &inside),
            });
        }
        let files = std::mem::take(&mut inside.files);
        let parts = files.into_iter().map(|DataFile { name, place, content }| {
            let opened = match content {
                Ok((source, format)) => self.open_detected(source, format),
                Err(error) => self.open_claimed(&place, error),
            };
            (name, opened)
        });
        let parts = parts.collect();
        let mut passed_over = inside.passed_over;
        let unread = inside.folders.iter().map(|path| {
            note(path, "lies beside files and is not read with them: name it, or its files with a glob")
        });
        passed_over.extend(unread);
        Ok(Opened { parts, beside: Beside { passed_over, absences } })
    }

    /// What belongs to the files that lie directly in a folder and is not here.
    pub(crate) fn missing_in(&self, folder: &Location, files: &[&str]) -> Result<Vec<Absence>> {
        let of_formats = DRIVERS.iter().flat_map(|driver| driver.missing_beside(folder, files));
        Ok(missing_parts(folder, &self.limits)?.into_iter().chain(of_formats).collect())
    }

    /// Opens a file of no known format if the options say what it is.
    pub(crate) fn open_claimed(&self, file: &Location, error: Error) -> Result<DatasetRef> {
        match DRIVERS.iter().any(|driver| driver.claims(self)) {
            true => self.open_source(file.open()?),
            false => Err(error),
        }
    }

    fn open_file(&self, place: &Location) -> Result<DatasetRef> {
        let opened = place.open().and_then(|source| self.open_source(source));
        // A server that cannot list its folders may still have a table in one.
        opened.or_else(|error| match table_driver(place).filter(|_| place.local_path().is_none()) {
            Some(driver) => driver.open_table(place, self).map(WidenedDataset::around),
            None => Err(error),
        })
    }

    /// Opens a source: a file in memory, a part of another file.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open_source(&self, source: SourceRef) -> Result<DatasetRef> {
        if let Some(driver) = DRIVERS.iter().find(|driver| driver.claims(self)) {
            return driver.open_file(source, self).map(WidenedDataset::around);
        }
        let format = detect(source.as_ref())?;
        self.open_detected(source, format)
    }

    /// Opens a source of a format that was found out, in the types in which rows leave.
    pub(crate) fn open_detected(&self, source: SourceRef, format: Format) -> Result<DatasetRef> {
        self.open_as_it_is(source, format).map(WidenedDataset::around)
    }

    fn open_as_it_is(&self, source: SourceRef, format: Format) -> Result<DatasetRef> {
        if let Some(driver) = DRIVERS.iter().find(|driver| driver.claims(self)) {
            return driver.open_file(source, self);
        }
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

/// What a path holds.
pub(crate) struct Opened {
    /// Each file or table with its name, or why it could not be opened.
    pub(crate) parts: Vec<(String, Result<DatasetRef>)>,
    pub(crate) beside: Beside,
}

/// What a folder tells of its files beyond what is in them.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    /// What lies there and is not read.
    pub(crate) passed_over: Vec<Finding>,
    /// What should lie there and does not.
    pub(crate) absences: Vec<Absence>,
}

impl Opened {
    fn only(place: &Location, opened: Result<DatasetRef>) -> Self {
        Self { parts: vec![(place.to_string(), opened)], beside: Beside::default() }
    }
}

/// Several parts as one dataset; those that could not be opened are losses of it.
///
/// # Errors
/// If there is none, or none could be opened; if they do not have the same columns.
pub(crate) fn join(name: String, mut parts: Vec<Result<DatasetRef>>, beside: Beside) -> Result<DatasetRef> {
    // Read by themselves companions are listed; beside the files they belong to they have no rows.
    let is_companion = |part: &DatasetRef| DRIVERS.iter().any(|driver| driver.is_companion(part.format()));
    if !parts.iter().flatten().all(is_companion) {
        parts.retain(|part| !part.as_ref().is_ok_and(is_companion));
    }
    let says_nothing = beside.passed_over.is_empty() && beside.absences.is_empty();
    match (parts.pop(), parts.is_empty()) {
        (None, _) => Err(Error::invalid("no path was given")),
        (Some(only), true) if says_nothing || only.is_err() => only,
        (Some(last), _) => {
            parts.push(last);
            Ok(Arc::new(ConcatDataset::recovered(name, parts)?.with_beside(beside)))
        }
    }
}

/// Whether an error says that the bytes of a file are damaged, or so much so that nobody can tell what they were.
pub(crate) fn is_lost(path: &str, error: &Error) -> bool {
    let opened = || paths::place(path).and_then(|place| place.open());
    let is_nothing = || opened().is_ok_and(|source| detect(source.as_ref()).is_err());
    error.is_damage() || matches!(error.kind(), ErrorKind::InvalidInput(_)) && is_nothing()
}

/// The format that has one table at this place, if any.
pub(crate) fn table_driver(place: &Location) -> Option<&'static dyn Driver> {
    DRIVERS.iter().find(|driver| driver.is_table(place)).copied()
}

/// Whether a folder is one table, and not a folder of files.
pub(crate) fn is_table_folder(folder: &Location) -> bool {
    folder.is_folder().unwrap_or(false) && table_driver(folder).is_some()
}
