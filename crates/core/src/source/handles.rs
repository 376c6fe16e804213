//! Files whose handles are closed and opened again as needed.
//!
//! A table may lie in more files than a process may have open. What is read through [`FileHandles`] keeps the handles
//! used last and opens the others again when they are needed.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;

use super::file::{check_kind, read_exact_at};
use super::{Source, check_range};
use crate::error::{AtPosition, Error, ErrorKind, Result};

/// Handles kept open by [`FileHandles::shared`] at most.
const SHARED_LIMIT: usize = 256;

/// How many of `allowed` handles are kept open for what is read: the others are for outputs, folders and the small files beside data.
fn share_of(allowed: Option<u64>) -> usize {
    let quarter = allowed.map_or(SHARED_LIMIT, |allowed| usize::try_from(allowed / 4).unwrap_or(usize::MAX));
    quarter.min(SHARED_LIMIT)
}

/// How many handles the system allows this process; `None` if it sets no bound.
#[cfg(unix)]
fn allowed_handles() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn allowed_handles() -> Option<u64> {
    None
}

/// The open handles of many files, at most so many at a time.
#[derive(Debug)]
pub struct FileHandles {
    limit: usize,
    next_file: AtomicU64,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// By number of the file: the handle and when it was used last.
    files: HashMap<u64, (Arc<File>, u64)>,
    /// Counts uses.
    clock: u64,
}

impl Open {
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.files.iter().min_by_key(|(_, (_, used))| *used).map(|(file, _)| *file);
        oldest.and_then(|file| self.files.remove(&file)).is_some()
    }
}

impl FileHandles {
    /// Keeps at most `limit` handles (one at least) besides those being read from at the moment.
    pub fn new(limit: usize) -> Self {
        Self { limit: limit.max(1), next_file: AtomicU64::new(0), open: Mutex::default() }
    }

