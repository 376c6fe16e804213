//! Any bytes as measures and packed numbers of CarbonData files of versions 1 and 2, and as a footer to copy from.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_carbondata::fuzzing::old_pages(data));
