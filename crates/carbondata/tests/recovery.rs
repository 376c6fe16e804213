//! Tables of which something is lost or damaged.
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
use std::path::Path;
use std::sync::Arc;

use arrow_select::concat::concat_batches;
use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions};
use pilaster_core::progress::Silent;
use pilaster_core::salvage::total_lost;
use pilaster_core::{Dataset, LossLog, Result, VerifyDepth};
use pilaster_testing::needs;
use support::damage::{ALL, Copy, Damage, damage};
use support::rows::{expected, rows};
use support::tables::files_below;
use support::{Numbers, batches, goldens, testdata};

fn recovered(folder: &Path) -> Result<CarbonTable> {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_recovery(true))
}

/// The rows that can be had, and how many were lost.
fn left(table: &CarbonTable) -> (Vec<String>, u64) {
    let log = Arc::new(LossLog::new());
    let found = batches(table.scan().skip_damage(Arc::clone(&log))).unwrap();
    let lost = total_lost(&log.losses()).unwrap();
    (rows(&concat_batches(&table.schema(), &found).unwrap()), lost)
}

/// Damages each file that `is_it` chooses in every way, and compares the rows that can still be had.
fn survives(original: &Path, name: &str, is_it: &dyn Fn(&str) -> bool) -> usize {
    let truth = expected(&original.with_extension("jsonl"));
    let copy = Copy::of(original, name);
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    files.retain(|path| is_it(path.file_name().unwrap().to_str().unwrap()));
    for path in &files {
        for how in ALL {
            damage(path, how);
            let table =
                recovered(&copy.1).unwrap_or_else(|error| panic!("{how:?} {}: {error}", path.display()));
            assert_eq!(left(&table), (truth.clone(), 0), "{how:?} {}", path.display());
            let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
            // Only what does not count may be damaged without a word; garbage may lie where nobody looks.
            let is_named = report
                .findings
                .iter()
                .any(|finding| path.ends_with(Path::new(&*finding.path).file_name().unwrap()));
            assert!(
                is_named || how == Damage::Garbage || is_history(&copy.1, path),
                "{how:?} {}: {:?}",
                path.display(),
                report.findings
            );
            copy.heal(path);
        }
    }
    assert_eq!(left(&recovered(&copy.1).unwrap()), (truth, 0));
    assert_eq!(recovered(&copy.1).unwrap().findings(), []);
    files.len()
}

/// Whether a file belongs to a segment or a state that is no longer part of the table.
fn is_history(table: &Path, path: &Path) -> bool {
    let status = fs::read_to_string(table.join("Metadata/tablestatus")).unwrap_or_default();
    let name = path.file_name().unwrap().to_str().unwrap();
    let id = name.split_once('_').map_or(name, |(id, _)| id);
    let readable = serde_json::from_str::<Vec<serde_json::Value>>(&status).unwrap_or_default();
    let is_live =
        readable.iter().any(|segment| segment["loadName"] == id && segment["loadStatus"] == "Success");
    (name.ends_with(".segment") && !status.contains(name)) || !is_live
}

#[test]
fn index_files_are_derived_from_footers() {
    let is_index = |name: &str| name.contains(".carbonindex");
    assert!(survives(&testdata().join("table/iud_update2"), "index-iud", &is_index) >= 3);
    assert!(survives(&testdata().join("table/part_overwritten"), "index-part", &is_index) >= 10);
}

