//! Locks of a table, as CarbonData takes them on a local file system: an OS lock over a file in `LockFiles`.

use std::time::{Duration, Instant};

use pilaster_core::storage::Lock;
use pilaster_core::{Error, Location, Result};

/// How long to wait before trying again.
const PAUSE: Duration = Duration::from_millis(50);

/// A lock that is held; dropped, it is free.
#[derive(Debug)]
pub(crate) struct TableLock {
    _lock: Lock,
}

impl TableLock {
    /// Takes the lock `name` of a table, and waits for it no longer than `timeout`.
    pub fn take(table: &Location, name: &str, timeout: Duration) -> Result<Self> {
        let folder = table.child("LockFiles");
        folder.make_folder()?;
        let file = folder.child(name);
        let end = Instant::now().checked_add(timeout);
        loop {
            if let Some(lock) = file.try_lock()? {
                return Ok(Self { _lock: lock });
            }
            if end.is_none_or(|end| Instant::now() >= end) {
                let message = "somebody else is writing to the table: the lock is taken";
                return Err(file.blame(Error::invalid(message)));
            }
            std::thread::sleep(PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once() {
        let folder = tempfile::tempdir().unwrap();
        let take = || TableLock::take(&Location::local(folder.path()), "tablestatus.lock", Duration::ZERO);
        let lock = take().unwrap();
        assert!(take().unwrap_err().to_string().contains("the lock is taken"));
        assert!(TableLock::take(&folder.path().into(), "other.lock", Duration::ZERO).is_ok());
        drop(lock);
        assert!(take().is_ok());
    }
}
