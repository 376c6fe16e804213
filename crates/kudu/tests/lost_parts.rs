//! Servers that lost their names, tablets that lost all but a trace, and disks that are given twice.
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

use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Finding, LossLog, Severity, VerifyDepth};
use pilaster_kudu::store::{KuduStore, KuduStoreOptions, is_kudu_folder};
use support::tables::{Rows, expectations, expected_rows, open_store, rows_of, scan};

/// The two tablets of the table `mixed`.
const TABLETS: [&str; 2] = ["598e19e76c6f4344aeb64cf7be84954f", "d834e1e4902441ac8aff531fa0fa95a1"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { assert!(fs::copy(&path, &target).is_ok()) }
    }
}

/// Copies the root of a server as three: its log, its superblocks, its blocks.
fn copy_apart(from: &Path, to: &Path) {
    for (root, folders) in
        [("wal", &["wals"][..]), ("meta", &["tablet-meta", "consensus-meta"]), ("disk", &["data"])]
    {
        folders.iter().for_each(|folder| copy(&from.join(folder), &to.join(root).join(folder)));
        fs::copy(from.join("instance"), to.join(root).join("instance")).unwrap();
    }
}

fn remove(path: &Path) {
    if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
}

/// Every file `instance` at or below a folder.
fn instances(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(instances(&path)),
            false if path.ends_with("instance") => found.push(path),
            false => {}
        }
    }
    found
}

fn latest(case: &str) -> BTreeSet<Vec<Option<String>>> {
    let case = support::testdata().join(case);
    let schema = open_store(&case.join("fs")).unwrap().table(None).unwrap().schema();
    let expected = expectations(&case).into_iter().find(|expected| expected.as_of.is_none()).unwrap();
    expected_rows(&expected, &schema).into_iter().collect()
}

fn rows(store: &KuduStore) -> Rows {
    scan(&store.table(None).unwrap(), None).unwrap()
}

