//! Any bytes as a Doris segment: open, verify, scan and filter, with checksums and without.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::segment_open(data));
