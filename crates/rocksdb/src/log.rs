//! The records of a log: write-ahead logs and manifests have the same frame.
//!
//! ```text
//! file:      blocks of 32 KiB; the last one may be shorter
//! block:     fragments; where fewer than 7 bytes are left, zeros
//! fragment:  | u32 masked CRC-32C of all that follows | u16 length | u8 kind | content |
//!            kinds 5 to 8, 11 and 131, in files that are used again: | u32 number of the log | before the content
//! record:    1, 5: in one fragment    2, 6 first, 3, 7 middle, 4, 8 last: joined
//!            9: how the others are compressed    10, 11: sizes of timestamps    130, 131: which log came before
//! ```
//!
//! # Ends
//! A process that dies leaves a record that is not whole; a machine that dies leaves zeros where bytes should be. Both are a torn end,
//! which is told apart from damage by this: nothing that checks comes behind it. A whole record that does not check is damage
//! wherever it stands. RocksDB opens such a log too and drops all that follows; here that is an error, since nobody can tell what it
//! said. A file that was used again ends where the records of its earlier life begin.

use bytes::{Bytes, BytesMut};
use pilaster_core::error::AtPosition;
use pilaster_core::{Error, Limits, Result, SourceRef};
use pilaster_encoding::checksum::crc32c;
use pilaster_encoding::codec::shared::decompress_zstd_stream;

use crate::checksum::unmask;

const BLOCK_BYTES: usize = 32 * 1024;
const HEADER_BYTES: usize = 7;
const NUMBERED_HEADER_BYTES: usize = 11;
/// Kinds that a reader which does not know them may pass over.
const IGNORABLE: u8 = 0x80;
const ZSTD: u32 = 7;
pub(crate) const PART: &str = "rocksdb log";

/// A whole record and where it began.
#[derive(Debug)]
pub(crate) struct Record {
    pub offset: u64,
    pub bytes: Bytes,
}

#[derive(Debug)]
pub(crate) struct LogReader {
    source: SourceRef,
    limits: Limits,
    /// The low half of the file's number, which records of a file that was used again bear.
    number: u32,
    block: Bytes,
    block_start: u64,
    at: usize,
    /// Whether the file is one that was used again.
    is_reused: Option<bool>,
    is_compressed: bool,
    /// Why the file ends before its last record does.
    torn: Option<Error>,
    is_finished: bool,
}

struct Fragment {
    offset: u64,
    kind: u8,
    content: Bytes,
}

/// What stands at a place where a fragment should begin.
enum Found {
    Fragment {
        kind: u8,
        content: std::ops::Range<usize>,
        end: usize,
    },
    /// Zeros, or what is left of an earlier life of the file.
    Nothing,
    /// A fragment of an earlier life of the file.
    Foreign,
    Bad {
        expected: String,
        found: String,
        reaches: u64,
    },
}

