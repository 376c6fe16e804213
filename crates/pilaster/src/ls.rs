//! What is there: files and tables with their rows, bytes and state.

use std::fs;
use std::path::Path;
use std::slice;

use pilaster_core::{Dataset, Error, Result, Severity};

use crate::open::{OpenOptions, is_table_folder};
use crate::paths;
use crate::store::{Store, open_store, store_driver};
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
    if let ([_, _, ..], Some(store)) = (paths, open_store(paths, &options.open)) {
        return Ok(list_store(store?.as_ref(), options));
    }
    for path in paths {
        for path in paths::expand_glob(path.as_ref())? {
            let local = paths::local(&path);
            if paths::is_address(&path) || !local.is_dir() {
                if !paths::is_address(&path) {
                    fs::metadata(local).map_err(|error| Error::from(error).at(&path, 0, ""))?;
                }
                entries.push(entry(&path, options));
            } else if is_table_folder(local) {
                entries.push(entry(&path, options));
            } else if let Some(store) = open_store(&[&path], &options.open) {
                entries.extend(list_store(store?.as_ref(), options));
            } else {
                list_folder(local, options, DEPTH, &mut entries)?;
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
    store.entries().into_iter().chain(orphans).chain(problems).collect()
}

fn list_folder(folder: &Path, options: &ListOptions, depth: u32, entries: &mut Vec<Entry>) -> Result<()> {
    for path in paths::entries(folder)? {
        let name = path.display().to_string();
        if !path.is_dir() || is_table_folder(&path) {
            entries.push(entry(&name, options));
            continue;
        }
        // A link may lead back up: it is listed, not followed.
        let deeper = depth.checked_sub(1).filter(|_| options.recursive && !path.is_symlink());
        let Some(deeper) = deeper else {
            let format = store_driver(slice::from_ref(&path))
                .map_or("folder".to_string(), |driver| format!("{} tables", driver.name()));
            entries.push(folder_entry(name, &format, State::Ok));
            continue;
        };
        if let Some(store) = open_store(&[&name], &options.open) {
            match store {
                Ok(store) => entries.extend(list_store(store.as_ref(), options)),
                Err(error) => entries.push(folder_entry(name, "folder", State::Problem(error.to_string()))),
            }
            continue;
        }
        if let Err(error) = list_folder(&path, options, deeper, entries) {
            entries.push(folder_entry(name, "folder", State::Problem(error.to_string())));
        }
    }
    Ok(())
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

fn entry(path: &str, options: &ListOptions) -> Entry {
    match options.open.open(path) {
        Ok(dataset) => opened(path, dataset.as_ref()),
        Err(error) => {
            let text = error.to_string();
            let problem = text.strip_prefix(path).and_then(|rest| rest.strip_prefix(": ")).unwrap_or(&text);
            Entry {
                path: path.to_string(),
                format: None,
                rows: None,
                bytes: fs::metadata(paths::local(path)).map_or(0, |metadata| metadata.len()),
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
