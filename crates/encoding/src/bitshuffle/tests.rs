use super::*;
use proptest::prelude::*;

const ELEMENT_SIZES: [usize; 8] = [1, 2, 3, 4, 8, 12, 16, 32];

/// The definition of the layout, bit by bit.
fn shuffle_by_definition(element_size: usize, src: &[u8]) -> Vec<u8> {
    let k = src.len() / element_size;
    let mut out = vec![0; src.len()];
    for row in 0..8 * element_size {
        for i in 0..k {
            let bit = (src[i * element_size + row / 8] >> (row % 8)) & 1;
            let at = row * k + i;
            out[at / 8] |= bit << (at % 8);
        }
    }
    out
}

#[test]
fn block_sizes_are_those_of_the_library() {
    let sizes = ELEMENT_SIZES.map(block_elements);
    assert_eq!(sizes, [8192, 4096, 2728, 2048, 1024, 680, 512, 256]);
    assert_eq!(block_elements(100), 128);
}

#[test]
fn worked_example() -> Result<()> {
    // The `bshuf` column of the tiny table: 0, 257, … 2313.
    let values: Vec<u8> = (0..16u32).flat_map(|i| if i < 10 { i * 257 } else { 0 }.to_le_bytes()).collect();
    let packed = [
        0, 0, 0, 0x19, 0x93, 0xaa, 0x02, 0xcc, 0x00, 0xf0, 0x00, 0x00, 0x03, 0x00, 0x01, 0x00, 0x0c, 0x10,
        0x00, 0x0f, 0x02, 0x00, 0x08, 0x50, 0, 0, 0, 0, 0,
    ];
    let mut out = [0; 64];
    decompress_lz4(4, &packed, &mut out)?;
    assert_eq!(out, *values);
    let mut rows = [0; 64];
    shuffle(4, &values, &mut rows)?;
    assert_eq!(rows[..10], [0xaa, 0x02, 0xcc, 0x00, 0xf0, 0x00, 0x00, 0x03, 0, 0]);
    assert_eq!(rows[16..24], [0xaa, 0x02, 0xcc, 0x00, 0xf0, 0x00, 0x00, 0x03]);
    Ok(())
}

#[test]
fn reads_the_codewords_of_the_worked_example() -> Result<()> {
    let packed = [0, 0, 0, 0x0c, 0x34, 0x4a, 0x01, 0x00, 0x01, 0x00, 0x50, 0, 0, 0, 0, 0];
    let mut codes = [9; 16];
    decompress_lz4(1, &packed, &mut codes)?;
    assert_eq!(codes[..9], [0, 1, 0, 1, 0, 0, 1, 0, 1]);
    Ok(())
}

#[test]
fn no_elements_are_no_bytes() {
    let mut out = Vec::new();
    assert_eq!(compress_lz4(8, &[], &mut out), Ok(()));
    assert!(out.is_empty());
    assert_eq!(decompress_lz4(8, &[], &mut []), Ok(()));
    assert!(decompress_lz4(8, &[0], &mut []).is_err());
}

#[test]
fn wrong_sizes_are_refused() {
    assert!(shuffle(5, &[0; 40], &mut [0; 40]).is_err());
    assert!(shuffle(0, &[0; 24], &mut [0; 24]).is_err());
    assert!(shuffle(4, &[0; 24], &mut [0; 24]).is_err());
    assert!(unshuffle(4, &[0; 32], &mut [0; 64]).is_err());
    assert!(decompress_lz4(4, &[], &mut [0; 33]).is_err());
}

fn check_all_kernels(element_size: usize, src: &[u8]) {
    let expected = shuffle_by_definition(element_size, src);
    for kernel in kernels() {
        let mut rows = vec![0x55; src.len()];
        kernel.shuffle(element_size, src, &mut rows).unwrap();
        assert!(rows == expected, "{} shuffles {} bytes of {element_size}", kernel.name(), src.len());
        let mut again = vec![0x55; src.len()];
        kernel.unshuffle(element_size, &rows, &mut again).unwrap();
        assert!(again == src, "{} unshuffles {} bytes of {element_size}", kernel.name(), src.len());
    }
}

/// Bytes without a pattern that a wrong permutation could hide in.
pub(super) fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    std::iter::repeat_with(|| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    })
    .take(len)
    .collect()
}

#[test]
fn kernels_agree_with_the_definition_at_every_length() {
    let lengths: &[usize] = if cfg!(miri) { &[1, 2, 9] } else { &[] };
    let groups = if lengths.is_empty() {
        (0..=140).chain([255, 256, 257, 511, 1024, 1031]).collect()
    } else {
        lengths.to_vec()
    };
    for element_size in ELEMENT_SIZES {
        for &groups in &groups {
            check_all_kernels(
                element_size,
                &noise(groups * 8 * element_size, 0x9e37_79b9_7f4a_7c15 + groups as u64),
            );
        }
    }
}

proptest! {
    #![proptest_config(crate::test_config())]
    #[test]
    fn kernels_agree_on_any_bytes(size in 0usize..ELEMENT_SIZES.len(), groups in 0usize..300, seed: u64, mask: u8) {
        let groups = if cfg!(miri) { groups % 8 } else { groups };
        let element_size = ELEMENT_SIZES[size];
        let bytes: Vec<u8> = noise(groups * 8 * element_size, seed | 1).iter().map(|byte| byte & mask).collect();
        check_all_kernels(element_size, &bytes);
    }

    #[test]
    fn compressed_round_trips(size in 0usize..8, groups in prop_oneof![0usize..40, 900usize..1400], seed: u64, mask: u8) {
        let element_size = ELEMENT_SIZES[size];
        let groups = if cfg!(miri) { groups % 8 } else { groups };
        let src: Vec<u8> = noise(groups * 8 * element_size, seed | 1).iter().map(|byte| byte & mask).collect();
        let mut packed = vec![7];
        compress_lz4(element_size, &src, &mut packed).unwrap();
        let packed = &packed[1..];
        let mut again = vec![0; src.len()];
        decompress_lz4_with(element_size, packed, &mut again, &mut Vec::new()).unwrap();
        prop_assert_eq!(&again, &src);
        prop_assert!(decompress_lz4(element_size, &[packed, &[0]].concat(), &mut again).is_err());
        if let Some((_, cut)) = packed.split_last() {
            prop_assert!(decompress_lz4(element_size, cut, &mut again).is_err());
            prop_assert!(decompress_lz4(element_size, &packed[..packed.len() / 2], &mut again).is_err());
        }
    }

    #[test]
    fn never_panics_on_any_bytes(size in 0usize..20, bytes in prop::collection::vec(any::<u8>(), 0..200), len in 0usize..400) {
        let _ = decompress_lz4(size, &bytes, &mut vec![0; len]);
        let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
        framed.extend(&bytes);
        let _ = decompress_lz4(size, &framed, &mut vec![0; len / 8 * 8 * size]);
        let _ = shuffle(size, &bytes, &mut vec![0; bytes.len()]);
        let _ = unshuffle(size, &bytes, &mut vec![0; len]);
    }
}
