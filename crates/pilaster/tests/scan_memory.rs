//! Files of many columns whose blocks unpack to far more than a scan may hold: all rows come within the budget, or what cannot be split
//! is refused. A process of its own reads each file, because one never gives its memory back to the last byte.
#![cfg(all(target_os = "linux", feature = "carbondata", feature = "redfile"))]
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

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{env, fs};

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray};
use arrow_cast::cast;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions};
use arrow_schema::DataType;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::output::WriteOptions;
use pilaster::redfile::RedfileWriterOptions;
use pilaster::{Limits, LossLog, OpenOptions, OutputFormat, ScanRequest, col, lit};

const COLUMNS: usize = 30;
const ROWS: usize = 8_000;
const TEXT_BYTES: usize = 300;
/// What the pages of all columns take that a scan has open at a time, if nobody counts them.
const ALL_BYTES: u64 = (COLUMNS * ROWS * TEXT_BYTES) as u64;
const BUDGET: u64 = 24 << 20;
/// Over what was in use before: the budget, a page that is being unpacked and decoded, and what the allocator keeps.
const MOST: u64 = 64 << 20;
/// Where a reading process finds the file.
const FILE: &str = "PILASTER_TEST_FILE";

/// Texts that differ and are all but the same.
fn texts() -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..ROWS).map(text)))
}

fn text(row: usize) -> String {
    format!("{row:0TEXT_BYTES$}")
}

fn batch(column: &ArrayRef, columns: usize) -> RecordBatch {
    RecordBatch::try_from_iter((0..columns).map(|n| (format!("c{n}"), Arc::clone(column)))).unwrap()
}

