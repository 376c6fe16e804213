//! Shared prefixes: any bytes decode within the limit or fail; values survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::prefix::{self, PrefixEncoder};

fuzz_target!(|input: (u16, u8, Vec<u8>, Vec<Vec<u8>>)| {
    const MOST: usize = 1 << 16;
    let (count, interval, bytes, words) = input;
    let (mut values, mut offsets) = (Vec::new(), Vec::new());
    if let Ok(used) = prefix::decode(&bytes, usize::from(count), &mut values, &mut offsets, MOST) {
        assert!(used <= bytes.len() && values.len() <= MOST && offsets.is_sorted());
        assert_eq!(offsets.len(), usize::from(count) + 1);
    }
    let mut encoder = PrefixEncoder::new(u32::from(interval) + 1);
    words.iter().for_each(|word| encoder.push(word));
    let (encoded, _) = encoder.finish();
    let (mut values, mut offsets) = (Vec::new(), Vec::new());
    let used = prefix::decode(&encoded, words.len(), &mut values, &mut offsets, usize::MAX)
        .expect("what was encoded");
    assert_eq!(used, encoded.len());
    for (word, ends) in words.iter().zip(offsets.windows(2)) {
        assert_eq!(word, &values[ends[0] as usize..ends[1] as usize]);
    }
});
