//! A path in a storage.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, LocalStorage, Lock, NewFile, Storage, Tag};
use crate::atomic::Place;
use crate::error::{Error, Result};
use crate::source::SourceRef;

/// A file or a folder, wherever it lies; nothing is looked at before it is asked for.
#[derive(Clone)]
pub struct Location {
    storage: Arc<dyn Storage>,
    path: PathBuf,
}

impl Location {
    /// A path in `storage`.
    pub fn new(storage: Arc<dyn Storage>, path: impl Into<PathBuf>) -> Self {
        Self { storage, path: path.into() }
    }

    /// A path of the local disk.
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self::new(LocalStorage::shared(), path)
    }

    /// A local path, or an address such as `s3://bucket/key` where the feature for it is built in.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if an address makes no sense, [`crate::ErrorKind::Unsupported`] if the build lacks the feature it
    /// needs.
    pub fn parse(address: &str) -> Result<Self> {
        match address.split_once("://") {
            None => Ok(Self::local(address)),
            Some(("file", path)) => Ok(Self::local(path)),
            Some((scheme, _)) => remote(address, scheme),
        }
    }

    /// What is called `name` in this folder.
    #[must_use]
    pub fn child(&self, name: impl AsRef<Path>) -> Self {
        Self { storage: Arc::clone(&self.storage), path: self.path.join(name) }
    }

    /// The folder that this is in, if its path names one.
    pub fn parent(&self) -> Option<Self> {
        let parent = self.path.parent()?;
        Some(Self { storage: Arc::clone(&self.storage), path: parent.to_path_buf() })
    }

    /// Another path of the same storage, such as that of an [`Entry`].
    #[must_use]
    pub fn beside(&self, path: impl Into<PathBuf>) -> Self {
        Self { storage: Arc::clone(&self.storage), path: path.into() }
    }

    /// What has the same path but for the end of its name, which is `extension` instead.
    #[must_use]
    pub fn with_extension(&self, extension: &str) -> Self {
        self.beside(self.path.with_extension(extension))
    }

    /// The path in its storage.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The last part of the path; empty for the root of a storage.
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }

    /// The storage.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.storage
    }

    /// What is here; see [`Storage::entry`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if it cannot be looked at.
    pub fn entry(&self) -> Result<Option<Entry>> {
        self.storage.entry(&self.path)
    }

    /// Whether this is a file.
    ///
    /// # Errors
    /// As [`Location::entry`].
    pub fn is_file(&self) -> Result<bool> {
        Ok(self.entry()?.is_some_and(|entry| entry.is_file()))
    }

    /// Whether this is a folder.
    ///
    /// # Errors
    /// As [`Location::entry`].
    pub fn is_folder(&self) -> Result<bool> {
        Ok(self.entry()?.is_some_and(|entry| entry.is_folder()))
    }

    /// Whether a link has this path; see [`Storage::is_link`].
    ///
    /// # Errors
    /// As [`Storage::is_link`].
    pub fn is_link(&self) -> Result<bool> {
        self.storage.is_link(&self.path)
    }

    /// Where this is behind all links; see [`Storage::real`].
    ///
    /// # Errors
    /// As [`Storage::real`].
    pub fn real(&self) -> Result<Self> {
        Ok(self.beside(self.storage.real(&self.path)?))
    }

    /// Where this is in `folder`; `None` if it is not in it.
    pub fn below(&self, folder: &Self) -> Option<&Path> {
        self.path
            .strip_prefix(&folder.path)
            .ok()
            .filter(|_| self.storage_address() == folder.storage_address())
    }

    /// What tells storages apart.
    fn storage_address(&self) -> usize {
        Arc::as_ptr(&self.storage).cast::<()>().addr()
    }

    /// What is in this folder; see [`Storage::list`].
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if it cannot be listed.
    pub fn list(&self) -> Result<Vec<Entry>> {
        self.storage.list(&self.path)
    }

    /// All files below this folder; see [`Storage::walk`].
    pub fn walk(&self) -> super::Walk {
        self.storage.walk(&self.path)
    }

    /// Opens this file.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open(&self) -> Result<SourceRef> {
        self.storage.open(&self.path)
    }

    /// All bytes of this file, which must not be more than `most`.
    ///
    /// # Errors
    /// As [`Storage::open`], and [`crate::ErrorKind::LimitExceeded`] with the name of the limit.
    pub fn read(&self, limit: &'static str, most: u64) -> Result<Bytes> {
        let source = self.open()?;
        let found = source.size();
        if found > most {
            let kind = crate::ErrorKind::LimitExceeded { limit, max: most, found };
            return Err(Error::new(kind).at(source.name(), 0, ""));
        }
        source.read_at(0..found)
    }

    /// Begins to write this file; see [`Storage::create`].
    ///
    /// # Errors
    /// As [`Storage::create`].
    pub fn create(&self) -> Result<NewFile> {
        NewFile::begin(self)
    }

    /// Writes this file, which appears whole.
    ///
    /// # Errors
    /// As [`Storage::create`] and [`super::Sink::finish`].
    pub fn write(&self, bytes: &[u8]) -> Result<()> {
        let mut file = self.create()?;
        file.write_all(bytes)?;
        file.finish()
    }

    /// Writes this file unless somebody else did meanwhile; see [`Storage::replace_if`].
    ///
    /// # Errors
    /// As [`Storage::replace_if`].
    pub fn replace_if(&self, tag: Option<&Tag>, bytes: impl Into<Bytes>) -> Result<()> {
        self.storage.replace_if(&self.path, tag, bytes.into())
    }

    /// Removes this file.
    ///
    /// # Errors
    /// As [`Storage::remove`].
    pub fn remove(&self) -> Result<()> {
        self.storage.remove(&self.path)
    }

    /// Removes this folder with all that is in it; see [`Storage::remove_folder`].
    ///
    /// # Errors
    /// As [`Storage::remove_folder`].
    pub fn remove_folder(&self) -> Result<()> {
        self.storage.remove_folder(&self.path)
    }

    /// Removes this folder if nothing is in it; see [`Storage::remove_empty_folder`].
    ///
    /// # Errors
    /// As [`Storage::remove_empty_folder`].
    pub fn remove_empty_folder(&self) -> Result<()> {
        self.storage.remove_empty_folder(&self.path)
    }

    /// Makes this folder; see [`Storage::make_folder`].
    ///
    /// # Errors
    /// As [`Storage::make_folder`].
    pub fn make_folder(&self) -> Result<()> {
        self.storage.make_folder(&self.path)
    }

    /// Replaces the end of this file; see [`Storage::replace_end`].
    ///
    /// # Errors
    /// As [`Storage::replace_end`].
    pub fn replace_end(&self, size: u64, keep: u64, bytes: &[u8]) -> Result<()> {
        self.storage.replace_end(&self.path, size, keep, bytes)
    }

    /// Gives what is here the name `aside`, which is in the same folder; see [`Storage::set_aside`].
    ///
    /// # Errors
    /// As [`Storage::set_aside`].
    pub fn set_aside(&self, aside: impl AsRef<Path>) -> Result<Self> {
        let aside = self.beside(self.path.with_file_name(aside.as_ref()));
        self.storage.set_aside(&self.path, &aside.path)?;
        Ok(aside)
    }

    /// Takes a lock by the name of this file; see [`Storage::try_lock`].
    ///
    /// # Errors
    /// As [`Storage::try_lock`].
    pub fn try_lock(&self) -> Result<Option<Lock>> {
        self.storage.try_lock(&self.path)
    }

    /// The path, if it is one of the local disk.
    pub fn local_path(&self) -> Option<&Path> {
        self.storage.is_local().then_some(self.path.as_path())
    }

    /// What lies under this name, which is to be written; see [`Storage::place`].
    ///
    /// # Errors
    /// As [`Storage::place`].
    pub fn place(&self) -> Result<Place> {
        self.storage.place(&self.path)
    }

    /// How many bytes the file system gives to a file at a time; see [`Storage::block_bytes`].
    ///
    /// # Errors
    /// As [`Storage::block_bytes`].
    pub fn block_bytes(&self) -> Result<Option<u64>> {
        self.storage.block_bytes(&self.path)
    }

    /// A folder of the local disk for what does not fit into memory while this folder is written; see [`Storage::scratch`].
    pub fn scratch(&self) -> PathBuf {
        self.storage.scratch(&self.path)
    }

    /// An error that names this place.
    pub fn blame(&self, error: Error) -> Error {
        error.at(&self.to_string(), 0, "")
    }
}

