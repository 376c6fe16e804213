//! Groups of four: any bytes decode or fail, fast as slowly; numbers survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::{frame_of_reference, group_varint};

fuzz_target!(|input: (u16, u32, Vec<u8>, Vec<u32>)| {
    let (count, min, bytes, values) = input;
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
});
