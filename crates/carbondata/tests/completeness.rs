//! Whatever happens to a file of a table: the rows that are given and the rows that are named as lost are the rows there were.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_select::concat::concat_batches;
use pilaster_carbondata::table::{CarbonTable, CarbonTableOptions, has_metadata};
use pilaster_core::progress::Silent;
use pilaster_core::salvage::total_lost;
use pilaster_core::{Absence, Dataset, ErrorKind, LossLog, LostRows, Result, VerifyDepth};
use pilaster_testing::needs;
use support::damage::Copy;
use support::rows::rows;
use support::tables::files_below;
use support::{batches, goldens, testdata};

fn open(folder: &Path, recovers: bool) -> Result<CarbonTable> {
    CarbonTable::open(folder, &CarbonTableOptions::default().with_recovery(recovers))
}

/// How often each row is there.
type Bag = HashMap<String, usize>;

fn bag(rows: Vec<String>) -> Bag {
    let mut bag = Bag::new();
    rows.into_iter().for_each(|row| *bag.entry(row).or_default() += 1);
    bag
}

fn count(bag: &Bag) -> u64 {
    bag.values().sum::<usize>() as u64
}

/// The rows of `a` that are not in `b`.
fn without(a: &Bag, b: &Bag) -> u64 {
    a.iter().map(|(row, times)| times.saturating_sub(b.get(row).copied().unwrap_or(0))).sum::<usize>() as u64
}

fn read(table: &CarbonTable) -> Result<Bag> {
    let found = batches(table.scan())?;
    Ok(bag(rows(&concat_batches(&table.schema(), &found).unwrap())))
}

/// What salvage gives and what it names as lost.
fn salvaged(table: &CarbonTable) -> (Bag, Vec<LostRows>) {
    let log = Arc::new(LossLog::new());
    let found = batches(table.scan().skip_damage(Arc::clone(&log))).unwrap();
    table.absences().iter().for_each(|absence| log.add(absence.loss()));
    (bag(rows(&concat_batches(&table.schema(), &found).unwrap())), log.losses())
}

/// Whole folders: of a partition, of a segment, of a stream.
#[test]
fn folders_that_are_gone_are_named() {
    for (name, folder, what) in [
        ("table/iud_update2", "Fact/Part0/Segment_1", "a folder of segment 1 is not here"),
        ("table/part_overwritten", "country=de", "a folder of segment "),
        ("stream/stream_types", "Fact/Part0/Segment_0", "the folder of segment 0 is not here"),
    ] {
        let copy = Copy::of(&testdata().join(name), &format!("folder-{}", name.replace('/', "-")));
        let whole = open(&copy.1, false).unwrap().row_count().unwrap();
        fs::remove_dir_all(copy.1.join(folder)).unwrap();
        for recovers in [false, true] {
            let table = open(&copy.1, recovers).unwrap();
            let absences = table.absences();
            let is_it = |absence: &Absence| absence.to_string().contains(what);
            assert!(absences.iter().any(is_it), "{name}: {absences:?}");
            assert!(absences.iter().all(|absence| absence.rows.is_none()));
            assert!(table.row_count().unwrap() < whole, "{name}");
        }
    }
}

/// The index knows how many rows a data file had that is gone, without those that were deleted from it.
#[test]
fn the_rows_of_a_missing_data_file_are_counted() {
    for name in ["table/iud_update2", "table/part_overwritten", "table/evolve_changed"] {
        let copy = Copy::of(&testdata().join(name), &format!("counted-{}", name.replace('/', "-")));
        let whole = open(&copy.1, false).unwrap().row_count().unwrap();
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "carbondata")) {
            for empty in [false, true] {
                let bytes = fs::read(path).unwrap();
                if empty {
                    fs::write(path, []).unwrap()
                } else {
                    fs::remove_file(path).unwrap()
                }
                let table = open(&copy.1, false).unwrap();
                let lost: Option<u64> = table.absences().iter().map(|absence| absence.rows).sum();
                assert_eq!(table.row_count().unwrap() + lost.unwrap(), whole, "{}", path.display());
                assert_eq!(count(&read(&table).unwrap()), table.row_count().unwrap());
                fs::write(path, bytes).unwrap();
            }
        }
    }
}

