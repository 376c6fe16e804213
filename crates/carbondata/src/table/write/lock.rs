//! Locks of a table, as CarbonData takes them on a local file system: an OS lock over a file in `LockFiles`. That the file
//! exists means nothing.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

/// Locks of this process. The system's are between processes only, and closing any handle of a file gives them up: a file
/// that is locked must not even be opened again.
static HELD: LazyLock<Mutex<HashSet<PathBuf>>> = LazyLock::new(Mutex::default);

/// How long to wait before trying again.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock that is held; dropped, it is free.
#[derive(Debug)]
pub(crate) struct TableLock {
    path: PathBuf,
    file: Option<File>,
}

impl TableLock {
    /// Takes the lock `name` of a table, and waits for it no longer than `timeout`.
    pub fn take(table: &Path, name: &str, timeout: Duration) -> Result<Self> {
        let folder = table.join("LockFiles");
        let text = folder.join(name).display().to_string();
        std::fs::create_dir_all(&folder).at(&text, 0, "")?;
        let path = folder.canonicalize().at(&text, 0, "")?.join(name);
        let end = Instant::now().checked_add(timeout);
        loop {
            if let Some(lock) = Self::try_take(&path).at(&text, 0, "")? {
                return Ok(lock);
            }
            if end.is_none_or(|end| Instant::now() >= end) {
                let message = "somebody else is writing to the table: the lock is taken";
                return Err(Error::invalid(message).at(&text, 0, ""));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn try_take(path: &Path) -> std::io::Result<Option<Self>> {
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

impl Drop for TableLock {
    fn drop(&mut self) {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        self.file = None;
        held.remove(&self.path);
    }
}

/// As Java's `FileChannel.tryLock`: a record lock over the whole file.
#[cfg(unix)]
fn lock_file(file: &File) -> std::io::Result<bool> {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use rustix::io::Errno;
    match fcntl_lock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::AGAIN | Errno::ACCESS) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(unix))]
fn lock_file(file: &File) -> std::io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(std::fs::TryLockError::WouldBlock) => Ok(false),
        Err(std::fs::TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once() {
        let folder = tempfile::tempdir().unwrap();
        let take = || TableLock::take(folder.path(), "tablestatus.lock", Duration::ZERO);
        let lock = take().unwrap();
        assert!(take().unwrap_err().to_string().contains("the lock is taken"));
        assert!(TableLock::take(folder.path(), "other.lock", Duration::ZERO).is_ok());
        drop(lock);
        assert!(take().is_ok());
    }
}
