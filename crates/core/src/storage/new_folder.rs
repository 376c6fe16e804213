//! A folder that is filled at a [`Location`].

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::{Entry, Location, Lock, Sink, Storage, Tag, Walk, is_not_found};
use crate::atomic::Place;
use crate::error::{Error, Result};
use crate::source::SourceRef;

/// A folder being filled under another name, which it loses when it is complete. Dropped before, it leaves nothing behind.
pub trait UnfinishedFolder: Debug + Send {
    /// Where its files go meanwhile.
    fn path(&self) -> &Path;

    /// Gives the folder its name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A folder being filled. Dropped before [`NewFolder::finish`], it leaves nothing behind.
///
/// On a disk the files lie in a folder of another name meanwhile, so that all of them appear at once. Where names cannot be changed (in a
/// store of objects) each file appears when it is finished. Formats therefore write the file without which nobody takes a folder for
/// a table last.
#[derive(Debug)]
pub struct NewFolder {
    place: Location,
    target: Location,
    filled: Filled,
}

#[derive(Debug)]
enum Filled {
    Elsewhere(Box<dyn UnfinishedFolder>),
    InPlace(Arc<Recorded>),
}

impl NewFolder {
    /// Begins the folder that will be `target`, which must not exist yet, or be empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it exists and is not an empty folder, [`crate::ErrorKind::Io`] if it cannot be looked at or
    /// made.
    pub fn create(target: impl Into<Location>) -> Result<Self> {
        let target = target.into();
        if let Some(folder) = target.storage().begin_folder(target.path())? {
            let place = target.beside(folder.path());
            return Ok(Self { place, target, filled: Filled::Elsewhere(folder) });
        }
        let is_free = match target.list() {
            Ok(entries) => entries.is_empty(),
            // Of a file a store of objects says that no folder of this name is there.
            Err(_) if target.is_file()? => false,
            Err(error) if is_not_found(&error) => true,
            Err(error) => return Err(error),
        };
        if !is_free {
            return Err(target.blame(Error::invalid("exists already and is not an empty folder")));
        }
        let recorded = Arc::new(Recorded { inner: Arc::clone(target.storage()), written: Mutex::default() });
        let place = Location::new(Arc::clone(&recorded) as Arc<dyn Storage>, target.path());
        Ok(Self { place, target, filled: Filled::InPlace(recorded) })
    }

    /// Where to put the files.
    pub fn place(&self) -> &Location {
        &self.place
    }

    /// Where they will be.
    pub fn target(&self) -> &Location {
        &self.target
    }

    /// Gives the folder its name. Its files must be finished.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]
    pub fn finish(self) -> Result<()> {
        match self.filled {
            Filled::Elsewhere(folder) => folder.finish(),
            Filled::InPlace(recorded) => {
                recorded.keep();
                Ok(())
            }
        }
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // Last first: what makes a table of the files goes before them. Nobody is left to tell if this fails.
        for path in self.take().into_iter().rev() {
            let _ = self.inner.remove(&path);
        }
    }
}

/// A storage that knows what was written through it, and removes that when it is dropped.
#[derive(Debug)]
struct Recorded {
    inner: Arc<dyn Storage>,
    written: Mutex<Written>,
}

/// Files in the order in which they were begun.
#[derive(Debug, Default)]
struct Written {
    known: BTreeSet<PathBuf>,
    in_order: Vec<PathBuf>,
}

impl Recorded {
    fn note(&self, path: &Path) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.known.insert(path.to_path_buf()) {
            written.in_order.push(path.to_path_buf());
        }
    }

    fn take(&self) -> Vec<PathBuf> {
        std::mem::take(&mut *self.written.lock().unwrap_or_else(PoisonError::into_inner)).in_order
    }

    /// Lets what was written stay.
    fn keep(&self) {
        self.take();
    }
}

impl Storage for Recorded {
    fn display(&self, path: &Path) -> String {
        self.inner.display(path)
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        self.inner.entry(path)
    }

    fn is_link(&self, path: &Path) -> Result<bool> {
        self.inner.is_link(path)
    }

    fn real(&self, path: &Path) -> Result<PathBuf> {
        self.inner.real(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.inner.list(folder)
    }

    fn walk(&self, folder: &Path) -> Walk {
        self.inner.walk(folder)
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        self.inner.open(path)
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Sink>> {
        let sink = self.inner.create(path)?;
        self.note(path);
        Ok(sink)
    }

    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()> {
        self.note(path);
        self.inner.replace_if(path, tag, bytes)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.inner.remove(path)
    }

    fn remove_empty_folder(&self, path: &Path) -> Result<()> {
        self.inner.remove_empty_folder(path)
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        self.inner.make_folder(path)
    }

    fn replace_end(&self, path: &Path, size: u64, keep: u64, bytes: &[u8]) -> Result<()> {
        self.inner.replace_end(path, size, keep, bytes)
    }

    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()> {
        self.note(aside);
        self.inner.set_aside(path, aside)
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.inner.try_lock(path)
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn place(&self, path: &Path) -> Result<Place> {
        self.inner.place(path)
    }

    fn block_bytes(&self, path: &Path) -> Result<Option<u64>> {
        self.inner.block_bytes(path)
    }

    fn scratch(&self, path: &Path) -> PathBuf {
        self.inner.scratch(path)
    }
}
