//! What is there: files and tables with their rows, bytes and state.

use std::slice;

use pilaster_core::storage::EntryKind;
use pilaster_core::{Dataset, Error, Location, Result, Severity};

use crate::folder::unlisted_below;
use crate::formats::Driver;
use crate::open::{OpenOptions, is_table_folder};
use crate::paths;
use crate::store::{Store, beside_tables, store_driver, store_drivers};
use crate::verify::is_unread;

/// How deep folders inside folders are followed.
const DEPTH: u32 = 64;

/// Whether an entry can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// It opens.
    Ok,
    /// It does not, and why.
    Problem(String),
    /// It could not be read, so that nothing is known of it, and why.
    Unread(String),
}

/// A file or table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Path or address.
    pub path: String,
    /// Its format, where known: `parquet`, `kudu cfile`, `folder`.
    pub format: Option<String>,
    /// Rows, where known without reading them.
    pub rows: Option<u64>,
    /// Bytes on disk.
    pub bytes: u64,
    /// Number of columns, where known.
    pub columns: Option<usize>,
    /// What else its format says of it: name and value.
    pub details: Vec<(String, String)>,
    /// Whether it can be read.
    pub state: State,
}

/// How to list.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    open: OpenOptions,
    recursive: bool,
    orphans: bool,
}

impl ListOptions {
    /// How to open what is found.
    #[must_use]
    pub fn with_open(mut self, open: OpenOptions) -> Self {
        self.open = open;
        self
    }

    /// Whether folders inside folders are followed; they are one entry otherwise.
    #[must_use]
    pub fn with_recursive(mut self, recursive: bool) -> Self {
        self.recursive = recursive;
        self
    }

    /// Whether what belongs to no table is looked for too.
    #[must_use]
    pub fn with_orphans(mut self, orphans: bool) -> Self {
        self.orphans = orphans;
        self
    }
}

/// Lists files and folders. What cannot be opened is listed with its problem.
///
/// # Errors
/// If a path given does not exist or a folder given cannot be read.
pub fn list<S: AsRef<str>>(paths: &[S], options: &ListOptions) -> Result<Vec<Entry>> {
    let mut entries = Vec::new();
    // Several folders of one system are listed together: they may be the disks of one server.
    let folders = paths::places(paths)?;
    if let ([_, _, ..], Some(driver)) = (folders.as_slice(), store_driver(&folders)) {
        entries.extend(list_store(driver.open_store(&folders, &options.open)?.as_ref(), options));
        folders.iter().for_each(|folder| list_beside(driver, folder, options, DEPTH, &mut entries));
        return Ok(entries);
    }
    for path in paths {
        for path in paths::expand_glob(path.as_ref())? {
            let kind = match paths::kind(&path) {
                // What a server does not say is seen when it is opened.
                Err(_) | Ok(None) if path.local_path().is_none() => EntryKind::File,
                // Opening it says what is wrong with it, in the words of the system.
                Ok(None) => {
                    path.open()?;
                    EntryKind::Other
                }
                kind => kind?.unwrap_or(EntryKind::Other),
            };
            if kind != EntryKind::Folder || is_table_folder(&path) {
                entries.push(entry(&path, options));
            } else if let Some(driver) = store_driver(slice::from_ref(&path)) {
                let store = driver.open_store(slice::from_ref(&path), &options.open)?;
                entries.extend(list_store(store.as_ref(), options));
                list_beside(driver, &path, options, DEPTH, &mut entries);
            } else {
                list_folder(&path, options, DEPTH, &mut entries)?;
            }
        }
    }
    Ok(entries)
}

/// What a store consists of, and what is wrong with it.
fn list_store(store: &dyn Store, options: &ListOptions) -> Vec<Entry> {
    let problems = store.findings().into_iter().map(|finding| Entry {
        path: finding.path.to_string(),
        format: None,
        rows: None,
        bytes: 0,
        columns: None,
        details: Vec::new(),
        state: State::Problem(match finding.part.as_str() {
            "" => finding.message,
            part => format!("{part} at byte {}: {}", finding.offset, finding.message),
        }),
    });
    let orphans = if options.orphans { store.orphans() } else { Vec::new() };
    let entries = store.entries();
    // What could not be looked at is said once.
    let is_told = |problem: &Entry| {
        let is_it = |entry: &Entry| entry.path == problem.path && matches!(entry.state, State::Unread(_));
        entries.iter().any(is_it)
    };
    let problems: Vec<_> = problems.filter(|problem| !is_told(problem)).collect();
    entries.into_iter().chain(orphans).chain(problems).collect()
}