    /// The handles of the whole process: many tables together stay below its limit.
    pub fn shared() -> Arc<Self> {
        static SHARED: OnceLock<Arc<FileHandles>> = OnceLock::new();
        Arc::clone(SHARED.get_or_init(|| Arc::new(Self::new(share_of(allowed_handles())))))
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if it cannot be opened, [`crate::ErrorKind::InvalidInput`] if it is a folder or a pipe.
    pub fn open(self: &Arc<Self>, path: impl AsRef<Path>) -> Result<PooledSource> {
        let path = path.as_ref();
        let name = path.display().to_string();
        check_kind(path).at(&name, 0, "")?;
        let file = self.open_file(path).at(&name, 0, "")?;
        let metadata = file.metadata().at(&name, 0, "")?;
        let number = self.next_file.fetch_add(1, Ordering::Relaxed);
        self.keep(number, Arc::new(file));
        Ok(PooledSource {
            name,
            path: path.to_path_buf(),
            size: metadata.len(),
            identity: identity(&metadata),
            number,
            handles: Arc::clone(self),
        })
    }

    /// How many handles are kept open now.
    pub fn open_count(&self) -> usize {
        self.lock().files.len()
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file; where the system has no handle left, one of ours is given up for it.
    fn open_file(&self, path: &Path) -> io::Result<File> {
        loop {
            match File::open(path) {
                Err(error) if is_shortage(&error) && self.lock().forget_oldest() => {}
                opened => return opened,
            }
        }
    }

    fn keep(&self, number: u64, file: Arc<File>) {
        let mut open = self.lock();
        while open.files.len() >= self.limit && open.forget_oldest() {}
        let used = open.clock.saturating_add(1);
        open.clock = used;
        open.files.insert(number, (file, used));
    }

    fn kept(&self, number: u64) -> Option<Arc<File>> {
        let mut open = self.lock();
        let now = open.clock.saturating_add(1);
        open.clock = now;
        let (file, used) = open.files.get_mut(&number)?;
        *used = now;
        Some(Arc::clone(file))
    }
}

/// Whether something failed because no more files can be open: the machine is to blame and not the data.
pub fn is_out_of_handles(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if is_shortage(error))
}

#[cfg(unix)]
fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[cfg(not(unix))]
fn is_shortage(error: &io::Error) -> bool {
    // ERROR_TOO_MANY_OPEN_FILES
    cfg!(windows) && error.raw_os_error() == Some(4)
}

/// What tells whether a path still names the same file.
#[cfg(unix)]
fn identity(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn identity(metadata: &Metadata) -> (u64, u64) {
    (0, metadata.len())
}

/// A local file that needs no handle while nobody reads it; see [`FileHandles`].
#[derive(Debug)]
pub struct PooledSource {
    name: String,
    path: PathBuf,
    size: u64,
    identity: (u64, u64),
    number: u64,
    handles: Arc<FileHandles>,
}

impl PooledSource {
    fn handle(&self) -> io::Result<Arc<File>> {
        if let Some(file) = self.handles.kept(self.number) {
            return Ok(file);
        }
        let file = Arc::new(self.handles.open_file(&self.path)?);
        if identity(&file.metadata()?) != self.identity {
            return Err(io::Error::other("the file was replaced while it was being read"));
        }
        self.handles.keep(self.number, Arc::clone(&file));
        Ok(file)
    }
}

impl Drop for PooledSource {
    fn drop(&mut self) {
        self.handles.lock().files.remove(&self.number);
    }
}

impl Source for PooledSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let length = check_range(&self.name, self.size, &range)?;
        let file = self.handle().at(&self.name, range.start, "read")?;
        read_exact_at(&file, length, range.start).at(&self.name, range.start, "read")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_takes_a_part_of_the_handles_there_are() {
        let shares = [None, Some(1 << 20), Some(1024), Some(256), Some(3)].map(share_of);
        assert_eq!(shares, [256, 256, 256, 64, 0]);
        // One is always kept.
        assert_eq!(FileHandles::new(0).limit, 1);
    }

    #[test]
    fn many_files_share_few_handles() {
        let folder = tempfile::tempdir().unwrap();
        let handles = Arc::new(FileHandles::new(4));
        let sources: Vec<_> = (0..40u8)
            .map(|number| {
                let path = folder.path().join(number.to_string());
                std::fs::write(&path, [number; 10]).unwrap();
                handles.open(path).unwrap()
            })
            .collect();
        for round in 0..3 {
            for (number, source) in (0..40u8).zip(&sources) {
                assert_eq!(source.read_at(round..round + 2).unwrap(), [number; 2].as_slice());
                assert!(handles.open_count() <= 4);
            }
        }
        drop(sources);
        assert_eq!(handles.open_count(), 0);
    }

    #[test]
    fn the_handles_used_last_stay() {
        let folder = tempfile::tempdir().unwrap();
        let handles = Arc::new(FileHandles::new(2));
        let open = |name: &str| {
            std::fs::write(folder.path().join(name), name).unwrap();
            handles.open(folder.path().join(name)).unwrap()
        };
        let (first, second) = (open("a"), open("b"));
        first.read_at(0..1).unwrap();
        let _third = open("c");
        assert!(handles.kept(first.number).is_some() && handles.kept(second.number).is_none());
    }

    #[test]
    #[cfg(unix)]
    fn a_file_put_in_the_place_of_another_is_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let handles = Arc::new(FileHandles::new(1));
        let path = folder.path().join("a");
        std::fs::write(&path, "old").unwrap();
        let source = handles.open(&path).unwrap();
        std::fs::write(folder.path().join("b"), "new").unwrap();
        let _other = handles.open(folder.path().join("b")).unwrap();
        std::fs::rename(folder.path().join("b"), &path).unwrap();
        let error = source.read_at(0..3).unwrap_err();
        assert!(!error.is_damage() && error.to_string().contains("replaced"), "{error}");
    }

    #[test]
    #[cfg(unix)]
    fn a_lack_of_handles_is_not_damage() {
        for code in [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE] {
            let error = Error::from(io::Error::from(code));
            assert!(is_out_of_handles(&error) && !error.is_damage());
        }
        assert!(!is_out_of_handles(&Error::from(io::Error::from(io::ErrorKind::NotFound))));
    }
}