/// The same path of the same storage.
impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Location {}

/// By path.
impl Ord for Location {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.path, self.storage_address()).cmp(&(&other.path, other.storage_address()))
    }
}

impl PartialOrd for Location {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.path, self.storage_address()).hash(state);
    }
}

/// Paths are those of the local disk; [`Location::parse`] takes addresses too.
impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::local(path)
    }
}

impl From<&PathBuf> for Location {
    fn from(path: &PathBuf) -> Self {
        Self::local(path)
    }
}

impl From<PathBuf> for Location {
    fn from(path: PathBuf) -> Self {
        Self::local(path)
    }
}

impl From<&Location> for Location {
    fn from(location: &Location) -> Self {
        location.clone()
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.storage.display(&self.path))
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Location({self})")
    }
}

#[cfg(feature = "object_store")]
fn remote(address: &str, scheme: &str) -> Result<Location> {
    if matches!(scheme, "hdfs" | "viewfs") && !cfg!(feature = "hdfs") {
        return Err(missing_feature(address, "hdfs"));
    }
    super::ObjectStorage::of_address(address)
}

#[cfg(not(feature = "object_store"))]
fn remote(address: &str, scheme: &str) -> Result<Location> {
    let feature = match scheme {
        "hdfs" | "viewfs" => "hdfs",
        "s3" | "s3a" | "gs" | "az" | "azure" | "abfs" | "abfss" | "adl" | "http" | "https" => "object_store",
        other => {
            return Err(Error::invalid(format!("no such kind of address: {other}://")).at(address, 0, ""));
        }
    };
    Err(missing_feature(address, feature))
}

#[cfg_attr(
    all(feature = "object_store", feature = "hdfs"),
    expect(dead_code, reason = "nothing is missing then")
)]
fn missing_feature(address: &str, feature: &str) -> Error {
    Error::unsupported(format!("this build has no {feature} support; build it with `--features {feature}`"))
        .at(address, 0, "")
}
