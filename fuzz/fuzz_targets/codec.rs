//! Block codecs: any bytes decompress to exactly the size asked for, or fail; blocks survive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::codec::Codec;

fuzz_target!(|input: (u8, u16, Vec<u8>)| {
    let (codec, size, bytes) = input;
    let codec = Codec::ALL[usize::from(codec) % Codec::ALL.len()];
    let mut out = vec![0; usize::from(size)];
    let _ = codec.decompress(&bytes, &mut out);
    let mut packed = Vec::new();
    codec.compress(&bytes, &mut packed).expect("a block");
    let mut back = vec![0; bytes.len()];
    codec.decompress(&packed, &mut back).expect("what was compressed");
    assert_eq!(back, bytes);
    // Where a block ends is told whatever follows it.
    assert!(codec.stored_length(&bytes, usize::from(size)).map_or(true, |length| length <= bytes.len()));
    if matches!(codec, Codec::Lz4 | Codec::Snappy | Codec::Zlib) {
        let followed = [packed.as_slice(), &bytes].concat();
        assert_eq!(codec.stored_length(&followed, bytes.len()), Ok(packed.len()));
    }
    let mut longer = vec![0; bytes.len() + 1];
    assert!(codec.decompress(&packed, &mut longer).is_err());
});
