//! The local disk.

use std::collections::HashSet;
use std::fs::{self, FileType, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;

use bytes::Bytes;

use super::{
    Entry, EntryKind, Lock, Sink, Storage, Tag, UnfinishedFolder, Walk, changed_meanwhile, check_size,
};
use crate::atomic::{AtomicFile, AtomicFolder, Place, sync_parent};
use crate::error::{AtPosition, Error, Result};
use crate::source::{FileHandles, SourceRef};

/// Folders in folders that a walk goes into: more than any path of a system may have, so that only what leads round ends here.
const MOST_LEVELS: usize = 4096;

/// Files of the local disk. Handles are those of [`FileHandles::shared`].
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalStorage;

impl LocalStorage {
    /// The one local disk.
    pub fn shared() -> Arc<dyn Storage> {
        static SHARED: OnceLock<Arc<LocalStorage>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(Arc::default)) as Arc<dyn Storage>
    }
}

impl Storage for LocalStorage {
    fn display(&self, path: &Path) -> String {
        path.display().to_string()
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(Some(entry(path.to_path_buf(), &metadata))),
            Err(error) if is_nothing(&error) => Ok(None),
            Err(error) => Err(Error::from(error).at(&self.display(path), 0, "")),
        }
    }

    fn is_link(&self, path: &Path) -> Result<bool> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.is_symlink()),
            Err(error) if is_nothing(&error) => Ok(false),
            Err(error) => Err(Error::from(error).at(&self.display(path), 0, "")),
        }
    }

    fn real(&self, path: &Path) -> Result<PathBuf> {
        let listed = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        fs::canonicalize(listed).at(&self.display(path), 0, "")
    }

    fn list(&self, folder: &Path) -> Result<Vec<Entry>> {
        let name = self.display(folder);
        let mut entries = Vec::new();
        // An empty path is the current folder.
        let listed = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        for found in fs::read_dir(listed).at(&name, 0, "")? {
            let found = found.at(&name, 0, "")?;
            let path = folder.join(found.file_name());
            // What the list itself says, also of what one may not look at.
            let listed_as = match found.file_type() {
                Ok(kind) => kind,
                Err(error) if is_nothing(&error) => continue,
                Err(error) => return Err(Error::from(error).at(&self.display(&path), 0, "")),
            };
            let is_link = listed_as.is_symlink();
            match fs::metadata(&path) {
                Ok(metadata) => entries.push(Entry { is_link, ..entry(path, &metadata) }),
                // Gone since the folder was listed.
                Err(_) if fs::symlink_metadata(&path).is_err_and(|error| is_nothing(&error)) => {}
                Err(_) => entries.push(unknown(path, listed_as)),
            }
        }
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(entries)
    }

    fn walk(&self, folder: &Path) -> Walk {
        Box::new(LocalWalk { next: vec![Step::Folder(folder.to_path_buf(), 0)], seen: HashSet::new() })
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        Ok(Arc::new(FileHandles::shared().open(path)?))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Sink>> {
        Ok(Box::new(AtomicFile::create(path)?))
    }

    /// Between the look and the change somebody else may still be faster where a tag is given: local disks know no such call. Formats
    /// that share a table take its lock first.
    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()> {
        let there = self.entry(path)?;
        if there.as_ref().and_then(Entry::tag) != tag {
            return Err(changed_meanwhile(&self.display(path)));
        }
        let mut file = AtomicFile::create(path)?;
        file.write_all(&bytes).at(&self.display(path), 0, "")?;
        if there.is_some() { file.commit() } else { file.commit_new() }
    }

    fn remove(&self, path: &Path) -> Result<()> {
        fs::remove_file(path).at(&self.display(path), 0, "")
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        match fs::remove_dir_all(path) {
            Err(error) if !is_nothing(&error) => Err(Error::from(error).at(&self.display(path), 0, "")),
            _ => Ok(()),
        }
    }

    fn remove_empty_folder(&self, path: &Path) -> Result<()> {
        fs::remove_dir(path).at(&self.display(path), 0, "")
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        let make = || {
            let missing =
                path.ancestors().take_while(|folder| !folder.as_os_str().is_empty() && !folder.is_dir());
            let missing: Vec<_> = missing.collect();
            fs::create_dir_all(path)?;
            missing.into_iter().rev().try_for_each(sync_parent)
        };
        make().at(&self.display(path), 0, "")
    }

    fn begin_folder(&self, path: &Path) -> Result<Option<Box<dyn UnfinishedFolder>>> {
        Ok(Some(Box::new(AtomicFolder::create(path)?)))
    }

    /// If it is interrupted, the file has its first `keep` bytes, and some of the new ones.
    fn replace_end(&self, path: &Path, size: u64, keep: u64, bytes: &[u8]) -> Result<()> {
        let name = self.display(path);
        let mut file = fs::OpenOptions::new().append(true).open(path).at(&name, 0, "")?;
        check_size(&name, file.metadata().at(&name, 0, "")?.len(), size)?;
        file.set_len(keep).at(&name, keep, "")?;
        file.write_all(bytes).at(&name, keep, "")?;
        file.sync_all().at(&name, keep, "")
    }

    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()> {
        set_aside(path, aside).at(&self.display(path), 0, "")
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>> {
        Lock::of_system(path)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn place(&self, path: &Path) -> Result<Place> {
        Place::of(path)
    }

    fn block_bytes(&self, path: &Path) -> Result<Option<u64>> {
        let metadata = fs::metadata(path).at(&self.display(path), 0, "")?;
        Ok(block_bytes(&metadata))
    }

    /// The folder itself: there is room for what will be in it.
    fn scratch(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }
}

/// A file in a folder of the local disk that has no name, and goes when it is closed: for what does not fit into memory. Errors call it `what`.
///
/// # Errors
/// [`crate::ErrorKind::Io`]
pub fn unnamed_file(folder: &Path, what: &str) -> Result<fs::File> {
    let named = |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"));
    tempfile::tempfile_in(folder).map_err(named).at(&folder.display().to_string(), 0, "")
}

/// A file gets a second name, since the first goes to the new file only when that is whole.
fn set_aside(path: &Path, aside: &Path) -> io::Result<()> {
    if fs::symlink_metadata(aside).is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    if !fs::symlink_metadata(path)?.is_file() {
        return fs::rename(path, aside);
    }
    match fs::hard_link(path, aside) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {}
        done => return done,
    }
    // Not every file system knows second names.
    let mut copy = fs::File::create_new(aside)?;
    io::copy(&mut fs::File::open(path)?, &mut copy)?;
    copy.sync_all()
}

impl UnfinishedFolder for AtomicFolder {
    fn path(&self) -> &Path {
        AtomicFolder::path(self)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.commit()
    }
}

impl Sink for AtomicFile {
    fn written(&mut self) -> Result<Option<SourceRef>> {
        let Some(path) = self.path().map(Path::to_path_buf) else { return Ok(None) };
        self.flush().at(&path.display().to_string(), 0, "")?;
        LocalStorage.open(&path).map(Some)
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.commit()
    }
}

/// Whether nothing has this path: also where a file is in the place of a folder on the way.
fn is_nothing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn entry(path: PathBuf, metadata: &Metadata) -> Entry {
    let kind = kind(metadata.file_type());
    let is_file = kind == EntryKind::File;
    Entry {
        path,
        kind,
        size: if is_file { metadata.len() } else { 0 },
        modified: metadata.modified().ok(),
        tag: is_file.then(|| tag(metadata)),
        is_link: false,
    }
}

fn kind(found: FileType) -> EntryKind {
    match (found.is_file(), found.is_dir()) {
        (true, _) => EntryKind::File,
        (_, true) => EntryKind::Folder,
        _ => EntryKind::Other,
    }
}

/// What has a name, but cannot be looked at: all in a folder that may only be listed, and links that lead nowhere, round, or to where
/// one may not look. It stays a file or a folder, so that opening it says why it cannot be.
fn unknown(path: PathBuf, listed_as: FileType) -> Entry {
    let is_link = listed_as.is_symlink();
    Entry { path, kind: kind(listed_as), size: 0, modified: None, tag: None, is_link }
}

/// A file that is written anew is another one, with another time; one that is changed in place has another size or time.
fn tag(metadata: &Metadata) -> Tag {
    let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let nanoseconds = since.map_or(0, |since| since.as_nanos());
    let (device, number) = identity(metadata);
    Tag::new(format!("{device:x}-{number:x}-{:x}-{nanoseconds:x}", metadata.len()))
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> (u64, u64) {
    (0, 0)
}

#[cfg(unix)]
fn block_bytes(metadata: &Metadata) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    Some(metadata.blksize())
}

#[cfg(not(unix))]
fn block_bytes(_metadata: &Metadata) -> Option<u64> {
    None
}

/// What is still to be visited, the next one last.
enum Step {
    Folder(PathBuf, usize),
    File(Entry),
}

struct LocalWalk {
    next: Vec<Step>,
    /// Folders by what they are, and not by name: links may lead to one twice, or round.
    seen: HashSet<PathBuf>,
}

impl LocalWalk {
    fn enter(&mut self, folder: &Path, level: usize) -> Result<()> {
        let name = folder.display().to_string();
        if !self.seen.insert(LocalStorage.real(folder)?) {
            return Ok(());
        }
        if level >= MOST_LEVELS {
            return Err(Error::invalid("lies too deep to be looked into").at(&name, 0, ""));
        }
        let entries = LocalStorage.list(folder)?;
        self.next.extend(entries.into_iter().rev().map(|entry| match entry.kind {
            EntryKind::Folder => Step::Folder(entry.path, level.saturating_add(1)),
            EntryKind::File | EntryKind::Other => Step::File(entry),
        }));
        Ok(())
    }
}

impl Iterator for LocalWalk {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.next.pop()? {
                Step::File(entry) => return Some(Ok(entry)),
                Step::Folder(folder, level) => match self.enter(&folder, level) {
                    Ok(()) => {}
                    Err(error) => return Some(Err(error)),
                },
            }
        }
    }
}
