//! Runs and literals: any bytes decode or fail; skipping is reading; values survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::rle::{self, RleDecoder};

fuzz_target!(|input: (u8, u16, u16, Vec<u8>, Vec<u64>)| {
    let (width, count, skip, bytes, values) = input;
    let width = u32::from(width % 64) + 1;
    let count = usize::from(count);
    let mut all = vec![0u64; count];
    let decoded = rle::decode(&bytes, width, &mut all);
    if let Ok(mut decoder) = RleDecoder::new(&bytes, width) {
        let skip = usize::from(skip).min(count);
        let mut rest = vec![0u64; count - skip];
        let partly = decoder.skip(skip).and_then(|()| decoder.read(&mut rest));
        if decoded.is_ok() {
            assert!(partly.is_ok());
            assert_eq!(rest, all[skip..]);
        }
    }
    let length = rle::stream_length(&bytes, width, count, &mut u64::MAX.clone());
    assert!(length.is_err() || length.as_ref().is_ok_and(|length| *length <= bytes.len()));
    let mut bits = Vec::new();
    if let Ok(ones) = rle::decode_bitmap(&bytes, count, &mut bits) {
        assert_eq!(bits.iter().map(|byte| byte.count_ones() as usize).sum::<usize>(), ones);
    }
    let mask = u64::MAX >> (64 - width);
    let values: Vec<u64> = values.into_iter().map(|value| value & mask).collect();
    let mut encoded = Vec::new();
    rle::encode(&values, width, &mut encoded);
    let mut back = vec![0u64; values.len()];
    rle::decode(&encoded, width, &mut back).expect("what was encoded");
    assert_eq!(back, values);
    let length = encoded.len();
    encoded.extend_from_slice(&bytes);
    assert_eq!(rle::stream_length(&encoded, width, values.len(), &mut u64::MAX.clone()), Ok(length));
});
