//! Any bytes as the body of a data page of any column: values or an error, and whole pages as in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, u8, u8, u16, Vec<u8>)| {
    let (physical, max_def, max_rep, encoding, entries, body) = input;
    pilaster_redfile::fuzzing::page(physical, max_def, max_rep, encoding, u32::from(entries), &body);
    pilaster_redfile::fuzzing::headers(&body);
});
