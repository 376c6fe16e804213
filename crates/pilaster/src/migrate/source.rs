//! What a migration reads: whether it is the same when a run is continued.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use pilaster_core::{Dataset, Error, Result, ScanRequest};
use serde::{Deserialize, Serialize};

use super::MigrateOptions;

/// Of the journal's form.
const VERSION: u32 = 2;
/// How deep folders inside folders are followed.
const DEPTH: u32 = 64;

/// The first line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    version: u32,
    format: String,
    columns: Vec<String>,
    filter: Option<String>,
    /// Of a journal without any, there were none.
    #[serde(default)]
    choices: Vec<String>,
    rows: Option<u64>,
    bytes: u64,
    splits: usize,
    file_rows: u64,
    /// Files that are known before rows are read; 0 if none are.
    pieces: usize,
    files: Vec<SourceFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SourceFile {
    path: String,
    bytes: u64,
    modified: u64,
}

impl Identity {
    pub(super) fn of(
        dataset: &dyn Dataset,
        request: &ScanRequest,
        options: &MigrateOptions,
        splits: usize,
        pieces: usize,
    ) -> Result<Self> {
        let schema = request.output_schema(&dataset.schema())?;
        let mut files = Vec::new();
        for path in &options.source_paths {
            collect(path, DEPTH, &mut files);
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Self {
            version: VERSION,
            format: dataset.format().to_string(),
            columns: schema
                .fields()
                .iter()
                .map(|field| format!("{} {}", field.name(), field.data_type()))
                .collect(),
            filter: request.predicate.as_ref().map(ToString::to_string),
            choices: options.choices.clone(),
            rows: dataset.row_count(),
            bytes: dataset.size_bytes(),
            splits,
            file_rows: options.file_rows,
            pieces,
            files,
        })
    }

    /// How many files there are in the end; `None` if the last one is known only when it is written.
    pub(super) fn pieces(&self) -> Option<usize> {
        Some(self.pieces).filter(|pieces| *pieces > 0)
    }

    /// How many rows all files have together, where that was known before.
    pub(super) fn rows(&self) -> Option<u64> {
        self.rows.filter(|_| self.filter.is_none())
    }

    /// An error that says in what `self` differs from what an earlier run noted.
    pub(super) fn refuse_other(&self, earlier: &Self) -> Result<()> {
        if self == earlier {
            return Ok(());
        }
        let what = if self.version != earlier.version {
            "was begun by another version of this program".to_string()
        } else if self.columns != earlier.columns || self.filter != earlier.filter {
            "was begun with other columns or another filter".to_string()
        } else if self.choices != earlier.choices {
            let said = |choices: &[String]| match choices {
                [] => "all rows".to_string(),
                choices => choices.join(" "),
            };
            format!("was begun with {}, not {}", said(&earlier.choices), said(&self.choices))
        } else if self.file_rows != earlier.file_rows {
            format!("was begun with {} rows per file, not {}", earlier.file_rows, self.file_rows)
        } else {
            self.changed(earlier)
        };
        Err(Error::invalid(format!("{what}; begin again in an empty folder")))
    }

    fn changed(&self, earlier: &Self) -> String {
        let of = |files: &[SourceFile], path: &str| files.iter().find(|file| file.path == path).cloned();
        for file in &self.files {
            match of(&earlier.files, &file.path) {
                None => return format!("was begun before {} was there", file.path),
                Some(old) if old != *file => return format!("was begun before {} was changed", file.path),
                Some(_) => {}
            }
        }
        if let Some(gone) = earlier.files.iter().find(|file| of(&self.files, &file.path).is_none()) {
            return format!("was begun when {} was still there", gone.path);
        }
        let rows =
            |rows: Option<u64>| rows.map_or("an unknown number of".to_string(), |rows| rows.to_string());
        format!(
            "was begun with a source of {} rows and {} bytes, which now has {} rows and {} bytes",
            rows(earlier.rows),
            earlier.bytes,
            rows(self.rows),
            self.bytes
        )
    }
}

/// Adds the files at and below `path`; locks are no data. What cannot be looked at is noted as that: whether rows are missing because of
/// it, who reads them knows.
fn collect(path: &Path, depth: u32, files: &mut Vec<SourceFile>) {
    let name = path.display().to_string();
    let unread = || SourceFile { path: name.clone(), bytes: u64::MAX, modified: u64::MAX };
    let Ok(metadata) = fs::metadata(path) else { return files.push(unread()) };
    if metadata.is_dir() {
        let Some(depth) = depth.checked_sub(1) else { return };
        let Ok(entries) = fs::read_dir(path) else { return files.push(unread()) };
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.path(), entry.file_type()?))) {
                // A link may lead back up.
                Ok((_, kind)) if kind.is_symlink() => {}
                Ok((path, _)) => collect(&path, depth, files),
                Err(_) => files.push(unread()),
            }
        }
    } else if !name.ends_with(".lock") {
        let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified = modified.and_then(|time| u64::try_from(time.as_micros()).ok()).unwrap_or(0);
        files.push(SourceFile { path: name, bytes: metadata.len(), modified });
    }
}
