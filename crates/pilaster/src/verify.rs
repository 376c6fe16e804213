//! Looking for damage in files, folders and globs.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use pilaster_core::{DatasetRef, Error, ErrorKind, Progress, Result, Severity, VerifyDepth, VerifyReport};
use serde_json::{Value, json};

use crate::open::OpenOptions;
use crate::paths;
use crate::store::open_store;

/// Verifies each path; what cannot even be opened is a finding too. Progress counts bytes.
///
/// # Errors
/// If a path does not exist or a folder cannot be read; damage is in the report.
pub fn verify<S: AsRef<str>>(
    paths: &[S],
    options: &OpenOptions,
    depth: VerifyDepth,
    progress: &dyn Progress,
) -> Result<VerifyReport> {
    let mut report = VerifyReport::default();
    let progress = &Summed::new(progress);
    if let Some(store) = open_store(paths, options) {
        return store?.verify(options.table(), depth, progress);
    }
    for path in paths {
        for path in paths::expand_glob(path.as_ref())? {
            match open_store(&[&path], options) {
                Some(store) => report.merge(store?.verify(options.table(), depth, progress)?),
                None => verify_all(options.open_one(&path)?, depth, progress, &mut report)?,
            }
        }
    }
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
            Ok(dataset) => report.merge(dataset.verify(depth, progress)?),
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
