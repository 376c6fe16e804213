//! Checksums: any bytes in any number of pieces have that of a computation bit by bit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::checksum::{crc32, crc32_append, crc32c, crc32c_append};

fn bit_by_bit(bytes: &[u8], polynomial: u32) -> u32 {
    let mut register = u32::MAX;
    for byte in bytes {
        register ^= u32::from(*byte);
        for _ in 0..8 {
            register = register >> 1 ^ polynomial & 0u32.wrapping_sub(register & 1);
        }
    }
    !register
}

fuzz_target!(|pieces: Vec<Vec<u8>>| {
    let whole = pieces.concat();
    let (expected_c, expected) = (bit_by_bit(&whole, 0x82f6_3b78), bit_by_bit(&whole, 0xedb8_8320));
    assert_eq!((crc32c(&whole), crc32(&whole)), (expected_c, expected));
    let appended =
        pieces.iter().fold((0, 0), |(c, plain), piece| (crc32c_append(c, piece), crc32_append(plain, piece)));
    assert_eq!(appended, (expected_c, expected));
});
