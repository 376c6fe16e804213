//! Groups of four and of five: any bytes decode or fail, fast as slowly; numbers survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::group_varint::wide;
use pilaster_encoding::{frame_of_reference, group_varint};

fuzz_target!(|input: (u16, u32, Vec<u8>, Vec<u32>, Vec<u64>)| {
    let (count, min, bytes, values, longs) = input;
    let count = usize::from(count);
    let mut fast = Vec::new();
    if let Ok(used) = group_varint::decode(&bytes, count, &mut fast) {
        assert_eq!(fast.len(), count);
        let (mut at, mut slow) = (0, Vec::new());
        while slow.len() < count {
            slow.extend(group_varint::decode_group(&bytes, &mut at).expect("groups that were decoded"));
        }
        assert_eq!(at, used);
        assert_eq!(fast, slow[..count]);
    }
    let _ = frame_of_reference::decode(&bytes, count, min, &mut Vec::new());

    let mut encoded = Vec::new();
    group_varint::encode(&values, &mut encoded);
    let mut back = Vec::new();
    assert_eq!(group_varint::decode(&encoded, values.len(), &mut back), Ok(encoded.len()));
    assert_eq!(back, values);

    let min = values.iter().min().copied().unwrap_or_default();
    let mut encoded = Vec::new();
    frame_of_reference::encode(&values, min, &mut encoded);
    let mut back = Vec::new();
    assert_eq!(frame_of_reference::decode(&encoded, values.len(), min, &mut back), Ok(encoded.len()));
    assert_eq!(back, values);

    let mut all = Vec::new();
    if wide::decode_all(&bytes, count, &mut all).is_ok() {
        let mut slow = Vec::new();
        let used = wide::kernels::decode_scalar(&bytes, count.div_ceil(wide::GROUP), &mut slow);
        assert_eq!(used, Ok(bytes.len()));
        assert_eq!(all, slow[..count]);
    }
    let mut encoded = Vec::new();
    wide::encode(&longs, &mut encoded);
    assert_eq!(encoded.len(), wide::encoded_size(&longs));
    let mut back = Vec::new();
    assert_eq!(wide::decode_all(&encoded, longs.len(), &mut back), Ok(()));
    assert_eq!(back, longs);
});
