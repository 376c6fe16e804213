//! Doris segments through the facade: found by content, named by a schema, converted without loss.
#![cfg(feature = "doris")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_select::concat::concat_batches;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::doris::{DorisOptions, read_schema};
use pilaster::overwrite::Overwrite;
use pilaster::store::open_store;
use pilaster::{DatasetRef, OpenOptions, OutputFormat, ScanRequest, VerifyDepth};
use pilaster_testing::needs;

fn goldens() -> PathBuf {
    pilaster_testing::goldens("doris")
}

fn rows(dataset: &DatasetRef) -> RecordBatch {
    let reader = dataset.scan().read().unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(|batch| batch.unwrap()).collect();
    concat_batches(&schema, &batches).unwrap()
}

#[needs(goldens = "doris")]
#[test]
fn segments_are_found_by_content_and_named_by_a_schema() {
    let root = goldens();
    let folder = root.join("segment/all_scalar_values_v3_nullable_with_bloom_horizontal");
    let segment = folder.join("segment_0.dat").display().to_string();
    let bare = pilaster::open(&segment).unwrap();
    assert_eq!(bare.format(), "doris segment");
    assert_eq!(bare.schema().field(0).name(), "0");
    let doris = DorisOptions::default().with_schema(Some(read_schema(folder.join("schema.json")).unwrap()));
    let named = OpenOptions::default().with_doris(doris).open(&segment).unwrap();
    assert_eq!(named.schema().field(0).name(), "k");
    assert_eq!(rows(&bare).num_rows(), 3);
}

#[needs(goldens = "doris")]
#[test]
fn every_segment_becomes_parquet_and_comes_back() {
    let root = goldens();
    let mut converted = 0;
    for folder in std::fs::read_dir(root.join("segment")).unwrap().map(|entry| entry.unwrap().path()) {
        let doris = DorisOptions::default()
            .with_schema(Some(read_schema(folder.join("schema.json")).unwrap()))
            .with_hidden(true);
        let segment = folder.join("segment_0.dat").display().to_string();
        let dataset = OpenOptions::default().with_doris(doris).open(&segment).unwrap();
        let target = tempfile::tempdir().unwrap();
        let path = target.path().join("rows.parquet");
        let to = ConvertTarget::new(&path, OutputFormat::Parquet);
        convert(dataset.as_ref(), &ScanRequest::default(), &to, &ConvertOptions::default(), &Silent)
            .unwrap_or_else(|error| panic!("{segment}: {error}"));
        let again = pilaster::open(&path.display().to_string()).unwrap();
        assert_eq!(rows(&again).columns(), rows(&dataset).columns(), "{segment}");
        converted += 1;
    }
    assert!(converted >= 54, "{converted} segments");
}

#[needs(goldens = "doris")]
#[test]
fn folders_of_tablets_are_stores_of_tables() {
    let root = goldens();
    let folder = root.join("tablet/unique_mow").display().to_string();
    let store = open_store(&[&folder], &OpenOptions::default()).unwrap().unwrap();
    assert_eq!(store.tables().len(), 1);
    let count = |state: &str| {
        std::fs::read_to_string(root.join("tablet/unique_mow").join(state)).unwrap().lines().count()
    };
    assert_eq!(rows(&pilaster::open(&folder).unwrap()).num_rows(), count("current.rows.jsonl"));
    let earlier = OpenOptions::default().with_as_of(Some("3".to_string())).open(&folder).unwrap();
    assert_eq!(rows(&earlier).num_rows(), count("as_of_3.rows.jsonl"));
    assert!(OpenOptions::default().with_as_of(Some("yesterday".to_string())).open(&folder).is_err());
    assert!(store.verify(None, VerifyDepth::Values, &Silent).unwrap().is_sound());
    assert_eq!(store.entries().len(), 1);
}

