//! Golden tablets: the rows of each key model, at the newest and at earlier versions.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "tests compute with known values and stop at the first surprise"
)]

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_select::concat::concat_batches;
use pilaster_core::progress::Silent;
use pilaster_core::{
    CompareOp, Dataset, Limits, Literal, Location, LossLog, Predicate, RowRanges, VerifyDepth, col,
};
use pilaster_doris::KeysType;
use pilaster_doris::tablet::{
    TabletFolder, TabletMeta, TabletOptions, TabletReader, find_tablets, has_tablets,
};
use pilaster_testing::{batches_by_task, needs};
use support::cells::cell;
use support::{batches, goldens};

fn cases(root: &Path) -> Vec<(String, PathBuf)> {
    let mut cases: Vec<_> = std::fs::read_dir(root.join("tablet"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_string(), path))
        .collect();
    cases.sort();
    cases
}

fn folder(case: &Path) -> TabletFolder {
    let mut found = find_tablets(case, &Limits::default()).unwrap().tablets;
    assert_eq!(found.len(), 1, "{}", case.display());
    found.remove(0)
}

fn open(case: &Path, options: &TabletOptions) -> TabletReader {
    TabletReader::open(&folder(case), options).unwrap_or_else(|error| panic!("{}: {error}", case.display()))
}

fn whole(tablet: &TabletReader) -> RecordBatch {
    concat_batches(&tablet.schema(), &batches(tablet.scan().batch_size(3)).unwrap()).unwrap()
}

/// Rows as JSON text, in any order.
fn lines(rows: &RecordBatch) -> Vec<String> {
    let mut lines: Vec<String> = (0..rows.num_rows())
        .map(|row| {
            let schema = rows.schema();
            let cells = schema.fields().iter().zip(rows.columns());
            let object: serde_json::Map<_, _> =
                cells.map(|(field, column)| (field.name().clone(), cell(column, row, false))).collect();
            serde_json::Value::from(object).to_string()
        })
        .collect();
    lines.sort();
    lines
}

fn expected(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap().to_string())
        .collect();
    lines.sort();
    lines
}

#[needs(goldens = "doris")]
#[test]
fn every_key_model_gives_its_rows_at_every_version() {
    let root = goldens();
    let (mut states, mut rows) = (0, 0);
    for (name, case) in cases(&root) {
        for file in std::fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path()) {
            let Some(state) =
                file.file_name().unwrap().to_str().unwrap().strip_suffix(".rows.jsonl").map(str::to_string)
            else {
                continue;
            };
            let version = state.strip_prefix("as_of_").map(|version| version.parse().unwrap());
            let tablet = open(&case, &TabletOptions::default().with_as_of(version));
            let found = lines(&whole(&tablet));
            assert_eq!(found, expected(&file), "{name} {state}");
            states += 1;
            rows += found.len();
        }
    }
    eprintln!("{states} states, {rows} rows");
    assert!(states >= 10, "{states} states");
}

#[needs(goldens = "doris")]
#[test]
fn filters_and_limits_see_the_rows_of_the_tablet() {
    let root = goldens();
    for (name, case) in cases(&root) {
        let tablet = open(&case, &TabletOptions::default());
        let rows = whole(&tablet);
        for (column, field) in rows.schema().fields().iter().enumerate() {
            let mut predicates =
                vec![col(field.name().as_str()).is_null(), col(field.name().as_str()).is_not_null()];
            for row in (0..rows.num_rows()).step_by(rows.num_rows() / 3 + 1) {
                let value = Literal::from_array(rows.column(column), row);
                for op in [CompareOp::Eq, CompareOp::NotEq, CompareOp::Lt, CompareOp::GtEq] {
                    predicates.push(Predicate::Compare {
                        column: field.name().clone(),
                        op,
                        value: value.clone(),
                    });
                }
            }
            for predicate in predicates {
                let mask = predicate.bind(&rows.schema()).unwrap().evaluate(&rows).unwrap();
                let wanted = arrow_select::filter::filter_record_batch(&rows, &mask).unwrap();
                let found = batches(tablet.scan().filter(predicate.clone())).unwrap();
                let found = concat_batches(&tablet.schema(), &found).unwrap();
                assert_eq!(lines(&found), lines(&wanted), "{name}: {predicate}");
            }
        }
        let limited: usize = batches(tablet.scan().limit(2)).unwrap().iter().map(RecordBatch::num_rows).sum();
        assert_eq!(limited, rows.num_rows().min(2), "{name}");
        let tasks = batches_by_task(tablet.scan()).unwrap().concat();
        assert_eq!(tasks.iter().map(RecordBatch::num_rows).sum::<usize>(), rows.num_rows(), "{name}");
        assert_eq!(tablet.verify(VerifyDepth::Values, &Silent).unwrap().findings, [], "{name}");
    }
}

