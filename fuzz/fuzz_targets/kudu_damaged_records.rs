//! A log segment and the records of a container, damaged under checksums that are right.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    pilaster_kudu::fuzzing::damaged_log(data);
    pilaster_kudu::fuzzing::damaged_container(data);
});
