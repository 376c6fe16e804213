//! Any columns, written with any options, read back the same.
#![no_main]

use std::sync::Arc;

use arbitrary::Arbitrary;
use arrow_array::builder::{Int64Builder, ListBuilder};
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringViewArray};
use libfuzzer_sys::fuzz_target;
use pilaster_carbondata::file::{CarbonFileReader, CarbonFileWriter, CarbonWriterOptions, Compressor};
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, VerifyDepth};

#[derive(Debug, Arbitrary)]
struct Row {
    number: Option<i64>,
    real: Option<f64>,
    text: Option<String>,
    list: Option<Vec<i64>>,
}

#[derive(Debug, Arbitrary)]
struct Case {
    rows: Vec<Row>,
    /// How often the rows follow each other, so that pages fill.
    repeats: u8,
    page_rows: u8,
    blocklet_bytes: u16,
    threshold: u8,
    compressor: u8,
    flags: u8,
    batch_size: u16,
}

fuzz_target!(|case: Case| {
    // The text of null cannot be stored, and is refused.
    let is_marker = |row: &Row| row.text.as_deref() == Some("@NU#LL$!");
    let is_long = |row: &Row| row.text.as_ref().is_some_and(|text| text.len() > 32_000);
    if case.rows.is_empty() || case.rows.iter().any(|row| is_marker(row) || is_long(row)) {
        return;
    }
    let mut lists = ListBuilder::new(Int64Builder::new());
    for row in &case.rows {
        lists.append_option(row.list.as_ref().map(|list| list.iter().copied().map(Some)));
    }
    let columns: [(&str, ArrayRef, bool); 4] = [
        ("number", Arc::new(case.rows.iter().map(|row| row.number).collect::<Int64Array>()), true),
        ("real", Arc::new(case.rows.iter().map(|row| row.real).collect::<Float64Array>()), true),
        (
            "text",
            Arc::new(case.rows.iter().map(|row| row.text.as_deref()).collect::<StringViewArray>()),
            true,
        ),
        ("list", Arc::new(lists.finish()), true),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns).expect("columns of one length");
    let flag = |bit: u8| case.flags & (1 << bit) != 0;
    let sorted = if flag(0) { vec!["text", "number"] } else { Vec::new() };
    let indexed = if flag(0) && flag(1) { vec!["text"] } else { Vec::new() };
    let options = CarbonWriterOptions::default()
        .with_compressor(Compressor::ALL[usize::from(case.compressor % 3)])
        .with_page_rows(usize::from(case.page_rows))
        .with_blocklet_bytes(u64::from(case.blocklet_bytes))
        .with_local_dictionary(flag(2))
        .with_local_dictionary_threshold(usize::from(case.threshold))
        .with_sort_columns(sorted)
        .with_inverted_index(indexed);
    let mut writer =
        CarbonFileWriter::try_new(Vec::new(), &batch.schema(), &options).expect("types with a form");
    let repeats = usize::from(case.repeats % 16) + 1;
    for _ in 0..repeats {
        writer.write(&batch).expect("a sink that takes everything");
    }
    let (bytes, summary, _) = writer.finish().expect("a sink that takes everything");
    assert_eq!(summary.conflated, 0);

    let reader =
        CarbonFileReader::open(Arc::new(MemorySource::new("fuzz", bytes))).expect("a file of our own");
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
    let wanted =
        arrow_select::concat::concat_batches(&batch.schema(), vec![&batch; repeats]).expect("one schema");
    // Through text, where NaN is what it is.
    assert_eq!(format!("{:?}", found.columns()), format!("{:?}", wanted.columns()));
    assert_eq!(found.column(0), wanted.column(0));
    assert_eq!(found.column(2), wanted.column(2));
    assert_eq!(found.column(3), wanted.column(3));
});
