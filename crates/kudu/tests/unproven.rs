//! Rows that nothing proves to be a table's latest are not among those that are given, but apart.
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

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_schema::SchemaRef;
use pilaster_core::{Dataset, LossLog};
use pilaster_testing::needs;
use support::tables::{Expected, Rows, expectations, expected_rows, open_store, scan};

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() { copy(&entry, &target) } else { assert!(fs::copy(&entry, &target).is_ok()) }
    }
}

/// Every row that a client saw at the end, of the table of this name, or of any where the name is lost.
fn latest(case: &Path, table: &str, schema: &SchemaRef) -> BTreeSet<Vec<Option<String>>> {
    let mut latest: Vec<_> = expectations(case).into_iter().filter(|e| e.as_of.is_none()).collect();
    if latest.iter().any(|expected| expected.table == table) {
        latest.retain(|expected| expected.table == table);
    }
    // Other tables of the case have other columns.
    let fits = |expected: &Expected| {
        let row = support::golden::json_lines(&expected.rows).into_iter().next();
        row.is_none_or(|row| schema.fields().iter().all(|field| row.get(field.name()).is_some()))
    };
    latest.iter().filter(|e| fits(e)).flat_map(|expected| expected_rows(expected, schema)).collect()
}

/// Tolerant scans of every table of a folder: name, columns and rows of each, and how many losses.
fn tolerant(folder: &Path) -> Vec<(String, SchemaRef, Rows, usize)> {
    let store = open_store(folder).unwrap();
    let of_table = |name: &String| {
        let table = store.table(Some(name)).unwrap();
        let losses = Arc::new(LossLog::new());
        let rows = scan(&table, Some(&losses)).unwrap();
        (name.clone(), table.schema(), rows, losses.len())
    };
    store.tables().iter().map(of_table).collect()
}

#[needs(goldens = "kudu")]
#[test]
fn without_superblocks_no_row_is_given_that_is_not_the_latest() {
    let goldens = support::goldens();
    let cases = [support::testdata().join("mixed"), goldens.join("mixed"), goldens.join("multidir")];
    let mut looked_at = 0;
    for case in cases.iter().filter(|case| case.join("case.json").is_file()) {
        let place = tempfile::tempdir().unwrap();
        copy(&case.join("fs"), place.path());
        let mut pending = vec![place.path().to_path_buf()];
        while let Some(folder) = pending.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                match path.file_name().unwrap().to_str().unwrap() {
                    "tablet-meta" => fs::remove_dir_all(&path).unwrap(),
                    _ if path.is_dir() => pending.push(path),
                    _ => {}
                }
            }
        }
        for (table, schema, rows, losses) in tolerant(place.path()) {
            let latest = latest(case, &table, &schema);
            let wrong: Vec<_> = rows.iter().filter(|row| !latest.contains(*row)).collect();
            assert!(
                wrong.is_empty(),
                "{}: {} wrong rows of {}, {:?}",
                case.display(),
                wrong.len(),
                rows.len(),
                wrong[0]
            );
            let distinct: BTreeSet<_> = rows.iter().collect();
            assert_eq!(distinct.len(), rows.len(), "{}", case.display());
            eprintln!("{}: {} rows, {losses} losses", case.display(), rows.len());
            looked_at += 1;
        }
        let unproven = open_store(place.path()).unwrap().unproven(None).unwrap();
        for apart in unproven {
            let batches: Result<Vec<_>, _> = apart.rows.scan().read().unwrap().collect();
            assert!(batches.is_ok(), "{}", apart.name);
        }
    }
    assert!(looked_at > 1);
}

