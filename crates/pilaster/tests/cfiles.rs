//! CFiles and sets of them over damage: what is saved, what is said to be lost, what is listed.
#![cfg(feature = "kudu")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

mod made;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use made::all_rows;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::kudu::{
    AssumedShape, CFileSetWriterOptions, CFileWriterOptions, Compression, Encoding, KuduOptions, KuduType,
};
use pilaster::ls::{ListOptions, State, list};
use pilaster::output::WriteOptions;
use pilaster::salvage::{SalvageOptions, SalvageReport, salvage};
use pilaster::{Extent, OpenOptions, OutputFormat, ScanRequest, open};

const ROWS: usize = 5000;

fn table() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("word", DataType::Utf8, false),
        Field::new("half", DataType::Int64, true),
    ]);
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let words: ArrayRef =
        Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("w{}", row % 7))));
    let halves: ArrayRef =
        Arc::new((0..ROWS as i64).map(|row| (row % 5 > 0).then_some(row / 2)).collect::<Int64Array>());
    RecordBatch::try_new(Arc::new(schema), vec![ids, words, halves]).unwrap()
}

/// The table as a set in `folder`.
fn write_set(folder: &Path, columns: CFileWriterOptions) -> String {
    write_set_with(folder, CFileSetWriterOptions::default().with_column_options(columns))
}

fn write_set_with(folder: &Path, options: CFileSetWriterOptions) -> String {
    write_rows(folder, &table(), options)
}

fn write_rows(folder: &Path, rows: &RecordBatch, options: CFileSetWriterOptions) -> String {
    let start = folder.join("start.parquet");
    fs::write(&start, made::parquet_bytes(rows, 1000)).unwrap();
    let options = options.with_key("id");
    let options = ConvertOptions::default().with_write(WriteOptions::default().with_cfile_set(options));
    let target = ConvertTarget::new(folder.join("set"), OutputFormat::CFileSet);
    let dataset = open(&start.display().to_string()).unwrap();
    convert(dataset.as_ref(), &ScanRequest::default(), &target, &options, &Silent).unwrap();
    target.place.to_string()
}

/// Saves what is left at `path`; the report, and the rows in the order of `table`.
fn save(path: &str, shape: Option<AssumedShape>) -> pilaster::Result<(SalvageReport, RecordBatch)> {
    let kudu = KuduOptions::default().with_assumed_shape(shape);
    let dataset = OpenOptions::default().with_recovery(true).with_kudu(kudu).open(path)?;
    let folder = tempfile::tempdir().unwrap();
    let target = ConvertTarget::new(folder.path().join("saved.arrow"), OutputFormat::Arrow);
    let report = salvage(dataset.as_ref(), &target, &SalvageOptions::default(), &Silent)?;
    let saved = all_rows(open(&target.place.to_string()).unwrap().as_ref());
    Ok((report, saved))
}

#[test]
fn a_set_without_one_of_its_files_gives_the_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path(), CFileWriterOptions::default());
    assert!(save(&set, None).unwrap().0.is_complete());
    assert_eq!(list(&[&set], &ListOptions::default()).unwrap()[0].state, State::Ok);
    let lost = Path::new(&set).join("0001-word.cfile");
    fs::remove_file(&lost).unwrap();
    let (report, saved) = save(&set, None).unwrap();
    assert_eq!((report.rows_total, report.rows_saved, report.rows_lost), (Some(5000), 5000, Some(0)));
    assert!(!report.is_complete());
    assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
    assert_eq!(
        (report.losses[0].positions(), report.losses[0].column.as_deref()),
        (Some(0..5000), Some("word"))
    );
    assert!(report.losses[0].reason.contains("0001-word.cfile"), "{}", report.losses[0].reason);
    assert_eq!(saved.column(1).null_count(), ROWS);
    for column in [0, 2] {
        assert_eq!(saved.column(column), table().column(column));
    }
    // It is listed as what it is, and rows that would lack the column are not given silently.
    let State::Problem(problem) = &list(&[&set], &ListOptions::default()).unwrap()[0].state else {
        panic!("a set without one of its files is not ok");
    };
    assert!(problem.contains("0001-word.cfile"), "{problem}");
    for options in [OpenOptions::default(), OpenOptions::default().with_recovery(true)] {
        let dataset = options.open(&set).unwrap();
        assert!(dataset.scan().read().is_err());
        assert_eq!(dataset.scan().project(["id"]).read().unwrap().count(), 1);
    }
}

