//! Transposed bits: any bytes decode or fail; every kernel gives the same; elements survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::bitshuffle;

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (size, count, bytes) = input;
    let element_size = [1, 2, 4, 8, 16][usize::from(size) % 5];
    let mut out = vec![0; usize::from(count) * element_size];
    let _ = bitshuffle::decompress_lz4(element_size, &bytes, &mut out);

    let whole = bytes.len() / (element_size * 8) * element_size * 8;
    let elements = &bytes[..whole];
    let mut packed = Vec::new();
    bitshuffle::compress_lz4(element_size, elements, &mut packed).expect("whole groups of eight");
    let mut back = vec![0; whole];
    bitshuffle::decompress_lz4(element_size, &packed, &mut back).expect("what was compressed");
    assert_eq!(back, elements);

    let mut wanted: Option<Vec<u8>> = None;
    for kernel in bitshuffle::kernels() {
        let mut shuffled = vec![0; whole];
        kernel.shuffle(element_size, elements, &mut shuffled).expect("whole groups of eight");
        kernel.unshuffle(element_size, &shuffled, &mut back).expect("whole groups of eight");
        assert_eq!(back, elements);
        assert_eq!(*wanted.get_or_insert_with(|| shuffled.clone()), shuffled);
    }
});