impl LogReader {
    pub fn new(source: SourceRef, number: u64, limits: &Limits) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "the low half is what the format has")]
        let number = number as u32;
        Self {
            source,
            limits: limits.clone(),
            number,
            block: Bytes::new(),
            block_start: 0,
            at: 0,
            is_reused: None,
            is_compressed: false,
            torn: None,
            is_finished: false,
        }
    }

    /// Why the file ended in the middle of a record, once all records were read.
    pub fn torn(&mut self) -> Option<Error> {
        self.torn.take()
    }

    /// The next record; `None` at the end.
    pub fn next(&mut self) -> Result<Option<Record>> {
        if self.is_finished {
            return Ok(None);
        }
        let record = self.read_record();
        if !matches!(record, Ok(Some(_))) {
            self.is_finished = true;
        }
        record
    }

    fn read_record(&mut self) -> Result<Option<Record>> {
        let mut joined: Option<(u64, BytesMut)> = None;
        loop {
            let Some(fragment) = self.fragment()? else {
                if let Some((offset, bytes)) = joined
                    && self.torn.is_none()
                {
                    let found = format!("the end after {} bytes of it", bytes.len());
                    self.torn = Some(self.error(offset, "a whole record", found));
                }
                return Ok(None);
            };
            let offset = fragment.offset;
            // An earlier RocksDB could leave an empty beginning at the end of a block.
            let is_open = joined.as_ref().is_some_and(|(_, bytes)| !bytes.is_empty());
            let whole = match fragment.kind {
                1 | 5 if !is_open => (offset, fragment.content),
                2 | 6 if !is_open => {
                    joined = Some((offset, BytesMut::from(&fragment.content[..])));
                    continue;
                }
                3 | 4 | 7 | 8 if joined.is_some() => {
                    let (from, mut bytes) = joined.take().unwrap_or_default();
                    let length = (bytes.len() as u64).saturating_add(fragment.content.len() as u64);
                    self.limits.log(length).at(self.source.name(), from, PART)?;
                    bytes.extend_from_slice(&fragment.content);
                    if matches!(fragment.kind, 3 | 7) {
                        joined = Some((from, bytes));
                        continue;
                    }
                    (from, bytes.freeze())
                }
                9 if !is_open => {
                    self.set_compression(offset, &fragment.content)?;
                    continue;
                }
                10 | 11 => {
                    return Err(Error::unsupported("keys with timestamps").at(
                        self.source.name(),
                        offset,
                        PART,
                    ));
                }
                kind if kind & IGNORABLE != 0 => continue,
                kind @ 1..=8 => {
                    let found = format!("a fragment of kind {kind}");
                    let expected = if is_open { "the rest of a record" } else { "the beginning of a record" };
                    return Err(self.error(offset, expected, found));
                }
                kind => {
                    return Err(Error::unsupported(format!("a log fragment of kind {kind}")).at(
                        self.source.name(),
                        offset,
                        PART,
                    ));
                }
            };
            let (offset, bytes) = whole;
            let bytes = if self.is_compressed { self.decompress(offset, &bytes)? } else { bytes };
            return Ok(Some(Record { offset, bytes }));
        }
    }

    fn set_compression(&mut self, offset: u64, content: &[u8]) -> Result<()> {
        match content.first_chunk().map(|four| u32::from_le_bytes(*four)) {
            Some(0) => Ok(()),
            Some(ZSTD) => {
                self.is_compressed = true;
                Ok(())
            }
            Some(other) => Err(Error::unsupported(format!("a log compressed with codec {other}")).at(
                self.source.name(),
                offset,
                PART,
            )),
            None => Err(self.error(offset, "the number of a codec", format!("{} bytes", content.len()))),
        }
    }

    fn decompress(&self, offset: u64, bytes: &[u8]) -> Result<Bytes> {
        let most = usize::try_from(self.limits.log_bytes).unwrap_or(usize::MAX);
        Ok(decompress_zstd_stream(bytes, most).at(self.source.name(), offset, PART)?.into())
    }

    fn error(&self, offset: u64, expected: impl Into<String>, found: impl std::fmt::Display) -> Error {
        Error::corrupt(expected, found).at(self.source.name(), offset, PART)
    }

    /// The next fragment that checks; `None` at the end of the log.
    fn fragment(&mut self) -> Result<Option<Fragment>> {
        loop {
            let left = self.block.len().saturating_sub(self.at);
            if left < HEADER_BYTES {
                let end = self.block_start.saturating_add(self.block.len() as u64);
                if end >= self.source.size() {
                    // Fewer bytes than a header, where a block would not have ended yet.
                    if left > 0 && BLOCK_BYTES.saturating_sub(self.at) >= HEADER_BYTES {
                        let offset = self.block_start.saturating_add(self.at as u64);
                        self.torn = Some(self.error(offset, "a whole record", "the end of the file"));
                    }
                    return Ok(None);
                }
                self.block_start = end;
                let next = end.saturating_add(BLOCK_BYTES as u64).min(self.source.size());
                self.block = self.source.read_at(end..next)?;
                self.at = 0;
                continue;
            }
            let offset = self.block_start.saturating_add(self.at as u64);
            return match self.look_at(self.at) {
                Found::Fragment { kind, content, end } => {
                    // How the records are compressed is said without a number even in files that are used again.
                    if kind != 9 {
                        self.is_reused.get_or_insert(is_numbered(kind));
                    }
                    let content = self.block.slice(content);
                    self.at = end;
                    Ok(Some(Fragment { offset, kind, content }))
                }
                nothing @ (Found::Nothing | Found::Foreign) => {
                    if matches!(nothing, Found::Foreign) {
                        self.is_reused = Some(true);
                    }
                    self.check_rest(offset, "a record", "zeros or the rest of something")?;
                    // A file that was used again ends anywhere in its earlier content; another one in zeros, if not at its end.
                    if self.is_reused != Some(true) && !self.is_zero_from(offset)? {
                        self.torn =
                            Some(self.error(offset, "a record", "zeros, and other bytes behind them"));
                    }
                    Ok(None)
                }
                Found::Bad { expected, found, reaches } => {
                    self.check_rest(offset, &expected, &found)?;
                    // Nothing that checks comes behind it: torn, if bytes of it are not there, or may be those of an earlier life.
                    if self.is_reused != Some(true)
                        && reaches <= self.source.size()
                        && !self.is_zero_from(reaches.saturating_sub(1))?
                    {
                        return Err(self.error(offset, expected, found));
                    }
                    self.torn = Some(self.error(offset, expected, found));
                    Ok(None)
                }
            };
        }
    }

    /// What stands at `at` of the present block, where a whole header fits.
    fn look_at(&self, at: usize) -> Found {
        let rest = self.block.get(at..).unwrap_or_default();
        let Some([c0, c1, c2, c3, l0, l1, kind]) = rest.first_chunk::<HEADER_BYTES>().copied() else {
            return Found::Nothing;
        };
        let length = usize::from(u16::from_le_bytes([l0, l1]));
        let stored = u32::from_le_bytes([c0, c1, c2, c3]);
        if kind == 0 && length == 0 {
            return Found::Nothing;
        }
        let header = if is_numbered(kind) { NUMBERED_HEADER_BYTES } else { HEADER_BYTES };
        let start = at.saturating_add(header);
        let end = start.saturating_add(length);
        let number = rest.get(HEADER_BYTES..).and_then(|rest| rest.first_chunk()).copied();
        let is_foreign = || number.is_none_or(|four| u32::from_le_bytes(four) != self.number);
        // What follows the last record of a file that was used again may be anything but one of its own records.
        let is_end_of_reused =
            self.is_reused == Some(true) && is_foreign() && !self.is_own_but_for_number(rest, start..end);
        let Some(checked) = self.block.get(at.saturating_add(6)..end) else {
            if is_end_of_reused {
                return Found::Nothing;
            }
            let reaches = self.block_start.saturating_add(end as u64);
            let block_end = self.block_start.saturating_add(self.block.len() as u64);
            let found = format!("{} bytes to the end of the block", rest.len());
            let expected = format!("a record of {} bytes", header.saturating_add(length));
            // Past the end of a block that is not the last one nothing can be missing.
            let reaches = if block_end < self.source.size() { block_end } else { reaches };
            return Found::Bad { expected, found, reaches };
        };
        let computed = crc32c(checked);
        if computed != unmask(stored) {
            if is_end_of_reused {
                return Found::Nothing;
            }
            return Found::Bad {
                expected: format!("checksum {:08x}", unmask(stored)),
                found: format!("bytes with checksum {computed:08x}"),
                reaches: self.block_start.saturating_add(end as u64),
            };
        }
        if is_numbered(kind) && is_foreign() {
            return Found::Foreign;
        }
        if is_end_of_reused || self.is_reused == Some(true) && !is_numbered(kind) {
            return Found::Nothing;
        }
        Found::Fragment { kind, content: start..end, end }
    }

    /// Whether a fragment checks once it has the number of this file.
    fn is_own_but_for_number(&self, rest: &[u8], content: std::ops::Range<usize>) -> bool {
        let (Some([c0, c1, c2, c3, _, _, kind]), Some(content)) =
            (rest.first_chunk::<HEADER_BYTES>().copied(), self.block.get(content))
        else {
            return false;
        };
        let own = [&[kind][..], &self.number.to_le_bytes(), content].concat();
        is_numbered(kind) && crc32c(&own) == unmask(u32::from_le_bytes([c0, c1, c2, c3]))
    }

    /// Refuses an end that is none: a fragment that checks comes behind it, anywhere in this block or at the beginning of another.
    fn check_rest(&mut self, offset: u64, expected: &str, found: &str) -> Result<()> {
        let last = self.block.len().saturating_sub(HEADER_BYTES);
        for at in self.at.saturating_add(1)..=last {
            self.check_no_record(at, offset, expected, found)?;
        }
        loop {
            let start = self.block_start.saturating_add(self.block.len() as u64);
            if start >= self.source.size() {
                return Ok(());
            }
            let end = start.saturating_add(BLOCK_BYTES as u64).min(self.source.size());
            self.block = self.source.read_at(start..end)?;
            self.block_start = start;
            self.check_no_record(0, offset, expected, found)?;
        }
    }

    fn check_no_record(&self, at: usize, offset: u64, expected: &str, found: &str) -> Result<()> {
        if matches!(self.look_at(at), Found::Fragment { kind: 1..=9, .. }) {
            let behind = self.block_start.saturating_add(at as u64);
            return Err(self.error(
                offset,
                expected,
                format!("{found}; at byte {behind} a record checks again"),
            ));
        }
        Ok(())
    }

    fn is_zero_from(&self, mut at: u64) -> Result<bool> {
        while at < self.source.size() {
            let end = at.saturating_add(BLOCK_BYTES as u64).min(self.source.size());
            if self.source.read_at(at..end)?.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            at = end;
        }
        Ok(true)
    }
}

const fn is_numbered(kind: u8) -> bool {
    matches!(kind, 5..=8 | 11 | 131)
}
