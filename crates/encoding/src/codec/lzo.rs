//! Raw LZO1X.

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use lzokay::compress::{Dict, compress_with_dict};
use std::cell::RefCell;

/// A stream of nothing: only the end mark.
const END: [u8; 3] = [0x11, 0, 0];

thread_local! {
    static DICT: RefCell<Box<Dict>> = RefCell::new(Dict::new());
}

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if src.is_empty() {
        out.extend_from_slice(&END);
        return Ok(());
    }
    match DICT.with_borrow_mut(|dict| compress_with_dict(src, dict)) {
        Ok(packed) => out.extend_from_slice(&packed),
        Err(error) => return Err(DecodeError::new(0, "a block that lzo can hold", error.to_string())),
    }
    Ok(())
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    match lzokay::decompress::decompress(src, dst) {
        Ok(len) if len == dst.len() => Ok(()),
        Ok(len) => Err(wrong_length(Codec::Lzo, dst.len(), format_args!("{len} bytes"))),
        Err(error) => Err(wrong_length(Codec::Lzo, dst.len(), error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_may_overlap() {
        // A first byte of 18 copies one literal; 0x20 and what follows repeats it 511 times.
        let packed = [0x12, b'x', 0x20, 0, 0xdf, 0, 0, 0x11, 0, 0];
        let mut out = [0; 512];
        decompress(&packed, &mut out).unwrap();
        assert!(out.iter().all(|&byte| byte == b'x'));
    }
}
