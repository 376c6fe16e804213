//! What may be written where: one rule for everything that writes a file or a folder.
//!
//! What is there is replaced only if that was asked for, and only if it is a regular file; folders are never replaced. Pipes and
//! devices are written to. What is read is never written over, whatever name it goes by.

use pilaster_core::atomic::Place;
use pilaster_core::{Error, Location, Result};

use crate::paths;

/// Whether a file that is there may be replaced, and what must not be.
#[derive(Debug, Clone, Default)]
pub struct Overwrite {
    replaces: bool,
    sources: Vec<String>,
    /// What the same call writes elsewhere.
    others: Vec<Location>,
}

impl Overwrite {
    /// A rule under which an existing file is replaced, or one under which it is refused.
    pub fn new(replaces: bool) -> Self {
        Self { replaces, sources: Vec::new(), others: Vec::new() }
    }

    /// Adds what is read: files, folders, globs or addresses, none of which is written over.
    #[must_use]
    pub fn with_sources<S: AsRef<str>>(mut self, sources: impl IntoIterator<Item = S>) -> Self {
        self.sources.extend(sources.into_iter().map(|source| source.as_ref().to_string()));
        self
    }

    /// Adds another file or folder that the same call writes: one of the two would replace the other.
    #[must_use]
    pub fn with_other_target(mut self, target: impl Into<Location>) -> Self {
        self.others.push(target.into());
        self
    }

    /// Refuses a target that must not be written.
    ///
    /// # Errors
    /// [`pilaster_core::ErrorKind::InvalidInput`] if it is there and may not be replaced, or is part of what is read;
    /// [`pilaster_core::ErrorKind::Io`] if nobody can tell.
    pub fn check(&self, target: impl Into<Location>) -> Result<()> {
        let target = target.into();
        let place = target.place()?;
        let refuse = |message: &str| Err(target.blame(Error::invalid(message)));
        let is_same = match &place {
            Place::Free(_) => false,
            Place::File(path) | Place::Folder(path) | Place::Stream(path) => {
                self.is_read(&target.beside(path))?
            }
        };
        if is_same {
            return refuse("is what is read, or a part of it: write to another name");
        }
        for other in &self.others {
            // Of a pipe or a device two can be one after the other.
            let is_stream = matches!(place, Place::Stream(_));
            if !is_stream && final_name(&target, &place) == final_name(other, &other.place()?) {
                return refuse("is written by the same call: give it a name of its own");
            }
        }
        match place {
            Place::File(_) if !self.replaces => refuse("exists already"),
            _ => Ok(()),
        }
    }

    /// As [`Overwrite::check`], for a target that is a folder.
    ///
    /// # Errors
    /// Likewise, and if it is a folder with anything in it, unless it is one that `adds` to what is there.
    pub fn check_folder(&self, target: impl Into<Location>, adds: bool) -> Result<()> {
        let target = target.into();
        self.check(&target)?;
        let refuse = |message: &str| Err(target.blame(Error::invalid(message)));
        match target.place()? {
            Place::Free(_) => Ok(()),
            Place::Folder(_) if adds => Ok(()),
            Place::Folder(_) if self.replaces => refuse("a folder is not replaced; remove it first"),
            Place::Folder(path) if target.beside(path.as_path()).list()?.is_empty() => Ok(()),
            _ => refuse("exists already"),
        }
    }

