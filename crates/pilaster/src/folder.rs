//! A folder of files: which of them hold its rows, and what lies beside them.
//!
//! Notes, logs and reports lie beside data. They do not keep anyone from reading it, are never taken for it, and are said.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use pilaster_core::storage::EntryKind;
use pilaster_core::{Error, ErrorKind, Finding, Location, Result, Severity, SourceRef};

use crate::detect::{Format, detect};
use crate::paths;

/// Extensions of files that hold rows: one of these that is of no known format is damaged, and not something else.
const DATA: [&str; 17] = [
    "parquet",
    "parq",
    "pq",
    "arrow",
    "arrows",
    "feather",
    "ipc",
    "red",
    "cfile",
    "dat",
    "idx",
    "carbondata",
    "csv",
    "tsv",
    "tab",
    "json",
    "jsonl",
];

/// Those of text that holds rows.
const TEXT: [&str; 6] = ["csv", "tsv", "tab", "json", "jsonl", "ndjson"];

/// A file that may hold rows of the folder's table.
pub(crate) struct DataFile {
    /// Its path, for people.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) place: Location,
    /// Its bytes and what they are; why that is not known otherwise.
    pub(crate) content: Result<(SourceRef, Format)>,
}

/// What lies directly in a folder.
pub(crate) struct Folder {
    /// What holds its rows, by name.
    pub(crate) files: Vec<DataFile>,
    /// Folders in it.
    pub(crate) folders: Vec<Location>,
    /// What was looked at and is no part of it.
    pub(crate) passed_over: Vec<Finding>,
}

impl Folder {
    /// Looks at what lies in a folder, without hidden files and markers.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] if the folder cannot be read.
    pub(crate) fn look(folder: &Location) -> Result<Self> {
        Ok(Self::of(paths::entries(folder)?, false))
    }

    /// The paths of the files.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.files.iter().map(|file| file.name.as_str()).collect()
    }

    /// As [`Folder::look`], of these, beside which there may be folders that hold the rows.
    pub(crate) fn of(places: Vec<Location>, has_folders: bool) -> Self {
        let (mut files, mut folders, mut passed_over) = (Vec::new(), Vec::new(), Vec::new());
        for place in places {
            match paths::kind(&place) {
                Ok(Some(EntryKind::Folder)) => folders.push(place),
                Ok(Some(EntryKind::Other)) => {
                    passed_over.push(note(&place, "is a pipe or a device: it is passed over"));
                }
                // A link that leads nowhere is a file that is gone, and what nobody may look at has an error that says so.
                Ok(Some(EntryKind::File) | None) | Err(_) => files.push(place),
            }
        }
        let files = files.into_iter().map(|place: Location| {
            let content = place.open().and_then(|source| {
                let format = detect(source.as_ref())?;
                Ok((source, format))
            });
            DataFile { name: place.to_string(), place, content }
        });
        let mut files: Vec<_> = files.collect();
        let is_stray = strays(&files, has_folders || !folders.is_empty());
        let mut is_stray = is_stray.into_iter();
        files.retain(|file| {
            let reason = is_stray.next().flatten();
            passed_over.extend(reason.map(|reason| note(&file.place, reason)));
            reason.is_none()
        });
        Self { files, folders, passed_over }
    }
}

/// Why each of these files is no part of the table, if it is none.
fn strays(files: &[DataFile], has_folders: bool) -> Vec<Option<&'static str>> {
    let formats = || files.iter().filter_map(|file| file.content.as_ref().ok().map(|(_, format)| *format));
    let has_columns = formats().any(|format| !is_text(format));
    let has_rows_by_name = files.iter().any(|file| {
        matches!(&file.content, Ok((_, format)) if is_text(*format)) && has_extension(&file.name, &TEXT)
    });
    let reason = |file: &DataFile| {
        let has_other_name = extension(&file.name).is_some();
        match &file.content {
            Ok((_, format))
                if is_text(*format) && has_columns && has_other_name && !is_columnar_name(&file.name) =>
            {
                Some("is text beside files of another format: it is passed over")
            }
            Ok((_, format))
                if is_text(*format)
                    && has_other_name
                    && !has_extension(&file.name, &TEXT)
                    && (has_folders || has_rows_by_name) =>
            {
                Some("is text that does not call itself a table: it is passed over")
            }
            Err(error)
                if has_other_name
                    && !has_extension(&file.name, &DATA)
                    && matches!(error.kind(), ErrorKind::InvalidInput(_))
                    && formats().next().is_some() =>
            {
                Some("is of no known format and calls itself none: it is passed over")
            }
            _ => None,
        }
    };
    files.iter().map(reason).collect()
}

fn is_text(format: Format) -> bool {
    matches!(format, Format::Csv | Format::Tsv | Format::JsonLines)
}

/// Whether a file calls itself one of a format that is not text: then it is a damaged one, and no stray.
fn is_columnar_name(name: &str) -> bool {
    has_extension(name, &DATA) && !has_extension(name, &TEXT)
}

/// Whether a file is of a format that is not text.
#[cfg(feature = "kudu")]
pub(crate) fn has_columnar_files(folder: &Location) -> bool {
    let is_columnar = |file: Location| {
        file.is_file().unwrap_or(false)
            && file.open().and_then(|source| detect(source.as_ref())).is_ok_and(|format| !is_text(format))
    };
    paths::entries(folder).is_ok_and(|entries| entries.into_iter().any(is_columnar))
}

