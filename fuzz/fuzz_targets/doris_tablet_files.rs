//! Any bytes as the metadata of a tablet and as a container of indexes.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::tablet_files(data));
