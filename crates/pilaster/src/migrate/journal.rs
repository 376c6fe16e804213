//! What is finished: a line of JSON for the source, and one for every file that is complete.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::Path;

use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Location, LostRows, Result};
use serde::{Deserialize, Serialize};

use super::in_order::Place;
use super::source::Identity;

const NAME: &str = "_pilaster_migration.jsonl";
/// No journal is larger.
const MOST_BYTES: u64 = 1 << 30;

/// A file that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Finished {
    pub rows: u64,
    pub bytes: u64,
    /// What of it could not be given, where that was to be skipped.
    pub losses: Vec<LostRows>,
    /// Where the next file begins, of a table that gives rows in order only; `None` behind its last one.
    pub next: Option<Place>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    piece: usize,
    path: String,
    rows: u64,
    bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    losses: Vec<LossLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Place>,
}

impl Line {
    fn finished(self) -> Finished {
        let losses = self.losses.into_iter().map(LossLine::lost).collect();
        Finished { rows: self.rows, bytes: self.bytes, losses, next: self.next }
    }
}

/// A loss, as the journal has it.
#[derive(Debug, Serialize, Deserialize)]
struct LossLine {
    part: Option<String>,
    first: Option<u64>,
    rows: Option<u64>,
    column: Option<String>,
    reason: String,
}

impl LossLine {
    fn of(lost: &LostRows) -> Self {
        Self {
            part: lost.part.clone(),
            first: lost.positions().map(|rows| rows.start),
            rows: lost.count(),
            column: lost.column.clone(),
            reason: lost.reason.clone(),
        }
    }

    fn lost(self) -> LostRows {
        let lost = match (self.first, self.rows) {
            (Some(first), Some(rows)) => LostRows::at(first..first.saturating_add(rows), self.reason),
            (None, Some(rows)) => LostRows::counted(rows, self.reason),
            (_, None) => LostRows::unknown(self.reason),
        };
        LostRows { part: self.part, column: self.column, ..lost }
    }
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
                    journal.finished.insert(line.piece, line.finished());
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
        let losses = finished.losses.iter().map(LossLine::of).collect();
        let (rows, bytes, next) = (finished.rows, finished.bytes, finished.next);
        self.append(&Line { piece, path: path.to_string(), rows, bytes, losses, next })?;
        self.finished.insert(piece, finished);
        Ok(())
    }

    fn append<T: Serialize>(&mut self, line: &T) -> Result<()> {
        let mut bytes = serde_json::to_vec(line).map_err(|error| Error::internal(error.to_string()))?;
        bytes.push(b'\n');
        self.file.write_all(&bytes).at(&self.name, 0, "")?;
        self.file.sync_data().at(&self.name, 0, "")
    }
}

/// What the journal in a folder says was written there.
#[derive(Debug)]
pub(super) struct Noted {
    pub identity: Identity,
    /// Every file by its number, with its path below the folder.
    pub files: BTreeMap<usize, (String, Finished)>,
}

impl Noted {
    /// Reads the journal in `folder`; `None` if there is none. A line that a killed run had begun is none.
    pub(super) fn read(folder: &Location, limits: &Limits) -> Result<Option<Self>> {
        let file = folder.child(NAME);
        if file.is_link()? || !file.is_file()? {
            return Ok(None);
        }
        let name = file.to_string();
        let bytes = file.read("metadata_bytes", limits.metadata_bytes)?;
        let text = std::str::from_utf8(&bytes).map_err(|error| Error::corrupt("a journal of text", error));
        let text = text.at(&name, 0, "")?;
        let mut lines = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let first = lines.next().ok_or_else(|| Error::corrupt("a line that says what is migrated", "none"));
        let first = first.at(&name, 0, "")?;
        let identity = parse(first).at(&name, 0, "")?;
        let mut files = BTreeMap::new();
        for line in lines {
            let line: Line = parse(line).at(&name, 0, "")?;
            let (number, path) = (line.piece, line.path.clone());
            files.insert(number, (path, line.finished()));
        }
        Ok(Some(Self { identity, files }))
    }
}

fn parse<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T> {
    serde_json::from_str(line).map_err(|error| Error::corrupt("a line of a migration's journal", error))
}
