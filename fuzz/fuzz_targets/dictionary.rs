//! Codewords: any bytes widen or fail; words get one code each and are found again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use pilaster_encoding::dictionary::{self, DictionaryBuilder};

fuzz_target!(|input: (u8, u16, Vec<u8>, Vec<Vec<u8>>)| {
    let (size, count, bytes, words) = input;
    let element_size = [1, 2, 4][usize::from(size) % 3];
    let _ = dictionary::widen(&bytes, element_size, &mut vec![0; usize::from(count)]);

    let mut builder = DictionaryBuilder::new();
    let codes: Vec<u32> =
        words.iter().map(|word| builder.get_or_insert(word).expect("a small dictionary").0).collect();
    for (word, code) in words.iter().zip(&codes) {
        assert_eq!(builder.find(word), Some(*code));
        assert_eq!(builder.word(*code), Some(word.as_slice()));
    }
    let mut distinct = words.clone();
    distinct.sort();
    distinct.dedup();
    assert_eq!(builder.len(), distinct.len());
    let width = dictionary::narrowest(dictionary::max_code(&codes));
    let mut narrow = Vec::new();
    dictionary::narrow(&codes, width, &mut narrow).expect("codes that fit");
    let mut back = vec![0; codes.len()];
    dictionary::widen(&narrow, width, &mut back).expect("what was narrowed");
    assert_eq!(back, codes);
});
