//! A Redfile without checksums, damaged.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| pilaster_redfile::fuzzing::damaged_file(data));
