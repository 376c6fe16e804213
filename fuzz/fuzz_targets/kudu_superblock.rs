//! Any bytes as a superblock, with a right checksum and without.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_kudu::fuzzing::superblock(data));
