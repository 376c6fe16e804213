//! CarbonData through the facade: files, folders, tables and stores, opened by what they are.
#![cfg(feature = "carbondata")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests compute with known values")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::Array;
use pilaster::carbondata::{CarbonOptions, OutsideFolders};
use pilaster::core::progress::Silent;
use pilaster::ls::{ListOptions, State, list};
use pilaster::store::open_store;
use pilaster::{Dataset, LossLog, LostCells, OpenOptions, VerifyDepth, col, lit};
use pilaster_testing::needs;

/// Rows of `iud_update2` before anything was deleted.
const LOADED: usize = 80;

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/carbondata")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn rows(dataset: &dyn Dataset) -> usize {
    dataset.scan().read().unwrap().map(|batch| batch.unwrap().num_rows()).sum()
}

fn expected(table: &str) -> usize {
    std::fs::read_to_string(testdata().join("table").join(format!("{table}.jsonl"))).unwrap().lines().count()
}

#[test]
fn a_data_file_is_known_by_its_content() {
    let folder = testdata().join("sdk/bool_byte/data");
    let data = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let data = data.into_iter().find(|path| path.extension().is_some_and(|end| end == "carbondata")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let renamed = copy.path().join("anything.bin");
    std::fs::copy(&data, &renamed).unwrap();
    let file = pilaster::open(&text(&renamed)).unwrap();
    assert_eq!((file.format(), rows(file.as_ref())), ("carbondata file", 500));
    assert!(file.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
    // Without its footer it is opened only by who asks for that.
    let bytes = std::fs::read(&data).unwrap();
    let cut = copy.path().join("cut.carbondata");
    std::fs::write(&cut, &bytes[..bytes.len() - 8]).unwrap();
    assert!(pilaster::open(&text(&cut)).is_err());
    let options = OpenOptions::default().with_recovery(true);
    assert_eq!(rows(options.open(&text(&cut)).unwrap().as_ref()), 500);
}

#[test]
fn a_folder_of_the_sdk_is_one_table() {
    let folder = pilaster::open(&text(&testdata().join("sdk/bool_byte/data"))).unwrap();
    assert_eq!((folder.format(), rows(folder.as_ref())), ("carbondata folder", 500));
}

#[test]
fn a_table_is_opened_with_its_deletes_and_listed_by_segment() {
    let path = text(&testdata().join("table/iud_update2"));
    let table = pilaster::open(&path).unwrap();
    assert_eq!((table.format(), rows(table.as_ref())), ("carbondata table", expected("iud_update2")));
    let entries = list(&[&path], &ListOptions::default()).unwrap();
    let detail = |name: &str| -> Vec<String> {
        let value = |entry: &pilaster::ls::Entry| {
            entry.details.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        entries.iter().filter_map(value).collect()
    };
    assert_eq!(detail("segment"), ["0", "1", "2", "3"]);
    assert_eq!(detail("status"), ["Success", "Success", "Marked for Delete", "Success"]);
    let live: u64 = entries.iter().filter_map(|entry| entry.rows).sum();
    assert_eq!(live, expected("iud_update2") as u64);
}

#[test]
fn a_store_has_tables_and_a_table_has_segments() {
    let path = text(&testdata().join("table"));
    let store = open_store(&[&path], &OpenOptions::default()).unwrap().unwrap();
    let report = store.verify(None, VerifyDepth::Values, &Silent).unwrap();
    assert!(report.is_sound() && report.rows > 0);
    let entries = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut folders: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    folders.sort();
    assert_eq!(store.tables(), folders);
    assert!(pilaster::open(&path).unwrap_err().to_string().contains("evolve_changed, iud_update2"));
    let options = OpenOptions::default().with_table(Some("part_overwritten".into()));
    let table = options.open(&path).unwrap();
    assert_eq!(rows(table.as_ref()), expected("part_overwritten"));
    let german = table.scan().filter(col("country").eq(lit("de"))).read().unwrap();
    let german: usize = german.map(|batch| batch.unwrap().num_rows()).sum();
    assert!(german > 0 && german < expected("part_overwritten"));
    let one = CarbonOptions::default().with_segments(Some(vec!["3".into()]));
    let options = OpenOptions::default().with_table(Some("iud_update2".into())).with_carbondata(one);
    let segment = rows(options.open(&path).unwrap().as_ref());
    assert!(segment > 0 && segment < expected("iud_update2"));
    let options = OpenOptions::default().with_table(Some("iud_update2".into())).with_as_of(Some("5".into()));
    assert!(options.open(&path).is_err());
}

#[test]
fn a_table_is_given_as_it_was() {
    let path = text(&testdata().join("table/iud_update2"));
    let at = |time: &str| OpenOptions::default().with_as_of(Some(time.to_string())).open(&path);
    // Before the first delete, after it, and now; a clock is as good as a number.
    for (time, count) in [
        ("1794732568500", LOADED),
        ("1794732568736", LOADED - 12),
        ("2100-01-01T00:00:00", expected("iud_update2")),
    ] {
        assert_eq!(rows(at(time).unwrap().as_ref()), count, "{time}");
    }
    let error = at("1970-01-01").unwrap_err().to_string();
    assert!(error.contains("the earliest possible time is"), "{error}");
    assert!(at("yesterday").unwrap_err().to_string().contains("milliseconds since 1970"));
    // A folder without metadata has no history.
    let folder = text(&testdata().join("sdk/bool_byte/data"));
    assert!(OpenOptions::default().with_as_of(Some("5".to_string())).open(&folder).is_err());
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target)
        } else {
            std::fs::write(target, std::fs::read(path).unwrap()).unwrap()
        }
    }
}

