//! A file that is written at a [`Location`].

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Location, Sink};
use crate::error::{AtPosition, Error, Result};
use crate::source::SourceRef;

/// A file being written. It has its name when [`NewFile::finish`] returns; dropped before, it leaves nothing behind. Errors name it.
#[derive(Debug)]
pub struct NewFile {
    sink: Box<dyn Sink>,
    name: String,
    bytes: u64,
}

impl NewFile {
    pub(super) fn begin(place: &Location) -> Result<Self> {
        let sink = place.storage().create(place.path())?;
        Ok(Self { sink, name: place.to_string(), bytes: 0 })
    }

    /// How many bytes were written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What was written so far, to be read again; see [`Sink::written`].
    ///
    /// # Errors
    /// As [`Sink::written`].
    pub fn written(&mut self) -> Result<Option<SourceRef>> {
        self.sink.written()
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// As [`Sink::finish`].
    pub fn finish(self) -> Result<()> {
        self.sink.finish().at(&self.name, 0, "")
    }

    /// The error of a call of [`Write`], which takes the name of the file through code that knows only [`io::Error`].
    fn named(&self, error: io::Error) -> io::Error {
        io::Error::new(error.kind(), Error::from(error).at(&self.name, self.bytes, ""))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes).map_err(|error| self.named(error))?;
        self.bytes = self.bytes.saturating_add(written as u64);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush().map_err(|error| self.named(error))
    }
}

/// A [`NewFile`] that a writer owns while somebody else keeps the right to finish it.
#[derive(Debug, Clone)]
pub struct SharedFile(Arc<Mutex<Option<NewFile>>>);

impl SharedFile {
    /// Begins the file; see [`Location::create`].
    ///
    /// # Errors
    /// As [`Location::create`].
    pub fn create(place: impl Into<Location>) -> Result<Self> {
        Ok(Self(Arc::new(Mutex::new(Some(place.into().create()?)))))
    }

    /// The file itself, to finish it; nothing can be written through the others any more.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Internal`] if it was taken before.
    pub fn take(&self) -> Result<NewFile> {
        self.lock().take().ok_or_else(|| Error::internal("a file finished twice"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<NewFile>> {
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
