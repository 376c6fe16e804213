//! 0000-00-00 in rows that only delete others: no wrong date, and no table that cannot be read because of it.
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

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int8Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, TimeUnit};
use pilaster_core::progress::Silent;
use pilaster_core::verify::Severity;
use pilaster_core::{Dataset, ErrorKind, Limits, LossLog, Scan, VerifyDepth, col, lit};
use pilaster_doris::TabletSchema;
use pilaster_doris::segment::{
    ColumnWriteOptions, Compression, Encoding, SegmentReader, SegmentReaderOptions, SegmentWriteOptions,
    SegmentWriter,
};
use pilaster_doris::tablet::{TabletOptions, TabletReader, TabletWriteOptions, TabletWriter, find_tablets};
use pilaster_encoding::checksum::crc32c;
use support::{batches, memory};

const SIGN: &str = "__DORIS_DELETE_SIGN__";
/// Dates and the bytes of their cells.
const DATES: [(&str, &str, usize); 5] = [
    ("d", "DATEV2", 4),
    ("t", "DATETIMEV2", 8),
    ("z", "TIMESTAMPTZ", 8),
    ("old_d", "DATE", 3),
    ("old_t", "DATETIME", 8),
];

fn schema() -> TabletSchema {
    let dates: Vec<String> = (1..)
        .zip(DATES)
        .map(|(id, (name, kind, _))| format!(r#"{{"unique_id": {id}, "name": "{name}", "type": "{kind}"}}"#))
        .collect();
    let json = format!(
        r#"{{"keys_type": "UNIQUE_KEYS", "merge_on_write": true, "columns": [
            {{"unique_id": 0, "name": "k", "type": "INT", "is_key": true}}, {},
            {{"unique_id": 9, "name": "{SIGN}", "type": "TINYINT", "visible": false, "default_value": "0"}}]}}"#,
        dates.join(",")
    );
    TabletSchema::parse_json(json.as_bytes()).unwrap()
}

/// Keys 0, 1 and 2, of which 1 is deleted.
fn rows() -> RecordBatch {
    let keys: ArrayRef = Arc::new(Int32Array::from(vec![0, 1, 2]));
    let dates: ArrayRef = Arc::new(StringArray::from(vec![
        "2024-01-01T00:00:00Z",
        "2024-01-02T00:00:00Z",
        "2024-01-03T00:00:00Z",
    ]));
    let sign: ArrayRef = Arc::new(Int8Array::from(vec![0, 1, 0]));
    let dates = DATES.map(|(name, kind, _)| (name, arrow_cast::cast(&dates, &arrow(kind)).unwrap()));
    let columns = [("k", keys)].into_iter().chain(dates).chain([(SIGN, sign)]);
    RecordBatch::try_from_iter(columns).unwrap()
}

fn arrow(kind: &str) -> DataType {
    match kind {
        "DATETIME" => DataType::Timestamp(TimeUnit::Second, None),
        "DATETIMEV2" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "TIMESTAMPTZ" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        _ => DataType::Date32,
    }
}

fn options() -> SegmentWriteOptions {
    let plain = || ColumnWriteOptions::default().with_encoding(Encoding::Plain).with_zone_map(false);
    let options = SegmentWriteOptions::default().with_compression(Compression::None);
    DATES.iter().fold(options, |options, (name, ..)| options.with_column(*name, plain()))
}

fn open(file: Vec<u8>) -> SegmentReader {
    let options = SegmentReaderOptions::default().with_schema(Some(Arc::new(schema()))).with_hidden(true);
    SegmentReader::open_with_options(memory("file", file), &options).unwrap()
}

/// The same file with `cell` in all dates of row 1, and the checksums of what it says now.
fn with_cells(mut file: Vec<u8>, cell: u8) -> Vec<u8> {
    for page in open(file.clone()).pages().unwrap() {
        let Some((_, _, width)) = DATES.iter().find(|(name, ..)| page.column == *name) else { continue };
        if page.kind != "data page" {
            continue;
        }
        let (start, end) = (page.offset as usize, (page.offset + page.bytes) as usize);
        // A count, and then cells.
        let at = start + 4 + width;
        file[at..at + width].fill(cell);
        let checksum = crc32c(&file[start..end - 4]);
        file[end - 4..end].copy_from_slice(&checksum.to_le_bytes());
    }
    file
}

