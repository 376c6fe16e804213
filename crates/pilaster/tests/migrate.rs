//! Migrations: pieces, partitions, kills at every step, changed sources.
#![cfg(feature = "carbondata")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests compute with known values"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use pilaster::core::progress::Silent;
use pilaster::migrate::{MigrateOptions, MigrateSummary, migrate};
use pilaster::{DatasetRef, Progress, Result, ScanRequest, col, lit};

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/carbondata/table")
}

fn open(path: &Path) -> DatasetRef {
    pilaster::open(&path.display().to_string()).unwrap()
}

fn options(source: &Path) -> MigrateOptions {
    MigrateOptions::default().with_file_rows(10).with_source_paths(vec![source.to_path_buf()])
}

fn run(source: &Path, target: &Path, progress: &dyn Progress) -> Result<MigrateSummary> {
    migrate(open(source).as_ref(), &ScanRequest::default(), target, &options(source), progress)
}

/// The files below a folder, by their path in it.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

/// All rows as text, whatever their order.
fn rows(dataset: &DatasetRef, add: &str) -> BTreeMap<String, usize> {
    let mut out = Vec::new();
    let schema = dataset.schema();
    for batch in dataset.scan().read().unwrap() {
        let batch = batch.unwrap();
        for row in 0..batch.num_rows() {
            let cells = schema.fields().iter().zip(batch.columns()).map(|(field, column)| {
                let text = arrow_cast::display::array_value_to_string(column, row).unwrap();
                format!("{}={text}", field.name())
            });
            let mut cells: Vec<_> =
                cells.chain(add.split('/').filter(|c| !c.is_empty()).map(Into::into)).collect();
            cells.sort();
            out.push(cells.join("|"));
        }
    }
    let mut counts = BTreeMap::new();
    for row in out {
        *counts.entry(row).or_default() += 1;
    }
    counts
}

/// The rows of a migrated folder, with the values of its folders.
fn migrated(folder: &Path) -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for file in files(folder).iter().filter(|file| file.ends_with(".parquet")) {
        let values = file.rsplit_once('/').map_or("", |(folders, _)| folders);
        for (row, count) in rows(&open(&folder.join(file)), values) {
            *all.entry(row).or_default() += count;
        }
    }
    all
}

#[test]
fn a_table_becomes_a_folder_of_files_and_a_second_run_does_nothing() {
    let target = tempfile::tempdir().unwrap();
    let out = target.path().join("out");
    let source = testdata().join("iud_update2");
    let done = run(&source, &out, &Silent).unwrap();
    assert_eq!((done.rows, done.files_before), (66, 0));
    assert_eq!(migrated(&out), rows(&open(&source), ""));
    assert!(done.files >= 7, "{done:?}");
    assert!(out.join("_SUCCESS").is_file());
    let again = run(&source, &out, &Silent).unwrap();
    assert_eq!(again, MigrateSummary { files_before: done.files, ..done.clone() });
    // A file that was lost since is written again.
    fs::remove_file(out.join("part-00001.parquet")).unwrap();
    assert_eq!(run(&source, &out, &Silent).unwrap().files_before, done.files - 1);
    assert_eq!(migrated(&out), rows(&open(&source), ""));
}

#[test]
fn partitions_become_folders() {
    let Some(goldens) = pilaster_testing::goldens("carbondata") else { return };
    let source = goldens.join("table/v2.3/part_loaded");
    let target = tempfile::tempdir().unwrap();
    let done = run(&source, target.path(), &Silent).unwrap();
    let table = open(&source);
    assert_eq!(Some(done.rows), table.row_count());
    let found = files(target.path());
    assert!(found.iter().any(|file| file.starts_with("country=j%2Fp%3Dx/yr=2019/part-")), "{found:?}");
    assert!(found.iter().any(|file| file.starts_with("country=__HIVE_DEFAULT_PARTITION__/yr=2020/part-")));
    let unescape = |rows: BTreeMap<String, usize>| -> BTreeMap<String, usize> {
        rows.into_iter()
            .map(|(row, count)| {
                (row.replace("%2F", "/").replace("%3D", "=").replace("__HIVE_DEFAULT_PARTITION__", ""), count)
            })
            .collect()
    };
    assert_eq!(unescape(migrated(target.path())), rows(&table, ""));
    // Partition columns are not in the files.
    let first = found.iter().find(|file| file.ends_with(".parquet")).unwrap();
    assert!(open(&target.path().join(first)).schema().index_of("country").is_err());
}

/// Ends the process, with nothing cleaned up, at the given call.
struct Kill(AtomicU64);

impl Progress for Kill {
    fn set_total(&self, _total: u64) {}

    fn advance(&self, _units: u64) {
        if self.0.fetch_sub(1, Ordering::Relaxed) == 0 {
            std::process::abort();
        }
    }
}

/// Not a test by itself: what the next test runs as a process of its own, and kills.
#[test]
fn child_that_is_killed() {
    let (Ok(step), Ok(target)) = (std::env::var("MIGRATE_STEP"), std::env::var("MIGRATE_TARGET")) else {
        return;
    };
    let kill = Kill(AtomicU64::new(step.parse().unwrap()));
    run(&testdata().join("iud_update2"), Path::new(&target), &kill).unwrap();
}

