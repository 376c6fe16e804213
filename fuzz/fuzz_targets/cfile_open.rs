//! Any bytes as a CFile: open, verify, scan, with checksums and without, as types that were asked for, and recover.
#![no_main]

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, SourceRef, VerifyDepth};
use pilaster_kudu::cfile::{AssumedShape, CFileReader, CFileReaderOptions, Compression, KuduType};

fuzz_target!(|data: &[u8]| {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    for verify_checksums in [true, false] {
        let options = options(verify_checksums);
        if let Ok(reader) = CFileReader::open_with_options(Arc::clone(&source), &options) {
            look_at(&reader);
        }
    }
    // As other types than its own: refused, or read in batches that fit.
    for data_type in [
        DataType::Utf8,
        DataType::LargeBinary,
        DataType::FixedSizeBinary(4),
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
        DataType::new_list(DataType::Binary, true),
        DataType::Decimal64(7, 2),
        DataType::Decimal128(20, 0),
    ] {
        let options = options(false).with_field(Field::new("value", data_type, true));
        if let Ok(reader) = CFileReader::open_with_options(Arc::clone(&source), &options) {
            look_at(&reader);
        }
    }
    let number = data.iter().fold(0usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(*byte)));
    let data_type = KuduType::ALL[number % KuduType::ALL.len()];
    let encodings = data_type.encodings();
    let shape = AssumedShape {
        encoding: encodings[number / 32 % encodings.len()],
        compression: Compression::ALL[number / 256 % Compression::ALL.len()],
        is_nullable: number & 1024 != 0,
        is_array: number & 2048 != 0 && !matches!(data_type, KuduType::Decimal128 | KuduType::Int128),
        has_checksums: number & 4096 != 0,
        ..AssumedShape::new(data_type)
    };
    if data.len() < 4096 {
        if let Ok(reader) = CFileReader::recover(source, &shape, &options(true)) {
            look_at(&reader);
        }
    }
});

fn options(verify_checksums: bool) -> CFileReaderOptions {
    let limits = Limits { batch_bytes: 1 << 16, ..Limits::small() };
    CFileReaderOptions::default().with_limits(limits).with_verify_checksums(verify_checksums)
}

fn look_at(reader: &CFileReader) {
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking itself does not fail");
    // A few bytes can stand for four billion rows; the first ones show what there is to see.
    let rows = RowRanges::one(0..reader.row_count().unwrap_or(0).min(1 << 16));
    let mut failed = false;
    for batch in reader.scan().rows(rows.clone()).read().into_iter().flatten() {
        failed |= batch.is_err();
    }
    assert!(!failed || !report.is_sound(), "a scan fails where verifying finds nothing");
    let log = Arc::new(LossLog::new());
    for batch in reader.scan().rows(rows).row_numbers("row").skip_damage(log).read().into_iter().flatten() {
        batch.expect("a tolerant scan goes on");
    }
    let _ = (
        reader.describe(),
        reader.pages(),
        reader.column_statistics_with_sizes(),
        reader.bloom_may_contain(b"key"),
    );
}