/// A list of deletes that names other data files than there are must not bring deleted rows back.
#[test]
fn an_update_status_of_other_files_is_refused() {
    let copy = Copy::of(&testdata().join("table/iud_update2"), "other-files");
    let truth = read(&open(&copy.1, false).unwrap()).unwrap();
    let status = fs::read_to_string(copy.1.join("Metadata/tablestatus")).unwrap();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let path = copy.1.join("Metadata").join(status[0]["updateStatusFileName"].as_str().unwrap());
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in
        [("part-0-0", "part-0-7"), ("-1794", "-2794"), ("\"segmentName\":\"1\"", "\"segmentName\":\"0\"")]
    {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        fs::write(&path, changed).unwrap();
        let error = open(&copy.1, false).unwrap_err();
        assert!(error.is_damage() && error.to_string().contains("tableupdatestatus"), "{error}");
        let (saved, losses) = salvaged(&open(&copy.1, true).unwrap());
        assert_eq!(without(&saved, &truth), 0, "{from}");
        assert!(!losses.is_empty());
    }
}

/// Data files in dropped partitions are not looked at, so an update status may name some that nobody finds. It names none that are
/// here then, though rows of them were deleted at the same time.
#[test]
fn an_update_status_of_other_files_is_refused_beside_dropped_partitions_too() {
    let copy = Copy::of(&testdata().join("table/part_overwritten"), "other-partitions");
    let truth = read(&open(&copy.1, false).unwrap()).unwrap();
    let path = copy.1.join("Metadata/tableupdatestatus-1794732584109");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("part-0-", "part-9-")).unwrap();
    let error = open(&copy.1, false).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("tableupdatestatus"), "{error}");
    let (saved, losses) = salvaged(&open(&copy.1, true).unwrap());
    assert_eq!(without(&truth, &saved), 0);
    assert!(losses.iter().any(|lost| lost.reason.contains("may be among those given")), "{losses:?}");
}

/// Segments lie as only tables with metadata have them: their data files are not taken for all there is.
#[test]
fn a_table_that_lost_all_of_its_metadata_is_not_one_without() {
    for name in ["iud_update2", "part_overwritten", "bucket", "d16_dict_one", "v1_group"] {
        let copy = Copy::of(&testdata().join("table").join(name), "no-metadata");
        let truth = read(&open(&copy.1, false).unwrap()).unwrap();
        fs::remove_dir_all(copy.1.join("Metadata")).unwrap();
        assert!(has_metadata(&copy.1).unwrap(), "{name}");
        let error = open(&copy.1, false).unwrap_err();
        assert!(error.to_string().contains("Metadata"), "{name}: {error}");
        let (saved, losses) = salvaged(&open(&copy.1, true).unwrap());
        assert!(!losses.is_empty(), "{name}");
        let is_said = losses.iter().any(|lost| lost.reason.contains("may be among those given"));
        assert!(is_said || without(&saved, &truth) == 0, "{name}");
        // Files of versions 1 and 2 without dictionaries, and those of 2.3, have all values in them.
        let is_whole = !matches!(name, "d16_dict_one" | "v1_group");
        assert!(!is_whole || without(&truth, &saved) == 0, "{name}: {}", without(&truth, &saved));
    }
}

