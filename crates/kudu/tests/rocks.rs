//! Block records in the tables of a RocksDB.
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

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilaster_core::{Limits, Location};
use pilaster_rocksdb::{DEFAULT_FAMILY, Database, OnDamage};
use pilaster_testing::needs;
use support::tables::{compare, expectations, expected_rows, open, scan};

fn logr() -> PathBuf {
    pilaster_testing::goldens("kudu-extra").join("logr")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target)
        } else {
            drop(std::fs::copy(entry.path(), target))
        }
    }
}

/// Moves the pairs of a database from its log into tables.
fn into_tables(rdb: &Path) {
    let database = Database::open(&Location::local(rdb), &Limits::default(), OnDamage::Stop).unwrap();
    let pairs = database.pairs(DEFAULT_FAMILY).unwrap().map(Result::unwrap);
    let pairs: Vec<_> = pairs.map(|(key, value)| (key, value.to_vec())).collect();
    std::fs::remove_dir_all(rdb).unwrap();
    std::fs::create_dir(rdb).unwrap();
    pilaster_testing::rocksdb_with_tables(rdb, DEFAULT_FAMILY, &pairs).unwrap();
}

/// Every scan of the golden folder after its records were moved from the log into tables; the folder stays as it is.
#[needs(goldens = "kudu-extra")]
#[test]
fn records_in_tables_give_the_same_rows() {
    let case = logr();
    let target = tempfile::tempdir().unwrap();
    copy(&case.join("fs"), target.path());
    let rdb = target.path().join("data/rdb");
    into_tables(&rdb);
    let files = || {
        let files = std::fs::read_dir(&rdb).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let before = files();
    let mut scans = 0;
    for expected in expectations(&case) {
        let table = open(target.path(), Some(&expected.table), expected.as_of).unwrap();
        let wanted = expected_rows(&expected, &pilaster_core::Dataset::schema(&table));
        compare(&scan(&table, None).unwrap(), &wanted).unwrap();
        scans += 1;
    }
    assert!(scans > 5);
    assert_eq!(files(), before, "a dead server's disks are evidence");
}

/// Without any records: blocks are found by their content, or their rows come from the tablets' own logs.
#[needs(goldens = "kudu-extra")]
#[test]
fn records_that_are_gone_do_not_take_the_server_with_them() {
    let case = logr();
    let target = tempfile::tempdir().unwrap();
    copy(&case.join("fs"), target.path());
    let rdb = target.path().join("data/rdb");
    std::fs::remove_dir_all(&rdb).unwrap();
    for is_file in [false, true] {
        if is_file {
            std::fs::write(&rdb, "no database").unwrap();
        }
        let store = support::tables::open_store(target.path()).unwrap();
        let report =
            store.verify(None, pilaster_core::VerifyDepth::Footer, &pilaster_core::progress::Silent).unwrap();
        assert!(report.findings.iter().any(|found| found.path.contains("data/rdb")), "{is_file}: {report:?}");
        for expected in expectations(&case).iter().filter(|expected| expected.as_of.is_none()) {
            let table = store.table(Some(&expected.table)).unwrap();
            let wanted = expected_rows(expected, &pilaster_core::Dataset::schema(&table));
            compare(&scan(&table, None).unwrap(), &wanted).unwrap();
        }
    }
    // Some are found by what is in them.
    let listed = support::tables::open_store(target.path()).unwrap().tablets();
    assert!(listed.iter().any(|tablet| tablet.bytes > 0), "{listed:?}");
}

/// Without one of its tables: rows are refused, or come whole from the tablets' own logs.
#[needs(goldens = "kudu-extra")]
#[test]
fn a_table_that_is_not_here_costs_no_row_in_silence() {
    let case = logr();
    let target = tempfile::tempdir().unwrap();
    copy(&case.join("fs"), target.path());
    let rdb = target.path().join("data/rdb");
    into_tables(&rdb);
    std::fs::remove_file(rdb.join("000010.sst")).unwrap();
    for expected in expectations(&case) {
        let Ok(table) = open(target.path(), Some(&expected.table), expected.as_of) else { continue };
        let wanted = expected_rows(&expected, &pilaster_core::Dataset::schema(&table));
        if let Ok(rows) = scan(&table, None) {
            compare(&rows, &wanted).unwrap();
        }
    }
}
