//! Any bytes as the Thrift structs and encoder meta of CarbonData files.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::structures(data));
