//! What is written comes back: any schema, any values, any options.
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

mod support;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, Decimal32Array, Decimal64Array, DictionaryArray, Int32Array, Int64Array, ListArray,
    RecordBatch, StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, RowRanges, SourceRef, VerifyDepth};
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{
    DataFile, EncodingChoice, RedfileReader, RedfileReaderOptions, RedfileSchema, RedfileWriter,
    RedfileWriterOptions, write_table_file,
};
use proptest::prelude::*;

use support::{Numbers, memory, one_batch, open, random, read_all, row_groups, write};

fn any_options(numbers: &mut Numbers) -> RedfileWriterOptions {
    let mut flag = || numbers.below(4) > 0;
    let mut options = RedfileWriterOptions::default()
        .with_replica(flag())
        .with_index_pages(flag())
        .with_statistics(flag())
        .with_checksums(flag())
        .with_row_group_extent(flag())
        .with_page_row_counts(flag());
    options = options
        .with_page_bytes([1, 30, 200, 8192][numbers.below(4) as usize])
        .with_codec(Compression::ALL[numbers.below(4) as usize])
        .with_encoding(
            [EncodingChoice::Auto, EncodingChoice::Plain, EncodingChoice::GroupVarInt]
                [numbers.below(3) as usize],
        )
        .with_checkpoint_interval(numbers.below(4) as u32);
    if numbers.below(2) == 0 {
        options = options.with_row_group_rows(1 + numbers.below(50));
    }
    options
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_table_survives(seed in any::<u64>()) {
        let mut numbers = Numbers(seed);
        let batch = random::table(&mut numbers);
        let options = any_options(&mut numbers);
        let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), options.clone()).unwrap();
        let mut from = 0;
        while from < batch.num_rows() {
            let rows = (1 + numbers.below(100) as usize).min(batch.num_rows() - from);
            writer.write(&batch.slice(from, rows)).unwrap();
            from += rows;
        }
        let (bytes, summary) = writer.finish().unwrap();
        prop_assert_eq!(summary.rows as usize, batch.num_rows());
        prop_assert_eq!(summary.bytes as usize, bytes.len());
        let reader = open(&bytes).unwrap();
        prop_assert_eq!(reader.schema(), batch.schema(), "{:?}", options);
        let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
        prop_assert!(report.findings.is_empty(), "{:?} {:?} {:?}", report.findings, batch.schema(), options);
        let size = 1 + numbers.below(700) as usize;
        // Batch by batch: Arrow cannot put every type together.
        let mut at = 0;
        for found in support::batches(reader.scan().batch_size(size)).unwrap() {
            let wanted = batch.slice(at, found.num_rows());
            at += found.num_rows();
            for (column, (a, b)) in found.columns().iter().zip(wanted.columns()).enumerate() {
                prop_assert_eq!(a, b, "column {} of {:?} {:?}", column, batch.schema(), options);
            }
        }
        prop_assert_eq!(at, batch.num_rows());
        // Any stretch of rows, through the index or without.
        if batch.num_rows() > 0 {
            let start = numbers.below(batch.num_rows() as u64);
            let end = (start + 1 + numbers.below(9)).min(batch.num_rows() as u64);
            let mut at = start as usize;
            for part in support::batches(reader.scan().rows(RowRanges::one(start..end))).unwrap() {
                let wanted = batch.slice(at, part.num_rows());
                at += part.num_rows();
                for (a, b) in part.columns().iter().zip(wanted.columns()) {
                    prop_assert_eq!(a, b, "rows {}..{} of {:?} {:?}", start, end, batch.schema(), options);
                }
            }
            prop_assert_eq!(at as u64, end);
        }
        reader.describe().unwrap();
        reader.pages().unwrap();
        reader.column_statistics().unwrap();
    }
}

fn two_columns(rows: i64) -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(0..rows))),
        ("word", Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("word {row}"))))),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// Opens a metadata file whose data files are in memory.
fn open_with(bytes: Vec<u8>, files: Vec<(String, Vec<u8>)>) -> pilaster_core::Result<RedfileReader> {
    let options = RedfileReaderOptions::default().with_data_files(move |path| {
        let found = files.iter().find(|(name, _)| name == path);
        let (name, bytes) = found.ok_or_else(|| pilaster_core::Error::invalid(format!("no file {path}")))?;
        Ok(Arc::new(MemorySource::new(name.clone(), bytes.clone())) as SourceRef)
    });
    RedfileReader::open_with_options(memory("table.red", bytes), &options)
}

