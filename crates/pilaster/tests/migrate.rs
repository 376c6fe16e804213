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
use pilaster_testing::needs;

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

#[needs(goldens = "carbondata")]
#[test]
fn partitions_become_folders() {
    let goldens = pilaster_testing::goldens("carbondata");
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

/// What the next test runs as a process of its own, and kills.
#[test]
#[ignore = "no test by itself: a_run_that_was_killed_at_any_step_is_continued runs it"]
fn child_that_is_killed() {
    let step = std::env::var("MIGRATE_STEP").unwrap();
    let target = std::env::var("MIGRATE_TARGET").unwrap();
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
            .args(["--exact", "child_that_is_killed", "--ignored"])
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

/// How many rows each file of a migrated folder has.
fn file_rows(folder: &Path) -> Vec<u64> {
    let files = files(folder).into_iter().filter(|name| name.ends_with(".parquet"));
    files.map(|name| open(&folder.join(name)).row_count().unwrap()).collect()
}

#[test]
fn files_are_filled_where_no_positions_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let people = folder.path().join("people.csv");
    let lines: String = (0..47).map(|id| format!("{id},name {id}\n")).collect();
    fs::write(&people, format!("id,name\n{lines}")).unwrap();
    let mut sources = vec![(people.clone(), 47, [1, 10, 1000])];
    if cfg!(feature = "kudu") {
        // Of two tablets, in several splits.
        sources.push((testdata().join("../../kudu/mixed/fs"), 710, [100, 355, 1000]));
    }
    for (number, (source, count, file_sizes)) in sources.into_iter().enumerate() {
        let dataset = open(&source);
        let tasks = dataset.scan().plan().unwrap().tasks().unwrap();
        assert!(tasks.iter().any(|task| task.span().rows.is_none()), "{source:?}");
        for most in file_sizes {
            let options = options(&source).with_file_rows(most);
            let out = folder.path().join(format!("out-{number}-{most}"));
            let run = || migrate(dataset.as_ref(), &ScanRequest::default(), &out, &options, &Silent).unwrap();
            let done = run();
            let expected: Vec<_> =
                (0..count).step_by(usize::try_from(most).unwrap()).map(|at| most.min(count - at)).collect();
            assert_eq!((done.rows, done.files, file_rows(&out)), (count, expected.len(), expected.clone()));
            assert_eq!(migrated(&out), rows(&dataset, ""), "{source:?} {most}");
            if most < 10 {
                continue;
            }
            // Runs that were stopped behind any file, and lost another one before.
            let journal = out.join("_pilaster_migration.jsonl");
            let text = fs::read_to_string(&journal).unwrap();
            for kept in 0..=expected.len() {
                let lines: String = text.lines().take(kept + 1).map(|line| format!("{line}\n")).collect();
                fs::write(&journal, lines).unwrap();
                let gone = expected.len().min(kept / 2);
                let gone = out.join(format!("part-{gone:05}.parquet"));
                let was_finished = kept > kept / 2 && gone.exists();
                fs::remove_file(&gone).unwrap_or_default();
                let again = run();
                assert_eq!((again.rows, file_rows(&out)), (count, expected.clone()), "{kept}");
                assert_eq!(again.files_before, kept - usize::from(was_finished), "{kept}");
                assert_eq!(migrated(&out), rows(&dataset, ""), "{source:?} {most} {kept}");
            }
        }
    }
    // A table without rows still has columns.
    fs::write(&people, "id,name\n").unwrap();
    let empty = folder.path().join("empty");
    assert_eq!(run(&people, &empty, &Silent).unwrap().rows, 0);
    assert_eq!(open(&empty.join("part-00000.parquet")).schema().fields().len(), 2);
}

#[test]
fn a_migrated_folder_knows_its_files_and_whether_it_is_finished() {
    let target = tempfile::tempdir().unwrap();
    let out = target.path().join("out");
    let source = testdata().join("iud_update2");
    run(&source, &out, &Silent).unwrap();
    let path = out.display().to_string();
    let opened = |partial: bool| pilaster::OpenOptions::default().with_partial(partial).open(&path);
    let refused = || opened(false).unwrap_err().to_string();
    let verified = || {
        let options = pilaster::OpenOptions::default();
        pilaster::verify::verify(&[&path], &options, pilaster::VerifyDepth::Footer, &Silent).unwrap()
    };
    assert_eq!(rows(&opened(false).unwrap(), ""), rows(&open(&source), ""));
    assert!(verified().is_sound());
    // The mark alone tells nothing that the journal does not.
    fs::remove_file(out.join("_SUCCESS")).unwrap();
    assert!(opened(false).is_ok());
    let gone = out.join("part-00001.parquet");
    let lost = open(&gone).row_count().unwrap();
    fs::remove_file(&gone).unwrap();
    assert!(refused().contains("part-00001.parquet"), "{}", refused());
    assert!(!verified().is_sound());
    let partial = opened(true).unwrap();
    assert_eq!(partial.absences().iter().map(|absence| absence.rows).collect::<Vec<_>>(), [Some(lost)]);
    // Killed before its last file.
    run(&source, &out, &Silent).unwrap();
    let journal = out.join("_pilaster_migration.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    let last = text.trim_end().lines().last().unwrap().to_string();
    let name =
        serde_json::from_str::<serde_json::Value>(&last).unwrap()["path"].as_str().unwrap().to_string();
    let left = open(&out.join(&name)).row_count().unwrap();
    fs::remove_file(out.join(&name)).unwrap();
    let without: String =
        text.lines().filter(|line| !line.contains(&name)).map(|line| format!("{line}\n")).collect();
    fs::write(&journal, without).unwrap();
    assert!(refused().contains("is not finished"), "{}", refused());
    assert_eq!(opened(true).unwrap().absences()[0].rows, Some(left));
    // What the journal has lost nobody knows.
    fs::write(&journal, &text.as_bytes()[..text.len() / 2]).unwrap();
    assert!(opened(false).is_err());
    fs::write(&journal, "nonsense\n").unwrap();
    assert!(refused().contains("which files there must be is not known"), "{}", refused());
}

#[test]
fn columns_of_partitions_keep_their_types() {
    use arrow_array::{ArrayRef, BooleanArray, Decimal128Array, Int16Array, Int64Array, StringArray};
    use pilaster::carbondata::{CarbonDataWriterOptions, CarbonTableWriterOptions};
    use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
    use pilaster::{OutputFormat, output::WriteOptions};
    use std::sync::Arc;

    let place = tempfile::tempdir().unwrap();
    let decimals = Decimal128Array::from(vec![Some(150), Some(-25), None, Some(150)]);
    let micros = arrow_array::TimestampMicrosecondArray::from(vec![
        Some(0),
        Some(1_700_000_000_123_000),
        None,
        Some(-1_000_000),
    ]);
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(Int64Array::from(vec![1, 2, 3, 4]))),
        ("flag", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("small", Arc::new(Int16Array::from(vec![Some(7), Some(-7), None, Some(7)]))),
        ("price", Arc::new(decimals.with_precision_and_scale(10, 2).unwrap())),
        ("digits", Arc::new(StringArray::from(vec![Some("1"), Some("2"), None, Some("1")]))),
        ("at", Arc::new(micros.with_timezone("UTC"))),
    ];
    let batch = arrow_array::RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let source = place.path().join("rows.arrow");
    let mut writer = arrow_ipc::writer::FileWriter::try_new(
        fs::File::create(&source).unwrap(),
        &batch.as_ref().unwrap().schema(),
    );
    writer.as_mut().unwrap().write(&batch.unwrap()).unwrap();
    writer.unwrap().finish().unwrap();
    for column in ["flag", "small", "price", "digits", "at"] {
        let (table, out) =
            (place.path().join(format!("t-{column}")), place.path().join(format!("m-{column}")));
        let options = CarbonTableWriterOptions::default().with_partition_columns([column]);
        let options = CarbonDataWriterOptions::default().with_table(options);
        let how = ConvertOptions::default().with_write(WriteOptions::default().with_carbondata(options));
        let target = ConvertTarget::new(&table, OutputFormat::CarbonData);
        convert(open(&source).as_ref(), &ScanRequest::default(), &target, &how, &Silent).unwrap();
        run(&table, &out, &Silent).unwrap();
        let (before, after) = (open(&table), open(&out));
        let name = |dataset: &DatasetRef| {
            let schema = dataset.schema();
            pilaster::schema_file::type_name(schema.field_with_name(column).unwrap())
        };
        assert_eq!(name(&after), name(&before), "{column}");
        assert_eq!(rows(&after, ""), rows(&before, ""), "{column}");
    }
}
