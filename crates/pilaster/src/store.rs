//! Folders that hold tables: the disks of a server, a database.

use std::collections::BTreeSet;
use std::fmt::Debug;

use pilaster_core::storage::EntryKind;
use pilaster_core::{
    DatasetRef, Error, ErrorKind, Finding, Location, LostRows, Progress, Result, VerifyDepth, VerifyReport,
};

use crate::detect::{Format, detect};
use crate::formats::{DRIVERS, Driver};
use crate::ls::Entry;
use crate::open::OpenOptions;
use crate::paths;
use crate::verify::verify_all;

/// Rows apart from those of any table, because something about them is not proven.
#[derive(Debug, Clone)]
pub struct UnprovenPart {
    /// A name for a file.
    pub name: String,
    /// What is not proven.
    pub reason: String,
    /// The rows.
    pub rows: DatasetRef,
}

/// A folder, or several that belong together, with any number of tables in it.
pub trait Store: Debug + Send + Sync {
    /// Names of its tables.
    fn tables(&self) -> Vec<String>;

    /// Opens a table; without a name, the only one there is.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if there is none of that name, or several and no name; the message
    /// lists them.
    fn table(&self, name: Option<&str>) -> Result<DatasetRef>;

    /// What it consists of, in the words of its format.
    fn entries(&self) -> Vec<Entry>;

    /// What lies in it and belongs to no table, each openable by its name; finding it may take long.
    fn orphans(&self) -> Vec<Entry> {
        Vec::new()
    }

    /// Rows that can be read and that nothing proves to be a table's latest; without a name those of all tables.
    ///
    /// # Errors
    /// If there is no table of that name, or it cannot be opened.
    fn unproven(&self, _table: Option<&str>) -> Result<Vec<UnprovenPart>> {
        Ok(Vec::new())
    }

    /// Rows of a table that may be on other disks than these, though nothing here lacks them: newer ones of other replicas.
    fn elsewhere(&self, _table: &str) -> Vec<LostRows> {
        Vec::new()
    }

    /// What is wrong with it that belongs to no one table.
    fn findings(&self) -> Vec<Finding>;

    /// Looks for damage in all of it, or in one table. Progress counts bytes.
    ///
    /// # Errors
    /// If there is no table of that name, or looking itself fails; damage is in the report.
    fn verify(
        &self,
        table: Option<&str>,
        depth: VerifyDepth,
        progress: &dyn Progress,
    ) -> Result<VerifyReport> {
        let names = table.map_or_else(|| self.tables(), |name| vec![name.to_string()]);
        let tables = names.into_iter().map(|name| (name.clone(), self.table(Some(&name)))).collect();
        let mut report = VerifyReport { findings: self.findings(), ..VerifyReport::default() };
        verify_all(tables, depth, progress, &mut report)?;
        Ok(report)
    }
}

/// The store that all these paths are together, if each of them is a folder of the same system's.
///
/// `None` if they are files, or folders of files; an error if tables of several systems lie below one of them, none of which is the one
/// that is meant.
pub fn open_store<S: AsRef<str>>(given: &[S], options: &OpenOptions) -> Option<Result<Box<dyn Store>>> {
    match paths::places(given) {
        Ok(folders) => store_at(&folders, options),
        Err(error) => Some(Err(error)),
    }
}

/// As [`open_store`], of these places.
pub(crate) fn store_at(folders: &[Location], options: &OpenOptions) -> Option<Result<Box<dyn Store>>> {
    if let Some(driver) = store_driver(folders) {
        return Some(driver.open_store(folders, options));
    }
    let mut of_each = folders.iter().map(|folder| (folder, store_drivers(folder)));
    let (folder, drivers) = of_each.find(|(_, drivers)| drivers.len() > 1)?;
    Some(Err(several_systems(folder, &drivers)))
}

/// The format of the store that these folders are together, if they are one.
pub(crate) fn store_driver(folders: &[Location]) -> Option<&'static dyn Driver> {
    let (first, others) = folders.split_first()?;
    let [driver] = store_drivers(first)[..] else { return None };
    let is_same =
        |folder: &Location| matches!(store_drivers(folder)[..], [other] if other.name() == driver.name());
    others.iter().all(is_same).then_some(driver)
}

