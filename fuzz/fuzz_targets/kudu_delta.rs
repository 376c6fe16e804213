//! Any bytes as a delta file.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_kudu::fuzzing::delta_file(data));
