//! Blocks that need bytes which stand elsewhere: a dictionary that all blocks of a file share, or a frame without a length.

use super::{Codec, lz4, wrong_length};
use crate::{DecodeError, Result};

/// Decompresses all of `src` into exactly `dst`, as [`Codec::decompress`] does, where the compressor knew `dictionary`: for LZ4
/// and Zstandard.
///
/// # Errors
/// As [`Codec::decompress`]; or if the codec knows no dictionaries.
pub fn decompress_with(codec: Codec, src: &[u8], dictionary: &[u8], dst: &mut [u8]) -> Result<()> {
    match codec {
        Codec::Lz4 => {
            // The end of the dictionary stands right before the content; further back than this nothing is repeated.
            const WINDOW: usize = 64 << 10;
            let known = dictionary.get(dictionary.len().saturating_sub(WINDOW)..).unwrap_or_default();
            let mut joined = Vec::with_capacity(known.len().saturating_add(dst.len()));
            joined.extend_from_slice(known);
            joined.resize(known.len().saturating_add(dst.len()), 0);
            let end = lz4::decompress_behind(src, &mut joined, known.len())?;
            match joined.get(known.len()..) {
                Some(content) if end == joined.len() => dst.copy_from_slice(content),
                _ => {
                    let made = end.saturating_sub(known.len());
                    return Err(wrong_length(codec, dst.len(), format_args!("{made} bytes")));
                }
            }
            Ok(())
        }
        #[cfg(feature = "zstd")]
        Codec::Zstd => super::zstd::decompress_with(src, dictionary, dst),
        _ => Err(DecodeError::new(0, "a codec with dictionaries", codec.name())),
    }
}

/// Decompresses Zstandard frames that do not say how long their content is, up to `max_len` bytes.
///
/// # Errors
/// If `src` is malformed or gives more than `max_len` bytes.
#[cfg(feature = "zstd")]
pub fn decompress_zstd_stream(src: &[u8], max_len: usize) -> Result<Vec<u8>> {
    super::zstd::decompress_stream(src, max_len)
}

#[cfg(feature = "zstd")]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn zstd_with(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
        ::zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap().compress(bytes).unwrap()
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(bytes in prop::collection::vec(0u8..4, 0..3000), dictionary in prop::collection::vec(0u8..4, 0..500)) {
            for (codec, packed) in [
                (Codec::Zstd, zstd_with(&bytes, &dictionary)),
                (Codec::Lz4, lz4_flex::block::compress_with_dict(&bytes, &dictionary)),
            ] {
                let mut out = vec![0; bytes.len()];
                decompress_with(codec, &packed, &dictionary, &mut out).unwrap();
                prop_assert_eq!(&out, &bytes);
                prop_assert!(decompress_with(codec, &packed, &dictionary, &mut vec![0; bytes.len() + 1]).is_err());
            }
        }

        #[test]
        fn frames_without_a_length_are_read_up_to_a_limit(bytes in prop::collection::vec(0u8..4, 0..3000)) {
            let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
            std::io::Write::write_all(&mut encoder, &bytes).unwrap();
            let packed = encoder.finish().unwrap();
            prop_assert_eq!(decompress_zstd_stream(&packed, bytes.len()).unwrap(), bytes.clone());
            if !bytes.is_empty() {
                prop_assert!(decompress_zstd_stream(&packed, bytes.len() - 1).is_err());
            }
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0usize..2000) {
            let _ = decompress_with(Codec::Lz4, &bytes, b"abcd", &mut vec![0; length]);
            let _ = decompress_with(Codec::Zstd, &bytes, b"abcd", &mut vec![0; length]);
            let _ = decompress_zstd_stream(&bytes, length);
        }
    }
}
