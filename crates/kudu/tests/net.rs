//! Every file of small tables is deleted, emptied, cut, overwritten and flipped: rows that are given and rows that are named as
//! lost are the rows there were, and what stops a scan is found by `verify`.
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

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::SchemaRef;
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, LossLog, LostRows, VerifyDepth};
use pilaster_encoding::checksum::crc32c;
use pilaster_kudu::table_writer::{KuduTableWriter, KuduTableWriterOptions};
use pilaster_kudu::tablet::KuduTable;
use pilaster_testing::damage::{Answers, Damage, DamagedFolder, Damages, Judge, Verdict, damages};
use pilaster_testing::needs;
use support::tables::{Expected, Rows, expectations, expected_rows, open_store, scan};

/// A folder of servers, and the rows of all its tables as texts: `column=value` by name of the column.
struct Case {
    name: String,
    folder: DamagedFolder,
    rows: Vec<String>,
    /// A folder whose damage may take rows that nothing else knows of, and the rows that are there without it.
    alone: Option<(&'static str, Vec<String>)>,
    /// One of how many files is damaged.
    one_of: usize,
}

impl Case {
    /// A table that our writer made, of 90 rows in rowsets of 30, all of which are in rowsets and none in the log.
    fn made(name: &str, change: impl FnOnce(&Path)) -> Self {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..90));
        let names: ArrayRef = Arc::new(StringArray::from_iter_values((0..90).map(|id| format!("name {id}"))));
        let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).unwrap();
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("fs");
        let options = KuduTableWriterOptions::default().with_rowset_rows(30);
        let mut writer = KuduTableWriter::try_new(&folder, batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        change(&folder);
        let folder = DamagedFolder::copy_of(&folder).unwrap();
        let rows = Self::look(folder.root()).strict.unwrap();
        assert_eq!(rows.len(), 90, "{name}");
        Self { name: name.to_string(), folder, rows, alone: None, one_of: 1 }
    }

    /// A folder whose rows a real client saw.
    fn read(folder: &Path) -> Self {
        let store = open_store(&folder.join("fs")).unwrap();
        let latest = expectations(folder).into_iter().filter(|expected| expected.as_of.is_none());
        let of_table = |expected: Expected| {
            let schema = store.table(Some(&expected.table)).unwrap().schema();
            texts(&schema, expected_rows(&expected, &schema))
        };
        let rows = latest.flat_map(of_table).collect();
        let name = folder.file_name().unwrap().to_str().unwrap().to_string();
        Self {
            name,
            folder: DamagedFolder::copy_of(&folder.join("fs")).unwrap(),
            rows,
            alone: None,
            one_of: 1,
        }
    }

    /// What the three ways to look at the disks say while a file is damaged, and whether anybody is warned that a log may have been cut.
    fn answers(&self, file: &Path, damage: &Damage) -> (Answers<String>, bool) {
        let look = |root: &Path| (Self::look(root), warns_of_cut(root));
        self.folder.with(file, damage, look).unwrap()
    }

    /// What the three ways to look at the disks say now.
    fn look(root: &Path) -> Answers<String> {
        let store = match open_store(root) {
            Ok(store) => store,
            Err(error) => {
                return Answers { strict: Err(error.clone()), is_sound: false, salvaged: Err(error) };
            }
        };
        let names = store.tables();
        let tables: Result<Vec<_>, _> = names.iter().map(|name| store.table(Some(name))).collect();
        let is_sound = store.verify(None, VerifyDepth::Values, &Silent).is_ok_and(|report| report.is_sound());
        match tables.map_err(|error| error.to_string()) {
            Err(error) => Answers { strict: Err(error.clone()), is_sound, salvaged: Err(error) },
            Ok(tables) => Answers { strict: strict(&tables), is_sound, salvaged: salvaged(&tables) },
        }
    }

    fn judge(&self, file: &Path, damage: &Damage, tally: &mut Tally) {
        let (answers, is_warned) = self.answers(file, damage);
        let wrong = match answers.judge(&self.rows, &Judge::default()) {
            Ok(verdict) => return *tally.verdicts.entry(verdict).or_default() += 1,
            Err(wrong) => wrong,
        };
        let without = self.alone.as_ref().filter(|(folder, _)| file.starts_with(folder));
        let is_known = without.is_some_and(|(_, rows)| answers.judge(rows, &Judge::default()).is_ok());
        // Where a log is cut nothing may be left that tells of what was behind the cut: then both scans say the same, and warn.
        let is_cut_log =
            file.components().any(|part| part.as_os_str() == "wals") && damage.name.starts_with("cut");
        let is_same = || {
            let (Ok(strict), Ok((saved, losses))) = (&answers.strict, &answers.salvaged) else {
                return false;
            };
            strict == saved && losses.is_empty()
        };
        if is_known || (is_cut_log && is_warned && is_same()) {
            tally.untold += 1;
            return;
        }
        let failure = format!("{} {} {}: {wrong}", self.name, file.display(), damage.name);
        eprintln!("{failure}");
        tally.failures.push(failure);
    }

    fn go_through(&self, how: &Damages, tally: &mut Tally) {
        let whole = Self::look(self.folder.root()).judge(&self.rows, &Judge::default());
        assert_eq!(whole, Ok(Verdict::Right), "{}", self.name);
        for (file, bytes) in self.folder.files().iter().step_by(self.one_of) {
            for damage in damages(bytes, how) {
                self.judge(file, &damage, tally);
            }
        }
    }
}

fn warns_of_cut(root: &Path) -> bool {
    let Ok(store) = open_store(root) else { return false };
    let tables = store.tables().into_iter().filter_map(|name| store.table(Some(&name)).ok());
    tables.flat_map(|table| table.findings()).any(|finding| finding.message.contains("cut off"))
}

