//! Columns that were not written, or not opened again.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests compute with known values, and a failure is a panic"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{ArrayRef, DictionaryArray, Int8Array, RecordBatch, StringArray};
use arrow_ipc::writer::FileWriter;
use arrow_schema::DataType;
use pilaster::convert::{ConvertOptions, ConvertTarget, convert};
use pilaster::core::progress::Silent;
use pilaster::output::{WriteOptions, writer};
use pilaster::{Dataset, OutputFormat, ScanRequest, open};

fn write_as(dataset: &dyn Dataset, path: &Path, format: OutputFormat) {
    let target = ConvertTarget::new(path, format);
    convert(dataset, &ScanRequest::default(), &target, &ConvertOptions::default(), &Silent).unwrap();
}

/// Batches with a dictionary each: 300 words in all, more than the keys of any of them can tell apart.
#[test]
fn batches_with_dictionaries_of_their_own_are_written() {
    let batch = |first: i32| {
        let words = StringArray::from_iter_values((first..first + 100).map(|word| format!("w{word}")));
        let keys = Int8Array::from_iter((0..100).map(|row: i8| (row % 7 != 0).then_some(99 - row)));
        table_of(Arc::new(DictionaryArray::<Int8Type>::new(keys, Arc::new(words))))
    };
    let batches = [batch(0), batch(0), batch(50), batch(200), batch(10)];
    let expected: Vec<Option<String>> = batches.iter().flat_map(texts).collect();
    let folder = tempfile::tempdir().unwrap();
    for (format, name) in [(OutputFormat::Arrow, "a.arrow"), (OutputFormat::Parquet, "a.parquet")] {
        let path = folder.path().join(name);
        let sink = Box::new(fs::File::create(&path).unwrap());
        let mut writer = writer(format, sink, batches[0].schema(), &WriteOptions::default()).unwrap();
        for batch in &batches {
            writer.write(batch).unwrap();
        }
        writer.finish().unwrap();
        let dataset = open(&path.display().to_string()).unwrap();
        let wide = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert_eq!(dataset.schema().field(0).data_type(), &wide, "{name}");
        let found = dataset.scan().read().unwrap().flat_map(|batch| texts(&batch.unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
        // What was read is written again.
        let again = folder.path().join(format!("again-{name}"));
        write_as(dataset.as_ref(), &again, format);
        let found = open(&again.display().to_string()).unwrap();
        let found = found.scan().read().unwrap().flat_map(|batch| texts(&batch.unwrap()));
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}");
    }
}

fn table_of(column: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([("x", column, true)]).unwrap()
}

fn texts(batch: &RecordBatch) -> Vec<Option<String>> {
    let texts = arrow_cast::cast(batch.column(0), &DataType::Utf8).unwrap();
    let texts = texts.as_any().downcast_ref::<StringArray>().unwrap().clone();
    texts.iter().map(|text| text.map(str::to_string)).collect()
}

#[test]
fn text_of_any_characters_comes_back_from_csv() {
    let words = ["\u{1}", "a\u{0}b", "\u{1b}[0m", "\u{7f}\u{85}", "\u{feff}", "tab\t,\"\r\n"];
    let column: ArrayRef = Arc::new(StringArray::from(words.to_vec()));
    let folder = tempfile::tempdir().unwrap();
    let batch = table_of(column);
    let mut file = FileWriter::try_new(Vec::new(), batch.schema_ref()).unwrap();
    file.write(&batch).unwrap();
    let source = folder.path().join("a.arrow");
    fs::write(&source, file.into_inner().unwrap()).unwrap();
    let dataset = open(&source.display().to_string()).unwrap();
    for (format, name) in [(OutputFormat::Csv, "a.csv"), (OutputFormat::Tsv, "a.tsv")] {
        let path = folder.path().join(name);
        write_as(dataset.as_ref(), &path, format);
        let found = open(&path.display().to_string()).unwrap();
        let found = found.scan().project(["x"]).read().unwrap().flat_map(|batch| texts(&batch.unwrap()));
        assert_eq!(found.flatten().collect::<Vec<_>>(), words, "{name}");
    }
}
