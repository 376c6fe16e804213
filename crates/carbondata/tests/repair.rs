//! Tables whose lost and damaged metadata is written anew.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use pilaster_carbondata::table::{CarbonTableOptions, TableRepair, repair};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, VerifyDepth};
use support::damage::{ALL, Copy, Damage, damage};
use support::rows::{expected, rows};
use support::tables::{files_below, open, whole};
use support::{goldens, testdata};

fn run(folder: &Path) -> TableRepair {
    repair(folder, &CarbonTableOptions::default()).unwrap()
}

/// Damages each file that `is_it` chooses in every way, repairs, and compares; gives how many were written with the same bytes
/// as before.
fn heals(original: &Path, name: &str, is_it: &dyn Fn(&str) -> bool) -> (usize, usize) {
    let truth = expected(&original.with_extension("jsonl"));
    let (mut count, mut same) = (0, 0);
    let all = Copy::of(original, name);
    let mut files = Vec::new();
    files_below(&all.1, &mut files);
    for path in files.iter().filter(|path| is_it(path.file_name().unwrap().to_str().unwrap())) {
        let place = path.strip_prefix(&all.1).unwrap();
        for how in ALL {
            let copy = Copy::of(original, name);
            let path = copy.1.join(place);
            damage(&path, how);
            let damaged = fs::read(&path).ok();
            let report = run(&copy.1);
            assert!(report.is_complete(), "{how:?} {}: {report:?}", place.display());
            let table = open(&copy.1);
            assert_eq!(rows(&whole(&table)), truth, "{how:?} {}", place.display());
            let verified = table.verify(VerifyDepth::Values, &Silent).unwrap();
            assert_eq!(verified.findings, [], "{how:?} {}", place.display());
            let Some(rebuilt) = report.rebuilt.iter().find(|rebuilt| rebuilt.path == path) else { continue };
            // The damaged one is still there.
            assert_eq!(rebuilt.kept.as_ref().map(|kept| fs::read(kept).unwrap()), damaged);
            count += 1;
            same += usize::from(fs::read(&path).unwrap() == fs::read(original.join(place)).unwrap());
            // A second repair finds nothing to do.
            assert_eq!(run(&copy.1), TableRepair::default());
        }
    }
    (count, same)
}

#[test]
fn index_files_are_written_from_footers() {
    let is_index = |name: &str| name.contains(".carbonindex");
    let mut all = heals(&testdata().join("table/iud_update2"), "repair-index", &is_index);
    let Some(root) = goldens() else { return };
    for table in ["v2.3/noindexmerge", "v2.3/types", "v2.3/bucket", "v2.3/part_loaded", "v1.6/d16_dict_three"]
    {
        let (count, same) = heals(&root.join("table").join(table), "repair-index", &is_index);
        all = (all.0 + count, all.1 + same);
    }
    eprintln!("{} index files written, {} with the same bytes", all.0, all.1);
    assert!(all.0 >= 60, "{all:?}");
}

#[test]
fn metadata_is_written_from_what_is_there() {
    for is_it in [
        |name: &str| name == "tablestatus",
        |name: &str| name == "schema",
        |name: &str| name.ends_with(".segment"),
    ] {
        let (count, _) = heals(&testdata().join("table/iud_update2"), "repair-metadata", &is_it);
        assert!(count >= 3, "{count}");
    }
    let Some(root) = goldens() else { return };
    for (table, name) in [
        ("v2.3/compact_minor", "tablestatus"),
        ("v2.3/part_overwritten", "tablestatus"),
        ("v2.3/types", "schema"),
        ("v2.3/complex", "schema"),
        ("v1.6/d16_dict_three", "schema"),
        ("v1.0/v1_dict_three", "tablestatus"),
    ] {
        let (count, _) = heals(&root.join("table").join(table), "repair-metadata", &|found| found == name);
        assert!(count >= 3, "{table} {name}: {count}");
    }
}

#[test]
fn dictionaries_get_their_order_and_their_commits_back() {
    let Some(root) = goldens() else { return };
    for table in ["v1.6/d16_dict_three", "v1.0/v1_dict_three"] {
        let original = root.join("table").join(table);
        let newest = |name: &str| name.ends_with(".sortindex");
        let (count, same) = heals(&original, "repair-words", &newest);
        assert!(count >= 6 && same == count, "{table}: {count} written, {same} as before");
        let (count, _) = heals(&original, "repair-words", &|name| name.ends_with(".dictmeta"));
        assert!(count >= 6, "{table}: {count}");
    }
}

#[test]
fn what_cannot_be_repaired_is_said() {
    let copy = Copy::of(&testdata().join("table/iud_update2"), "repair-not");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let find = |end: &str| -> PathBuf {
        files.iter().find(|path| path.to_str().unwrap().ends_with(end)).unwrap().clone()
    };
    // A data file that was cut, and its index too: the footer that would tell is gone.
    let data = find(".carbondata");
    damage(&data, Damage::Cut);
    for path in files
        .iter()
        .filter(|path| path.parent() == data.parent() && path.to_str().unwrap().contains("carbonindex"))
    {
        damage(path, Damage::Gone);
    }
    let report = run(&copy.1);
    assert!(!report.is_complete());
    assert!(report.left.iter().any(|finding| finding.path.ends_with(".carbondata")), "{report:?}");
}