#[needs(goldens = "carbondata")]
#[test]
fn index_files_of_the_golden_tables_are_derived_from_footers() {
    let is_index = |name: &str| name.contains(".carbonindex");
    let root = goldens();
    for table in ["v2.3/noindexmerge", "v2.3/bucket", "v2.3/iudpages", "v2.3/types", "v1.6/d16_dict_three"] {
        assert!(survives(&root.join("table").join(table), "index", &is_index) >= 1, "{table}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn a_stream_is_read_as_far_as_it_goes_without_its_index() {
    let root = goldens();
    let original = root.join("table/v2.3/stream_open");
    let truth = expected(&original.with_extension("jsonl"));
    let copy = Copy::of(&original, "stream");
    let folder = copy.1.join("Fact/Part0/Segment_1");
    let files = support::sorted(&folder);
    let find = |end: &str| files.iter().find(|path| path.to_str().unwrap().ends_with(end)).unwrap();
    for how in ALL {
        damage(find(".carbonindex"), how);
        let table = recovered(&copy.1).unwrap();
        assert_eq!(left(&table), (truth.clone(), 0), "{how:?}");
        assert!(table.findings().iter().any(|finding| finding.path.contains("Segment_1")), "{how:?}");
        copy.heal(find(".carbonindex"));
    }
    damage(find(".carbonindex"), Damage::Gone);
    // What was written of the last batch is no batch.
    let bytes = fs::read(find(".carbondata")).unwrap();
    fs::write(find(".carbondata"), &bytes[..bytes.len() - 3]).unwrap();
    let (found, _) = left(&recovered(&copy.1).unwrap());
    assert!(found.len() < truth.len() && found.iter().all(|row| truth.contains(row)));
}

#[test]
fn segment_files_are_derived_from_folders() {
    let is_segment = |name: &str| name.ends_with(".segment");
    assert!(survives(&testdata().join("table/iud_update2"), "segment-iud", &is_segment) >= 3);
    assert!(survives(&testdata().join("table/part_overwritten"), "segment-part", &is_segment) >= 3);
}

#[test]
fn tablestatus_is_derived_from_segment_files_and_deltas() {
    let is_status = |name: &str| name == "tablestatus";
    for table in ["iud_update2", "part_overwritten", "evolve_changed"] {
        assert_eq!(survives(&testdata().join("table").join(table), "status", &is_status), 1);
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn tablestatus_of_the_golden_tables_is_derived_from_segment_files_and_deltas() {
    let is_status = |name: &str| name == "tablestatus";
    let root = goldens();
    for table in [
        "compact_minor",
        "compact_major",
        "compact_custom",
        "compact_cleaned",
        "part_compacted",
        "evolve_compacted",
        "types",
        "complex",
        "stream_closed",
        "stream_open",
        "iud_delete2",
    ] {
        assert_eq!(survives(&root.join("table/v2.3").join(table), "status", &is_status), 1, "{table}");
    }
    for table in ["v1.6/d16_dict_minor", "v1.0/v1_dict_minor", "v1.0/v2_dict_three"] {
        assert_eq!(survives(&root.join("table").join(table), "status", &is_status), 1, "{table}");
    }
    // What was deleted and not cleaned away is there again, and that is said.
    let copy = Copy::of(&root.join("table/v2.3/segs_deleted"), "status-deleted");
    damage(&copy.1.join("Metadata/tablestatus"), Damage::Gone);
    let table = recovered(&copy.1).unwrap();
    assert!(table.findings().iter().any(|finding| finding.message.contains("are part of the table again")));
}

#[test]
fn the_schema_is_derived_from_data_files() {
    let is_schema = |name: &str| name == "schema";
    assert_eq!(survives(&testdata().join("table/iud_update2"), "schema", &is_schema), 1);
}

#[needs(goldens = "carbondata")]
#[test]
fn the_schema_of_the_golden_tables_is_derived_from_data_files() {
    let is_schema = |name: &str| name == "schema";
    let root = goldens();
    for table in
        ["v2.3/types", "v2.3/complex", "v2.3/compact_minor", "v1.6/d16_dict_three", "v1.0/v1_dict_three"]
    {
        assert_eq!(survives(&root.join("table").join(table), "schema", &is_schema), 1, "{table}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn dictionaries_survive_without_their_meta_files() {
    let root = goldens();
    let is_meta = |name: &str| name.ends_with(".dictmeta");
    for table in ["v1.6/d16_dict_three", "v1.0/v2_dict_three"] {
        assert!(survives(&root.join("table").join(table), "dictmeta", &is_meta) >= 2, "{table}");
    }
}

#[test]
fn lost_delete_deltas_are_named() {
    let copy = Copy::of(&testdata().join("table/iud_update2"), "deltas");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let status = "tableupdatestatus-";
    files.retain(|path| {
        path.extension().is_some_and(|end| end == "deletedelta")
            || path.display().to_string().contains(status)
    });
    assert!(files.len() >= 10);
    let truth = expected(&testdata().join("table/iud_update2.jsonl"));
    let mut named = 0;
    for path in files {
        for how in ALL {
            damage(&path, how);
            let table = recovered(&copy.1).unwrap();
            let (found, _) = left(&table);
            // Rows that may have been deleted are not given, and counted as lost.
            let lost: Option<u64> = table.absences().iter().map(|absence| absence.rows).sum();
            let given = found.len() as u64;
            match lost {
                Some(lost) => assert_eq!(given + lost, truth.len() as u64, "{how:?} {}", path.display()),
                None => assert!(path.display().to_string().contains(status), "{how:?} {}", path.display()),
            }
            assert!(found == truth || !table.findings().is_empty(), "{how:?} {}", path.display());
            if lost.is_some() {
                assert!(found.iter().all(|row| truth.contains(row)), "{how:?} {}", path.display());
            }
            named += usize::from(!table.findings().is_empty());
            copy.heal(&path);
        }
    }
    assert!(named >= 8, "{named}");
}

#[needs(goldens = "carbondata")]
#[test]
fn cut_and_damaged_data_files_give_their_whole_pages() {
    let root = goldens();
    let original = root.join("table/v2.3/iudpages");
    let truth = expected(&root.join("table/v2.3/iudpages.jsonl"));
    let copy = Copy::of(&original, "data");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let data =
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "carbondata")).unwrap();
    let bytes = fs::read(&data).unwrap();
    let mut most = 0;
    for end in [bytes.len() - 4, bytes.len() - 40, 66_900, 64_600, 1000, 100, 0] {
        fs::write(&data, &bytes[..end.min(bytes.len())]).unwrap();
        let table = recovered(&copy.1).unwrap();
        let (found, lost) = left(&table);
        assert!(found.iter().all(|row| truth.binary_search(row).is_ok()), "cut at {end}");
        assert_eq!(found.len() as u64 + lost, truth.len() as u64, "cut at {end}");
        assert!(!table.findings().is_empty());
        most = most.max(found.len());
    }
    assert_eq!(most, truth.len());
    // Cut inside the second page of the last column, the rows of the first pages are there.
    fs::write(&data, &bytes[..67_030]).unwrap();
    let (found, lost) = left(&recovered(&copy.1).unwrap());
    assert!(found.len() > 31_000 && lost < 1000, "{} and {lost}", found.len());
    // The index gone too: the chunks lead from one to the next.
    let folder = data.parent().unwrap();
    for path in
        support::sorted(folder).into_iter().filter(|path| path.display().to_string().contains("carbonindex"))
    {
        fs::remove_file(path).unwrap();
    }
    let (found, _) = left(&recovered(&copy.1).unwrap());
    assert!(found.len() > 31_000, "{}", found.len());
    // Bytes in the middle of the first page.
    let mut bad = bytes.clone();
    bad[2000..2100].fill(0xff);
    fs::write(&data, bad).unwrap();
    let (found, _) = left(&recovered(&copy.1).unwrap());
    assert!(found.iter().filter(|row| truth.binary_search(row).is_ok()).count() > 300);
}

#[test]
fn random_damage_is_survived() {
    let copy = Copy::of(&testdata().join("table/part_overwritten"), "random");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let mut numbers = Numbers(5);
    for path in files {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        for _ in 0..10 {
            let mut bad = bytes.clone();
            let at = numbers.below(bytes.len() as u64) as usize;
            bad[at] ^= 1 << numbers.below(8);
            fs::write(&path, bad).unwrap();
            if let Ok(table) = recovered(&copy.1) {
                let log = Arc::new(LossLog::new());
                let _ = batches(table.scan().skip_damage(log));
            }
        }
        fs::write(&path, bytes).unwrap();
    }
}

/// Data files of 2.3 hold the partition columns too: they come once, with their own types, before and after a repair.
#[test]
fn partition_columns_come_once_without_the_schema() {
    let original = testdata().join("table/part_overwritten");
    let copy = Copy::of(&original, "partitions");
    let table = &copy.1;
    fs::remove_file(table.join("Metadata/schema")).unwrap();
    let expected = CarbonTable::open(&original, &CarbonTableOptions::default()).unwrap();
    let fields = |table: &CarbonTable| {
        let schema = table.schema();
        schema
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone()))
            .collect::<Vec<_>>()
    };
    let recovered = CarbonTable::open(table, &CarbonTableOptions::default().with_recovery(true)).unwrap();
    assert_eq!(fields(&recovered), fields(&expected));
    pilaster_carbondata::table::repair(table, &CarbonTableOptions::default()).unwrap();
    let repaired = CarbonTable::open(table, &CarbonTableOptions::default()).unwrap();
    assert_eq!(fields(&repaired), fields(&expected));
    assert_eq!(repaired.row_count(), expected.row_count());
}
