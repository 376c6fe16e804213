//! Files and tables of this writer, read by the real CarbonData: its SDK, and Spark with its integration.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::types::{Date32Type, Float64Type, TimestampMillisecondType};
use arrow_array::{Array, ArrayRef, Date32Array, RecordBatch, StructArray, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Fields, Schema};
use pilaster_carbondata::file::{CarbonFileWriter, CarbonWriterOptions, Compressor, index_file};
use pilaster_carbondata::table::{CarbonFolderWriter, CarbonTableWriter, CarbonTableWriterOptions, compact};
use pilaster_testing::real;
use serde_json::{Value, json};
use support::random::{self, PATTERNS, flat_types, list, map, structure};
use support::{Numbers, cells};

/// The rows that the SDK reads in a folder.
fn sdk_rows(folder: &Path, arguments: &[&str]) -> Result<Vec<Value>, String> {
    let mut program = Command::new(real::tools().join("carbondata-accepts"));
    let output = real::run("carbondata", program.arg(folder).args(arguments)).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(2), "the tool did not run: {errors}");
    if !output.status.success() {
        return Err(errors.lines().rev().take(3).collect::<Vec<_>>().join(" | "));
    }
    let text = String::from_utf8(output.stdout).unwrap();
    Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// What differs between the rows of a batch and those the SDK gave.
fn difference(batch: &RecordBatch, rows: &[Value], is_vector: bool) -> Option<String> {
    if rows.len() != batch.num_rows() {
        return Some(format!("{} rows of {}", rows.len(), batch.num_rows()));
    }
    let schema = batch.schema();
    let mut wrong = std::collections::BTreeMap::<usize, (usize, String)>::new();
    for (row, found) in rows.iter().enumerate() {
        for (place, (column, cell)) in batch.columns().iter().zip(found.as_array().unwrap()).enumerate() {
            // The vector reader takes null bytes for empty ones.
            let is_null_binary = column.data_type() == &DataType::BinaryView && column.is_null(row);
            if is_vector && is_null_binary && cell.as_str() == Some("") {
                continue;
            }
            if !cells::matches(column, row, cell) {
                let text = || {
                    format!("{}: row {row} is {:?}, read {cell}", schema.field(place), column.slice(row, 1))
                };
                wrong.entry(place).or_insert_with(|| (0, text())).0 += 1;
            }
        }
    }
    (!wrong.is_empty()).then(|| {
        let lines: Vec<_> =
            wrong.values().map(|(count, first)| format!("{count} cells of {first}")).collect();
        lines.join("\n")
    })
}

/// A file with its index, as the SDK would name them.
fn write_file(folder: &Path, batch: &RecordBatch, options: &CarbonWriterOptions, compressor: Compressor) {
    let mut writer = CarbonFileWriter::try_new(Vec::new(), &batch.schema(), options).unwrap();
    writer.write(batch).unwrap();
    let (bytes, _, index) = writer.finish().unwrap();
    let name = format!("part-0-1_batchno0-0-null-1.{}.carbondata", compressor.name());
    std::fs::write(folder.join(&name), bytes).unwrap();
    let index = index_file(&[(name, index)], 0).unwrap();
    std::fs::write(folder.join("1_batchno0-0-null-1.carbonindex"), index).unwrap();
}

/// Collects what the SDK got wrong.
#[derive(Default)]
struct Judge {
    reads: usize,
    failures: Vec<String>,
}

impl Judge {
    fn check(&mut self, name: &str, folder: &Path, batch: &RecordBatch, arguments: &[&str]) {
        self.reads += 1;
        let problem = match sdk_rows(folder, arguments) {
            Ok(rows) => difference(batch, &rows, arguments.contains(&"--vector")),
            Err(error) => Some(error),
        };
        if let Some(problem) = problem {
            self.failures.push(format!("{name} {arguments:?}: {problem}"));
        }
    }

    fn file(
        &mut self,
        name: &str,
        batch: &RecordBatch,
        options: CarbonWriterOptions,
        compressor: Compressor,
    ) {
        let folder = tempfile::tempdir().unwrap();
        write_file(folder.path(), batch, &options.with_compressor(compressor), compressor);
        self.check(name, folder.path(), batch, &[]);
        if !batch.schema().fields().iter().any(|field| field.data_type().is_nested()) {
            self.check(name, folder.path(), batch, &["--vector"]);
        }
    }

