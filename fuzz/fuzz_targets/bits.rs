//! Bitmaps and packed numbers: any bytes unpack or fail; what is appended is there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::{bits, levels};

fuzz_target!(|input: (u8, u16, u16, Vec<u8>, Vec<u64>, Vec<bool>)| {
    let (width, first, count, bytes, values, flags) = input;
    let width = u32::from(width % 64) + 1;
    let _ = bits::unpack_width(&bytes, width, usize::from(first), &mut vec![0u64; usize::from(count)]);
    let values: Vec<u64> = values.into_iter().map(|value| value & (u64::MAX >> (64 - width))).collect();
    let mut packed = Vec::new();
    bits::pack_width(&values, width, &mut packed);
    let mut back = vec![0u64; values.len()];
    bits::unpack_width(&packed, width, 0, &mut back).expect("what was packed");
    assert_eq!(back, values);

    let narrow = width % levels::MAX_WIDTH + 1;
    let _ = levels::unpack(&bytes, narrow, usize::from(count), &mut Vec::new());
    let small: Vec<u8> = bytes.iter().map(|byte| byte & ((1 << narrow) - 1)).collect();
    let (mut packed, mut expected, mut back) = (Vec::new(), Vec::new(), Vec::new());
    levels::pack(&small, narrow, &mut packed).expect("a width in range");
    bits::pack_width(&small, narrow, &mut expected);
    assert_eq!(packed, expected);
    levels::unpack(&packed, narrow, small.len(), &mut back).expect("what was packed");
    assert_eq!(back, small);

    let mut bitmap = Vec::new();
    bits::pack(&flags, &mut bitmap);
    assert_eq!(bits::count_ones(&bitmap, flags.len()), flags.iter().filter(|flag| **flag).count());
    let (mut appended, mut length) = (Vec::new(), 0);
    bits::append_run(&mut appended, &mut length, true, usize::from(first % 70)).expect("a small bitmap");
    let cut = usize::from(count) % (flags.len() + 1);
    bits::append_range(&mut appended, &mut length, &bitmap, cut, flags.len() - cut)
        .expect("bits that are there");
    assert_eq!(length, usize::from(first % 70) + flags.len() - cut);
    for (at, flag) in flags[cut..].iter().enumerate() {
        assert_eq!(bits::get(&appended, usize::from(first % 70) + at), *flag);
    }
    let _ = bits::append_range(&mut appended, &mut length, &bytes, usize::from(first), usize::from(count));
});
