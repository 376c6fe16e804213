//! A CarbonData file, damaged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::damaged_file(data));