/// The formats whose tables lie in or below a folder.
pub(crate) fn store_drivers(folder: &Location) -> Vec<&'static dyn Driver> {
    let mut drivers: Vec<&'static dyn Driver> = Vec::new();
    if folder.is_folder().unwrap_or(false) {
        for driver in DRIVERS.iter().filter(|driver| driver.is_store(folder)) {
            // What is the root of one system is its own, whatever it looks like from further away.
            if driver.is_root(folder) {
                return vec![*driver];
            }
            drivers.push(*driver);
        }
    }
    drivers
}

fn several_systems(folder: &Location, drivers: &[&'static dyn Driver]) -> Error {
    let inside = paths::entries(folder).unwrap_or_default();
    let place = |driver: &&'static dyn Driver| {
        let is_here = |place: &&Location| place.is_folder().unwrap_or(false) && driver.is_store(place);
        let here = inside.iter().filter(is_here);
        let names: Vec<_> = here.map(|place| place.name().to_string_lossy().into_owned()).collect();
        match names.is_empty() {
            true => format!("{} further below", driver.name()),
            false => format!("{} in {}", driver.name(), names.join(", ")),
        }
    };
    let places: Vec<_> = drivers.iter().map(place).collect();
    let message =
        format!("holds tables of several systems, which are not read together: {}", places.join("; "));
    folder.blame(Error::invalid(message))
}

/// What lies in and below a folder of tables and is no part of any of them.
///
/// # Errors
/// If a folder on the way to the tables cannot be listed.
pub(crate) fn beside_tables(driver: &dyn Driver, folder: &Location) -> Result<Vec<Location>> {
    let (mut beside, mut seen) = (Vec::new(), BTreeSet::new());
    let mut todo = vec![folder.clone()];
    while let Some(folder) = todo.pop() {
        // Links may lead back up.
        if !seen.insert(folder.real()?) {
            continue;
        }
        if driver.is_root(&folder) {
            beside.extend(paths::entries(&folder)?.into_iter().filter(|path| is_stray(driver, path)));
            continue;
        }
        for path in paths::entries(&folder)? {
            let is_folder = paths::kind(&path).is_ok_and(|kind| kind == Some(EntryKind::Folder));
            match is_folder && driver.is_store(&path) {
                true => todo.push(path),
                false => beside.push(path),
            }
        }
    }
    beside.sort();
    Ok(beside)
}

/// Whether a file in a root is none of its parts, and data: words and lists that somebody left there are nobody's matter.
fn is_stray(driver: &dyn Driver, place: &Location) -> bool {
    let is_part = driver.is_part_of_root(place.name());
    if is_part || !matches!(paths::kind(place), Ok(Some(EntryKind::File)) | Err(_)) {
        return false;
    }
    match place.open().and_then(|source| detect(source.as_ref())) {
        Ok(format) => !matches!(format, Format::Csv | Format::Tsv | Format::JsonLines),
        Err(error) => matches!(error.kind(), ErrorKind::Io(_)),
    }
}

/// Everything that `given` holds, each table under its own name: the tables of a store, else each file or folder under
/// its name without extension.
///
/// # Errors
/// If a path does not exist or cannot be opened.
pub fn named_tables<S: AsRef<str>>(given: &[S], options: &OpenOptions) -> Result<Vec<(String, DatasetRef)>> {
    if let Some(store) = open_store(given, options) {
        let store = store?;
        return store
            .tables()
            .into_iter()
            .map(|name| Ok((name.clone(), options.check_complete(store.table(Some(&name))?)?)))
            .collect();
    }
    let mut tables = Vec::new();
    for path in given {
        for path in paths::expand_glob(path.as_ref())? {
            let name = paths::stem(&path).unwrap_or_else(|| path.to_string());
            tables.push((name, options.open_location(path)?));
        }
    }
    Ok(tables)
}

/// Every table of a store (or the one asked for), each by itself, under the name `path#table`.
pub(crate) fn open_tables(
    place: &Location,
    store: &dyn Store,
    options: &OpenOptions,
) -> Vec<(String, Result<DatasetRef>)> {
    let names = match options.table() {
        Some(name) => vec![name.to_string()],
        None => store.tables(),
    };
    names.into_iter().map(|name| (format!("{place}#{name}"), store.table(Some(&name)))).collect()
}
