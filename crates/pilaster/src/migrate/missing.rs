//! What a migration has noted as written and is not in its folder, and what it has not written yet.

use std::sync::Arc;

use pilaster_core::{Absence, Limits, Location, Result};

use super::journal::Noted;

/// The parts of a migrated table that are not here; none of a folder that no migration has written.
///
/// # Errors
/// [`pilaster_core::ErrorKind::Io`] if nobody can tell.
pub(crate) fn missing_parts(folder: &Location, limits: &Limits) -> Result<Vec<Absence>> {
    let here: Arc<str> = Arc::from(folder.to_string());
    let noted = match Noted::read(folder, limits) {
        Ok(Some(noted)) => noted,
        Ok(None) => return Ok(Vec::new()),
        Err(error) if error.is_damage() => {
            let what = format!("which files there must be is not known: {error}");
            return Ok(vec![Absence { path: here, what, rows: None }]);
        }
        Err(error) => return Err(error),
    };
    let mut missing = Vec::new();
    for (path, finished) in noted.files.values() {
        let file = folder.child(path);
        if !file.is_link()? && file.entry()?.is_none() {
            let what = "a file that the migration into this folder has written is not here".to_string();
            let path = Arc::from(file.to_string());
            missing.push(Absence { path, what, rows: Some(finished.rows) });
        }
    }
    let is_finished = match noted.identity.pieces() {
        Some(pieces) => (0..pieces).all(|number| noted.files.contains_key(&number)),
        None => {
            let numbers = noted.files.keys().copied().zip(0..).all(|(number, expected)| number == expected);
            numbers && noted.files.last_key_value().is_some_and(|(_, (_, last))| last.next.is_none())
        }
    };
    if !is_finished {
        let written = noted.files.values().map(|(_, finished)| finished.rows).fold(0, u64::saturating_add);
        let loses = noted.files.values().any(|(_, finished)| !finished.losses.is_empty());
        let left = noted.identity.rows().filter(|_| !loses).map(|rows| rows.saturating_sub(written));
        let what =
            "the migration into this folder is not finished: the same call goes on with it".to_string();
        missing.push(Absence { path: here, what, rows: left });
    }
    Ok(missing)
}
