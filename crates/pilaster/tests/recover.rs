//! All tables of disks at once: what is complete, what is lost, what is not proven.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test")]

use std::fs;
use std::path::Path;

use pilaster::core::progress::Silent;
use pilaster::recover::{RecoverOptions, RecoverReport, RecoveredTable, Watch, recover};
use pilaster::{OpenOptions, Progress, open};
use pilaster_testing::testdata;

struct Nobody;

impl Watch for Nobody {
    fn begin(&self, _: &str) -> Box<dyn Progress + '_> {
        Box::new(Silent)
    }

    fn done(&self, _: &RecoveredTable) {}
}

fn run(given: &[&Path], out: &Path) -> RecoverReport {
    let given: Vec<String> = given.iter().map(|path| path.display().to_string()).collect();
    recover(&given, out, &OpenOptions::default(), &RecoverOptions::default(), &Nobody).unwrap()
}

fn copy_without(from: &Path, to: &Path, left_out: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        match entry.is_dir() {
            true if entry.ends_with(left_out) => {}
            true => copy_without(&entry, &target, left_out),
            false => assert!(fs::copy(&entry, &target).is_ok()),
        }
    }
}

#[test]
fn whole_disks_are_complete_and_stay_so_when_asked_again() {
    let (place, source) = (tempfile::tempdir().unwrap(), testdata("kudu").join("mixed/fs"));
    for _ in 0..2 {
        let report = run(&[&source], &place.path().join("out"));
        assert!(report.is_complete(), "{report:?}");
        assert_eq!(report.tables.iter().map(|table| table.rows_saved).collect::<Vec<_>>(), [710]);
    }
    let written = open(&place.path().join("out/mixed/part-00000.parquet").display().to_string()).unwrap();
    assert!(written.row_count().unwrap() > 0);
}

#[test]
fn what_is_gone_is_named_in_this_run_and_the_next() {
    let place = tempfile::tempdir().unwrap();
    for left_out in ["wals", "data", "tablet-meta"] {
        let (source, out) = (place.path().join(left_out), place.path().join(format!("{left_out}-out")));
        copy_without(&testdata("kudu").join("mixed/fs"), &source, left_out);
        let reports = [run(&[&source], &out), run(&[&source], &out)];
        for report in &reports {
            assert!(!report.has_failed(), "{left_out}: {report:?}");
            let saved: u64 = report.tables.iter().map(|table| table.rows_saved).sum();
            match left_out {
                "wals" => {
                    assert!(!report.is_complete(), "{report:?}");
                    // All that was flushed, as it was before the log that is lost.
                    let apart: u64 = report.unproven.iter().map(|apart| apart.rows).sum();
                    assert_eq!(apart, 665, "{report:?}");
                    assert!(report.tables.iter().all(|table| table.rows_lost.is_none()), "{report:?}");
                }
                // Only what the log still has whole: less than the 710 rows there were.
                _ => {
                    assert!(saved > 0 && saved < 710 && !report.is_complete(), "{left_out}: {report:?}");
                    assert!(report.tables.iter().all(|table| !table.losses.is_empty()), "{report:?}");
                }
            }
        }
        let [first, second] = reports.map(|report| report.to_json());
        assert_eq!(first, second);
    }
}

#[test]
fn nothing_there_is_an_error_and_one_bad_file_does_not_stop_the_others() {
    let place = tempfile::tempdir().unwrap();
    let (empty, out) = (place.path().join("rows.parquet"), place.path().join("out"));
    fs::write(&empty, "PAR1 and then nothing that is a table").unwrap();
    let good = testdata("kudu").join("cfiles/prefix-lz4.cfile");
    let report = run(&[&empty, &good], &out);
    assert!(!report.is_complete());
    assert_eq!(report.tables.iter().filter(|table| table.is_complete()).count(), 1, "{report:?}");
}

fn written(folder: &Path, name: &str, content: &[u8]) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Names and rows of the tables, by name.
fn tables(report: &RecoverReport) -> Vec<(&str, u64)> {
    let mut tables: Vec<_> =
        report.tables.iter().map(|table| (table.name.as_str(), table.rows_saved)).collect();
    tables.sort_unstable();
    tables
}

#[test]
#[cfg(feature = "carbondata")]
fn everything_below_a_folder_is_recovered_whatever_system_it_is_of() {
    let place = tempfile::tempdir().unwrap();
    let (top, out) = (place.path().join("top"), place.path().join("top/out"));
    copy_without(&testdata("kudu").join("mixed/fs"), &top.join("disks/ts1"), "nothing");
    copy_without(&testdata("carbondata").join("table/iud_update2"), &top.join("store/db/iud"), "nothing");
    written(&top, "files/a.csv", b"x,y\n1,2\n");
    written(&top, "files/b.csv", b"x,y\n3,4\n");
    written(&top, "files/deeper/p=1/c.csv", b"x,y\n3,4\n");
    written(&top, "files/deeper/p=2/c.csv", b"x,y\n3,4\n");
    written(&top, "disks/damage.txt", b"rows,why\n5,lost\n");
    for _ in 0..2 {
        let report = run(&[&top], &out);
        let expected = [("db/iud", 66), ("mixed", 710), ("top/files", 2), ("top/files/deeper", 2)];
        assert_eq!(tables(&report), expected);
        assert!(report.is_complete(), "{report:?}");
        // Of what was not read somebody is told.
        assert!(report.findings.iter().any(|finding| finding.path.ends_with("damage.txt")), "{report:?}");
    }
    let inside = recover(
        &[top.join("disks").display().to_string()],
        &top.join("disks/ts1/out"),
        &OpenOptions::default(),
        &RecoverOptions::default(),
        &Nobody,
    );
    assert!(inside.unwrap_err().to_string().contains("which is read"));
}

