//! Files and folders that appear under their final name complete, or not at all.
//!
//! What is replaced is a regular file, also where a link leads to it. Pipes and devices are written to as they are: their name
//! never goes to something else.

mod place;
mod temporaries;

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::error::{AtPosition, Error, Result};
pub use place::Place;
use temporaries::Temporary;
pub use temporaries::abandon_all;

/// What is written at once: writers of tables with many columns have as many files open.
const BUFFER_BYTES: usize = 1 << 18;

/// A file being written beside its final place. Dropped without [`AtomicFile::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFile {
    writer: Option<BufWriter<File>>,
    /// What gets the name in the end; `None` where bytes went to a pipe or a device at once.
    unfinished: Option<Unfinished>,
    target: PathBuf,
    bytes: u64,
}

#[derive(Debug)]
struct Unfinished {
    temporary: Temporary,
    /// Those of the file that is replaced.
    permissions: Option<Permissions>,
}

impl AtomicFile {
    /// Starts writing the file that will be `target`; an existing one stays as it is until the commit replaces it. Of a link the
    /// file it leads to is replaced. A pipe or a device is written to at once.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if the folder does not exist or cannot be written to, [`crate::ErrorKind::InvalidInput`] if the target
    /// is a folder, a disk or a socket.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let given = target.into();
        let name = given.display().to_string();
        let (target, permissions) = match Place::of(&given)? {
            Place::Free(target) => (target, None),
            Place::File(target) => {
                let permissions = fs::metadata(&target).at(&name, 0, "")?.permissions();
                (target, Some(permissions))
            }
            Place::Folder(_) => return Err(Error::invalid("is a folder, not a file").at(&name, 0, "")),
            Place::Stream(stream) => {
                let file = OpenOptions::new().append(true).open(&stream).at(&name, 0, "")?;
                return Ok(Self { writer: Some(buffered(file)), unfinished: None, target: stream, bytes: 0 });
            }
        };
        let temporary = Temporary::beside(&target);
        let file = File::create_new(temporary.path()).at(&name, 0, "")?;
        let unfinished = Some(Unfinished { temporary, permissions });
        Ok(Self { writer: Some(buffered(file)), unfinished, target, bytes: 0 })
    }

    /// Where the bytes are meanwhile; what was written is there after a flush. `None` for a pipe or a device, from which nothing
    /// can be read again.
    pub fn path(&self) -> Option<&Path> {
        self.unfinished.as_ref().map(|unfinished| unfinished.temporary.path())
    }

    /// How many bytes were written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`]; then the final name is as it was before.
    pub fn commit(self) -> Result<()> {
        self.finish(|from, to| fs::rename(from, to))
    }

    /// The same, unless something has the name by now.
    ///
    /// # Errors
    /// As [`AtomicFile::commit`]; [`io::ErrorKind::AlreadyExists`] if somebody else was faster.
    pub fn commit_new(self) -> Result<()> {
        // A second name for the same file, since renaming replaces; the first one goes with the temporary.
        self.finish(|from, to| fs::hard_link(from, to))
    }

    fn finish(mut self, give_name: impl FnOnce(&Path, &Path) -> io::Result<()>) -> Result<()> {
        let name = self.target.display().to_string();
        let writer = self.writer.take().ok_or_else(|| Error::internal("a file committed twice"))?;
        let file = writer.into_inner().map_err(io::IntoInnerError::into_error).at(&name, 0, "")?;
        let Some(unfinished) = self.unfinished.take() else { return Ok(()) };
        if let Some(permissions) = unfinished.permissions {
            file.set_permissions(permissions).at(&name, 0, "")?;
        }
        file.sync_all().at(&name, 0, "")?;
        give_name(unfinished.temporary.path(), &self.target).at(&name, 0, "")?;
        sync_parent(&self.target).at(&name, 0, "")
    }
}

fn buffered(file: File) -> BufWriter<File> {
    BufWriter::with_capacity(BUFFER_BYTES, file)
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.write(bytes)?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.as_mut().ok_or(io::ErrorKind::NotConnected)?.flush()
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // What is still buffered for a file that is given up is not written any more.
        if self.unfinished.is_some()
            && let Some(writer) = self.writer.take()
        {
            let _ = writer.into_parts();
        }
    }
}

