//! What lies at and below the paths that are recovered: disks of every system, and files that are a table together.

use std::collections::BTreeSet;

use pilaster_core::storage::EntryKind;
use pilaster_core::{Error, Finding, Location};

use crate::folder::Folder;
use crate::formats::Driver;
use crate::hive;
use crate::open::table_driver;
use crate::paths;
use crate::store::{beside_tables, store_drivers};

/// What is opened together.
pub(super) enum Place {
    /// The disks of one system's servers, or a store.
    Store { driver: &'static dyn Driver, folders: Vec<Location> },
    /// A table of its own: a file, or the files of a folder.
    Table { name: String, place: Location, is_partitioned: bool },
}

impl Place {
    /// The files and folders it is read from.
    pub(super) fn sources(&self) -> Vec<Location> {
        match self {
            Self::Store { folders, .. } => folders.clone(),
            Self::Table { place, .. } => vec![place.clone()],
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
    seen: BTreeSet<Location>,
}

impl Places {
    /// Looks at each path and below it, but not into `out`.
    pub(super) fn find<S: AsRef<str>>(given: &[S], out: &Location) -> Self {
        let mut found = Self::default();
        found.seen.extend(out.real());
        for given in given {
            match paths::expand_glob(given.as_ref()) {
                Ok(paths) => paths.into_iter().for_each(|path| found.path(path)),
                Err(error) => found.errors.push(error),
            }
        }
        found
    }

    fn path(&mut self, place: Location) {
        let name = paths::stem(&place).unwrap_or_else(|| place.to_string());
        match paths::kind(&place) {
            Ok(Some(EntryKind::Folder)) => self.folder(&place, name),
            // Not every server can say what it has: it is seen when it is opened.
            Err(error) if place.local_path().is_some() => self.errors.push(error),
            Ok(_) | Err(_) => self.table(name, place, false),
        }
    }

    fn table(&mut self, name: String, place: Location, is_partitioned: bool) {
        self.places.push(Place::Table { name, place, is_partitioned });
    }

    fn folder(&mut self, folder: &Location, name: String) {
        if folder.real().is_ok_and(|real| !self.seen.insert(real)) {
            return;
        }
        if table_driver(folder).is_some() {
            return self.table(name, folder.clone(), false);
        }
        if let [driver] = store_drivers(folder)[..] {
            return self.store(driver, folder, &name);
        }
        match hive::is_partitioned(folder) {
            Ok(true) => return self.table(name, folder.clone(), true),
            Ok(false) => {}
            Err(error) => return self.errors.push(error),
        }
        match Folder::look(folder) {
            Ok(inside) => {
                if inside.files.is_empty() {
                    // What lies beside files is told when they are opened.
                    self.findings.extend(inside.passed_over);
                } else {
                    self.table(name.clone(), folder.clone(), false);
                }
                inside.folders.into_iter().for_each(|inner| self.inner(&inner, &name));
            }
            Err(error) => self.errors.push(error),
        }
    }

    fn inner(&mut self, folder: &Location, name: &str) {
        self.folder(folder, format!("{name}/{}", folder.name().to_string_lossy()));
    }

    /// Disks, which belong to those of the same system found before, and what lies beside the data on them.
    fn store(&mut self, driver: &'static dyn Driver, folder: &Location, name: &str) {
        let known = self.places.iter_mut().find_map(|place| match place {
            Place::Store { driver: known, folders } if known.name() == driver.name() => Some(folders),
            _ => None,
        });
        match known {
            Some(folders) => folders.push(folder.clone()),
            None => self.places.push(Place::Store { driver, folders: vec![folder.clone()] }),
        }
        let beside = match beside_tables(driver, folder) {
            Ok(beside) => beside,
            Err(error) => return self.errors.push(error),
        };
        let is_folder =
            |place: &Location| paths::kind(place).is_ok_and(|kind| kind == Some(EntryKind::Folder));
        let (folders, files): (Vec<_>, Vec<_>) = beside.into_iter().partition(is_folder);
        let inside = Folder::of(files, true);
        self.findings.extend(inside.passed_over);
        for file in inside.files {
            let stem = paths::stem(&file.place).unwrap_or_default();
            self.table(format!("{name}/{stem}"), file.place, false);
        }
        folders.into_iter().for_each(|inner| self.inner(&inner, name));
    }
}
