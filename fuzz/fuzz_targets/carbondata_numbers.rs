//! Any bytes as pages of numbers of CarbonData columns: every type, encoding and stored form.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::numbers(data));
