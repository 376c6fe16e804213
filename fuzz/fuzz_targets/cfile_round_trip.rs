//! Any column, written with any options, reads back the same.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int16Array, Int64Array, RecordBatch, UInt32Array,
};
use arrow_schema::{Field, Schema};
use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, VerifyDepth};
use pilaster_kudu::cfile::{
    CFileReader, CFileReaderOptions, CFileWriter, CFileWriterOptions, Compression, Version, kudu_type,
};

#[derive(Debug, Arbitrary)]
enum Values {
    Bools(Vec<Option<bool>>),
    Shorts(Vec<Option<i16>>),
    Longs(Vec<Option<i64>>),
    Words(Vec<Option<u32>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

#[derive(Debug, Arbitrary)]
struct Case {
    values: Values,
    /// How often the values follow each other, so that blocks fill.
    repeats: u8,
    encoding: u8,
    compression: u8,
    block_size: u16,
    index_block_size: u8,
    is_old: bool,
    checksums: bool,
    batch_size: u16,
}

fuzz_target!(|case: Case| {
    let array: ArrayRef = match &case.values {
        Values::Bools(values) => Arc::new(BooleanArray::from(values.clone())),
        Values::Shorts(values) => Arc::new(Int16Array::from(values.clone())),
        Values::Longs(values) => Arc::new(Int64Array::from(values.clone())),
        Values::Words(values) => Arc::new(UInt32Array::from(values.clone())),
        Values::Bytes(values) => Arc::new(values.iter().map(Option::as_ref).collect::<BinaryArray>()),
    };
    let field = Field::new("value", array.data_type().clone(), array.null_count() > 0);
    let encodings = kudu_type(array.data_type()).expect("a type with a CFile form").encodings();
    let options = CFileWriterOptions::default()
        .with_encoding(encodings[usize::from(case.encoding) % encodings.len()])
        .with_compression(Compression::ALL[usize::from(case.compression) % Compression::ALL.len()])
        .with_block_size_bytes(512 + usize::from(case.block_size))
        .with_index_block_size_bytes(usize::from(case.index_block_size))
        .with_checksums(case.checksums)
        .with_version(if case.is_old { Version::V1 } else { Version::V2 });
    let mut writer = CFileWriter::try_new(Vec::new(), &field, options).expect("options that fit");
    let repeats = usize::from(case.repeats % 16) + 1;
    for _ in 0..repeats {
        writer.write_array(&array).expect("a sink that takes everything");
    }
    let (bytes, _) = writer.finish().expect("a sink that takes everything");

    let source = Arc::new(MemorySource::new("fuzz", bytes));
    let options = CFileReaderOptions::default().with_field(field.clone());
    let reader = CFileReader::open_with_options(source, &options).expect("a file of our own");
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking does not fail");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let schema = Arc::new(Schema::new(vec![field]));
    let batches: Vec<RecordBatch> = reader
        .scan()
        .batch_size(usize::from(case.batch_size))
        .read()
        .expect("a scan")
        .map(|batch| batch.expect("rows"))
        .collect();
    let found = arrow_select::concat::concat_batches(&schema, &batches).expect("batches of one schema");
    let parts: Vec<&dyn Array> = (0..repeats).map(|_| array.as_ref()).collect();
    let wanted = arrow_select::concat::concat(&parts).expect("arrays of one type");
    assert_eq!(found.column(0).as_ref(), wanted.as_ref());
});
