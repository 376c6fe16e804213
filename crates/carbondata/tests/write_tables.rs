//! Tables that are written are read back: loads, partitions, buckets, compaction, crashes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::{Array, ArrayRef, BinaryViewArray, RecordBatch, StringViewArray, StructArray};
use arrow_row::{RowConverter, SortField};
use arrow_schema::{DataType, Field};
use arrow_select::concat::concat_batches;
use pilaster_carbondata::file::CarbonWriterOptions;
use pilaster_carbondata::table::{
    CarbonFolderWriter, CarbonTable, CarbonTableOptions, CarbonTableWriter, CarbonTableWriterOptions, compact,
};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, VerifyDepth};
use pilaster_testing::needs;
use support::random::{self, any_type};
use support::rows::{expected, rows};
use support::{Numbers, batches, goldens};

fn open(folder: &Path) -> CarbonTable {
    CarbonTable::open(folder, &CarbonTableOptions::default()).unwrap()
}

fn whole(table: &CarbonTable) -> RecordBatch {
    concat_batches(&table.schema(), &batches(table.scan()).unwrap()).unwrap()
}

fn checked(folder: &Path) -> RecordBatch {
    let table = open(folder);
    let report = table.verify(VerifyDepth::Values, &Silent).unwrap();
    assert_eq!(report.findings, []);
    let batch = whole(&table);
    assert_eq!(table.row_count(), Some(batch.num_rows() as u64));
    batch
}

fn append(folder: &Path, batch: &RecordBatch, options: &CarbonTableWriterOptions) -> String {
    let mut writer = CarbonTableWriter::append(folder, options.clone()).unwrap();
    writer.write(batch).unwrap();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.written.rows, batch.num_rows() as u64);
    summary.segment.unwrap()
}

fn create(folder: &Path, batch: &RecordBatch, options: &CarbonTableWriterOptions) {
    let mut writer = CarbonTableWriter::create(folder, &batch.schema(), options.clone()).unwrap();
    writer.write(batch).unwrap();
    assert_eq!(writer.finish().unwrap().segment.as_deref(), Some("0"));
}

/// The rows of all batches.
fn sum(parts: &[&RecordBatch]) -> Vec<String> {
    let mut all: Vec<_> = parts.iter().flat_map(|batch| rows(batch)).collect();
    all.sort();
    all
}

/// Whether rows are in the order of these columns, nulls first.
fn is_sorted(batch: &RecordBatch, columns: &[String]) -> bool {
    let columns: Vec<_> = columns.iter().map(|name| batch.column_by_name(name).unwrap().clone()).collect();
    let fields = columns.iter().map(|column| SortField::new(column.data_type().clone())).collect();
    let rows = RowConverter::new(fields).unwrap().convert_columns(&columns).unwrap();
    rows.iter().is_sorted()
}

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in support::sorted(folder) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_str().unwrap().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for path in support::sorted(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { std::fs::copy(&path, &target).map(|_| ()).unwrap() }
    }
}

