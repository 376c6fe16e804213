//! Any lists of numbers and texts, written with any options, read back the same.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use arrow_array::builder::{Int64Builder, ListBuilder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, VerifyDepth};
use pilaster_redfile::metadata::Compression;
use pilaster_redfile::{EncodingChoice, RedfileReader, RedfileWriter, RedfileWriterOptions};

#[derive(Debug, Arbitrary)]
struct Case {
    rows: Vec<(Option<Vec<Option<i64>>>, Option<String>)>,
    page_bytes: u8,
    row_group_rows: u8,
    codec: u8,
    encoding: u8,
    flags: u8,
    batch_size: u16,
}

fuzz_target!(|case: Case| {
    let mut lists = ListBuilder::new(Int64Builder::new());
    let mut texts = StringBuilder::new();
    for (list, text) in &case.rows {
        lists.append_option(list.as_ref().map(|list| list.iter().copied()));
        texts.append_option(text.as_ref());
    }
    let columns: [(&str, ArrayRef, bool); 2] =
        [("list", Arc::new(lists.finish()), true), ("text", Arc::new(texts.finish()), true)];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length");
    let encodings = [EncodingChoice::Auto, EncodingChoice::Plain, EncodingChoice::GroupVarInt];
    let flag = |bit: u8| case.flags & (1 << bit) != 0;
    let options = RedfileWriterOptions::default()
        .with_page_bytes(usize::from(case.page_bytes))
        .with_row_group_rows(u64::from(case.row_group_rows))
        .with_codec(Compression::ALL[usize::from(case.codec % 4)])
        .with_encoding(encodings[usize::from(case.encoding % 3)])
        .with_replica(flag(0))
        .with_index_pages(flag(1))
        .with_statistics(flag(2))
        .with_checksums(flag(3))
        .with_page_row_counts(flag(4))
        .with_checkpoint_interval(u32::from(case.flags >> 5));
    let mut writer = RedfileWriter::try_new(Vec::new(), &batch.schema(), options).expect("types with a form");
    writer.write(&batch).expect("a sink that takes everything");
    let (bytes, _) = writer.finish().expect("a sink that takes everything");

    let reader = RedfileReader::open(Arc::new(MemorySource::new("fuzz", bytes))).expect("a file of our own");
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking does not fail");
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    let batches: Vec<RecordBatch> = reader
        .scan()
        .batch_size(usize::from(case.batch_size))
        .read()
        .expect("a scan")
        .map(|batch| batch.expect("rows"))
        .collect();
    let found =
        arrow_select::concat::concat_batches(&batch.schema(), &batches).expect("batches of one schema");
    assert_eq!(found, batch);
});
