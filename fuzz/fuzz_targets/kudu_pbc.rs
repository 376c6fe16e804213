//! Any bytes as a protobuf container and its records as block records.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_kudu::fuzzing::container(data));