    fn finish(self) {
        let (reads, failed) = (self.reads, self.failures.len());
        assert!(self.failures.is_empty(), "{failed} of {reads} reads:\n{}", self.failures.join("\n"));
        eprintln!("{reads} reads by the SDK, all rows equal");
    }
}

/// A column of each type and pattern.
fn wide(seed: u64, types: &[DataType], rows: usize, null_percent: u64) -> RecordBatch {
    let mut numbers = Numbers(seed);
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for data_type in types {
        for pattern in PATTERNS {
            let valid: Vec<_> = (0..rows).map(|_| numbers.below(100) >= null_percent).collect();
            fields.push(Field::new(format!("c{}", fields.len()), data_type.clone(), true));
            columns.push(random::column(&mut numbers, data_type, pattern, &valid));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap()
}

#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_reads_every_flat_type_encoding_and_compressor() {
    let mut judge = Judge::default();
    for compressor in Compressor::ALL {
        for dictionary in [true, false] {
            for nulls in [0, 20, 100] {
                let batch = wide(nulls + 1, &flat_types(), 700, nulls);
                let options = CarbonWriterOptions::default()
                    .with_local_dictionary(dictionary)
                    .with_local_dictionary_threshold(200)
                    .with_page_rows(300);
                let name = format!("{} {dictionary} {nulls}", compressor.name());
                judge.file(&name, &batch, options, compressor);
            }
        }
    }
    judge.finish();
}

/// The SDK shows the days that were written, also those that it counts by another calendar; it keeps days from the year 1 on.
#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_shows_days_before_1582() {
    let mut judge = Judge::default();
    let mut numbers = Numbers(1582);
    let days: Vec<i32> = (0..900)
        .map(|row| match row % 3 {
            0 => -719_162 + numbers.below(577_724) as i32,
            1 => -141_438 - numbers.below(40) as i32,
            _ => -141_427 + numbers.below(40) as i32,
        })
        .collect();
    let times = days.iter().map(|day| i64::from(*day) * 86_400_000 + numbers.below(86_400_000) as i64);
    let times: Vec<i64> = times.collect();
    let of = |column: ArrayRef, name: &str| (name.to_string(), column, true);
    let days: ArrayRef = Arc::new(Date32Array::from(days));
    let times: ArrayRef = Arc::new(TimestampMillisecondArray::from(times).with_timezone("UTC"));
    let parts = Fields::from(vec![
        Field::new("day", days.data_type().clone(), true),
        Field::new("time", times.data_type().clone(), true),
    ]);
    let parts: ArrayRef =
        Arc::new(StructArray::new(parts, vec![Arc::clone(&days), Arc::clone(&times)], None));
    let flat = RecordBatch::try_from_iter_with_nullable([of(days, "d"), of(times, "t")]).unwrap();
    let nested = RecordBatch::try_from_iter_with_nullable([of(parts, "parts")]).unwrap();
    let options = CarbonWriterOptions::default().with_page_rows(300);
    judge.file("flat", &flat, options.clone(), Compressor::Snappy);
    judge.file("nested", &nested, options, Compressor::Snappy);
    judge.finish();
}

#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_reads_sort_columns_and_inverted_indexes() {
    let mut judge = Judge::default();
    let types = [
        DataType::Utf8View,
        DataType::Boolean,
        DataType::Int8,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Date32,
        random::timestamp(),
    ];
    for (nulls, dictionary) in [(0, true), (0, false), (20, true), (20, false)] {
        let batch = wide(nulls + 7, &types, 900, nulls);
        let names: Vec<_> = batch.schema().fields().iter().map(|field| field.name().clone()).collect();
        let indexed: Vec<_> = batch
            .schema()
            .fields()
            .iter()
            .filter(|field| matches!(field.data_type(), DataType::Utf8View | DataType::Date32))
            .map(|field| field.name().clone())
            .collect();
        for with_index in [false, true] {
            let options = CarbonWriterOptions::default()
                .with_sort_columns(names.iter().rev())
                .with_local_dictionary(dictionary)
                .with_inverted_index(if with_index { &indexed[..] } else { &[] })
                .with_page_rows(400);
            let name = format!("sorted {nulls} {dictionary} {with_index}");
            judge.file(&name, &batch, options, Compressor::Snappy);
        }
    }
    judge.finish();
}

