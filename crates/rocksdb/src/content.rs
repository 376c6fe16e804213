//! The content of blocks: what stands in a file, decompressed.
//!
//! ```text
//! block:    content, compressed or not | u8 codec | u32 checksum of content and codec
//! codecs:   0 none   1 Snappy   2 deflate   3 bzip2   4, 5 LZ4   6 XPRESS   7, 64 Zstandard
//! content:  from format version 2 on, and for Zstandard in every version: varint length of what comes out | compressed bytes
//!           Snappy says it itself; before version 2 LZ4 had a u64 there, and deflate nothing
//! ```

use bytes::Bytes;
use pilaster_core::{Error, Limits, Result};
use pilaster_encoding::codec::{Codec, deflate, shared};
use pilaster_encoding::varint;

/// Decompresses `stored`; `dictionary` is what the data blocks of the table share, if they do.
pub(crate) fn decompress(
    codec: u8,
    stored: Bytes,
    version: u32,
    dictionary: &[u8],
    limits: &Limits,
) -> Result<Bytes> {
    let is_sized = version >= 2 || matches!(codec, 7 | 64);
    let mut at = 0;
    match codec {
        0 => return Ok(stored),
        1 => {
            let most = usize::try_from(limits.decoded_bytes).unwrap_or(usize::MAX);
            let length = Codec::Snappy.content_length(&stored, usize::MAX)?;
            limits.decoded(length as u64)?;
            return Ok(Codec::Snappy.decompress_sized(&stored, most)?.into());
        }
        2 if !is_sized => {
            let most = usize::try_from(limits.decoded_bytes).unwrap_or(usize::MAX);
            return Ok(deflate::decompress_unsized(&stored, dictionary, most)?.into());
        }
        2 | 4 | 5 | 7 | 64 => {}
        3 => return Err(Error::unsupported("blocks compressed with bzip2")),
        6 => return Err(Error::unsupported("blocks compressed with XPRESS")),
        other => return Err(Error::corrupt("a codec of RocksDB", other)),
    }
    let length = if is_sized {
        u64::from(varint::read_u32(&stored, &mut at)?)
    } else {
        at = 8;
        let length = stored.first_chunk().map(|eight| u64::from_le_bytes(*eight));
        length.ok_or_else(|| Error::corrupt("the length of a block", format!("{} bytes", stored.len())))?
    };
    let packed = stored.get(at..).unwrap_or_default();
    // What a codec makes of a byte at most; a length beyond that is none.
    let ratio = if matches!(codec, 7 | 64) { u64::MAX } else { 1032 };
    if length > (packed.len() as u64).saturating_mul(ratio) {
        return Err(Error::corrupt(
            format!("bytes for a block of {length}"),
            format!("{} of them", packed.len()),
        ));
    }
    let mut content = vec![0; limits.decoded(length)?];
    match codec {
        2 => deflate::decompress(packed, dictionary, &mut content)?,
        4 | 5 if dictionary.is_empty() => Codec::Lz4.decompress(packed, &mut content)?,
        4 | 5 => shared::decompress_with(Codec::Lz4, packed, dictionary, &mut content)?,
        _ if dictionary.is_empty() => Codec::Zstd.decompress(packed, &mut content)?,
        _ => shared::decompress_with(Codec::Zstd, packed, dictionary, &mut content)?,
    }
    Ok(content.into())
}
