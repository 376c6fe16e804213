//! A CFile of any column, its blocks damaged under checksums that are right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_kudu::fuzzing::damaged_cfile(data));
