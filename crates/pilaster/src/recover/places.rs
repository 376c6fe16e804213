//! What lies at and below the paths that are recovered: disks of every system, and files that are a table together.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use pilaster_core::{Error, Finding};

use crate::folder::Folder;
use crate::formats::Driver;
use crate::hive;
use crate::open::table_driver;
use crate::paths::{self, Kind};
use crate::store::{beside_tables, store_drivers};

/// What is opened together.
pub(super) enum Place {
    /// The disks of one system's servers, or a store.
    Store { driver: &'static dyn Driver, folders: Vec<PathBuf> },
    /// A table of its own: a file, the files of a folder, an address.
    Table { name: String, path: String, is_partitioned: bool },
}

impl Place {
    /// The local files and folders it is read from.
    pub(super) fn sources(&self) -> Vec<PathBuf> {
        match self {
            Self::Store { folders, .. } => folders.clone(),
            Self::Table { path, .. } => paths::local_path(path).map(PathBuf::from).into_iter().collect(),
        }
    }
}

/// Everything that was found, in the order of the paths that were given.
#[derive(Default)]
pub(super) struct Places {
    pub(super) places: Vec<Place>,
    /// What was passed over.
    pub(super) findings: Vec<Finding>,
    /// What could not be looked at.
    pub(super) errors: Vec<Error>,
    /// Folders that were looked into, by the path behind all links: links may lead back up.
    seen: BTreeSet<PathBuf>,
}

impl Places {
    /// Looks at each path and below it, but not into `out`.
    pub(super) fn find<S: AsRef<str>>(given: &[S], out: &Path) -> Self {
        let mut found = Self::default();
        found.seen.extend(out.canonicalize());
        for given in given {
            match paths::expand_glob(given.as_ref()) {
                Ok(paths) => paths.into_iter().for_each(|path| found.path(path)),
                Err(error) => found.errors.push(error),
            }
        }
        found
    }

    fn path(&mut self, path: String) {
        let local = paths::local(&path).to_path_buf();
        let stem = local.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = stem.unwrap_or_else(|| path.clone());
        if paths::is_address(&path) {
            return self.table(name, path, false);
        }
        match paths::kind(&local) {
            Ok(Some(Kind::Folder)) => self.folder(&local, name),
            Ok(_) => self.table(name, path, false),
            Err(error) => self.errors.push(error),
        }
    }

    fn table(&mut self, name: String, path: String, is_partitioned: bool) {
        self.places.push(Place::Table { name, path, is_partitioned });
    }

    fn folder(&mut self, folder: &Path, name: String) {
        let path = folder.display().to_string();
        if folder.canonicalize().is_ok_and(|real| !self.seen.insert(real)) {
            return;
        }
        if table_driver(&path).is_some() {
            return self.table(name, path, false);
        }
        if let [driver] = store_drivers(folder)[..] {
            return self.store(driver, folder, &name);
        }
        match hive::is_partitioned(folder) {
            Ok(true) => return self.table(name, path, true),
            Ok(false) => {}
            Err(error) => return self.errors.push(error),
        }
        match Folder::look(folder) {
            Ok(inside) => {
                if inside.files.is_empty() {
                    // What lies beside files is told when they are opened.
                    self.findings.extend(inside.passed_over);
                } else {
                    self.table(name.clone(), path, false);
                }
                inside.folders.into_iter().for_each(|inner| self.inner(&inner, &name));
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn inner(&mut self, folder: &Path, name: &str) {
        let own = folder.file_name().map(|own| own.to_string_lossy().into_owned());
        self.folder(folder, format!("{name}/{}", own.unwrap_or_default()));
    }

    /// Disks, which belong to those of the same system found before, and what lies beside the data on them.
    fn store(&mut self, driver: &'static dyn Driver, folder: &Path, name: &str) {
        let known = self.places.iter_mut().find_map(|place| match place {
            Place::Store { driver: known, folders } if known.name() == driver.name() => Some(folders),
            _ => None,
        });
        match known {
            Some(folders) => folders.push(folder.to_path_buf()),
            None => self.places.push(Place::Store { driver, folders: vec![folder.to_path_buf()] }),
        }
        let beside = match beside_tables(driver, folder) {
            Ok(beside) => beside,
            Err(error) => return self.errors.push(error),
        };
        let is_folder = |path: &PathBuf| paths::kind(path).is_ok_and(|kind| kind == Some(Kind::Folder));
        let (folders, files): (Vec<_>, Vec<_>) = beside.into_iter().partition(is_folder);
        let inside = Folder::of(files, true);
        self.findings.extend(inside.passed_over);
        for file in inside.files {
            let stem = Path::new(&file.name).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            self.table(format!("{name}/{}", stem.unwrap_or_default()), file.name, false);
        }
        folders.into_iter().for_each(|inner| self.inner(&inner, name));
    }
}
