//! Tablets of which something is damaged or gone: rows given and rows named as lost are all rows there were.
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

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use pilaster_core::progress::Silent;
use pilaster_core::salvage::total_lost;
use pilaster_core::{Dataset, Limits, LossLog, LostCells, VerifyDepth};
use pilaster_doris::segment::SegmentWriteOptions;
use pilaster_doris::tablet::{
    TabletFolder, TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets,
};
use pilaster_doris::{TableModel, TabletSchema};
use support::batches;

const ROWS: i64 = 600;

fn batch(keys: impl Iterator<Item = i64> + Clone, version: i64) -> RecordBatch {
    let word = |key: i64| Some(format!("word {}", key % 50)).filter(|_| key % 7 != 0);
    let words: StringArray = keys.clone().map(word).collect();
    let values: Int64Array = keys.clone().map(|key| Some(key * 10 + version)).collect();
    RecordBatch::try_from_iter_with_nullable([
        ("key", Arc::new(keys.map(Some).collect::<Int64Array>()) as ArrayRef, false),
        ("word", Arc::new(words), true),
        ("value", Arc::new(values), true),
    ])
    .unwrap()
}

/// Three loads, of which the later ones replace some rows of the first.
fn write(target: &Path, model: &TableModel) {
    let schema = TabletSchema::from_arrow(&batch(0..0, 0).schema(), model).unwrap();
    let segments = SegmentWriteOptions::default().with_page_bytes(900);
    let options = TabletWriteOptions::default().with_segment_options(segments);
    let mut writer = TabletWriter::create(target, &schema, &options).unwrap();
    for load in [batch(0..ROWS, 0), batch((0..ROWS).step_by(20), 1), batch(ROWS..ROWS + 30, 2)] {
        writer.write(&load).unwrap();
        writer.finish_rowset().unwrap();
    }
    writer.finish().unwrap();
}

fn models() -> Vec<TableModel> {
    vec![
        TableModel::duplicate(["key"]),
        TableModel::unique(["key"]),
        TableModel::unique(["key"]).with_merge_on_write(false),
        TableModel::aggregate(["key"]).with_aggregation("word", "REPLACE").with_aggregation("value", "MAX"),
    ]
}

type Row = (i64, Option<String>, Option<i64>);

