//! A local file.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::{Source, check_range};
use crate::error::{AtPosition, Error, Result};

/// A local file, read at positions, so that threads share one handle without a lock.
#[derive(Debug)]
pub struct FileSource {
    name: String,
    size: u64,
    file: File,
}

impl FileSource {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Io`] if it cannot be opened, [`crate::ErrorKind::InvalidInput`] if it is a folder.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let file = File::open(path).at(&name, 0, "")?;
        let metadata = file.metadata().at(&name, 0, "")?;
        if metadata.is_dir() {
            return Err(Error::invalid("is a folder, not a file").at(&name, 0, ""));
        }
        Ok(Self { name, size: metadata.len(), file })
    }
}

impl Source for FileSource {
    fn name(&self) -> &str {
        &self.name
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, range: Range<u64>) -> Result<Bytes> {
        let length = check_range(&self.name, self.size, &range)?;
        Ok(read_exact_at(&self.file, length, range.start).at(&self.name, range.start, "read")?.into())
    }
}

/// Reads `length` bytes into memory that need not be zeroed before.
#[cfg(unix)]
pub(super) fn read_exact_at(file: &File, length: usize, offset: u64) -> std::io::Result<Vec<u8>> {
    use rustix::buffer::spare_capacity;
    use rustix::io::{Errno, pread};
    let mut buffer = Vec::with_capacity(length);
    while buffer.len() < length {
        let at = offset.saturating_add(buffer.len() as u64);
        match pread(file, spare_capacity(&mut buffer), at) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // More may have been read than was asked for, where more was reserved.
    buffer.truncate(length);
    Ok(buffer)
}

#[cfg(windows)]
pub(super) fn read_exact_at(file: &File, length: usize, mut offset: u64) -> std::io::Result<Vec<u8>> {
    use std::os::windows::fs::FileExt;
    let mut buffer = vec![0; length];
    let mut rest = buffer.as_mut_slice();
    while !rest.is_empty() {
        let read = file.seek_read(rest, offset)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        rest = rest.get_mut(read..).unwrap_or_default();
        offset = offset.saturating_add(read as u64);
    }
    Ok(buffer)
}
