//! Log segments.
//!
//! ```text
//! | "kudulogf" | u32 length | LogSegmentHeaderPB | entry | entry | … | zeros, or: LogSegmentFooterPB | "closedls" | u32 length |
//! entry: | u32 compressed length | u32 length | u32 CRC of the payload | u32 CRC of the 12 bytes before | payload |
//! ```
//!
//! Segments of Kudu up to 1.2 have entries without the uncompressed length. An open segment ends where no valid entry
//! begins; if one is found further on, the bytes between are damage and not the end.

use std::cell::Cell;

use bytes::Bytes;
use pilaster_core::error::AtPosition;
use pilaster_core::verify::Finding;
use pilaster_core::{Error, ErrorKind, Limits, Location, Result, Source};
use pilaster_encoding::checksum::{check_crc32c, crc32c};

use crate::cfile::Compression;
use crate::fs::{FilePool, Stretches};
use crate::messages::{self, LogEntryBatchPb, LogEntryPb, LogSegmentFooterPb, LogSegmentHeaderPb, required};
use crate::tablet::KuduSchema;

pub(super) const HEADER_MAGIC: &[u8; 8] = b"kudulogf";
pub(super) const FOOTER_MAGIC: &[u8; 8] = b"closedls";
/// Kudu refuses longer headers and footers.
const MAX_MESSAGE_BYTES: usize = 8 << 20;
/// Bytes before the header message.
const PREFIX_BYTES: usize = 12;
/// Magic and length behind the footer message.
const TAIL_BYTES: usize = 12;
const PART: &str = "log segment";

/// A segment, read as far as it can be.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub path: Location,
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
pub(crate) fn read_log(folder: &Location, pool: &FilePool, limits: &Limits) -> Log {
    let (mut log, kept) = (Log::default(), Kept::new(limits));
    for path in segment_paths(folder, pool) {
        let read = pool.content(&path).and_then(|source| read_segment(&path, source.as_ref(), &kept));
        match read {
            Ok(Some(segment)) => log.segments.push(segment),
            Ok(None) => {}
            Err(error) => log.findings.push(Finding::from_error(&error, &path.to_string(), None)),
        }
    }
    log.segments.sort_by_key(|segment| segment.sequence);
    for pair in log.segments.windows(2) {
        if let [before, after] = pair
            && before.sequence.saturating_add(1) != after.sequence
        {
            let error =
                Error::corrupt(format!("segment {} next", before.sequence.saturating_add(1)), after.sequence);
            let path = after.path.to_string();
            log.findings.push(Finding::from_error(&error.at(&path, 0, PART), &path, None));
        }
    }
    log
}

/// The segments in a log folder as their headers describe them, without entries, by sequence number. A segment whose
/// header is damaged has the number of its name and no schema.
pub(crate) fn read_headers(folder: &Location, pool: &FilePool, limits: &Limits) -> Vec<Segment> {
    let mut segments: Vec<_> =
        segment_paths(folder, pool).iter().filter_map(|path| read_header(path, pool, limits)).collect();
    segments.sort_by_key(|segment| segment.sequence);
    segments
}

fn read_header(path: &Location, pool: &FilePool, limits: &Limits) -> Option<Segment> {
    let unknown = || Some(Segment::empty(path, segment_number(path)?, Compression::None));
    let Ok(source) = pool.content(path) else { return unknown() };
    let bytes = Stretches::sparing(source.as_ref());
    let prefix = bytes.get(0, PREFIX_BYTES).ok()?.unwrap_or_default();
    if prefix.iter().all(|byte| *byte == 0) {
        return None;
    }
    if word(&prefix, 8).is_some_and(|length| limits.metadata(u64::from(length)).is_err()) {
        return unknown();
    }
    match parse_header(path, &bytes) {
        Ok((segment, _, _)) => Some(segment),
        Err(_) => unknown(),
    }
}

fn segment_paths(folder: &Location, pool: &FilePool) -> Vec<Location> {
    let mut paths = pool.unread().entries(folder);
    paths.retain(|path| segment_number(path).is_some());
    paths
}

