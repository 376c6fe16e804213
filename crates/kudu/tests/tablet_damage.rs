//! Damaged server folders: everything that can be given back is, and nothing wrong is given silently.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

mod support;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilaster_core::{Dataset, LossLog, Severity};
use pilaster_testing::needs;
use support::tables::{Rows, compare, expectations, expected_rows, open, open_store, rows_of, scan};

/// Each folder of `damaged/`, whether a plain scan gives everything or stops, and what its error names.
const DAMAGED: &[(&str, Option<&str>)] = &[
    ("clean", None),
    ("cfile-flip", Some("checksum")),
    ("data-missing", None),
    ("data-short", None),
    ("instance-missing", None),
    ("meta-body-flip", None),
    ("meta-length-flip", None),
    ("meta-missing", None),
    ("meta-torn", None),
    ("meta-zero-tail", None),
    ("recovery-dir", None),
    ("superblock-flip", None),
    ("superblock-missing", None),
    ("wal-flip", None),
    ("wal-missing", Some("expected a log, found none")),
    ("wal-torn", None),
];

#[needs(goldens = "kudu-extra")]
#[test]
fn every_damaged_folder_gives_back_all_that_the_rules_promise() {
    let root = pilaster_testing::goldens("kudu-extra").join("damaged");
    let mut failures = Vec::new();
    for (kind, refusal) in DAMAGED {
        for expected in expectations(&root) {
            let at = format!("{kind} @{:?}", expected.as_of);
            let folder = root.join(kind).join("fs");
            let table = open(&folder, None, expected.as_of).unwrap();
            let wanted = expected_rows(&expected, &table.schema());
            match (scan(&table, None), refusal) {
                (Ok(found), None) => {
                    if let Err(error) = compare(&found, &wanted) {
                        failures.push(format!("{at}: {error}"));
                    }
                    let errors = table.findings().into_iter().filter(|f| f.severity == Severity::Error);
                    failures.extend(errors.map(|finding| format!("{at}: {finding}")));
                }
                (Err(error), Some(text)) => {
                    assert!(error.contains(text) && error.contains("`salvage`"), "{at}: {error}");
                }
                (Ok(_), Some(_)) => failures.push(format!("{at}: rows instead of an error")),
                (Err(error), None) => failures.push(format!("{at}: {error}")),
            }
            let losses = Arc::new(LossLog::new());
            let found = scan(&table, Some(&losses)).unwrap();
            // What was only in the lost log is lost.
            let is_lost = *kind == "wal-missing";
            match compare(&found, &wanted) {
                Ok(_) if is_lost == (losses.is_empty()) => {
                    failures.push(format!("{at}: {:?}", losses.losses()))
                }
                // Rows that the lost log may have changed come apart.
                Err(error) if !is_lost || found.iter().any(|row| !wanted.contains(row)) => {
                    failures.push(format!("{at}, tolerant: {error} {:?}", losses.losses()));
                }
                _ => {}
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// A copy of a folder, in which one file at a time is changed.
struct Folder {
    name: String,
    copy: tempfile::TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
    /// The rows of one table at some times.
    expected: Vec<(Option<u64>, Rows)>,
    table: String,
}

impl Folder {
    fn read(case: &Path, table: &str, most_snapshots: usize) -> Self {
        let mut files = Vec::new();
        let root = case.join("fs");
        let mut pending = vec![root.clone()];
        while let Some(folder) = pending.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    pending.push(path);
                } else {
                    files.push((path.strip_prefix(&root).unwrap().into(), std::fs::read(&path).unwrap()));
                }
            }
        }
        files.sort();
        let schema = open(&root, Some(table), None).unwrap().schema();
        let of_table = expectations(case).into_iter().filter(|expected| expected.table == table);
        let (latest, snapshots): (Vec<_>, Vec<_>) = of_table.partition(|expected| expected.as_of.is_none());
        let chosen = latest.iter().chain(snapshots.iter().step_by(2).take(most_snapshots));
        let expected = chosen.map(|e| (e.as_of, expected_rows(e, &schema))).collect();
        let name = case.file_name().unwrap().to_str().unwrap().to_string();
        let copy = tempfile::tempdir().unwrap();
        let folder = Self { name, copy, files, expected, table: table.to_string() };
        for (path, bytes) in &folder.files {
            folder.write(path, Some(bytes));
        }
        folder
    }

    /// Writes a file of the copy, or deletes it.
    fn write(&self, path: &Path, bytes: Option<&[u8]>) {
        let path = self.copy.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match bytes {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
    }

    /// Reads the folder with one file changed and says what is silently wrong.
    fn check(&self, what: &str, changed: usize, bytes: Option<&[u8]>, tally: &mut Tally) {
        let (path, whole) = &self.files[changed];
        self.write(path, bytes);
        self.check_copy(what, path, whole, bytes, tally);
        self.write(path, Some(whole));
    }

    fn check_copy(&self, what: &str, path: &Path, whole: &[u8], bytes: Option<&[u8]>, tally: &mut Tally) {
        let store = open_store(self.copy.path());
        // Where a log is cut between two entries nothing proves that there were more.
        let is_shorter = bytes.is_some_and(|bytes| bytes.len() < whole.len());
        let is_cut_log = path.starts_with("wals") && is_shorter;
        for (as_of, wanted) in &self.expected {
            let at = format!("{} {} {what} @{as_of:?}", self.name, path.display());
            let store = store.as_ref().map(|store| store.clone().at(*as_of));
            // A lost superblock takes the name of the table with it.
            let opened = store.map(|store| store.table(Some(&self.table)).or_else(|_| store.table(None)));
            let Ok(Ok(table)) = opened else {
                tally.refused += 1;
                continue;
            };
            let warns_of_cut = || table.findings().iter().any(|finding| finding.message.contains("cut off"));
            match scan(&table, None) {
                Err(error) => {
                    tally.refused += 1;
                    if !error.contains("`salvage`") {
                        tally.failures.push(format!("{at}: no hint in {error}"));
                    }
                }
                Ok(found) => match compare(&found, wanted) {
                    Ok(_) => tally.right += 1,
                    Err(_) if is_cut_log && warns_of_cut() => tally.warned += 1,
                    Err(error) => tally.failures.push(format!("{at}: {error}; {:?}", table.findings())),
                },
            }
            let losses = Arc::new(LossLog::new());
            match scan(&table, Some(&losses)) {
                Err(error) => tally.failures.push(format!("{at}, tolerant: {error}")),
                Ok(found) => match compare(&found, wanted) {
                    Ok(_) => tally.salvaged += 1,
                    Err(_) if !losses.is_empty() => tally.partly += 1,
                    Err(_) if is_cut_log && warns_of_cut() => tally.partly += 1,
                    Err(error) => tally.failures.push(format!("{at}, tolerant: {error}")),
                },
            }
        }
    }
}

/// How scans of damaged folders ended.
#[derive(Debug, Default)]
struct Tally {
    right: usize,
    refused: usize,
    warned: usize,
    /// Tolerant scans that gave everything.
    salvaged: usize,
    /// Tolerant scans that noted losses.
    partly: usize,
    failures: Vec<String>,
}

impl Tally {
    fn finish(self, what: &str) {
        let Self { right, refused, warned, salvaged, partly, failures } = self;
        eprintln!(
            "{what}: {right} right, {refused} refused, {warned} warned; tolerant: {salvaged} whole, {partly} with losses"
        );
        assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    }
}

fn folders() -> [Folder; 2] {
    let testdata = support::testdata();
    [Folder::read(&testdata.join("tiny"), "tiny", 0), Folder::read(&testdata.join("mixed"), "mixed", 1)]
}

/// Of a real server; in tests of its own, so that they can run beside the others.
fn deltas() -> [Folder; 1] {
    [Folder::read(&support::goldens().join("delta-redo"), "deltas", 1)]
}

#[test]
fn a_file_that_is_deleted_costs_nothing_silently() {
    delete_files(&folders());
}

#[needs(goldens = "kudu")]
#[test]
fn a_file_of_deltas_that_is_deleted_costs_nothing_silently() {
    delete_files(&deltas());
}

fn delete_files(folders: &[Folder]) {
    let mut tally = Tally::default();
    for folder in folders {
        for file in 0..folder.files.len() {
            folder.check("deleted", file, None, &mut tally);
        }
    }
    tally.finish("deleted");
}

#[test]
fn a_file_that_is_cut_short_costs_nothing_silently() {
    cut_files(&folders(), 8);
}

#[needs(goldens = "kudu")]
#[test]
fn a_file_of_deltas_that_is_cut_short_costs_nothing_silently() {
    cut_files(&deltas(), 30);
}

fn cut_files(folders: &[Folder], points: usize) {
    let mut tally = Tally::default();
    for folder in folders {
        for (file, (_, bytes)) in folder.files.iter().enumerate() {
            let mut cuts: Vec<_> = (0..points).map(|point| bytes.len() * point / points).collect();
            cuts.dedup();
            for cut in cuts {
                folder.check(&format!("cut at {cut}"), file, Some(&bytes[..cut]), &mut tally);
            }
        }
    }
    tally.finish("cut");
}

#[test]
fn a_byte_that_is_changed_costs_nothing_silently() {
    change_bytes(&folders(), &[60, 120]);
}

#[needs(goldens = "kudu")]
#[test]
fn a_byte_of_deltas_that_is_changed_costs_nothing_silently() {
    change_bytes(&deltas(), &[120]);
}

fn change_bytes(folders: &[Folder], flips: &[usize]) {
    let mut tally = Tally::default();
    for (folder, &flips) in folders.iter().zip(flips) {
        let mut random = support::Numbers(42);
        for _ in 0..flips {
            let file = random.next() as usize % folder.files.len();
            let mut bytes = folder.files[file].1.clone();
            if bytes.is_empty() {
                continue;
            }
            let at = random.next() as usize % bytes.len();
            let bit = 1 << (random.next() % 8);
            bytes[at] ^= bit;
            folder.check(&format!("byte {at} ^ {bit:02x}"), file, Some(&bytes), &mut tally);
        }
    }
    tally.finish("flipped");
}

#[needs(goldens = "kudu-extra")]
#[test]
fn flushed_rows_come_back_without_superblock_and_log_entries() {
    let root = pilaster_testing::goldens("kudu-extra").join("damaged");
    let clean = root.join("clean");
    for expected in expectations(&root) {
        let target = tempfile::tempdir().unwrap();
        copy(&clean.join("fs"), target.path(), &mut |path, bytes| {
            let name = path.to_str().unwrap();
            match () {
                () if name.contains("tablet-meta") => None,
                () if name.contains("wals") => {
                    let header = u32::from_le_bytes(*bytes[8..].first_chunk().unwrap()) as usize;
                    Some(bytes[..12 + header].to_vec())
                }
                () => Some(bytes),
            }
        });
        let table = open(target.path(), None, expected.as_of).unwrap();
        assert!(scan(&table, None).unwrap_err().contains("expected a superblock, found none"));
        let losses = Arc::new(LossLog::new());
        let mut found = scan(&table, Some(&losses)).unwrap();
        assert!(!losses.is_empty());
        let wanted = expected_rows(&expected, &table.schema());
        assert!(found.iter().all(|row| wanted.contains(row)));
        // Nothing proves what is left: it comes apart.
        let apart = open_store(target.path()).unwrap().at(expected.as_of).unproven(None).unwrap();
        for rows in apart.iter().map(|apart| apart.rows.scan().read().unwrap()) {
            found.extend(rows_of(&rows.map(Result::unwrap).collect::<Vec<_>>()));
        }
        // They may be of another time, but none is gone.
        let keys: HashSet<_> = found.iter().map(|row| row[0].clone()).collect();
        if expected.as_of.is_some() {
            assert!(wanted.iter().all(|row| keys.contains(&row[0])), "{:?}", expected.as_of);
        }
    }
}

/// Without any block, tablets whose log begins with the first operation are made again from it.
#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn every_golden_table_comes_out_of_its_log_alone_or_not_at_all() {
    let goldens = support::goldens();
    let (mut right, mut refused, mut failures) = (0, 0, Vec::new());
    for root in [goldens.clone(), goldens.join("../kudu-extra")] {
        let mut cases: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
        cases.retain(|case| case.join("case.json").is_file() && case.join("fs").is_dir());
        for case in cases {
            let target = tempfile::tempdir().unwrap();
            copy(&case.join("fs"), target.path(), &mut |path, bytes| {
                let is_block = path.components().any(|part| part.as_os_str() == "data")
                    && path.file_name().is_some_and(|name| name != "block_manager_instance");
                (!is_block).then_some(bytes)
            });
            for expected in expectations(&case) {
                let at = format!("{} {} @{:?}", case.display(), expected.table, expected.as_of);
                let found = open(target.path(), Some(&expected.table), expected.as_of)
                    .and_then(|table| Ok((scan(&table, None)?, expected_rows(&expected, &table.schema()))));
                match found {
                    Err(_) => refused += 1,
                    Ok((mut found, mut wanted)) => {
                        found.sort();
                        wanted.sort();
                        match compare(&found, &wanted) {
                            Ok(_) => right += 1,
                            Err(error) => failures.push(format!("{at}: {error}")),
                        }
                    }
                }
            }
        }
    }
    eprintln!("from the log alone: {right} right, {refused} refused");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(right > 200);
}

/// Says what becomes of a file.
type Change<'a> = &'a mut dyn FnMut(&Path, Vec<u8>) -> Option<Vec<u8>>;

/// Copies a folder, with changes.
fn copy(from: &Path, to: &Path, change: Change) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        if path.is_dir() {
            copy(&path, &target, change);
        } else if let Some(bytes) = change(&path, std::fs::read(&path).unwrap()) {
            std::fs::write(target, bytes).unwrap();
        }
    }
}
