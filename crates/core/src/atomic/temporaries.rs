//! Names of files and folders that are not complete yet, so that a program that is told to end can take them away.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

static KNOWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn known() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A name in the folder of its target that nobody else uses. What has it is removed when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// A name beside `target`: process and count.
    pub(super) fn beside(target: &Path) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = target.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let path = target.with_file_name(format!(".{name}.{}-{count}.tmp", std::process::id()));
        known().insert(path.clone());
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Nobody is left to tell if this fails; what was committed has another name by now.
        let was_folder = self.0.is_dir();
        remove(&self.0);
        // Into a folder that was given up, threads may still write that have not heard of it: it stays known, so that it is taken
        // away again when the program ends.
        if !was_folder {
            known().remove(&self.0);
        }
    }
}

fn remove(path: &Path) {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => drop(fs::remove_dir_all(path)),
        Ok(_) => drop(fs::remove_file(path)),
        Err(_) => {}
    }
}

/// Removes what is not complete, and gives out no further names: for a program that ends now, by itself or because it was told to.
/// Threads that want to begin another file meanwhile wait in vain.
pub fn abandon_all() {
    let known = known();
    for path in known.iter() {
        remove(path);
    }
    std::mem::forget(known);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_is_written_to_after_it_was_given_up_is_not_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let (given_up, committed) =
            (Temporary::beside(&place.path().join("a")), Temporary::beside(&place.path().join("b")));
        let paths = [given_up.path().to_path_buf(), committed.path().to_path_buf()];
        paths.iter().for_each(|path| fs::create_dir(path).unwrap());
        fs::rename(committed.path(), place.path().join("b")).unwrap();
        drop((given_up, committed));
        assert!(!paths[0].exists());
        assert_eq!(paths.map(|path| known().contains(&path)), [true, false]);
    }
}
