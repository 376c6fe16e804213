//! Tables of any schema, written as a segment with any options, read back the same.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::segment_round_trip(data));
