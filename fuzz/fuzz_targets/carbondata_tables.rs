//! Any bytes as the metadata files of a CarbonData table, and as a data file of version 1 or 2.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::tables(data));
