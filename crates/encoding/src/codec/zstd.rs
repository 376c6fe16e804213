//! Zstandard frames.

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{CParameter, get_frame_content_size};

/// What the zstd program and the systems that use it take unless told otherwise.
const LEVEL: i32 = 3;

thread_local! {
    // Contexts are large and made once per thread; a machine without memory for one gets an error at each use.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let failed =
        |error: std::io::Error| DecodeError::new(0, "a block that Zstandard can hold", error.to_string());
    COMPRESSOR.with_borrow_mut(|kept| {
        let compressor = match kept {
            Some(compressor) => compressor,
            None => {
                let mut compressor = Compressor::new(LEVEL).map_err(failed)?;
                compressor.set_parameter(CParameter::ChecksumFlag(true)).map_err(failed)?;
                kept.insert(compressor)
            }
        };
        out.extend(compressor.compress(src).map_err(failed)?);
        Ok(())
    })
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let failed = |error: std::io::Error| DecodeError::new(0, "a Zstandard frame", error.to_string());
    if src.is_empty() {
        return Err(wrong_length(Codec::Zstd, dst.len(), "no bytes"));
    }
    let length = DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new().map_err(failed)?),
        };
        decompressor.decompress_to_buffer(src, dst).map_err(failed)
    })?;
    if length != dst.len() {
        return Err(wrong_length(Codec::Zstd, dst.len(), length));
    }
    Ok(())
}

/// Decompresses a frame whose compressor knew `dictionary`.
pub(super) fn decompress_with(src: &[u8], dictionary: &[u8], dst: &mut [u8]) -> Result<()> {
    let failed = |error: std::io::Error| DecodeError::new(0, "a Zstandard frame", error.to_string());
    let mut decompressor = Decompressor::with_dictionary(dictionary).map_err(failed)?;
    let length = decompressor.decompress_to_buffer(src, dst).map_err(failed)?;
    if src.is_empty() || length != dst.len() {
        return Err(wrong_length(Codec::Zstd, dst.len(), length));
    }
    Ok(())
}

/// Decompresses frames that do not say how long their content is.
pub(super) fn decompress_stream(src: &[u8], max_len: usize) -> Result<Vec<u8>> {
    use std::io::Read;
    let failed = |error: std::io::Error| DecodeError::new(0, "a Zstandard frame", error.to_string());
    let mut out = Vec::new();
    let limit = (max_len as u64).saturating_add(1);
    let decoder = zstd::stream::read::Decoder::with_buffer(src).map_err(failed)?;
    decoder.take(limit).read_to_end(&mut out).map_err(failed)?;
    if out.len() > max_len {
        return Err(wrong_length(Codec::Zstd, max_len, "more"));
    }
    Ok(out)
}

/// The length the frame's header promises.
pub(super) fn content_length(src: &[u8]) -> Result<u64> {
    match get_frame_content_size(src) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err(DecodeError::new(0, "a zstd frame that says how long its content is", "no length")),
        Err(_) => Err(DecodeError::new(0, "a zstd frame", "other bytes")),
    }
}
