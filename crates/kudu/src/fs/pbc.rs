//! Protobuf container files: instances, superblocks, consensus metadata, container metadata.
//!
//! ```text
//! | "kuducntr" | u32 version | v2: u32 CRC-32C of the 12 bytes before | record | record | …
//! v2 record: | u32 length | u32 CRC of the length | message | u32 CRC of the message |
//! v1 record: | u32 length | message | u32 CRC of length and message |
//! ```
//!
//! The first record describes the message type and says nothing a reader needs; its descriptors are left empty here, which
//! only `kudu pbc dump` minds. Appended files may end in a torn record;
//! that is how crashes look, not damage.

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, Source};
use pilaster_encoding::checksum::{check_crc32c, crc32c, crc32c_append};
use prost::Message;

use crate::messages::ContainerSupHeaderPb;

const MAGIC: &[u8; 8] = b"kuducntr";
const PART: &str = "protobuf container";

/// A container file, read as far as it can be.
#[derive(Debug, Default)]
pub(crate) struct Pbc {
    /// The messages after the first record, with the offset of their records.
    pub records: Vec<(u64, Bytes)>,
    /// Records whose bytes are damaged: their offset, what is wrong, and the bytes all the same.
    pub damaged: Vec<(Error, Bytes)>,
    /// Where the file stops making sense, and why; `None` if it ends with its last record.
    pub torn: Option<Torn>,
}

/// The end of a file that does not end with a record.
#[derive(Debug)]
pub(crate) enum Torn {
    /// An append that was cut off, or zeros after the last record: what a crash leaves.
    Incomplete(u64),
    /// Bytes that cannot be told apart any more.
    Corrupt(Error),
}

impl Pbc {
    /// Reads all records of a file that is within the default limits.
    pub fn read(source: &dyn Source) -> Result<Self> {
        Self::read_within(source, &Limits::default())
    }

    /// Reads all records.
    pub fn read_within(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let name = source.name();
        limits.record_file(source.size()).at(name, 0, PART)?;
        let bytes = source.read_at(0..source.size())?;
        let mut file = Self::parse(name, &bytes)?;
        // Where the file is encrypted, zeros behind the last record may look like other bytes.
        if let Some(Torn::Corrupt(error)) = &file.torn
            && let Some(at) = error.position().map(|position| position.offset)
            && source.read_at(at..source.size())?.iter().all(|byte| *byte == 0)
        {
            file.torn = Some(Torn::Incomplete(at));
        }
        Ok(file)
    }

    /// The only message of a file that holds one.
    pub fn single(source: &dyn Source) -> Result<Bytes> {
        Self::single_within(source, &Limits::default())
    }

    /// As [`Pbc::single`], of a file as large as the caller allows.
    pub fn single_within(source: &dyn Source, limits: &Limits) -> Result<Bytes> {
        let mut file = Self::read_within(source, limits)?;
        if !file.records.is_empty() {
            return Ok(file.records.swap_remove(0).1);
        }
        if !file.damaged.is_empty() {
            return Err(file.damaged.swap_remove(0).0);
        }
        match file.torn {
            Some(Torn::Corrupt(error)) => Err(error),
            _ => {
                Err(Error::corrupt("a record", "the end of the file").at(source.name(), source.size(), PART))
            }
        }
    }

    pub fn parse(name: &str, bytes: &Bytes) -> Result<Self> {
        let corrupt = |offset: usize, expected: &str, found: String| {
            Error::corrupt(expected, found).at(name, offset as u64, PART)
        };
        let word = |at: usize| {
            bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()).map(|four| u32::from_le_bytes(*four))
        };
        if bytes.first_chunk::<8>() != Some(MAGIC) {
            let found = format!("\"{}\"", bytes.get(..8.min(bytes.len())).unwrap_or_default().escape_ascii());
            return Err(corrupt(0, "\"kuducntr\"", found));
        }
        let version = word(8).ok_or_else(|| corrupt(8, "a version", "the end of the file".into()))?;
        let mut at = match version {
            1 => 12,
            2 => {
                let stored =
                    word(12).ok_or_else(|| corrupt(12, "a checksum", "the end of the file".into()))?;
                let computed = crc32c(bytes.get(..12).unwrap_or_default());
                if stored != computed {
                    return Err(corrupt(12, &format!("checksum {computed:08x}"), format!("{stored:08x}")));
                }
                16
            }
            other => {
                return Err(
                    Error::unsupported(format!("a protobuf container of version {other}")).at(name, 8, PART)
                );
            }
        };
        let mut file = Self::default();
        let mut is_first = true;
        while at < bytes.len() {
            let step = if version == 1 { record_v1(bytes, at) } else { record_v2(bytes, at) };
            match step {
                Step::Record(message, next) => {
                    if !is_first {
                        file.records.push((at as u64, message));
                    }
                    at = next;
                }
                Step::Damaged(error, message, next) => {
                    if !is_first {
                        file.damaged.push((error.at(name, at as u64, PART), message));
                    }
                    at = next;
                }
                Step::Incomplete => {
                    file.torn = Some(Torn::Incomplete(at as u64));
                    break;
                }
                Step::Lost(error) => {
                    file.torn = Some(Torn::Corrupt(error.at(name, at as u64, PART)));
                    break;
                }
            }
            is_first = false;
        }
        Ok(file)
    }
}

