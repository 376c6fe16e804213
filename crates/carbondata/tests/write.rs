//! What is written is read back: any schema, any rows, any options.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    reason = "tests compute with known values"
)]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, Int32Array, LargeStringArray, ListArray, RecordBatch, StringArray,
    StringViewArray, TimestampNanosecondArray, UInt32Array,
};
use arrow_schema::DataType;
use arrow_select::concat::concat_batches;
use pilaster_carbondata::file::{
    CarbonFileReader, CarbonFileWriter, CarbonWriterOptions, IndexFile, WriteSummary, index_file,
};
use pilaster_core::progress::Silent;
use pilaster_core::{Dataset, Limits, Result, VerifyDepth};
use proptest::prelude::*;
use support::random::{self, any_type};
use support::{Numbers, batches, memory};

fn write(batch: &RecordBatch, options: &CarbonWriterOptions, step: usize) -> Result<(Vec<u8>, WriteSummary)> {
    let mut writer = CarbonFileWriter::try_new(Vec::new(), &batch.schema(), options)?;
    let mut from = 0;
    while from < batch.num_rows() {
        let rows = step.min(batch.num_rows() - from);
        writer.write(&batch.slice(from, rows))?;
        from += rows;
    }
    let (bytes, summary, index) = writer.finish()?;
    let file = CarbonFileReader::open(memory("x", bytes.clone()))?;
    let bytes_of_index = index_file(&[("part-0.carbondata".into(), index)], 0)?;
    let parsed = IndexFile::open(&memory("x", bytes_of_index), &Limits::default())?;
    assert_eq!(parsed.header.columns, file.header().columns);
    assert_eq!(parsed.blocklets.len() as u64, summary.blocklets);
    assert_eq!(parsed.blocklets[0].file_size, Some(bytes.len() as i64));
    Ok((bytes, summary))
}

fn read(bytes: Vec<u8>) -> RecordBatch {
    let file = CarbonFileReader::open(memory("x", bytes)).unwrap();
    let report = file.verify(VerifyDepth::Values, &Silent).unwrap();
    assert_eq!(report.findings, []);
    concat_batches(&file.schema(), &batches(file.scan()).unwrap()).unwrap()
}

fn check(seed: u64, depth: u64) {
    let mut numbers = Numbers(seed);
    let types: Vec<_> = (0..=numbers.below(6)).map(|_| any_type(&mut numbers, depth)).collect();
    let rows = 1 + numbers.below(700) as usize;
    let batch = random::batch(&mut numbers, &types, rows);
    let options = random::options(&mut numbers, &batch);
    let step = 1 + numbers.below(300) as usize;
    let (bytes, summary) = write(&batch, &options, step).unwrap();
    assert_eq!((summary.rows, summary.data_bytes), (rows as u64, bytes.len() as u64));
    assert_eq!(summary.conflated, 0);
    let found = read(bytes);
    assert_eq!(found.schema().fields(), batch.schema().fields());
    for (place, (found, wanted)) in found.columns().iter().zip(batch.columns()).enumerate() {
        assert_eq!(found, wanted, "column {place} of seed {seed} with {options:?}");
    }
}

#[test]
fn every_type_comes_back_with_every_option() {
    for seed in 0..300 {
        check(seed, seed % 4);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_rows_come_back(seed in any::<u64>(), depth in 0u64..4) {
        check(seed, depth);
    }
}

fn one(array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("a", array, true)]).unwrap()
}

fn column(array: ArrayRef, options: &CarbonWriterOptions) -> (ArrayRef, u64) {
    let (bytes, summary) = write(&one(array), options, usize::MAX).unwrap();
    (Arc::clone(read(bytes).column(0)), summary.conflated)
}

#[test]
fn other_arrow_types_are_stored_as_the_nearest() {
    let options = CarbonWriterOptions::default();
    let (found, _) = column(Arc::new(LargeStringArray::from(vec![Some("x"), None])), &options);
    assert_eq!(found.as_string_view().iter().collect::<Vec<_>>(), [Some("x"), None]);
    let (found, _) = column(Arc::new(UInt32Array::from(vec![u32::MAX])), &options);
    assert_eq!(found.data_type(), &DataType::Int64);
    let exact: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![5_000_000]));
    assert_eq!(column(exact, &options).0.len(), 1);
    let fine: ArrayRef = Arc::new(TimestampNanosecondArray::from(vec![5_000_001]));
    let error = write(&one(fine), &options, 9).unwrap_err().to_string();
    assert_eq!(error, "column \"a\": a time finer than the milliseconds that CarbonData keeps");
}