/// The number in the name of a segment file; `None` for other files.
fn segment_number(path: &Location) -> Option<u64> {
    let name = path.name().to_str().unwrap_or_default();
    name.strip_prefix("wal-").filter(|number| number.bytes().all(|b| b.is_ascii_digit()))?.parse().ok()
}

/// How much of a log is kept in memory: the bytes of its entries, decompressed.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    limits: &'a Limits,
    bytes: Cell<u64>,
}

impl<'a> Kept<'a> {
    pub fn new(limits: &'a Limits) -> Self {
        Self { limits, bytes: Cell::new(0) }
    }

    fn add(&self, bytes: usize) -> Result<()> {
        self.bytes.set(self.bytes.get().saturating_add(bytes as u64));
        self.limits.log(self.bytes.get()).map(|_| ())
    }
}

/// Reads a segment from front to back, a stretch at a time; `None` if nothing was ever written to it. Space behind the entries is
/// not kept, however much there is.
pub(crate) fn read_segment(path: &Location, source: &dyn Source, kept: &Kept<'_>) -> Result<Option<Segment>> {
    let (bytes, name) = (Stretches::new(source), source.name());
    if bytes.size() >= PREFIX_BYTES as u64 && bytes.next_set(0, bytes.size())?.is_none() {
        return Ok(None);
    }
    let (mut segment, form, start) = match parse_header(path, &bytes) {
        Ok(header) => header,
        Err(error) if !error.is_damage() => return Err(error),
        // Entries carry their own checksums and can be read without the header.
        Err(error) => match without_header(path, &bytes, kept)? {
            Some((mut segment, form, start)) => {
                segment.findings.push(Finding::from_error(&error, name, None));
                segment.gaps.push(0);
                (segment, form, start)
            }
            None => return Err(error),
        },
    };
    let (end, footer) = find_footer(&bytes, start)?;
    let reader = EntryReader { bytes: &bytes, end, form, compression: segment.compression, kept };
    reader.read_all(start, footer.is_some(), &mut segment)?;
    if let Some(expected) = footer.and_then(|footer| footer.num_entries)
        && segment.gaps.is_empty()
        && i64::try_from(segment.entries.len()).ok() != Some(expected)
    {
        let error = Error::corrupt(format!("{expected} entries, as the footer says"), segment.entries.len());
        segment.findings.push(Finding::from_error(&error.at(name, end, PART), name, None));
        segment.gaps.push(segment.entries.len());
    }
    // Where the file is encrypted, space that was never written may look like the beginning of an entry.
    if let SegmentEnd::Torn(at) = segment.end
        && bytes.next_set(at, bytes.size())?.is_none()
    {
        segment.end = SegmentEnd::Preallocated;
    }
    Ok(Some(segment))
}

/// As [`read_segment`], of bytes in memory.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn parse_segment(
    path: &Location,
    name: &str,
    bytes: &Bytes,
    limits: &Limits,
) -> Result<Option<Segment>> {
    let source = pilaster_core::source::MemorySource::new(name, bytes.clone());
    read_segment(path, &source, &Kept::new(limits))
}

/// An empty segment with what the header says, the form of its entries and where they begin.
fn parse_header(path: &Location, bytes: &Stretches<'_>) -> Result<(Segment, Form, u64)> {
    let name = bytes.name();
    let head = bytes.get(0, PREFIX_BYTES)?.ok_or_else(|| {
        Error::corrupt("a segment header", "the end of the file").at(name, bytes.size(), PART)
    })?;
    if !head.starts_with(HEADER_MAGIC) {
        let found = format!("\"{}\"", head.get(..8).unwrap_or_default().escape_ascii());
        return Err(Error::corrupt("\"kudulogf\"", found).at(name, 0, PART));
    }
    let length = word(&head, 8).unwrap_or(u32::MAX) as usize;
    let outside = || Error::corrupt("a header inside the file", length).at(name, 8, PART);
    if length > MAX_MESSAGE_BYTES {
        return Err(outside());
    }
    let header = bytes.get(PREFIX_BYTES as u64, length)?.ok_or_else(outside)?;
    let header: LogSegmentHeaderPb = messages::parse(&header, "LogSegmentHeaderPB").at(name, 12, PART)?;
    let segment = from_header(path, &header).at(name, 12, PART)?;
    let form = if header.major_version.is_some() { Form::Old } else { Form::New };
    Ok((segment, form, (PREFIX_BYTES as u64).saturating_add(length as u64)))
}

