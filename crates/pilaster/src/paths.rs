//! From what a user types (a file, a folder, a glob, an address) to files.

use std::fs;
use std::path::{Path, PathBuf};

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};

/// Whether this is `scheme://…` and not a path.
pub(crate) fn is_address(path: &str) -> bool {
    path.contains("://") && !path.starts_with("file://")
}

/// The path that `address` names on this machine; `None` if it is `scheme://…` of another place.
#[must_use]
pub fn local_path(address: &str) -> Option<&Path> {
    (!is_address(address)).then(|| local(address))
}

/// The path without a `file://` in front.
pub(crate) fn local(path: &str) -> &Path {
    Path::new(path.strip_prefix("file://").unwrap_or(path))
}

/// The paths a glob stands for, in order; the path itself if it is no glob or names an existing file.
///
/// # Errors
/// If the pattern is malformed or nothing matches it.
pub(crate) fn expand_glob(path: &str) -> Result<Vec<String>> {
    if is_address(path) || !path.contains(['*', '?', '[']) || local(path).exists() {
        return Ok(vec![path.to_string()]);
    }
    let pattern = local(path).to_string_lossy();
    let options = glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::new() };
    let matches = glob::glob_with(&pattern, options)
        .map_err(|error| Error::invalid(format!("glob: {error}")).at(path, 0, ""))?;
    let mut found = Vec::new();
    for entry in matches {
        let entry = entry.map_err(|error| {
            let name = error.path().display().to_string();
            Error::from(std::io::Error::from(error)).at(&name, 0, "")
        })?;
        found.push(entry.display().to_string());
    }
    if found.is_empty() {
        return Err(Error::invalid("no file matches this pattern").at(path, 0, ""));
    }
    found.sort();
    Ok(found)
}

/// What lies directly in a folder, by name, without hidden files (`.x`) and markers (`_SUCCESS`).
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if the folder cannot be read.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).at(&name, 0, "")? {
        let entry = entry.at(&name, 0, "")?;
        let file_name = entry.file_name();
        let text = file_name.to_string_lossy();
        if !text.starts_with(['.', '_']) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The files directly in a folder.
///
/// # Errors
/// As [`entries`], and if there are none.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<String>> {
    let files: Vec<_> = entries(folder)?
        .into_iter()
        .filter(|path| path.is_file())
        .map(|path| path.display().to_string())
        .collect();
    if files.is_empty() {
        let name = folder.display().to_string();
        return Err(Error::invalid("is a folder without files").at(&name, 0, ""));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_expand_in_order_and_missing_ones_are_named() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.txt", ".hidden.csv"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let pattern = folder.path().join("*.csv").display().to_string();
        let names: Vec<_> = expand_glob(&pattern)
            .unwrap()
            .iter()
            .map(|path| Path::new(path).file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["a.csv", "b.csv"]);
        let missing = folder.path().join("*.nope").display().to_string();
        assert_eq!(
            expand_glob(&missing).unwrap_err().to_string(),
            format!("{missing}: no file matches this pattern")
        );
    }

    #[test]
    fn a_folder_gives_its_visible_files() {
        let folder = tempfile::tempdir().unwrap();
        assert!(files_in(folder.path()).unwrap_err().to_string().ends_with("is a folder without files"));
        for name in ["b", "a", "_SUCCESS", ".x"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        assert_eq!(files_in(folder.path()).unwrap().len(), 2);
    }
}
