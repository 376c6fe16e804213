//! Byte strings: prefix encoding, dictionaries, UTF-8 checks; and checksums of any bytes.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the harness writes public functions, and a benchmark computes on numbers it chose itself"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pilaster_encoding::dictionary::DictionaryBuilder;
use pilaster_encoding::prefix::{self, PrefixEncoder};
use pilaster_encoding::{checksum, utf8};
use std::hint::black_box;
use std::time::Duration;

const COUNT: usize = 20_000;

fn prefixes(c: &mut Criterion) {
    let values: Vec<String> = (0..COUNT).map(|i| format!("Customer#{i:012}")).collect();
    let encode = || {
        let mut encoder = PrefixEncoder::new(16);
        for value in &values {
            encoder.push(value.as_bytes());
        }
        encoder.finish().0
    };
    let entries = encode();
    let bytes: usize = values.iter().map(String::len).sum();
    let mut group = c.benchmark_group("prefix");
    group.throughput(Throughput::Bytes(bytes as u64));
    let (mut out, mut offsets) = (Vec::new(), Vec::new());
    group.bench_function("decode", |b| {
        b.iter(|| {
            out.clear();
            offsets.clear();
            prefix::decode(black_box(&entries), COUNT, &mut out, &mut offsets, 1 << 30)
        });
    });
    group.bench_function("encode", |b| b.iter(|| black_box(encode())));
}

fn dictionaries(c: &mut Criterion) {
    let words: Vec<String> = (0..1000).map(|i| format!("word {}", i * 7919 % 1000)).collect();
    let values: Vec<&[u8]> = (0..COUNT).map(|i| words[i * 31 % 1000].as_bytes()).collect();
    let bytes: usize = values.iter().map(|value| value.len()).sum();
    let mut dictionary = DictionaryBuilder::new();
    let mut group = c.benchmark_group("dictionary");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function("get_or_insert", |b| {
        b.iter(|| {
            dictionary.clear();
            values
                .iter()
                .filter_map(|value| dictionary.get_or_insert(black_box(value)))
                .fold(0, |sum, (code, _)| sum ^ code)
        });
    });
}

fn text(c: &mut Criterion) {
    let mut group = c.benchmark_group("utf8");
    for (name, word) in
        [("ascii", "regular deposits"), ("mixed", "dépôts régulières"), ("three bytes", "定期存款总额")]
    {
        let bytes = word.repeat(COUNT).into_bytes();
        let offsets: Vec<u32> = (0..=COUNT).map(|i| (i * word.len()) as u32).collect();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_function(name, |b| {
            b.iter(|| utf8::validate_slices(black_box(&bytes), black_box(&offsets)))
        });
    }
}

fn checksums(c: &mut Criterion) {
    let mut group = c.benchmark_group("crc32c");
    for len in [64, 4096, 256 * 1024] {
        let bytes: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
        group.throughput(Throughput::Bytes(len as u64));
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter(|| checksum::crc32c(black_box(&bytes)))
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = prefixes, dictionaries, text, checksums
}
criterion_main!(benches);