/// A schema whose columns can be partitioned and put into buckets by.
fn fixed_batch(seed: u64, row_count: usize) -> RecordBatch {
    let mut numbers = Numbers(seed);
    let types = [
        DataType::Int64,
        DataType::Utf8View,
        DataType::Date32,
        DataType::Decimal128(12, 3),
        DataType::Boolean,
        random::list(DataType::Int32),
        DataType::Utf8View,
    ];
    let mut columns = Vec::new();
    for (place, data_type) in types.iter().enumerate() {
        let valid: Vec<_> = (0..row_count).map(|_| numbers.below(10) > 0).collect();
        let few = place == 1 || place == 2 || place == 4;
        let pattern = if few { random::Pattern::Few } else { random::Pattern::Any };
        columns.push((format!("c{place}"), random::column(&mut numbers, data_type, pattern, &valid), true));
    }
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

#[test]
fn loads_of_any_rows_come_back() {
    for seed in 0..40 {
        let mut numbers = Numbers(seed);
        let types: Vec<_> = (0..=numbers.below(5)).map(|_| any_type(&mut numbers, seed % 3)).collect();
        let first_rows = 1 + numbers.below(900) as usize;
        let first = random::batch(&mut numbers, &types, first_rows);
        let second_rows = 1 + numbers.below(300) as usize;
        let second = random::batch(&mut numbers, &types, second_rows);
        let files = random::options(&mut numbers, &first).with_sort_memory_bytes(20_000);
        let options =
            CarbonTableWriterOptions::default().with_files(files).with_merged_index(numbers.below(2) == 0);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        create(&folder, &first, &options);
        assert_eq!(rows(&checked(&folder)), rows(&first), "seed {seed}");
        assert_eq!(append(&folder, &second, &options), "1");
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]), "seed {seed}");
        let summary = compact(&folder, None, options.clone()).unwrap();
        assert_eq!(summary.segment.as_deref(), Some("0.1"));
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]), "seed {seed}");
        assert_eq!(append(&folder, &second, &options), "2");
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second, &second]), "seed {seed}");
    }
}

#[test]
fn rows_are_sorted_over_the_whole_load() {
    let batch = fixed_batch(1, 5000);
    let sort = ["c4".to_string(), "c2".into(), "c0".into()];
    for memory in [100_000, 1 << 30] {
        let files = CarbonWriterOptions::default()
            .with_sort_columns(&sort)
            .with_sort_memory_bytes(memory)
            .with_page_rows(100)
            .with_blocklet_bytes(1);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        let mut writer = CarbonTableWriter::create(
            &folder,
            &batch.schema(),
            CarbonTableWriterOptions::default().with_files(files),
        )
        .unwrap();
        for from in (0..5000).step_by(250) {
            writer.write(&batch.slice(from, 250)).unwrap();
        }
        writer.finish().unwrap();
        let found = checked(&folder);
        assert!(is_sorted(&found, &sort));
        assert_eq!(rows(&found), rows(&batch));
        // Nothing is left of the sort.
        assert!(files_of_sort(&folder).is_empty());
    }
}

#[test]
fn files_are_the_same_bytes_however_little_memory_the_sort_has() {
    for seed in 0..6 {
        let mut numbers = Numbers(seed);
        let rows = 1 + numbers.below(900) as usize;
        let batch = fixed_batch(seed, rows);
        let sort: &[&str] = [&["c4", "c2", "c0"][..], &["c1"], &["c2", "c6"], &["c0"]][seed as usize % 4];
        let partitions: &[&str] = if seed % 3 == 0 && !sort.contains(&"c1") { &["c1"] } else { &[] };
        let options = |memory: usize| {
            let files = CarbonWriterOptions::default()
                .with_sort_columns(sort)
                .with_sort_memory_bytes(memory)
                .with_page_rows(90)
                .with_blocklet_bytes(20_000);
            let options =
                CarbonTableWriterOptions::default().with_files(files).with_partition_columns(partitions);
            options.with_buckets(
                if seed % 2 == 0 { &["c0"][..] } else { &[] },
                if seed % 2 == 0 { 2 } else { 0 },
            )
        };
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        CarbonTableWriter::create(&folder, &batch.schema(), options(1)).unwrap().finish().unwrap();
        let (mut known, mut expected) = (BTreeSet::new(), None);
        for (memory, part) in [(1 << 30, rows), (1, 5), (20_000, 7), (60_000, 250)] {
            let mut writer = CarbonTableWriter::append(&folder, options(memory)).unwrap();
            for from in (0..rows).step_by(part) {
                writer.write(&batch.slice(from, part.min(rows - from))).unwrap();
            }
            writer.finish().unwrap();
            let written = files(&folder, ".carbondata").into_iter().filter(|path| known.insert(path.clone()));
            let written: Vec<_> = written.map(|path| std::fs::read(path).unwrap()).collect();
            assert!(!written.is_empty());
            let expected = expected.get_or_insert_with(|| written.clone());
            assert!(written == *expected, "seed {seed}, {memory} bytes");
        }
    }
}

