//! Any bytes as a data page of any type and encoding.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::data_page(data));
