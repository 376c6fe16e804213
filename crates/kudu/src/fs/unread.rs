//! What the system did not let us look at.
//!
//! A folder or file that is not there is lost. Of one that is there and cannot be read (permission, a failing disk, a link to
//! a place that is not mounted) nothing is known, so it must never pass for an empty one: every look at the disks goes
//! through an [`UnreadLog`], which remembers the path and what the system said.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pilaster_core::source::is_out_of_handles;
use pilaster_core::storage::Entry;
use pilaster_core::verify::Finding;
use pilaster_core::{Error, ErrorKind, Location, Result};

/// A folder or file that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Where it is.
    pub path: Location,
    /// What kind of failure it was.
    pub kind: io::ErrorKind,
    /// What the system said.
    message: String,
    /// Whether only this process could not: too many files were open.
    is_shortage: bool,
}

impl Unread {
    fn new(path: &Location, error: &io::Error, is_shortage: bool) -> Self {
        let message = format!("{error}; what is in it was not looked at");
        Self { path: path.clone(), kind: error.kind(), message, is_shortage }
    }

    /// As an error that names path and cause.
    pub fn error(&self) -> Error {
        let cause = io::Error::new(self.kind, self.message.clone());
        self.path.blame(Error::from(cause))
    }

    /// As a finding.
    pub fn finding(&self) -> Finding {
        Finding::from_error(&self.error(), &self.path.to_string(), None)
    }

    /// Whether a finding says no more than this does: it is about the same file or folder, or about what lies in it.
    pub(crate) fn covers(&self, finding: &Finding) -> bool {
        Path::new(&*finding.path).starts_with(self.path.to_string())
    }

    /// Whether asking again with other rights would help, so that even a tolerant reader must not go on: as opposed to a
    /// disk that fails.
    pub(crate) fn is_refusal(&self) -> bool {
        self.is_shortage || self.kind == io::ErrorKind::PermissionDenied
    }
}

/// Collects the folders and files that could not be read; clones share what they remember.
#[derive(Debug, Clone, Default)]
pub(crate) struct UnreadLog(Arc<Mutex<BTreeMap<Location, Unread>>>);

impl UnreadLog {
    /// Everything remembered, by path; of a folder that cannot be looked into, not what was sought in it too.
    pub fn all(&self) -> Vec<Unread> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_within = |place: &Location| {
            std::iter::successors(place.parent(), Location::parent).any(|folder| known.contains_key(&folder))
        };
        known.values().filter(|unread| !is_within(&unread.path)).cloned().collect()
    }

    /// Whether a path is known as one that could not be read.
    pub fn knows(&self, path: &Location) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains_key(path)
    }

    /// Remembers what was found out elsewhere.
    pub fn add(&self, unread: &Unread) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(unread.path.clone()).or_insert_with(|| unread.clone());
    }

    /// The first file that could not be opened because too many were open.
    pub fn shortage(&self) -> Option<Unread> {
        self.all().into_iter().find(|unread| unread.is_shortage)
    }

    /// The result of reading a file; a failure of the system is remembered, and comes back in the same words.
    pub fn noted<T>(&self, path: &Location, result: Result<T>) -> Result<T> {
        match &result {
            // A file that ends too early is damaged.
            Err(error) if is_early_end(error) => result,
            _ => self.looked(path, result),
        }
    }

    /// The result of looking at a file or folder; a failure of the system is remembered, and comes back in the same words.
    fn looked<T>(&self, path: &Location, result: Result<T>) -> Result<T> {
        let Err(error) = &result else { return result };
        match error.kind() {
            ErrorKind::Io(cause) if is_unread(path, cause) => {
                Err(self.note(path, cause, is_out_of_handles(error)))
            }
            _ => result,
        }
    }

    fn note(&self, path: &Location, cause: &io::Error, is_shortage: bool) -> Error {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unread = known.entry(path.clone()).or_insert_with(|| Unread::new(path, cause, is_shortage));
        unread.error()
    }

    /// The entries of a folder by name; none if it is not there.
    pub fn entries(&self, folder: &Location) -> Vec<Location> {
        let entries = self.looked(folder, folder.list()).unwrap_or_default();
        entries.into_iter().map(|entry| folder.beside(entry.path())).collect()
    }

    /// What is at a path; `None` if nothing is, or if it could not be looked at, which is remembered.
    fn entry(&self, path: &Location) -> Option<Entry> {
        match path.entry() {
            // A link that leads nowhere is no entry, and nobody knows what it stood for.
            Ok(None) => {
                let nothing = Error::from(io::Error::from(io::ErrorKind::NotFound));
                self.looked::<Entry>(path, Err(path.blame(nothing))).ok()
            }
            Ok(found) => found,
            Err(error) => self.looked(path, Err(error)).ok(),
        }
    }

    /// Whether there is a folder.
    pub fn is_dir(&self, path: &Location) -> bool {
        self.entry(path).is_some_and(|entry| entry.is_folder())
    }

    /// Whether there is a file.
    pub fn is_file(&self, path: &Location) -> bool {
        self.entry(path).is_some_and(|entry| entry.is_file())
    }

    /// Bytes of a file; `None` if it is not there or could not be looked at.
    pub fn size(&self, path: &Location) -> Option<u64> {
        self.entry(path).map(|entry| entry.size())
    }
}

