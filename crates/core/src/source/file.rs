//! A local file.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;

use super::{Source, check_range};
use crate::buffers::BlockBuffer;
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
    /// [`crate::ErrorKind::Io`] if it cannot be opened, [`crate::ErrorKind::InvalidInput`] if it is a folder or a pipe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let name = path.to_string_lossy().into_owned();
        check_kind(path).at(&name, 0, "")?;
        let file = File::open(path).at(&name, 0, "")?;
        let size = file.metadata().at(&name, 0, "")?.len();
        Ok(Self { name, size, file })
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
        read_exact_at(&self.file, length, range.start).at(&self.name, range.start, "read")
    }
}

/// Refuses what is no regular file before it is opened: opening a pipe waits for somebody to write to it.
pub(super) fn check_kind(path: &Path) -> Result<()> {
    let metadata = std::fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(Error::invalid("is a folder, not a file"));
    }
    if !metadata.is_file() {
        let message = "is a pipe or a device: what is read must be a file, since its end is read first";
        return Err(Error::invalid(message));
    }
    Ok(())
}

/// Reads `length` bytes.
pub(super) fn read_exact_at(file: &File, length: usize, offset: u64) -> std::io::Result<Bytes> {
    let mut buffer = BlockBuffer::with_length(length);
    fill(file, &mut buffer, offset)?;
    Ok(buffer.into_bytes())
}

#[cfg(unix)]
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn fill(file: &File, mut rest: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    use std::os::windows::fs::FileExt;
    while !rest.is_empty() {
        let read = file.seek_read(rest, offset)?;
        if read == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        rest = rest.get_mut(read..).unwrap_or_default();
        offset = offset.saturating_add(read as u64);
    }
    Ok(())
}