#[test]
fn columns_may_lie_in_files_of_their_own() {
    let batch = two_columns(100);
    let schema = RedfileSchema::from_arrow(&batch.schema()).unwrap();
    let files = ["a.reddata", "b.reddata"].map(|path| DataFile { path: path.to_string(), sink: Vec::new() });
    let place = |path: &[String]| Some(usize::from(path[0] == "word"));
    let options = RedfileWriterOptions::default().with_row_group_rows(30);
    let mut writer =
        RedfileWriter::try_new_with_data_files(Vec::new(), files.into(), &place, schema, options).unwrap();
    writer.write(&batch).unwrap();
    let (bytes, sinks, summary) = writer.finish_all().unwrap();
    assert_eq!(summary.bytes as usize, bytes.len() + sinks.iter().map(Vec::len).sum::<usize>());
    let named: Vec<_> = ["a.reddata", "b.reddata"].map(str::to_string).into_iter().zip(sinks).collect();
    // A data file alone has no metadata.
    let error = open(&named[0].1).unwrap_err().to_string();
    assert!(error.contains("no file metadata"), "{error}");
    let reader = open_with(bytes.clone(), named.clone()).unwrap();
    assert_eq!(one_batch(reader.scan()).unwrap(), batch);
    assert_eq!(reader.size_bytes(), summary.bytes);
    // A missing file loses its own chunks and no others.
    let reader = open_with(bytes, named[..1].to_vec()).unwrap();
    assert!(one_batch(reader.scan()).is_err());
    assert_eq!(one_batch(reader.scan().project(["id"])).unwrap().column(0), batch.column(0));
    let report = reader.inspect();
    assert_eq!(report.lost_chunks.len(), 4);
    assert!(
        report
            .lost_chunks
            .iter()
            .all(|loss| loss.column == "word" && loss.reason.to_string().starts_with("data file"))
    );
}

#[test]
fn one_metadata_file_makes_a_table_of_several_files() {
    let batch = two_columns(100);
    let parts: Vec<_> = (0..4)
        .map(|part| {
            let bytes = write(&batch.slice(part * 25, 25), RedfileWriterOptions::default()).unwrap();
            (format!("parts/{part}.red"), bytes)
        })
        .collect();
    let metadata: Vec<_> =
        parts.iter().map(|(path, bytes)| (path.clone(), open(bytes).unwrap().metadata().clone())).collect();
    let table = write_table_file(Vec::new(), &metadata).unwrap();
    let reader = open_with(table, parts).unwrap();
    assert_eq!(row_groups(&reader).len(), 4);
    assert_eq!(one_batch(reader.scan()).unwrap(), batch);
    let report = reader.verify(VerifyDepth::Values, &Silent).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}

#[test]
fn row_groups_end_at_their_size() {
    let batch = two_columns(50_000);
    let options = RedfileWriterOptions::default().with_row_group_bytes(200_000);
    let bytes = write(&batch, options).unwrap();
    let reader = open(&bytes).unwrap();
    let groups = &reader.metadata().row_groups;
    assert!(groups.len() >= 4, "{}", groups.len());
    let (_, whole) = groups.split_last().unwrap();
    assert!(whole.iter().all(|group| (150_000..400_000).contains(&group.total_byte_size)));
    assert_eq!(one_batch(reader.scan()).unwrap(), batch);
}

#[test]
fn tables_without_rows_or_columns_are_files_too() {
    let empty = two_columns(0);
    let reader = open(&write(&empty, RedfileWriterOptions::default()).unwrap()).unwrap();
    assert_eq!((reader.row_count(), reader.schema()), (Some(0), empty.schema()));
    assert!(reader.metadata().row_groups.is_empty());
    let nothing = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        vec![],
        &arrow_array::RecordBatchOptions::new().with_row_count(Some(9)),
    )
    .unwrap();
    let reader = open(&write(&nothing, RedfileWriterOptions::default()).unwrap()).unwrap();
    assert_eq!(reader.row_count(), Some(9));
    let rows: usize =
        support::batches(reader.scan().batch_size(4)).unwrap().iter().map(RecordBatch::num_rows).sum();
    assert_eq!(rows, 9);
}

#[test]
fn what_has_no_form_is_refused_in_words() {
    let refused =
        |field: Field| RedfileSchema::from_arrow(&Schema::new(vec![field])).unwrap_err().to_string();
    let empty = Field::new("s", DataType::Struct(arrow_schema::Fields::empty()), true);
    assert_eq!(refused(empty), "struct \"s\" without fields");
    let children = [(0i8, Arc::new(Field::new("a", DataType::Int8, true)))];
    let union = DataType::Union(children.into_iter().collect(), arrow_schema::UnionMode::Sparse);
    assert_eq!(refused(Field::new("u", union, true)), "union \"u\" that may be null");
    let required: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, false)]));
    let batch = RecordBatch::try_from_iter_with_nullable([("a", required, true)]).unwrap();
    let mut writer = RedfileWriter::try_new(Vec::new(), &schema, RedfileWriterOptions::default()).unwrap();
    assert_eq!(writer.write(&batch).unwrap_err().to_string(), "null in \"a\", which may not be null");
}