/// A word of a dictionary that is lost takes the cells of its column, and nothing else.
#[needs(goldens = "carbondata")]
#[test]
fn a_lost_dictionary_takes_one_column() {
    let root = goldens();
    for table in ["v1.6/d16_dict_three", "v1.0/v1_dict_three"] {
        let copy = Copy::of(&root.join("table").join(table), "dictionary-gone");
        let mut files = Vec::new();
        files_below(&copy.1, &mut files);
        let whole = open(&copy.1, false).unwrap().row_count().unwrap();
        let dictionaries = files.iter().filter(|path| path.extension().is_some_and(|end| end == "dict"));
        for path in dictionaries {
            let bytes = fs::read(path).unwrap();
            fs::remove_file(path).unwrap();
            let error = open(&copy.1, false).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Incomplete { .. }), "{error}");
            let table = open(&copy.1, true).unwrap();
            let (saved, losses) = salvaged(&table);
            let columns: std::collections::HashSet<_> =
                losses.iter().map(|lost| lost.column.clone().unwrap()).collect();
            assert_eq!(columns.len(), 1, "{losses:?}");
            assert!(losses[0].reason.contains(".dict"), "{losses:?}");
            assert_eq!(count(&saved) + total_lost(&losses).unwrap(), whole);
            let others: Vec<_> = table
                .schema()
                .fields()
                .iter()
                .map(|field| field.name().clone())
                .filter(|name| !columns.contains(name))
                .collect();
            let log = Arc::new(LossLog::new());
            let scan = table.scan().project(&others).skip_damage(Arc::clone(&log));
            let given: usize = batches(scan).unwrap().iter().map(arrow_array::RecordBatch::num_rows).sum();
            assert_eq!((given as u64, log.is_empty()), (whole, true));
            // The index files beside the data are sound.
            let report = table.verify(VerifyDepth::Footer, &Silent).unwrap();
            assert!(
                report.findings.iter().all(|finding| !finding.path.contains("carbonindex")),
                "{:?}",
                report.findings
            );
            fs::write(path, bytes).unwrap();
        }
    }
}

/// Verify and salvage name the same pages where values lie outside of their bounds.
#[test]
fn values_outside_their_bounds_are_lost() {
    let copy = Copy::of(&testdata().join("table/evolve_changed"), "bounds");
    let mut files = Vec::new();
    files_below(&copy.1, &mut files);
    let path =
        files.into_iter().find(|path| path.extension().is_some_and(|end| end == "carbondata")).unwrap();
    let whole = fs::read(&path).unwrap();
    let mut found = 0;
    for at in 0..whole.len() {
        let mut bad = whole.clone();
        bad[at] ^= 0x01;
        fs::write(&path, bad).unwrap();
        let Ok(table) = open(&copy.1, false) else { continue };
        let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
        let is_it = |finding: &&pilaster_core::Finding| finding.message.contains("bounds of their page");
        // Columns that were dropped are verified, and not given.
        let is_column = |finding: &&pilaster_core::Finding| {
            let fields = table.schema();
            fields.fields().iter().any(|field| finding.message.contains(&format!("{:?}", field.name())))
        };
        if report.findings.iter().any(|finding| is_it(&finding) && is_column(&finding)) {
            found += 1;
            let (_, losses) = salvaged(&open(&copy.1, true).unwrap());
            assert!(
                losses.iter().any(|lost| lost.reason.contains("bounds of their page")),
                "byte {at}: {losses:?}\n{:?}",
                report.findings
            );
        }
    }
    assert!(found > 3, "{found}");
}

/// What the system does not let us look at is neither lost nor empty.
#[test]
fn what_cannot_be_looked_at_is_an_error() {
    use std::os::unix::fs::symlink;
    for (what, name) in [
        ("Metadata/tablestatus", "tablestatus"),
        ("Metadata/segments", "segments"),
        ("Fact/Part0/Segment_1", "Segment_1"),
        ("Metadata", "Metadata"),
    ] {
        let copy = Copy::of(&testdata().join("table/iud_update2"), "unread");
        let path = copy.1.join(what);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        // A link to itself cannot be followed, whoever asks.
        symlink(&path, &path).unwrap();
        for recovers in [false, true] {
            let error = open(&copy.1, recovers).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Io(_)), "{what}: {error}");
            assert!(error.to_string().contains(name), "{what}: {error}");
        }
    }
    // Whoever looks at everything goes on with the other segments.
    let copy = Copy::of(&testdata().join("table/iud_update2"), "unread-one");
    let path = copy.1.join("Fact/Part0/Segment_1");
    fs::remove_dir_all(&path).unwrap();
    symlink(&path, &path).unwrap();
    let options = CarbonTableOptions::default().with_unread_left_out(true);
    let table = CarbonTable::open(&copy.1, &options).unwrap();
    assert!(table.row_count().unwrap() > 0);
    assert_eq!(table.unread().len(), 1);
    let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
    assert_eq!((report.unread, report.is_sound()), (1, false));
}