/// Flips a byte in each entry of a log, one after the other: rows that an operation behind it may have changed are not given.
#[needs(goldens = "kudu")]
#[test]
fn rows_from_before_a_lost_operation_are_not_given_as_good() {
    let goldens = support::goldens();
    let mut given = 0;
    for case in ["delta-mem", "delta-redo", "mixed", "wal", "defaults"].map(|name| goldens.join(name)) {
        if !case.join("case.json").is_file() {
            continue;
        }
        let place = tempfile::tempdir().unwrap();
        copy(&case.join("fs"), place.path());
        let mut logs = Vec::new();
        let mut pending = vec![place.path().to_path_buf()];
        while let Some(folder) = pending.pop() {
            for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                let name = path.file_name().unwrap().to_str().unwrap();
                if path.is_dir() {
                    pending.push(path);
                } else if name.starts_with("wal-") && path.to_str().unwrap().contains("wals") {
                    logs.push(path);
                }
            }
        }
        for log in logs {
            let whole = fs::read(&log).unwrap();
            let used = whole.iter().rposition(|byte| *byte != 0).unwrap_or_default();
            for at in (0..5).map(|step| 64 + (used.saturating_sub(64)) * step / 5) {
                let mut bytes = whole.clone();
                bytes[at] ^= 4;
                fs::write(&log, &bytes).unwrap();
                for (table, schema, rows, losses) in tolerant(place.path()) {
                    let latest = latest(&case, &table, &schema);
                    let wrong = rows.iter().filter(|row| !latest.contains(*row)).count();
                    assert_eq!(
                        wrong,
                        0,
                        "{} byte {at}: of {} rows, {losses} losses",
                        log.display(),
                        rows.len()
                    );
                    given += rows.len();
                }
            }
            fs::write(&log, &whole).unwrap();
        }
    }
    assert!(given > 0);
}

/// A log that ends early goes back to older rows, and nobody can know it. With a rowset damaged too, it may end before changes that the
/// rowset had: no row is given that is older than those of the same log over whole rowsets.
#[test]
fn a_log_that_ends_before_what_a_lost_block_held_does_not_stand_in_for_it() {
    // None of these ends lies right behind an entry: nobody could know of such a one.
    const ENDS: usize = 11;
    let mut given = 0;
    for name in ["file-blocks", "tiny"] {
        let case = support::testdata().join(name);
        let place = tempfile::tempdir().unwrap();
        copy(&case.join("fs"), place.path());
        let files = |folder: &str| {
            let (mut files, mut pending) = (Vec::new(), vec![place.path().join(folder)]);
            while let Some(folder) = pending.pop() {
                for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                    if path.is_dir() { pending.push(path) } else { files.push(path) }
                }
            }
            files.sort();
            files
        };
        let is_block = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap();
            !name.ends_with(".metadata") && name != "block_manager_instance"
        };
        let blocks: Vec<_> = files("data").into_iter().filter(is_block).collect();
        for log in files("wals") {
            let whole = fs::read(&log).unwrap();
            for end in (1..ENDS).map(|part| whole.len() * part / ENDS) {
                for is_cut in [true, false] {
                    let mut short = whole[..end].to_vec();
                    if !is_cut {
                        short.resize(whole.len(), 0);
                    }
                    fs::write(&log, short).unwrap();
                    let mut known = BTreeSet::new();
                    for (table, schema, rows, _) in tolerant(place.path()) {
                        known.extend(latest(&case, &table, &schema));
                        known.extend(rows);
                    }
                    for block in blocks.iter().step_by(blocks.len().div_ceil(6)) {
                        let sound = fs::read(block).unwrap();
                        let Some(at) = sound.iter().rposition(|byte| *byte != 0) else { continue };
                        let mut damaged = sound.clone();
                        damaged[at] ^= 1;
                        fs::write(block, damaged).unwrap();
                        for (_, _, rows, _) in tolerant(place.path()) {
                            let wrong: Vec<_> = rows.iter().filter(|row| !known.contains(*row)).collect();
                            let what = (&log, end, is_cut, block);
                            assert!(wrong.is_empty(), "{what:?}: {} wrong rows: {:?}", wrong.len(), wrong[0]);
                            given += rows.len();
                        }
                        fs::write(block, sound).unwrap();
                    }
                }
            }
            fs::write(&log, whole).unwrap();
        }
    }
    assert!(given > 500, "{given}");
}