/// Whether nothing about a file says that it held rows, so that it is no damage that it holds none.
pub(crate) fn calls_itself_no_data(name: &str) -> bool {
    extension(name).is_some() && !has_extension(name, &DATA)
}

fn extension(name: &str) -> Option<String> {
    Path::new(name).extension().map(|extension| extension.to_string_lossy().to_ascii_lowercase())
}

fn has_extension(name: &str, list: &[&str]) -> bool {
    extension(name).is_some_and(|extension| list.contains(&extension.as_str()))
}

/// What is said of something that is no damage.
pub(crate) fn note(place: &Location, message: &str) -> Finding {
    Finding {
        severity: Severity::Warning,
        path: Arc::from(place.to_string()),
        offset: 0,
        part: String::new(),
        message: message.to_string(),
        rows: None,
    }
}

/// How many folders are looked into for one that cannot be.
const MOST_LOOKED_INTO: usize = 4096;

/// Why a folder that is one of these, or lies below them, cannot be listed, if there is one: it may be the one with the rows.
pub(crate) fn unlisted_below(folders: &[Location]) -> Option<Error> {
    let mut pending: VecDeque<Location> = folders.iter().cloned().collect();
    for _ in 0..MOST_LOOKED_INTO {
        let folder = pending.pop_front()?;
        match paths::read_folder(&folder) {
            // Links may lead back up.
            Ok(entries) => {
                let is_own = |place: &Location| {
                    !place.is_link().unwrap_or(false) && place.is_folder().unwrap_or(false)
                };
                pending.extend(entries.into_iter().filter(is_own));
            }
            Err(error) => return Some(error),
        }
    }
    None
}

/// The error of a folder without a file to read.
pub(crate) fn nothing_to_read(folder: &Location, inside: &Folder) -> Error {
    let names = |folders: &[Location]| -> Vec<_> {
        folders.iter().take(5).map(|folder| folder.name().to_string_lossy().into_owned()).collect()
    };
    // The table may be where nobody could look.
    if let Some(error) = unlisted_below(&inside.folders) {
        return error;
    }
    let message = match (inside.folders.as_slice(), inside.passed_over.as_slice()) {
        ([], []) => "is a folder without files".to_string(),
        ([], _) => "is a folder without a file that holds rows".to_string(),
        (folders, _) => format!(
            "is a folder without files that hold rows, and of no known table; below it are: {}",
            names(folders).join(", ")
        ),
    };
    folder.blame(Error::invalid(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_lies_beside_data_is_passed_over_and_said() {
        let parquet: &[u8] = b"PAR1....";
        let table: &[u8] = b"a,b\n1,2\n";
        let words: &[u8] = b"Lost rows, as far as known\n";
        // files, whether there is a folder too, those that hold the rows
        type Case<'a> = (&'a [(&'a str, &'a [u8])], bool, &'a [&'a str]);
        let cases: [Case<'_>; 7] = [
            (&[("a.parquet", parquet), ("damage.txt", table), ("README.md", words)], false, &["a.parquet"]),
            (&[("a.parquet", parquet), ("b.csv", table)], false, &["a.parquet"]),
            (&[("a.parquet", parquet), ("b.parquet", words)], false, &["a.parquet", "b.parquet"]),
            (&[("a.parquet", parquet), ("0a1b", words)], false, &["0a1b", "a.parquet"]),
            (&[("a.csv", table), ("damage.txt", table)], false, &["a.csv"]),
            (&[("damage.txt", table)], true, &[]),
            (&[("a.txt", table), ("b.txt", table)], false, &["a.txt", "b.txt"]),
        ];
        for (given, has_folder, expected) in cases {
            let place = tempfile::tempdir().unwrap();
            for (name, bytes) in given {
                fs::write(place.path().join(name), bytes).unwrap();
            }
            if has_folder {
                fs::create_dir(place.path().join("data")).unwrap();
            }
            let found = Folder::look(&place.path().into()).unwrap();
            let names: Vec<_> = found
                .files
                .iter()
                .map(|file| Path::new(&file.name).file_name().unwrap().to_str().unwrap())
                .collect();
            assert_eq!(names, expected, "{given:?}");
            assert_eq!(found.passed_over.len(), given.len() - expected.len(), "{given:?}");
        }
    }

    #[test]
    #[cfg(unix)]
    fn files_whose_names_are_no_text_are_read() {
        use std::os::unix::ffi::OsStrExt;
        let place = tempfile::tempdir().unwrap();
        for (name, rows) in [(&b"caf\xe9.csv"[..], "a,b\n1,2\n"), (b"x.csv", "a,b\n3,4\n5,6\n")] {
            fs::write(place.path().join(std::ffi::OsStr::from_bytes(name)), rows).unwrap();
        }
        let table = crate::open(place.path().to_str().unwrap()).unwrap();
        assert_eq!(table.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 3);
    }

    #[test]
    #[cfg(unix)]
    fn a_pipe_is_not_opened() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a.csv"), "a,b\n1,2\n").unwrap();
        let made = std::process::Command::new("mkfifo").arg(place.path().join("pipe")).status();
        assert!(made.unwrap().success());
        let found = Folder::look(&place.path().into()).unwrap();
        assert_eq!((found.files.len(), found.passed_over.len()), (1, 1));
    }
}
