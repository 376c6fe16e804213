//! Locks over files.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::Storage;
use crate::error::{AtPosition, ErrorKind, Result};

/// A lock that is held; dropped, it is free.
#[derive(Debug)]
pub struct Lock {
    _held: Held,
}

#[derive(Debug)]
enum Held {
    System(#[expect(dead_code, reason = "dropped in time")] SystemLock),
    File(#[expect(dead_code, reason = "dropped in time")] LockFile),
}

/// Locks of this process. The system's are between processes only, and closing any handle of a file gives them up: a file
/// that is locked must not even be opened again.
static HELD: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// A lock of the operating system over a file. That the file exists means nothing.
#[derive(Debug)]
struct SystemLock {
    path: PathBuf,
    file: Option<File>,
}

impl Lock {
    /// The system's lock over the file at `path`, which is made if it is not there; `None` if somebody has it.
    pub(super) fn of_system(path: &Path) -> Result<Option<Self>> {
        let name = path.display().to_string();
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = std::fs::canonicalize(folder).at(&name, 0, "")?;
        let real = folder.join(path.file_name().unwrap_or_default());
        let lock = SystemLock::try_take(&real).at(&name, 0, "")?;
        Ok(lock.map(|lock| Self { _held: Held::System(lock) }))
    }

    /// A file at `path` that nobody else has made, which goes with the lock; `None` if there is one.
    pub(super) fn of_file(storage: Arc<dyn Storage>, path: &Path) -> Result<Option<Self>> {
        match storage.replace_if(path, None, Bytes::from(holder())) {
            Ok(()) => {
                let lock = LockFile { storage, path: path.to_path_buf() };
                Ok(Some(Self { _held: Held::File(lock) }))
            }
            Err(error) if is_there(error.kind()) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// What no other lock says: a file that says the same is taken for one's own, of which the answer was lost.
fn holder() -> String {
    static TAKEN: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("process {}, {time} ns, lock {}", std::process::id(), TAKEN.fetch_add(1, Ordering::Relaxed))
}

fn is_there(kind: &ErrorKind) -> bool {
    matches!(kind, ErrorKind::Io(error) if error.kind() == io::ErrorKind::AlreadyExists)
}

impl SystemLock {
    fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        if held.contains(path) {
            return Ok(None);
        }
        let file = File::options().create(true).append(true).read(true).open(path)?;
        if !lock_file(&file)? {
            return Ok(None);
        }
        held.insert(path.to_path_buf());
        Ok(Some(Self { path: path.to_path_buf(), file: Some(file) }))
    }
}

impl Drop for SystemLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        self.file = None;
        held.remove(&self.path);
    }
}

/// A file that stands for a lock.
#[derive(Debug)]
struct LockFile {
    storage: Arc<dyn Storage>,
    path: PathBuf,
}

impl Drop for LockFile {
    fn drop(&mut self) {
        // If it stays, the next who wants the lock is told its name.
        let _ = self.storage.remove(&self.path);
    }
}

/// As Java's `FileChannel.tryLock`: a record lock over the whole file.
#[cfg(unix)]
fn lock_file(file: &File) -> io::Result<bool> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use rustix::io::Errno;
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn lock_file(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}
