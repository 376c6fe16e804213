//! Any bytes as a CarbonData file: open, verify, scan and recover.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pilaster_carbondata::file::{CarbonFileOptions, CarbonFileReader};
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, LossLog, SourceRef, VerifyDepth};

fuzz_target!(|data: &[u8]| {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    let limits = Limits::small();
    let options = CarbonFileOptions::default().with_limits(limits);
    if let Ok(reader) = CarbonFileReader::open_with_options(Arc::clone(&source), &options) {
        look_at(&reader);
    }
    if let Ok(reader) = CarbonFileReader::recover(source, &options) {
        look_at(&reader);
    }
});

fn look_at(reader: &CarbonFileReader) {
    let report = reader.verify(VerifyDepth::Values, &Silent).expect("looking itself does not fail");
    let failed = reader.scan().read().into_iter().flatten().any(|batch| batch.is_err());
    assert!(!failed || !report.is_sound(), "a scan fails where verifying finds nothing");
    let log = Arc::new(LossLog::new());
    for batch in reader.scan().row_numbers("row").skip_damage(log).read().into_iter().flatten() {
        batch.expect("a tolerant scan goes on");
    }
    let _ = (reader.describe(), reader.pages(), reader.column_statistics());
}
