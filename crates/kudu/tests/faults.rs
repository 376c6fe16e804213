//! Servers in a storage of which one call goes wrong: nothing is given as complete that is not, and errors name the file.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test"
)]

mod support;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use pilaster_core::progress::Silent;
use pilaster_core::storage::MemoryStorage;
use pilaster_core::{
    Dataset, Error, Finding, Location, LossLog, LostRows, Result, VerifyDepth, VerifyReport,
};
use pilaster_kudu::cfile_set::{CFileSet, CFileSetOptions, CFileSetWriter, CFileSetWriterOptions};
use pilaster_kudu::fs::BlockManager;
use pilaster_kudu::store::{KuduStore, KuduStoreOptions, is_kudu_folder};
use pilaster_kudu::table_writer::{HashPartition, KuduTableWriter, KuduTableWriterOptions};
use pilaster_kudu::tablet::KuduTable;
use pilaster_testing::fault_net::{LogEnd, Looks, check, in_memory, in_memory_with};
use pilaster_testing::faults::{Fault, faulty};
use pilaster_testing::write_net::{self, Writes};
use support::tables::rows_of;

/// Its cells as texts.
type Row = Vec<Option<String>>;

fn open(folder: &Location) -> Result<KuduStore> {
    KuduStore::open(std::slice::from_ref(folder), KuduStoreOptions::default())
}

fn scan(table: &KuduTable, losses: Option<&Arc<LossLog>>) -> Result<Vec<Row>> {
    let mut scan = table.scan();
    if let Some(losses) = losses {
        scan = scan.skip_damage(Arc::clone(losses));
    }
    Ok(rows_of(&pilaster_testing::batches(scan)?))
}

thread_local! {
    /// What whoever opened the last table was warned of.
    static WARNINGS: RefCell<Vec<Finding>> = const { RefCell::new(Vec::new()) };
}

/// The only table, which leaves its warnings behind.
fn table(folder: &Location) -> Result<KuduTable> {
    let table = open(folder)?.table(None)?;
    WARNINGS.set(table.findings());
    Ok(table)
}

fn rows(folder: &Location) -> Result<Vec<Row>> {
    let table = table(folder)?;
    match table.absences().first() {
        Some(absence) => Err(Error::incomplete(absence.what.clone()).at(&absence.path, 0, "")),
        None => scan(&table, None),
    }
}

fn verify(folder: &Location) -> Result<VerifyReport> {
    open(folder)?.verify(None, VerifyDepth::Values, &Silent)
}

fn salvage(folder: &Location) -> Result<(Vec<Row>, Vec<LostRows>)> {
    let (table, losses) = (table(folder)?, Arc::new(LossLog::new()));
    let saved = scan(&table, Some(&losses))?;
    table.absences().iter().for_each(|absence| losses.add(absence.loss()));
    Ok((saved, losses.losses()))
}

/// The rows at every time that a log which ends early goes back to.
fn earlier(folder: &Path) -> Vec<Row> {
    /// No entry is shorter.
    const STEP: usize = 24;
    let is_log = |path: &Path| path.components().any(|part| part.as_os_str() == "wals");
    let longest = Cell::new(0);
    let mut all = BTreeSet::new();
    for end in (0..).step_by(STEP) {
        let cut = |path: &Path, bytes: Bytes| {
            if !is_log(path) {
                return bytes;
            }
            longest.set(bytes.len().max(longest.get()));
            bytes.slice(..bytes.len().min(end))
        };
        all.extend(rows(&in_memory_with(folder, cut).unwrap()).unwrap_or_default());
        if end > longest.get() {
            break;
        }
    }
    all.into_iter().collect()
}

#[test]
fn a_call_that_goes_wrong_is_named_and_costs_no_row_in_silence() {
    for name in ["tiny", "log-only", "file-blocks", "encrypted"] {
        let folder = support::testdata().join(name).join("fs");
        let memory = in_memory(&folder).unwrap();
        assert_eq!(rows(&Location::local(&folder)).unwrap(), rows(&memory).unwrap(), "{name}");
        let log = LogEnd {
            is_log: &|path: &str| path.contains("/wals/"),
            earlier: &earlier(&folder),
            warnings: &|| WARNINGS.with_borrow(Clone::clone),
        };
        let looks =
            Looks { rows: &rows, verify: &verify, salvage: &salvage, log: Some(log), notices_changes: true };
        let calls = check(&memory, &looks);
        assert!(calls > 100, "{name}: {calls} calls");
    }
}

