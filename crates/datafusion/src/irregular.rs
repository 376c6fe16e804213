//! Pipes, devices and sockets where DataFusion reads files by itself: it would wait for them, or take them for nothing.

use std::fs;
use std::path::{Path, PathBuf};

use datafusion::sql::parser::Statement;
use pilaster_core::{Error, Result};

/// How deep folders are looked into.
const DEEPEST: usize = 32;

/// Refuses a table of a statement that lies, or has a part, in what is no file.
///
/// # Errors
/// If it does, or cannot be looked at.
pub(crate) fn check_statement(statement: &Statement) -> Result<()> {
    match statement {
        Statement::CreateExternalTable(create) => {
            create.locations.iter().try_for_each(|location| check(location))
        }
        Statement::Explain(explain) => check_statement(&explain.statement),
        _ => Ok(()),
    }
}

/// The same for a path, or a pattern of paths, of this machine; what is elsewhere or not there is for others to say.
///
/// # Errors
/// As [`check_statement`].
pub(crate) fn check(address: &str) -> Result<()> {
    let Some(path) = pilaster::local_path(address) else { return Ok(()) };
    if fs::symlink_metadata(path).is_ok() {
        return check_path(path, 0);
    }
    let matched: Vec<PathBuf> = glob::glob(&path.to_string_lossy()).into_iter().flatten().flatten().collect();
    matched.iter().try_for_each(|path| check_path(path, 0))
}

fn check_path(path: &Path, depth: usize) -> Result<()> {
    let blame = |error: Error| error.at(&path.display().to_string(), 0, "");
    let metadata = fs::metadata(path).map_err(|error| blame(error.into()))?;
    if metadata.is_file() {
        return Ok(());
    }
    if !metadata.is_dir() {
        return Err(blame(Error::invalid("is a pipe, a device or a socket: what is read must be a file")));
    }
    if depth >= DEEPEST {
        return Err(blame(Error::invalid(format!("more than {DEEPEST} folders inside each other"))));
    }
    for entry in fs::read_dir(path).map_err(|error| blame(error.into()))? {
        let entry = entry.map_err(|error| blame(error.into()))?;
        // A link to a folder is not followed, so that no circle is gone round.
        if !entry.path().is_dir() || entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            check_path(&entry.path(), depth.saturating_add(1))?;
        }
    }
    Ok(())
}
