//! Tables opened by a session, each once.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::fmt::Debug;
use std::fs::{self, Metadata};
use std::hash::{Hash, Hasher};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pilaster::OpenOptions;
use pilaster_core::{DatasetRef, Result};

use crate::table::PilasterTable;

/// How deep a folder is looked into for changes; the folders of all systems are shallower.
const FOLDER_DEPTH: usize = 12;

/// Turns what stands in `FROM '…'` into a dataset.
pub trait Opener: Debug + Send + Sync {
    /// Opens what lies at `path`: the table of that name, if one is named.
    ///
    /// # Errors
    /// If it cannot be opened.
    fn open(&self, path: &str, table: Option<&str>) -> Result<DatasetRef>;
}

impl Opener for OpenOptions {
    fn open(&self, path: &str, table: Option<&str>) -> Result<DatasetRef> {
        match table {
            Some(table) => self.clone().with_table(Some(table.to_string())).open(path),
            None => OpenOptions::open(self, path),
        }
    }
}

/// Keeps tables open as long as the files under them stay the same, so that the second query on a file reads no
/// header, no footer and no statistics again.
#[derive(Debug)]
pub struct TableCache {
    opener: Arc<dyn Opener>,
    opened: Mutex<HashMap<Address, (Fingerprint, Arc<PilasterTable>)>>,
}

/// A path and the table in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Address {
    path: String,
    table: Option<String>,
}

/// Sizes and times of the files under a path; 0 for an address, whose content is taken as fixed for the session.
type Fingerprint = u64;

impl TableCache {
    /// An empty cache that opens through `opener`.
    pub fn new(opener: Arc<dyn Opener>) -> Self {
        Self { opener, opened: Mutex::new(HashMap::new()) }
    }

    /// The table at `address`: a path, or `path#table`.
    ///
    /// # Errors
    /// As [`Opener::open`].
    pub fn open(&self, address: &str) -> Result<Arc<PilasterTable>> {
        let address = Address::parse(address);
        let fingerprint = fingerprint(&address.path);
        if let Some((known, table)) = self.lock().get(&address)
            && *known == fingerprint
        {
            return Ok(Arc::clone(table));
        }
        // Opening may take long, so the lock is not held meanwhile; two racers both open and the last one stays.
        let dataset = self.opener.open(&address.path, address.table.as_deref())?;
        let table = Arc::new(PilasterTable::new(dataset));
        self.lock().insert(address, (fingerprint, Arc::clone(&table)));
        Ok(table)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, (Fingerprint, Arc<PilasterTable>)>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Address {
    /// `#` begins a table name only where it is not part of an existing file's name.
    fn parse(address: &str) -> Self {
        match address.rsplit_once('#') {
            Some((path, table)) if !table.is_empty() && !Path::new(address).exists() => {
                Self { path: path.to_string(), table: Some(table.to_string()) }
            }
            _ => Self { path: address.to_string(), table: None },
        }
    }
}

/// The path of an address that may name a table in it.
pub(crate) fn path_of_address(address: &str) -> String {
    Address::parse(address).path
}

fn fingerprint(path: &str) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    let Some(path) = pilaster::local_path(path) else { return 0 };
    match fs::metadata(path) {
        Ok(metadata) => hash_tree(path, &metadata, FOLDER_DEPTH, &mut hasher),
        // A glob: the names it stands for now, and what they hold.
        Err(_) => {
            for matched in glob::glob(&path.to_string_lossy()).into_iter().flatten().flatten() {
                if let Ok(metadata) = fs::metadata(&matched) {
                    hash_tree(&matched, &metadata, FOLDER_DEPTH, &mut hasher);
                }
            }
        }
    }
    hasher.finish()
}

fn hash_tree(path: &Path, metadata: &Metadata, depth: usize, hasher: &mut DefaultHasher) {
    path.hash(hasher);
    metadata.len().hash(hasher);
    metadata.modified().ok().hash(hasher);
    if !metadata.is_dir() || depth == 0 {
        return;
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if let Ok(metadata) = entry.metadata() {
            hash_tree(&entry.path(), &metadata, depth.saturating_sub(1), hasher);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_named_after_the_last_hash() {
        let parse = |text: &str| {
            let address = Address::parse(text);
            (address.path, address.table)
        };
        assert_eq!(parse("a/b"), ("a/b".into(), None));
        assert_eq!(parse("a/b#t"), ("a/b".into(), Some("t".into())));
        assert_eq!(parse("a#b#t"), ("a#b".into(), Some("t".into())));
        assert_eq!(parse("a#"), ("a#".into(), None));
    }

    #[test]
    fn a_file_whose_name_has_a_hash_is_that_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x#y");
        fs::write(&path, "1").unwrap();
        assert_eq!(Address::parse(path.to_str().unwrap()).table, None);
    }

    #[test]
    fn a_change_anywhere_in_a_folder_changes_its_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("x"), "1").unwrap();
        let path = folder.path().to_str().unwrap();
        for (path, text) in [(path.to_string(), "22"), (format!("file://{path}"), "333")] {
            let before = fingerprint(&path);
            assert_eq!(before, fingerprint(&path));
            fs::write(inner.join("x"), text).unwrap();
            assert_ne!(before, fingerprint(&path), "{path}");
        }
    }
}
