//! Files in memory, for tests, fuzz targets and what is only derived.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::{Entry, EntryKind, Location, Lock, Sink, Storage, Tag, Walk, changed_meanwhile, not_found};
use crate::error::{Error, Result};
use crate::source::{MemorySource, SourceRef};

/// Files by path. Folders exist as long as there are files in them. Clones share the files.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    name: Arc<str>,
    files: Arc<Mutex<Files>>,
}

#[derive(Debug, Default)]
struct Files {
    by_path: BTreeMap<PathBuf, (Bytes, u64)>,
    /// Counts changes: the tag of a file is the change that made it.
    changes: u64,
}

impl Files {
    fn put(&mut self, path: PathBuf, bytes: Bytes) {
        self.changes = self.changes.saturating_add(1);
        self.by_path.insert(path, (bytes, self.changes));
    }

    fn file(&self, path: &Path) -> Option<Entry> {
        self.by_path.get(path).map(|(bytes, change)| file_entry(path.to_path_buf(), bytes, *change))
    }

    /// The files below a folder; nothing is below a file.
    fn below<'a>(&'a self, folder: &'a Path) -> impl Iterator<Item = (&'a PathBuf, &'a (Bytes, u64))> {
        let first = self.by_path.range(folder.to_path_buf()..);
        first.take_while(move |(path, _)| path.starts_with(folder)).filter(move |(path, _)| *path != folder)
    }
}

impl MemoryStorage {
    /// Without files; `name` stands before paths in messages.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), files: Arc::default() }
    }

    /// With these files.
    pub fn with_files(
        name: impl Into<Arc<str>>,
        files: impl IntoIterator<Item = (impl Into<PathBuf>, impl Into<Bytes>)>,
    ) -> Self {
        let storage = Self::new(name);
        files.into_iter().for_each(|(path, bytes)| storage.put(path, bytes));
        storage
    }

    /// Puts a file there, also over another one.
    pub fn put(&self, path: impl Into<PathBuf>, bytes: impl Into<Bytes>) {
        self.lock().put(path.into(), bytes.into());
    }

    /// The folder of all files.
    pub fn root(&self) -> Location {
        Location::new(Arc::new(self.clone()), "")
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for MemoryStorage {
    fn display(&self, path: &Path) -> String {
        if path.as_os_str().is_empty() {
            return self.name.to_string();
        }
        format!("{}/{}", self.name, path.display())
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        let files = self.lock();
        let is_folder = || path.as_os_str().is_empty() || files.below(path).next().is_some();
        Ok(files.file(path).or_else(|| is_folder().then(|| folder_entry(path.to_path_buf()))))
    }

    fn list(&self, folder: &Path) -> Result<Vec<Entry>> {
        let files = self.lock();
        let mut entries: Vec<Entry> = Vec::new();
        for (path, (bytes, change)) in files.below(folder) {
            let mut rest = path.strip_prefix(folder).unwrap_or(path).components();
            let Some(first) = rest.next() else { continue };
            let entry_path = folder.join(first);
            if rest.next().is_none() {
                entries.push(file_entry(entry_path, bytes, *change));
            } else if entries.last().is_none_or(|last| last.path != entry_path) {
                entries.push(folder_entry(entry_path));
            }
        }
        if entries.is_empty() && !folder.as_os_str().is_empty() {
            return Err(match files.file(folder) {
                Some(_) => Error::invalid("is a file, not a folder").at(&self.display(folder), 0, ""),
                None => not_found(&self.display(folder)),
            });
        }
        Ok(entries)
    }

    fn walk(&self, folder: &Path) -> Walk {
        let files = self.lock();
        let entries: Vec<_> = files
            .below(folder)
            .map(|(path, (bytes, change))| Ok(file_entry(path.clone(), bytes, *change)))
            .collect();
        if entries.is_empty() && !folder.as_os_str().is_empty() {
            return Box::new(std::iter::once(Err(not_found(&self.display(folder)))));
        }
        Box::new(entries.into_iter())
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        let (name, files) = (self.display(path), self.lock());
        match files.by_path.get(path) {
            Some((bytes, _)) => Ok(Arc::new(MemorySource::new(name, bytes.clone()))),
            None if files.below(path).next().is_some() => {
                Err(Error::invalid("is a folder, not a file").at(&name, 0, ""))
            }
            None => Err(not_found(&name)),
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Sink>> {
        Ok(Box::new(MemorySink { storage: self.clone(), path: path.to_path_buf(), bytes: Vec::new() }))
    }

    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()> {
        let mut files = self.lock();
        if files.file(path).as_ref().and_then(Entry::tag) != tag {
            return Err(changed_meanwhile(&self.display(path)));
        }
        files.put(path.to_path_buf(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        match self.lock().by_path.remove(path) {
            Some(_) => Ok(()),
            None => Err(not_found(&self.display(path))),
        }
    }

    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()> {
        let mut files = self.lock();
        let Some((bytes, _)) = files.by_path.get(path).cloned() else {
            return Err(not_found(&self.display(path)));
        };
        if files.by_path.contains_key(aside) {
            return Err(changed_meanwhile(&self.display(aside)));
        }
        files.put(aside.to_path_buf(), bytes);
        Ok(())
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>> {
        Lock::of_file(Arc::new(self.clone()), path)
    }
}

#[derive(Debug)]
struct MemorySink {
    storage: MemoryStorage,
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Write for MemorySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink for MemorySink {
    fn written(&mut self) -> Result<Option<SourceRef>> {
        let name = self.storage.display(&self.path);
        Ok(Some(Arc::new(MemorySource::new(name, self.bytes.clone()))))
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.storage.put(self.path, self.bytes);
        Ok(())
    }
}

fn file_entry(path: PathBuf, bytes: &Bytes, change: u64) -> Entry {
    let tag = Some(Tag::new(change.to_string()));
    Entry { path, kind: EntryKind::File, size: bytes.len() as u64, modified: None, tag, is_link: false }
}

fn folder_entry(path: PathBuf) -> Entry {
    Entry { path, kind: EntryKind::Folder, size: 0, modified: None, tag: None, is_link: false }
}
