//! Varints and zigzag: any bytes decode or fail without moving past the end; numbers survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::varint;

fuzz_target!(|input: (Vec<u8>, u64)| {
    let (bytes, value) = input;
    let mut at = 0;
    while let Ok(number) = varint::read_u64(&bytes, &mut at) {
        assert!(at <= bytes.len() && varint::len_u64(number) <= 10);
    }
    let mut at = 0;
    while varint::read_u32(&bytes, &mut at).is_ok() {
        assert!(at <= bytes.len());
    }
    let mut encoded = Vec::new();
    varint::write_u64(&mut encoded, value);
    let mut at = 0;
    assert_eq!(varint::read_u64(&encoded, &mut at), Ok(value));
    assert_eq!((at, encoded.len()), (encoded.len(), varint::len_u64(value)));
});
