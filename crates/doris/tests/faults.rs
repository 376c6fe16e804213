//! Small tablets of every key model in a storage of which one call goes wrong: nothing is given as complete that is not, and errors name
//! the file.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

#[path = "support/key_models.rs"]
mod key_models;
mod support;

use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_cast::display::array_value_to_string;
use key_models::MODELS;
use pilaster_core::progress::Silent;
use pilaster_core::{
    Absence, Dataset, Error, Limits, Location, LossLog, LostRows, Result, VerifyDepth, VerifyReport,
};
use pilaster_doris::segment::SegmentWriteOptions;
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, find_tablets, has_tablets};
use pilaster_testing::fault_net::{Looks, check, in_memory};
use pilaster_testing::write_net::{self, Writes};
use support::batches;

fn texts(all: &[RecordBatch]) -> Vec<String> {
    let of = |batch: &RecordBatch| {
        let row = |row: usize| {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row).unwrap());
            cells.collect::<Vec<_>>().join(" | ")
        };
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

/// The only tablet of a folder, and what is not here of it.
fn open(root: &Location, recovers: bool) -> Result<(TabletReader, Vec<Absence>)> {
    let mut found = find_tablets(root, &Limits::default())?;
    if let Some((_, error)) = found.unread.pop() {
        return Err(error);
    }
    assert_eq!(found.tablets.len(), 1, "{found:?}");
    let tablet = TabletReader::open(&found.tablets[0], &TabletOptions::default().with_recovery(recovers))?;
    let absences = found.headless.into_iter().chain(found.unstored).chain(tablet.absences()).collect();
    Ok((tablet, absences))
}

fn rows(root: &Location) -> Result<Vec<String>> {
    let (tablet, absences) = open(root, false)?;
    match absences.first() {
        Some(absence) => Err(Error::incomplete(absence.what.clone()).at(&absence.path, 0, "")),
        None => Ok(texts(&batches(tablet.scan())?)),
    }
}

fn verify(root: &Location) -> Result<VerifyReport> {
    let (tablet, absences) = open(root, false)?;
    let mut report = tablet.verify(VerifyDepth::Values, &Silent)?;
    report.findings.extend(absences.iter().map(Absence::finding));
    Ok(report)
}

fn salvage(root: &Location) -> Result<(Vec<String>, Vec<LostRows>)> {
    let (tablet, absences) = open(root, true)?;
    let losses = Arc::new(LossLog::new());
    let saved = texts(&batches(tablet.scan().skip_damage(Arc::clone(&losses)))?);
    absences.iter().for_each(|absence| losses.add(absence.loss()));
    Ok((saved, losses.losses()))
}

#[test]
fn a_call_that_goes_wrong_is_named_and_costs_no_row_in_silence() {
    for model in MODELS {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("t");
        let segments = SegmentWriteOptions::default().with_page_bytes(600);
        let options = TabletWriteOptions::default().with_rows_per_segment(150).with_segment_options(segments);
        model.write(&target, 300, &options);
        let (local, memory) = (Location::local(&target), in_memory(&target).unwrap());
        assert_eq!(rows(&local).unwrap(), rows(&memory).unwrap());
        let looks =
            Looks { rows: &rows, verify: &verify, salvage: &salvage, log: None, notices_changes: true };
        let calls = check(&memory, &looks);
        assert!(calls > 100, "{model:?}: {calls} calls");
    }
}

#[test]
fn a_tablet_that_cannot_be_written_is_not_there() {
    let rows = |root: &Location| match find_tablets(root, &Limits::default())?.tablets.len() {
        1 => rows(root),
        count => Err(Error::invalid(format!("{count} tablets")).at(&root.to_string(), 0, "")),
    };
    for model in MODELS {
        let options = TabletWriteOptions::default().with_rows_per_segment(20);
        let write = |target: &Location| model.try_write(target, 30, &options).map(drop);
        let calls = write_net::check(&Writes { prepare: None, write: &write, rows: &rows });
        assert!(calls > 100, "{model:?}: {calls} calls");
    }
}

#[test]
#[cfg(unix)]
fn folders_whose_names_are_no_text_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join(std::ffi::OsStr::from_bytes(b"d\xe9j\xe0 vu"));
    let target = folder.join("t");
    std::fs::create_dir(&folder).unwrap();
    for model in MODELS {
        model.write(&target, 60, &TabletWriteOptions::default());
        assert!(has_tablets(&target).unwrap());
        assert!(!rows(&Location::local(scratch.path())).unwrap().is_empty());
        std::fs::remove_dir_all(&target).unwrap();
    }
}

#[test]
fn what_cannot_be_listed_may_hold_tablets() {
    use std::io::ErrorKind::PermissionDenied;

    use pilaster_core::storage::MemoryStorage;
    use pilaster_testing::faults::{Fault, faulty};
    let root = MemoryStorage::with_files("memory", [("a/7/x", ""), ("a/8/7.hdr", "")]).root();
    assert!(has_tablets(&root).unwrap());
    let mut refused = 0;
    for at in 0.. {
        let (place, faults) = faulty(&root, at, Fault::Refuse(PermissionDenied));
        let found = has_tablets(&place);
        let Some((call, path)) = faults.happened() else { break };
        match found {
            Ok(found) => assert!(found, "{call} {path}"),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains(&path), "{call} {path}: {error}");
            }
        }
    }
    assert!(refused > 0);
    assert!(!has_tablets(Path::new("no/such/folder")).is_ok_and(|found| found));
}
