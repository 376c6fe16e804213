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

use super::stretches::Stretches;
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

/// What comes next in a container file.
#[derive(Debug)]
pub(crate) enum Record {
    /// A message, and the offset of its record.
    Good(u64, Bytes),
    /// The bytes of a message that are damaged, and how.
    Damaged(Error, Bytes),
    /// Nothing that makes sense: the last there is.
    Torn(Torn),
}

impl Pbc {
    /// Reads all records.
    #[cfg(any(test, feature = "fuzzing"))]
    pub fn parse(name: &str, bytes: &Bytes) -> Result<Self> {
        let source = pilaster_core::source::MemorySource::new(name, bytes.clone());
        Self::collect(Records::open(&source, &Limits::default())?, false)
    }

    /// Reads a file that holds one message, up to that: what comes behind it means nothing.
    pub fn first_within(source: &dyn Source, limits: &Limits) -> Result<Self> {
        Self::collect(Records::open(source, limits)?, true)
    }

    fn collect(mut records: Records<'_>, only_first: bool) -> Result<Self> {
        let mut file = Self::default();
        while let Some(record) = records.next()? {
            match record {
                Record::Good(at, message) => file.records.push((at, message)),
                Record::Damaged(error, message) => file.damaged.push((error, message)),
                Record::Torn(torn) => file.torn = Some(torn),
            }
            if only_first && !file.records.is_empty() {
                break;
            }
        }
        Ok(file)
    }

    /// The only message of a file that holds one.
    pub fn single(source: &dyn Source) -> Result<Bytes> {
        Self::single_within(source, &Limits::default())
    }

    /// As [`Pbc::single`], of a message as large as the caller allows.
    pub fn single_within(source: &dyn Source, limits: &Limits) -> Result<Bytes> {
        let mut file = Self::first_within(source, limits)?;
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
}

/// The records of a file, read from front to back, a stretch at a time.
#[derive(Debug)]
pub(crate) struct Records<'a> {
    bytes: Stretches<'a>,
    limits: &'a Limits,
    version: u32,
    /// Where the next record begins; `None` behind the last.
    at: Option<u64>,
    is_first: bool,
    /// Bytes of the messages so far.
    total: u64,
}

impl<'a> Records<'a> {
    /// Reads what comes before the first record.
    pub fn open(source: &'a dyn Source, limits: &'a Limits) -> Result<Self> {
        let (bytes, name) = (Stretches::new(source), source.name());
        let head = bytes.from(0, 16)?;
        if !head.starts_with(MAGIC) {
            let found = format!("\"{}\"", head.get(..8.min(head.len())).unwrap_or_default().escape_ascii());
            return Err(Error::corrupt("\"kuducntr\"", found).at(name, 0, PART));
        }
        let missing = |what: &str, at: u64| Error::corrupt(what, "the end of the file").at(name, at, PART);
        let version = word(&head, 8).ok_or_else(|| missing("a version", 8))?;
        let start = match version {
            1 => 12,
            2 => {
                let stored = word(&head, 12).ok_or_else(|| missing("a checksum", 12))?;
                let computed = crc32c(head.get(..12).unwrap_or_default());
                if stored != computed {
                    let error = Error::corrupt(format!("checksum {computed:08x}"), format!("{stored:08x}"));
                    return Err(error.at(name, 12, PART));
                }
                16
            }
            other => {
                return Err(
                    Error::unsupported(format!("a protobuf container of version {other}")).at(name, 8, PART)
                );
            }
        };
        Ok(Self { bytes, limits, version, at: Some(start), is_first: true, total: 0 })
    }