#[test]
fn a_damaged_table_is_verified_saved_and_repaired() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("store/iud");
    copy(&testdata().join("table/iud_update2"), &table);
    std::fs::write(table.join("Metadata/tablestatus"), "[{").unwrap();
    std::fs::write(table.join("Metadata/schema"), "?").unwrap();
    let path = text(&table);
    let damage = |path: &str| {
        let options = OpenOptions::default();
        let report = pilaster::verify::verify(&[path], &options, VerifyDepth::Values, &Silent).unwrap();
        report.findings.iter().map(|finding| finding.path.to_string()).collect::<Vec<_>>()
    };
    for path in [&path, &text(&folder.path().join("store"))] {
        let found = damage(path);
        assert!(found.iter().any(|path| path.ends_with("Metadata/tablestatus")), "{found:?}");
        assert!(found.iter().any(|path| path.ends_with("Metadata/schema")), "{found:?}");
    }
    assert!(pilaster::open(&path).is_err());
    let recovered = OpenOptions::default().with_recovery(true).open(&path).unwrap();
    assert_eq!(rows(recovered.as_ref()), expected("iud_update2"));
    assert!(!recovered.findings().is_empty());
    let repaired = pilaster::carbondata::repair_table(&path, &OpenOptions::default()).unwrap();
    assert!(repaired.is_complete() && repaired.rebuilt.len() == 2, "{repaired:?}");
    assert_eq!(damage(&path), [""; 0]);
    assert_eq!(rows(pilaster::open(&path).unwrap().as_ref()), expected("iud_update2"));
}

#[needs(goldens = "carbondata")]
#[test]
fn parquet_segments_follow_the_others() {
    let root = pilaster_testing::goldens("carbondata");
    let root = root.join("table/v2.3");
    let path = text(&root.join("segs_added"));
    // The table names a folder outside of its own, which nobody has allowed.
    let error = pilaster::open(&path).unwrap_err().to_string();
    assert!(
        error.contains("segment 5 is parquet in /carbon-store/pq") && error.contains("allow it"),
        "{error}"
    );
    let entries = list(&[&path], &ListOptions::default()).unwrap();
    assert_eq!(entries.len(), 6);
    assert_eq!(entries[5].format.as_deref(), Some("parquet segment"));
    assert!(matches!(&entries[5].state, State::Problem(reason) if reason.contains("allow it")));
    let outside = OutsideFolders::default().with_moved("/carbon-store/pq", root.join("pq"));
    let options = OpenOptions::default().with_carbondata(CarbonOptions::default().with_outside(outside));
    let table = options.open(&path).unwrap();
    let expected = std::fs::read_to_string(root.join("segs_added.jsonl")).unwrap();
    assert_eq!(rows(table.as_ref()), expected.lines().count());
    assert_eq!(table.row_count(), Some(expected.lines().count() as u64));
    // Each id is there once, filters and projections see both kinds of segments.
    let mut ids: Vec<i64> = expected
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_i64().unwrap())
        .collect();
    ids.sort_unstable();
    for id in &ids {
        let found: Vec<_> =
            table.scan().project(["id"]).filter(col("id").eq(lit(*id))).read().unwrap().collect();
        let count: usize = found.iter().map(|batch| batch.as_ref().unwrap().num_rows()).sum();
        assert_eq!(count, ids.iter().filter(|other| *other == id).count(), "{id}");
    }
    let report = pilaster::verify::verify(&[&path], &options, VerifyDepth::Values, &Silent).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.rows, expected.lines().count() as u64);
    let unseen =
        pilaster::verify::verify(&[&path], &OpenOptions::default(), VerifyDepth::Values, &Silent).unwrap();
    assert!(unseen.is_sound() && unseen.findings.len() == 1, "{:?}", unseen.findings);
}

#[test]
fn lost_words_of_a_dictionary_are_null_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    let table = place.path().join("words");
    copy(&testdata().join("table/d16_dict_one"), &table);
    let files = std::fs::read_dir(table.join("Metadata")).unwrap().map(|entry| entry.unwrap().path());
    let mut words: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "dict")).collect();
    words.sort();
    std::fs::remove_file(&words[0]).unwrap();
    for (cells, given) in [(LostCells::DropRow, 0), (LostCells::Null, 60)] {
        let losses = Arc::new(LossLog::new().with_cells(cells));
        let dataset = OpenOptions::default().with_recovery(true).open(&text(&table)).unwrap();
        let batches = dataset.scan().skip_damage(Arc::clone(&losses)).read().unwrap();
        let batches: Vec<_> = batches.map(|batch| batch.unwrap()).collect();
        assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), given, "{cells:?}");
        for lost in losses.losses() {
            assert_eq!(lost.count(), Some(60), "{lost}");
            let column = lost.column.clone().unwrap();
            let is_null = |batch: &arrow_array::RecordBatch| {
                batch.column_by_name(&column).unwrap().null_count() == batch.num_rows()
            };
            assert!(batches.iter().all(is_null), "{lost}");
        }
        assert!(!losses.is_empty());
    }
}
