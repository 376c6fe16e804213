//! Files and folders that appear under their final name complete, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{AtPosition, Error, Result};

/// A file being written beside its final place. Dropped without [`AtomicFile::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFile {
    /// Starts writing the file that will be `target`; an existing one stays as it is until the commit replaces it.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if the folder does not exist or cannot be written to.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let target = target.into();
        let temporary = temporary_beside(&target);
        let file = File::create_new(&temporary).at(&target.display().to_string(), 0, "")?;
        Ok(Self { writer: Some(BufWriter::with_capacity(1 << 20, file)), temporary, target })
    }

    /// Where the bytes are meanwhile; what was written is there after a flush.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; then the final name is as it was before.
    pub fn commit(mut self) -> Result<()> {
        let name = self.target.display().to_string();
        let writer = self.writer.take().ok_or_else(|| Error::invalid("a file committed twice"))?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error).at(&name, 0, "")?;
        file.sync_all().at(&name, 0, "")?;
        fs::rename(&self.temporary, &self.target).at(&name, 0, "")?;
        sync_parent(&self.target).at(&name, 0, "")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.temporary);
    }
}

/// An [`AtomicFile`] that a writer owns while somebody else keeps the right to commit it.
#[derive(Debug, Clone)]
pub struct SharedFile(Arc<Mutex<Option<AtomicFile>>>);

impl SharedFile {
    /// Starts writing the file that will be `target`.
    ///
    /// # Errors
    /// As [`AtomicFile::create`].
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Some(AtomicFile::create(target)?)))))
    }

    /// The file itself, to commit it; nothing can be written through the others any more.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it was taken before.
    pub fn take(&self) -> Result<AtomicFile> {
        self.lock().take().ok_or_else(|| Error::invalid("a file finished twice"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<AtomicFile>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for SharedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().as_mut().ok_or(io::ErrorKind::NotConnected)?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().as_mut().ok_or(io::ErrorKind::NotConnected)?.flush()
    }
}

/// A folder being filled beside its final place. Dropped without [`AtomicFolder::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: PathBuf,
    target: PathBuf,
}

impl AtomicFolder {
    /// Starts filling the folder that will be `target`, which must not exist yet.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it exists and is not empty, [`crate::ErrorKind::Io`] if it cannot be made.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let target = target.into();
        let name = target.display().to_string();
        if fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) || target.is_file() {
            return Err(Error::invalid("exists already and is not an empty folder").at(&name, 0, ""));
        }
        let temporary = temporary_beside(&target);
        fs::create_dir(&temporary).at(&name, 0, "")?;
        Ok(Self { temporary, target })
    }

    /// Where to put the files meanwhile.
    pub fn path(&self) -> &Path {
        &self.temporary
    }

    /// Gives the folder its name. Its files must be durable already.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]
    pub fn commit(self) -> Result<()> {
        let name = self.target.display().to_string();
        if self.target.is_dir() {
            fs::remove_dir(&self.target).at(&name, 0, "")?;
        }
        sync_folder(&self.temporary).at(&name, 0, "")?;
        fs::rename(&self.temporary, &self.target).at(&name, 0, "")?;
        sync_parent(&self.target).at(&name, 0, "")
    }
}

impl Drop for AtomicFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.temporary);
    }
}

/// A name in the same folder that nobody else uses: process and count.
fn temporary_beside(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    target.with_file_name(format!(".{name}.{}-{count}.tmp", std::process::id()))
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_folder(parent),
        _ => sync_folder(Path::new(".")),
    }
}

#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let mut dropped = AtomicFile::create(folder.path().join("a")).unwrap();
        dropped.write_all(b"half").unwrap();
        drop(dropped);
        assert!(names(folder.path()).is_empty());
        let mut kept = AtomicFile::create(folder.path().join("a")).unwrap();
        kept.write_all(b"whole").unwrap();
        kept.commit().unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"whole");
    }

    #[test]
    fn a_folder_appears_only_when_committed() {
        let folder = tempfile::tempdir().unwrap();
        let dropped = AtomicFolder::create(folder.path().join("a")).unwrap();
        fs::write(dropped.path().join("x"), "1").unwrap();
        drop(dropped);
        assert!(names(folder.path()).is_empty());
        let kept = AtomicFolder::create(folder.path().join("a")).unwrap();
        fs::write(kept.path().join("x"), "1").unwrap();
        kept.commit().unwrap();
        assert_eq!(names(&folder.path().join("a")), ["x"]);
        assert!(AtomicFolder::create(folder.path().join("a")).is_err());
    }
}