#[needs(goldens = "doris")]
#[test]
fn rows_are_found_again_by_their_positions() {
    let root = goldens();
    for (name, case) in cases(&root) {
        let tablet = open(&case, &TabletOptions::default());
        let numbered = batches(tablet.scan().row_numbers("#")).unwrap();
        for batch in &numbered {
            let positions = batch.column(batch.num_columns() - 1).as_primitive::<UInt64Type>();
            let position = positions.value(batch.num_rows() / 2);
            let one = batches(tablet.scan().rows(RowRanges::one(position..position + 1))).unwrap();
            let columns: Vec<_> = (0..batch.num_columns() - 1).collect();
            let expected = batch.slice(batch.num_rows() / 2, 1).project(&columns).unwrap();
            assert_eq!(lines(&one[0]), lines(&expected), "{name} row {position}");
        }
    }
}

#[needs(goldens = "doris")]
#[test]
fn the_hidden_version_column_shows_the_version_of_the_rowset() {
    let root = goldens();
    let tablet = open(&root.join("tablet/unique_mow"), &TabletOptions::default().with_hidden(true));
    let rows = whole(&tablet);
    let versions = rows.column_by_name("__DORIS_VERSION_COL__").unwrap();
    let versions = versions.as_primitive::<Int64Type>();
    assert!(
        versions.iter().flatten().all(|version| (2..=tablet.version()).contains(&version)),
        "{versions:?}"
    );
    assert_eq!(versions.null_count(), 0);
}

#[needs(goldens = "doris")]
#[test]
fn versions_that_are_not_there_are_named() {
    let root = goldens();
    for (name, case) in cases(&root) {
        let error =
            TabletReader::open(&folder(&case), &TabletOptions::default().with_as_of(Some(99))).unwrap_err();
        assert!(error.to_string().contains("version 99 of tablet"), "{name}: {error}");
    }
}

#[needs(goldens = "doris")]
#[test]
fn a_backup_repository_is_a_snapshot_under_other_names() {
    let root = goldens();
    let case = root.join("tablet/unique_mow");
    let repository = tempfile::tempdir().unwrap();
    let tablet = repository.path().join("__ss_x/__ss_content/__db_1/__tbl_2/__part_3/__idx_4/__20005");
    std::fs::create_dir_all(&tablet).unwrap();
    for (name, file) in &folder(&case).files {
        std::fs::copy(file.path(), tablet.join(format!("__{name}.d41d8cd98f00b204e9800998ecf8427e")))
            .unwrap();
    }
    assert!(has_tablets(repository.path()).unwrap());
    let found = open(repository.path(), &TabletOptions::default());
    assert_eq!(lines(&whole(&found)), expected(&case.join("current.rows.jsonl")));
}

#[needs(goldens = "doris")]
#[test]
fn a_missing_segment_is_named() {
    let root = goldens();
    let mut folder = folder(&root.join("tablet/aggregate"));
    let segment = folder.files.keys().find(|name| name.ends_with("_1.dat")).unwrap().clone();
    folder.files.remove(&segment);
    let absences = TabletReader::open(&folder, &TabletOptions::default()).unwrap().absences();
    assert_eq!(absences.len(), 1);
    assert!(absences[0].what.contains(&format!("segment {segment} of versions")), "{absences:?}");
    assert!(absences[0].rows.is_some_and(|rows| rows > 0), "{absences:?}");
}

