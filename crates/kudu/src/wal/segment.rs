//! Log segments.
//!
//! ```text
//! | "kudulogf" | u32 length | LogSegmentHeaderPB | entry | entry | … | zeros, or: LogSegmentFooterPB | "closedls" | u32 length |
//! entry: | u32 compressed length | u32 length | u32 CRC of the payload | u32 CRC of the 12 bytes before | payload |
//! ```
//!
//! Segments of Kudu up to 1.2 have entries without the uncompressed length. An open segment ends where no valid entry
//! begins; if one is found further on, the bytes between are damage and not the end.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::verify::Finding;
use pilaster_core::{Error, Result, Source};
use pilaster_encoding::checksum::crc32c;

use crate::cfile::Compression;
use crate::fs::FilePool;
use crate::messages::{self, LogEntryBatchPb, LogEntryPb, LogSegmentFooterPb, LogSegmentHeaderPb, required};
use crate::tablet::KuduSchema;

const HEADER_MAGIC: &[u8; 8] = b"kudulogf";
const FOOTER_MAGIC: &[u8; 8] = b"closedls";
const MAX_MESSAGE_BYTES: usize = 8 << 20;
const MAX_PAYLOAD_BYTES: usize = 256 << 20;
const MAX_SEGMENT_BYTES: u64 = 4 << 30;
const PART: &str = "log segment";

/// A segment, read as far as it can be.
#[derive(Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub sequence: u64,
    pub schema: KuduSchema,
    pub schema_version: u32,
    pub compression: Compression,
    pub is_closed: bool,
    /// Every entry with the offset of its batch.
    pub entries: Vec<(u64, LogEntryPb)>,
    /// Bytes that should have been entries.
    pub findings: Vec<Finding>,
}

/// Reads the segments in a log folder, by sequence number.
pub(crate) fn read_segments(folder: &Path, pool: &FilePool) -> (Vec<Segment>, Vec<Finding>) {
    let (mut segments, mut findings) = (Vec::new(), Vec::new());
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = names.filter(|path| is_segment_name(path)).collect();
    paths.sort();
    for path in paths {
        let read = pool.content(&path).and_then(|source| read_segment(&path, source.as_ref()));
        match read {
            Ok(Some(segment)) => segments.push(segment),
            Ok(None) => {}
            Err(error) => findings.push(Finding::from_error(&error, &path.display().to_string(), None)),
        }
    }
    segments.sort_by_key(|segment| segment.sequence);
    for pair in segments.windows(2) {
        if let [before, after] = pair
            && before.sequence.saturating_add(1) != after.sequence
        {
            let error =
                Error::corrupt(format!("segment {} next", before.sequence.saturating_add(1)), after.sequence);
            let path = after.path.display().to_string();
            findings.push(Finding::from_error(&error.at(&path, 0, PART), &path, None));
        }
    }
    (segments, findings)
}

fn is_segment_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("wal-")
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Reads a segment; `None` if nothing was ever written to it.
pub(crate) fn read_segment(path: &Path, source: &dyn Source) -> Result<Option<Segment>> {
    let name = source.name();
    if source.size() > MAX_SEGMENT_BYTES {
        return Err(
            Error::corrupt(format!("at most {MAX_SEGMENT_BYTES} bytes"), source.size()).at(name, 0, PART)
        );
    }
    let bytes = source.read_at(0..source.size())?;
    let head = bytes.get(..12).unwrap_or(&bytes);
    if bytes.len() < 12 || head.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if !head.starts_with(HEADER_MAGIC) {
        let found = format!("\"{}\"", head.get(..8).unwrap_or_default().escape_ascii());
        return Err(Error::corrupt("\"kudulogf\"", found).at(name, 0, PART));
    }
    let length = word(&bytes, 8).unwrap_or(u32::MAX) as usize;
    let end = 12usize.saturating_add(length);
    let header = bytes
        .get(12..end)
        .filter(|_| length <= MAX_MESSAGE_BYTES)
        .ok_or_else(|| Error::corrupt("a header inside the file", length).at(name, 8, PART))?;
    let header: LogSegmentHeaderPb = messages::parse(header, "LogSegmentHeaderPB").at(name, 12, PART)?;
    let mut segment = from_header(path, &header).at(name, 12, PART)?;
    let (entries_end, footer) = find_footer(&bytes, end);
    segment.is_closed = footer.is_some();
    let form = if header.major_version.is_some() { Form::Old } else { Form::New };
    let mut reader =
        EntryReader { name, bytes: &bytes, end: entries_end, form, compression: segment.compression };
    reader.read_all(end, &mut segment);
    if let Some(expected) = footer.and_then(|footer| footer.num_entries)
        && segment.findings.is_empty()
        && i64::try_from(segment.entries.len()).ok() != Some(expected)
    {
        let error = Error::corrupt(format!("{expected} entries, as the footer says"), segment.entries.len());
        segment.findings.push(Finding::from_error(&error.at(name, entries_end as u64, PART), name, None));
    }
    Ok(Some(segment))
}

