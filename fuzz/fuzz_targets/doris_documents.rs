//! Any bytes as a JSONB document and as a cell of a VARIANT.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::documents(data));