fn rows(all: &[RecordBatch]) -> Vec<Row> {
    let of = |batch: &RecordBatch| {
        let keys = batch.column_by_name("key").unwrap().as_primitive::<Int64Type>().clone();
        let words = batch.column_by_name("word").unwrap().as_string_view().clone();
        let values = batch.column_by_name("value").unwrap().as_primitive::<Int64Type>().clone();
        let row = |row: usize| {
            let word = words.is_valid(row).then(|| words.value(row).to_string());
            (keys.value(row), word, values.is_valid(row).then(|| values.value(row)))
        };
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn folder(target: &Path) -> TabletFolder {
    find_tablets(target, &Limits::default()).unwrap().tablets.remove(0)
}

fn counted(rows: &[Row]) -> BTreeMap<&Row, usize> {
    let mut counts = BTreeMap::new();
    rows.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    counts
}

/// Reads strictly and tolerantly, and checks that neither gives a wrong row nor too few in silence; how many the tolerant one gives.
fn check(target: &Path, expected: &[Row], what: &str) -> usize {
    let folder = folder(target);
    let strict = TabletReader::open(&folder, &TabletOptions::default())
        .and_then(|tablet| Ok((batches(tablet.scan())?, tablet)));
    let is_strictly_whole = match &strict {
        Ok((found, tablet)) if tablet.absences().is_empty() => {
            assert_eq!(counted(&rows(found)), counted(expected), "{what}: others, and no error");
            true
        }
        _ => false,
    };
    let found = strict.and_then(|(_, tablet)| Ok((tablet.verify(VerifyDepth::Values, &Silent)?, tablet)));
    if !is_strictly_whole && let Ok((report, tablet)) = found {
        assert!(!report.is_sound() || !tablet.absences().is_empty(), "{what}: verify finds nothing");
    }
    let Ok(tablet) = TabletReader::open(&folder, &TabletOptions::default().with_recovery(true)) else {
        assert!(!is_strictly_whole, "{what}");
        return 0;
    };
    let losses = Arc::new(LossLog::new());
    let found = batches(tablet.scan().skip_damage(Arc::clone(&losses)))
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    tablet.absences().iter().for_each(|absence| losses.add(absence.loss()));
    let found = rows(&found);
    let whole = counted(expected);
    for (row, count) in counted(&found) {
        let known = whole.get(row).copied().unwrap_or(0);
        assert!(count <= known, "{what}: {row:?} {count} times, which is there {known} times");
    }
    let missing = expected.len() - found.len();
    let lost = total_lost(&losses.losses());
    assert!(
        lost.is_none_or(|lost| lost >= missing as u64),
        "{what}: {missing} rows are missing, {lost:?} named"
    );
    found.len()
}

fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let length = bytes.len();
    let mut damages: Vec<(String, Option<Vec<u8>>)> =
        vec![("gone".into(), None), ("empty".into(), Some(Vec::new()))];
    damages.extend(
        (1..12).map(|part| (format!("cut at {part}/12"), Some(bytes[..length * part / 12].to_vec()))),
    );
    damages
        .extend([1, 4, 12, 13].map(|less| (format!("cut by {less}"), Some(bytes[..length - less].to_vec()))));
    for (name, range) in [("head", 0..32.min(length)), ("end", length - 32.min(length)..length)] {
        let mut zeroed = bytes.to_vec();
        zeroed[range].fill(0);
        damages.push((format!("{name} zeroed"), Some(zeroed)));
    }
    for at in (0..length).step_by((length / 24).max(1)) {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 0x24;
        damages.push((format!("byte {at} flipped"), Some(flipped)));
    }
    damages
}

#[test]
fn rows_given_and_rows_named_as_lost_are_all_there_were() {
    for model in models() {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("t");
        write(&target, &model);
        let tablet = TabletReader::open(&folder(&target), &TabletOptions::default()).unwrap();
        let expected = rows(&batches(tablet.scan()).unwrap());
        let mut given = 0;
        for (name, file) in folder(&target).files {
            let path = file.path();
            let bytes = std::fs::read(path).unwrap();
            if bytes.is_empty() || name.ends_with(".hdr") {
                continue;
            }
            for (how, damaged) in damages(&bytes) {
                match damaged {
                    None => std::fs::remove_file(path).unwrap(),
                    Some(damaged) => std::fs::write(path, damaged).unwrap(),
                }
                given += check(&target, &expected, &format!("{model:?} {name} {how}"));
            }
            std::fs::write(path, &bytes).unwrap();
        }
        assert!(given > 10_000, "{model:?}: {given} rows in all");
    }
}

/// The one segment of a tablet of one load, damaged.
fn damaged_tablet(target: &Path, damage: impl FnOnce(&mut Vec<u8>, &TabletReader)) {
    let schema = TabletSchema::from_arrow(&batch(0..0, 0).schema(), &TableModel::duplicate(["key"])).unwrap();
    let segments = SegmentWriteOptions::default().with_page_bytes(900);
    let options = TabletWriteOptions::default().with_segment_options(segments);
    let mut writer = TabletWriter::create(target, &schema, &options).unwrap();
    writer.write(&batch(0..ROWS, 0)).unwrap();
    writer.finish().unwrap();
    let folder = folder(target);
    let tablet = TabletReader::open(&folder, &TabletOptions::default()).unwrap();
    let path = folder.files.iter().find(|(name, _)| name.ends_with(".dat")).unwrap().1.path();
    let mut bytes = std::fs::read(path).unwrap();
    damage(&mut bytes, &tablet);
    std::fs::write(path, bytes).unwrap();
}

fn salvaged(target: &Path, cells: LostCells) -> (Vec<Row>, Arc<LossLog>) {
    let options = TabletOptions::default().with_recovery(true).with_lost_cells(cells);
    let tablet = TabletReader::open(&folder(target), &options).unwrap();
    let losses = Arc::new(LossLog::new());
    let found = batches(tablet.scan().skip_damage(Arc::clone(&losses))).unwrap();
    (rows(&found), losses)
}

#[test]
fn the_schema_of_the_header_puts_a_segment_without_a_footer_together() {
    for from_end in [1, 3, 6, 10, 20, 60] {
        let scratch = tempfile::tempdir().unwrap();
        let target = scratch.path().join("t");
        damaged_tablet(&target, |bytes, _| {
            let at = bytes.len() - from_end;
            bytes[at] ^= 0x40;
        });
        let strict = TabletReader::open(&folder(&target), &TabletOptions::default());
        assert!(strict.is_err_and(|error| error.is_damage()));
        let (found, losses) = salvaged(&target, LostCells::DropRow);
        assert_eq!(found, rows(&[batch_views()]), "{from_end} from the end");
        assert!(losses.is_empty(), "{:?}", losses.losses());
    }
}

/// All rows, as reading gives them.
fn batch_views() -> RecordBatch {
    let all = batch(0..ROWS, 0);
    let words = arrow_cast::cast(all.column(1), &arrow_schema::DataType::Utf8View).unwrap();
    let columns = [("key", Arc::clone(all.column(0))), ("word", words), ("value", Arc::clone(all.column(2)))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Where the first page of a kind lies, and which column it is of.
fn page_of(tablet: &TabletReader, kind: &str, column: &str) -> usize {
    let pages = tablet.pages().unwrap();
    let found = pages.iter().find(|page| page.kind.contains(kind) && page.column == column);
    let known = || pages.iter().map(|page| format!("{} {}", page.kind, page.column)).collect::<Vec<_>>();
    found.unwrap_or_else(|| panic!("no {kind} of {column} in {:?}", known())).offset as usize
}

#[test]
fn an_ordinal_index_is_made_again_from_the_pages() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("t");
    damaged_tablet(&target, |bytes, tablet| bytes[page_of(tablet, "ordinal index", "value") + 2] ^= 0x10);
    let strict = TabletReader::open(&folder(&target), &TabletOptions::default()).unwrap();
    assert!(batches(strict.scan()).is_err());
    let (found, losses) = salvaged(&target, LostCells::DropRow);
    assert_eq!(found, rows(&[batch_views()]));
    assert!(losses.is_empty(), "{:?}", losses.losses());
}

#[test]
fn a_lost_dictionary_costs_the_cells_of_its_column_alone() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("t");
    damaged_tablet(&target, |bytes, tablet| bytes[page_of(tablet, "dictionary", "word") + 2] ^= 0x10);
    let (found, losses) = salvaged(&target, LostCells::DropRow);
    assert_eq!((found.len(), total_lost(&losses.losses())), (0, Some(ROWS as u64)));
    let (found, losses) = salvaged(&target, LostCells::Null);
    let expected = rows(&[batch_views()]).into_iter().map(|(key, _, value)| (key, None, value));
    assert_eq!(found, expected.collect::<Vec<_>>());
    assert!(losses.losses().iter().all(|lost| lost.column.as_deref() == Some("word")));
    // Other columns are whole without it.
    let tablet = TabletReader::open(&folder(&target), &TabletOptions::default()).unwrap();
    let others = batches(tablet.scan().project(["key", "value"])).unwrap();
    assert_eq!(others.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS as usize);
}