/// The beginning of a file (version 2) of messages of the type that Kudu calls `pb_type`.
pub(crate) fn file_start(pb_type: &str) -> Vec<u8> {
    let mut file = MAGIC.to_vec();
    file.extend(2u32.to_le_bytes());
    file.extend(crc32c(&file).to_le_bytes());
    let header = ContainerSupHeaderPb { protos: Some(Vec::new()), pb_type: Some(pb_type.into()) };
    append_record(&mut file, &header.encode_to_vec());
    file
}

/// Appends a record of version 2.
pub(crate) fn append_record(file: &mut Vec<u8>, message: &[u8]) {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_le_bytes();
    file.extend(length);
    file.extend(crc32c(&length).to_le_bytes());
    file.extend_from_slice(message);
    file.extend(crc32c(message).to_le_bytes());
}

/// A file that holds one message.
pub(crate) fn single_record_file(pb_type: &str, message: &impl Message) -> Vec<u8> {
    let mut file = file_start(pb_type);
    append_record(&mut file, &message.encode_to_vec());
    file
}

enum Step {
    Record(Bytes, usize),
    /// The length is right, the message is not: what follows can still be read.
    Damaged(Error, Bytes, usize),
    Incomplete,
    Lost(Error),
}

fn record_v2(bytes: &Bytes, at: usize) -> Step {
    let rest = bytes.slice(at..);
    let word = |from: usize| {
        rest.get(from..).and_then(|r| r.first_chunk::<4>()).map(|four| u32::from_le_bytes(*four))
    };
    let (Some(length), Some(length_crc)) = (word(0), word(4)) else { return Step::Incomplete };
    if length == 0 && length_crc == 0 && rest.iter().all(|byte| *byte == 0) {
        return Step::Incomplete;
    }
    let computed = crc32c(&length.to_le_bytes());
    if computed != length_crc {
        return Step::Lost(Error::corrupt(
            format!("checksum {length_crc:08x} of the length"),
            format!("a length with checksum {computed:08x}"),
        ));
    }
    let end = 8usize.saturating_add(length as usize);
    let (Some(message), Some(stored)) = (rest.get(8..end), word(end)) else { return Step::Incomplete };
    let checked = check_crc32c(message, stored);
    let next = at.saturating_add(end).saturating_add(4);
    let message = rest.slice(8..end);
    match checked {
        Ok(()) => Step::Record(message, next),
        Err(error) => Step::Damaged(error.into(), message, next),
    }
}

fn record_v1(bytes: &Bytes, at: usize) -> Step {
    let rest = bytes.slice(at..);
    let word = |from: usize| {
        rest.get(from..).and_then(|r| r.first_chunk::<4>()).map(|four| u32::from_le_bytes(*four))
    };
    let short = || Step::Lost(Error::corrupt("a whole record", "the end of the file"));
    let Some(length) = word(0) else { return short() };
    let end = 4usize.saturating_add(length as usize);
    let (Some(message), Some(stored)) = (rest.get(4..end), word(end)) else { return short() };
    let computed = crc32c_append(crc32c(&length.to_le_bytes()), message);
    let next = at.saturating_add(end).saturating_add(4);
    let message = rest.slice(4..end);
    if computed == stored {
        return Step::Record(message, next);
    }
    // One checksum covers both, so the length may be wrong too.
    Step::Lost(Error::corrupt(
        format!("checksum {stored:08x}"),
        format!("a record with checksum {computed:08x}"),
    ))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A version 2 file of these messages.
    pub(crate) fn file_of(messages: &[&[u8]]) -> Vec<u8> {
        let mut file = file_start("kudu.TestPB");
        messages.iter().for_each(|message| append_record(&mut file, message));
        file
    }

    fn messages(bytes: Vec<u8>) -> Vec<Vec<u8>> {
        Pbc::parse("f", &bytes.into()).unwrap().records.into_iter().map(|(_, m)| m.to_vec()).collect()
    }

    #[test]
    fn reads_every_record_after_the_first() {
        assert_eq!(messages(file_of(&[b"a", b"", b"bcd"])), [&b"a"[..], b"", b"bcd"]);
    }

    #[test]
    fn a_torn_tail_loses_only_itself() {
        let whole = file_of(&[b"aaaa", b"bbbb"]);
        let one = file_of(&[b"aaaa"]).len();
        for cut in one + 1..whole.len() {
            let file = Pbc::parse("f", &whole[..cut].to_vec().into()).unwrap();
            assert_eq!(file.records.len(), 1);
            assert!(matches!(file.torn, Some(Torn::Incomplete(at)) if at as usize == one), "{cut}");
        }
        let mut zeros = whole.clone();
        zeros.extend([0; 100]);
        assert!(matches!(Pbc::parse("f", &zeros.into()).unwrap().torn, Some(Torn::Incomplete(_))));
    }

    #[test]
    fn a_damaged_message_is_named_and_the_next_one_read() {
        let mut bytes = file_of(&[b"aaaa", b"bbbb"]);
        let at = bytes.windows(4).position(|w| w == b"aaaa").unwrap();
        bytes[at] ^= 1;
        let file = Pbc::parse("f", &bytes.into()).unwrap();
        assert_eq!((file.records.len(), file.damaged.len(), file.torn.is_none()), (1, 1, true));
    }
}