fn files_of_sort(folder: &Path) -> Vec<PathBuf> {
    support::sorted(folder).into_iter().filter(|path| path.to_str().unwrap().contains(".sort")).collect()
}

#[test]
fn a_full_file_is_followed_by_another_and_one_index_covers_them() {
    let batch = fixed_batch(2, 4000);
    let files_options =
        CarbonWriterOptions::default().with_page_rows(200).with_blocklet_bytes(1).with_block_bytes(60_000);
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    let options = CarbonTableWriterOptions::default().with_files(files_options.clone());
    create(&folder, &batch, &options.clone().with_merged_index(false));
    let data = files(&folder, ".carbondata");
    assert!(data.len() > 3, "{data:?}");
    for path in &data {
        assert!(std::fs::metadata(path).unwrap().len() < 70_000);
    }
    assert_eq!(files(&folder, ".carbonindex").len(), 1);
    assert_eq!(checked(&folder), batch);
    let plain = place.path().join("plain");
    let mut writer = CarbonFolderWriter::create(&plain, &batch.schema(), &files_options).unwrap();
    writer.write(&batch).unwrap();
    let summary = writer.finish().unwrap();
    assert_eq!(summary.files as usize, data.len());
    assert_eq!(files(&plain, ".carbonindex").len(), 1);
    assert_eq!(checked(&plain), batch);
}

#[test]
fn partitions_and_buckets_hold_their_rows() {
    let (first, second) = (fixed_batch(3, 700), fixed_batch(4, 300));
    for (partitions, buckets, sort) in [
        (vec!["c1"], 0, vec![]),
        (vec!["c2", "c1"], 0, vec!["c0"]),
        (vec![], 3, vec![]),
        (vec!["c4"], 4, vec!["c6"]),
    ] {
        let options = CarbonTableWriterOptions::default()
            .with_files(
                CarbonWriterOptions::default().with_sort_columns(&sort).with_sort_memory_bytes(50_000),
            )
            .with_partition_columns(&partitions)
            .with_buckets(if buckets > 0 { &["c0", "c3"][..] } else { &[] }, buckets);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        create(&folder, &first, &options);
        append(&folder, &second, &options);
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]), "{partitions:?} {buckets}");
        let names: BTreeSet<_> = files(&folder, ".carbondata")
            .iter()
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_string())
            .collect();
        assert_eq!(names.len(), files(&folder, ".carbondata").len(), "every file has a name of its own");
        if buckets > 0 && partitions.is_empty() {
            assert_eq!(names.len(), 6);
        }
        if !partitions.is_empty() {
            assert!(!folder.join("Fact/Part0/Segment_0").exists());
        }
        compact(&folder, Some(&["0".into(), "1".into()]), options.clone()).unwrap();
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]), "{partitions:?} {buckets}");
    }
}

/// Copies of a folder after every step of what is done to it.
fn with_snapshots(
    folder: &Path,
    snapshots: &Path,
    options: &CarbonTableWriterOptions,
    action: impl FnOnce(CarbonTableWriterOptions),
) -> usize {
    let count = Arc::new(Mutex::new(0));
    let (from, to, counter) = (folder.to_path_buf(), snapshots.to_path_buf(), Arc::clone(&count));
    let hook = move |_: &str| {
        let mut number = counter.lock().unwrap();
        copy(&from, &to.join(number.to_string()));
        *number += 1;
    };
    action(options.clone().with_step_hook(Arc::new(hook)));
    let mut count = count.lock().unwrap();
    std::mem::take(&mut count)
}

