//! Deflate (RFC 1951) as it is, without the head and the end of zlib and gzip.
//!
//! Three bytes, which deflate stores as they are:
//!
//! ```
//! # use pilaster_encoding::codec::deflate;
//! // last block, stored | its length and that inverted | the bytes
//! let stream = [1, 3, 0, 0xfc, 0xff, b'a', b'b', b'c'];
//! let mut content = [0; 3];
//! deflate::decompress(&stream, &[], &mut content)?;
//! assert_eq!(&content, b"abc");
//! # Ok::<(), pilaster_encoding::DecodeError>(())
//! ```

use crate::{DecodeError, Result};
use flate2::{Decompress, FlushDecompress, Status};
use std::cell::RefCell;

thread_local! {
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// Decompresses all of `src` into exactly `dst`. The stream may repeat bytes of `dictionary`, which is empty where there is none.
///
/// # Errors
/// If `src` is malformed, does not give exactly `dst.len()` bytes, or goes on after them.
pub fn decompress(src: &[u8], dictionary: &[u8], dst: &mut [u8]) -> Result<()> {
    let wanted = dst.len();
    let (used, made, is_whole) = run(src, dictionary, dst)?;
    match is_whole && used == src.len() && made == wanted {
        true => Ok(()),
        false => Err(wrong(wanted, format_args!("{made} bytes out of {used} of {}", src.len()))),
    }
}

/// Decompresses all of `src`, which does not say how long its content is, up to `max_len` bytes.
///
/// # Errors
/// If `src` is malformed, gives more than `max_len` bytes, or goes on after them.
pub fn decompress_unsized(src: &[u8], dictionary: &[u8], max_len: usize) -> Result<Vec<u8>> {
    // Deflate makes 1032 bytes out of one at most.
    let most = src.len().saturating_mul(1032).min(max_len);
    let mut length = src.len().saturating_mul(4).clamp(64.min(most), most);
    loop {
        let mut out = vec![0; length];
        let (used, made, is_whole) = run(src, dictionary, &mut out)?;
        if is_whole && used == src.len() {
            out.truncate(made);
            return Ok(out);
        }
        if is_whole || length >= most {
            return Err(wrong(most, format_args!("{made} bytes out of {used} of {}", src.len())));
        }
        length = length.saturating_mul(4).min(most);
    }
}

/// Bytes used, bytes made, and whether the stream ended.
fn run(src: &[u8], dictionary: &[u8], dst: &mut [u8]) -> Result<(usize, usize, bool)> {
    INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(false);
        let wanted = dst.len();
        let fail = |error: flate2::DecompressError| wrong(wanted, error);
        if !dictionary.is_empty() {
            inflate.set_dictionary(dictionary).map_err(fail)?;
        }
        let mut status = inflate.decompress(src, dst, FlushDecompress::Finish).map_err(fail)?;
        let mut made = inflate.total_out();
        if status != Status::StreamEnd && made == wanted as u64 {
            // The end mark may still stand there when the output is full already; a byte more is one too many.
            let used = usize::try_from(inflate.total_in()).unwrap_or(usize::MAX);
            let rest = src.get(used..).unwrap_or_default();
            status = inflate.decompress(rest, &mut [0], FlushDecompress::Finish).map_err(fail)?;
            made = inflate.total_out();
        }
        let number = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let is_whole = status == Status::StreamEnd && made <= wanted as u64;
        Ok((number(inflate.total_in()), number(made), is_whole))
    })
}

fn wrong(expected: usize, found: impl std::fmt::Display) -> DecodeError {
    DecodeError::new(0, format!("deflate data of {expected} bytes"), format!("{found}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compress, Compression, FlushCompress};
    use proptest::prelude::*;

    fn compress(bytes: &[u8], dictionary: &[u8]) -> Vec<u8> {
        let mut deflate = Compress::new(Compression::new(6), false);
        if !dictionary.is_empty() {
            deflate.set_dictionary(dictionary).unwrap();
        }
        let mut out = Vec::with_capacity(bytes.len() * 2 + 100);
        assert_eq!(deflate.compress_vec(bytes, &mut out, FlushCompress::Finish).unwrap(), Status::StreamEnd);
        out
    }

    proptest! {
        #![proptest_config(crate::test_config())]
        #[test]
        fn round_trips(bytes in prop::collection::vec(0u8..4, 0..3000), dictionary in prop::collection::vec(0u8..4, 0..500)) {
            let packed = compress(&bytes, &dictionary);
            let mut out = vec![0; bytes.len()];
            decompress(&packed, &dictionary, &mut out).unwrap();
            prop_assert_eq!(&out, &bytes);
            prop_assert_eq!(decompress_unsized(&packed, &dictionary, bytes.len()).unwrap(), bytes.clone());
            prop_assert!(decompress(&packed, &dictionary, &mut vec![0; bytes.len() + 1]).is_err());
            if !bytes.is_empty() {
                prop_assert!(decompress(&packed, &dictionary, &mut vec![0; bytes.len() - 1]).is_err());
                prop_assert!(decompress_unsized(&packed, &dictionary, bytes.len() - 1).is_err());
            }
            let longer = [packed.as_slice(), &[0]].concat();
            prop_assert!(decompress(&longer, &dictionary, &mut out).is_err());
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300), length in 0usize..2000) {
            let _ = decompress(&bytes, &[], &mut vec![0; length]);
            let _ = decompress_unsized(&bytes, b"abc", length);
        }
    }
}
