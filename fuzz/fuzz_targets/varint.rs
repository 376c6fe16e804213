//! Varints and zigzag: any bytes decode or fail without moving past the end; numbers survive, and small ones stay small.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::{varint, zigzag};

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
    let signed = value.cast_signed();
    let unsigned = zigzag::encode_i64(signed);
    assert_eq!(
        (zigzag::decode_i64(unsigned), unsigned / 2),
        (signed, signed.unsigned_abs() - u64::from(signed < 0))
    );
    assert_eq!(zigzag::encode_i64(zigzag::decode_i64(value)), value);
    let narrow = value as u32;
    assert_eq!(zigzag::encode_i32(zigzag::decode_i32(narrow)), narrow);
    let narrow = zigzag::decode_i32(narrow);
    assert_eq!(u64::from(zigzag::encode_i32(narrow)), zigzag::encode_i64(i64::from(narrow)));
});