/// As [`parse_header`] where the header is damaged: the first entry that checks tells the form, and how it is compressed.
fn without_header(
    path: &Location,
    bytes: &Stretches<'_>,
    kept: &Kept<'_>,
) -> Result<Option<(Segment, Form, u64)>> {
    for form in [Form::New, Form::Old] {
        let reader = |compression| EntryReader { bytes, end: bytes.size(), form, compression, kept };
        let Some(start) = reader(Compression::None).next_header(PREFIX_BYTES as u64)? else { continue };
        for compression in [Compression::Lz4, Compression::Snappy, Compression::Zlib, Compression::None] {
            let is_entry = |entry: &LogEntryPb| {
                matches!(entry.entry_type, Some(LogEntryPb::REPLICATE | LogEntryPb::COMMIT))
            };
            let first = match reader(compression).entry(start) {
                Err(error) if !error.is_damage() => return Err(error),
                first => first,
            };
            if first.is_ok_and(|(batch, _)| !batch.entry.is_empty() && batch.entry.iter().all(is_entry)) {
                let number = segment_number(path);
                return Ok(number.map(|number| (Segment::empty(path, number, compression), form, start)));
            }
        }
    }
    Ok(None)
}

impl Segment {
    pub fn empty(path: &Location, sequence: u64, compression: Compression) -> Self {
        Self {
            path: path.clone(),
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

fn from_header(path: &Location, header: &LogSegmentHeaderPb) -> Result<Segment> {
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
fn find_footer(bytes: &Stretches<'_>, start: u64) -> Result<(u64, Option<LogSegmentFooterPb>)> {
    let none = (bytes.size(), None);
    let Some(at) = bytes.size().checked_sub(TAIL_BYTES as u64) else { return Ok(none) };
    let Some(tail) = bytes.get(at, TAIL_BYTES)? else { return Ok(none) };
    let length = word(&tail, 8).unwrap_or(u32::MAX) as usize;
    if !tail.starts_with(FOOTER_MAGIC) || length > MAX_MESSAGE_BYTES {
        return Ok(none);
    }
    let Some(at) = at.checked_sub(length as u64).filter(|at| *at >= start) else { return Ok(none) };
    let message = bytes.get(at, length)?.unwrap_or_default();
    match messages::parse(&message, "LogSegmentFooterPB") {
        Ok(footer) => Ok((at, Some(footer))),
        Err(_) => Ok(none),
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

    /// The header in these bytes, if its checksum is right.
    fn header(self, bytes: &[u8]) -> Option<EntryHeader> {
        let crc_at = self.header_bytes().checked_sub(4)?;
        if crc32c(bytes.get(..crc_at)?) != word(bytes, crc_at)? || bytes.iter().all(|byte| *byte == 0) {
            return None;
        }
        let stored = word(bytes, 0)? as usize;
        let (uncompressed, crc) = match self {
            Self::Old => (stored, word(bytes, 4)?),
            Self::New => (word(bytes, 4)? as usize, word(bytes, 8)?),
        };
        Some(EntryHeader { stored, uncompressed, crc })
    }
}

struct EntryReader<'a> {
    bytes: &'a Stretches<'a>,
    end: u64,
    form: Form,
    compression: Compression,
    kept: &'a Kept<'a>,
}

/// A header whose own checksum is right.
struct EntryHeader {
    stored: usize,
    uncompressed: usize,
    crc: u32,
}

/// More damaged stretches of a segment than these are not told one by one.
const MOST_FINDINGS: usize = 100;

impl EntryReader<'_> {
    fn read_all(&self, start: u64, has_footer: bool, segment: &mut Segment) -> Result<()> {
        let (mut at, mut untold) = (start, 0u64);
        segment.end = if has_footer { SegmentEnd::Closed } else { SegmentEnd::Bare };
        while at < self.end {
            let error = match self.entry(at) {
                Ok((batch, next)) => {
                    segment.entries.extend(batch.entry.into_iter().map(|entry| (at, entry)));
                    at = next;
                    continue;
                }
                Err(error) if is_of_the_whole(&error) => return Err(error),
                Err(error) => error,
            };
            // A good header with a bad payload tells where the next entry begins.
            let from = match self.header(at)? {
                Some(header) => self.payload(at).saturating_add(header.stored as u64),
                None => at.saturating_add(1),
            };
            let next = self.next_header(from)?;
            if next.is_none() && !has_footer {
                segment.end = self.end_at(at)?;
                if segment.end != SegmentEnd::Damaged {
                    break;
                }
            }
            if segment.findings.len() < MOST_FINDINGS {
                let error = error.at(self.bytes.name(), at, PART);
                segment.findings.push(Finding::from_error(&error, self.bytes.name(), None));
            } else {
                untold = untold.saturating_add(1);
            }
            if segment.gaps.last() != Some(&segment.entries.len()) {
                segment.gaps.push(segment.entries.len());
            }
            let Some(next) = next else { break };
            at = next;
        }
        if untold > 0 {
            let error = Error::corrupt("entries", format!("{untold} more stretches that are damaged"));
            let error = error.at(self.bytes.name(), at, PART);
            segment.findings.push(Finding::from_error(&error, self.bytes.name(), None));
        }
        Ok(())
    }

    /// Where the payload of the entry at `at` begins.
    fn payload(&self, at: u64) -> u64 {
        at.saturating_add(self.form.header_bytes() as u64)
    }

    /// What the bytes from `at` on are, which are no entry: a crash leaves the beginning of one, with zeros or nothing
    /// behind it.
    fn end_at(&self, at: u64) -> Result<SegmentEnd> {
        let Some(last) = self.bytes.last_set(at, self.end)? else { return Ok(SegmentEnd::Preallocated) };
        let end = match self.header(at)? {
            Some(header) => self.payload(at).saturating_add(header.stored as u64),
            None => self.payload(at),
        };
        let is_cut = self.end < end || last.saturating_add(1) < end;
        Ok(if is_cut { SegmentEnd::Torn(at) } else { SegmentEnd::Damaged })
    }

    fn header(&self, at: u64) -> Result<Option<EntryHeader>> {
        Ok(self.bytes.get(at, self.form.header_bytes())?.and_then(|header| self.form.header(&header)))
    }

    /// The first valid header at or after `from`.
    fn next_header(&self, from: u64) -> Result<Option<u64>> {
        let length = self.form.header_bytes();
        let last = self.end.saturating_sub(length as u64);
        let mut at = from;
        while at <= last {
            let bytes = self.bytes.from(at, length)?;
            let starts = bytes.len().saturating_sub(length.saturating_sub(1));
            if starts == 0 {
                break;
            }
            let mut skipped = 0;
            while skipped < starts {
                let Some(header) = bytes.get(skipped..skipped.saturating_add(length)) else { break };
                let start = at.saturating_add(skipped as u64);
                if start > last {
                    return Ok(None);
                }
                // Preallocated space is megabytes of zeros, and a header has other bytes.
                if header.iter().all(|byte| *byte == 0) {
                    break;
                }
                if self.form.header(header).is_some() {
                    return Ok(Some(start));
                }
                skipped = skipped.saturating_add(1);
            }
            at = at.saturating_add(skipped as u64);
            if skipped < starts {
                let Some(set) = self.bytes.next_set(at, self.end)? else { return Ok(None) };
                at = set.saturating_sub(length.saturating_sub(1) as u64).max(at.saturating_add(1));
            }
        }
        Ok(None)
    }

    fn entry(&self, at: u64) -> Result<(LogEntryBatchPb, u64)> {
        let header = self.header(at)?.ok_or_else(|| Error::corrupt("an entry header", "other bytes"))?;
        let start = self.payload(at);
        let end = start.saturating_add(header.stored as u64);
        let cut = || Error::corrupt(format!("an entry of {} bytes", header.stored), "the end of the segment");
        if end > self.end {
            return Err(cut());
        }
        let limits = self.kept.limits;
        let payload = self.bytes.get(start, limits.block(header.stored as u64)?)?.ok_or_else(cut)?;
        check_crc32c(&payload, header.crc)?;
        let message = match self.compression.codec() {
            Some(codec) if self.form == Form::New => {
                let mut buffer = vec![0; limits.decoded(header.uncompressed as u64)?];
                codec.decompress(&payload, &mut buffer)?;
                Bytes::from(buffer)
            }
            // Rows are kept as they are here, and must not keep the whole stretch.
            _ => Bytes::copy_from_slice(&payload),
        };
        let bytes = message.len();
        let batch = <LogEntryBatchPb as prost::Message>::decode(message)
            .map_err(|error| Error::corrupt("a LogEntryBatchPB message", error))?;
        self.kept.add(bytes)?;
        Ok((batch, end))
    }
}

/// Whether reading on makes no sense: the disk fails, or all that is kept is too much.
fn is_of_the_whole(error: &Error) -> bool {
    !error.is_damage() || matches!(error.kind(), ErrorKind::LimitExceeded { limit: "log_bytes", .. })
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
        parse_segment(&Location::local("wal-000000007"), "wal", bytes, &Limits::default()).unwrap().unwrap()
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
        let pool = FilePool::new(None, crate::fs::UnreadLog::default());
        std::fs::write(folder.path().join("wal-000000001"), segment_of(&[], b"no entries at all")).unwrap();
        std::fs::write(folder.path().join("wal-000000009"), b"damaged header").unwrap();
        std::fs::write(folder.path().join("wal-000000010"), [0; 100]).unwrap();
        let segments = read_headers(&folder.path().into(), &pool, &Limits::default());
        let found: Vec<_> = segments.iter().map(|s| (s.sequence, s.schema.is_some())).collect();
        assert_eq!(found, [(7, true), (9, false)]);
    }

    #[test]
    fn limits_are_kept() {
        let bytes = segment_of(&[COMMIT], &[]);
        let source = pilaster_core::source::MemorySource::new("wal", bytes);
        let limits = Limits { log_bytes: 3, ..Limits::default() };
        let error =
            read_segment(&Location::local("wal-000000001"), &source, &Kept::new(&limits)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded { limit: "log_bytes", .. }), "{error}");
    }

    /// Bytes with a hole behind them, that notes the longest read.
    #[derive(Debug)]
    struct Sparse {
        start: Bytes,
        size: u64,
        longest: std::sync::atomic::AtomicU64,
    }

    impl Source for Sparse {
        fn name(&self) -> &'static str {
            "sparse"
        }

        fn size(&self) -> u64 {
            self.size
        }

        fn read_at(&self, range: std::ops::Range<u64>) -> Result<Bytes> {
            self.longest.fetch_max(range.end - range.start, std::sync::atomic::Ordering::Relaxed);
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let from = (range.start as usize).min(self.start.len());
            let until = (range.end as usize).min(self.start.len());
            bytes[..until - from].copy_from_slice(&self.start[from..until]);
            Ok(bytes.into())
        }
    }