/// A folder being filled beside its final place. Dropped without [`AtomicFolder::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct AtomicFolder {
    temporary: Temporary,
    target: PathBuf,
}

impl AtomicFolder {
    /// Starts filling the folder that will be `target`, which must not exist yet, or be empty.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`] if it exists and is not an empty folder, [`crate::ErrorKind::Io`] if it cannot be looked at or
    /// made.
    pub fn create(target: impl Into<PathBuf>) -> Result<Self> {
        let given = target.into();
        let name = given.display().to_string();
        let target = match Place::of(&given)? {
            Place::Free(target) => target,
            Place::Folder(target) if fs::read_dir(&target).at(&name, 0, "")?.next().is_none() => target,
            _ => return Err(Error::invalid("exists already and is not an empty folder").at(&name, 0, "")),
        };
        let temporary = Temporary::beside(&target);
        fs::create_dir(temporary.path()).at(&name, 0, "")?;
        Ok(Self { temporary, target })
    }

    /// Where to put the files meanwhile.
    pub fn path(&self) -> &Path {
        self.temporary.path()
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
        sync_folder(self.path()).at(&name, 0, "")?;
        fs::rename(self.path(), &self.target).at(&name, 0, "")?;
        sync_parent(&self.target).at(&name, 0, "")
    }
}

/// Makes a name in a folder durable.
pub(crate) fn sync_parent(path: &Path) -> io::Result<()> {
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

    fn written(target: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = AtomicFile::create(target)?;
        file.write_all(bytes)?;
        file.commit()
    }

    #[test]
    #[cfg(unix)]
    fn the_file_behind_links_is_replaced_and_the_links_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (inner, path) = (folder.path().join("inner"), |name: &str| folder.path().join(name));
        fs::create_dir(&inner).unwrap();
        fs::write(inner.join("there"), "old").unwrap();
        fs::set_permissions(inner.join("there"), Permissions::from_mode(0o640)).unwrap();
        symlink("inner/there", path("link")).unwrap();
        symlink("link", path("link to a link")).unwrap();
        symlink("inner/new", path("dangling")).unwrap();
        symlink("round", path("round")).unwrap();
        written(&path("link to a link"), b"new").unwrap();
        assert_eq!(fs::read(inner.join("there")).unwrap(), b"new");
        assert_eq!(fs::metadata(inner.join("there")).unwrap().permissions().mode() & 0o777, 0o640);
        written(&path("dangling"), b"first").unwrap();
        assert_eq!(fs::read(inner.join("new")).unwrap(), b"first");
        assert!(written(&path("round"), b"").is_err());
        assert!(written(&inner, b"").unwrap_err().to_string().ends_with("is a folder, not a file"));
        for link in ["link", "link to a link", "dangling", "round"] {
            assert!(path(link).is_symlink(), "{link}");
        }
        assert_eq!(names(folder.path()), ["dangling", "inner", "link", "link to a link", "round"]);
        assert_eq!(names(&inner), ["new", "there"]);
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_is_written_to_and_stays_one() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        written(&pipe, b"rows").unwrap();
        assert_eq!(reader.join().unwrap(), b"rows");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(names(folder.path()), ["pipe"]);
        assert!(AtomicFolder::create(&pipe).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_device_is_written_to_and_stays_one() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let (device, link) = (folder.path().join("sink"), folder.path().join("link"));
        let numbers = rustix::fs::makedev(1, 3);
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &device,
            rustix::fs::FileType::CharacterDevice,
            mode,
            numbers,
        );
        // Only root makes devices, and not in every container; some file systems do not open them.
        if made.is_err() || fs::write(&device, "x").is_err() {
            return;
        }
        std::os::unix::fs::symlink("sink", &link).unwrap();
        for path in [&device, &link] {
            written(path, b"rows").unwrap();
        }
        assert!(fs::symlink_metadata(&device).unwrap().file_type().is_char_device());
        assert_eq!(names(folder.path()), ["link", "sink"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_name_of_an_open_handle_means_what_is_open() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let open = File::create(&path).unwrap();
        let (handle, link) = (format!("/proc/self/fd/{}", open.as_raw_fd()), folder.path().join("link"));
        std::os::unix::fs::symlink(&handle, &link).unwrap();
        written(&link, b"rows").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"rows");
        assert_eq!(open.metadata().unwrap().len(), 4);
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