#[test]
fn a_crash_between_any_two_steps_leaves_the_rows_before_or_after() {
    let (first, second) = (fixed_batch(5, 300), fixed_batch(6, 400));
    let files_options =
        CarbonWriterOptions::default().with_page_rows(50).with_blocklet_bytes(1).with_block_bytes(20_000);
    for options in [
        CarbonTableWriterOptions::default().with_files(files_options.clone()),
        CarbonTableWriterOptions::default().with_files(files_options).with_partition_columns(["c1"]),
    ] {
        let place = tempfile::tempdir().unwrap();
        let (folder, loads, merges) =
            (place.path().join("t"), place.path().join("l"), place.path().join("c"));
        create(&folder, &first, &options);
        let before = rows(&checked(&folder));
        let steps = with_snapshots(&folder, &loads, &options, |options| {
            append(&folder, &second, &options);
        });
        let after = rows(&checked(&folder));
        assert!(steps >= 5, "{steps}");
        let mut seen = [0, 0];
        for step in 0..steps {
            let snapshot = loads.join(step.to_string());
            let found = rows(&checked(&snapshot));
            assert!(found == before || found == after, "step {step}");
            seen[usize::from(found == after)] += 1;
            // What was left behind does not hinder the next load.
            append(&snapshot, &second, &options);
            let mut more = [found, rows(&second)].concat();
            more.sort();
            assert_eq!(rows(&checked(&snapshot)), more, "step {step}");
        }
        assert_eq!(seen[1], 1, "the last step alone makes the load part of the table");
        let steps = with_snapshots(&folder, &merges, &options, |options| {
            compact(&folder, None, options).unwrap();
        });
        assert!(steps >= 4, "{steps}");
        for step in 0..steps {
            let snapshot = merges.join(step.to_string());
            assert_eq!(rows(&checked(&snapshot)), after, "step {step}");
            compact(&snapshot, None, options.clone()).unwrap();
            append(&snapshot, &second, &options);
            let mut more = [after.clone(), rows(&second)].concat();
            more.sort();
            assert_eq!(rows(&checked(&snapshot)), more, "step {step}");
        }
    }
}

#[test]
fn a_load_that_is_given_up_leaves_nothing() {
    let batch = fixed_batch(7, 100);
    let options = CarbonTableWriterOptions::default();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    create(&folder, &batch, &options);
    let mut writer = CarbonTableWriter::append(&folder, options.clone()).unwrap();
    writer.write(&batch).unwrap();
    drop(writer);
    assert_eq!(checked(&folder), batch);
    assert!(!folder.join("Fact/Part0/Segment_1").exists());
    assert_eq!(open(&folder).segments()[1].status, "Marked for Delete");
    // A table that is not finished is not there at all.
    let unfinished = place.path().join("u");
    let mut writer = CarbonTableWriter::create(&unfinished, &batch.schema(), options.clone()).unwrap();
    writer.write(&batch).unwrap();
    drop(writer);
    assert!(!unfinished.exists());
    assert_eq!(support::sorted(place.path()).len(), 1);
    // An empty load is no segment.
    let writer = CarbonTableWriter::append(&folder, options.clone()).unwrap();
    assert_eq!(writer.finish().unwrap().segment, None);
    assert_eq!(checked(&folder), batch);
    assert_eq!(append(&folder, &batch, &options), "3");
}

