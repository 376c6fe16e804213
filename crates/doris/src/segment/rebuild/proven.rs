//! A footer of which only the end is lost or damaged: its magic, or its length.
//!
//! The message begins where pages and descriptions of columns end, and its checksum stands behind it. One that is right
//! proves every byte of the message.

use pilaster_core::{Limits, Result, Source};
use pilaster_encoding::checksum::{crc32c, crc32c_append};

use super::region;
use crate::segment::footer::MAGIC;

/// Length and checksum.
const BEHIND: usize = 8;

/// The end of a whole file, and where it begins.
pub(super) struct Tail {
    pub start: u64,
    pub bytes: Vec<u8>,
}

/// The footer of the file whose pages end at `end`, if its checksum is right.
pub(super) fn tail(source: &dyn Source, end: u64, limits: &Limits) -> Result<Option<Tail>> {
    limits.metadata(source.size().saturating_sub(end))?;
    let bytes = source.read_at(end..source.size())?;
    let before = region::length(&bytes);
    let message = bytes.get(before..).unwrap_or_default();
    Ok(message_length(message).map(|length| {
        let checked = message.get(..length).unwrap_or_default();
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let tail = [checked, &length.to_le_bytes(), &crc32c(checked).to_le_bytes(), MAGIC].concat();
        Tail { start: end.saturating_add(before as u64), bytes: tail }
    }))
}

/// How long a message at the beginning of `bytes` is. Either its length or the magic tells where its checksum is.
fn message_length(bytes: &[u8]) -> Option<usize> {
    let word = |at: usize| bytes.get(at..)?.first_chunk().map(|four| u32::from_le_bytes(*four));
    let longest = bytes.len().checked_sub(BEHIND)?;
    let by_length = (1..=longest).filter(|length| word(*length) == u32::try_from(*length).ok());
    let by_magic = longest.checked_sub(MAGIC.len()).into_iter();
    // Every byte is summed up once, however many lengths are possible.
    let (mut summed, mut crc) = (0, crc32c(&[]));
    for length in by_length.chain(by_magic).filter(|length| *length > 0) {
        crc = match bytes.get(summed..length) {
            Some(more) => crc32c_append(crc, more),
            None => crc32c(bytes.get(..length)?),
        };
        summed = length;
        if length.checked_add(size_of::<u32>()).and_then(word) == Some(crc) {
            return Some(length);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_checksum_proves_a_message() {
        let message = b"some message";
        let crc = crc32c(message).to_le_bytes();
        let whole = [&message[..], &12u32.to_le_bytes(), &crc, MAGIC].concat();
        for cut in 0..=4 {
            assert_eq!(message_length(&whole[..whole.len() - cut]), Some(12), "{cut}");
        }
        assert_eq!(message_length(&whole[..whole.len() - 5]), None);
        for (byte, expected) in [(12, Some(12)), (20, Some(12)), (3, None), (17, None)] {
            let mut damaged = whole.clone();
            damaged[byte] ^= 0x10;
            assert_eq!(message_length(&damaged), expected, "byte {byte}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_a_length_inside_or_none(bytes in prop::collection::vec(0u8..4, 0..200)) {
            if let Some(length) = message_length(&bytes) {
                prop_assert!(length + BEHIND <= bytes.len());
            }
        }
    }
}
