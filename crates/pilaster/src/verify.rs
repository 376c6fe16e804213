//! Looking for damage in files, folders and globs.

use std::collections::BTreeSet;
use std::io;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::SchemaRef;
use pilaster_core::storage::EntryKind;
use pilaster_core::{
    Absence, DatasetRef, Error, ErrorKind, Finding, Location, Progress, Result, Severity, VerifyDepth,
    VerifyReport,
};
use serde_json::{Value, json};

use crate::concat::check_same;
use crate::folder::{DataFile, Folder, calls_itself_no_data, note};
use crate::formats::Driver;
use crate::hive;
use crate::open::{OpenOptions, Opened, table_driver};
use crate::paths;
use crate::store::{beside_tables, store_driver};

/// Verifies each path, and everything below it; what cannot even be opened is a finding too, and so is what was passed over.
/// Progress counts bytes.
///
/// # Errors
/// If a path does not exist or cannot be looked at; what is below it, is in the report.
pub fn verify<S: AsRef<str>>(
    paths: &[S],
    options: &OpenOptions,
    depth: VerifyDepth,
    progress: &dyn Progress,
) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let progress = &Summed::new(progress);
    let mut walk = Walk { options, depth, progress, seen: BTreeSet::new() };
    let folders = paths::places(paths)?;
    if let ([_, _, ..], Some(driver)) = (folders.as_slice(), store_driver(&folders)) {
        report = driver.open_store(&folders, options)?.verify(options.table(), depth, progress)?;
        for folder in &folders {
            walk.beside(driver, folder, &mut report);
        }
        return Ok(report);
    }
    for path in paths {
        for path in paths::expand_glob(path.as_ref())? {
            let kind = match paths::kind(&path) {
                // Not every server can list what it has: then opening the place as a file tells what is wrong with it.
                Err(_) if path.local_path().is_none() => None,
                kind => kind?,
            };
            if kind == Some(EntryKind::Folder) {
                // What cannot be read at all is an error of the call.
                paths::read_folder(&path)?;
                let before = (report.files, report.findings.len());
                walk.folder(&path, false, &mut report)?;
                if before == (report.files, report.findings.len()) {
                    return Err(path.blame(Error::invalid("is a folder without files")));
                }
            } else {
                verify_all(options.open_one(&path)?.parts, depth, progress, &mut report)?;
            }
        }
    }
    Ok(report)
}

/// Everything below a folder.
struct Walk<'a> {
    options: &'a OpenOptions,
    depth: VerifyDepth,
    progress: &'a dyn Progress,
    /// Folders that were looked into, by the path behind all links: links may lead back up.
    seen: BTreeSet<Location>,
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Location, is_in_partitions: bool, report: &mut VerifyReport) -> Result<()> {
        let name = folder.to_string();
        if !self.seen.insert(folder.real()?) {
            return Ok(());
        }
        if let Some(driver) = table_driver(folder) {
            let opened = vec![(name.clone(), driver.open_table(folder, self.options))];
            return verify_all(opened, self.depth, self.progress, report);
        }
        // What lies below a folder of several systems is looked at one by one.
        if let Some(driver) = store_driver(slice::from_ref(folder)) {
            let store = driver.open_store(slice::from_ref(folder), self.options)?;
            report.merge(store.verify(self.options.table(), self.depth, self.progress)?);
            self.beside(driver, folder, report);
            return Ok(());
        }
        if is_in_partitions {
            // The folder of the whole has said it.
        } else if let Err(error) = hive::open(folder, self.options)
            && is_unknown(&error)
        {
            report.findings.push(note(folder, &format!("is no one table: {error}")));
        }
        let inside = Folder::look(folder)?;
        report
            .findings
            .extend(self.options.missing_in(folder, &inside.names())?.iter().map(Absence::finding));
        report.findings.extend(inside.passed_over);
        let mut first: Option<(SchemaRef, String)> = None;
        let mut has_others = false;
        for DataFile { name, place, content } in inside.files {
            let opened = match content {
                Ok((source, format)) => self.options.open_detected(source, format),
                // Not a word of it says that it was data.
                Err(error) if is_unknown(&error) && calls_itself_no_data(&name) => {
                    report.findings.push(note(&place, "is of no known format: it is passed over"));
                    continue;
                }
                Err(error) => self.options.open_claimed(&place, error),
            };
            match (&first, &opened) {
                (Some((schema, file)), Ok(other)) if !has_others => {
                    // Each by itself may be sound; whoever reads the folder is refused, and is told here too.
                    if let Err(error) = check_same(schema, file, other.as_ref()) {
                        has_others = true;
                        report.findings.push(note(folder, &format!("is no one table: {error}")));
                    }
                }
                (None, Ok(opened)) => first = Some((opened.schema(), name.clone())),
                _ => {}
            }
            self.files(vec![(name, opened)], report);
        }
        let is_partitioned = is_in_partitions || hive::is_partitioned(folder)?;
        for inner in inside.folders {
            self.below(&inner, is_partitioned, report);
        }
        Ok(())
    }

    /// A folder that was not named by the caller: that it cannot be read is no reason to stop.
    fn below(&mut self, folder: &Location, is_in_partitions: bool, report: &mut VerifyReport) {
        if let Err(error) = self.folder(folder, is_in_partitions, report) {
            let name = folder.to_string();
            fail(report, &name, &error);
        }
    }

    /// What lies beside the tables of a store.
    fn beside(&mut self, driver: &dyn Driver, folder: &Location, report: &mut VerifyReport) {
        match beside_tables(driver, folder) {
            Err(error) => {
                let name = folder.to_string();
                fail(report, &name, &error);
            }
            Ok(beside) => {
                for path in beside {
                    self.beside_one(&path, report);
                }
            }
        }
    }

    fn beside_one(&mut self, path: &Location, report: &mut VerifyReport) {
        let name = path.to_string();
        match paths::kind(path) {
            Ok(Some(EntryKind::Folder)) => self.below(path, false, report),
            Ok(Some(EntryKind::Other)) => {
                report.findings.push(note(path, "is a pipe or a device: it is passed over"))
            }
            Err(error) => fail(report, &name, &error),
            Ok(_) => match self.options.open_one(path) {
                Err(error) => fail(report, &name, &error),
                Ok(Opened { parts, .. }) => match parts.as_slice() {
                    [(_, Err(error))] if is_unknown(error) && calls_itself_no_data(&name) => {
                        report.findings.push(note(
                            path,
                            "lies beside tables and is of no known format: it is passed over",
                        ));
                    }
                    _ => self.files(parts, report),
                },
            },
        }
    }

    /// Files that were found and not named: one that is gone by now is a finding like any other.
    fn files(&self, opened: Vec<(String, Result<DatasetRef>)>, report: &mut VerifyReport) {
        for (name, dataset) in opened {
            match dataset.and_then(|dataset| verify_one(&dataset, self.depth, self.progress)) {
                Ok(found) => report.merge(found),
                Err(error) => fail(report, &name, &error),
            }
        }
    }
}

