//! What lies under the name that is to be written: nothing and plain files are replaced, devices and pipes are written to.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{AtPosition, Error, Result};

/// How many links that lead to links are followed; as many as Linux follows.
const MOST_LINKS: usize = 40;

/// What lies under a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Nothing yet: the path where a new file gets its name, behind all links.
    Free(PathBuf),
    /// A regular file, by its own path behind all links.
    File(PathBuf),
    /// A folder, likewise.
    Folder(PathBuf),
    /// A pipe, a terminal or another device that takes bytes as they come: it is opened under the name that was given.
    Stream(PathBuf),
}

impl Place {
    /// Looks at `path`, through links.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if it cannot be looked at, [`crate::ErrorKind::InvalidInput`] if it is what no bytes are written to:
    /// a disk or a socket.
    pub fn of(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self::Free(behind_links(path).at(&name, 0, "")?));
            }
            Err(error) => return Err(Error::from(error).at(&name, 0, "")),
        };
        let kind = metadata.file_type();
        if is_stream(&metadata) || kind.is_file() && leads_to_a_handle(path) {
            return Ok(Self::Stream(path.to_path_buf()));
        }
        let real = fs::canonicalize(path).at(&name, 0, "")?;
        match (kind.is_file(), kind.is_dir()) {
            (true, _) => Ok(Self::File(real)),
            (_, true) => Ok(Self::Folder(real)),
            _ => Err(Error::invalid("is a disk or a socket: nothing is written over it").at(&name, 0, "")),
        }
    }
}

#[cfg(unix)]
fn is_stream(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    metadata.file_type().is_fifo() || metadata.file_type().is_char_device()
}

#[cfg(not(unix))]
fn is_stream(_metadata: &Metadata) -> bool {
    false
}

/// Whether a name stands for an open handle of a process (`/dev/stdout`, `/proc/self/fd/3`): what was opened there is meant, not
/// the name it had.
fn leads_to_a_handle(path: &Path) -> bool {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        let Ok(next) = fs::read_link(&path) else { return false };
        let folder = parent(&path);
        if fs::canonicalize(folder).is_ok_and(|folder| folder.starts_with("/proc")) {
            return true;
        }
        path = folder.join(next);
    }
    false
}

/// The path that links which lead nowhere point at.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&path) {
            Ok(next) => path = parent(&path).join(next),
            // Not a link, or nothing at all: here the file will be.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidInput) => {
                return Ok(path);
            }
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("too many links that lead to links"))
}

/// The folder of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
