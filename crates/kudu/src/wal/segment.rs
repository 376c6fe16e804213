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
use pilaster_core::{Error, ErrorKind, Limits, Result, Source};
use pilaster_encoding::checksum::{check_crc32c, crc32c};

use crate::cfile::Compression;
use crate::fs::FilePool;
use crate::messages::{self, LogEntryBatchPb, LogEntryPb, LogSegmentFooterPb, LogSegmentHeaderPb, required};
use crate::tablet::KuduSchema;

pub(super) const HEADER_MAGIC: &[u8; 8] = b"kudulogf";
pub(super) const FOOTER_MAGIC: &[u8; 8] = b"closedls";
/// Kudu refuses longer headers and footers.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Bytes before the header message.
const PREFIX_BYTES: usize = 12;
const PART: &str = "log segment";

/// A segment, read as far as it can be.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub sequence: u64,
    /// Columns at the start of the segment; `None` if its header is damaged.
    pub schema: Option<KuduSchema>,
    pub schema_version: u32,
    pub compression: Compression,
    pub end: SegmentEnd,
    /// Every entry with the offset of its batch.
    pub entries: Vec<(u64, LogEntryPb)>,
    /// Before which entries bytes are damaged: entries may be missing there.
    pub gaps: Vec<usize>,
    /// Bytes that should have been entries.
    pub findings: Vec<Finding>,
}

/// What comes after the last entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentEnd {
    /// A footer.
    Closed,
    /// Zeros: space for entries that were never written.
    Preallocated,
    /// The end of the file, where a server would have left zeros or a footer.
    Bare,
    /// The beginning of an entry, as a crash leaves it.
    Torn(u64),
    /// Bytes that no crash leaves.
    Damaged,
}

/// The segments of a log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// By sequence number.
    pub segments: Vec<Segment>,
    /// Segments that could not be read, and holes in the numbers.
    pub findings: Vec<Finding>,
}

/// Reads the segments in a log folder.
pub(crate) fn read_log(folder: &Path, pool: &FilePool, limits: &Limits) -> Log {
    let mut log = Log::default();
    for path in segment_paths(folder) {
        let read = pool.content(&path).and_then(|source| read_segment(&path, source.as_ref(), limits));
        match read {
            Ok(Some(segment)) => log.segments.push(segment),
            Ok(None) => {}
            Err(error) => log.findings.push(Finding::from_error(&error, &path.display().to_string(), None)),
        }
    }
    log.segments.sort_by_key(|segment| segment.sequence);
    for pair in log.segments.windows(2) {
        if let [before, after] = pair
            && before.sequence.saturating_add(1) != after.sequence
        {
            let error =
                Error::corrupt(format!("segment {} next", before.sequence.saturating_add(1)), after.sequence);
            let path = after.path.display().to_string();
            log.findings.push(Finding::from_error(&error.at(&path, 0, PART), &path, None));
        }
    }
    log
}

/// The segments in a log folder as their headers describe them, without entries, by sequence number. A segment whose
/// header is damaged has the number of its name and no schema.
pub(crate) fn read_headers(folder: &Path, pool: &FilePool, limits: &Limits) -> Vec<Segment> {
    let mut segments: Vec<_> =
        segment_paths(folder).iter().filter_map(|path| read_header(path, pool, limits)).collect();
    segments.sort_by_key(|segment| segment.sequence);
    segments
}

fn read_header(path: &Path, pool: &FilePool, limits: &Limits) -> Option<Segment> {
    let unknown = || Some(Segment::empty(path, segment_number(path)?, Compression::None));
    let Ok(source) = pool.content(path) else { return unknown() };
    let read = |bytes: usize| source.read_at(0..source.size().min(bytes as u64)).ok();
    let prefix = read(PREFIX_BYTES)?;
    if prefix.iter().all(|byte| *byte == 0) {
        return None;
    }
    let length = word(&prefix, 8).map_or(0, |length| length as usize);
    if length > MAX_MESSAGE_BYTES || limits.metadata(length as u64).is_err() {
        return unknown();
    }
    let header = read(PREFIX_BYTES.saturating_add(length))?;
    match parse_header(path, source.name(), &header) {
        Ok((segment, _, _)) => Some(segment),
        Err(_) => unknown(),
    }
}

