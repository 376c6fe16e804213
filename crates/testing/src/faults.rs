//! A storage of which one call goes wrong.
//!
//! ```
//! use std::io::ErrorKind;
//! use pilaster_core::storage::MemoryStorage;
//! use pilaster_testing::faults::{Fault, faulty};
//!
//! let folder = MemoryStorage::with_files("memory", [("t/a", "1")]).root();
//! let (folder, faults) = faulty(&folder, 1, Fault::Refuse(ErrorKind::PermissionDenied));
//! assert_eq!(folder.child("t").list()?.len(), 1);
//! assert!(folder.child("t").child("a").open().is_err());
//! assert_eq!(faults.happened(), Some(("open", "memory/t/a".to_string())));
//! # Ok::<(), pilaster_core::Error>(())
//! ```

use std::fmt::Debug;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use pilaster_core::atomic::Place;
use pilaster_core::storage::{Entry, Lock, Sink, Storage, Tag, UnfinishedFolder, Walk};
use pilaster_core::{Error, Location, Result, Source, SourceRef};

/// What happens instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The call fails.
    Refuse(io::ErrorKind),
    /// A file that is opened has half of its bytes; other calls fail with an early end.
    Cut,
    /// A byte in the middle of what is read is another one; other calls are as they are.
    Change,
    /// The call takes longer.
    Delay(Duration),
    /// The call fails, and all that follow: what is there then is what a program leaves that ends in the middle.
    End,
}

/// Counts calls, and knows which one goes wrong.
#[derive(Debug)]
pub struct Faults {
    at: u64,
    fault: Fault,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    calls: u64,
    happened: Option<(&'static str, String)>,
}

/// The same place, whose call number `at` (from 0) goes wrong: of all that look, list, open, read, write and finish.
pub fn faulty(place: &Location, at: u64, fault: Fault) -> (Location, Arc<Faults>) {
    let faults = Arc::new(Faults { at, fault, state: Mutex::default() });
    let storage = FaultyStorage { inner: Arc::clone(place.storage()), faults: Arc::clone(&faults) };
    (Location::new(Arc::new(storage), place.path()), faults)
}

impl Faults {
    /// The call that went wrong, and the path it was for; `None` as long as there were fewer calls.
    pub fn happened(&self) -> Option<(&'static str, String)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).happened.clone()
    }

    /// How many calls there were.
    pub fn calls(&self) -> u64 {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).calls
    }

    /// Counts a call; the fault, if it is its turn.
    fn turn(&self, call: &'static str, name: &str) -> Option<Fault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let number = state.calls;
        state.calls += 1;
        if number != self.at && !(self.fault == Fault::End && number > self.at) {
            return None;
        }
        state.happened.get_or_insert_with(|| (call, name.to_string()));
        drop(state);
        if let Fault::Delay(time) = self.fault {
            std::thread::sleep(time);
        }
        Some(self.fault)
    }

