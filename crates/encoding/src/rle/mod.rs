//! The hybrid of repeated runs and bit-packed literal runs.
//!
//! A stream of integers of `w` bits is a sequence of runs. Each starts at a byte boundary with a varint `h`:
//!
//! ```text
//! h even   h / 2 times the same value, which follows in ceil(w / 8) bytes, little-endian
//! h odd    h / 2 groups of eight values, which follow bit-packed, lowest bit first
//!
//! nine times 7, once -1, w = 32     12 07000000 | 02 ffffffff
//! 0110 1111 10, w = 1               05 f6 01                   two groups, six bits of the second unused
//! 1, 2, 3, w = 32                   03 01000000 02000000 03000000
//! ```
//!
//! The last literal run may be cut short, as in the last example: `h` counts whole groups, but only the bytes of the
//! values that exist follow. The number of values therefore always comes from outside. The stream ends exactly with
//! its bytes: bytes after the last wanted value, a run that goes on after it, or a group in which no value is wanted
//! are refused.
//!
//! It is Parquet's hybrid except for the short tail.

mod decode;
mod encode;

pub use crate::bits::Packable as RleValue;
pub use decode::{RleDecoder, decode, decode_bitmap, stream_length};
pub use encode::{RleEncoder, encode, encode_bitmap};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Result, bits};
    use proptest::prelude::*;

    #[test]
    fn worked_examples() -> Result<()> {
        let cases: [(&[i32], &[u8]); 4] = [
            (&[7, 7, 7, 7, 7, 7, 7, 7, 7, -1], &[0x12, 7, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff]),
            (&[1, 2, 3], &[3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]),
            (&[0, 0], &[4, 0, 0, 0, 0]),
            (&[], &[]),
        ];
        for (values, bytes) in cases {
            let mut out = Vec::new();
            encode(values, 32, &mut out);
            assert_eq!(out, bytes);
            let mut again = vec![0; values.len()];
            decode(bytes, 32, &mut again)?;
            assert_eq!(again, values);
        }
        Ok(())
    }

    #[test]
    fn worked_bitmaps() -> Result<()> {
        let cases: [(usize, &[u8], &[u8], usize); 5] = [
            (10, &[0x05, 0xf6, 0x01], &[0xf6, 0x01], 7),
            (9, &[0x05, 0x1f, 0x00], &[0x1f, 0x00], 5),
            (10, &[0x14, 0x00], &[0, 0], 0),
            (10, &[0x10, 0x01, 0x03, 0x02], &[0xff, 0x02], 9),
            (7, &[0x03, 0x7b], &[0x7b], 6),
        ];
        for (count, stream, bitmap, ones) in cases {
            let mut out = vec![0xaa];
            assert_eq!(decode_bitmap(stream, count, &mut out)?, ones);
            assert_eq!(&out[1..], bitmap);
            let mut again = Vec::new();
            encode_bitmap(bitmap, 0, count, &mut again);
            assert_eq!(again, stream);
        }
        Ok(())
    }

    #[test]
    fn array_lengths_of_the_worked_example() -> Result<()> {
        let bytes = [3, 2, 0, 0, 0, 0, 0, 2, 0, 4, 0, 1, 0, 1, 0];
        let mut out = [0u16; 7];
        decode(&bytes, 16, &mut out)?;
        assert_eq!(out, [2, 0, 0, 2, 4, 1, 1]);
        Ok(())
    }

    /// Runs and noise in one sequence, which is what the run decisions are about.
    fn runs(bits: u32) -> impl Strategy<Value = Vec<u64>> {
        let value = prop_oneof![Just(0), Just(1), any::<u64>()].prop_map(move |v| v & bits::width_mask(bits));
        prop::collection::vec(
            (value, prop_oneof![Just(1usize), 1usize..20, 500usize..600]),
            0..if cfg!(miri) { 6 } else { 60 },
        )
        .prop_map(|runs| runs.into_iter().flat_map(|(v, n)| std::iter::repeat_n(v, n)).collect())
    }

    fn one_by_one(values: &[u64], width: u32) -> Vec<u8> {
        let mut encoder = RleEncoder::new(width);
        for &value in values {
            encoder.push(value);
        }
        assert_eq!(encoder.len(), values.len());
        encoder.finish()
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips((width, values) in (1u32..=64).prop_flat_map(|width| (Just(width), runs(width)))) {
            let mut out = Vec::new();
            encode(&values, width, &mut out);
            prop_assert_eq!(&out, &one_by_one(&values, width));
            let mut again = vec![0u64; values.len()];
            decode(&out, width, &mut again).unwrap();
            prop_assert_eq!(&again, &values);
            let mut encoder = RleEncoder::new(width);
            for run in values.chunk_by(|a, b| a == b) {
                encoder.push_run(run[0], run.len());
            }
            prop_assert_eq!(&out, &encoder.finish());
            // What follows does not matter, a missing byte does.
            let followed = [out.as_slice(), &[0xff; 70]].concat();
            let mut left = 10_000;
            prop_assert_eq!(stream_length(&followed, width, values.len(), &mut left), Ok(out.len()));
            let runs = 10_000 - left;
            prop_assert_eq!(stream_length(&followed, width, values.len(), &mut runs.clone()), Ok(out.len()));
            if let Some((_, cut)) = out.split_last() {
                prop_assert!(stream_length(cut, width, values.len(), &mut left).is_err());
                prop_assert!(stream_length(&followed, width, values.len(), &mut (runs - 1)).is_err());
            }
        }

        #[test]
        fn bitmaps_round_trip(values in runs(1), offset in 0usize..20) {
            let bools: Vec<bool> = values.iter().map(|&v| v == 1).collect();
            let offset = offset.min(bools.len());
            let mut bitmap = Vec::new();
            bits::pack(&bools, &mut bitmap);
            let mut stream = Vec::new();
            encode_bitmap(&bitmap, offset, bools.len() - offset, &mut stream);
            prop_assert_eq!(&stream, &one_by_one(&values[offset..], 1));
            let mut again = Vec::new();
            let ones = decode_bitmap(&stream, bools.len() - offset, &mut again).unwrap();
            let mut expected = Vec::new();
            bits::pack(&bools[offset..], &mut expected);
            prop_assert_eq!(ones, bits::count_ones(&expected, bools.len()));
            prop_assert_eq!(again, expected);
        }

        #[test]
        fn skipping_equals_reading(values in runs(16), cuts in prop::collection::vec((any::<bool>(), 0usize..300), 0..30)) {
            let stream = one_by_one(&values, 16);
            let mut decoder = RleDecoder::new(&stream, 16).unwrap();
            let mut at = 0;
            for (skip, n) in cuts {
                let n = n.min(values.len() - at);
                if skip {
                    decoder.skip(n).unwrap();
                } else {
                    let mut out = vec![0u32; n];
                    decoder.read(&mut out).unwrap();
                    prop_assert!(out.iter().zip(&values[at..]).all(|(&a, &b)| u64::from(a) == b));
                }
                at += n;
            }
            decoder.skip(values.len() - at).unwrap();
            prop_assert!(decoder.skip(16).is_err());
            prop_assert_eq!(decoder.finish(), Ok(()));
        }

        #[test]
        fn cut_or_counted_wrong_is_refused(values in runs(8), cut in any::<prop::sample::Index>()) {
            let stream = one_by_one(&values, 8);
            prop_assume!(!stream.is_empty());
            let mut out = vec![0u8; values.len()];
            prop_assert!(decode(&stream[..cut.index(stream.len())], 8, &mut out).is_err());
            prop_assert!(decode(&stream, 8, &mut out[1..]).is_err());
            let mut longer = vec![0u8; values.len() + 1];
            prop_assert!(decode(&stream, 8, &mut longer).is_err());
            let with_rest = [&stream[..], &[0]].concat();
            prop_assert!(decode(&with_rest, 8, &mut out).is_err());
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), width in 0u32..70, count in 0usize..3000) {
            let _ = decode(&bytes, width, &mut vec![0u64; count]);
            let _ = decode(&bytes, width, &mut vec![0u8; count]);
            let mut out = Vec::new();
            let ones = decode_bitmap(&bytes, count, &mut out);
            let mut slow = vec![0u8; count];
            prop_assert_eq!(ones.is_ok(), decode(&bytes, 1, &mut slow).is_ok());
            if let Ok(ones) = ones {
                prop_assert_eq!(ones, slow.iter().filter(|&&v| v == 1).count());
            }
            if let Ok(mut decoder) = RleDecoder::new(&bytes, width) {
                let _ = decoder.skip(count);
                let _ = decoder.finish();
            }
        }
    }
}
