//! Folders of files, and what lies beside and below them.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests stop at the first surprise"
)]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pilaster::core::progress::Silent;
use pilaster::ls::{ListOptions, State, list};
use pilaster::verify::verify;
use pilaster::{ErrorKind, OpenOptions, Severity, VerifyDepth, open};
use pilaster_testing::testdata;

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn text(folder: &Path) -> &str {
    folder.to_str().unwrap()
}

fn rows(path: &str) -> usize {
    open(path).unwrap().scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

#[test]
fn a_file_that_cannot_be_looked_at_is_not_one_that_is_not_there() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write(folder, "a.csv", "x,y\n1,2\n");
    // What a failing disk or a refusal would be, as far as a test may bring it about.
    symlink("loop.csv", folder.join("loop.csv")).unwrap();
    let error = open(text(folder)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Io(_)), "{error}");
    assert!(error.to_string().contains("loop.csv: "), "{error}");
    let entries = list(&[text(folder)], &ListOptions::default()).unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].state, State::Ok);
    assert!(matches!(entries[1].state, State::Unread(_)), "{:?}", entries[1]);
    let report = verify(&[text(folder)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    assert_eq!((report.rows, report.unread, report.is_sound()), (1, 1, false));
    assert!(
        open(text(&folder.join("loop.csv"))).is_err_and(|error| matches!(error.kind(), ErrorKind::Io(_)))
    );
    assert!(
        verify(
            &[folder.join("gone").to_str().unwrap()],
            &OpenOptions::default(),
            VerifyDepth::Footer,
            &Silent
        )
        .is_err()
    );
}

#[test]
fn everything_below_is_verified_however_deep_and_links_that_lead_back_end() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write(folder, "a.csv", "x,y\n1,2\n");
    write(folder, "1/2/3/4/5/6/deep.parquet", "PAR1 and then nothing that is a file");
    write(folder, "1/2/notes.txt", "nothing\u{1} of interest");
    symlink("../..", folder.join("1/2/back")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(folder.join("1/pipe")).status().unwrap().success());
    let report = verify(&[text(folder)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    let of = |severity| -> Vec<_> {
        let findings = report.findings.iter().filter(|finding| finding.severity == severity);
        let names = findings.map(|f| Path::new(&*f.path).file_name().unwrap().to_str().unwrap().to_string());
        names.collect()
    };
    assert_eq!(of(Severity::Error), ["deep.parquet"]);
    let mut passed_over = of(Severity::Warning);
    passed_over.sort();
    assert_eq!(passed_over, ["notes.txt", "pipe"]);
    assert_eq!((report.rows, report.unread), (1, 0));
}

#[test]
fn notes_beside_data_do_not_block_it_and_folders_that_are_not_read_are_said() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    write(folder, "a.csv", "x,y\n1,2\n");
    write(folder, "b.csv", "x,y\n3,4\n");
    write(folder, "damage.txt", "rows,why\n5,lost\n");
    write(folder, "README.md", "# Hello\n");
    write(folder, "older/c.csv", "x,y\n5,6\n");
    let dataset = open(text(folder)).unwrap();
    let mut said: Vec<_> = dataset.findings().iter().map(|finding| finding.path.to_string()).collect();
    said.sort();
    let path = |name: &str| folder.join(name).display().to_string();
    assert_eq!(said, [path("README.md"), path("damage.txt"), path("older")]);
    assert_eq!(rows(text(folder)), 2);
}

#[test]
fn folders_of_partitions_are_one_table_or_none() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    for (name, content) in [
        ("t/y=2023/m=1/a.csv", "x\n1\n2\n"),
        ("t/y=2023/m=2/a.csv", "x\n3\n"),
        ("t/y=__HIVE_DEFAULT_PARTITION__/m=1/a.csv", "x\n4\n"),
        ("t/_SUCCESS", ""),
        ("uneven/y=1/a.csv", "x\n1\n"),
        ("uneven/y=2/m=1/a.csv", "x\n1\n"),
        ("mixed/y=1/a.csv", "x\n1\n"),
        ("mixed/b.csv", "x\n1\n"),
        ("empty/y=1/_SUCCESS", ""),
    ] {
        write(folder, name, content);
    }
    let at = |name: &str| folder.join(name).display().to_string();
    let dataset = open(&at("t")).unwrap();
    let names: Vec<_> =
        dataset.schema().fields().iter().map(|f| format!("{} {}", f.name(), f.data_type())).collect();
    assert_eq!(names, ["x Int64", "y Int64", "m Int64"]);
    assert_eq!(rows(&at("t")), 4);
    for (name, words) in [
        ("uneven", "lies in partitions by y, m, and others by y"),
        ("mixed", "holds the file \"b.csv\" beside partitions by \"y\""),
        ("empty", "without a file that holds rows"),
    ] {
        let error = open(&at(name)).unwrap_err().to_string();
        assert!(error.contains(words), "{name}: {error}");
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap().path()) {
        let target = to.join(entry.file_name().unwrap());
        if entry.is_dir() {
            copy(&entry, &target);
        } else {
            fs::copy(&entry, &target).unwrap();
        }
    }
}

