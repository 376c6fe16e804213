//! Integers: plain, varint, zigzag, group varint, frame of reference, RLE, bit packing, dictionary codes.
#![allow(
    missing_docs,
    clippy::arithmetic_side_effects,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "the harness writes public functions, and a benchmark computes on numbers it chose itself"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pilaster_encoding::group_varint::wide;
use pilaster_encoding::{
    bits, dictionary, frame_of_reference, group_varint, levels, plain, rle, varint, zigzag,
};
use std::hint::black_box;
use std::time::Duration;

const COUNT: usize = 64 * 1024;

fn random() -> impl Iterator<Item = u32> {
    let mut state = 0x9e37_79b9u32;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    })
}

fn plain_values(c: &mut Criterion) {
    let values: Vec<u32> = random().take(COUNT).collect();
    let mut bytes = Vec::new();
    plain::encode(&values, &mut bytes);
    let mut out = vec![0u32; COUNT];
    let mut group = c.benchmark_group("plain");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("decode", |b| b.iter(|| plain::decode_into(black_box(&bytes), black_box(&mut out))));
    group.bench_function("encode", |b| {
        b.iter(|| {
            bytes.clear();
            plain::encode(black_box(&values), &mut bytes);
        });
    });
}

fn varints(c: &mut Criterion) {
    let lengths: Vec<u64> = random().take(COUNT).map(|n| u64::from(n % 100)).collect();
    let mixed: Vec<u64> =
        random().take(COUNT).map(|n| (u64::from(n) << 32 | u64::from(n)) >> (n % 57)).collect();
    let mut group = c.benchmark_group("varint");
    group.throughput(Throughput::Elements(COUNT as u64));
    for (name, values) in [("lengths", lengths), ("mixed", mixed)] {
        let mut bytes = Vec::new();
        values.iter().for_each(|value| varint::write_u64(&mut bytes, *value));
        group.bench_function(format!("read/{name}"), |b| {
            b.iter(|| {
                let (bytes, mut at, mut sum) = (black_box(bytes.as_slice()), 0, 0u64);
                while let Ok(value) = varint::read_u64(bytes, &mut at) {
                    sum = sum.wrapping_add(value);
                }
                sum
            });
        });
        group.bench_function(format!("write/{name}"), |b| {
            b.iter(|| {
                bytes.clear();
                black_box(&values).iter().for_each(|value| varint::write_u64(&mut bytes, *value));
            });
        });
    }
}

fn zigzags(c: &mut Criterion) {
    let values: Vec<i64> = random().take(COUNT).map(|n| i64::from(n) - (1 << 23)).collect();
    let mut encoded = vec![0u64; COUNT];
    let mut decoded = vec![0i64; COUNT];
    let mut group = c.benchmark_group("zigzag");
    group.throughput(Throughput::Bytes(8 * COUNT as u64));
    group.bench_function("encode", |b| {
        b.iter(|| {
            let pairs = black_box(&mut encoded).iter_mut().zip(black_box(&values));
            pairs.for_each(|(to, value)| *to = zigzag::encode_i64(*value));
        });
    });
    group.bench_function("decode", |b| {
        b.iter(|| {
            let pairs = black_box(&mut decoded).iter_mut().zip(black_box(&encoded));
            pairs.for_each(|(to, value)| *to = zigzag::decode_i64(*value));
        });
    });
}

fn frames(c: &mut Criterion) {
    let min = 1_000_000;
    let values: Vec<u32> = random().take(COUNT).map(|n| min + (n >> (n % 24))).collect();
    let mut bytes = Vec::new();
    frame_of_reference::encode(&values, min, &mut bytes);
    let mut out = Vec::new();
    let mut group = c.benchmark_group("frame_of_reference");
    group.throughput(Throughput::Bytes(4 * COUNT as u64));
    group.bench_function("decode", |b| {
        b.iter(|| {
            out.clear();
            frame_of_reference::decode(black_box(&bytes), COUNT, min, &mut out)
        });
    });
    group.bench_function("encode", |b| {
        b.iter(|| {
            bytes.clear();
            frame_of_reference::encode(black_box(&values), min, &mut bytes);
        });
    });
}

fn group_varints(c: &mut Criterion) {
    let offsets: Vec<u32> = random()
        .take(COUNT)
        .scan(12, |at, n| {
            *at += n % 40;
            Some(*at)
        })
        .collect();
    let mixed: Vec<u32> = random().take(COUNT).map(|n| n >> (n % 24)).collect();
    let mut group = c.benchmark_group("group_varint");
    group.throughput(Throughput::Bytes(4 * COUNT as u64));
    for (name, values) in [("offsets", offsets), ("mixed", mixed)] {
        let mut bytes = Vec::new();
        group_varint::encode(&values, &mut bytes);
        let mut out = Vec::new();
        group.bench_function(format!("decode/{name}"), |b| {
            b.iter(|| {
                out.clear();
                group_varint::decode(black_box(&bytes), COUNT, &mut out)
            });
        });
        group.bench_function(format!("decode portable/{name}"), |b| {
            b.iter(|| {
                out.clear();
                group_varint::kernels::decode_scalar(black_box(&bytes), COUNT / 4, &mut out)
            });
        });
        group.bench_function(format!("encode/{name}"), |b| {
            b.iter(|| {
                bytes.clear();
                group_varint::encode(black_box(&values), &mut bytes);
            });
        });
    }
}