fn segment_paths(folder: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut paths: Vec<_> = names.filter(|path| segment_number(path).is_some()).collect();
    paths.sort();
    paths
}

/// The number in the name of a segment file; `None` for other files.
fn segment_number(path: &Path) -> Option<u64> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_prefix("wal-").filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// Reads a segment; `None` if nothing was ever written to it.
pub(crate) fn read_segment(path: &Path, source: &dyn Source, limits: &Limits) -> Result<Option<Segment>> {
    let name = source.name();
    limits.log(source.size()).at(name, 0, PART)?;
    let bytes = source.read_at(0..source.size())?;
    let mut segment = parse_segment(path, name, &bytes, limits)?;
    // Where the file is encrypted, space that was never written may look like the beginning of an entry.
    if let Some(segment) = &mut segment
        && let SegmentEnd::Torn(at) = segment.end
        && source.read_at(at..source.size())?.iter().all(|byte| *byte == 0)
    {
        segment.end = SegmentEnd::Preallocated;
    }
    Ok(segment)
}

/// As [`read_segment`], of the bytes of a whole file.
pub(crate) fn parse_segment(
    path: &Path,
    name: &str,
    bytes: &Bytes,
    limits: &Limits,
) -> Result<Option<Segment>> {
    if bytes.len() >= PREFIX_BYTES && bytes.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    let (mut segment, form, start) = match parse_header(path, name, bytes) {
        Ok(header) => header,
        Err(error) if matches!(error.kind(), ErrorKind::Unsupported { .. }) => return Err(error),
        // Entries carry their own checksums and can be read without the header.
        Err(error) => match without_header(path, name, bytes, limits) {
            Some((mut segment, form, start)) => {
                segment.findings.push(Finding::from_error(&error, name, None));
                segment.gaps.push(0);
                (segment, form, start)
            }
            None => return Err(error),
        },
    };
    let (entries_end, footer) = find_footer(bytes, start);
    let reader =
        EntryReader { name, bytes, end: entries_end, form, compression: segment.compression, limits };
    reader.read_all(start, footer.is_some(), &mut segment);
    if let Some(expected) = footer.and_then(|footer| footer.num_entries)
        && segment.gaps.is_empty()
        && i64::try_from(segment.entries.len()).ok() != Some(expected)
    {
        let error = Error::corrupt(format!("{expected} entries, as the footer says"), segment.entries.len());
        segment.findings.push(Finding::from_error(&error.at(name, entries_end as u64, PART), name, None));
        segment.gaps.push(segment.entries.len());
    }
    Ok(Some(segment))
}

/// An empty segment with what the header says, the form of its entries and where they begin.
fn parse_header(path: &Path, name: &str, bytes: &Bytes) -> Result<(Segment, Form, usize)> {
    let head = bytes.get(..PREFIX_BYTES).ok_or_else(|| {
        Error::corrupt("a segment header", "the end of the file").at(name, bytes.len() as u64, PART)
    })?;
    if !head.starts_with(HEADER_MAGIC) {
        let found = format!("\"{}\"", head.get(..8).unwrap_or_default().escape_ascii());
        return Err(Error::corrupt("\"kudulogf\"", found).at(name, 0, PART));
    }
    let length = word(bytes, 8).unwrap_or(u32::MAX) as usize;
    let end = PREFIX_BYTES.saturating_add(length);
    let header = bytes
        .get(PREFIX_BYTES..end)
        .filter(|_| length <= MAX_MESSAGE_BYTES)
        .ok_or_else(|| Error::corrupt("a header inside the file", length).at(name, 8, PART))?;
    let header: LogSegmentHeaderPb = messages::parse(header, "LogSegmentHeaderPB").at(name, 12, PART)?;
    let segment = from_header(path, &header).at(name, 12, PART)?;
    let form = if header.major_version.is_some() { Form::Old } else { Form::New };
    Ok((segment, form, end))
}