/// Whether a failure leaves open what is there. A link that leads nowhere does: what it stood for may be on a disk that is not
/// mounted.
fn is_unread(path: &Location, error: &io::Error) -> bool {
    match error.kind() {
        io::ErrorKind::NotFound => path.is_link().unwrap_or(true),
        io::ErrorKind::NotADirectory => false,
        _ => true,
    }
}

fn is_early_end(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(cause) if cause.kind() == io::ErrorKind::UnexpectedEof)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_not_unread() {
        let folder = tempfile::tempdir().unwrap();
        let log = UnreadLog::default();
        std::fs::write(folder.path().join("file"), "x").unwrap();
        let place = Location::local(folder.path());
        assert!(log.entries(&place.child("none")).is_empty());
        assert!(!log.is_dir(&place.child("none")) && !log.is_dir(&place.child("file/below")));
        assert_eq!(log.size(&place.child("file")), Some(1));
        assert!(log.all().is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn loops_and_links_to_nowhere_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let log = UnreadLog::default();
        let place = Location::local(folder.path());
        let (ring, lost) = (place.child("ring"), place.child("lost"));
        std::os::unix::fs::symlink(ring.path(), ring.path()).unwrap();
        std::os::unix::fs::symlink(folder.path().join("not/mounted"), lost.path()).unwrap();
        assert!(!log.is_dir(&ring) && log.entries(&ring).is_empty() && !log.is_file(&lost));
        let unread = log.all();
        assert_eq!(unread.iter().map(|unread| &unread.path).collect::<Vec<_>>(), [&lost, &ring]);
        let text = unread[1].error().to_string();
        assert!(text.starts_with(&ring.to_string()), "{text}");
        assert!(text.ends_with("; what is in it was not looked at"), "{text}");
        assert!(matches!(unread[1].error().kind(), ErrorKind::Io(_)));
        // What was sought in a folder that is told already is not told again.
        assert!(!log.is_file(&ring.child("below")) && log.all() == unread);
        let below = Finding::from_error(&Error::corrupt("a", "b"), &ring.child("below").to_string(), None);
        assert!(unread[1].covers(&below) && !unread[0].covers(&below));
    }

    #[test]
    fn a_lack_of_handles_is_remembered_and_is_nobodys_damage() {
        let log = UnreadLog::default();
        let full = Error::from(io::Error::from_raw_os_error(24));
        assert!(log.noted::<()>(&Location::local("the/file"), Err(full)).is_err());
        assert!(log.noted::<()>(&Location::local("other"), Err(Error::corrupt("a", "b"))).is_err());
        if cfg!(unix) {
            let unread = log.all();
            assert!(unread.len() == 1 && unread[0].is_refusal() && !unread[0].error().is_damage());
        }
    }
}