    #[test]
    fn space_behind_the_entries_is_not_held_however_much_there_is() {
        for (entries, end) in
            [(&[COMMIT, COMMIT][..], SegmentEnd::Preallocated), (&[], SegmentEnd::Preallocated)]
        {
            let start = segment_of(entries, &[]);
            let source = Sparse { start, size: 300 << 20, longest: 0.into() };
            let limits = Limits { log_bytes: 100, ..Limits::default() };
            let segment = read_segment(&Location::local("wal-000000007"), &source, &Kept::new(&limits));
            let segment = segment.unwrap().unwrap();
            assert_eq!((segment.entries.len(), segment.end), (entries.len(), end));
            assert!(segment.findings.is_empty());
            assert_eq!(source.longest.into_inner(), 1 << 20);
        }
    }

    #[test]
    fn damaged_stretches_without_end_are_counted() {
        let mut behind = Vec::new();
        for _ in 0..5000 {
            let mut entry = entry_of(COMMIT);
            *entry.last_mut().unwrap() ^= 1;
            behind.extend(entry);
        }
        behind.extend(entry_of(COMMIT));
        let segment = parse(&segment_of(&[COMMIT], &behind));
        assert_eq!((segment.entries.len(), segment.gaps.as_slice()), (2, &[1][..]));
        assert_eq!(segment.findings.len(), MOST_FINDINGS + 1);
        let last = segment.findings.last().unwrap().to_string();
        assert!(last.contains("4900 more stretches"), "{last}");
    }
}
