//! Any bytes as a file of a CarbonData stream.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::streams(data));