fn segment() -> Vec<u8> {
    let mut writer = SegmentWriter::try_new(Vec::new(), &schema(), &options()).unwrap();
    writer.write(&rows()).unwrap();
    writer.finish().unwrap().0
}

fn keys(scan: Scan<'_>) -> pilaster_core::Result<Vec<i32>> {
    let found = batches(scan)?;
    Ok(found.iter().flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec()).collect())
}

#[test]
fn a_row_with_it_is_given_to_nobody() {
    let file = with_cells(segment(), 0);
    let reader = open(file);
    for (name, ..) in DATES {
        let scan = || reader.scan().project(["k", name]);
        let error = keys(scan()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported { .. }), "{error}");
        let expected = format!("0000-00-00 in row 1 of column \"{name}\"");
        assert!(error.to_string().contains(&expected), "{error}");
        let pages = reader.pages().unwrap();
        let page = pages.iter().find(|page| page.column == name && page.kind == "data page").unwrap();
        assert_eq!(error.position().map(|at| at.offset), Some(page.offset), "{error}");
        // Where it is left out it does not matter, whatever it is compared with.
        assert_eq!(keys(scan().filter(col(SIGN).eq(lit(0i64)))).unwrap(), [0, 2]);
        assert_eq!(keys(scan().filter(col(name).gt(lit("2024-01-01")))).unwrap(), [2]);
        assert_eq!(keys(scan().limit(1)).unwrap(), [0]);
        assert!(keys(scan().filter(col(name).lt(lit("2024-01-01")))).is_err());
        assert!(keys(scan().filter(col(name).is_not_null())).is_err());
        assert_eq!(keys(scan().filter(col(name).is_null())).unwrap(), [0i32; 0]);
        assert_eq!(keys(scan().filter(col(name).is_not_null()).limit(1)).unwrap(), [0]);
        // A scan that goes on loses this row alone.
        let losses = Arc::new(LossLog::new());
        assert_eq!(keys(scan().skip_damage(Arc::clone(&losses))).unwrap(), [0, 2]);
        let lost = losses.losses();
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert_eq!((lost[0].positions(), lost[0].column.as_deref()), (Some(1..2), Some(name)));
    }
    assert_eq!(keys(reader.scan().project(["k"])).unwrap(), [0, 1, 2]);
}

#[test]
fn verify_says_it_and_calls_it_no_damage() {
    let report = open(with_cells(segment(), 0)).verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.is_sound());
    assert_eq!(report.findings.len(), DATES.len(), "{:?}", report.findings);
    assert!(report.findings.iter().all(|finding| finding.severity == Severity::Warning));
    assert!(report.findings[0].to_string().contains("1 rows with 0000-00-00 in column \"d\""));
    // Other days in no calendar are.
    let report = open(with_cells(segment(), 1)).verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(!report.is_sound());
}

#[test]
fn a_table_is_read_around_what_the_delete_sign_hides() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tablet");
    let write_options = TabletWriteOptions::default().with_segment_options(options());
    let mut writer = TabletWriter::create(&root, &schema(), &write_options).unwrap();
    writer.write(&rows()).unwrap();
    writer.finish_rowset().unwrap();
    writer.finish().unwrap();
    let tablets = find_tablets(&root, &Limits::default()).unwrap().tablets;
    let path = tablets[0].files.iter().find(|(name, _)| name.ends_with(".dat")).unwrap().1.path();
    let file = std::fs::read(path).unwrap();
    std::fs::write(path, with_cells(file, 0)).unwrap();
    let reader = TabletReader::open(&tablets[0], &TabletOptions::default()).unwrap();
    assert_eq!(keys(reader.scan()).unwrap(), [0, 2]);
    assert!(reader.verify(VerifyDepth::Values, &Silent).unwrap().is_sound());
}
