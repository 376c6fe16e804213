//! Any bytes as local dictionaries of CarbonData columns.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::dictionaries(data));