fn list_folder(folder: &Location, options: &ListOptions, depth: u32, entries: &mut Vec<Entry>) -> Result<()> {
    let inside = paths::entries(folder)?;
    let is_file = |path: &&Location| path.is_file().unwrap_or(false);
    let names: Vec<_> = inside.iter().filter(is_file).map(ToString::to_string).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    for absence in options.open.missing_in(folder, &names)? {
        entries.push(folder_entry(absence.path.to_string(), "folder", State::Problem(absence.what)));
    }
    list_paths(inside, options, depth, entries);
    Ok(())
}

/// What lies beside the tables of a store.
fn list_beside(
    driver: &dyn Driver,
    folder: &Location,
    options: &ListOptions,
    depth: u32,
    entries: &mut Vec<Entry>,
) {
    match beside_tables(driver, folder) {
        Ok(beside) => list_paths(beside, options, depth, entries),
        Err(error) => entries.push(folder_entry(folder.to_string(), "folder", state_of(&error))),
    }
}

fn list_paths(paths: Vec<Location>, options: &ListOptions, depth: u32, entries: &mut Vec<Entry>) {
    for path in paths {
        let name = path.to_string();
        match paths::kind(&path) {
            Ok(Some(EntryKind::Folder)) if !is_table_folder(&path) => {}
            Ok(Some(EntryKind::Other)) => {
                entries.push(folder_entry(name, "pipe or device", State::Ok));
                continue;
            }
            Ok(_) => {
                entries.push(entry(&path, options));
                continue;
            }
            Err(error) => {
                entries.push(folder_entry(name, "unknown", state_of(&error)));
                continue;
            }
        }
        // A link may lead back up: it is listed, not followed.
        let deeper = depth.checked_sub(1).filter(|_| options.recursive && !path.is_link().unwrap_or(false));
        let Some(deeper) = deeper else {
            let drivers = store_drivers(&path);
            let names: Vec<_> = drivers.iter().map(|driver| driver.name()).collect();
            let format =
                if names.is_empty() { "folder".to_string() } else { format!("{} tables", names.join(", ")) };
            // Whether it can be looked into is known only by doing so, and what it is by looking below.
            let state = unlisted_below(slice::from_ref(&path)).map_or(State::Ok, |error| state_of(&error));
            entries.push(folder_entry(name, &format, state));
            continue;
        };
        if let Some(driver) = store_driver(slice::from_ref(&path)) {
            match driver.open_store(slice::from_ref(&path), &options.open) {
                Ok(store) => {
                    entries.extend(list_store(store.as_ref(), options));
                    list_beside(driver, &path, options, deeper, entries);
                }
                Err(error) => entries.push(folder_entry(name, "folder", state_of(&error))),
            }
            continue;
        }
        if let Err(error) = list_folder(&path, options, deeper, entries) {
            entries.push(folder_entry(name, "folder", state_of(&error)));
        }
    }
}

/// What is wrong with a folder, or why nobody knows.
fn state_of(error: &Error) -> State {
    let path = error.position().map_or("", |position| &position.path);
    match is_unread(path, error) {
        true => State::Unread(error.to_string()),
        false => State::Problem(error.to_string()),
    }
}

fn folder_entry(path: String, format: &str, state: State) -> Entry {
    Entry {
        path,
        format: Some(format.to_string()),
        rows: None,
        bytes: 0,
        columns: None,
        details: Vec::new(),
        state,
    }
}

fn entry(place: &Location, options: &ListOptions) -> Entry {
    let path = &*place.to_string();
    match options.open.open_location(place) {
        Ok(dataset) => opened(path, dataset.as_ref()),
        Err(error) => {
            let text = error.to_string();
            let problem = text.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&text);
            Entry {
                path: path.to_string(),
                format: None,
                rows: None,
                bytes: place.entry().ok().flatten().map_or(0, |entry| entry.size()),
                columns: None,
                details: Vec::new(),
                state: match is_unread(path, &error) {
                    true => State::Unread(problem.to_string()),
                    false => State::Problem(problem.to_string()),
                },
            }
        }
    }
}

fn opened(path: &str, dataset: &dyn Dataset) -> Entry {
    // Files that belong to it may be opened only now.
    let bytes = dataset.size_bytes();
    let problem = dataset.findings().into_iter().find(|finding| finding.severity == Severity::Error);
    Entry {
        path: path.to_string(),
        format: Some(dataset.format().to_string()),
        rows: dataset.row_count(),
        bytes,
        columns: Some(dataset.schema().fields().len()),
        details: Vec::new(),
        state: problem.map_or(State::Ok, |finding| State::Problem(finding.to_string())),
    }
}
