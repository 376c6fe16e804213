//! Any bytes as a log segment, and as the rows of a write request.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_kudu::fuzzing::log_segment(data));