#[test]
fn a_torn_file_of_a_set_gives_the_blocks_before_the_tear() {
    for (compression, encoding) in [
        (Compression::None, Encoding::Plain),
        (Compression::Lz4, Encoding::Plain),
        (Compression::Zlib, Encoding::BitShuffle),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let columns = CFileWriterOptions::default().with_compression(compression).with_block_size_bytes(4096);
        let options =
            CFileSetWriterOptions::default().with_column_options(columns).with_encoding("half", encoding);
        let set = write_set_with(folder.path(), options);
        let file = Path::new(&set).join("0002-half.cfile");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        let (report, saved) = save(&set, None).unwrap();
        assert_eq!((report.rows_saved, report.rows_lost), (5000, Some(0)));
        assert_eq!(report.losses.len(), 1, "{:?}", report.losses);
        let lost = report.losses[0].positions().unwrap();
        assert!(lost.start > 1000 && lost.start < 4500 && lost.end == 5000, "{lost:?}");
        assert_eq!(report.losses[0].column.as_deref(), Some("half"));
        let kept = lost.start as usize;
        assert_eq!(saved.column(2).slice(0, kept).as_ref(), table().column(2).slice(0, kept).as_ref());
        assert_eq!(saved.column(2).slice(kept, ROWS - kept).null_count(), ROWS - kept);
        assert_eq!(saved.column(0), table().column(0));
    }
}

/// A file of another table may be sound: its rows are not this column's.
#[test]
fn a_sound_file_of_other_rows_is_a_lost_column() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let set = write_set(folder.path(), CFileWriterOptions::default());
    let shorter = write_rows(other.path(), &table().slice(100, 1000), CFileSetWriterOptions::default());
    fs::copy(Path::new(&shorter).join("0002-half.cfile"), Path::new(&set).join("0002-half.cfile")).unwrap();
    let (report, saved) = save(&set, None).unwrap();
    assert_eq!((report.rows_saved, report.losses.len()), (5000, 1));
    assert!(report.losses[0].reason.ends_with("expected 5000 rows, as the manifest says, found 1000"));
    assert_eq!(saved.column(2).null_count(), ROWS);
}

/// The schema would promise what the file does not keep.
#[test]
fn a_file_that_may_hold_nulls_is_no_column_without_them() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path(), CFileWriterOptions::default());
    let manifest = Path::new(&set).join("cfile-set.json");
    let text = fs::read_to_string(&manifest).unwrap();
    assert!(text.contains("\"nullable\": true"), "{text}");
    fs::write(&manifest, text.replace("\"nullable\": true", "\"nullable\": false")).unwrap();
    let error = open(&set).unwrap().scan().read().err().unwrap().to_string();
    assert!(error.contains(".cfile") && error.contains("as the manifest says"), "{error}");
}

#[test]
fn the_manifest_is_part_of_a_set() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path(), CFileWriterOptions::default());
    let bytes =
        fs::read_dir(&set).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum::<u64>();
    let dataset = open(&set).unwrap();
    assert_eq!(dataset.size_bytes(), bytes);
    assert_eq!(list(&[&set], &ListOptions::default()).unwrap()[0].bytes, bytes);
    let tree = dataset.describe().unwrap();
    assert_eq!(tree.bytes, bytes);
    assert_eq!(tree.children.iter().map(|child| child.bytes).sum::<u64>(), bytes);
    assert_eq!(tree.children[0].name, "manifest cfile-set.json");
}

#[test]
fn salvage_without_a_footer_says_what_is_lost_and_what_would_help() {
    let folder = tempfile::tempdir().unwrap();
    let set = write_set(folder.path(), CFileWriterOptions::default().with_block_size_bytes(4096));
    let whole = fs::read(Path::new(&set).join("0000-id.cfile")).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let cut = file("cut.cfile", &whole[..whole.len() / 2]);
    let error = save(&cut, None).unwrap_err().to_string();
    assert!(
        error.contains("cfile footer magic") && error.contains("salvaged if type and encoding"),
        "{error}"
    );
    // Some rows, and bytes nobody can count the rows of.
    let (report, saved) = save(&cut, Some(AssumedShape::new(KuduType::Int64))).unwrap();
    assert!(report.rows_saved > 1000 && report.rows_lost.is_none() && !report.is_complete(), "{report:?}");
    let rows = report.rows_saved;
    assert_eq!((&report.losses[0].extent, report.rows_total), (&Extent::Unknown, None));
    assert_eq!(saved.column(0).as_ref(), table().column(0).slice(0, rows as usize).as_ref());
    // What the file does not hold.
    let (report, _) = save(&cut, Some(AssumedShape::new(KuduType::String))).unwrap();
    assert_eq!(report.rows_saved, 0);
    assert!(!report.is_complete());
    assert!(save(&file("empty.cfile", b""), Some(AssumedShape::new(KuduType::Int64))).is_err());
    // A sound file needs no telling, nor does one whose header alone is damaged.
    let sound = file("sound.cfile", &whole);
    let mut headless = whole.clone();
    headless[9] ^= 1;
    let headless = file("headless.cfile", &headless);
    for (path, shape) in [(&sound, Some(AssumedShape::new(KuduType::Int8))), (&headless, None)] {
        let (report, _) = save(path, shape).unwrap();
        assert!(report.is_complete() && report.rows_saved == 5000, "{report:?}");
    }
    assert!(open(&headless).is_err());
}