#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_reads_nested_columns() {
    let mut judge = Judge::default();
    let flat = flat_types();
    let mut kinds: Vec<Vec<DataType>> = vec![
        flat.iter().cloned().map(list).collect(),
        vec![structure(flat.clone())],
        flat.iter().map(|value| map(DataType::Utf8View, value.clone())).collect(),
        vec![
            list(list(DataType::Int32)),
            list(structure(vec![DataType::Utf8View, list(DataType::Date32)])),
            structure(vec![structure(vec![DataType::Int64]), list(structure(vec![DataType::Float64]))]),
            map(DataType::Int32, list(DataType::Utf8View)),
            map(DataType::Utf8View, structure(vec![DataType::Int16, DataType::Boolean])),
            list(map(DataType::Int64, DataType::Utf8View)),
        ],
    ];
    for seed in 0..3 {
        let mut numbers = Numbers(seed);
        kinds.push((0..4).map(|_| random::any_type(&mut numbers, 3)).collect());
    }
    for (kind, types) in kinds.iter().enumerate() {
        for (compressor, dictionary) in [(Compressor::Snappy, true), (Compressor::Zstd, false)] {
            for nulls in [0, 20] {
                let batch = wide(nulls + 3, types, 250, nulls);
                let options =
                    CarbonWriterOptions::default().with_local_dictionary(dictionary).with_page_rows(100);
                judge.file(&format!("nested {kind} {dictionary} {nulls}"), &batch, options, compressor);
            }
        }
    }
    judge.finish();
}

#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_reads_many_pages_blocklets_and_odd_values() {
    let mut judge = Judge::default();
    let types = [DataType::Utf8View, DataType::Int64, DataType::Float64, DataType::Date32];
    let batch = wide(5, &types, 70_000, 5);
    for (blocklet, threshold) in [(64 << 20, 10_000), (1 << 20, 2_000), (1, 10_000)] {
        let options = CarbonWriterOptions::default()
            .with_blocklet_bytes(blocklet)
            .with_local_dictionary_threshold(threshold)
            .with_sort_columns(["c0", "c5"]);
        judge.file(&format!("pages {blocklet}"), &batch, options, Compressor::Snappy);
    }
    let one = wide(5, &flat_types(), 1, 0);
    judge.file("one row", &one, CarbonWriterOptions::default(), Compressor::Snappy);
    let texts = wide(9, &[DataType::Utf8View], 600, 0);
    for dictionary in [false, true] {
        let options = CarbonWriterOptions::default()
            .with_long_strings(["c0", "c1", "c2", "c3"])
            .with_local_dictionary(dictionary)
            .with_page_bytes(3000);
        judge.file("long texts", &texts, options, Compressor::Gzip);
    }
    judge.finish();
}

#[test]
#[ignore = "runs the real CarbonData SDK, which is fetched once (carbondata-accepts in PILASTER_TOOLS)"]
fn the_sdk_filters_a_sorted_folder_of_several_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("f");
    let batch = wide(11, &[DataType::Utf8View, DataType::Int32, DataType::Int64], 6000, 0);
    let options = CarbonWriterOptions::default()
        .with_sort_columns(["c6", "c0"])
        .with_page_rows(500)
        .with_blocklet_bytes(1)
        .with_block_bytes(100_000);
    let mut writer = CarbonFolderWriter::create(&folder, &batch.schema(), &options).unwrap();
    writer.write(&batch).unwrap();
    let summary = writer.finish().unwrap();
    assert!(summary.files > 2, "{summary:?}");
    let values = support::column_values::<arrow_array::types::Int32Type>(&batch, "c6");
    for (sign, pivot) in [("=", values[17]), ("<", values[99]), (">", values[7]), (">=", 0)] {
        let wanted = values
            .iter()
            .filter(|value| match sign {
                "=" => **value == pivot,
                "<" => **value < pivot,
                ">" => **value > pivot,
                _ => **value >= pivot,
            })
            .count();
        let found = sdk_rows(&folder, &["--filter", "c6", sign, &pivot.to_string()]).unwrap();
        assert_eq!(found.len(), wanted, "c6 {sign} {pivot}");
    }
    assert_eq!(sdk_rows(&folder, &[]).unwrap().len(), 6000);
}

/// The rows that Spark selects from a table, in the order of their texts.
fn spark_rows(table: &Path) -> Vec<String> {
    // Two of them at once take away each other's folders.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let mut program = Command::new(real::tools().join("carbondata-spark-accepts"));
    let output = real::run("carbondata in spark", program.arg(table)).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Spark refused: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut rows: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap().to_string()).collect();
    rows.sort();
    rows
}

