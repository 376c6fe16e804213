//! From what a user types (a file, a folder, a glob, an address) to files.

use std::fs;
use std::io;
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
    if is_address(path) || !path.contains(['*', '?', '[']) || kind(local(path))?.is_some() {
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
            Error::from(io::Error::from(error)).at(&name, 0, "")
        })?;
        found.push(entry.display().to_string());
    }
    if found.is_empty() {
        return Err(Error::invalid("no file matches this pattern").at(path, 0, ""));
    }
    found.sort();
    Ok(found)
}

/// What lies at a path, links followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A pipe, a device, a socket: nothing that is opened without being named.
    Other,
}

/// What lies at a path; `None` if nothing does.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if nobody may know: that is not the same as nothing being there.
pub(crate) fn kind(path: &Path) -> Result<Option<Kind>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(Kind::File)),
        Ok(metadata) if metadata.is_dir() => Ok(Some(Kind::Folder)),
        Ok(_) => Ok(Some(Kind::Other)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::from(error).at(&path.display().to_string(), 0, "")),
    }
}

/// Everything that lies directly in a folder, by name.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if the folder cannot be read.
pub(crate) fn read_folder(folder: &Path) -> Result<Vec<PathBuf>> {
    let name = folder.display().to_string();
    let entries = fs::read_dir(folder).at(&name, 0, "")?;
    let mut found = entries.map(|entry| Ok(entry.at(&name, 0, "")?.path())).collect::<Result<Vec<_>>>()?;
    found.sort();
    Ok(found)
}

/// How the names of files end that say what another file is.
const BESIDE: &str = ".schema.json";

/// What lies directly in a folder, by name, without hidden files (`.x`), markers (`_SUCCESS`) and schemas beside other files. The folder of
/// a partition (`_day=1`) is none of these, whatever its column is called.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if the folder cannot be read.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_visible = |path: &PathBuf| {
        path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            let is_hidden = name.starts_with(['.', '_']) && !name.contains('=');
            !is_hidden && !name.ends_with(BESIDE)
        })
    };
    Ok(read_folder(folder)?.into_iter().filter(is_visible).collect())
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
    fn a_folder_gives_what_is_visible() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b", "a", "_SUCCESS", ".x", "_day=1"] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        let visible = ["_day=1", "a", "b"].map(|name| folder.path().join(name));
        assert_eq!(entries(folder.path()).unwrap(), visible);
        assert_eq!(read_folder(folder.path()).unwrap().len(), 5);
        assert_eq!(kind(&folder.path().join("a")).unwrap(), Some(Kind::File));
        assert_eq!(kind(folder.path()).unwrap(), Some(Kind::Folder));
        assert_eq!(kind(&folder.path().join("gone")).unwrap(), None);
        // A file is no folder: whether there is anything below it is no question.
        assert!(kind(&folder.path().join("a/b")).is_err());
    }
}