    /// For calls that give no bytes.
    fn pass(&self, call: &'static str, name: &str) -> Result<()> {
        match self.turn(call, name) {
            Some(Fault::Refuse(kind)) => Err(Error::from(io::Error::from(kind)).at(name, 0, "")),
            Some(Fault::Cut) => {
                Err(Error::from(io::Error::from(io::ErrorKind::UnexpectedEof)).at(name, 0, ""))
            }
            Some(Fault::End) => Err(Error::from(ended()).at(name, 0, "")),
            Some(Fault::Change | Fault::Delay(_)) | None => Ok(()),
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the program has ended")
}

#[derive(Debug)]
struct FaultyStorage {
    inner: Arc<dyn Storage>,
    faults: Arc<Faults>,
}

impl FaultyStorage {
    fn pass(&self, call: &'static str, path: &Path) -> Result<()> {
        self.faults.pass(call, &self.display(path))
    }
}

impl Storage for FaultyStorage {
    fn display(&self, path: &Path) -> String {
        self.inner.display(path)
    }

    fn entry(&self, path: &Path) -> Result<Option<Entry>> {
        self.pass("entry", path)?;
        self.inner.entry(path)
    }

    fn is_link(&self, path: &Path) -> Result<bool> {
        self.pass("link", path)?;
        self.inner.is_link(path)
    }

    fn real(&self, path: &Path) -> Result<PathBuf> {
        self.pass("real", path)?;
        self.inner.real(path)
    }

    fn list(&self, folder: &Path) -> Result<Vec<Entry>> {
        self.pass("list", folder)?;
        self.inner.list(folder)
    }

    fn walk(&self, folder: &Path) -> Walk {
        match self.pass("walk", folder) {
            Ok(()) => self.inner.walk(folder),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn open(&self, path: &Path) -> Result<SourceRef> {
        let name = self.display(path);
        let fault = self.faults.turn("open", &name);
        match fault {
            Some(Fault::Refuse(kind)) => return Err(Error::from(io::Error::from(kind)).at(&name, 0, "")),
            Some(Fault::End) => return Err(Error::from(ended()).at(&name, 0, "")),
            Some(Fault::Cut | Fault::Change | Fault::Delay(_)) | None => {}
        }
        let inner = self.inner.open(path)?;
        let size = if fault == Some(Fault::Cut) { inner.size() / 2 } else { inner.size() };
        Ok(Arc::new(FaultySource { inner, size, faults: Arc::clone(&self.faults) }))
    }

    fn create(&self, path: &Path) -> Result<Box<dyn Sink>> {
        self.pass("create", path)?;
        let inner = self.inner.create(path)?;
        Ok(Box::new(FaultySink { inner, name: self.display(path), faults: Arc::clone(&self.faults) }))
    }

    fn replace_if(&self, path: &Path, tag: Option<&Tag>, bytes: Bytes) -> Result<()> {
        self.pass("replace", path)?;
        self.inner.replace_if(path, tag, bytes)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.pass("remove", path)?;
        self.inner.remove(path)
    }

    fn remove_folder(&self, path: &Path) -> Result<()> {
        self.pass("remove folder", path)?;
        self.inner.remove_folder(path)
    }

    fn remove_empty_folder(&self, path: &Path) -> Result<()> {
        self.pass("remove empty folder", path)?;
        self.inner.remove_empty_folder(path)
    }

    fn make_folder(&self, path: &Path) -> Result<()> {
        self.pass("make folder", path)?;
        self.inner.make_folder(path)
    }

    fn begin_folder(&self, path: &Path) -> Result<Option<Box<dyn UnfinishedFolder>>> {
        self.pass("begin folder", path)?;
        let Some(inner) = self.inner.begin_folder(path)? else { return Ok(None) };
        let (name, faults) = (self.display(path), Arc::clone(&self.faults));
        Ok(Some(Box::new(FaultyFolder { inner, name, faults })))
    }

    fn replace_end(&self, path: &Path, size: u64, keep: u64, bytes: &[u8]) -> Result<()> {
        self.pass("replace end", path)?;
        self.inner.replace_end(path, size, keep, bytes)
    }

    fn set_aside(&self, path: &Path, aside: &Path) -> Result<()> {
        self.pass("set aside", path)?;
        self.inner.set_aside(path, aside)
    }

    fn try_lock(&self, path: &Path) -> Result<Option<Lock>> {
        self.pass("lock", path)?;
        self.inner.try_lock(path)
    }

    fn is_local(&self) -> bool {
        self.inner.is_local()
    }

    fn place(&self, path: &Path) -> Result<Place> {
        self.pass("place", path)?;
        self.inner.place(path)
    }

    fn block_bytes(&self, path: &Path) -> Result<Option<u64>> {
        self.inner.block_bytes(path)
    }

    fn scratch(&self, path: &Path) -> PathBuf {
        self.inner.scratch(path)
    }
}

#[derive(Debug)]
struct FaultyFolder {
    inner: Box<dyn UnfinishedFolder>,
    name: String,
    faults: Arc<Faults>,
}

impl UnfinishedFolder for FaultyFolder {
    fn path(&self) -> &Path {
        self.inner.path()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.faults.pass("rename", &self.name)?;
        self.inner.finish()
    }
}

#[derive(Debug)]
struct FaultySource {
    inner: SourceRef,
    size: u64,
    faults: Arc<Faults>,
}

impl Source for FaultySource {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        if range.end > self.size {
            return Err(Error::corrupt(format!("bytes up to {}", range.end), self.size).at(
                self.name(),
                0,
                "",
            ));
        }
        let failed = |kind: io::ErrorKind| {
            Error::from(io::Error::from(kind)).at(self.inner.name(), range.start, "read")
        };
        match self.faults.turn("read", self.name()) {
            Some(Fault::Refuse(kind)) => Err(failed(kind)),
            Some(Fault::Cut) => Err(failed(io::ErrorKind::UnexpectedEof)),
            Some(Fault::End) => Err(Error::from(ended()).at(self.inner.name(), range.start, "read")),
            Some(Fault::Change) => {
                let mut bytes = self.inner.read_at(range)?.to_vec();
                let middle = bytes.len() / 2;
                if let Some(byte) = bytes.get_mut(middle) {
                    *byte ^= 0x20;
                }
                Ok(bytes.into())
            }
            Some(Fault::Delay(_)) | None => self.inner.read_at(range),
        }
    }
}

#[derive(Debug)]
struct FaultySink {
    inner: Box<dyn Sink>,
    name: String,
    faults: Arc<Faults>,
}

impl Write for FaultySink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.faults.turn("write", &self.name) {
            Some(Fault::Refuse(kind)) => Err(kind.into()),
            Some(Fault::Cut) => Err(io::ErrorKind::WriteZero.into()),
            Some(Fault::End) => Err(ended()),
            Some(Fault::Change | Fault::Delay(_)) | None => self.inner.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl Sink for FaultySink {
    fn written(&mut self) -> Result<Option<SourceRef>> {
        self.faults.pass("written", &self.name)?;
        self.inner.written()
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.faults.pass("finish", &self.name)?;
        self.inner.finish()
    }
}
