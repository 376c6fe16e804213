//! Zstandard frames.

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use std::cell::RefCell;
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

/// What the zstd program and the systems that use it take unless told otherwise.
const LEVEL: i32 = 3;

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

fn unusable(error: &std::io::Error) -> DecodeError {
    DecodeError::new(0, "memory for zstd", error.to_string())
}

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let packed = COMPRESSOR.with_borrow_mut(|slot| {
        let compressor = match slot {
            Some(compressor) => compressor,
            None => slot.insert(Compressor::new(LEVEL).map_err(|error| unusable(&error))?),
        };
        compressor
            .compress(src)
            .map_err(|error| DecodeError::new(0, "a block that zstd can hold", error.to_string()))
    })?;
    out.extend_from_slice(&packed);
    Ok(())
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let wanted = dst.len();
    let frame = find_frame_compressed_size(src)
        .map_err(|code| wrong_length(Codec::Zstd, wanted, zstd::zstd_safe::get_error_name(code)))?;
    if frame != src.len() {
        return Err(DecodeError::new(frame.min(src.len()), "the end of the zstd data", "more bytes"));
    }
    let made = DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(Decompressor::new().map_err(|error| unusable(&error))?),
        };
        decompressor.decompress_to_buffer(src, dst).map_err(|error| wrong_length(Codec::Zstd, wanted, error))
    })?;
    if made != wanted {
        return Err(wrong_length(Codec::Zstd, wanted, format_args!("{made} bytes")));
    }
    Ok(())
}

/// The length the frame's header promises.
pub(super) fn content_length(src: &[u8]) -> Result<u64> {
    match get_frame_content_size(src) {
        Ok(Some(length)) => Ok(length),
        Ok(None) => Err(DecodeError::new(0, "a zstd frame that says how long its content is", "no length")),
        Err(_) => Err(DecodeError::new(0, "a zstd frame", "other bytes")),
    }
}
