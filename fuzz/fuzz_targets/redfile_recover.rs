//! Any bytes as a Redfile without a footer: the fast way finds what the slow way finds, and what is found can be read and
//! written whole again.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use pilaster_core::progress::Silent;
use pilaster_core::source::MemorySource;
use pilaster_core::{Dataset, Limits, LossLog, RowRanges, SourceRef};
use pilaster_redfile::{
    Effort, RecoverySource, RedfileReader, RedfileReaderOptions, RepairOptions, kernels, recover, repair,
};

fuzz_target!(|data: &[u8]| {
    let source: SourceRef = Arc::new(MemorySource::new("fuzz", data.to_vec()));
    let limits = Limits::small();
    if let Ok(fast) = recover(&source, Effort::Checkpoints, &limits)
        && fast.report.source != Some(RecoverySource::Footer)
    {
        let slow = kernels::recover_by_full_scan(&source, &limits).expect("bytes in memory");
        assert_eq!(fast.metadata, slow.and_then(|slow| slow.metadata));
    }
    let options = RedfileReaderOptions::default()
        .with_limits(limits)
        .with_data_files(|path| Err(pilaster_core::Error::invalid(format!("no file {path}"))));
    if let Ok((reader, _)) = RedfileReader::recover(Arc::clone(&source), None, &options) {
        let rows = RowRanges::one(0..reader.row_count().unwrap_or(0).min(1 << 16));
        let log = Arc::new(LossLog::new());
        for batch in reader.scan().rows(rows).skip_damage(log).read().into_iter().flatten() {
            let _ = batch;
        }
    }
    let options = RepairOptions { reader: options, ..RepairOptions::default() };
    if let Ok((whole, _)) = repair(source, Vec::new(), &options, &Silent) {
        let reader = RedfileReader::open(Arc::new(MemorySource::new("whole", whole))).expect("a whole file");
        let rows = RowRanges::one(0..reader.row_count().unwrap_or(0).min(1 << 16));
        for batch in reader.scan().rows(rows).read().expect("a scan") {
            batch.expect("rows");
        }
    }
});
