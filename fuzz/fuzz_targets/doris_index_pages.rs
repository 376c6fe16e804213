//! Any bytes as the pages of indexes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::index_pages(data));