fn strict(tables: &[KuduTable]) -> Result<Vec<String>, String> {
    let mut rows = Vec::new();
    if tables.is_empty() {
        return Err("no table here".into());
    }
    for table in tables {
        if let Some(absence) = table.absences().first() {
            return Err(absence.what.clone());
        }
        rows.extend(texts(&table.schema(), scan(table, None)?));
    }
    Ok(rows)
}

fn salvaged(tables: &[KuduTable]) -> Result<(Vec<String>, Vec<LostRows>), String> {
    let (losses, mut rows) = (Arc::new(LossLog::new()), Vec::new());
    if tables.is_empty() {
        return Err("no table here".into());
    }
    for table in tables {
        rows.extend(texts(&table.schema(), scan(table, Some(&losses))?));
        table.absences().iter().for_each(|absence| losses.add(absence.loss()));
    }
    Ok((rows, losses.losses()))
}

fn texts(schema: &SchemaRef, rows: Rows) -> Vec<String> {
    let names: Vec<_> = schema.fields().iter().map(|field| field.name()).collect();
    let text = |row: Vec<Option<String>>| {
        let mut cells: Vec<_> =
            names.iter().zip(row).map(|(name, cell)| format!("{name}={cell:?}")).collect();
        cells.sort();
        cells.join(" ")
    };
    rows.into_iter().map(text).collect()
}

#[derive(Default)]
struct Tally {
    verdicts: BTreeMap<Verdict, usize>,
    /// Logs that were cut, of which nothing else tells.
    untold: usize,
    failures: Vec<String>,
}

impl Tally {
    fn finish(self) {
        eprintln!("{:?}, {} cut logs, {} failures", self.verdicts, self.untold, self.failures.len());
        assert!(self.failures.is_empty(), "{} failures", self.failures.len());
    }
}

fn go_through(cases: &[&str], one_of: usize, how: &Damages) {
    let goldens = support::goldens();
    let mut tally = Tally::default();
    for name in cases {
        let case = Case { one_of, ..Case::read(&goldens.join(name)) };
        case.go_through(how, &mut tally);
    }
    tally.finish();
}

#[test]
fn small_tables_of_every_kind_lose_nothing_in_silence() {
    let mut tally = Tally::default();
    let fewer = Damages { cuts: 3, flips: 4, ..Damages::default() };
    for (names, how) in
        [(&["tiny", "mixed"][..], Damages::default()), (&["log-only", "encrypted", "file-blocks"], fewer)]
    {
        for name in names {
            Case::read(&support::testdata().join(name)).go_through(&how, &mut tally);
        }
    }
    tally.finish();
}

/// One flipped byte in a rowset, or the superblock gone, and the log passed for the whole history of the tablet: no rows, and no error.
#[test]
fn tables_of_ours_lose_nothing_in_silence() {
    let mut tally = Tally::default();
    let how = Damages { flips: 40, ..Damages::default() };
    Case::made("made", |_| ()).go_through(&how, &mut tally);
    Case::made("made before, its log begun with 1", |folder| {
        let log = std::fs::read_dir(folder.join("wals")).unwrap().next().unwrap().unwrap().path();
        let segment = log.join("wal-000000001");
        std::fs::write(&segment, begun_with_one(std::fs::read(&segment).unwrap())).unwrap();
    })
    .go_through(&how, &mut tally);
    tally.finish();
}

/// A log of one operation whose number is 2, with the number 1: as such logs were written before.
fn begun_with_one(mut segment: Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    // A magic and a message; then entries of a header and a message: stored and whole length, the message's checksum, that of these.
    // Both messages name the operation: term 1, index 2.
    let mut at = 12 + number(&segment, 8);
    for _ in 0..2 {
        let end = at + 16 + number(&segment, at);
        let payload = &mut segment[at + 16..end];
        let place = payload.windows(4).position(|bytes| bytes == [8, 1, 16, 2]).unwrap();
        payload[place + 3] = 1;
        let checksum = crc32c(payload);
        segment[at + 8..at + 12].copy_from_slice(&checksum.to_le_bytes());
        let checksum = crc32c(&segment[at..at + 12]);
        segment[at + 12..at + 16].copy_from_slice(&checksum.to_le_bytes());
        at = end;
    }
    segment
}

#[test]
fn replicas_lose_nothing_in_silence() {
    let mut tally = Tally::default();
    let mut case = Case::read(&support::testdata().join("replicated"));
    // The last operation was only in the log of this server.
    let others = DamagedFolder::copy_of(&support::testdata().join("replicated/fs")).unwrap();
    std::fs::remove_dir_all(others.root().join("ts2")).unwrap();
    case.alone = Some(("ts2/wals", Case::look(others.root()).strict.unwrap()));
    let how = Damages { cuts: 3, flips: 3, ..Damages::default() };
    case.go_through(&how, &mut tally);
    tally.finish();
}

#[needs(goldens = "kudu", goldens = "kudu-extra")]
#[test]
fn larger_tables_of_every_kind_lose_nothing_in_silence() {
    let how = Damages { cuts: 1, flips: 1, ..Damages::default() };
    go_through(&["file-bm", "multidir", "../kudu-extra/logr", "../kudu-extra/enc-aes192-file"], 7, &how);
}

#[needs(goldens = "kudu")]
#[test]
fn every_shape_of_changes_loses_nothing_in_silence() {
    let how = Damages { cuts: 3, flips: 4, ..Damages::default() };
    go_through(&["delta-redo", "delta-mem", "delta-major"], 1, &how);
}