fn sum(parts: &[&RecordBatch]) -> Vec<String> {
    let mut all: Vec<_> = parts.iter().flat_map(|batch| support::rows::rows(batch)).collect();
    all.sort();
    all
}

fn write_table(folder: &Path, batch: &RecordBatch, options: &CarbonTableWriterOptions) {
    let mut writer = match folder.exists() {
        true => CarbonTableWriter::append(folder, options.clone()).unwrap(),
        false => CarbonTableWriter::create(folder, &batch.schema(), options.clone()).unwrap(),
    };
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

/// Types that Spark's SQL has for CarbonData.
fn spark_types() -> Vec<DataType> {
    flat_types()
        .into_iter()
        .filter(|data_type| !matches!(data_type, DataType::Int8 | DataType::Float32))
        .collect()
}

#[test]
#[ignore = "runs the real Spark, which is fetched once (carbondata-spark-accepts in PILASTER_TOOLS)"]
fn spark_reads_loads_and_a_compacted_table() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("t");
    let mut types = spark_types();
    types.extend([
        list(DataType::Utf8View),
        structure(vec![DataType::Int32, DataType::Utf8View]),
        map(DataType::Utf8View, DataType::Int64),
    ]);
    let (first, second) = (wide(1, &types, 300, 15), wide(2, &types, 200, 0));
    let options = CarbonTableWriterOptions::default().with_files(
        CarbonWriterOptions::default().with_sort_columns(["c4", "c0", "c40"]).with_page_rows(100),
    );
    write_table(&folder, &first, &options);
    assert_eq!(spark_rows(&folder), sum(&[&first]));
    write_table(&folder, &second, &options);
    assert_eq!(spark_rows(&folder), sum(&[&first, &second]));
    compact(&folder, None, options.clone()).unwrap();
    write_table(&folder, &second, &options);
    assert_eq!(spark_rows(&folder), sum(&[&first, &second, &second]));
}

#[test]
#[ignore = "runs the real Spark, which is fetched once (carbondata-spark-accepts in PILASTER_TOOLS)"]
fn spark_reads_buckets_and_partitions() {
    let place = tempfile::tempdir().unwrap();
    let types = [DataType::Utf8View, DataType::Int32, DataType::Date32, DataType::Float64];
    let (first, second) = (wide(3, &types, 300, 10), wide(4, &types, 200, 10));
    for (name, options) in [
        ("bucketed", CarbonTableWriterOptions::default().with_buckets(["c0", "c5"], 4)),
        ("partitioned", CarbonTableWriterOptions::default().with_partition_columns(["c0", "c4"])),
    ] {
        let folder = place.path().join(name);
        write_table(&folder, &first, &options);
        write_table(&folder, &second, &options.clone().with_merged_index(false));
        assert_eq!(spark_rows(&folder), sum(&[&first, &second]), "{name}");
        compact(&folder, None, options.clone()).unwrap();
        assert_eq!(spark_rows(&folder), sum(&[&first, &second]), "{name}");
    }
}

/// A cell as the input format of release 1.6 gives it: days and microseconds as numbers, words of a dictionary as texts.
fn old_form(array: &ArrayRef, row: usize, has_dictionary: bool) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Date32 => json!(array.as_primitive::<Date32Type>().value(row)),
        DataType::Timestamp(..) => {
            json!(array.as_primitive::<TimestampMillisecondType>().value(row) * 1000)
        }
        DataType::Float64 => json!(array.as_primitive::<Float64Type>().value(row)),
        DataType::List(_) => {
            let items = array.as_list::<i32>().value(row);
            Value::Array((0..items.len()).map(|item| old_form(&items, item, false)).collect())
        }
        DataType::Struct(_) => {
            let columns = array.as_struct().columns();
            Value::Array(columns.iter().map(|column| old_form(column, row, false)).collect())
        }
        DataType::Map(..) => {
            let entries = array.as_map().value(row);
            let all =
                |column: &ArrayRef| (0..column.len()).map(|item| old_form(column, item, false)).collect();
            Value::Array(vec![Value::Array(all(entries.column(0))), Value::Array(all(entries.column(1)))])
        }
        _ => match (cells::scalar(array, row), has_dictionary) {
            (Value::Number(number), true) => json!(number.to_string()),
            (cell, _) => cell,
        },
    }
}

