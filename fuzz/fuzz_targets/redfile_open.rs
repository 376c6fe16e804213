//! Any bytes as a Redfile: open, verify, scan, with checksums and without.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, SourceRef, VerifyDepth};
use pilaster_redfile::{RedfileReader, RedfileReaderOptions};

fuzz_target!(|data: &[u8]| {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    for verify_checksums in [true, false] {
        let limits = Limits::small();
        let options = RedfileReaderOptions::default()
            .with_limits(limits)
            .with_verify_checksums(verify_checksums)
            .with_data_files(|path| Err(pilaster_core::Error::invalid(format!("no file {path}"))));
        let Ok(reader) = RedfileReader::open_with_options(Arc::clone(&source), &options) else { continue };
        let _ = reader.verify(VerifyDepth::Values, &Silent).expect("looking itself does not fail");
        // A file without columns may claim any number of rows.
        let rows = RowRanges::one(0..reader.row_count().unwrap_or(0).min(1 << 16));
        for batch in reader.scan().rows(rows.clone()).read().into_iter().flatten() {
            if batch.is_err() {
                break;
            }
        }
        let log = Arc::new(LossLog::new());
        for batch in reader.scan().rows(rows).row_numbers("row").skip_damage(log).read().into_iter().flatten()
        {
            let _ = batch;
        }
        let _ = (reader.describe(), reader.pages(), reader.column_statistics(), reader.inspect());
    }
});