fn parquet(path: &Path, batch: &RecordBatch, has_dictionary: bool) {
    let properties = WriterProperties::builder()
        .set_dictionary_enabled(has_dictionary)
        .set_dictionary_page_size_limit(64 << 20)
        .set_data_page_size_limit(64 << 20)
        .set_data_page_row_count_limit(ROWS)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).unwrap()))
        .build();
    let mut writer =
        ArrowWriter::try_new(fs::File::create(path).unwrap(), batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn arrow(path: &Path, batch: &RecordBatch) {
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD)).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = FileWriter::try_new_with_options(file, &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

fn converted(source: &Path, target: PathBuf, format: OutputFormat) -> PathBuf {
    let dataset = pilaster::open(source.to_str().unwrap()).unwrap();
    let write = WriteOptions::default().with_redfile(
        RedfileWriterOptions::default().with_page_bytes(64 << 20).with_row_group_bytes(1 << 30),
    );
    let options = ConvertOptions::default().with_write(write);
    let to = ConvertTarget::new(target.clone(), format);
    convert(dataset.as_ref(), &ScanRequest::default(), &to, &options, &Silent).unwrap();
    target
}

/// Memory that this process has in use, or had at most, in bytes.
fn memory_of(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

fn size_of(path: &Path) -> u64 {
    let size = |path: &Path| fs::metadata(path).unwrap().len();
    match path.is_dir() {
        true => fs::read_dir(path).unwrap().map(|entry| size_of(&entry.unwrap().path())).sum(),
        false => size(path),
    }
}

/// Has this test read a file in another process; gives how much memory that took.
fn read_elsewhere(path: &Path, budget: u64) -> u64 {
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", "columns_share_the_budget_of_a_scan", "--nocapture"])
        .env(FILE, path)
        .env("PILASTER_TEST_BUDGET", budget.to_string())
        .output()
        .unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success(), "{}: {said}", path.display());
    let taken = said.split("taken: ").nth(1).unwrap();
    taken.split_whitespace().next().unwrap().parse().unwrap()
}

fn options(budget: u64) -> OpenOptions {
    OpenOptions::default().with_limits(Limits { scan_bytes: budget, ..Limits::default() })
}

/// Reads all rows, passing over damage, and some of them by a condition.
fn read(path: &Path, budget: u64) {
    let dataset = options(budget).open(path.to_str().unwrap()).unwrap();
    let losses = Arc::new(LossLog::new());
    let before = memory_of("VmHWM");
    let first = text(ROWS - 300);
    let filtered = dataset.scan().filter(col("c1").gt_eq(lit(first.as_str())));
    for (scan, start) in
        [(dataset.scan().row_numbers("row").skip_damage(Arc::clone(&losses)), 0), (filtered, ROWS - 300)]
    {
        let mut row = start;
        for batch in scan.read().unwrap() {
            let batch = batch.unwrap();
            for column in &batch.columns()[..COLUMNS] {
                let column = cast(column, &DataType::Utf8View).unwrap();
                let ends = [0, batch.num_rows() - 1].map(|at| column.as_string_view().value(at).to_string());
                assert_eq!(ends, [text(row), text(row + batch.num_rows() - 1)]);
            }
            row += batch.num_rows();
        }
        assert_eq!(row, ROWS);
    }
    assert!(losses.losses().is_empty(), "{:?}", losses.losses());
    println!("taken: {}", memory_of("VmHWM") - before);
}

#[test]
fn columns_share_the_budget_of_a_scan() {
    if let Some(path) = env::var_os(FILE) {
        let budget = env::var("PILASTER_TEST_BUDGET").unwrap().parse().unwrap();
        return read(Path::new(&path), budget);
    }
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let rows = batch(&texts(), COLUMNS);
    parquet(&at("plain.parquet"), &rows, false);
    parquet(&at("words.parquet"), &rows, true);
    let source = at("plain.parquet");
    let paths = [
        converted(&source, at("x.red"), OutputFormat::Redfile),
        converted(&source, at("table"), OutputFormat::CarbonData),
        at("words.parquet"),
        at("plain.parquet"),
    ];
    drop(rows);
    for path in paths {
        let size = size_of(&path);
        assert!(size < ALL_BYTES / 10, "{}: {size} bytes are no small file", path.display());
        let (wide, narrow) = (read_elsewhere(&path, ALL_BYTES * 8), read_elsewhere(&path, BUDGET));
        eprintln!("{}: {size} bytes, {wide} taken, {narrow} within the budget", path.display());
        assert!(wide > ALL_BYTES * 2 / 3, "{}: {wide} taken: its blocks are too small", path.display());
        assert!(narrow < MOST, "{}: {narrow} taken", path.display());
    }
}

/// Record batches of Arrow are decoded whole.
#[test]
fn arrow_batches_that_unpack_to_too_much_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.arrow");
    let spaces: ArrayRef = Arc::new(StringArray::from(vec![" ".repeat(1000); 1000]));
    for (name, column) in [
        ("values", spaces),
        ("words", {
            let words = StringArray::from(vec![" ".repeat(1 << 20)]);
            Arc::new(DictionaryArray::new(Int32Array::from(vec![0; 10]), Arc::new(words)))
        }),
    ] {
        let rows = batch(&column, 8);
        arrow(&path, &rows);
        let read = |scan_bytes| -> pilaster::Result<usize> {
            let dataset = options(scan_bytes).open(path.to_str().unwrap())?;
            let mut rows = 0;
            for batch in dataset.scan().read()? {
                rows += batch.map_err(pilaster::Error::from)?.num_rows();
            }
            Ok(rows)
        };
        assert_eq!(read(Limits::default().scan_bytes).unwrap(), rows.num_rows(), "{name}");
        let error = read(1 << 20).unwrap_err();
        assert!(
            matches!(error.kind(), pilaster::ErrorKind::LimitExceeded { limit: "scan_bytes", .. }),
            "{error}"
        );
        assert!(error.to_string().contains("x.arrow: arrow message"), "{error}");
    }
}

/// A word of a dictionary that each row has is not written out for all of them at once.
#[test]
fn long_words_of_parquet_are_given_in_small_batches() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("x.parquet");
    let word = "w".repeat(100_000);
    let words: ArrayRef = Arc::new(StringArray::from(vec![word.as_str(); 5000]));
    parquet(&path, &batch(&words, 2), true);
    let dataset = options(BUDGET).open(path.to_str().unwrap()).unwrap();
    let numbered = dataset.scan().row_numbers("n").read().unwrap();
    for (reader, columns) in [(dataset.scan().read().unwrap(), 2), (numbered, 3)] {
        let mut rows = 0;
        for batch in reader {
            let batch = batch.unwrap();
            assert!(batch.num_rows() as u64 * 200_000 <= BUDGET / 4, "{} rows", batch.num_rows());
            assert_eq!(batch.num_columns(), columns);
            for column in &batch.columns()[..2] {
                assert!(column.as_string::<i32>().iter().all(|found| found == Some(&word)));
            }
            rows += batch.num_rows();
        }
        assert_eq!(rows, 5000);
    }
}
