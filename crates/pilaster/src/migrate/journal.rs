//! What is finished: a line of JSON for the source, and one for every file that is complete.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Result};
use serde::{Deserialize, Serialize};

use super::source::Identity;

const NAME: &str = "_pilaster_migration.jsonl";
/// No journal is larger.
const MOST_BYTES: u64 = 1 << 30;

/// A file that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Finished {
    pub rows: u64,
    pub bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    piece: usize,
    path: String,
    rows: u64,
    bytes: u64,
}

/// The journal of a target folder, which nobody else writes to while it is open.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    name: String,
    finished: HashMap<usize, Finished>,
}

impl Drop for Journal {
    fn drop(&mut self) {
        // Closing is not enough while a process that is just being started still shares the open file.
        let _ = self.file.unlock();
    }
}

impl Journal {
    /// Opens the journal of `folder`, or begins it if the folder is empty or not there.
    pub(super) fn open(folder: &Path, identity: &Identity) -> Result<Self> {
        let path = folder.join(NAME);
        let name = path.display().to_string();
        let folder_name = folder.display().to_string();
        if !path.exists() && fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
            let message = "is not empty, and no migration that could be continued";
            return Err(Error::invalid(message).at(&folder_name, 0, ""));
        }
        fs::create_dir_all(folder).at(&folder_name, 0, "")?;
        let mut file =
            OpenOptions::new().read(true).append(true).create(true).open(&path).at(&name, 0, "")?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::invalid("another migration is writing here").at(&folder_name, 0, ""));
            }
            Err(TryLockError::Error(error)) => return Err(Error::from(error).at(&name, 0, "")),
        }
        let size = file.metadata().at(&name, 0, "")?.len();
        if size > MOST_BYTES {
            return Err(
                Error::corrupt(format!("a journal of at most {MOST_BYTES} bytes"), size).at(&name, 0, "")
            );
        }
        let mut text = String::new();
        file.read_to_string(&mut text).at(&name, 0, "")?;
        // A line without an end is what a killed run had begun.
        let whole = text.rfind('\n').map_or(0, |end| end.saturating_add(1));
        file.set_len(whole as u64).at(&name, 0, "")?;
        let mut journal = Self { file, name, finished: HashMap::new() };
        let mut lines = text.get(..whole).unwrap_or_default().lines();
        match lines.next() {
            None => journal.append(identity)?,
            Some(first) => {
                let earlier: Identity = parse(first).at(&journal.name, 0, "")?;
                identity.refuse_other(&earlier).map_err(|error| error.at(&folder_name, 0, ""))?;
                for line in lines {
                    let line: Line = parse(line).at(&journal.name, 0, "")?;
                    journal.finished.insert(line.piece, Finished { rows: line.rows, bytes: line.bytes });
                }
            }
        }
        Ok(journal)
    }

    /// A file that an earlier run has finished.
    pub(super) fn finished(&self, piece: usize) -> Option<&Finished> {
        self.finished.get(&piece)
    }

    /// Notes that a file is complete.
    pub(super) fn note(&mut self, piece: usize, path: &str, finished: Finished) -> Result<()> {
        self.append(&Line { piece, path: path.to_string(), rows: finished.rows, bytes: finished.bytes })?;
        self.finished.insert(piece, finished);
        Ok(())
    }

    fn append<T: Serialize>(&mut self, line: &T) -> Result<()> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| Error::invalid(error.to_string()))?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).at(&self.name, 0, "")?;
        self.file.sync_data().at(&self.name, 0, "")
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| Error::corrupt("a line of a migration's journal", error))
}
