//! Any bytes as the nodes of nested CarbonData columns.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::nested(data));