#[needs(goldens = "doris")]
#[test]
fn a_table_with_a_broken_tablet_is_not_taken_for_whole() {
    let root = goldens();
    let store = tempfile::tempdir().unwrap();
    for (number, name) in ["unique_mow/20005/120005", "aggregate/20002/120002"].into_iter().enumerate() {
        let target = store.path().join(format!("{number}/1"));
        std::fs::create_dir_all(&target).unwrap();
        for file in std::fs::read_dir(root.join("tablet").join(name)).unwrap().map(|entry| entry.unwrap()) {
            std::fs::copy(file.path(), target.join(file.file_name())).unwrap();
        }
    }
    let path = store.path().display().to_string();
    let whole = open_store(&[&path], &OpenOptions::default()).unwrap().unwrap();
    assert!(whole.tables().iter().all(|table| whole.table(Some(table)).is_ok()));
    let header = store.path().join("0/1/20005.hdr");
    std::fs::write(&header, &std::fs::read(&header).unwrap()[..50]).unwrap();
    let broken = open_store(&[&path], &OpenOptions::default()).unwrap().unwrap();
    assert_eq!(broken.findings().len(), 1);
    let error = broken.table(None).unwrap_err().to_string();
    assert!(error.contains("a tablet cannot be read"), "{error}");
}

#[needs(goldens = "doris")]
#[test]
fn index_files_are_listed_and_lie_beside_segments() {
    let root = goldens();
    let mut parts = 0;
    for path in std::fs::read_dir(root.join("inverted_index")).unwrap().map(|entry| entry.unwrap().path()) {
        let index = pilaster::open(&path.display().to_string()).unwrap();
        assert_eq!(index.format(), "doris index file");
        let files = rows(&index);
        assert_eq!(files.num_rows() as u64, index.row_count().unwrap());
        parts += files.num_rows();
        assert!(index.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
        // Beside a segment it is no second table, and one that is cut off is damage.
        let folder = tempfile::tempdir().unwrap();
        let segment = root.join("segment/dup_without_key_v3_not_nullable_horizontal/segment_0.dat");
        std::fs::copy(&segment, folder.path().join("a.dat")).unwrap();
        std::fs::copy(&path, folder.path().join("a.idx")).unwrap();
        let together = pilaster::open(&folder.path().display().to_string()).unwrap();
        assert_eq!(rows(&together), rows(&pilaster::open(&segment.display().to_string()).unwrap()));
        let bytes = std::fs::read(&path).unwrap();
        let cut = folder.path().join("cut.idx");
        std::fs::write(&cut, &bytes[..bytes.len() - 1]).unwrap();
        assert!(pilaster::open(&cut.display().to_string()).unwrap_err().is_damage());
    }
    assert!(parts > 20, "{parts} parts");
}

#[test]
fn a_lone_segment_keeps_its_names_and_its_strings() {
    let scratch = tempfile::tempdir().unwrap();
    let csv = scratch.path().join("rows.csv");
    std::fs::write(&csv, "number,word\n1,one\n2,two\n").unwrap();
    let source = pilaster::open(&csv.display().to_string()).unwrap();
    let folder = scratch.path().join("segments");
    std::fs::create_dir(&folder).unwrap();
    let to = ConvertTarget::new(folder.join("rows.dat"), OutputFormat::DorisSegment);
    let write =
        |options: &ConvertOptions| convert(source.as_ref(), &ScanRequest::default(), &to, options, &Silent);
    write(&ConvertOptions::default()).unwrap();
    // Alone, and as all that is in its folder.
    for path in [to.place.path(), &folder] {
        let segment = pilaster::open(&path.display().to_string()).unwrap();
        let names: Vec<_> = segment.schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["number", "word"]);
        let words = rows(&segment).column_by_name("word").unwrap().clone();
        assert_eq!(words.as_string_view().iter().flatten().collect::<Vec<_>>(), ["one", "two"]);
    }
    // Another schema beside it is replaced when the segment is, and not before.
    std::fs::remove_file(to.place.path()).unwrap();
    std::fs::write(folder.join("rows.schema.json"), "{}").unwrap();
    assert!(write(&ConvertOptions::default()).is_err());
    assert!(!to.place.path().exists());
    write(&ConvertOptions::default().with_overwrite(Overwrite::new(true))).unwrap();
}

#[test]
fn a_schema_that_a_killed_run_left_does_not_stop_the_next() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    std::fs::write(path("rows.csv"), "x,y\n1,2\n").unwrap();
    let rows_of = || pilaster::open(path("rows.csv").to_str().unwrap()).unwrap();
    let target = ConvertTarget::new(path("rows.dat"), OutputFormat::DorisSegment);
    let written =
        || convert(rows_of().as_ref(), &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent);
    written().unwrap();
    std::fs::remove_file(path("rows.dat")).unwrap();
    written().unwrap();
}