#[test]
fn a_run_that_was_killed_at_any_step_is_continued() {
    let source = testdata().join("iud_update2");
    let expected = rows(&open(&source), "");
    let mut steps = 0;
    for step in 0..200 {
        let target = tempfile::tempdir().unwrap();
        let out = target.path().join("out");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_that_is_killed"])
            .env("MIGRATE_STEP", step.to_string())
            .env("MIGRATE_TARGET", &out)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        let done = run(&source, &out, &Silent).unwrap();
        assert_eq!(migrated(&out), expected, "killed at step {step}");
        let left: Vec<_> = files(&out).into_iter().filter(|file| file.ends_with(".tmp")).collect();
        assert_eq!(left, [""; 0], "killed at step {step}");
        if child.success() {
            assert_eq!(done.files_before, done.files);
            break;
        }
        steps += 1;
    }
    // Three steps per file: rows read, file complete, file noted.
    assert!((21..200).contains(&steps), "{steps}");
}

#[test]
fn a_line_that_was_cut_is_written_again() {
    let source = testdata().join("iud_update2");
    let target = tempfile::tempdir().unwrap();
    run(&source, target.path(), &Silent).unwrap();
    let journal = target.path().join("_pilaster_migration.jsonl");
    let text = fs::read(&journal).unwrap();
    for end in (0..text.len()).step_by(97) {
        fs::write(&journal, &text[..end]).unwrap();
        let done = run(&source, target.path(), &Silent).unwrap();
        assert_eq!(done.rows, 66);
        assert_eq!(migrated(target.path()), rows(&open(&source), ""));
        assert_eq!(fs::read(&journal).unwrap(), text);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { fs::write(target, fs::read(path).unwrap()).unwrap() }
    }
}

#[test]
fn what_is_not_the_same_source_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (source, out) = (folder.path().join("table"), folder.path().join("out"));
    copy(&testdata().join("iud_update2"), &source);
    run(&source, &out, &Silent).unwrap();
    let error = |error: pilaster::Error| error.to_string();
    // Other options, another filter.
    let dataset = open(&source);
    let other = options(&source).with_file_rows(11);
    let refused = migrate(dataset.as_ref(), &ScanRequest::default(), &out, &other, &Silent).unwrap_err();
    assert!(error(refused).contains("was begun with 10 rows per file, not 11"));
    let request = ScanRequest { predicate: Some(col("id").gt(lit(5_i64))), ..ScanRequest::default() };
    let refused = migrate(dataset.as_ref(), &request, &out, &options(&source), &Silent).unwrap_err();
    assert!(error(refused).contains("another filter"));
    // A new file, a changed one.
    fs::write(source.join("Metadata/new"), "x").unwrap();
    assert!(error(run(&source, &out, &Silent).unwrap_err()).contains("was there; begin again"));
    fs::remove_file(source.join("Metadata/new")).unwrap();
    assert!(run(&source, &out, &Silent).is_ok());
    let status = source.join("Metadata/tablestatus");
    let text = fs::read_to_string(&status).unwrap();
    fs::write(&status, text + " ").unwrap();
    let refused = error(run(&source, &out, &Silent).unwrap_err());
    assert!(refused.contains("tablestatus was changed"), "{refused}");
    // A folder with something else in it.
    let strange = folder.path().join("strange");
    fs::create_dir(&strange).unwrap();
    fs::write(strange.join("mine.txt"), "x").unwrap();
    assert!(error(run(&source, &strange, &Silent).unwrap_err()).contains("is not empty"));
}

#[test]
fn a_filter_and_a_projection_are_followed() {
    let source = testdata().join("iud_update2");
    let target = tempfile::tempdir().unwrap();
    let dataset = open(&source);
    let predicate = col("id").gt(lit(20_i64));
    let expected: usize =
        dataset.scan().filter(predicate.clone()).read().unwrap().map(|b| b.unwrap().num_rows()).sum();
    let request =
        ScanRequest { predicate: Some(predicate), projection: Some(vec![1, 0]), ..ScanRequest::default() };
    let done = migrate(dataset.as_ref(), &request, target.path(), &options(&source), &Silent).unwrap();
    assert_eq!(done.rows, expected as u64);
    let first = open(&target.path().join("part-00000.parquet")).schema();
    assert_eq!(first.field(0).name(), dataset.schema().field(1).name());
    assert_eq!(first.fields().len(), 2);
}

#[test]
fn what_knows_no_positions_becomes_a_file_per_split() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("people.csv");
    let lines: String = (0..50).map(|id| format!("{id},name {id}\n")).collect();
    fs::write(&source, format!("id,name\n{lines}")).unwrap();
    let out = folder.path().join("out");
    let done = run(&source, &out, &Silent).unwrap();
    assert_eq!(done.rows, 50);
    assert_eq!(migrated(&out), rows(&open(&source), ""));
    assert_eq!(run(&source, &out, &Silent).unwrap().files_before, done.files);
    // A table without rows still has columns.
    fs::write(&source, "id,name\n").unwrap();
    let empty = folder.path().join("empty");
    assert_eq!(run(&source, &empty, &Silent).unwrap().rows, 0);
    assert_eq!(open(&empty.join("part-00000.parquet")).schema().fields().len(), 2);
}