/// As [`parse_header`] where the header is damaged: the first entry that checks tells the form, and how it is compressed.
fn without_header(path: &Path, name: &str, bytes: &Bytes, limits: &Limits) -> Option<(Segment, Form, usize)> {
    for form in [Form::New, Form::Old] {
        let reader = |compression| EntryReader { name, bytes, end: bytes.len(), form, compression, limits };
        let Some(start) = reader(Compression::None).next_header(PREFIX_BYTES) else { continue };
        for compression in [Compression::Lz4, Compression::Snappy, Compression::Zlib, Compression::None] {
            let is_entry = |entry: &LogEntryPb| {
                matches!(entry.entry_type, Some(LogEntryPb::REPLICATE | LogEntryPb::COMMIT))
            };
            let first = reader(compression).entry(start);
            if first.is_ok_and(|(batch, _)| !batch.entry.is_empty() && batch.entry.iter().all(is_entry)) {
                return Some((Segment::empty(path, segment_number(path)?, compression), form, start));
            }
        }
    }
    None
}

impl Segment {
    pub fn empty(path: &Path, sequence: u64, compression: Compression) -> Self {
        Self {
            path: path.to_path_buf(),
            sequence,
            schema: None,
            schema_version: 0,
            compression,
            end: SegmentEnd::Bare,
            entries: Vec::new(),
            gaps: Vec::new(),
            findings: Vec::new(),
        }
    }
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
    let schema = KuduSchema::parse(required(header.schema.as_ref(), "schema")?)?;
    let sequence = required(header.sequence_number, "sequence_number")?;
    Ok(Segment {
        schema: Some(schema),
        schema_version: header.schema_version.unwrap_or_default(),
        ..Segment::empty(path, sequence, compression)
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

/// How many zeros come first.
fn leading_zeros(bytes: &[u8]) -> usize {
    const ZEROS: [u8; 4096] = [0; 4096];
    let blocks = bytes.chunks_exact(ZEROS.len()).take_while(|block| *block == ZEROS).count();
    let start = blocks.saturating_mul(ZEROS.len());
    let rest = bytes.get(start..).unwrap_or_default();
    start.saturating_add(rest.iter().take_while(|byte| **byte == 0).count())
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
    limits: &'a Limits,
}

/// A header whose own checksum is right.
struct EntryHeader {
    stored: usize,
    uncompressed: usize,
    crc: u32,
}

impl EntryReader<'_> {
    fn read_all(&self, start: usize, has_footer: bool, segment: &mut Segment) {
        let mut at = start;
        segment.end = if has_footer { SegmentEnd::Closed } else { SegmentEnd::Bare };
        while at < self.end {
            let error = match self.entry(at) {
                Ok((batch, next)) => {
                    segment.entries.extend(batch.entry.into_iter().map(|entry| (at as u64, entry)));
                    at = next;
                    continue;
                }
                Err(error) => error,
            };
            // A good header with a bad payload tells where the next entry begins.
            let from = match self.header(at) {
                Some(header) => at.saturating_add(self.form.header_bytes()).saturating_add(header.stored),
                None => at.saturating_add(1),
            };
            let next = self.next_header(from);
            if next.is_none() && !has_footer {
                segment.end = self.end_at(at);
                if segment.end != SegmentEnd::Damaged {
                    return;
                }
            }
            let error = error.at(self.name, at as u64, PART);
            segment.findings.push(Finding::from_error(&error, self.name, None));
            segment.gaps.push(segment.entries.len());
            let Some(next) = next else { return };
            at = next;
        }
    }

    /// What the bytes from `at` on are, which are no entry: a crash leaves the beginning of one, with zeros or nothing
    /// behind it.
    fn end_at(&self, at: usize) -> SegmentEnd {
        let rest = self.bytes.get(at..self.end).unwrap_or_default();
        let Some(last) = rest.iter().rposition(|byte| *byte != 0) else { return SegmentEnd::Preallocated };
        let whole = match self.header(at) {
            Some(header) => self.form.header_bytes().saturating_add(header.stored),
            None => self.form.header_bytes(),
        };
        let is_cut = rest.len() < whole || last.saturating_add(1) < whole;
        if is_cut { SegmentEnd::Torn(at as u64) } else { SegmentEnd::Damaged }
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
        let length = self.form.header_bytes();
        let last = self.end.saturating_sub(length);
        let mut at = from;
        while at <= last {
            // Preallocated space is megabytes of zeros, and a header has other bytes.
            let zeros = self.bytes.get(at..self.end).map_or(0, leading_zeros);
            if zeros >= length {
                at = at.saturating_add(zeros).saturating_sub(length.saturating_sub(1));
            } else if self.header(at).is_some() {
                return Some(at);
            } else {
                at = at.saturating_add(1);
            }
        }
        None
    }

    fn entry(&self, at: usize) -> Result<(LogEntryBatchPb, usize)> {
        let header = self.header(at).ok_or_else(|| Error::corrupt("an entry header", "other bytes"))?;
        let start = at.saturating_add(self.form.header_bytes());
        let end = start.saturating_add(header.stored);
        let payload = self.bytes.get(start..end).filter(|_| end <= self.end).ok_or_else(|| {
            Error::corrupt(format!("an entry of {} bytes", header.stored), "the end of the segment")
        })?;
        check_crc32c(payload, header.crc)?;
        let decompressed;
        let message = match self.compression.codec() {
            Some(codec) if self.form == Form::New => {
                let mut buffer = vec![0; self.limits.decoded(header.uncompressed as u64)?];
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

#[cfg(test)]
mod tests {
    use super::*;

    fn segment_of(entries: &[&[u8]], behind: &[u8]) -> Bytes {
        let mut bytes = HEADER_MAGIC.to_vec();
        // Sequence number 7, an empty schema.
        let header = [0x30, 7, 0x3a, 0];
        bytes.extend((header.len() as u32).to_le_bytes());
        bytes.extend(header);
        entries.iter().for_each(|payload| bytes.extend(entry_of(payload)));
        bytes.extend(behind);
        bytes.into()
    }

    fn entry_of(payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_le_bytes();
        let mut entry = [length, length, crc32c(payload).to_le_bytes()].concat();
        entry.extend(crc32c(&entry).to_le_bytes());
        entry.extend(payload);
        entry
    }

    fn parse(bytes: &Bytes) -> Segment {
        parse_segment(Path::new("wal-000000007"), "wal", bytes, &Limits::default()).unwrap().unwrap()
    }

    /// A batch of one COMMIT.
    const COMMIT: &[u8] = &[0x0a, 2, 8, 2];

    #[test]
    fn space_behind_the_last_entry_is_no_damage() {
        for zeros in [16, 4096, 100_000] {
            let segment = parse(&segment_of(&[COMMIT, COMMIT], &vec![0; zeros]));
            assert_eq!((segment.entries.len(), segment.end), (2, SegmentEnd::Preallocated));
            assert!(segment.findings.is_empty());
        }
    }

    #[test]
    fn an_entry_behind_zeros_is_found_and_the_zeros_are_damage() {
        for zeros in [1, 15, 16, 17, 4095, 4096, 5000, 20_000] {
            let mut behind = vec![0; zeros];
            behind.extend(entry_of(COMMIT));
            let segment = parse(&segment_of(&[COMMIT], &behind));
            assert_eq!((segment.entries.len(), segment.gaps.as_slice()), (2, &[1][..]), "{zeros}");
            assert_eq!(segment.findings.len(), 1);
        }
    }

    #[test]
    fn a_header_is_read_without_what_follows() {
        let folder = tempfile::tempdir().unwrap();
        let pool = FilePool::new(None);
        std::fs::write(folder.path().join("wal-000000001"), segment_of(&[], b"no entries at all")).unwrap();
        std::fs::write(folder.path().join("wal-000000009"), b"damaged header").unwrap();
        std::fs::write(folder.path().join("wal-000000010"), [0; 100]).unwrap();
        let segments = read_headers(folder.path(), &pool, &Limits::default());
        let found: Vec<_> = segments.iter().map(|s| (s.sequence, s.schema.is_some())).collect();
        assert_eq!(found, [(7, true), (9, false)]);
    }

    #[test]
    fn limits_are_kept() {
        let bytes = segment_of(&[COMMIT], &[]);
        let source = pilaster_core::source::MemorySource::new("wal", bytes);
        let limits = Limits { log_bytes: 10, ..Limits::default() };
        let error = read_segment(Path::new("wal-000000001"), &source, &limits).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded { limit: "log_bytes", .. }), "{error}");
    }
}