#[test]
fn locks_are_honoured() {
    let batch = fixed_batch(8, 10);
    let options = CarbonTableWriterOptions::default().with_lock_timeout(Duration::ZERO);
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    create(&folder, &batch, &options);
    append(&folder, &batch, &options);
    // A second load beside the first is fine, and takes another id.
    let mut one = CarbonTableWriter::append(&folder, options.clone()).unwrap();
    let mut other = CarbonTableWriter::append(&folder, options.clone()).unwrap();
    one.write(&batch).unwrap();
    other.write(&batch).unwrap();
    assert_eq!(other.finish().unwrap().segment.as_deref(), Some("3"));
    assert_eq!(one.finish().unwrap().segment.as_deref(), Some("2"));
    // Another process, as CarbonData is one.
    let mut child = std::process::Command::new("python3")
        .args(["-c", "import fcntl, sys\nf = open(sys.argv[1], 'a')\nfcntl.lockf(f, fcntl.LOCK_EX)\nprint('locked', flush=True)\nsys.stdin.read()"])
        .arg(folder.join("LockFiles/tablestatus.lock"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "locked\n");
    let error = CarbonTableWriter::append(&folder, options.clone()).unwrap_err().to_string();
    assert!(error.ends_with("somebody else is writing to the table: the lock is taken"), "{error}");
    drop(child.stdin.take());
    child.wait().unwrap();
    append(&folder, &batch, &options);
}

/// A copy of a golden table.
fn golden(name: &str) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let root = goldens().join("table");
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    copy(&root.join(name), &folder);
    (place, folder, root.join(format!("{name}.jsonl")))
}

#[needs(goldens = "carbondata")]
#[test]
fn tables_of_the_engine_are_added_to_and_compacted() {
    let options = CarbonTableWriterOptions::default();
    for name in [
        "types",
        "local_sort",
        "global_sort",
        "no_sort",
        "part_loaded",
        "part_dropped",
        "complex",
        "bucket",
        "evolve_changed",
        "iud_delete3",
        "props",
        "noindexmerge",
        "compact_minor",
        "segs_overwritten",
    ] {
        let (_place, folder, file) = golden(&format!("v2.3/{name}"));
        let before = whole(&open(&folder));
        assert_eq!(rows(&before), expected(&file), "{name}");
        let segment = append(&folder, &before, &options);
        let mut twice = [expected(&file), expected(&file)].concat();
        twice.sort();
        assert_eq!(rows(&checked(&folder)), twice, "{name}");
        let summary = compact(&folder, None, options.clone()).unwrap();
        assert!(summary.merged.contains(&segment), "{name}");
        assert_eq!(rows(&checked(&folder)), twice, "{name}");
        let table = open(&folder);
        let last = table.segments().last().unwrap();
        assert_eq!(Some(&last.id), summary.segment.as_ref());
        for id in &summary.merged {
            let entry = table.segments().iter().find(|entry| entry.id == *id).unwrap();
            assert_eq!((entry.status.as_str(), entry.merged_into.as_ref()), ("Compacted", Some(&last.id)));
        }
        assert_eq!(table.segments().iter().filter(|entry| entry.is_readable()).count(), 1, "{name}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn buckets_are_those_of_spark() {
    let (_place, folder, _) = golden("v2.3/bucket");
    let batch = whole(&open(&folder));
    let again = tempfile::tempdir().unwrap();
    let ours = again.path().join("t");
    create(&ours, &batch, &CarbonTableWriterOptions::default().with_buckets(["city"], 3));
    let cities = |folder: &Path| -> Vec<BTreeSet<String>> {
        (0..3)
            .map(|bucket| {
                let data = files(folder, ".carbondata");
                let name = format!("_batchno0-{bucket}-0-");
                let path = data.iter().find(|path| path.to_str().unwrap().contains(&name)).unwrap();
                let file = pilaster_carbondata::file::CarbonFileReader::open(support::source(path)).unwrap();
                let batch = concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap();
                let column = batch.column_by_name("city").unwrap().clone();
                (0..column.len()).map(|row| support::cells::scalar(&column, row).to_string()).collect()
            })
            .collect()
    };
    assert_eq!(cities(&ours), cities(&folder));
}

#[test]
fn segments_that_cannot_be_merged_are_named() {
    let batch = fixed_batch(9, 10);
    let options = CarbonTableWriterOptions::default();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    create(&folder, &batch, &options);
    assert_eq!(compact(&folder, None, options.clone()).unwrap(), Default::default());
    let error = compact(&folder, Some(&["0".into(), "7".into()]), options.clone()).unwrap_err();
    assert!(error.to_string().ends_with("no readable segment \"7\""), "{error}");
    append(&folder, &batch, &options);
    append(&folder, &batch, &options);
    let summary = compact(&folder, Some(&["1".into(), "2".into()]), options.clone()).unwrap();
    assert_eq!(summary.segment.as_deref(), Some("1.1"));
    let error = compact(&folder, Some(&["1".into(), "0".into()]), options).unwrap_err();
    assert!(error.to_string().ends_with("no readable segment \"1\""), "{error}");
}

#[test]
fn dictionaries_of_the_table_grow_with_every_load() {
    let (first, second) = (
        fixed_batch(10, 300).project(&[0, 1, 2, 3, 6]).unwrap(),
        fixed_batch(11, 400).project(&[0, 1, 2, 3, 6]).unwrap(),
    );
    let options = CarbonTableWriterOptions::default().with_dictionary_columns(["c1", "c0", "c3", "c6"]);
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    create(&folder, &first, &options);
    assert_eq!(checked(&folder), first);
    assert_eq!(files(&folder, ".dict").len(), 4);
    let snapshots = place.path().join("s");
    let steps = with_snapshots(&folder, &snapshots, &options, |options| {
        append(&folder, &second, &options);
    });
    assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]));
    for step in 0..steps {
        let snapshot = snapshots.join(step.to_string());
        let found = rows(&checked(&snapshot));
        assert_eq!(
            found,
            if step + 1 < steps { rows(&first) } else { sum(&[&first, &second]) },
            "step {step}"
        );
        append(&snapshot, &second, &options);
        let mut more = [found, rows(&second)].concat();
        more.sort();
        assert_eq!(rows(&checked(&snapshot)), more, "step {step}");
    }
    // A load without new members changes no dictionary.
    let before: Vec<_> =
        files(&folder, ".dictmeta").iter().map(|path| std::fs::read(path).unwrap()).collect();
    append(&folder, &second, &options);
    let after: Vec<_> = files(&folder, ".dictmeta").iter().map(|path| std::fs::read(path).unwrap()).collect();
    assert_eq!(before, after);
    compact(&folder, None, options.clone()).unwrap();
    assert_eq!(rows(&checked(&folder)), sum(&[&first, &second, &second]));
}