/// Null where the format knows no difference: arrays and structs of nothing but nulls; the word that stands for null.
fn without_null_forms(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            let items: Vec<_> = items.into_iter().map(without_null_forms).collect();
            let is_null = !items.is_empty() && items.iter().all(Value::is_null);
            if is_null { Value::Null } else { Value::Array(items) }
        }
        Value::String(text) if text == "@NU#LL$!" => Value::Null,
        other => other,
    }
}

/// The rows that release 1.6 reads in a table, sorted by their text.
fn old_rows(folder: &Path) -> Vec<String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/release_1_6/accepts");
    let mut program = Command::new(script);
    program.arg(folder).env("PILASTER_TOOLS", real::tools());
    let output = real::run("carbondata 1.6", &mut program).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| without_null_forms(serde_json::from_str(line).unwrap()).to_string();
    let mut rows: Vec<_> = text.lines().map(row).collect();
    rows.sort();
    rows
}

/// Tables with dictionaries, which releases since 2.0 refuse: nested columns beside them, a second load, a compaction.
#[test]
#[ignore = "runs release 1.6 of the real CarbonData, which is fetched once"]
fn release_1_6_reads_nested_columns_beside_dictionaries() {
    let kinds = [
        DataType::Utf8View,
        DataType::Int16,
        DataType::Int32,
        DataType::Int64,
        DataType::Float64,
        DataType::Decimal128(12, 3),
        DataType::Decimal128(30, 6),
        random::timestamp(),
        DataType::Date32,
        DataType::Boolean,
    ];
    let mut types = vec![DataType::Utf8View, DataType::Int32, DataType::Decimal128(9, 2), DataType::Date32];
    types.extend(kinds.iter().map(|kind| list(kind.clone())));
    types.push(structure(kinds.to_vec()));
    types.push(list(structure(vec![DataType::Int32, list(DataType::Utf8View)])));
    types.push(map(DataType::Utf8View, DataType::Int64));
    // Each type makes four columns.
    let dictionaries = ["c0", "c2", "c4", "c8"];
    for local_dictionary in [true, false] {
        let files = CarbonWriterOptions::default().with_local_dictionary(local_dictionary).with_page_rows(90);
        let options =
            CarbonTableWriterOptions::default().with_files(files).with_dictionary_columns(dictionaries);
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("t");
        let (first, second) = (wide(31, &types, 200, 10), wide(32, &types, 150, 0));
        write_table(&folder, &first, &options);
        let expected = |batches: &[&RecordBatch]| {
            let row = |batch: &RecordBatch, row: usize| {
                let cells = batch.columns().iter().enumerate();
                let cells = cells.map(|(place, column)| {
                    old_form(column, row, dictionaries.contains(&format!("c{place}").as_str()))
                });
                without_null_forms(Value::Array(cells.collect())).to_string()
            };
            let mut rows: Vec<_> =
                batches.iter().flat_map(|batch| (0..batch.num_rows()).map(|n| row(batch, n))).collect();
            rows.sort();
            rows
        };
        let same = |found: Vec<String>, wanted: Vec<String>| {
            assert_eq!(found.len(), wanted.len());
            let differing = found.iter().zip(&wanted).filter(|(found, wanted)| found != wanted);
            let differing: Vec<_> = differing.take(2).collect();
            assert!(differing.is_empty(), "{differing:#?}");
        };
        same(old_rows(&folder), expected(&[&first]));
        let mut writer = CarbonTableWriter::append(&folder, options.clone()).unwrap();
        writer.write(&second).unwrap();
        writer.finish().unwrap();
        same(old_rows(&folder), expected(&[&first, &second]));
        compact(&folder, None, options).unwrap();
        same(old_rows(&folder), expected(&[&first, &second]));
    }
}

/// What is loaded into tables of the engine is in the form of their release.
#[test]
#[ignore = "runs release 1.6 of the real CarbonData, which is fetched once"]
fn release_1_6_reads_loads_into_its_own_tables() {
    let root = support::goldens();
    for name in ["d16_complex", "d16_dict_three"] {
        let copy = support::damage::Copy::of(&root.join("table/v1.6").join(name), "release-1-6");
        let before = old_rows(&copy.1);
        assert!(!before.is_empty());
        let batch = support::tables::whole(&support::tables::open(&copy.1));
        let options = CarbonTableWriterOptions::default();
        write_table(&copy.1, &batch, &options);
        let mut twice = [before.clone(), before].concat();
        twice.sort();
        assert_eq!(old_rows(&copy.1), twice, "{name}");
        compact(&copy.1, None, options).unwrap();
        assert_eq!(old_rows(&copy.1), twice, "{name}");
    }
}