/// Few rows of columns of both widths, in batches of one row.
fn batches() -> Vec<RecordBatch> {
    let row = |id: i64| {
        let columns: [(&str, ArrayRef, bool); 2] = [
            ("id", Arc::new(Int64Array::from(vec![id])), false),
            ("name", Arc::new(StringArray::from(vec![format!("name {id}")])), true),
        ];
        RecordBatch::try_from_iter_with_nullable(columns).unwrap()
    };
    (0..4).map(|id| row(id * 3 % 4)).collect()
}

#[test]
fn a_table_that_cannot_be_written_is_not_there() {
    let batches = batches();
    let rows = |folder: &Location| match is_kudu_folder(folder)? {
        true => rows(folder),
        false => Err(folder.blame(Error::invalid("no folder of Kudu"))),
    };
    for manager in [BlockManager::Log, BlockManager::File] {
        let write = |target: &Location| {
            let options = KuduTableWriterOptions::default()
                .with_primary_key(["id"])
                .with_hash_partition(HashPartition::new(["id"], 2))
                .with_block_manager(manager)
                .with_memory_bytes(200);
            let mut writer = KuduTableWriter::try_new(target, batches[0].schema(), options)?;
            batches.iter().try_for_each(|batch| writer.write(batch))?;
            writer.finish().map(drop)
        };
        let calls = write_net::check(&Writes { prepare: None, write: &write, rows: &rows });
        assert!(calls > 200, "{manager}: {calls} calls");
    }
}

#[test]
fn a_set_that_cannot_be_written_is_not_there() {
    let batches = batches();
    let write = |target: &Location| {
        let options = CFileSetWriterOptions::default();
        let mut writer = CFileSetWriter::create(target, batches[0].schema(), &options)?;
        batches.iter().try_for_each(|batch| writer.write(batch))?;
        writer.finish().map(drop)
    };
    let rows = |folder: &Location| {
        let set = CFileSet::open(folder, CFileSetOptions::default())?;
        let row = |batch: &RecordBatch, row: usize| format!("{:?}", batch.slice(row, 1).columns());
        let rows = |batch: RecordBatch| (0..batch.num_rows()).map(|at| row(&batch, at)).collect::<Vec<_>>();
        Ok(pilaster_testing::batches(set.scan())?.into_iter().flat_map(rows).collect::<Vec<_>>())
    };
    let calls = write_net::check(&Writes { prepare: None, write: &write, rows: &rows });
    assert!(calls > 50, "{calls} calls");
}

#[test]
fn what_cannot_be_looked_into_may_be_a_root() {
    let files = ["a/b/x", "a/c/server/wals/t/wal-1"];
    let folder = MemoryStorage::with_files("memory", files.map(|path| (path, ""))).root();
    for at in 0.. {
        let (place, faults) = faulty(&folder, at, Fault::Refuse(std::io::ErrorKind::PermissionDenied));
        let found = is_kudu_folder(&place);
        let Some((call, path)) = faults.happened() else { break };
        match found {
            Ok(found) => assert!(found, "{call} {path}"),
            Err(error) => assert!(error.to_string().contains(&path), "{call} {path}: {error}"),
        }
    }
    assert!(is_kudu_folder(&folder).unwrap());
    assert!(!is_kudu_folder(folder.child("a/b")).unwrap());
}

#[test]
#[cfg(unix)]
fn folders_whose_names_are_no_text_are_read() {
    use std::os::unix::ffi::OsStrExt;
    let scratch = tempfile::tempdir().unwrap();
    let folder = Location::local(scratch.path()).child(std::ffi::OsStr::from_bytes(b"d\xe9j\xe0 vu"));
    for name in ["tiny", "log-only", "file-blocks", "encrypted"] {
        let original = support::testdata().join(name).join("fs");
        let target = folder.child(name);
        for entry in Location::local(&original).walk().map(|entry| entry.unwrap()) {
            let copy = target.path().join(entry.path().strip_prefix(&original).unwrap());
            std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
            std::fs::copy(entry.path(), copy).unwrap();
        }
        assert!(is_kudu_folder(&target).unwrap(), "{name}");
        assert_eq!(rows(&target).unwrap(), rows(&Location::local(&original)).unwrap(), "{name}");
        assert!(verify(&target).unwrap().is_sound(), "{name}");
    }
}
