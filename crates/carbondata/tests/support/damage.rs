//! Copies of tables, and what can happen to their files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::tables::copy_all;

/// What can happen to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    Gone,
    Empty,
    Cut,
    Garbage,
}

pub const ALL: [Damage; 4] = [Damage::Gone, Damage::Empty, Damage::Cut, Damage::Garbage];

pub fn damage(path: &Path, how: Damage) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    match how {
        Damage::Gone => return fs::remove_file(path).unwrap(),
        Damage::Empty => bytes.clear(),
        Damage::Cut => bytes.truncate(middle),
        Damage::Garbage => bytes.iter_mut().skip(middle).take(16).for_each(|byte| *byte = 0xff),
    }
    fs::write(path, bytes).unwrap();
}

/// A copy of a table to damage; it is gone with its owner.
pub struct Copy(pub PathBuf, pub PathBuf);

impl Copy {
    pub fn of(original: &Path, name: &str) -> Self {
        // Tests of one program run at once, and may give their copies the same name.
        static COPIES: AtomicU64 = AtomicU64::new(0);
        let (process, number) = (std::process::id(), COPIES.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(format!("pilaster-carbondata-{name}-{process}-{number}"));
        let _ = fs::remove_dir_all(&folder);
        copy_all(original, &folder);
        Self(original.to_path_buf(), folder)
    }

    /// Puts a file back as it was.
    pub fn heal(&self, path: &Path) {
        fs::copy(self.0.join(path.strip_prefix(&self.1).unwrap()), path).unwrap();
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.1);
    }
}
