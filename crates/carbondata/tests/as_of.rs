//! Tables as of earlier times: the later states of a table give the rows that the engine gave for the earlier ones.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::{Path, PathBuf};

use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions};
use pilaster_core::{Dataset, ErrorKind, Result};
use pilaster_testing::needs;
use support::goldens;
use support::rows::{expected, rows};
use support::tables::{copy_all, whole};

fn at(folder: &Path, time: i64) -> Result<CarbonTable> {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_as_of(Some(time)))
}

/// Opens `later` at `time` and compares with the rows of the state `earlier`.
fn same(root: &Path, later: &str, time: i64, earlier: &str) {
    let table = at(&root.join(later), time).unwrap_or_else(|error| panic!("{later} at {time}: {error}"));
    let found = rows(&whole(&table));
    assert_eq!(found, expected(&root.join(format!("{earlier}.jsonl"))), "{later} at {time} is not {earlier}");
    assert_eq!(table.row_count(), Some(found.len() as u64));
}

fn refused(root: &Path, table: &str, time: i64, words: &[&str]) {
    let error = at(&root.join(table), time).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidInput { .. }), "{error}");
    for word in words {
        assert!(error.to_string().contains(word), "{error}: {word}");
    }
}

fn root() -> PathBuf {
    goldens().join("table/v2.3")
}

#[needs(goldens = "carbondata")]
#[test]
fn deletes_and_updates_are_taken_back() {
    let root = root();
    for later in ["iud_update2", "iud_delete3"] {
        same(&root, later, 1_794_732_568_500, "iud_loaded");
        same(&root, later, 1_794_732_568_736, "iud_delete1");
        same(&root, later, 1_794_732_569_531, "iud_delete2");
        // The update has begun, its rows are not committed.
        same(&root, later, 1_794_732_570_300, "iud_delete2");
        same(&root, later, 1_794_732_571_950, "iud_update1");
        same(&root, later, 1_794_732_573_000, "iud_update1");
        same(&root, later, 1_794_732_573_169, "iud_update2");
    }
    same(&root, "iud_delete3", i64::MAX, "iud_delete3");
    refused(&root, "iud_delete3", 0, &["the table was made later", "the earliest possible time is"]);
}

#[needs(goldens = "carbondata")]
#[test]
fn compacted_segments_go_back_to_their_sources_while_these_exist() {
    let root = root();
    for later in ["compact_minor", "compact_major", "compact_custom"] {
        same(&root, later, 1_794_732_577_600, "compact_loaded");
        // A row has been deleted; compaction changes no rows.
        same(&root, later, 1_794_732_577_700, "compact_minor");
        same(&root, later, 1_794_732_578_000, "compact_minor");
        same(&root, later, 1_794_732_578_125, "compact_minor");
    }
    same(&root, "compact_custom", 1_794_732_578_501, "compact_major");
    let cleaned = root.join("compact_cleaned");
    assert_eq!(rows(&whole(&at(&cleaned, i64::MAX).unwrap())), expected(&root.join("compact_cleaned.jsonl")));
    same(&root, "compact_cleaned", 1_794_732_579_187, "compact_custom");
    // Sources of the last compaction have been cleaned away.
    refused(
        &root,
        "compact_cleaned",
        1_794_732_578_000,
        &["cleaned away", "earliest possible time is 1794732579187"],
    );
}

#[needs(goldens = "carbondata")]
#[test]
fn partitions_come_back_while_their_folders_exist() {
    let root = root();
    same(&root, "part_compacted", 1_794_732_584_200, "part_overwritten");
    same(&root, "part_compacted", 1_794_732_583_500, "part_dropped");
    refused(
        &root,
        "part_compacted",
        1_794_732_582_500,
        &["cleaned away", "earliest possible time is 1794732583411"],
    );
}

#[needs(goldens = "carbondata")]
#[test]
fn columns_are_those_of_the_time() {
    let root = root();
    same(&root, "evolve_compacted", 1_794_732_588_919, "evolve_added");
    same(&root, "evolve_changed", 1_794_732_588_919, "evolve_added");
    same(&root, "evolve_compacted", 1_794_732_589_773, "evolve_changed");
}

#[needs(goldens = "carbondata")]
#[test]
fn what_was_overwritten_comes_back_where_it_is_known_when() {
    let root = root();
    // Nothing notes which of the later loads overwrote the first.
    refused(&root, "segs_overwritten", 1_794_732_592_000, &["segment 0 was overwritten", "1794732592459"]);
    same(&root, "segs_empty_load", 1_794_732_592_459, "segs_overwritten");
    same(&root, "stream_closed", 1_794_732_599_100, "stream_finished");
    refused(&root, "stream_closed", 1_794_732_597_000, &["segment 1 is a stream", "1794732599054"]);
}

#[needs(goldens = "carbondata")]
#[test]
fn times_before_1_1_are_clocks() {
    let root = goldens();
    let root = root.join("table/v1.0");
    same(&root, "v1_dict_minor", i64::MAX, "v1_dict_minor");
    // 15-11-2026 08:59:18: the first load has ended, the second has not begun.
    same(&root, "v1_dict_minor", 1_794_733_158_000, "v1_dict_one");
}

#[needs(goldens = "carbondata")]
#[test]
fn a_delta_that_was_cleaned_away_is_missed() {
    let root = root();
    let copy = std::env::temp_dir().join(format!("pilaster-carbondata-as-of-{}", std::process::id()));
    copy_all(&root.join("iud_delete3"), &copy);
    let status = copy.join("Metadata/tableupdatestatus-1794732568736");
    std::fs::remove_file(status).unwrap();
    let error = at(&copy, 1_794_732_568_736).unwrap_err().to_string();
    assert!(error.contains("update status of that time has been cleaned away"), "{error}");
    std::fs::remove_file(copy.join("Fact/Part0/Segment_0/part-0-0_batchno0-0-0-1794732568736.deletedelta"))
        .unwrap();
    let error = at(&copy, 1_794_732_569_600).unwrap_err().to_string();
    assert!(error.contains("1794732569747"), "{error}");
    std::fs::remove_dir_all(&copy).unwrap();
}