/// Adds what could not be opened or looked at, unless a store has found it too.
fn fail(report: &mut VerifyReport, name: &str, error: &Error) {
    if !report.findings.contains(&Finding::from_error(error, name, None)) {
        report.add_failure(name, error, is_unread(name, error));
    }
}

fn is_unknown(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::InvalidInput(_))
}

/// Verifies what was opened; parts that are not here come first.
fn verify_one(dataset: &DatasetRef, depth: VerifyDepth, progress: &dyn Progress) -> Result<VerifyReport> {
    let mut report = dataset.verify(depth, progress)?;
    report.findings.splice(0..0, dataset.absences().iter().map(Absence::finding));
    Ok(report)
}

/// Verifies each of them; what could not be opened is a finding.
pub(crate) fn verify_all(
    opened: Vec<(String, Result<DatasetRef>)>,
    depth: VerifyDepth,
    progress: &dyn Progress,
    report: &mut VerifyReport,
) -> Result<()> {
    for (name, dataset) in opened {
        match dataset {
            Ok(dataset) => report.merge(verify_one(&dataset, depth, progress)?),
            Err(error) if is_missing(&error) => return Err(error),
            Err(error) => report.add_failure(&name, &error, is_unread(&name, &error)),
        }
    }
    Ok(())
}

/// Adds up the totals of one piece of work after another.
pub(crate) struct Summed<'a> {
    whole: &'a dyn Progress,
    total: AtomicU64,
}

impl<'a> Summed<'a> {
    pub(crate) fn new(whole: &'a dyn Progress) -> Self {
        Self { whole, total: AtomicU64::new(0) }
    }
}

impl Progress for Summed<'_> {
    fn set_total(&self, total: u64) {
        let before = self.total.fetch_add(total, Ordering::Relaxed);
        self.whole.set_total(before.saturating_add(total));
    }

    fn advance(&self, units: u64) {
        self.whole.advance(units);
    }
}

/// Whether an error says that a file could not be read, and nothing about what is in it. Behind an address that is so unless
/// its bytes were seen to be damaged.
pub(crate) fn is_unread(path: &str, error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(_)) || paths::is_address(path) && !error.is_damage()
}

fn is_missing(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == io::ErrorKind::NotFound)
}

/// A report as JSON.
pub fn report_to_json(report: &VerifyReport) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "severity": match finding.severity { Severity::Warning => "warning", Severity::Error => "error" },
            "path": *finding.path,
            "offset": finding.offset,
            "part": finding.part,
            "message": finding.message,
            "first_row": finding.rows.as_ref().map(|rows| rows.start),
            "rows": finding.rows.as_ref().map(|rows| rows.end.saturating_sub(rows.start)),
        })
    });
    json!({
        "is_sound": report.is_sound(),
        "files": report.files,
        "unread": report.unread,
        "blocks": report.blocks,
        "bytes": report.bytes,
        "rows": report.rows,
        "checksums": report.checksums,
        "findings": findings.collect::<Vec<_>>(),
    })
}
