//! Where files lie: a local disk, memory, a store of objects.
//!
//! Formats take a [`Location`] and never ask what kind of storage is behind it. Three rules hold for every storage:
//!
//! - What cannot be looked at is an error that names the path. It never passes for "not there" or "empty".
//! - A file that is written appears under its name complete, when [`Sink::finish`] returns, or not at all.
//! - Paths are paths and not text: names that are not UTF-8 stay what they are. Text is made where something is shown.
//!
//! ```
//! use pilaster_core::storage::{Location, MemoryStorage};
//!
//! let folder = MemoryStorage::with_files("memory", [("t/a", "1"), ("t/b/c", "22")]).root().child("t");
//! let names: Vec<_> = folder.list()?.into_iter().map(|entry| entry.name().display().to_string()).collect();
//! assert_eq!(names, ["a", "b"]);
//! let sizes: Vec<_> = folder.walk().map(|entry| entry.map(|entry| entry.size())).collect::<Result<_, _>>()?;
//! assert_eq!(sizes, [1, 2]);
//! assert_eq!(folder.child("b").child("c").open()?.read_at(0..2)?, "22");
//! assert_eq!(folder.child("d").open().unwrap_err().to_string(), "memory/t/d: entity not found");
//! # Ok::<(), pilaster_core::Error>(())
//! ```

mod local;
mod location;
mod lock;
mod memory;
mod new_file;
mod new_folder;
#[cfg(feature = "object_store")]
mod object;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt::Debug;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;

use crate::atomic::Place;
use crate::error::{AtPosition, Error, ErrorKind, Result};
use crate::source::SourceRef;

pub use local::{LocalStorage, unnamed_file};
pub use location::Location;
pub use lock::Lock;
pub use memory::MemoryStorage;
pub use new_file::{NewFile, SharedFile};
pub use new_folder::{NewFolder, UnfinishedFolder};
#[cfg(feature = "object_store")]
pub use object::ObjectStorage;

/// What is copied at once where a file is written anew.
const COPY_BYTES: usize = 1 << 20;

/// What a walk gives, one after the other: files, and errors for what could not be looked at.
pub type Walk = Box<dyn Iterator<Item = Result<Entry>> + Send>;

/// A place that holds files in folders. All calls wait; how many requests are under way at a time is the storage's matter.
pub trait Storage: Debug + Send + Sync {
    /// How `path` is shown to people, and named in errors.
    fn display(&self, path: &Path) -> String;

    /// What is at `path`, links followed; `None` if nothing is.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be looked at.
    fn entry(&self, path: &Path) -> Result<Option<Entry>>;

    /// Whether a link has this path, wherever it leads.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be looked at.
    fn is_link(&self, _path: &Path) -> Result<bool> {
        Ok(false)
    }

    /// The path behind all links, by which it shows that two paths lead to the same folder.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be looked at, or if nothing is there and the storage can tell.
    fn real(&self, path: &Path) -> Result<PathBuf> {
        Ok(path.to_path_buf())
    }

    /// What is in `folder`, one level, in the order of names.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be listed; so is a folder that is not there, where folders exist without files.
    fn list(&self, folder: &Path) -> Result<Vec<Entry>>;

    /// All files below `folder`, in the order of names, with their paths. A folder that cannot be listed is one error among the entries.
    fn walk(&self, folder: &Path) -> Walk;

    /// Opens a file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if it cannot be opened, [`ErrorKind::InvalidInput`] if it is no file.
    fn open(&self, path: &Path) -> Result<SourceRef>;

    /// Begins a file that gets its name when it is finished. One that is there stays until then, and is replaced.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if nothing can be written there.
    fn create(&self, path: &Path) -> Result<Box<dyn Sink>>;

    /// Writes a small file whose content others may change too, such as the list of a table's segments: only if the one that is there has
    /// `tag`, or if none is there and `tag` is `None`.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] with [`io::ErrorKind::AlreadyExists`] if somebody else was faster.
    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()>;

    /// Removes a file. One that is not there is an error where the storage can tell.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]
    fn remove(&self, path: &Path) -> Result<()>;