#[test]
#[cfg(unix)]
fn a_file_that_cannot_be_looked_at_does_not_stop_those_beside_it() {
    let place = tempfile::tempdir().unwrap();
    let (top, out) = (place.path().join("top"), place.path().join("out"));
    written(&top, "a.csv", b"x,y\n1,2\n");
    // What a failing disk or a refusal would be, as far as a test may bring it about.
    std::os::unix::fs::symlink("loop.csv", top.join("loop.csv")).unwrap();
    let report = run(&[&top], &out);
    assert_eq!(tables(&report), [("top", 1)]);
    assert!(report.has_failed() && !report.is_complete(), "{report:?}");
    // What nobody could look at is neither saved nor lost.
    assert_eq!((report.tables[0].losses.len(), report.tables[0].rows_lost), (0, Some(0)));
    assert!(report.tables[0].unread[0].to_string().contains("loop.csv"), "{report:?}");
    assert!(!report.tables[0].is_complete());
}

#[test]
fn files_that_are_no_one_table_become_one_each() {
    let place = tempfile::tempdir().unwrap();
    let (top, out) = (place.path().join("top"), place.path().join("out"));
    written(&top, "a.csv", b"x,y\n1,2\n");
    written(&top, "b.csv", b"x,z\n1,2\n3,4\n");
    let report = run(&[&top], &out);
    assert_eq!(tables(&report), [("top/a", 1), ("top/b", 2)]);
    assert!(report.is_complete() && report.findings.len() == 1, "{report:?}");
}

#[test]
fn newer_rows_of_other_servers_are_not_forgotten() {
    let (place, source) = (tempfile::tempdir().unwrap(), testdata("kudu").join("replicated/fs"));
    let server = |name: &str| source.join(name);
    let (ts0, ts1, ts2) = (server("ts0"), server("ts1"), server("ts2"));
    // A server that has lost its log cannot say what most of them know.
    let without_log = place.path().join("without-log");
    copy_without(&ts2, &without_log, "wals");
    for (number, (given, rows, is_complete)) in [
        (vec![&*ts0, &*ts1, &*ts2], 145, true),
        (vec![&*ts0, &*ts1], 144, true),
        (vec![&*ts1], 126, false),
        (vec![&*ts1, &*without_log], 126, false),
        (vec![&*ts0, &*ts1, &*without_log], 144, true),
    ]
    .into_iter()
    .enumerate()
    {
        let report = run(&given, &place.path().join(number.to_string()));
        let table = &report.tables[0];
        assert_eq!((table.rows_saved, report.is_complete()), (rows, is_complete), "{given:?}: {report:?}");
        if !is_complete {
            assert_eq!(table.rows_lost, None, "{given:?}");
            let why = table.losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
            assert!(why.contains("of only 1 of 3 replicas are here"), "{given:?}: {why}");
        }
    }
}

#[test]
fn a_replica_whose_superblock_is_lost_costs_nothing_that_another_has() {
    let (place, source) = (tempfile::tempdir().unwrap(), testdata("kudu").join("replicated/fs"));
    let lost = place.path().join("ts1");
    copy_without(&source.join("ts1"), &lost, "tablet-meta");
    let report = run(&[&source.join("ts0"), &lost, &source.join("ts2")], &place.path().join("out"));
    assert!(report.is_complete() && report.tables[0].rows_saved == 145, "{report:?}");
    assert!(report.findings.iter().any(|finding| finding.message.contains("a superblock")), "{report:?}");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_to_the_disks() {
    let place = tempfile::tempdir().unwrap();
    let disks = place.path().join("disks");
    copy_without(&testdata("kudu").join("log-only/fs"), &disks.join("fs"), "none");
    std::os::unix::fs::symlink(&disks, place.path().join("link")).unwrap();
    for out in ["disks/out", "disks/fs/out/deeper", "link/out", "disks"] {
        let (given, out) = (disks.display().to_string(), place.path().join(out));
        let error = recover(&[given], &out, &OpenOptions::default(), &RecoverOptions::default(), &Nobody);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("which is read: write to another folder"), "{error}");
        assert!(!disks.join("out").exists() && !disks.join("fs/out").exists(), "{}", out.display());
    }
    assert!(run(&[&disks], &place.path().join("apart")).is_complete());
}
