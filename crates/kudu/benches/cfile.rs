//! Reading a CFile in memory: each type and encoding, without and with nulls.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the harness writes public functions, and a benchmark computes on numbers it chose itself"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int8Array, Int32Array, Int64Array, StringViewArray,
};
use arrow_schema::{DataType, Field};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pilaster_core::Dataset;
use pilaster_core::source::MemorySource;
use pilaster_kudu::cfile::{
    CFileReader, CFileReaderOptions, CFileWriter, CFileWriterOptions, Encoding, kudu_type,
};

/// Two blocks and more of every type.
const ROWS: u32 = 100_000;

/// Numbers that look like measurements: small, with some order, not all alike.
fn number(row: u32) -> u32 {
    row / 4 + (row.wrapping_mul(2_654_435_761) >> 22)
}

fn words(row: u32) -> &'static str {
    ["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"][number(row) as usize % 4]
}

/// One column of each kind; `hide` says which rows are null.
fn columns(hide: impl Fn(u32) -> bool) -> Vec<(&'static str, ArrayRef)> {
    fn cells<T>(hide: &impl Fn(u32) -> bool, value: impl Fn(u32) -> T) -> Vec<Option<T>> {
        (0..ROWS).map(|row| (!hide(row)).then(|| value(row))).collect()
    }
    let decimals: Decimal128Array = cells(&hide, |row| i128::from(number(row))).into_iter().collect();
    let decimals = decimals.with_precision_and_scale(15, 2).expect("15 digits");
    let texts: StringViewArray =
        cells(&hide, |row| format!("{} carefully {}", words(row), number(row))).into_iter().collect();
    vec![
        ("bool", Arc::new(BooleanArray::from(cells(&hide, |row| number(row).is_multiple_of(3))))),
        ("int8", Arc::new(Int8Array::from(cells(&hide, |row| number(row).to_le_bytes()[0].cast_signed())))),
        ("int32", Arc::new(Int32Array::from(cells(&hide, |row| number(row).cast_signed())))),
        ("int64", Arc::new(Int64Array::from(cells(&hide, |row| i64::from(number(row)))))),
        ("double", Arc::new(Float64Array::from(cells(&hide, |row| f64::from(number(row)) / 8.0)))),
        ("decimal(15,2)", Arc::new(decimals)),
        ("words", Arc::new(cells(&hide, words).into_iter().collect::<StringViewArray>())),
        ("texts", Arc::new(texts)),
    ]
}

/// The column as a CFile, ready to be scanned.
fn written(column: &ArrayRef, encoding: Encoding, is_nullable: bool) -> CFileReader {
    let field = Field::new("value", column.data_type().clone(), is_nullable);
    let options = CFileWriterOptions::default().with_encoding(encoding);
    let mut writer = CFileWriter::try_new(Vec::new(), &field, options).expect("an encoding of the type");
    writer.write_array(column).expect("values of the type");
    let (bytes, _) = writer.finish().expect("memory to write to");
    let options = CFileReaderOptions::default().with_field(field);
    CFileReader::open_with_options(Arc::new(MemorySource::new("bench.cfile", bytes)), &options)
        .expect("a CFile that was just written")
}

fn decode(c: &mut Criterion) {
    for (nulls, is_nullable) in [("no nulls", false), ("a fifth null", true)] {
        let mut group = c.benchmark_group(nulls);
        group.throughput(Throughput::Elements(u64::from(ROWS)));
        group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
        for (name, column) in columns(|row| is_nullable && row % 5 == 0) {
            let kudu = kudu_type(column.data_type()).expect("a type that Kudu has");
            for &encoding in kudu.encodings().iter().filter(|&&encoding| encoding != Encoding::GroupVarint) {
                let file = written(&column, encoding, is_nullable);
                group.bench_function(BenchmarkId::new(name, encoding), |b| {
                    b.iter(|| {
                        for batch in file.scan().read().expect("a scan") {
                            black_box(batch.expect("sound blocks"));
                        }
                    });
                });
            }
        }
        group.finish();
    }
    // A type that is read as another layout of text.
    let (name, column) = columns(|_| false).swap_remove(7);
    let utf8 = arrow_cast::cast(&column, &DataType::Utf8).expect("text");
    let file = written(&utf8, Encoding::Plain, false);
    c.bench_function(&format!("{name} as Utf8"), |b| {
        b.iter(|| file.scan().read().expect("a scan").for_each(|batch| drop(black_box(batch))));
    });
}

criterion_group!(benches, decode);
criterion_main!(benches);
