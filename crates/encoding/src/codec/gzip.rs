//! gzip.

use super::{Codec, wrong_length};
use crate::{DecodeError, Result};
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use std::io::{Read, Write};

/// The levels above search four times as long for matches: a table of orders takes 1.8 times as long to write, and 2.5 % less room.
const LEVEL: u32 = 5;

pub(super) fn compress(src: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let mut encoder = GzEncoder::new(&mut *out, Compression::new(LEVEL));
    let written = encoder.write_all(src).and_then(|()| encoder.finish().map(|_| ()));
    written.map_err(|error| {
        out.truncate(start);
        DecodeError::new(0, "a block that gzip can hold", error.to_string())
    })
}

pub(super) fn decompress(src: &[u8], dst: &mut [u8]) -> Result<()> {
    let wanted = dst.len();
    let fail = |error: std::io::Error| wrong_length(Codec::Gzip, wanted, error);
    let mut decoder = MultiGzDecoder::new(src);
    let mut made = 0usize;
    while let Some(rest) = dst.get_mut(made..).filter(|rest| !rest.is_empty()) {
        match decoder.read(rest).map_err(fail)? {
            0 => return Err(wrong_length(Codec::Gzip, wanted, format_args!("{made} bytes"))),
            count => made = made.saturating_add(count),
        }
    }
    // Reading on checks the trailer and that nothing follows it.
    match decoder.read(&mut [0]).map_err(fail)? {
        0 if src.is_empty() => Err(wrong_length(Codec::Gzip, wanted, "no bytes at all")),
        0 => Ok(()),
        _ => Err(wrong_length(Codec::Gzip, wanted, "more bytes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_members_are_one_block() {
        let mut packed = Vec::new();
        compress(b"one", &mut packed).unwrap();
        compress(b"two", &mut packed).unwrap();
        let mut out = [0; 6];
        decompress(&packed, &mut out).unwrap();
        assert_eq!(&out, b"onetwo");
    }
}
