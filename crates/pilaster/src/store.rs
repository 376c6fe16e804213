//! Folders that hold tables: the disks of a server, a database.

use std::fmt::Debug;
use std::path::PathBuf;

use pilaster_core::{DatasetRef, Finding, Progress, Result, VerifyDepth, VerifyReport};

use crate::formats::{DRIVERS, Driver};
use crate::ls::Entry;
use crate::open::OpenOptions;
use crate::paths;
use crate::verify::verify_all;

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
/// `None` if they are files, or folders of files.
pub fn open_store<S: AsRef<str>>(given: &[S], options: &OpenOptions) -> Option<Result<Box<dyn Store>>> {
    let folders: Vec<PathBuf> = given.iter().map(|path| paths::local(path.as_ref()).to_path_buf()).collect();
    store_driver(&folders).map(|driver| driver.open_store(&folders, options))
}

/// The format of the store that these folders are together, if they are one.
pub(crate) fn store_driver(folders: &[PathBuf]) -> Option<&'static dyn Driver> {
    if folders.is_empty() || !folders.iter().all(|folder| folder.is_dir()) {
        return None;
    }
    DRIVERS.iter().find(|driver| folders.iter().all(|folder| driver.is_store(folder))).copied()
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
            .map(|name| Ok((name.clone(), store.table(Some(&name))?)))
            .collect();
    }
    let mut tables = Vec::new();
    for path in given {
        for path in paths::expand_glob(path.as_ref())? {
            let stem = paths::local(&path).file_stem();
            let name = stem.map_or_else(|| path.clone(), |stem| stem.to_string_lossy().into_owned());
            tables.push((name, options.open(&path)?));
        }
    }
    Ok(tables)
}

/// Every table of a store (or the one asked for), each by itself, under the name `path#table`.
pub(crate) fn open_tables(
    path: &str,
    store: &dyn Store,
    options: &OpenOptions,
) -> Vec<(String, Result<DatasetRef>)> {
    let names = match options.table() {
        Some(name) => vec![name.to_string()],
        None => store.tables(),
    };
    names.into_iter().map(|name| (format!("{path}#{name}"), store.table(Some(&name)))).collect()
}