#[test]
fn names_are_in_lower_case_inside_of_columns_too() {
    let fields = vec![
        arrow_schema::Field::new("Second", DataType::Int32, true),
        arrow_schema::Field::new("FIRST", DataType::Utf8, true),
    ];
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int32Array::from(vec![7])), Arc::new(StringArray::from(vec!["x"]))];
    let structs = arrow_array::StructArray::new(fields.into(), columns, None);
    let batch = RecordBatch::try_from_iter([("TOP", Arc::new(structs) as ArrayRef)]).unwrap();
    let (bytes, _) = write(&batch, &CarbonWriterOptions::default(), 9).unwrap();
    let found = read(bytes);
    assert_eq!(found.schema().field(0).name(), "top");
    let found = found.column(0).as_struct();
    assert_eq!(found.column_names(), ["second", "first"]);
    assert_eq!(found.column(0).as_primitive::<arrow_array::types::Int32Type>().value(0), 7);
    assert_eq!(found.column(1).as_string_view().value(0), "x");
}

#[test]
fn what_cannot_be_told_from_null_is_refused_or_counted() {
    let plain = CarbonWriterOptions::default().with_local_dictionary(false);
    let marker: ArrayRef = Arc::new(StringArray::from(vec!["@NU#LL$!"]));
    let error = write(&one(marker), &plain, 9).unwrap_err().to_string();
    assert_eq!(error, "column \"a\": a text that stands for null: \"@NU#LL$!\"");
    let long: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(32_768)]));
    assert!(write(&one(Arc::clone(&long)), &plain, 9).is_err());
    let varchar = plain.clone().with_long_strings(["a"]);
    assert_eq!(column(long, &varchar).0.as_string_view().value(0).len(), 32_768);
    let nulls: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let (found, lost) = column(Arc::clone(&nulls), &varchar);
    assert_eq!((found.as_string_view().value(1), lost), ("", 1));
    // A dictionary has a code for null.
    let (found, lost) = column(nulls, &varchar.with_local_dictionary(true));
    assert_eq!((found.is_null(1), lost), (true, 0));
    let (found, lost) = column(Arc::new(BinaryArray::from(vec![Some(&b""[..]), None])), &plain);
    assert_eq!((found.null_count(), lost), (2, 1));
    let lists = ListArray::from_iter_primitive::<arrow_array::types::Int32Type, _, _>([
        Some(vec![None]),
        None,
        Some(vec![]),
    ]);
    let (found, lost) = column(Arc::new(lists), &plain);
    assert_eq!((found.null_count(), found.is_null(2), lost), (2, false, 1));
}

#[test]
fn a_dictionary_that_grows_too_large_is_given_up_for_all_pages() {
    let texts: StringViewArray = (0..500).map(|row| Some(format!("{}", row / 100 * row))).collect();
    let long: StringViewArray = (0..500).map(|row| (row % 7 > 0).then(|| format!("v{}", row / 3))).collect();
    let columns: [(&str, ArrayRef); 2] = [("s", Arc::new(texts)), ("v", Arc::new(long))];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let options = CarbonWriterOptions::default()
        .with_page_rows(60)
        .with_local_dictionary_threshold(90)
        .with_sort_columns(["s"])
        .with_inverted_index(["s"])
        .with_long_strings(["v"]);
    let (bytes, summary) = write(&batch, &options, 33).unwrap();
    let found = read(bytes);
    assert_eq!(found.column(0), batch.column(0));
    assert_eq!(summary.conflated, batch.column(1).null_count() as u64);
    let as_empty: StringViewArray =
        batch.column(1).as_string_view().iter().map(|text| Some(text.unwrap_or_default())).collect();
    assert_eq!(found.column(1).as_string_view(), &as_empty);
}

#[test]
fn files_without_rows_and_batches_of_other_columns_are_refused() {
    let batch = one(Arc::new(Int32Array::from(vec![1])));
    let options = CarbonWriterOptions::default();
    let writer = CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &options).unwrap();
    assert!(writer.finish().is_err());
    let mut writer = CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &options).unwrap();
    let other = RecordBatch::try_from_iter([("b", Arc::clone(batch.column(0)))]).unwrap();
    assert_eq!(writer.write(&other).unwrap_err().to_string(), "a batch without column \"a\"");
}