    /// Removes a folder with all that is in it. One that is not there is none to be removed.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; then a part of it may be gone.
    fn remove_folder(&self, path: &Path) -> Result<()> {
        for entry in self.walk(path) {
            match entry {
                Ok(entry) => self.remove(entry.path())?,
                Err(error) if is_not_found(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Removes a folder if nothing is in it, where folders exist without files.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], also if something is in it.
    fn remove_empty_folder(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Makes a folder and those it is in, where folders exist without files. One that is there is left as it is.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]
    fn make_folder(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Begins a folder that gets its name when it is complete; nothing may be at `path`, or an empty folder. `None` where names cannot be
    /// changed: [`NewFolder`] is for both.
    ///
    /// # Errors
    /// As [`NewFolder::create`].
    fn begin_folder(&self, _path: &Path) -> Result<Option<Box<dyn UnfinishedFolder>>> {
        Ok(None)
    }

    /// Replaces what a file of `size` bytes has behind its first `keep` bytes: where it lies if the storage can, else as a new file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if the file has another size by now; [`ErrorKind::Io`].
    fn replace_end(&self, path: &Path, size: u64, keep: u64, bytes: &[u8]) -> Result<()> {
        let name = self.display(path);
        let source = self.open(path)?;
        check_size(&name, source.size(), size)?;
        let mut sink = self.create(path)?;
        for start in (0..keep).step_by(COPY_BYTES) {
            let end = keep.min(start.saturating_add(COPY_BYTES as u64));
            sink.write_all(&source.read_at(start..end)?).at(&name, start, "")?;
        }
        sink.write_all(bytes).at(&name, keep, "")?;
        sink.finish()
    }

    /// Gives what is at `path` another name, so that a file can be written in its place. A file stays there too until it is
    /// replaced; what is no file would be written to, or through, and makes way.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], with [`io::ErrorKind::AlreadyExists`] if something has the other name.
    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()>;

    /// Takes a lock by the name of a file; `None` if somebody has it. The folder must be there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]
    fn try_lock(&self, path: &Path) -> Result<Option<Lock>>;

    /// Whether paths are those of the local disk.
    fn is_local(&self) -> bool {
        false
    }

    /// What lies under a name that is to be written.
    ///
    /// # Errors
    /// As [`Place::of`].
    fn place(&self, path: &Path) -> Result<Place> {
        let path = path.to_path_buf();
        match self.entry(&path)?.map(|entry| entry.kind()) {
            None => Ok(Place::Free(path)),
            Some(EntryKind::Folder) => Ok(Place::Folder(path)),
            Some(EntryKind::File | EntryKind::Other) => Ok(Place::File(path)),
        }
    }

    /// How many bytes the file system gives to a file at a time, where there is one that says so.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]
    fn block_bytes(&self, _path: &Path) -> Result<Option<u64>> {
        Ok(None)
    }

    /// A folder of the local disk, which is there, for what does not fit into memory while something is written into the folder `path`.
    fn scratch(&self, _path: &Path) -> PathBuf {
        std::env::temp_dir()
    }
}

/// A file being written. Dropped before [`Sink::finish`], it leaves nothing behind.
pub trait Sink: Write + Send + Debug {
    /// What was written so far, to be read before the file has its name; `None` where only finished files can be read.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]
    fn written(&mut self) -> Result<Option<SourceRef>> {
        Ok(None)
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; then the name is as it was before.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// What kind of thing has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// Something from which no rows are read: a pipe, a device, a socket, a link that leads nowhere, round, or to where one may not look.
    Other,
}

/// Something in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    path: PathBuf,
    kind: EntryKind,
    size: u64,
    modified: Option<SystemTime>,
    tag: Option<Tag>,
    is_link: bool,
}

impl Entry {
    /// The path in its storage.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of the path; empty only for the root of a storage.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// What it is, links followed.
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// Whether it is a file.
    pub fn is_file(&self) -> bool {
        self.kind == EntryKind::File
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        self.kind == EntryKind::Folder
    }

    /// Whether a link has the name, which leads to what [`Entry::kind`] says; only a folder's list tells.
    pub fn is_link(&self) -> bool {
        self.is_link
    }

    /// The bytes of a file, where they can be told; else 0.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When it was changed last, where the storage knows.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// What is another one as soon as the file is.
    pub fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }
}

/// Stands for the content of a file: as long as the tag is the same, so is the file, as far as its storage can tell.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Tag(String);

impl Tag {
    /// A tag as its storage writes it.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, to keep it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether an error says that something is not there, and not that it could not be looked at.
pub fn is_not_found(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound)
}

/// Refuses a file that has changed since somebody looked at it.
fn check_size(name: &str, size: u64, known: u64) -> Result<()> {
    match size == known {
        true => Ok(()),
        false => {
            let message = format!("has {size} bytes, and had {known} when it was looked at");
            Err(Error::invalid(message).at(name, 0, ""))
        }
    }
}

fn not_found(name: &str) -> Error {
    Error::from(io::Error::from(io::ErrorKind::NotFound)).at(name, 0, "")
}

fn changed_meanwhile(name: &str) -> Error {
    let message = "was changed by somebody else meanwhile";
    Error::from(io::Error::new(io::ErrorKind::AlreadyExists, message)).at(name, 0, "")
}