#[needs(goldens = "doris")]
#[test]
fn headers_of_real_tablets_are_read_and_every_flip_is_found() {
    let root = goldens();
    let header = std::fs::read(root.join("meta/tablet_meta_test.hdr")).unwrap();
    let meta = TabletMeta::parse(&header, &Limits::default()).unwrap();
    assert_eq!((meta.table_id, meta.partition_id, meta.tablet_id), (1, 2, 3));
    // The version and the reserved words of the header are not compared.
    for at in (12..20).chain(24..36).chain(40..header.len()) {
        let mut damaged = header.clone();
        damaged[at] ^= 0x21;
        assert!(TabletMeta::parse(&damaged, &Limits::default()).is_err(), "byte {at}");
    }
    for length in 0..header.len() {
        assert!(TabletMeta::parse(&header[..length], &Limits::default()).is_err(), "{length} bytes");
    }
}

/// Rows given over damage: all of them are rows of the whole tablet, and where some are missing, losses say so.
fn assert_only_proven_rows(folder: &TabletFolder, expected: &[String], what: &str) -> usize {
    let Ok(tablet) = TabletReader::open(folder, &TabletOptions::default().with_recovery(true)) else {
        return 0;
    };
    let losses = Arc::new(LossLog::new());
    let found = batches(tablet.scan().batch_size(3).skip_damage(Arc::clone(&losses)))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    tablet.absences().iter().for_each(|absence| losses.add(absence.loss()));
    let found = lines(&concat_batches(&tablet.schema(), &found).unwrap());
    let mut left = expected.to_vec();
    for line in &found {
        let place = left.iter().position(|known| known == line);
        left.remove(place.unwrap_or_else(|| panic!("{what}: {line} is no row of the tablet")));
    }
    assert!(left.is_empty() || !losses.is_empty(), "{what}: {} rows are missing unsaid", left.len());
    found.len()
}

#[needs(goldens = "doris")]
#[test]
fn a_damaged_tablet_gives_proven_rows_only_and_says_what_is_missing() {
    let root = goldens();
    let mut given = 0;
    for (name, case) in cases(&root) {
        let (whole_folder, expected) =
            (folder(&case), lines(&whole(&open(&case, &TabletOptions::default()))));
        let scratch = tempfile::tempdir().unwrap();
        for (file, entry) in whole_folder.files.iter().filter(|(file, _)| file.ends_with(".dat")) {
            let mut without = whole_folder.clone();
            without.files.remove(file);
            given += assert_only_proven_rows(&without, &expected, &format!("{name} without {file}"));
            let bytes = std::fs::read(entry.path()).unwrap();
            for at in (0..bytes.len()).step_by(13) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 0x41;
                let changed = scratch.path().join(file);
                std::fs::write(&changed, &damaged).unwrap();
                let mut with = whole_folder.clone();
                with.files.insert(file.clone(), Location::local(changed).entry().unwrap().unwrap());
                given += assert_only_proven_rows(&with, &expected, &format!("{name} {file} byte {at}"));
            }
        }
    }
    assert!(given > 1000, "{given} rows");
}

#[needs(goldens = "doris")]
#[test]
fn metadata_as_json_says_the_same() {
    let root = goldens();
    let json = std::fs::read_to_string(root.join("meta/header_without_inc_rs.txt")).unwrap();
    let error = TabletMeta::parse_json(json.as_bytes(), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("ALPHA rowset"), "{error}");
    let json = json.replace("ALPHA_ROWSET", "BETA_ROWSET").into_bytes();
    let meta = TabletMeta::parse_json(&json, &Limits::default()).unwrap();
    assert_eq!((meta.table_id, meta.partition_id, meta.tablet_id), (15670, 15671, 15672));
    assert_eq!(meta.schema.keys_type, KeysType::Aggregate);
    let columns = meta.schema.columns.iter().map(|column| (column.name.as_str(), column.type_name.as_str()));
    assert_eq!(columns.collect::<Vec<_>>(), [("k1", "BIGINT"), ("v1", "HLL"), ("v2", "INT")]);
    assert_eq!(meta.schema.columns[1].default_value.as_deref(), Some("0"));
    assert!(!meta.rowsets.is_empty());
    for length in (0..json.len() - 2).step_by(7) {
        assert!(TabletMeta::parse_json(&json[..length], &Limits::default()).is_err(), "{length} bytes");
    }
}