    /// Whether what is there is one of the sources, or lies in one.
    fn is_read(&self, target: &Location) -> Result<bool> {
        for source in &self.sources {
            if paths::is_address(source) {
                // Of the same place there may be several addresses; what is written there is refused by the place itself.
                if Location::parse(source).is_ok_and(|source| is_in(target, &source)) {
                    return Ok(true);
                }
                continue;
            }
            for source in paths::expand_glob(source)? {
                let Ok(source) = source.real() else { continue };
                if is_in(target, &source) || is_same_file(target, &source) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Whether two places are one, or one is a folder that the other lies in.
fn is_in(inner: &Location, outer: &Location) -> bool {
    inner.storage().display("".as_ref()) == outer.storage().display("".as_ref())
        && inner.path().starts_with(outer.path())
}

/// Whether two names are those of one file.
fn is_same_file(a: &Location, b: &Location) -> bool {
    let tag = |file: &Location| file.entry().ok().flatten().and_then(|entry| entry.tag().cloned());
    a.local_path().is_some() && tag(a).is_some_and(|known| tag(b) == Some(known))
}

/// The name of what is there or will be, behind all links.
fn final_name(target: &Location, place: &Place) -> String {
    let path = match place {
        Place::File(path) | Place::Folder(path) | Place::Stream(path) => path.clone(),
        Place::Free(path) => {
            let file = target.beside(path);
            let real = file.parent().and_then(|parent| parent.real().ok());
            real.map_or_else(|| path.clone(), |parent| parent.path().join(file.name()))
        }
    };
    target.beside(path).to_string()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    #[cfg(unix)]
    fn what_is_read_is_not_written_over_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir_all(path("data/inner")).unwrap();
        for name in ["data/a.csv", "data/inner/b.csv", "other.csv"] {
            fs::write(path(name), "x\n1\n").unwrap();
        }
        std::os::unix::fs::symlink("data/a.csv", path("link")).unwrap();
        fs::hard_link(path("data/a.csv"), path("hard")).unwrap();
        let text = |name: &str| path(name).display().to_string();
        let rule = |source: &str| Overwrite::new(true).with_sources([text(source)]);
        for (source, target, is_refused) in [
            ("data/a.csv", "data/a.csv", true),
            ("data/a.csv", "data/inner/../a.csv", true),
            ("data/a.csv", "link", true),
            ("link", "data/a.csv", true),
            ("data/a.csv", "hard", true),
            ("data", "data/a.csv", true),
            ("data", "data/inner/b.csv", true),
            ("data/*.csv", "data/a.csv", true),
            ("data", "data", true),
            ("data", "data/new.csv", false),
            ("data/*.csv", "data/inner/b.csv", false),
            ("data", "other.csv", false),
            ("gone.csv", "other.csv", false),
        ] {
            let found = rule(source).check(path(target));
            assert_eq!(found.is_err(), is_refused, "{source} to {target}: {found:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn two_outputs_of_a_call_are_not_one_by_any_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("inner")).unwrap();
        fs::write(path("there"), "x").unwrap();
        std::os::unix::fs::symlink("there", path("link")).unwrap();
        std::os::unix::fs::symlink("new", path("to new")).unwrap();
        for (other, target, is_refused) in [
            ("new", "new", true),
            ("new", "inner/../new", true),
            ("new", "to new", true),
            ("there", "link", true),
            ("inner", "inner", true),
            ("new", "newer", false),
            ("inner", "inner/report", false),
        ] {
            let found = Overwrite::new(true).with_other_target(path(other)).check(path(target));
            assert_eq!(found.is_err(), is_refused, "{other} and {target}: {found:?}");
        }
    }

    #[test]
    fn a_file_is_replaced_only_if_asked_for_and_a_folder_never() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "x").unwrap();
        fs::create_dir_all(path("full/inner")).unwrap();
        fs::create_dir(path("empty")).unwrap();
        let words = |result: Result<()>| result.map_err(|error| error.kind().to_string());
        let exists = || Err("exists already".to_string());
        assert_eq!(words(Overwrite::new(false).check(path("file"))), exists());
        assert_eq!(words(Overwrite::new(true).check(path("file"))), Ok(()));
        assert_eq!(words(Overwrite::new(false).check(path("new"))), Ok(()));
        for (name, replaces, adds, expected) in [
            ("new", false, false, Ok(())),
            ("empty", false, false, Ok(())),
            ("full", false, false, exists()),
            ("full", true, false, Err("a folder is not replaced; remove it first".to_string())),
            ("full", false, true, Ok(())),
            ("file", false, false, exists()),
        ] {
            let found = words(Overwrite::new(replaces).check_folder(path(name), adds));
            assert_eq!(found, expected, "{name}");
        }
    }
}