fn wide_group_varints(c: &mut Criterion) {
    let keys: Vec<u64> = (0..COUNT as u64).map(|n| 1_000_000 + 3 * n).collect();
    let mixed: Vec<u64> =
        random().take(COUNT).map(|n| (u64::from(n) * 0x9e37_79b9_7f4a) >> (n % 56)).collect();
    let mut group = c.benchmark_group("group_varint of u64");
    group.throughput(Throughput::Bytes(8 * COUNT as u64));
    for (name, values) in [("keys", keys), ("mixed", mixed)] {
        let mut bytes = Vec::new();
        wide::encode(&values, &mut bytes);
        let mut out = Vec::new();
        group.bench_function(format!("decode/{name}"), |b| {
            b.iter(|| {
                out.clear();
                wide::decode_all(black_box(&bytes), COUNT, &mut out)
            });
        });
        group.bench_function(format!("decode portable/{name}"), |b| {
            b.iter(|| {
                out.clear();
                wide::kernels::decode_scalar(black_box(&bytes), COUNT.div_ceil(wide::GROUP), &mut out)
            });
        });
        group.bench_function(format!("encode/{name}"), |b| {
            b.iter(|| {
                bytes.clear();
                wide::encode(black_box(&values), &mut bytes);
            });
        });
    }
}

fn packed_levels(c: &mut Criterion) {
    let mut group = c.benchmark_group("levels");
    group.throughput(Throughput::Elements(COUNT as u64));
    for width in [1, 2, 3] {
        let values: Vec<u8> = random().take(COUNT).map(|n| (n % (1 << width)) as u8).collect();
        let mut packed = Vec::new();
        levels::pack(&values, width, &mut packed).expect("a width in range");
        let mut out = Vec::new();
        group.bench_function(format!("unpack/{width} bits"), |b| {
            b.iter(|| {
                out.clear();
                levels::unpack(black_box(&packed), width, COUNT, &mut out)
            });
        });
        group.bench_function(format!("pack/{width} bits"), |b| {
            b.iter(|| {
                packed.clear();
                levels::pack(black_box(&values), width, &mut packed)
            });
        });
    }
}

fn run_lengths(c: &mut Criterion) {
    let mut group = c.benchmark_group("rle");
    let runs: Vec<u32> = random().take(COUNT / 32).flat_map(|n| std::iter::repeat_n(n % 100, 32)).collect();
    let noise: Vec<u32> = random().take(COUNT).collect();
    let mut out = vec![0u32; COUNT];
    for (name, width, values) in [
        ("runs of 32", 32, &runs),
        ("noise", 32, &noise),
        ("noise of 24 bits", 24, &noise),
        ("runs of 7 bits", 7, &runs),
    ] {
        let mut stream = Vec::new();
        rle::encode(values, width, &mut stream);
        group.throughput(Throughput::Bytes(4 * COUNT as u64));
        group.bench_function(format!("decode/{name}"), |b| {
            b.iter(|| rle::decode(black_box(&stream), width, black_box(&mut out)));
        });
        group.bench_function(format!("encode/{name}"), |b| {
            b.iter(|| {
                stream.clear();
                rle::encode(black_box(values), width, &mut stream);
            });
        });
    }
    // Null bitmaps of a million rows; the throughput is that of the bitmap.
    let rows = 1 << 20;
    let bitmap = |nulls_in_256: u32| {
        let values: Vec<bool> = random().take(rows).map(|n| n % 256 >= nulls_in_256).collect();
        let mut packed = Vec::new();
        bits::pack(&values, &mut packed);
        packed
    };
    for (name, bitmap) in [("no nulls", bitmap(0)), ("few nulls", bitmap(3)), ("half nulls", bitmap(128))] {
        let mut stream = Vec::new();
        rle::encode_bitmap(&bitmap, 0, rows, &mut stream);
        let mut out = Vec::new();
        group.throughput(Throughput::Bytes(rows as u64 / 8));
        group.bench_function(format!("decode_bitmap/{name}"), |b| {
            b.iter(|| {
                out.clear();
                rle::decode_bitmap(black_box(&stream), rows, &mut out)
            });
        });
        group.bench_function(format!("encode_bitmap/{name}"), |b| {
            b.iter(|| {
                stream.clear();
                rle::encode_bitmap(black_box(&bitmap), 0, rows, &mut stream);
            });
        });
    }
}

fn bit_packing(c: &mut Criterion) {
    let values: Vec<u32> = random().take(COUNT).collect();
    let mut out = vec![0u32; COUNT];
    let mut group = c.benchmark_group("bits");
    group.throughput(Throughput::Bytes(4 * COUNT as u64));
    for width in [1, 5, 13, 24] {
        let mut packed = Vec::new();
        bits::pack_width(&values, width, &mut packed);
        group.bench_function(format!("unpack/{width}"), |b| {
            b.iter(|| bits::unpack_width(black_box(&packed), width, 0, black_box(&mut out)));
        });
        group.bench_function(format!("pack/{width}"), |b| {
            b.iter(|| {
                packed.clear();
                bits::pack_width(black_box(&values), width, &mut packed);
            });
        });
    }
}

fn codes(c: &mut Criterion) {
    let codes: Vec<u32> = random().take(COUNT).map(|n| n % 200).collect();
    let mut out = vec![0u32; COUNT];
    let mut group = c.benchmark_group("codes");
    group.throughput(Throughput::Bytes(4 * COUNT as u64));
    for element_size in [1, 2] {
        let mut bytes = Vec::new();
        dictionary::narrow(&codes, element_size, &mut bytes).expect("small codes");
        group.bench_function(format!("widen/{element_size}"), |b| {
            b.iter(|| dictionary::widen(black_box(&bytes), element_size, black_box(&mut out)));
        });
    }
    group.bench_function("check", |b| b.iter(|| dictionary::check_codes(black_box(&codes), 200)));
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = plain_values, varints, zigzags, frames, group_varints, wide_group_varints, packed_levels, run_lengths, bit_packing, codes
}
criterion_main!(benches);