/// The encodings of all pages of a table.
fn encodings(folder: &Path) -> BTreeSet<String> {
    open(folder).pages().unwrap().into_iter().map(|page| page.encoding).collect()
}

/// Releases with dictionaries of the table have lengths of two bytes inside of nested columns, and do not know a name for others.
#[test]
fn nested_columns_stand_beside_dictionaries_of_the_table() {
    let mut numbers = Numbers(77);
    for round in 0..24u64 {
        let mut types = vec![DataType::Utf8View, DataType::Int32, random::list(DataType::Utf8View)];
        types.push(random::structure(random::flat_types()));
        types.push(random::map(DataType::Utf8View, random::list(DataType::Decimal128(12, 3))));
        types.extend((0..2).map(|_| any_type(&mut numbers, 3)));
        let row_count = 1 + numbers.below(200) as usize;
        let batch = |numbers: &mut Numbers| random::batch(numbers, &types, row_count);
        let (first, second) = (batch(&mut numbers), batch(&mut numbers));
        let files = CarbonWriterOptions::default().with_local_dictionary(round % 2 == 0).with_page_rows(70);
        let options =
            CarbonTableWriterOptions::default().with_files(files).with_dictionary_columns(["c0", "c1"]);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        create(&folder, &first, &options);
        assert_eq!(checked(&folder), first);
        append(&folder, &second, &options);
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]));
        compact(&folder, None, options).unwrap();
        assert_eq!(rows(&checked(&folder)), sum(&[&first, &second]));
        let found = encodings(&folder);
        assert!(found.iter().all(|names| !names.contains("INT_LENGTH")), "{found:?}");
    }
}

