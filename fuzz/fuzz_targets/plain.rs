//! Values of fixed width: any bytes of the right length are values and come back, any other length is refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::plain::{self, Fixed};

fn check<T: Fixed>(bytes: &[u8], count: usize) {
    let mut values = vec![T::default(); count];
    let decoded = plain::decode_into(bytes, &mut values);
    assert_eq!(decoded.is_ok(), bytes.len() == count * T::WIDTH);
    if decoded.is_ok() {
        let mut again = b"before".to_vec();
        plain::encode(&values, &mut again);
        assert_eq!(&again[6..], bytes);
    }
    let mut one = Vec::new();
    match T::from_le(bytes) {
        Some(value) => {
            value.write_le(&mut one);
            assert_eq!(one, bytes[..T::WIDTH]);
        }
        None => assert!(bytes.len() < T::WIDTH),
    }
}

fuzz_target!(|input: (Vec<u8>, u8)| {
    let (bytes, count) = input;
    for count in
        [usize::from(count), bytes.len(), bytes.len() / 2, bytes.len() / 4, bytes.len() / 8, bytes.len() / 16]
    {
        check::<u8>(&bytes, count);
        check::<i16>(&bytes, count);
        check::<u32>(&bytes, count);
        check::<f32>(&bytes, count);
        check::<i64>(&bytes, count);
        check::<f64>(&bytes, count);
        check::<u128>(&bytes, count);
    }
});
