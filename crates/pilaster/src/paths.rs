//! From what a user types (a file, a folder, a glob, an address) to files.

use std::io;
use std::path::Path;

use pilaster_core::storage::EntryKind;
use pilaster_core::{Error, Location, Result};

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

/// What `path`, a path of this machine or an address, leads to.
///
/// # Errors
/// As [`Location::parse`].
pub(crate) fn place(path: &str) -> Result<Location> {
    match is_address(path) {
        true => Location::parse(path),
        false => Ok(Location::local(local(path))),
    }
}

/// What these paths and addresses lead to; globs among them stay as they are.
///
/// # Errors
/// As [`Location::parse`].
pub(crate) fn places<S: AsRef<str>>(paths: &[S]) -> Result<Vec<Location>> {
    paths.iter().map(|path| place(path.as_ref())).collect()
}

/// What a glob stands for, in order; the path itself if it is no glob or names an existing file.
///
/// # Errors
/// If the pattern is malformed or nothing matches it.
pub(crate) fn expand_glob(path: &str) -> Result<Vec<Location>> {
    let given = place(path)?;
    if is_address(path) || !path.contains(['*', '?', '[']) || kind(&given)?.is_some() {
        return Ok(vec![given]);
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
        found.push(Location::local(entry));
    }
    if found.is_empty() {
        return Err(Error::invalid("no file matches this pattern").at(path, 0, ""));
    }
    found.sort();
    Ok(found)
}

/// What kind of thing is at a place, links followed; `None` if nothing is.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if nobody may know: that is not the same as nothing being there.
pub(crate) fn kind(place: &Location) -> Result<Option<EntryKind>> {
    Ok(place.entry()?.map(|entry| entry.kind()))
}

/// Everything that lies directly in a folder, by name.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if the folder cannot be read.
pub(crate) fn read_folder(folder: &Location) -> Result<Vec<Location>> {
    Ok(folder.list()?.iter().map(|entry| folder.beside(entry.path())).collect())
}

/// The name of a file without extension, as text.
pub(crate) fn stem(place: &Location) -> Option<String> {
    place.path().file_stem().map(|stem| stem.to_string_lossy().into_owned())
}

/// How the names of files end that say what another file is.
const BESIDE: &str = ".schema.json";

/// What lies directly in a folder, by name, without hidden files (`.x`), markers (`_SUCCESS`) and schemas beside other files. The folder of
/// a partition (`_day=1`) is none of these, whatever its column is called.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if the folder cannot be read.
pub(crate) fn entries(folder: &Location) -> Result<Vec<Location>> {
    let is_visible = |place: &Location| {
        let name = place.name().to_string_lossy();
        let is_hidden = name.starts_with(['.', '_']) && !name.contains('=');
        !name.is_empty() && !is_hidden && !name.ends_with(BESIDE)
    };
    Ok(read_folder(folder)?.into_iter().filter(is_visible).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

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
            .map(|place| place.name().to_string_lossy().into_owned())
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
        let place = Location::local(folder.path());
        let visible = ["_day=1", "a", "b"].map(|name| place.child(name));
        assert_eq!(entries(&place).unwrap(), visible);
        assert_eq!(read_folder(&place).unwrap().len(), 5);
        assert_eq!(kind(&place.child("a")).unwrap(), Some(EntryKind::File));
        assert_eq!(kind(&place).unwrap(), Some(EntryKind::Folder));
        assert_eq!(kind(&place.child("gone")).unwrap(), None);
        // A file is no folder: nothing is below it.
        assert_eq!(kind(&place.child("a/b")).unwrap(), None);
    }
}