#[test]
fn a_writer_that_never_finishes_leaves_every_row_group_behind() {
    let batch = two_columns(100);
    let options = RedfileWriterOptions::default().with_row_group_rows(10);
    let shared = Arc::new(std::sync::Mutex::new(Vec::new()));
    struct Sink(Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut writer = RedfileWriter::try_new(Sink(Arc::clone(&shared)), &batch.schema(), options).unwrap();
    writer.write(&batch.slice(0, 57)).unwrap();
    drop(writer);
    let bytes = shared.lock().unwrap().clone();
    assert!(open(&bytes).is_err());
    let (reader, report) =
        RedfileReader::recover(memory("killed.red", bytes), None, &RedfileReaderOptions::default()).unwrap();
    assert_eq!((report.row_groups, report.rows), (5, 50));
    assert_eq!(one_batch(reader.scan()).unwrap(), batch.slice(0, 50));
}

#[test]
fn keys_with_and_without_values_survive() {
    let batch = two_columns(3);
    let options = RedfileWriterOptions::default()
        .with_key_value("only a key", None)
        .with_key_value("é", Some("漢".to_string()));
    let bytes = write(&batch, options).unwrap();
    let reader = open(&bytes).unwrap();
    let pairs = reader.metadata().key_values.clone().unwrap();
    assert_eq!(pairs, [("only a key".to_string(), None), ("é".to_string(), Some("漢".to_string()))]);
    assert_eq!(reader.schema().metadata().get("only a key").map(String::as_str), Some(""));
}

/// Query engines compute with narrow decimals as if they were integers, so they leave as wide ones, wherever they are.
#[test]
fn narrow_decimals_come_back_wide() {
    let narrow: ArrayRef = Arc::new(
        Decimal32Array::from(vec![Some(-150), None, Some(999_999_999)])
            .with_precision_and_scale(9, 2)
            .unwrap(),
    );
    let long: ArrayRef = Arc::new(
        Decimal64Array::from(vec![Some(1), Some(-999_999_999_999_999_999), None])
            .with_precision_and_scale(18, -2)
            .unwrap(),
    );
    let keys = Int32Array::from(vec![Some(2), None, Some(0)]);
    let words: ArrayRef = Arc::new(DictionaryArray::<Int32Type>::new(keys, Arc::clone(&narrow)));
    let item = Arc::new(Field::new("item", long.data_type().clone(), true));
    let lists: ArrayRef =
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([2, 0, 1]), Arc::clone(&long), None));
    let whole: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("inner", narrow.data_type().clone(), true)),
        Arc::clone(&narrow),
    )]));
    let columns = [("narrow", narrow), ("long", long), ("words", words), ("lists", lists), ("whole", whole)];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap();
    let found = read_all(&write(&batch, RedfileWriterOptions::default()).unwrap()).unwrap();
    let types: Vec<_> = found.schema().fields().iter().map(|field| field.data_type().to_string()).collect();
    assert!(types.iter().all(|text| text.contains("Decimal128(")), "{types:?}");
    for (column, expected) in found.columns().iter().zip(batch.columns()) {
        for row in 0..3 {
            let text = |array: &ArrayRef| arrow_cast::display::array_value_to_string(array, row).unwrap();
            assert_eq!(text(column), text(expected), "{} row {row}", expected.data_type());
        }
    }
}

#[test]
fn a_row_group_takes_no_more_bytes_than_it_may() {
    let word = |row: usize| format!("{row:08}").repeat(700);
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..3000).map(word)));
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..3000));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("t", texts)]).unwrap();
    let most = 1_000_000;
    let options = RedfileWriterOptions::default().with_row_group_bytes(most);
    let reader = open(&write(&batch, options).unwrap()).unwrap();
    let groups = &reader.metadata().row_groups;
    // A row, and what stands in front of pages, may be over.
    let largest = groups.iter().map(|group| group.total_byte_size).max().unwrap();
    assert!(largest <= most as i64 + 20_000, "{largest}");
    assert!(groups.len() >= 17 && groups.len() <= 40, "{}", groups.len());
    assert_eq!(reader.row_count(), Some(3000));
}
