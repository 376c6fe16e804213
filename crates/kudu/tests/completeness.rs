//! Tables of which not all tablets or replicas are here.
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

use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Severity, VerifyDepth};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions};

/// A copy of a folder without what this leaves out.
fn copy_without(from: &Path, to: &Path, is_left_out: &dyn Fn(&Path) -> bool) {
    std::fs::create_dir_all(to).unwrap();
    for path in std::fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let copy = to.join(path.file_name().unwrap());
        match path.is_dir() {
            _ if is_left_out(&path) => {}
            true => copy_without(&path, &copy, is_left_out),
            false => drop(std::fs::copy(&path, &copy).unwrap()),
        }
    }
}

fn store(folder: &Path) -> KuduStore {
    KuduStore::open(&[folder.to_path_buf()], KuduStoreOptions::default()).unwrap()
}

fn count(store: &KuduStore) -> usize {
    let table = store.table(None).unwrap();
    table.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

fn mixed() -> PathBuf {
    support::testdata().join("mixed/fs")
}

/// The two tablets of the table, by bucket.
const TABLETS: [&str; 2] = ["598e19e76c6f4344aeb64cf7be84954f", "d834e1e4902441ac8aff531fa0fa95a1"];

#[test]
fn a_whole_table_lacks_nothing() {
    let store = store(&mixed());
    assert_eq!(store.missing_tablets(), []);
    assert!(store.table(None).unwrap().absences().is_empty());
    assert!(store.tablets().iter().all(|tablet| tablet.replicas.0 == tablet.replicas.1));
}

#[test]
fn the_tablet_that_is_gone_is_named() {
    let all = count(&store(&mixed()));
    let mut rows = 0;
    for gone in TABLETS {
        let folder = tempfile::tempdir().unwrap();
        copy_without(&mixed(), folder.path(), &|path| path.ends_with(gone));
        let store = store(folder.path());
        let missing = store.table(None).unwrap().absences();
        let missing: Vec<_> = missing.into_iter().map(|absence| absence.what).collect();
        assert_eq!(missing.len(), 1, "{missing:?}");
        assert!(missing[0].starts_with("the tablet of hash bucket "), "{missing:?}");
        assert!(missing[0].contains(" of 2") && missing[0].ends_with("is not here"), "{missing:?}");
        assert_eq!(store.missing_tablets(), [("mixed".to_string(), missing[0].clone())]);
        rows += count(&store);
        for table in [None, Some("mixed")] {
            let report = store.verify(table, VerifyDepth::Footer, &Silent).unwrap();
            assert!(report.findings.iter().any(|f| f.severity == Severity::Error && f.message == missing[0]));
        }
        // One tablet is all that was asked for.
        let kept = TABLETS.iter().find(|id| **id != gone).unwrap();
        let options = KuduStoreOptions::default().with_tablet(Some((*kept).to_string()));
        let asked = KuduStore::open(&[folder.path().to_path_buf()], options).unwrap();
        assert!(asked.table(None).unwrap().absences().is_empty());
    }
    assert_eq!(rows, all);
}

#[test]
fn voters_that_are_not_here_are_one_note() {
    let fs = support::testdata().join("replicated/fs");
    let note = |folders: &[PathBuf]| {
        let store = KuduStore::open(folders, KuduStoreOptions::default()).unwrap();
        let findings = store.table(None).unwrap().findings();
        let notes = findings.into_iter().filter(|finding| finding.message.contains("newest operation at"));
        let notes: Vec<_> = notes.collect();
        assert!(notes.len() < 2 && notes.iter().all(|note| note.severity == Severity::Warning), "{notes:?}");
        (notes.first().map(|note| note.message.clone()), store.tablets()[0].replicas)
    };
    let server = |name: &str| fs.join(name);
    let (one, here) = note(&[server("ts2")]);
    let one = one.unwrap();
    assert_eq!(here, (1, 3));
    assert!(one.starts_with("1 of 3 replicas; newest operation at 20") && one.contains(" UTC; "), "{one}");
    assert!(one.contains("left out"), "{one}");
    let (two, here) = note(&[server("ts1"), server("ts2")]);
    assert_eq!(here, (2, 3));
    assert!(two.unwrap().starts_with("2 of 3 replicas; newest operation at 20"));
    assert_eq!(note(&[server("ts0"), server("ts1"), server("ts2")]), (None, (3, 3)));
}

#[test]
fn log_ends_of_many_tablets_are_one_remark() {
    let store = store(&mixed());
    let ends = store.table(None).unwrap().findings();
    let ends: Vec<_> =
        ends.iter().filter(|finding| finding.message.contains("later ones may be cut off")).collect();
    assert_eq!(ends.len(), 1, "{ends:#?}");
    assert!(ends[0].message.starts_with("the logs of 2 tablets: "), "{ends:?}");
    let report = store.verify(None, VerifyDepth::Checksums, &Silent).unwrap();
    let told = report.findings.iter().filter(|finding| finding.message.contains("later ones may be cut off"));
    assert_eq!(told.count(), 1);
    assert!(report.is_sound());
}
