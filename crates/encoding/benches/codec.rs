//! Block codecs, and LZ4 decompression against the library that compresses.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the harness writes public functions, and a benchmark computes on numbers it chose itself"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pilaster_encoding::bitshuffle;
use pilaster_encoding::codec::Codec;
use std::hint::black_box;
use std::time::Duration;

/// A block of Kudu's default size.
const BLOCK: usize = 256 * 1024;
/// A sub-block of bit-shuffled elements.
const SUB_BLOCK: usize = 8 * 1024;

fn random() -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9u32;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    })
}

/// Words of an English-like text, some much more frequent than others.
fn text() -> Vec<u8> {
    let words = [
        "the",
        "final",
        "requests",
        "haggle",
        "carefully",
        "according",
        "to",
        "regular",
        "deposits",
        "sleep",
    ];
    let mut text = Vec::new();
    for n in random() {
        text.extend(words[(n % 10) as usize].as_bytes());
        if n % 7 == 0 {
            text.extend((n / 7 % 1000).to_string().as_bytes());
        }
        text.push(b' ');
        if text.len() >= BLOCK {
            break;
        }
    }
    text.truncate(BLOCK);
    text
}

/// Sorted keys, bit-shuffled, in sub-blocks.
fn shuffled() -> Vec<Vec<u8>> {
    let mut key = 1_000_000u64;
    let keys: Vec<u8> = random()
        .take(BLOCK / 8)
        .flat_map(|n| {
            key += u64::from(n % 4);
            key.to_le_bytes()
        })
        .collect();
    keys.chunks(SUB_BLOCK)
        .map(|block| {
            let mut rows = vec![0; block.len()];
            bitshuffle::shuffle(8, block, &mut rows).expect("whole groups");
            rows
        })
        .collect()
}

fn codecs(c: &mut Criterion) {
    for (name, blocks) in [("text", vec![text()]), ("bit-shuffled keys", shuffled())] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(BLOCK as u64));
        for codec in Codec::ALL {
            let packed: Vec<Vec<u8>> = blocks
                .iter()
                .map(|block| {
                    let mut out = Vec::new();
                    codec.compress(block, &mut out).expect("a codec of this build");
                    out
                })
                .collect();
            let mut dst = vec![0; BLOCK];
            group.bench_function(BenchmarkId::new("decompress", codec), |b| {
                b.iter(|| {
                    for (block, packed) in blocks.iter().zip(&packed) {
                        codec.decompress(black_box(packed), &mut dst[..block.len()]).expect("a whole block");
                    }
                });
            });
            if codec == Codec::Lz4 {
                group.bench_function("decompress/lz4_flex", |b| {
                    b.iter(|| {
                        for (block, packed) in blocks.iter().zip(&packed) {
                            lz4_flex::block::decompress_into(black_box(packed), &mut dst[..block.len()])
                                .expect("a whole block");
                        }
                    });
                });
            }
            let mut out = Vec::new();
            group.bench_function(BenchmarkId::new("compress", codec), |b| {
                b.iter(|| {
                    for block in &blocks {
                        out.clear();
                        codec.compress(black_box(block), &mut out).expect("a codec of this build");
                    }
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = codecs
}
criterion_main!(benches);
