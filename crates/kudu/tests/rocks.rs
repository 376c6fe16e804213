//! Block records in the tables of a RocksDB, which only a build with the feature `rocksdb` reads.
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

use std::path::{Path, PathBuf};

use support::tables::open;

fn logr() -> Option<PathBuf> {
    Some(support::goldens()?.join("../kudu-extra/logr"))
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

/// Every scan of the golden folder after RocksDB has moved the records from its log into tables; the folder stays as it is.
#[cfg(feature = "rocksdb")]
#[test]
fn records_in_tables_give_the_same_rows() {
    use support::tables::{compare, expectations, expected_rows, scan};
    let Some(case) = logr() else { return };
    let target = tempfile::tempdir().unwrap();
    copy(&case.join("fs"), target.path());
    let rdb = target.path().join("data/rdb");
    pilaster_testing::rocksdb_into_tables(&rdb).unwrap();
    let files = || {
        let mut files: Vec<_> = std::fs::read_dir(&rdb).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    };
    let before = files();
    assert!(before.iter().any(|path| path.extension().is_some_and(|extension| extension == "sst")));
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

/// Without the feature the message says what to do.
#[cfg(not(feature = "rocksdb"))]
#[test]
fn records_in_tables_are_refused_with_the_way_out() {
    let Some(case) = logr() else { return };
    let target = tempfile::tempdir().unwrap();
    copy(&case.join("fs"), target.path());
    std::fs::write(target.path().join("data/rdb/000009.sst"), b"a table").unwrap();
    let error = open(target.path(), None, None).unwrap_err();
    assert!(error.contains("records in RocksDB tables") && error.contains("--features rocksdb"), "{error}");
}
