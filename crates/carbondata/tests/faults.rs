//! Tables in a storage of which one call goes wrong: nothing is given as complete that is not, and errors name the file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_select::concat::concat_batches;
use pilaster_carbondata::table::{
    CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, compact, find_tables,
    has_tables,
};
use pilaster_core::progress::Silent;
use pilaster_core::storage::MemoryStorage;
use pilaster_core::{
    Absence, Dataset, Error, Location, LossLog, LostRows, Result, VerifyDepth, VerifyReport,
};
use pilaster_testing::fault_net::{Looks, check, in_memory};
use pilaster_testing::faults::{Fault, faulty};
use pilaster_testing::write_net::{self, Writes};
use support::{batches, testdata};

fn open(folder: &Location, recovers: bool) -> Result<CarbonTable> {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_recovery(recovers))
}

fn rows(folder: &Location) -> Result<Vec<String>> {
    let table = open(folder, false)?;
    if let Some(absence) = table.absences().first() {
        return Err(Error::incomplete(absence.what.clone()).at(&absence.path, 0, ""));
    }
    Ok(support::rows::rows(&concat_batches(&table.schema(), &batches(table.scan())?)?))
}

fn verify(folder: &Location) -> Result<VerifyReport> {
    let table = open(folder, false)?;
    let mut report = table.verify(VerifyDepth::Values, &Silent)?;
    report.findings.extend(table.absences().iter().map(Absence::finding));
    Ok(report)
}

fn salvage(folder: &Location) -> Result<(Vec<String>, Vec<LostRows>)> {
    let table = open(folder, true)?;
    let log = Arc::new(LossLog::new());
    let found = batches(table.scan().skip_damage(Arc::clone(&log)))?;
    table.absences().iter().for_each(|absence| log.add(absence.loss()));
    // Without the update status, or the list of segments, rows that were deleted are given too, and that is said.
    let is_said = |lost: &LostRows| lost.reason.contains("may be among those given");
    if let Some(said) = log.losses().into_iter().find(is_said) {
        return Ok((Vec::new(), vec![said]));
    }
    Ok((support::rows::rows(&concat_batches(&table.schema(), &found)?), log.losses()))
}

#[test]
fn a_call_that_goes_wrong_is_named_and_costs_no_row_in_silence() {
    for name in [
        "bucket",
        "d16_columndict",
        "d16_dict_one",
        "evolve_changed",
        "iud_update2",
        "part_overwritten",
        "v1_dict_one",
        "v2_group",
    ] {
        let folder = testdata().join("table").join(name);
        let memory = in_memory(&folder).unwrap();
        assert_eq!(rows(&Location::local(&folder)).unwrap(), rows(&memory).unwrap(), "{name}");
        // The format has no checksums.
        let looks =
            Looks { rows: &rows, verify: &verify, salvage: &salvage, log: None, notices_changes: false };
        let calls = check(&memory, &looks);
        assert!(calls > 100, "{name}: {calls} calls");
    }
}

/// Rows of two partitions.
fn batch() -> RecordBatch {
    let columns: [(&str, ArrayRef); 3] = [
        ("id", Arc::new(Int32Array::from(vec![3, 1, 4, 2]))),
        ("name", Arc::new(StringArray::from(vec!["c", "a", "d", "b"]))),
        ("part", Arc::new(StringArray::from(vec!["x", "y", "x", "y"]))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn create(folder: &Location, options: &CarbonTableWriterOptions) -> Result<()> {
    let mut writer = CarbonTableWriter::create(folder, &batch().schema(), options.clone())?;
    writer.write(&batch())?;
    writer.finish().map(drop)
}

fn append(folder: &Location, options: &CarbonTableWriterOptions) -> Result<()> {
    let mut writer = CarbonTableWriter::append(folder, options.clone())?;
    writer.write(&batch())?;
    writer.finish().map(drop)
}

#[test]
fn what_cannot_be_written_leaves_the_table_as_it_was() {
    let plain = CarbonTableWriterOptions::default().with_lock_timeout(Duration::ZERO);
    let partitions = plain.clone().with_partition_columns(["part"]);
    let dictionary = plain.clone().with_dictionary_columns(["name"]);
    let calls = write_net::check(&Writes {
        prepare: None,
        write: &|folder: &Location| create(folder, &partitions),
        rows: &rows,
    });
    assert!(calls > 50, "new table: {calls} calls");
    for (kind, options) in [("partitions", partitions), ("dictionary", dictionary)] {
        let calls = write_net::check(&Writes {
            prepare: Some(&|folder: &Location| create(folder, &options)),
            write: &|folder: &Location| append(folder, &options),
            rows: &rows,
        });
        assert!(calls > 50, "{kind}: {calls} calls");
    }
    let calls = write_net::check(&Writes {
        prepare: Some(&|folder: &Location| create(folder, &plain).and_then(|()| append(folder, &plain))),
        write: &|folder: &Location| compact(folder, None, plain.clone()).and_then(|_| append(folder, &plain)),
        rows: &rows,
    });
    assert!(calls > 50, "compaction: {calls} calls");
}

#[test]
fn a_store_that_cannot_be_looked_into_is_not_empty() {
    let files = ["a/b/t/Metadata/schema", "u/Fact/Part0/Segment_0/x", "v/dt=1/2/x"];
    let store = MemoryStorage::with_files("memory", files.map(|path| (path, ""))).root();
    let whole: Vec<_> = find_tables(&store).unwrap().tables.into_iter().map(|(name, _)| name).collect();
    assert_eq!(whole, ["a/b/t", "u"]);
    for at in 0.. {
        let refused = Fault::Refuse(std::io::ErrorKind::PermissionDenied);
        let (place, faults) = faulty(&store, at, refused);
        let found = find_tables(&place);
        let Some((call, path)) = faults.happened() else { break };
        match found {
            Err(error) => assert!(error.to_string().contains(&path), "{call} {path}: {error}"),
            Ok(found) => {
                let is_whole = found.tables.iter().map(|(name, _)| name.as_str()).eq(&whole);
                let is_named = found.unread.iter().any(|error| error.to_string().contains(&path));
                assert!(is_whole || is_named, "{call} {path}: {found:?}");
            }
        }
        let (place, faults) = faulty(&store, at, refused);
        let found = has_tables(&place);
        let Some((call, path)) = faults.happened() else { continue };
        match found {
            Ok(found) => assert!(found, "{call} {path}"),
            Err(error) => assert!(error.to_string().contains(&path), "{call} {path}: {error}"),
        }
    }
    assert!(has_tables(Path::new("no/such/folder")).is_ok_and(|found| !found));
}

#[test]
#[cfg(unix)]
fn folders_whose_names_are_no_text_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = tempfile::tempdir().unwrap();
    let store = Location::local(scratch.path()).child(std::ffi::OsStr::from_bytes(b"d\xe9j\xe0 vu"));
    for name in ["iud_update2", "v1_dict_one", "part_overwritten"] {
        let original = testdata().join("table").join(name);
        let target = store.child(name);
        for entry in Location::local(&original).walk().map(|entry| entry.unwrap()) {
            let copy = target.path().join(entry.path().strip_prefix(&original).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(entry.path(), copy).unwrap();
        }
        assert_eq!(rows(&target).unwrap(), rows(&Location::local(&original)).unwrap(), "{name}");
        assert_eq!(verify(&target).unwrap().findings, verify(&Location::local(&original)).unwrap().findings);
        assert_eq!(salvage(&target).unwrap().0.len(), rows(&target).unwrap().len(), "{name}");
    }
    assert_eq!(find_tables(scratch.path()).unwrap().tables.len(), 3);
}