#[test]
fn long_values_inside_of_nested_columns_need_release_2() {
    let text: ArrayRef = Arc::new(StringViewArray::from(vec!["x".repeat(40_000)]));
    let bytes: ArrayRef = Arc::new(BinaryViewArray::from(vec![vec![7u8; 40_000].as_slice()]));
    let word: ArrayRef = Arc::new(StringViewArray::from(vec!["word"]));
    for long in [text, bytes] {
        let field = Arc::new(Field::new("f", long.data_type().clone(), true));
        let nested: ArrayRef = Arc::new(StructArray::from(vec![(field, long)]));
        let batch = RecordBatch::try_from_iter([("c0", word.clone()), ("c1", nested)]).unwrap();
        let options = CarbonTableWriterOptions::default();
        let place = tempfile::tempdir().unwrap();
        create(&place.path().join("new"), &batch, &options);
        let options = options.with_dictionary_columns(["c0"]);
        let mut writer =
            CarbonTableWriter::create(place.path().join("old"), &batch.schema(), options).unwrap();
        let error = writer.write(&batch).and_then(|()| writer.finish().map(|_| ())).unwrap_err();
        assert!(error.to_string().contains("releases before 2.0 have at most 32767"), "{error}");
    }
}

#[needs(goldens = "carbondata")]
#[test]
fn tables_of_release_1_6_are_added_to_and_compacted() {
    let options = CarbonTableWriterOptions::default();
    for name in [
        "d16_dict_one",
        "d16_dict_three",
        "d16_dict_minor",
        "d16_columndict",
        "d16_alldict",
        "d16_blocklets",
        "d16_complex",
    ] {
        let (_place, folder, file) = golden(&format!("v1.6/{name}"));
        let before = whole(&open(&folder));
        append(&folder, &before, &options);
        let mut twice = [expected(&file), expected(&file)].concat();
        twice.sort();
        assert_eq!(rows(&checked(&folder)), twice, "{name}");
        compact(&folder, None, options.clone()).unwrap();
        assert_eq!(rows(&checked(&folder)), twice, "{name}");
        let table = open(&folder);
        assert!(table.segments().iter().all(|entry| entry.visibility.as_deref() == Some("true")), "{name}");
        let found = encodings(&folder);
        assert!(found.iter().all(|names| !names.contains("INT_LENGTH")), "{name}: {found:?}");
        // Nor do files of that release name their compressor.
        assert_eq!(files(&folder, ".snappy.carbondata").len(), 0, "{name}");
    }
}

/// Without a load there are no entries of `tablestatus` that would tell the release.
#[needs(goldens = "carbondata")]
#[test]
fn the_first_load_of_a_table_of_release_1_6_has_its_form() {
    let options = CarbonTableWriterOptions::default();
    for (name, is_old) in [
        ("v1.6/d16_complex", true),
        ("v1.6/d16_dict_one", true),
        ("v2.3/complex", false),
        ("v2.3/types", false),
    ] {
        for status in [None, Some("[]")] {
            let (_place, folder, _) = golden(name);
            let batch = whole(&open(&folder));
            std::fs::remove_dir_all(folder.join("Fact")).unwrap();
            let path = folder.join("Metadata/tablestatus");
            match status {
                None => std::fs::remove_file(path).unwrap(),
                Some(text) => std::fs::write(path, text).unwrap(),
            }
            append(&folder, &batch, &options);
            let visibility = open(&folder).segments()[0].visibility.clone();
            assert_eq!(visibility.is_some(), is_old, "{name}");
            assert_eq!(files(&folder, ".snappy.carbondata").is_empty(), is_old, "{name}");
            assert_eq!(rows(&checked(&folder)), rows(&batch), "{name}");
        }
    }
}
