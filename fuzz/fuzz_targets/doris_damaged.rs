//! A segment of any table, damaged under checksums that are right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_doris::fuzzing::damaged_segment(data));