fn errors(store: &KuduStore) -> Vec<String> {
    let report = store.verify(None, VerifyDepth::Checksums, &Silent).unwrap();
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

#[test]
fn servers_without_names_are_not_read_as_one() {
    let (fs, all) = (support::testdata().join("replicated/fs"), latest("replicated"));
    for lost in [&["ts0", "ts1", "ts2"][..], &["ts0", "ts1"], &["ts2"]] {
        for is_apart in [false, true] {
            let place = tempfile::tempdir().unwrap();
            for server in ["ts0", "ts1", "ts2"] {
                let target = place.path().join(server);
                if is_apart { copy_apart(&fs.join(server), &target) } else { copy(&fs.join(server), &target) }
            }
            lost.iter()
                .flat_map(|server| instances(&place.path().join(server)))
                .for_each(|path| remove(&path));
            let store = open_store(place.path()).unwrap();
            assert_eq!(store.tablets().len(), 3, "{lost:?} {is_apart}");
            // The same ids on two disks are no damage.
            let told = errors(&store);
            assert!(told.iter().all(|error| error.contains("instance")), "{lost:?} {is_apart}: {told:#?}");
            let rows = rows(&store);
            assert!(rows.iter().all(|row| all.contains(row)) && rows.len() + 1 >= all.len(), "{lost:?}");
            // Who is most of the voters nobody knows without names, so nothing is called complete then.
            let unheard = store.unheard("people");
            assert_eq!(unheard.is_some(), lost.len() > 1, "{lost:?}: {unheard:?}");
            assert_eq!(rows.len() == all.len(), lost.len() < 2, "{lost:?}");
        }
    }
}

#[test]
fn the_roots_of_a_server_without_a_name_are_found_together() {
    let place = tempfile::tempdir().unwrap();
    copy_apart(&support::testdata().join("mixed/fs"), place.path());
    let all = latest("mixed");
    for path in instances(place.path()) {
        remove(&path);
        let together = open_store(place.path()).unwrap();
        let roots = ["disk", "meta", "wal"].map(|root| place.path().join(root));
        let given = KuduStore::open(&roots, KuduStoreOptions::default()).unwrap();
        for store in [together, given] {
            assert_eq!(rows(&store).into_iter().collect::<BTreeSet<_>>(), all, "{}", path.display());
        }
    }
}

#[test]
fn a_root_that_lost_its_superblocks_still_says_who_votes() {
    let place = tempfile::tempdir().unwrap();
    copy_apart(&support::testdata().join("mixed/fs"), place.path());
    remove(&place.path().join("meta/tablet-meta"));
    assert!(is_kudu_folder(place.path().join("meta")).unwrap());
    let report = open_store(place.path()).unwrap().verify(None, VerifyDepth::Checksums, &Silent).unwrap();
    let misses_voters = |finding: &Finding| finding.message.contains("voters");
    assert!(!report.findings.iter().any(misses_voters), "{report:?}");
}

#[test]
fn of_two_copies_of_a_disk_the_better_one_counts() {
    let (all, fs) = (latest("mixed"), support::testdata().join("mixed/fs"));
    let log = |copy: &Path| copy.join("wals").join(TABLETS[0]);
    let damages: [&dyn Fn(&Path); 4] = [
        &|_| {},
        &|copy| remove(&copy.join("wals")),
        &|copy| remove(&copy.join("data")),
        // Older than the other: operations that came later are not in it.
        &|copy| {
            let segment = fs::read_dir(log(copy)).unwrap().next().unwrap().unwrap().path();
            let bytes = fs::read(&segment).unwrap();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap();
            fs::write(&segment, &bytes[..used / 2]).unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        for worse in ["a", "b"] {
            let place = tempfile::tempdir().unwrap();
            ["a", "b"].iter().for_each(|name| copy(&fs, &place.path().join(name)));
            damage(&place.path().join(worse));
            let store = open_store(place.path()).unwrap();
            assert_eq!(rows(&store).into_iter().collect::<BTreeSet<_>>(), all, "{number} {worse}");
            let findings = store.findings();
            let notes =
                findings.iter().filter(|finding| finding.message.starts_with("another copy of server"));
            assert_eq!(notes.count(), 1, "{findings:#?}");
            if number == 0 {
                assert_eq!(errors(&store), [] as [String; 0]);
            }
        }
    }
}

#[test]
fn a_tablet_of_which_only_a_trace_is_left_is_named() {
    let place = tempfile::tempdir().unwrap();
    copy(&support::testdata().join("mixed/fs"), place.path());
    let trace = |id: &str| format!("tablet {id}: expected a superblock or a log");
    for (id, other) in [(TABLETS[0], TABLETS[1]), (TABLETS[1], TABLETS[0])] {
        ["wals", "tablet-meta"].iter().for_each(|folder| remove(&place.path().join(folder).join(id)));
        let store = open_store(place.path()).unwrap();
        let told = errors(&store);
        assert!(told.iter().any(|error| error.starts_with(&trace(id))), "{told:#?}");
        assert!(!told.iter().any(|error| error.starts_with(&trace(other))) || store.tables().is_empty());
        assert!(store.findings().iter().any(|finding| finding.severity == Severity::Error));
    }
    // No table is left at all: that is damage, and no empty folder.
    for folder in ["nothing", "consensus-meta", "tablet-meta", "wals"] {
        if folder != "nothing" {
            remove(&place.path().join(folder));
        }
        let store = open_store(place.path()).unwrap();
        assert!(store.tables().is_empty());
        let error = store.table(None).unwrap_err();
        assert!(error.is_damage(), "without {folder}: {error}");
        assert!(!errors(&store).is_empty(), "without {folder}");
        let apart: usize =
            store.unproven(None).unwrap().iter().map(|apart| tolerant(&apart.rows).len()).sum();
        assert_eq!(apart, 700, "without {folder}");
    }
}

fn tolerant(rows: &pilaster_core::DatasetRef) -> Rows {
    let scan = rows.scan().skip_damage(Arc::new(LossLog::new()));
    let batches: Vec<_> = scan.read().unwrap().collect::<Result<_, _>>().unwrap();
    rows_of(&batches)
}

#[test]
fn rows_of_a_tablet_that_nobody_names_are_told_and_given_apart() {
    let place = tempfile::tempdir().unwrap();
    copy(&support::testdata().join("mixed/fs"), place.path());
    assert!(open_store(place.path()).unwrap().unproven(None).unwrap().is_empty());
    for folder in ["wals", "tablet-meta", "consensus-meta"] {
        remove(&place.path().join(folder).join(TABLETS[0]));
    }
    let store = open_store(place.path()).unwrap();
    let told = errors(&store);
    let lost = "343 rows of a tablet that no superblock and no log names";
    assert!(told.iter().any(|error| error.contains(lost)), "{told:#?}");
    for table in [None, Some("mixed")] {
        let apart = store.unproven(table).unwrap();
        assert_eq!(apart.len(), 1);
        assert_eq!(tolerant(&apart[0].rows).len(), 343);
    }
}

#[test]
fn rows_from_before_a_lost_log_are_given_apart_also_over_damage() {
    let place = tempfile::tempdir().unwrap();
    copy(&support::testdata().join("mixed/fs"), place.path());
    let flushed = KuduStore::open(
        &[place.path().to_path_buf()],
        KuduStoreOptions::default().with_log(pilaster_kudu::tablet::LogUse::Ignore),
    );
    let flushed: BTreeSet<_> = rows(&flushed.unwrap()).into_iter().collect();
    remove(&place.path().join("wals"));
    let apart = open_store(place.path()).unwrap().unproven(None).unwrap();
    let given: BTreeSet<_> = apart.iter().flat_map(|apart| tolerant(&apart.rows)).collect();
    assert_eq!(given, flushed);
}

#[test]
fn rows_of_several_servers_without_names_and_tablets_are_all_given_apart() {
    let (place, fs) = (tempfile::tempdir().unwrap(), support::testdata().join("replicated/fs"));
    let mut expected = 0;
    for server in ["ts0", "ts1", "ts2"] {
        let target = place.path().join(server);
        copy(&fs.join(server), &target);
        ["instance", "wals", "tablet-meta", "consensus-meta"]
            .iter()
            .for_each(|name| remove(&target.join(name)));
        let alone = open_store(&target).unwrap().unproven(None).unwrap();
        expected += alone.iter().map(|apart| tolerant(&apart.rows).len()).sum::<usize>();
    }
    let together = open_store(place.path()).unwrap().unproven(None).unwrap();
    let given: usize = together.iter().map(|apart| tolerant(&apart.rows).len()).sum();
    assert!(given == expected && expected > 0, "{given} of {expected}");
}