#[test]
#[cfg(all(feature = "kudu", feature = "carbondata"))]
fn tables_of_several_systems_in_one_folder_are_all_found_and_never_one_for_all() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path();
    copy(&testdata("kudu").join("mixed/fs"), &top.join("servers/ts1/fs"));
    copy(&testdata("carbondata").join("table/iud_update2"), &top.join("store/iud"));
    write(top, "loose/a.csv", "x,y\n1,2\n");
    let error = open(text(top)).unwrap_err().to_string();
    assert!(error.ends_with("carbondata in store; kudu in servers"), "{error}");
    let report = verify(&[text(top)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    let one_by_one: u64 = ["servers", "store", "loose"]
        .map(|name| {
            verify(&[text(&top.join(name))], &OpenOptions::default(), VerifyDepth::Values, &Silent)
                .unwrap()
                .rows
        })
        .iter()
        .sum();
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!(report.rows, one_by_one);
    let entries = list(&[text(top)], &ListOptions::default().with_recursive(true)).unwrap();
    for (format, least) in [("kudu tablet", 2), ("carbondata segment", 4), ("csv", 1)] {
        let found = entries.iter().filter(|entry| entry.format.as_deref() == Some(format)).count();
        assert_eq!(found, least, "{format}: {entries:?}");
    }
}

/// A folder with files of its own and a tablet further below is no store by itself, but the folder above it has the tablet in it.
#[test]
#[cfg(all(feature = "kudu", feature = "doris"))]
fn a_tablet_beside_files_does_not_speak_for_the_folder_above() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path();
    copy(&testdata("kudu").join("mixed/fs"), &top.join("k"));
    copy(&testdata("doris").join("duplicate"), &top.join("d"));
    let error = open(text(top)).unwrap_err().to_string();
    assert!(error.ends_with("together: kudu in k; doris further below"), "{error}");
    let entries = list(&[text(top)], &ListOptions::default().with_recursive(true)).unwrap();
    for format in ["kudu tablet", "doris tablet"] {
        assert!(entries.iter().any(|entry| entry.format.as_deref() == Some(format)), "{format}: {entries:?}");
    }
    // Notes hide nothing.
    write(top, "e/README.md", "# tablets");
    copy(&testdata("doris").join("duplicate/tablet"), &top.join("e/tablet"));
    assert_eq!(rows(text(&top.join("e"))), 65);
}

#[test]
#[cfg(all(feature = "kudu", feature = "carbondata"))]
fn disks_and_stores_are_found_however_deep_and_what_lies_beside_them_too() {
    let place = tempfile::tempdir().unwrap();
    for (name, from, expected) in [
        ("k", testdata("kudu").join("mixed/fs"), 710),
        ("c", testdata("carbondata").join("table/iud_update2"), 66),
    ] {
        let top = place.path().join(name);
        copy(&from, &top.join("a/b/c/d/e/f/t"));
        assert_eq!(rows(text(&top)), expected, "{name}");
        write(&top, "a/b/other/bad.parquet", "PAR1 and then nothing that is a file");
        let report = verify(&[text(&top)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
        let damaged: Vec<_> =
            report.findings.iter().filter(|finding| finding.severity == Severity::Error).collect();
        assert_eq!(damaged.len(), 1, "{name}: {damaged:?}");
        assert!(damaged[0].path.ends_with("bad.parquet"), "{name}: {damaged:?}");
    }
}

#[test]
#[cfg(feature = "kudu")]
fn a_damaged_file_in_a_root_itself_is_found_and_words_are_not_taken_for_data() {
    let place = tempfile::tempdir().unwrap();
    let top = place.path().join("server");
    copy(&testdata("kudu").join("mixed/fs"), &top);
    write(&top, "notes.txt", "a,b\n1,2\n");
    write(&top, "instance.kudutmp.a1b2c3", "PAR1");
    let look = || verify(&[text(&top)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    assert!(look().is_sound(), "{:?}", look().findings);
    write(&top, "bad.parquet", "PAR1 and then nothing that is a file");
    let report = look();
    let mut damaged = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
    assert!(damaged.next().is_some_and(|finding| finding.path.ends_with("bad.parquet")), "{report:?}");
    assert_eq!((damaged.next(), rows(text(&top))), (None, 710));
}

#[test]
fn verify_says_why_a_folder_is_refused_whose_files_are_sound() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    for (name, content) in [
        ("columns/a.csv", "x,y\n1,2\n"),
        ("columns/b.csv", "x,z\n1,2\n"),
        ("partitions/y=1/a.csv", "x,z\n1,2\n"),
        ("partitions/y=2/m=1/a.csv", "x,z\n1,2\n"),
    ] {
        write(folder, name, content);
    }
    for name in ["columns", "partitions"] {
        let path = folder.join(name);
        let error = open(text(&path)).and_then(|dataset| dataset.scan().read().map(drop)).unwrap_err();
        let report = verify(&[text(&path)], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
        let said: Vec<_> = report.findings.iter().map(|finding| finding.message.clone()).collect();
        assert_eq!(said, [format!("is no one table: {error}")]);
        assert!(report.is_sound());
    }
}