    /// The next record after the first one of the file, which says nothing a reader needs.
    pub fn next(&mut self) -> Result<Option<Record>> {
        while let Some(at) = self.at.take_if(|at| *at < self.bytes.size()) {
            let name = self.bytes.name();
            let step = if self.version == 1 { self.record_v1(at)? } else { self.record_v2(at)? };
            let was_first = std::mem::take(&mut self.is_first);
            let (record, next) = match step {
                Step::Record(message, next) => (Record::Good(at, message), next),
                Step::Damaged(error, message, next) => {
                    (Record::Damaged(error.at(name, at, PART), message), next)
                }
                Step::Incomplete => return Ok(Some(Record::Torn(Torn::Incomplete(at)))),
                // Where the file is encrypted, zeros behind the last record may look like other bytes.
                Step::Lost(_) if self.bytes.next_set(at, self.bytes.size())?.is_none() => {
                    return Ok(Some(Record::Torn(Torn::Incomplete(at))));
                }
                Step::Lost(error) => return Ok(Some(Record::Torn(Torn::Corrupt(error.at(name, at, PART))))),
            };
            self.at = Some(next);
            self.total = self.total.saturating_add(next.saturating_sub(at));
            self.limits.record_file(self.total).at(name, at, PART)?;
            if !was_first {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// A message of this length behind `at`, and the number behind that; `None` if the file ends before.
    fn message(&self, at: u64, length: u32) -> Result<Option<(Bytes, u32)>> {
        let whole = u64::from(length).saturating_add(4);
        if at.saturating_add(whole) > self.bytes.size() {
            return Ok(None);
        }
        let whole = self.limits.record_file(whole)?;
        let Some(bytes) = self.bytes.get(at, whole)? else { return Ok(None) };
        // A record that is kept must not keep the whole stretch.
        let message = bytes.get(..length as usize).map(Bytes::copy_from_slice);
        Ok(message.zip(word(&bytes, length as usize)))
    }

    fn record_v2(&self, at: u64) -> Result<Step> {
        let Some(head) = self.bytes.get(at, 8)? else { return Ok(Step::Incomplete) };
        let (Some(length), Some(length_crc)) = (word(&head, 0), word(&head, 4)) else {
            return Ok(Step::Incomplete);
        };
        if length == 0 && length_crc == 0 && self.bytes.next_set(at, self.bytes.size())?.is_none() {
            return Ok(Step::Incomplete);
        }
        let computed = crc32c(&length.to_le_bytes());
        if computed != length_crc {
            return Ok(Step::Lost(Error::corrupt(
                format!("checksum {length_crc:08x} of the length"),
                format!("a length with checksum {computed:08x}"),
            )));
        }
        let start = at.saturating_add(8);
        let (message, stored) = match self.message(start, length) {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(Step::Incomplete),
            Err(error) if error.is_damage() => return Ok(Step::Lost(error)),
            Err(error) => return Err(error),
        };
        let next = start.saturating_add(u64::from(length)).saturating_add(4);
        Ok(match check_crc32c(&message, stored) {
            Ok(()) => Step::Record(message, next),
            Err(error) => Step::Damaged(error.into(), message, next),
        })
    }

    fn record_v1(&self, at: u64) -> Result<Step> {
        let short = || Step::Lost(Error::corrupt("a whole record", "the end of the file"));
        let length = self.bytes.get(at, 4)?.and_then(|head| word(&head, 0));
        let Some(length) = length else { return Ok(short()) };
        let start = at.saturating_add(4);
        let (message, stored) = match self.message(start, length) {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(short()),
            Err(error) if error.is_damage() => return Ok(Step::Lost(error)),
            Err(error) => return Err(error),
        };
        let computed = crc32c_append(crc32c(&length.to_le_bytes()), &message);
        if computed == stored {
            let next = start.saturating_add(u64::from(length)).saturating_add(4);
            return Ok(Step::Record(message, next));
        }
        // One checksum covers both, so the length may be wrong too.
        Ok(Step::Lost(Error::corrupt(
            format!("checksum {stored:08x}"),
            format!("a record with checksum {computed:08x}"),
        )))
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
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
    Record(Bytes, u64),
    /// The length is right, the message is not: what follows can still be read.
    Damaged(Error, Bytes, u64),
    Incomplete,
    Lost(Error),
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

    #[test]
    fn what_is_behind_the_only_message_is_not_read() {
        use pilaster_core::source::{CountingSource, MemorySource};
        let mut bytes = file_of(&[b"aaaa", b"bbbb"]);
        bytes.resize(8 << 20, 0);
        let source = CountingSource::new(std::sync::Arc::new(MemorySource::new("f", bytes)));
        let limits = Limits { record_file_bytes: 1000, ..Limits::default() };
        assert_eq!(Pbc::single_within(&source, &limits).unwrap(), b"aaaa".as_slice());
        assert!(source.counts().bytes <= 1 << 20);
    }

    #[test]
    fn records_are_within_limits() {
        let bytes = file_of(&[&[1; 600], &[2; 600]]);
        let source = pilaster_core::source::MemorySource::new("f", bytes);
        let limits = Limits { record_file_bytes: 700, ..Limits::default() };
        let mut records = Records::open(&source, &limits).unwrap();
        assert!(matches!(records.next(), Ok(Some(Record::Good(..)))));
        let error = records.next().unwrap_err().to_string();
        assert!(error.contains("record_file_bytes"), "{error}");
    }
}
