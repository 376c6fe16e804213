//! The `.hdr` file: a header with lengths and a checksum, and the message behind it.
//!
//! ```text
//! .hdr = u64 0 | u32 version 1 | u64 file length | u32 0 | u64 message length | u32 Adler-32 of the message | u32 0 | TabletMetaPB
//! old  = u32 file length | u32 checksum | u32 message length | u32 Adler-32 | u32 0 | TabletMetaPB
//! ```

use pilaster_core::{Error, Result};

pub(super) const NEW_HEADER_BYTES: usize = 40;
const OLD_HEADER_BYTES: usize = 20;

/// The message of a `.hdr` file, its length and checksum compared.
pub(super) fn open_header(hdr: &[u8]) -> Result<&[u8]> {
    let cut = || Error::corrupt("a tablet header", format!("a file of {} bytes", hdr.len()));
    let word = |at: usize| {
        hdr.get(at..)
            .and_then(|rest| rest.first_chunk::<4>())
            .map(|four| u32::from_le_bytes(*four))
            .ok_or_else(cut)
    };
    let long = |at: usize| {
        hdr.get(at..)
            .and_then(|rest| rest.first_chunk::<8>())
            .map(|eight| u64::from_le_bytes(*eight))
            .ok_or_else(cut)
    };
    let (file_length, length, checksum, start) = if long(0)? == 0 {
        (long(12)?, long(24)?, word(32)?, NEW_HEADER_BYTES)
    } else {
        (u64::from(word(0)?), u64::from(word(8)?), word(12)?, OLD_HEADER_BYTES)
    };
    if file_length != hdr.len() as u64 {
        return Err(Error::corrupt(format!("a file of {file_length} bytes"), format!("{} bytes", hdr.len())));
    }
    let message = hdr.get(start..).unwrap_or_default();
    if message.len() as u64 != length {
        return Err(Error::corrupt(
            format!("a message of {length} bytes"),
            format!("{} bytes", message.len()),
        ));
    }
    let computed = adler32(message);
    if computed != checksum {
        return Err(Error::corrupt(format!("checksum {checksum:#010x}"), format!("{computed:#010x}")));
    }
    Ok(message)
}

/// The checksum of zlib: two sums modulo the largest prime below 2^16.
pub(super) fn adler32(bytes: &[u8]) -> u32 {
    const MODULUS: u32 = 65_521;
    /// So many bytes can be added before the larger sum overflows.
    const STRIDE: usize = 5552;
    let (mut a, mut b) = (1u32, 0u32);
    for chunk in bytes.chunks(STRIDE) {
        for byte in chunk {
            a = a.wrapping_add(u32::from(*byte));
            b = b.wrapping_add(a);
        }
        a %= MODULUS;
        b %= MODULUS;
    }
    b << 16 | a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }
}
