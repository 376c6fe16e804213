//! Bit shuffling: each kernel and element size, and the whole decoder against the LZ4 decompression under it.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the harness writes public functions, and a benchmark computes on numbers it chose itself"
)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pilaster_encoding::bitshuffle::{self, chosen_kernel, kernels};
use pilaster_encoding::codec::Codec;
use std::hint::black_box;
use std::time::Duration;

/// The size at which the reference library was measured; it works in sub-blocks of 8 KiB inside.
const BYTES: usize = 32 * 1024;
const SUB_BLOCK: usize = 8 * 1024;

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(len)
    .collect()
}

fn transposes(c: &mut Criterion) {
    let src = noise(BYTES);
    let mut dst = vec![0; BYTES];
    for direction in ["unshuffle", "shuffle"] {
        let mut group = c.benchmark_group(direction);
        group.throughput(Throughput::Bytes(BYTES as u64));
        for kernel in kernels() {
            for element_size in [1, 2, 4, 8, 16] {
                group.bench_function(BenchmarkId::new(kernel.name(), element_size), |b| {
                    b.iter(|| {
                        for (src, dst) in src.chunks(SUB_BLOCK).zip(dst.chunks_mut(SUB_BLOCK)) {
                            match direction {
                                "shuffle" => kernel.shuffle(element_size, black_box(src), dst),
                                _ => kernel.unshuffle(element_size, black_box(src), dst),
                            }
                            .expect("whole groups");
                        }
                        black_box(&mut dst);
                    });
                });
            }
        }
        group.bench_function("memcpy", |b| {
            b.iter(|| {
                dst.copy_from_slice(black_box(&src));
                black_box(&mut dst);
            });
        });
    }
}

/// Columns as they are met: what they hold, the bytes of an element, and the bytes of all.
fn columns() -> Vec<(&'static str, usize, Vec<u8>)> {
    let count = 128 * 1024u64;
    let steps = noise(usize::try_from(count).expect("a small count"));
    let mut key = 1_000_000u64;
    let keys = steps.iter().flat_map(|&step| {
        key = key.wrapping_add(u64::from(step % 4));
        key.to_le_bytes()
    });
    let small = steps.iter().flat_map(|&step| u32::from(step % 50).to_le_bytes());
    let prices = steps
        .chunks(2)
        .flat_map(|pair| (90_000 + 37 * u32::from(pair[0]) * u32::from(pair[1])).to_le_bytes());
    let micros = steps.iter().enumerate().flat_map(|(i, &step)| {
        (1_700_000_000_000_000 + 1_000_000 * i as u64 + 1000 * u64::from(step)).to_le_bytes()
    });
    let codes = steps.iter().map(|step| step % 7);
    let dates = steps
        .chunks(2)
        .flat_map(|pair| (8000 + (u16::from(pair[0]) << 3) + u16::from(pair[1] & 7)).to_le_bytes());
    vec![
        ("u64 sorted keys", 8, keys.collect()),
        ("u64 timestamps", 8, micros.collect()),
        ("u32 small ints", 4, small.collect()),
        ("u32 prices", 4, prices.collect()),
        ("u16 dates", 2, dates.collect()),
        ("u8 codes", 1, codes.collect()),
    ]
}

fn decoder(c: &mut Criterion) {
    eprintln!("kernel: {}", chosen_kernel().name());
    for (name, element_size, values) in columns() {
        let mut packed = Vec::new();
        bitshuffle::compress_lz4(element_size, &values, &mut packed).expect("whole groups");
        let mut blocks = Vec::new();
        let mut rest = packed.as_slice();
        while let Some((len, after)) = rest.split_first_chunk() {
            let (block, after) = after.split_at(u32::from_be_bytes(*len) as usize);
            blocks.push(block);
            rest = after;
        }
        let mut dst = vec![0; values.len()];
        let mut group =
            c.benchmark_group(format!("{name}, ratio {:.2}", values.len() as f64 / packed.len() as f64));
        group.throughput(Throughput::Bytes(values.len() as u64));
        group.bench_function("bitshuffle-lz4", |b| {
            b.iter(|| bitshuffle::decompress_lz4(element_size, black_box(&packed), black_box(&mut dst)));
        });
        // Into one buffer that stays in the cache, as the decoder does, and into the whole destination.
        group.bench_function("lz4-in-cache", |b| {
            b.iter(|| {
                for block in black_box(&blocks) {
                    let len = SUB_BLOCK.min(values.len());
                    Codec::Lz4.decompress(block, black_box(&mut dst[..len])).expect("a whole block");
                }
            });
        });
        group.bench_function("lz4-to-destination", |b| {
            b.iter(|| {
                for (block, dst) in black_box(&blocks).iter().zip(dst.chunks_mut(SUB_BLOCK)) {
                    Codec::Lz4.decompress(block, black_box(dst)).expect("a whole block");
                }
            });
        });
        group.bench_function("compress", |b| {
            let mut out = Vec::new();
            b.iter(|| {
                out.clear();
                bitshuffle::compress_lz4(element_size, black_box(&values), &mut out)
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = transposes, decoder
}
criterion_main!(benches);
