//! Damaged Redfiles, from the path to the rows: with a schema from elsewhere, with lost cells as null, beside the file and in it.
#![cfg(feature = "redfile")]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int32Array, RecordBatch, StringArray};
use pilaster::LostCells;
use pilaster::core::progress::Silent;
use pilaster::redfile::{RedfileOptions, repair_in_place, schema_of, write_sidecar};
use pilaster::repair::repair;
use pilaster::{Dataset, LossLog, OpenOptions, open};
use pilaster_redfile::{RedfileWriter, RedfileWriterOptions};

const ROWS: usize = 100;

fn table() -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values((0..100).take(ROWS)));
    let words: ArrayRef =
        Arc::new(StringArray::from_iter((0..ROWS).map(|row| (row % 7 != 0).then(|| format!("word {row}")))));
    RecordBatch::try_from_iter_with_nullable([("number", numbers, false), ("word", words, true)]).unwrap()
}

fn written(path: &Path, checkpoints: u32) -> Vec<u8> {
    let options = RedfileWriterOptions::default()
        .with_page_bytes(64)
        .with_row_group_rows(25)
        .with_checkpoint_interval(checkpoints);
    let batch = table();
    let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let bytes = writer.finish().unwrap().0;
    fs::write(path, &bytes).unwrap();
    bytes
}

fn rows(dataset: &dyn Dataset, log: &Arc<LossLog>) -> RecordBatch {
    let batches: Vec<RecordBatch> =
        dataset.scan().skip_damage(Arc::clone(log)).read().unwrap().map(Result::unwrap).collect();
    arrow_select::concat::concat_batches(&dataset.schema(), &batches).unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }
}

fn folder() -> Folder {
    Folder(tempfile::tempdir().unwrap())
}

#[test]
fn a_schema_from_another_file_leads_to_rows_where_no_metadata_is_left() {
    let folder = folder();
    let bytes = written(&folder.path("whole.red"), 0);
    fs::write(folder.path("cut.red"), &bytes[..bytes.len() * 3 / 4]).unwrap();
    let options = OpenOptions::default().with_recovery(true);
    assert!(options.open(&folder.text("cut.red")).is_err(), "without footer and checkpoints");

    let schema = schema_of(&folder.text("whole.red")).unwrap();
    let options = options.with_redfile(RedfileOptions::default().with_schema(Some(schema)));
    let log = Arc::new(LossLog::new());
    let found = rows(options.open(&folder.text("cut.red")).unwrap().as_ref(), &log);
    assert!(found.num_rows() >= 25 && found.num_rows().is_multiple_of(25), "{} rows", found.num_rows());
    assert_eq!(found, table().slice(0, found.num_rows()));
    assert!(!log.is_empty());

    let report = repair(&folder.text("cut.red"), &folder.path("new.red"), false, &options, &Silent).unwrap();
    assert_eq!((report.rows, report.is_complete), (found.num_rows() as u64, false));
    assert_eq!(rows(open(&folder.text("new.red")).unwrap().as_ref(), &Arc::default()), found);
}

#[test]
fn lost_cells_are_null_if_asked_for() {
    let folder = folder();
    let mut bytes = written(&folder.path("whole.red"), 16);
    let reader = open(&folder.text("whole.red")).unwrap();
    let page = reader.pages().unwrap().into_iter().find(|page| page.column == "word").unwrap();
    let at = usize::try_from(page.offset + page.bytes - 1).unwrap();
    bytes[at] ^= 1;
    fs::write(folder.path("damaged.red"), &bytes).unwrap();
    let lost = page.rows.unwrap();
    let lost = usize::try_from(lost.end - lost.start).unwrap();

    for (cells, expected) in [(LostCells::DropRow, ROWS - lost), (LostCells::Null, ROWS)] {
        let options = OpenOptions::default().with_lost_cells(cells);
        let log = Arc::new(LossLog::new());
        let found = rows(options.open(&folder.text("damaged.red")).unwrap().as_ref(), &log);
        assert_eq!((found.num_rows(), log.is_empty()), (expected, false));
        let target = folder.path(&format!("{cells:?}.red"));
        let report = repair(&folder.text("damaged.red"), &target, false, &options, &Silent).unwrap();
        assert_eq!((report.rows, report.is_complete), (expected as u64, false));
        let again = rows(open(&target.display().to_string()).unwrap().as_ref(), &Arc::default());
        assert_eq!(again, found);
        assert_eq!(again.column(0).null_count(), 0);
    }
}

#[test]
fn a_file_is_repaired_beside_it_or_in_place() {
    let folder = folder();
    let bytes = written(&folder.path("whole.red"), 16);
    let cut = &bytes[..bytes.len() - 50];
    fs::write(folder.path("cut.red"), cut).unwrap();
    let options = OpenOptions::default();

    let report = write_sidecar(&folder.text("cut.red"), &folder.path("side.red"), false, &options).unwrap();
    assert_eq!((report.rows, report.is_complete), (ROWS as u64, true));
    assert_eq!(rows(open(&folder.text("side.red")).unwrap().as_ref(), &Arc::default()), table());
    assert_eq!(fs::read(folder.path("cut.red")).unwrap(), cut);
    let again = write_sidecar(&folder.text("cut.red"), &folder.path("side.red"), false, &options);
    assert!(again.unwrap_err().to_string().contains("exists already"));
    let itself = write_sidecar(&folder.text("cut.red"), &folder.path("cut.red"), true, &options);
    assert!(itself.unwrap_err().to_string().contains("is what is read"));
    fs::create_dir(folder.path("below")).unwrap();
    let elsewhere = write_sidecar(&folder.text("cut.red"), &folder.path("below/side.red"), false, &options);
    assert!(elsewhere.unwrap_err().to_string().contains("where it could be found"));

    let report = repair_in_place(&folder.text("cut.red"), &options).unwrap();
    assert_eq!((report.rows, report.is_complete), (ROWS as u64, true));
    assert_eq!(report.bytes, fs::metadata(folder.path("cut.red")).unwrap().len());
    assert_eq!(rows(open(&folder.text("cut.red")).unwrap().as_ref(), &Arc::default()), table());
    assert!(repair_in_place(&folder.text("cut.red"), &options).is_err(), "nothing is left to repair");
}
