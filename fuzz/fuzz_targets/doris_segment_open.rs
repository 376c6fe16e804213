//! Any bytes as a Doris segment: open, verify, scan, with checksums and without.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, SourceRef, VerifyDepth};
use pilaster_doris::segment::{SegmentReader, SegmentReaderOptions};

fuzz_target!(|data: &[u8]| {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    let limits = Limits { metadata_bytes: 1 << 16, block_bytes: 1 << 20, decoded_bytes: 1 << 20, depth: 8, ..Limits::default() };
    for verify_checksums in [true, false] {
        let options =
            SegmentReaderOptions::default().with_limits(limits.clone()).with_verify_checksums(verify_checksums);
        if let Ok(reader) = SegmentReader::open_with_options(Arc::clone(&source), &options) {
            look_at(&reader);
        }
    }
});

fn look_at(reader: &SegmentReader) {
    // A few bytes can stand for two billion rows; the first ones show what there is to see.
    let rows = RowRanges::one(0..reader.row_count().unwrap_or(0).min(1 << 16));
    for batch in reader.scan().rows(rows.clone()).read().into_iter().flatten() {
        let _ = batch;
    }
    let log = Arc::new(LossLog::new());
    for batch in reader.scan().rows(rows).row_numbers("row").skip_damage(log).read().into_iter().flatten() {
        batch.expect("a tolerant scan goes on");
    }
    reader.verify(VerifyDepth::Checksums, &Silent).expect("looking itself does not fail");
    let _ = (reader.describe(), reader.pages(), reader.column_statistics());
}