fn from_header(path: &Path, header: &LogSegmentHeaderPb) -> Result<Segment> {
    if !header.incompatible_features.is_empty() {
        let features = format!("log features {:?}", header.incompatible_features);
        return Err(Error::unsupported(features));
    }
    let compression = match header.compression_codec {
        None | Some(0) => Compression::None,
        Some(number) => Compression::from_number(number)?,
    };
    Ok(Segment {
        path: path.to_path_buf(),
        sequence: required(header.sequence_number, "sequence_number")?,
        schema: KuduSchema::parse(header.schema.as_ref().unwrap_or(&messages::SchemaPb::default()))?,
        schema_version: header.schema_version.unwrap_or_default(),
        compression,
        is_closed: false,
        entries: Vec::new(),
        findings: Vec::new(),
    })
}

/// Where entries end, and the footer of a closed segment.
fn find_footer(bytes: &[u8], start: usize) -> (usize, Option<LogSegmentFooterPb>) {
    let none = (bytes.len(), None);
    let Some((rest, length)) = bytes.split_last_chunk::<4>() else { return none };
    let Some((rest, magic)) = rest.split_last_chunk::<8>() else { return none };
    let length = u32::from_le_bytes(*length) as usize;
    if magic != FOOTER_MAGIC || length > MAX_MESSAGE_BYTES {
        return none;
    }
    let Some(at) = rest.len().checked_sub(length).filter(|at| *at >= start) else { return none };
    match messages::parse(rest.get(at..).unwrap_or_default(), "LogSegmentFooterPB") {
        Ok(footer) => (at, Some(footer)),
        Err(_) => none,
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk::<4>().map(|four| u32::from_le_bytes(*four))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// 12-byte headers without an uncompressed length.
    Old,
    New,
}

impl Form {
    fn header_bytes(self) -> usize {
        match self {
            Self::Old => 12,
            Self::New => 16,
        }
    }
}

struct EntryReader<'a> {
    name: &'a str,
    bytes: &'a Bytes,
    end: usize,
    form: Form,
    compression: Compression,
}

/// A header whose own checksum is right.
struct EntryHeader {
    stored: usize,
    uncompressed: usize,
    crc: u32,
}

impl EntryReader<'_> {
    fn read_all(&mut self, start: usize, segment: &mut Segment) {
        let mut at = start;
        while at < self.end {
            let step = self.entry(at);
            match step {
                Ok((batch, next)) => {
                    segment.entries.extend(batch.entry.into_iter().map(|entry| (at as u64, entry)));
                    at = next;
                }
                Err(error) => {
                    // A good header with a bad payload tells where the next entry begins.
                    let from = match self.header(at) {
                        Some(header) => {
                            at.saturating_add(self.form.header_bytes()).saturating_add(header.stored)
                        }
                        None => at.saturating_add(1),
                    };
                    let Some(next) = self.next_header(from) else {
                        if segment.is_closed {
                            let error = error.at(self.name, at as u64, PART);
                            segment.findings.push(Finding::from_error(&error, self.name, None));
                        }
                        return;
                    };
                    let error = error.at(self.name, at as u64, PART);
                    segment.findings.push(Finding::from_error(&error, self.name, None));
                    at = next;
                }
            }
        }
    }

    fn header(&self, at: usize) -> Option<EntryHeader> {
        let length = self.form.header_bytes();
        let header = self.bytes.get(at..at.checked_add(length)?)?;
        let crc_at = length.checked_sub(4)?;
        if crc32c(header.get(..crc_at)?) != word(header, crc_at)? || header.iter().all(|byte| *byte == 0) {
            return None;
        }
        let stored = word(header, 0)? as usize;
        let (uncompressed, crc) = match self.form {
            Form::Old => (stored, word(header, 4)?),
            Form::New => (word(header, 4)? as usize, word(header, 8)?),
        };
        Some(EntryHeader { stored, uncompressed, crc })
    }

    /// The first valid header at or after `from`.
    fn next_header(&self, from: usize) -> Option<usize> {
        (from..self.end.saturating_sub(self.form.header_bytes())).find(|at| self.header(*at).is_some())
    }

    fn entry(&self, at: usize) -> Result<(LogEntryBatchPb, usize)> {
        let header = self.header(at).ok_or_else(|| Error::corrupt("an entry header", "other bytes"))?;
        let start = at.saturating_add(self.form.header_bytes());
        let end = start.saturating_add(header.stored);
        let payload = self.bytes.get(start..end).filter(|_| end <= self.end).ok_or_else(|| {
            Error::corrupt(format!("an entry of {} bytes", header.stored), "the end of the segment")
        })?;
        let computed = crc32c(payload);
        if computed != header.crc {
            return Err(Error::corrupt(
                format!("checksum {:08x}", header.crc),
                format!("an entry with checksum {computed:08x}"),
            ));
        }
        let decompressed;
        let message = match self.compression.codec() {
            Some(codec) if self.form == Form::New => {
                if header.uncompressed > MAX_PAYLOAD_BYTES {
                    return Err(Error::corrupt(
                        format!("at most {MAX_PAYLOAD_BYTES} bytes"),
                        header.uncompressed,
                    ));
                }
                let mut buffer = vec![0; header.uncompressed];
                codec.decompress(payload, &mut buffer)?;
                decompressed = Bytes::from(buffer);
                decompressed
            }
            _ => self.bytes.slice(start..end),
        };
        let batch = <LogEntryBatchPb as prost::Message>::decode(message)
            .map_err(|error| Error::corrupt("a LogEntryBatchPB message", error))?;
        Ok((batch, end))
    }
}
